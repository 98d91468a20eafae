/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration file by inih.  Lines are handed to it one by one, so that their numbers are
 * known, without comments and blanks around them: inih would take an indented line for the
 * continuation of the value above it, and cut off what is too long. */
#include "config-file.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct lines {
    const struct config_file_reader *r;
    FILE *in;
    char *line;
    size_t size;
    unsigned number;
    unsigned section;   /* the line of the section's heading; 0: none */
    bool section_empty; /* no key has come yet */
    int failed;         /* why there is no next line; 0: the file ends */
};

static void
end_section(struct lines *l)
{
    if (l->section && l->section_empty)
        l->r->fault(l->r->ctx, l->section,
                    "the section is empty: give it a key, such as number = 3");
}

/* The line without its comment and the blanks around it. */
static char *
tidy(char *line)
{
    static const char blanks[] = " \t\r\n";
    for (char *p = line; (p = strchr(p, '#')); p++) {
        if (p == line || p[-1] == ' ' || p[-1] == '\t') {
            *p = '\0';
            break;
        }
    }
    line += strspn(line, blanks);
    size_t n = strlen(line);
    while (n && strchr(blanks, line[n - 1]))
        line[--n] = '\0';
    return line;
}

/* As fgets: the next line, or NULL. */
static char *
next_line(char *to, int room, void *stream)
{
    struct lines *l = stream;
    ssize_t n = getline(&l->line, &l->size, l->in);
    if (n < 0) {
        l->failed = feof(l->in) ? 0 : errno;
        return NULL;
    }
    l->number++;
    bool zero = strlen(l->line) < (size_t)n;
    char *text = tidy(l->line), why[80] = "";
    if (zero)
        snprintf(why, sizeof why, "the line has a zero byte");
    else if (strlen(text) + 2 > (size_t)room)
        snprintf(why, sizeof why, "the line is longer than %d characters", room - 2);
    if (*why) {
        l->r->fault(l->r->ctx, l->number, why);
        text = l->line;
        *text = '\0';
    }
    if (*text == '[') {
        end_section(l);
        l->section = l->number;
        l->section_empty = true;
    }
    snprintf(to, (size_t)room, "%s\n", text);
    return to;
}

static int
take(void *user, const char *section, const char *key, const char *value)
{
    struct lines *l = user;
    l->section_empty = false;
    l->r->entry(l->r->ctx, l->number, section, key, value);
    return 1;
}

static FILE *
open_file(const char *path, char *why, size_t n)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *in = NULL;
    bool there = fd >= 0 && !fstat(fd, &st);
    if (there && !S_ISREG(st.st_mode))
        snprintf(why, n, "it is no regular file");
    else if (there && st.st_size > CONFIG_FILE_MAX)
        snprintf(why, n, "it is larger than %u bytes", CONFIG_FILE_MAX);
    else if (!there || !(in = fdopen(fd, "r")))
        snprintf(why, n, "%s", strerror(errno));
    if (fd >= 0 && !in)
        close(fd);
    return in;
}

void
config_file_read(const char *path, const struct config_file_reader *r)
{
    char why[160];
    struct lines l = {.r = r, .in = open_file(path, why, sizeof why)};
    if (!l.in) {
        r->fault(r->ctx, 0, why);
        return;
    }
    int wrong = ini_parse_stream(next_line, &l, take, &l);
    if (wrong > 0)
        r->fault(r->ctx, (unsigned)wrong, "the line is neither KEY = VALUE nor [port INTERFACE]");
    else if (wrong < 0)
        r->fault(r->ctx, 0, "out of memory");
    else if (l.failed) /* what was read so far is not the file */
        r->fault(r->ctx, 0, strerror(l.failed));
    end_section(&l);
    free(l.line);
    fclose(l.in);
}
