/* SPDX-License-Identifier: Apache-2.0 */
#include <daemon/config.h>

#include "config-file.h"
#include <daemon/daemon.h>

#include <oflib/near.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ARENA_MAX    (64u << 20)
#define FAULTS_MAX   64
#define SETTINGS_MAX 8192

/* ------------------------------------------------------------------ rows */

static const struct daemon_option *
find_row(const struct daemon_program *p, const char *name)
{
    for (const struct daemon_option *o = p->options; o->name || o->help; o++)
        if (o->name && !strcmp(o->name, name))
            return o;
    return NULL;
}

/* The key of a row in its section. */
static const char *
key_of(const struct daemon_option *o)
{
    return o->key ? o->key : o->name;
}

static const struct daemon_option *
find_key(const struct daemon_program *p, const char *section, const char *key)
{
    for (const struct daemon_option *o = p->options; o->name || o->help; o++)
        if (o->name && o->section && !strcmp(o->section, section) && !strcmp(key_of(o), key))
            return o;
    return NULL;
}

/* ------------------------------------------------------------------ settings */

/* Notes that memory ran out, which can't be noted as other mistakes are. */
static void
out_of_memory(struct daemon_settings *s)
{
    static const char *only[] = {"out of memory, or too many settings"};
    s->faults = only;
    s->n_faults = 1;
    s->faults_room = 0;
}

static void
add(struct daemon_settings *s, const struct daemon_option *row, const char *value, unsigned line)
{
    struct daemon_setting *v = of_arena_room(&s->arena, s->v, s->n, &s->room, sizeof *v);
    const char *copy = value ? of_arena_text(&s->arena, value, strlen(value)) : NULL;
    if (!v || s->n == SETTINGS_MAX || !copy != !value) {
        out_of_memory(s);
        return;
    }
    s->v = v;
    s->v[s->n++] = (struct daemon_setting){row, copy, line, false};
}

void
daemon_settings_add(struct daemon_settings *s, const struct daemon_program *p, const char *name,
                    const char *value)
{
    add(s, find_row(p, name), value, 0);
}

const struct daemon_setting *
daemon_settings_next(const struct daemon_settings *s, const char *name,
                     const struct daemon_setting *after)
{
    for (const struct daemon_setting *t = after ? after + 1 : s->v; t && t < s->v + s->n; t++)
        if (!strcmp(t->row->name, name))
            return t;
    return NULL;
}

bool
daemon_settings_same(const struct daemon_settings *a, const struct daemon_settings *b,
                     const struct daemon_option *row)
{
    const struct daemon_setting *x = NULL, *y = NULL;
    do {
        x = daemon_settings_next(a, row->name, x);
        y = daemon_settings_next(b, row->name, y);
        if (!x != !y || (x && !x->value != !y->value) ||
            (x && x->value && strcmp(x->value, y->value)))
            return false;
    } while (x);
    return true;
}

void
daemon_settings_check_memory(struct daemon_settings *s, const struct daemon_settings *line)
{
    if (!s->n_faults && (s->arena.refused || line->arena.refused || line->n_faults))
        out_of_memory(s);
}

void
daemon_settings_free(struct daemon_settings *s)
{
    of_arena_free(&s->arena);
    *s = (struct daemon_settings){0};
}

/* ------------------------------------------------------------------ mistakes */

const char *
daemon_settings_where(const struct daemon_settings *s, const struct daemon_setting *at, char *buf,
                      size_t n)
{
    if (at && at->line)
        snprintf(buf, n, "%s:%u", s->file, at->line);
    else if (at)
        snprintf(buf, n, "--%s", at->row->name);
    else
        snprintf(buf, n, "%s", s->file ? s->file : "the command line");
    return buf;
}

__attribute__((format(printf, 3, 0))) static void
put_fault(struct daemon_settings *s, const char *where, const char *fmt, va_list ap)
{
    char text[1400];
    int n = snprintf(text, sizeof text, "%s", where);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    for (char *p = text; *p; p++) /* it goes to a terminal */
        if ((unsigned char)*p < ' ' || *p == 127)
            *p = '?';
    if (s->n_faults == FAULTS_MAX)
        return;
    const char *copy = of_arena_text(&s->arena, text, strlen(text));
    const char **v = of_arena_room(&s->arena, s->faults, s->n_faults, &s->faults_room, sizeof *v);
    if (!v || !copy) {
        out_of_memory(s);
        return;
    }
    s->faults = v;
    s->faults[s->n_faults++] = copy;
}

