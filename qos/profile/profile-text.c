/* SPDX-License-Identifier: Apache-2.0 */
#include "profile-text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LINE_MAX_LEN 4096
#define LINES_MAX    200000

struct variable {
    const char *name, *value;
    bool given; /* beside the file */
    bool used;
};

struct reader {
    struct of_parse *p;
    struct qos_profile_report *report;
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

int
qos_profile_mistake(struct qos_profile_report *report, enum qos_profile_fault fault, unsigned line,
                    const char *text)
{
    if (report->mistake)
        report->mistake(report->ctx, fault, line, text);
    return ++report->mistakes < QOS_PROFILE_MISTAKES ? -EINVAL : -ECANCELED;
}

/* All return what qos_profile_mistake does. */
__attribute__((format(printf, 3, 0))) static int
refuse(struct reader *r, enum qos_profile_fault fault, const char *fmt, va_list ap)
{
    char text[sizeof r->p->why];
    vsnprintf(text, sizeof text, fmt, ap);
    return qos_profile_mistake(r->report, fault, fault == QOS_PROFILE_LINE ? r->number : 0, text);
}

__attribute__((format(printf, 2, 3))) static int
bad_line(struct reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int err = refuse(r, QOS_PROFILE_LINE, fmt, ap);
    va_end(ap);
    return err;
}

__attribute__((format(printf, 2, 3))) static int
bad_word(struct reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int err = refuse(r, QOS_PROFILE_WORD, fmt, ap);
    va_end(ap);
    return err;
}

__attribute__((format(printf, 2, 3))) static int
bad_file(struct reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int err = refuse(r, QOS_PROFILE_FILE, fmt, ap);
    va_end(ap);
    return err;
}

static struct variable *
find_variable(const struct reader *r, const char *name, size_t n)
{
    for (size_t i = 0; i < r->n_vars; i++)
        if (strlen(r->vars[i].name) == n && !strncmp(r->vars[i].name, name, n))
            return &r->vars[i];
    return NULL;
}

static int
add_variable(struct reader *r, const char *name, size_t n, const char *value, bool given)
{
    struct variable *v = of_arena_room(r->p->arena, r->vars, r->n_vars, &r->room_vars, sizeof *v);
    if (!v)
        return -ENOMEM;
    r->vars = v;
    v += r->n_vars++;
    *v = (struct variable){of_arena_text(r->p->arena, name, n),
                           of_arena_text(r->p->arena, value, strlen(value)), given, false};
    return v->name && v->value ? 0 : -ENOMEM;
}

/* "rate=20mbit" */
static int
take_sets(struct reader *r, char *const *sets, int n)
{
    int err = 0;
    for (int i = 0; (!err || err == -EINVAL) && i < n; i++) {
        size_t len = name_len(sets[i]);
        if (!len || sets[i][len] != '=' || !sets[i][len + 1])
            err = bad_word(r,
                           "unknown word '%s': write NAME=VALUE for a variable of the "
                           "profile",
                           sets[i]);
        else if (find_variable(r, sets[i], len))
            err = bad_word(r, "%.*s is given twice", (int)len, sets[i]);
        else
            err = add_variable(r, sets[i], len, sets[i] + len + 1, true);
    }
    return err;
}

/* $name and ${name} become their values. */
static int
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
            return bad_line(r, "'$' must be followed by a name: $NAME or ${NAME}");
        if (!v)
            return bad_line(r,
                            "$%.*s has no value: give %.*s=VALUE on the command line, or write "
                            "'set %.*s=VALUE' above this line",
                            (int)len, name, (int)len, name, (int)len, name);
        v->used = true;
        int k = snprintf(to + n, room - n, "%s", v->value);
        n += (size_t)k < room - n ? (size_t)k : room - n - 1;
        from = name + len + braces;
    }
    to[n] = '\0';
    return *from ? bad_line(r, "the line is longer than %d characters", LINE_MAX_LEN - 1) : 0;
}

/* "set rate=20mbit": the value unless the command line gives one. */
static int
set_line(struct reader *r, const char *text)
{
    text += strspn(text, " \t");
    size_t len = name_len(text);
    if (!len || text[len] != '=' || !text[len + 1])
        return bad_line(r, "write set NAME=VALUE, not 'set %s'", text);
    struct variable *v = find_variable(r, text, len);
    if (!v)
        return add_variable(r, text, len, text + len + 1, false);
    if (!v->given)
        return bad_line(r, "%s is set twice", v->name);
    v->used = true;
    return 0;
}

static int
add_line(struct reader *r, const char *text, size_t n)
{
    struct profile_line *v =
        of_arena_room(r->p->arena, r->lines, r->n_lines, &r->room_lines, sizeof *v);
    if (!v)
        return -ENOMEM;
    r->lines = v;
    struct profile_line *line = &r->lines[r->n_lines++];
    *line = (struct profile_line){r->number, of_arena_text(r->p->arena, text, n), false};
    return line->text ? 0 : -ENOMEM;
}

static int
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
        return 0;
    if (r->n_lines == LINES_MAX) {
        bad_line(r, "more than %d lines", LINES_MAX);
        return -ECANCELED;
    }
    int err = expand(r, raw, text, sizeof text);
    if (err == -EINVAL && !add_line(r, raw, n)) /* others may refer to the class that it names */
        r->lines[r->n_lines - 1].wrong = true;
    if (err)
        return err;
    if (!strncmp(text, "set", 3) && strchr(" \t", text[3]))
        return set_line(r, text + 3);
    return add_line(r, text, strlen(text));
}

/* A mistake has been reported: reading goes on. */
static int
passed(int err)
{
    return err == -EINVAL ? 0 : err;
}

static int
read_file(struct reader *r, const char *file)
{
    char *line = NULL;
    size_t size = 0;
    FILE *in = strcmp(file, "-") ? fopen(file, "re") : stdin;
    int err = 0;
    if (!in) {
        bad_file(r, "%s: %s", file, strerror(errno));
        return -ECANCELED;
    }
    for (r->number = 1; !err && getline(&line, &size, in) >= 0; r->number++)
        err = passed(take_line(r, line));
    if (!err && !feof(in)) { /* without memory, too */
        bad_file(r, "%s: %s", file, strerror(errno));
        err = -ECANCELED;
    }
    free(line);
    if (in != stdin)
        fclose(in);
    return err;
}

static int
read_lines(struct reader *r, const char *const *lines, size_t n)
{
    int err = 0;
    for (r->number = 1; !err && r->number <= n; r->number++) {
        const char *line = lines[r->number - 1];
        char *copy = of_arena_text(r->p->arena, line, strlen(line));
        err = copy ? passed(take_line(r, copy)) : -ENOMEM;
    }
    return err;
}

int
qos_profile_lines(struct of_parse *p, const struct qos_profile_text *text,
                  struct profile_line **out, size_t *n, struct qos_profile_report *report)
{
    struct reader r = {.p = p, .report = report};
    int err = passed(take_sets(&r, text->sets, text->n_sets));
    if (!err)
        err = text->lines ? read_lines(&r, text->lines, text->n_lines) : read_file(&r, text->file);
    for (size_t i = 0; !err && i < r.n_vars; i++)
        if (!r.vars[i].used && r.vars[i].given)
            err = passed(bad_word(&r, "%s has no variable $%s", text->file, r.vars[i].name));
    *out = r.lines;
    *n = r.n_lines;
    return err;
}
