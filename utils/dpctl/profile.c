/* SPDX-License-Identifier: Apache-2.0 */
/* A profile's lines as requests: dpctl's own grammar, with names for classes. */
#include "profile.h"

#include <oflib/near.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

struct name {
    const char *text;
    uint32_t id;
    enum qos_direction dir;
};

struct parser {
    struct ctx *c;
    struct profile *p;
    const struct profile_line *line;
    enum qos_direction dir; /* "in" and "out" lines */
    bool optional;          /* the line begins with "try" */
    struct name *names;     /* by dir, text */
    size_t n_names;
};

static const char separators[] = ", \t";

static enum status
wrong(struct parser *p, const char *what)
{
    return wrong_line(p->c, p->p->file, p->line->number, "%s", what);
}

/* The next key=value at *at; false: no more. */
static bool
next_word(const char **at, size_t *n)
{
    *at += strspn(*at, separators);
    *n = strcspn(*at, separators);
    return *n > 0;
}

/* The value of a key among the words of a line. */
static bool
find_key(const char *text, const char *key, const char **value, size_t *n)
{
    size_t len = strlen(key), word;
    for (const char *at = text; next_word(&at, &word); at += word) {
        if (word > len && at[len] == '=' && !strncasecmp(at, key, len)) {
            *value = at + len + 1;
            *n = word - len - 1;
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------------ names */

static int
by_name(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    return x->dir != y->dir ? (int)x->dir - (int)y->dir : strcmp(x->text, y->text);
}

static const struct name *
find_name(const struct parser *p, enum qos_direction dir, const char *text, size_t n)
{
    char copy[64];
    if (n >= sizeof copy)
        return NULL;
    memcpy(copy, text, n);
    copy[n] = '\0';
    struct name key = {copy, 0, dir};
    return bsearch(&key, p->names, p->n_names, sizeof key, by_name);
}

/* "in" and "out": which direction the lines below are about. */
static bool
direction_line(struct parser *p)
{
    bool in = !strcmp(p->line->text, "in");
    if (!in && strcmp(p->line->text, "out"))
        return false;
    p->dir = in ? QOS_IN : QOS_OUT;
    return true;
}

static enum qos_direction
line_direction(const struct parser *p)
{
    const char *value;
    size_t n;
    if (!find_key(p->line->text, "direction", &value, &n))
        return p->dir;
    return n == 2 && !strncasecmp(value, "in", 2) ? QOS_IN : QOS_OUT;
}

static enum status
take_name(struct parser *p)
{
    const char *name, *class;
    size_t n, n_class;
    if (!find_key(p->line->text, "name", &name, &n))
        return DPCTL_OK;
    if (!n || n > 32 || !isalpha((unsigned char)*name))
        return wrong(p, "a name begins with a letter and has up to 32 characters");
    if (!find_key(p->line->text, "class", &class, &n_class))
        return wrong(p, "name= is for a class: class=NUMBER is missing");
    char *copy = of_arena_alloc(&p->c->arena, n + 1);
    if (!copy)
        return failed(p->c, "out of memory");
    memcpy(copy, name, n);
    copy[n] = '\0';
    char *end;
    unsigned long id = strtoul(class, &end, 0);
    if (end != class + n_class)
        return wrong(p, "where a class gets its name, class= is a number");
    p->names[p->n_names++] = (struct name){copy, (uint32_t)id, line_direction(p)};
    return DPCTL_OK;
}

static enum status
take_names(struct parser *p, const struct profile_line *lines, size_t n)
{
    enum status st = DPCTL_OK;
    p->names = of_arena_array(&p->c->arena, n + 1, sizeof *p->names);
    if (!p->names)
        return failed(p->c, "out of memory");
    for (size_t i = 0; !st && i < n; i++) {
        p->line = &lines[i];
        if (!direction_line(p))
            st = take_name(p);
    }
    p->dir = QOS_OUT;
    if (st)
        return st;
    qsort(p->names, p->n_names, sizeof *p->names, by_name);
    for (size_t i = 1; i < p->n_names; i++)
        if (!by_name(&p->names[i - 1], &p->names[i]))
            return wrong_line(p->c, p->p->file, 0, "the name %s is given to two classes",
                              p->names[i].text);
    return DPCTL_OK;
}

/* ------------------------------------------------------------------------ lines */

static bool
names_class(const char *word, size_t key)
{
    return (key == 5 && !strncasecmp(word, "class", key)) ||
           (key == 5 && !strncasecmp(word, "queue", key)) ||
           (key == 6 && !strncasecmp(word, "parent", key)) ||
           (key == 7 && !strncasecmp(word, "default", key));
}

/* One word of the line, a class's name replaced by its number. */
static enum status
put_word(struct parser *p, struct of_wr *w, const char *word, size_t n)
{
    const char *eq = memchr(word, '=', n);
    size_t key = eq ? (size_t)(eq - word) : n, value = eq ? n - key - 1 : 0;
    if (key == 4 && !strncasecmp(word, "name", 4))
        return DPCTL_OK;
    if ((key == 3 && !strncasecmp(word, "cmd", 3)) || (key == 4 && !strncasecmp(word, "port", 4)))
        return wrong(p, "cmd and port are not for a profile: it says what is to be there, and "
                        "qos-apply on which ports");
    of_printf(w, "%s", w->len ? "," : "");
    if (!value || !names_class(word, key) || !isalpha((unsigned char)eq[1])) {
        of_printf(w, "%.*s", (int)n, word);
        return DPCTL_OK;
    }
    const struct name *name = find_name(p, line_direction(p), eq + 1, value);
    if (!name && *word == 'q')
        name = find_name(p, QOS_IN, eq + 1, value);
    if (!name)
        return wrong_line(p->c, p->p->file, p->line->number,
                          "no class has the name %.*s: a number, or the name= of a class of this "
                          "profile is right",
                          (int)value, eq + 1);
    of_printf(w, "%.*s=%u", (int)key, word, (unsigned)name->id);
    return DPCTL_OK;
}

/* The words behind the line's first one. */
static enum status
put_words(struct parser *p, struct of_wr *w, const char *text)
{
    enum status st = DPCTL_OK;
    size_t n;
    for (const char *at = text; !st && next_word(&at, &n); at += n)
        st = put_word(p, w, at, n);
    if (!st && w->overflow)
        st = failed(p->c, "out of memory");
    return st;
}

static enum status
scheduler_line(struct parser *p, const struct qos_sched *sched, const char *args)
{
    struct of_wr w = of_wr_grow(1 << 16);
    struct qos_request r;
    char why[768] = "";
    of_printf(&w, "cmd=add,port=1");
    enum status st = put_words(p, &w, args);
    if (!st && p->dir == QOS_IN && !strstr(args, "direction="))
        of_printf(&w, ",direction=in");
    of_wr8(&w, 0);
    if (!st && w.overflow)
        st = failed(p->c, "out of memory");
    if (!st && qos_request_parse(&r, sched, (const char *)w.buf, why, sizeof why))
        st = wrong_line(p->c, p->p->file, p->line->number, "%s: %s", sched->name, why);
    else if (!st && *why)
        wrong_line(p->c, p->p->file, p->line->number, "%s: %s", sched->name, why); /* as tc does */
    of_wr_free(&w);
    if (st)
        return st;
    struct profile_part *part = &p->p->part[r.values.v[QOS_DIRECTION] == QOS_IN];
    part->line[part->n] = p->line->number;
    part->optional[part->n] = p->optional;
    part->want[part->n++] = r;
    return DPCTL_OK;
}

/* "map queue=voice,dscp=ef", "map table=0,then=normal" */
static enum status
map_line(struct parser *p, const char *args)
{
    struct of_wr w = of_wr_grow(1 << 16);
    const char *why = NULL;
    enum status st = put_words(p, &w, args);
    of_wr8(&w, 0);
    char *text = st || w.overflow ? NULL : of_arena_alloc(&p->c->arena, w.len);
    if (text)
        memcpy(text, w.buf, w.len);
    of_wr_free(&w);
    if (!text)
        return st ? st : failed(p->c, "out of memory");
    if (strstr(text, "queue=")) {
        map_rule(p->c, &p->p->map, text, false, &why);
        return why ? wrong(p, why) : DPCTL_OK;
    }
    if (p->p->map.n)
        return wrong(p, "table= and then= stand before the map lines they are for, once");
    for (char *save, *word = strtok_r(text, separators, &save); word && !why;
         word = strtok_r(NULL, separators, &save))
        if (!map_option(p->c, &p->p->map, word, &why) && !why)
            return wrong(p,
                         "queue= is missing: map queue=NAME,dscp=ef (or only table=N, then=...)");
    return why ? wrong(p, why) : DPCTL_OK;
}

static enum status
unknown_line(struct parser *p, const char *kind)
{
    static const char *const words[] = {"map", "set", "in", "out", "none"};
    struct of_near near = of_near(kind, strlen(kind));
    const struct qos_sched *s;
    char text[OF_NEAR_TEXT];
    for (unsigned i = 0; (s = qos_sched_at(i)); i++)
        of_near_try(&near, s->name);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        of_near_try(&near, words[i]);
    return wrong_line(p->c, p->p->file, p->line->number, "%s is unknown%s", kind,
                      near.count ? of_near_text(&near, text, sizeof text)
                                 : ": a line begins with a scheduler (htb, sfq, ...), map, set, in "
                                   "or out; or it is 'none'");
}

static enum status
parse_line(struct parser *p)
{
    char kind[32];
    const char *text = p->line->text;
    size_t n = strcspn(text, separators);
    if (direction_line(p) || !strcmp(text, "none"))
        return DPCTL_OK;
    p->optional = n == 3 && !strncmp(text, "try", 3);
    if (p->optional) {
        text += n + strspn(text + n, separators);
        n = strcspn(text, separators);
    }
    snprintf(kind, sizeof kind, "%.*s", (int)n, text);
    if (!strcmp(kind, "map") && !p->optional)
        return map_line(p, text + n);
    const struct qos_sched *sched = qos_sched_by_name(!strncmp(kind, "qos-", 4) ? kind + 4 : kind);
    if (!sched || sched->id == OFP_QOS_SCHED_NONE)
        return unknown_line(p, kind);
    return scheduler_line(p, sched, text + n);
}

/* The profile's name: its file's, without directories and ending. */
static const char *
set_name(struct ctx *c, const char *file)
{
    const char *base = strrchr(file, '/');
    base = base ? base + 1 : file;
    return keep_text(c, base, strcspn(base, "."));
}

enum status
profile_read(struct ctx *c, const char *file, char *const *sets, int n_sets, struct profile *out)
{
    struct parser p = {.c = c, .p = out};
    struct profile_line *lines;
    const char *why = NULL;
    size_t n;
    *out = (struct profile){.file = file};
    map_init(&out->map, set_name(c, file));
    enum status st = profile_lines(c, file, sets, n_sets, &lines, &n);
    if (!st && !n)
        st = bad_args(c, "%s is empty: a line 'none' says that there is to be nothing", file);
    for (int i = 0; !st && i < 2; i++) {
        out->part[i].want = of_arena_array(&c->arena, n, sizeof *out->part[i].want);
        out->part[i].line = of_arena_array(&c->arena, n, sizeof *out->part[i].line);
        out->part[i].optional = of_arena_array(&c->arena, n, sizeof *out->part[i].optional);
        if (!out->part[i].want || !out->part[i].line || !out->part[i].optional || !out->map.set)
            st = failed(c, "out of memory");
    }
    st = st ? st : take_names(&p, lines, n);
    for (size_t i = 0; !st && i < n; i++) {
        p.line = &lines[i];
        st = parse_line(&p);
    }
    if (!st)
        map_finish(c, &out->map, &why);
    return why ? wrong_line(c, file, 0, "%s", why) : st;
}

enum status
profile_fit(struct ctx *c, struct profile *p)
{
    bool has[256] = {false}, asked = false;
    for (int dir = QOS_OUT; dir <= QOS_IN; dir++) {
        struct profile_part *part = &p->part[dir];
        size_t n = 0;
        for (size_t i = 0; i < part->n; i++) {
            enum status st = part->optional[i] && !asked ? ask_schedulers(c, has) : DPCTL_OK;
            asked |= part->optional[i];
            if (st)
                return st;
            if (part->optional[i] && !has[part->want[i].sched->id])
                continue;
            part->want[n] = part->want[i];
            part->line[n++] = part->line[i];
        }
        part->n = n;
    }
    return DPCTL_OK;
}