const char *
daemon_settings_written(const struct daemon_setting *at)
{
    const char *value = at->in_section ? strchr(at->value, ':') : NULL;
    return value ? value + 1 : at->value;
}

void
daemon_settings_fault(struct daemon_settings *s, const struct daemon_setting *at, const char *fmt,
                      ...)
{
    char where[480];
    va_list ap;
    if (at && at->line)
        snprintf(where, sizeof where, "%s:%u: %s ", s->file, at->line,
                 at->in_section ? key_of(at->row) : at->row->name);
    else if (at)
        snprintf(where, sizeof where, "--%s ", at->row->name);
    else
        snprintf(where, sizeof where, "%s%s", s->file ? s->file : "", s->file ? ": " : "");
    va_start(ap, fmt);
    put_fault(s, where, fmt, ap);
    va_end(ap);
}

/* A mistake in a line that is no setting. */
__attribute__((format(printf, 3, 4))) static void
line_fault(struct daemon_settings *s, unsigned line, const char *fmt, ...)
{
    char where[480];
    va_list ap;
    if (line)
        snprintf(where, sizeof where, "%s:%u: ", s->file, line);
    else
        snprintf(where, sizeof where, "%s: ", s->file);
    va_start(ap, fmt);
    put_fault(s, where, fmt, ap);
    va_end(ap);
}

/* ------------------------------------------------------------------ the file */

struct reading {
    const struct daemon_program *p;
    const struct daemon_settings *line;
    struct daemon_settings *s;
};

static bool
is_global(const struct daemon_option *options, const char *key)
{
    for (const struct daemon_option *o = options; o->name || o->help; o++)
        if (o->name && o->help && !o->line_only && !strcmp(o->name, key))
            return true;
    return false;
}

static void
unknown_key(struct reading *r, unsigned line, const char *section, const char *key)
{
    struct of_near near = of_near(key, strlen(key));
    char text[OF_NEAR_TEXT];
    if (*section && is_global(r->p->options, key)) {
        line_fault(r->s, line, "key '%s' is not one of section [%s ...]: write it below [switch]",
                   key, section);
        return;
    }
    for (const struct daemon_option *o = r->p->options; o->name || o->help; o++)
        if (o->name && o->help && !o->line_only && (!*section || o->section))
            of_near_try(&near, *section ? key_of(o) : o->name);
    line_fault(r->s, line, "there is no key '%s'%s%s%s%s", key, *section ? " in section [" : "",
               section, *section ? " ...]" : "",
               near.count ? of_near_text(&near, text, sizeof text)
                          : "; --help=conf lists the keys");
}

/* Refuses a second value of a key that has one; what the command line gives is left out. */
static void
put(struct reading *r, const struct daemon_option *row, const char *value, unsigned line)
{
    const struct daemon_setting *before = daemon_settings_next(r->s, row->name, NULL);
    if (before && !row->many)
        line_fault(r->s, line, "%s is given twice, first in line %u", row->name, before->line);
    else
        add(r->s, row, value, line);
}

/* The section itself becomes a setting, "eth1"; a row with a key becomes "eth1:3". */
static struct daemon_setting *
put_section(struct reading *r, const struct daemon_option *row, const char *title, unsigned line)
{
    size_t n = strlen(title);
    for (size_t i = 0; i < r->s->n; i++) {
        const char *v = r->s->v[i].value;
        if (r->s->v[i].row == row && !strncmp(v, title, n) && (!v[n] || v[n] == ':'))
            return &r->s->v[i];
    }
    size_t n_before = r->s->n;
    add(r->s, row, title, line);
    return r->s->n > n_before ? &r->s->v[n_before] : NULL;
}

static void
in_section(struct reading *r, unsigned line, char *section, const char *key, const char *value)
{
    char *title = section + strcspn(section, " \t");
    if (*title)
        *title++ = '\0';
    title += strspn(title, " \t");
    const struct daemon_option *own = find_row(r->p, section);
    if (!own || !own->section || !*title) {
        line_fault(r->s, line,
                   "the section above this key must be [switch], [port INTERFACE] or [slice NAME], "
                   "such as [port eth1]");
        return;
    }
    const struct daemon_option *row = find_key(r->p, section, key);
    if (!row) {
        unknown_key(r, line, section, key);
        return;
    }
    char both[512];
    struct daemon_setting *self = put_section(r, own, title, line);
    snprintf(both, sizeof both, "%.79s:%.400s", title, value);
    if (!self)
        return;
    if (row != own) {
        size_t n_before = r->s->n;
        put(r, row, both, line);
        if (r->s->n > n_before)
            r->s->v[n_before].in_section = true;
    } else if (strcmp(self->value, title)) {
        line_fault(r->s, line, "%s is given twice, first in line %u", key, self->line);
    } else {
        const char *copy = of_arena_text(&r->s->arena, both, strlen(both));
        self->value = copy ? copy : self->value;
        self->line = line;
        self->in_section = true;
    }
}

