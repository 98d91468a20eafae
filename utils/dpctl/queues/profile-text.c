/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-text.h"

#include <core/say.h>
#include <core/words.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_MAX_LEN 4096
#define LINES_MAX    200000

struct variable {
    const char *name, *value;
    bool given; /* on the command line */
    bool used;
};

struct reader {
    struct ctx *c;
    const char *file;
    unsigned number;
    struct variable *vars;
    size_t n_vars, room_vars;
    struct profile_line *lines;
    size_t n_lines, room_lines;
};

static size_t
name_len(const char *p)
{
    size_t n = 0;
    while (isalnum((unsigned char)p[n]) || p[n] == '_')
        n++;
    return n;
}

static struct variable *
find_variable(const struct reader *r, const char *name, size_t n)
{
    for (size_t i = 0; i < r->n_vars; i++)
        if (strlen(r->vars[i].name) == n && !strncmp(r->vars[i].name, name, n))
            return &r->vars[i];
    return NULL;
}

static enum status
add_variable(struct reader *r, const char *name, size_t n, const char *value, bool given)
{
    struct variable *v = words_room(r->c, r->vars, r->n_vars, &r->room_vars, sizeof *v);
    if (!v)
        return say_memory(r->c);
    r->vars = v;
    r->vars[r->n_vars++] = (struct variable){words_keep(r->c, name, n),
                                             words_keep(r->c, value, strlen(value)), given, false};
    return DPCTL_OK;
}

/* "rate=20mbit" */
static enum status
take_sets(struct reader *r, char *const *sets, int n)
{
    enum status st = DPCTL_OK;
    for (int i = 0; !st && i < n; i++) {
        size_t len = name_len(sets[i]);
        if (!len || sets[i][len] != '=' || !sets[i][len + 1])
            return say_usage(r->c,
                             "unknown word '%s': use port=N or NAME=VALUE for a variable of the "
                             "profile",
                             sets[i]);
        if (find_variable(r, sets[i], len))
            return say_usage(r->c, "%.*s is given twice", (int)len, sets[i]);
        st = add_variable(r, sets[i], len, sets[i] + len + 1, true);
    }
    return st;
}

/* $name and ${name} become their values. */
static enum status
expand(struct reader *r, const char *from, char *to, size_t room)
{
    size_t n = 0;
    while (*from && n + 1 < room) {
        if (*from != '$') {
            to[n++] = *from++;
            continue;
        }
        bool braces = from[1] == '{';
        const char *name = from + 1 + braces;
        size_t len = name_len(name);
        struct variable *v = find_variable(r, name, len);
        if (!len || (braces && name[len] != '}'))
            return say_line(r->c, r->file, r->number,
                            "'$' must be followed by a name: $NAME or ${NAME}");
        if (!v)
            return say_line(r->c, r->file, r->number,
                            "$%.*s has no value: give %.*s=VALUE on the command line, or write "
                            "'set %.*s=VALUE' above this line",
                            (int)len, name, (int)len, name, (int)len, name);
        v->used = true;
        int k = snprintf(to + n, room - n, "%s", v->value);
        n += (size_t)k < room - n ? (size_t)k : room - n - 1;
        from = name + len + braces;
    }
    to[n] = '\0';
    return *from ? say_line(r->c, r->file, r->number, "the line is longer than %d characters",
                            LINE_MAX_LEN - 1)
                 : DPCTL_OK;
}

/* "set rate=20mbit": the value unless the command line gives one. */
static enum status
set_line(struct reader *r, const char *text)
{
    text += strspn(text, " \t");
    size_t len = name_len(text);
    if (!len || text[len] != '=' || !text[len + 1])
        return say_line(r->c, r->file, r->number, "write set NAME=VALUE, not 'set %s'", text);
    struct variable *v = find_variable(r, text, len);
    if (!v)
        return add_variable(r, text, len, text + len + 1, false);
    if (!v->given)
        return say_line(r->c, r->file, r->number, "%s is set twice", v->name);
    v->used = true;
    return DPCTL_OK;
}

static enum status
add_line(struct reader *r, const char *text, size_t n)
{
    struct profile_line *v = words_room(r->c, r->lines, r->n_lines, &r->room_lines, sizeof *v);
    if (!v)
        return say_memory(r->c);
    r->lines = v;
    struct profile_line *line = &r->lines[r->n_lines++];
    *line = (struct profile_line){r->number, words_keep(r->c, text, n)};
    return line->text ? DPCTL_OK : say_memory(r->c);
}

static enum status
take_line(struct reader *r, char *raw)
{
    static const char blanks[] = " \t\r\n";
    char text[LINE_MAX_LEN];
    raw[strcspn(raw, "#")] = '\0';
    raw += strspn(raw, blanks);
    size_t n = strlen(raw);
    while (n && strchr(blanks, raw[n - 1]))
        raw[--n] = '\0';
    if (!n)
        return DPCTL_OK;
    if (r->n_lines == LINES_MAX)
        return say_line(r->c, r->file, r->number, "more than %d lines", LINES_MAX);
    enum status st = expand(r, raw, text, sizeof text);
    if (st)
        return st;
    if (!strncmp(text, "set", 3) && strchr(" \t", text[3]))
        return set_line(r, text + 3);
    return add_line(r, text, strlen(text));
}

enum status
profile_lines(struct ctx *c, const char *file, char *const *sets, int n_sets,
              struct profile_line **out, size_t *n)
{
    struct reader r = {.c = c, .file = file};
    char *line = NULL;
    size_t size = 0;
    enum status st = take_sets(&r, sets, n_sets);
    if (st)
        return st;
    FILE *in = strcmp(file, "-") ? fopen(file, "re") : stdin;
    if (!in)
        return say_usage(c, "%s: %s", file, strerror(errno));
    for (r.number = 1; !st && getline(&line, &size, in) >= 0; r.number++)
        st = take_line(&r, line);
    if (!st && ferror(in))
        st = say_failed(c, "%s: %s", file, strerror(errno));
    free(line);
    if (in != stdin)
        fclose(in);
    for (size_t i = 0; !st && i < r.n_vars; i++)
        if (!r.vars[i].used && r.vars[i].given)
            st = say_usage(c, "%s has no variable $%s", file, r.vars[i].name);
    *out = r.lines;
    *n = r.n_lines;
    return st;
}
