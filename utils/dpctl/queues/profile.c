/* SPDX-License-Identifier: Apache-2.0 */
/* A profile's lines as requests. */
#include "profile-text.h"

#include <core/say.h>
#include <core/words.h>
#include <queues/profile.h>

#include <oflib/near.h>

#include <ctype.h>
#include <errno.h>
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
bad_line(struct parser *p, const char *what)
{
    return say_line(p->c, p->p->file, p->line->number, "%s", what);
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

/* "in" and "out": the direction of the lines below. */
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
        return bad_line(p, "name= must begin with a letter and have at most 32 characters");
    if (!find_key(p->line->text, "class", &class, &n_class))
        return bad_line(p, "name= needs class=NUMBER on the same line");
    char *copy = words_keep(p->c, name, n), *end;
    if (!copy)
        return say_memory(p->c);
    unsigned long id = strtoul(class, &end, 0);
    if (end != class + n_class)
        return bad_line(p, "class= must be a number on the line that has name=");
    p->names[p->n_names++] = (struct name){copy, (uint32_t)id, line_direction(p)};
    return DPCTL_OK;
}

static enum status
take_names(struct parser *p, const struct profile_line *lines, size_t n)
{
    enum status st = DPCTL_OK;
    p->names = of_arena_array(&p->c->arena, n + 1, sizeof *p->names);
    if (!p->names)
        return say_memory(p->c);
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
            return say_line(p->c, p->p->file, 0, "two classes have the name %s", p->names[i].text);
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

/* A word, with its class's name replaced by the number. */
static enum status
put_pair(struct parser *p, struct of_wr *w, const char *word, size_t n)
{
    const char *eq = memchr(word, '=', n);
    size_t key = eq ? (size_t)(eq - word) : n, value = eq ? n - key - 1 : 0;
    if (key == 4 && !strncasecmp(word, "name", 4))
        return DPCTL_OK;
    if ((key == 3 && !strncasecmp(word, "cmd", 3)) || (key == 4 && !strncasecmp(word, "port", 4)))
        return bad_line(p, "leave out cmd= and port=: a profile lists what is to be there, "
                           "qos-apply says on which ports");
    of_printf(w, "%s", w->len ? "," : "");
    if (!value || !names_class(word, key) || !isalpha((unsigned char)eq[1])) {
        of_printf(w, "%.*s", (int)n, word);
        return DPCTL_OK;
    }
    const struct name *name = find_name(p, line_direction(p), eq + 1, value);
    if (!name && *word == 'q')
        name = find_name(p, QOS_IN, eq + 1, value);
    if (!name)
        return say_line(p->c, p->p->file, p->line->number,
                        "no class has the name %.*s: use a number, or the name= of a class of "
                        "this profile",
                        (int)value, eq + 1);
    of_printf(w, "%.*s=%u", (int)key, word, (unsigned)name->id);
    return DPCTL_OK;
}

/* The words behind the line's first one, separated by commas. */
static enum status
put_words(struct parser *p, struct of_wr *w, const char *text)
{
    enum status st = DPCTL_OK;
    size_t n;
    for (const char *at = text; !st && next_word(&at, &n); at += n)
        st = put_pair(p, w, at, n);
    if (!st && w->overflow)
        st = say_memory(p->c);
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
        st = say_memory(p->c);
    if (!st && qos_request_parse(&r, sched, (const char *)w.buf, why, sizeof why))
        st = say_line(p->c, p->p->file, p->line->number, "%s: %s", sched->name, why);
    else if (!st && *why)
        say_line(p->c, p->p->file, p->line->number, "%s: %s", sched->name, why); /* a warning */
    of_wr_free(&w);
    if (st)
        return st;
    struct profile_part *part = &p->p->part[r.values.v[QOS_DIRECTION] == QOS_IN];
    part->line[part->n] = p->line->number;
    part->optional[part->n] = p->optional;
    part->want[part->n++] = r;
    return DPCTL_OK;
}

/* What a function of the map returned. */
static enum status
map_answer(struct parser *p, int err)
{
    return err == -ENOMEM ? say_memory(p->c) : err ? bad_line(p, p->c->parse.why) : DPCTL_OK;
}

/* "map queue=voice,dscp=ef", "map table=0,then=normal" */
static enum status
map_line(struct parser *p, const char *args)
{
    struct of_wr w = of_wr_grow(1 << 16);
    enum status st = put_words(p, &w, args);
    of_wr8(&w, 0);
    char *text = st || w.overflow ? NULL : words_keep(p->c, (const char *)w.buf, w.len);
    of_wr_free(&w);
    if (!text)
        return st ? st : say_memory(p->c);
    if (strstr(text, "queue="))
        return map_answer(p, map_rule(p->c, &p->p->map, text, false));
    if (p->p->map.n)
        return bad_line(p, "table= and then= must stand before the first rule");
    for (char *save, *word = strtok_r(text, separators, &save); word;
         word = strtok_r(NULL, separators, &save)) {
        int taken = map_option(p->c, &p->p->map, word);
        if (taken < 0)
            return map_answer(p, taken);
        if (!taken)
            return bad_line(p, "the rule has no queue: write map queue=NAME,dscp=ef");
    }
    return DPCTL_OK;
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
    return say_line(p->c, p->p->file, p->line->number, "%s is unknown%s", kind,
                    near.count ? of_near_text(&near, text, sizeof text)
                               : ": a line begins with a scheduler (htb, sfq, ...), map or "
                                 "set, or is 'in', 'out' or 'none'");
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

/* The file's name without directories and suffix. */
static const char *
set_name(struct ctx *c, const char *file)
{
    const char *base = strrchr(file, '/');
    base = base ? base + 1 : file;
    return words_keep(c, base, strcspn(base, "."));
}

enum status
profile_read(struct ctx *c, const char *file, char *const *sets, int n_sets, struct profile *out)
{
    struct parser p = {.c = c, .p = out};
    struct profile_line *lines;
    size_t n;
    *out = (struct profile){.file = file};
    map_init(&out->map, set_name(c, file));
    enum status st = profile_lines(c, file, sets, n_sets, &lines, &n);
    if (!st && !n)
        st = say_usage(c, "%s is empty: write a line 'none' to remove all queues", file);
    for (int i = 0; !st && i < 2; i++) {
        out->part[i].want = of_arena_array(&c->arena, n, sizeof *out->part[i].want);
        out->part[i].line = of_arena_array(&c->arena, n, sizeof *out->part[i].line);
        out->part[i].optional = of_arena_array(&c->arena, n, sizeof *out->part[i].optional);
        if (!out->part[i].want || !out->part[i].line || !out->part[i].optional || !out->map.set)
            st = say_memory(c);
    }
    st = st ? st : take_names(&p, lines, n);
    for (size_t i = 0; !st && i < n; i++) {
        p.line = &lines[i];
        st = parse_line(&p);
    }
    int err = st ? 0 : map_finish(c, &out->map);
    if (err)
        return err == -ENOMEM ? say_memory(c) : say_line(c, file, 0, "%s", c->parse.why);
    return st;
}

/* A scheduler in an unknown state counts as missing. */
static bool
has_scheduler(const struct queue_kernel *kernel, const struct qos_sched *sched)
{
    for (size_t i = 0; i < kernel->n; i++)
        if (kernel->v[i].sched == sched)
            return kernel->v[i].state == KERNEL_YES;
    return false;
}

enum status
profile_fit(struct ctx *c, struct profile *p)
{
    struct queue_kernel kernel;
    bool asked = false;
    for (int dir = QOS_OUT; dir <= QOS_IN; dir++) {
        struct profile_part *part = &p->part[dir];
        size_t n = 0;
        for (size_t i = 0; i < part->n; i++) {
            enum status st = part->optional[i] && !asked ? queues_ask_kernel(c, &kernel) : DPCTL_OK;
            asked |= part->optional[i];
            if (st)
                return st;
            if (part->optional[i] && !has_scheduler(&kernel, part->want[i].sched))
                continue;
            part->want[n] = part->want[i];
            part->line[n++] = part->line[i];
        }
        part->n = n;
    }
    return DPCTL_OK;
}