/* "the switch" in quotes is taken without them. */
static const char *
unquoted(const char *value, char *buf, size_t size)
{
    size_t n = strlen(value);
    if (n < 2 || *value != '"' || value[n - 1] != '"')
        return value;
    snprintf(buf, size, "%.*s", (int)n - 2, value + 1);
    return buf;
}

static void
take_entry(void *ctx, unsigned line, const char *section, const char *key, const char *value)
{
    struct reading *r = ctx;
    char copy[80], buf[512];
    value = unquoted(value, buf, sizeof buf);
    snprintf(copy, sizeof copy, "%s", section);
    if (*section && strcmp(section, "switch")) {
        in_section(r, line, copy, key, value);
        return;
    }
    const struct daemon_option *row = find_row(r->p, key);
    if (row && row->line_only)
        line_fault(r->s, line, "%s belongs on the command line", key);
    else if (row && row->help)
        put(r, row, value, line);
    else
        unknown_key(r, line, "", key);
}

static void
take_fault(void *ctx, unsigned line, const char *text)
{
    struct reading *r = ctx;
    line_fault(r->s, line, "%s", text);
}

/* Leaves out what the command line gives. */
static void
leave_out(struct daemon_settings *s, const struct daemon_settings *line)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (!daemon_settings_next(line, s->v[i].row->name, NULL))
            s->v[n++] = s->v[i];
    s->n = n;
}

void
daemon_settings_load(const struct daemon_program *p, const struct daemon_settings *line,
                     struct daemon_settings *out)
{
    static const char *const options[] = {"config", "check"};
    struct reading r = {p, line, out};
    const struct config_file_reader reader = {take_entry, take_fault, &r};
    *out = (struct daemon_settings){0};
    of_arena_init(&out->arena, ARENA_MAX);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const struct daemon_setting *t = daemon_settings_next(line, options[i], NULL);
        if (t && t->value && *t->value)
            out->file = t->value;
    }
    if (out->file)
        config_file_read(out->file, &reader);
    leave_out(out, line);
    for (size_t i = 0; i < line->n; i++)
        add(out, line->v[i].row, line->v[i].value, 0);
}

/* ------------------------------------------------------------------ the rows' variables */

/* The variables' values before any setting is taken. */
static struct {
    const struct daemon_program *p;
    union {
        bool flag;
        unsigned number;
        const char *text;
    } v[DAEMON_OPTIONS_MAX];
} defaults;

static void
reset(const struct daemon_option *o, size_t i, bool learn)
{
    char why[256];
    switch (o->kind) {
    case OPTION_IS_FLAG:
        learn ? (defaults.v[i].flag = *o->to.flag) : (*o->to.flag = defaults.v[i].flag);
        break;
    case OPTION_IS_NUMBER:
    case OPTION_IS_SECONDS:
    case OPTION_IS_WORD:
        learn ? (defaults.v[i].number = *o->to.number) : (*o->to.number = defaults.v[i].number);
        break;
    case OPTION_IS_TEXT:
        learn ? (defaults.v[i].text = *o->to.text) : (*o->to.text = defaults.v[i].text);
        break;
    case OPTION_IS_CALL:
        if (!learn)
            o->to.call(NULL, why, sizeof why);
        break;
    case OPTION_IS_IGNORED:
    case OPTION_IS_LIST: break;
    }
}

static bool
is_left_alone(const struct daemon_option *o, const struct daemon_settings *s,
              const struct daemon_settings *was)
{
    return o->kind == OPTION_IS_CALL && was && daemon_settings_same(s, was, o);
}

void
daemon_settings_take(const struct daemon_program *p, struct daemon_settings *s,
                     const struct daemon_settings *was)
{
    bool learn = defaults.p != p;
    size_t i = 0;
    char why[256] = "";
    defaults.p = p;
    for (const struct daemon_option *o = p->options; o->name || o->help; o++, i++)
        if (!is_left_alone(o, s, was))
            reset(o, i, learn);
    for (const struct daemon_setting *t = s->v; t && t < s->v + s->n; t++) {
        if (!is_left_alone(t->row, s, was) &&
            !daemon_option_take(t->row, t->value, why, sizeof why))
            daemon_settings_fault(s, t, "%s, not '%s'", why,
                                  t->value ? daemon_settings_written(t) : "");
    }
}
