/* SPDX-License-Identifier: Apache-2.0 */
/* A profile's lines as requests. */
#include "policy.h"

#include <qos/sched/name.h>

#include <oflib/near.h>

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct name {
    const char *text;
    uint32_t id;
    enum qos_direction dir;
};

struct parser {
    struct of_parse *parse;
    struct qos_profile *p;
    struct qos_profile_report *report;
    const struct profile_line *line;
    enum qos_direction dir; /* "in" and "out" lines */
    bool optional;          /* the line begins with "try" */
    bool keeps_name;        /* name= is one of the keys of the line's scheduler */
    struct name *names;     /* by dir, text */
    size_t n_names;
};

static const char separators[] = ", \t";

/* What qos_profile_mistake returns; line 0: the file as a whole. */
__attribute__((format(printf, 3, 4))) static int
bad_line(struct parser *p, unsigned line, const char *fmt, ...)
{
    char why[sizeof p->parse->why]; /* a copy, as it may be an argument */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof why, fmt, ap);
    va_end(ap);
    return qos_profile_mistake(p->report, QOS_PROFILE_LINE, line, why);
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

/* Is it a line of a scheduler whose name= is its kind? */
static bool
names_kind(const char *text)
{
    size_t n = strcspn(text, separators);
    if (n == 3 && !strncmp(text, "try", 3)) {
        text += n + strspn(text + n, separators);
        n = strcspn(text, separators);
    }
    size_t qos = n > 4 && !strncmp(text, "qos-", 4) ? 4 : 0;
    char kind[32] = "";
    if (n - qos < sizeof kind)
        memcpy(kind, text + qos, n - qos);
    const struct qos_sched *sched = qos_sched_by_name(kind);
    return sched && sched->named;
}

static int
take_name(struct parser *p)
{
    const char *name, *class;
    size_t n, n_class;
    if (!find_key(p->line->text, "name", &name, &n))
        return 0;
    if (!n || n > QOS_NAME_BYTES || !isalpha((unsigned char)*name))
        return bad_line(p, p->line->number,
                        "name= must begin with a letter and have at most %d characters",
                        QOS_NAME_BYTES);
    if (!find_key(p->line->text, "class", &class, &n_class))
        return bad_line(p, p->line->number, "name= needs class=NUMBER on the same line");
    char *copy = of_arena_text(p->parse->arena, name, n), *end;
    if (!copy)
        return -ENOMEM;
    unsigned long id = strtoul(class, &end, 0);
    if (end != class + n_class)
        return bad_line(p, p->line->number, "class= must be a number on the line that has name=");
    p->names[p->n_names++] = (struct name){copy, (uint32_t)id, line_direction(p)};
    return 0;
}

static int
take_names(struct parser *p, struct profile_line *lines, size_t n)
{
    int err = 0;
    p->names = of_arena_array(p->parse->arena, n + 1, sizeof *p->names);
    if (!p->names)
        return -ENOMEM;
    for (size_t i = 0; !err && i < n; i++) {
        p->line = &lines[i];
        if (!direction_line(p) && !names_kind(p->line->text))
            err = take_name(p);
        if (err == -EINVAL) {
            lines[i].wrong = true;
            err = 0;
        }
    }
    p->dir = QOS_OUT;
    if (p->n_names)
        qsort(p->names, p->n_names, sizeof *p->names, by_name);
    for (size_t i = 1; !err && i < p->n_names; i++)
        if (!by_name(&p->names[i - 1], &p->names[i]))
            err = bad_line(p, 0, "two classes have the name %s", p->names[i].text);
    return err == -EINVAL ? 0 : err;
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
static int
put_pair(struct parser *p, struct of_wr *w, const char *word, size_t n)
{
    const char *eq = memchr(word, '=', n);
    size_t key = eq ? (size_t)(eq - word) : n, value = eq ? n - key - 1 : 0;
    if (key == 4 && !strncasecmp(word, "name", 4) && !p->keeps_name)
        return 0;
    if ((key == 3 && !strncasecmp(word, "cmd", 3)) || (key == 4 && !strncasecmp(word, "port", 4)))
        return bad_line(p, p->line->number,
                        "leave out cmd= and port=: a profile lists what is to be there, "
                        "qos-apply says on which ports");
    of_printf(w, "%s", w->len ? "," : "");
    if (!value || !names_class(word, key) || !isalpha((unsigned char)eq[1])) {
        of_printf(w, "%.*s", (int)n, word);
        return 0;
    }
    const struct name *name = find_name(p, line_direction(p), eq + 1, value);
    if (!name && *word == 'q')
        name = find_name(p, QOS_IN, eq + 1, value);
    if (!name)
        return bad_line(p, p->line->number,
                        "no class has the name %.*s: use a number, or the name= of a class of "
                        "this profile",
                        (int)value, eq + 1);
    of_printf(w, "%.*s=%u", (int)key, word, (unsigned)name->id);
    return 0;
}

/* The words behind the line's first one, separated by commas. */
static int
put_words(struct parser *p, struct of_wr *w, const char *text)
{
    int err = 0;
    size_t n;
    for (const char *at = text; !err && next_word(&at, &n); at += n)
        err = put_pair(p, w, at, n);
    if (!err && w->overflow)
        err = -ENOMEM;
    return err;
}

static void
warn(struct parser *p, const struct qos_sched *sched, const char *why)
{
    char text[800];
    snprintf(text, sizeof text, "%s: %s", sched->name, why);
    p->report->warn(p->report->ctx, p->p->file, p->line->number, text);
}

static int
scheduler_line(struct parser *p, const struct qos_sched *sched, const char *args)
{
    struct of_wr w = of_wr_grow(1 << 16);
    struct qos_request r;
    char why[768] = "";
    of_printf(&w, "cmd=add,port=1");
    p->keeps_name = sched->classful || sched->named;
    int err = put_words(p, &w, args);
    if (!err && p->dir == QOS_IN && !strstr(args, "direction="))
        of_printf(&w, ",direction=in");
    of_wr8(&w, 0);
    if (!err && w.overflow)
        err = -ENOMEM;
    if (!err && qos_request_parse(&r, sched, (const char *)w.buf, why, sizeof why))
        err = bad_line(p, p->line->number, "%s: %s", sched->name, why);
    else if (!err && *why && p->report->warn)
        warn(p, sched, why);
    of_wr_free(&w);
    if (err)
        return err;
    struct qos_profile_part *part = &p->p->part[r.values.v[QOS_DIRECTION] == QOS_IN];
    part->line[part->n] = p->line->number;
    part->optional[part->n] = p->optional;
    part->want[part->n++] = r;
    return 0;
}

/* What a function of the map returned. */
static int
map_answer(struct parser *p, unsigned line, int err)
{
    return err == -EINVAL ? bad_line(p, line, "%s", p->parse->why) : err;
}

/* "map queue=voice,dscp=ef", "map table=0,then=normal" */
static int
map_line(struct parser *p, const char *args)
{
    struct of_wr w = of_wr_grow(1 << 16);
    p->keeps_name = false;
    int err = put_words(p, &w, args);
    of_wr8(&w, 0);
    char *text =
        err || w.overflow ? NULL : of_arena_text(p->parse->arena, (const char *)w.buf, w.len);
    of_wr_free(&w);
    if (!text)
        return err ? err : -ENOMEM;
    if (qos_map_is_rule(text))
        return map_answer(p, p->line->number, qos_map_rule(p->parse, &p->p->map, text, false));
    if (p->p->map.n)
        return bad_line(p, p->line->number,
                        "table=, then=, wash and beside must stand before the first rule");
    for (char *save, *word = strtok_r(text, separators, &save); word;
         word = strtok_r(NULL, separators, &save)) {
        int taken = qos_map_option(p->parse, &p->p->map, word);
        if (taken < 0)
            return map_answer(p, p->line->number, taken);
        if (!taken)
            return bad_line(p, p->line->number,
                            "the rule has no queue: write map queue=NAME,dscp=ef");
    }
    return 0;
}

static int
unknown_line(struct parser *p, const char *kind)
{
    static const char *const words[] = {"map",   "set",       "in",    "out",    "none",
                                        "total", "guarantee", "limit", "latency"};
    struct of_near near = of_near(kind, strlen(kind));
    const struct qos_sched *s;
    char text[OF_NEAR_TEXT];
    for (unsigned i = 0; (s = qos_sched_at(i)); i++)
        of_near_try(&near, s->name);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        of_near_try(&near, words[i]);
    return bad_line(
        p, p->line->number, "%s is unknown%s", kind,
        near.count ? of_near_text(&near, text, sizeof text)
                   : ": a line begins with a scheduler (htb, sfq, ...), "
                     "guarantee, limit, latency, total, map or set, or is 'in', 'out' or 'none'");
}

static int
parse_line(struct parser *p)
{
    char kind[32];
    const char *text = p->line->text;
    size_t n = strcspn(text, separators);
    if (direction_line(p) || !strcmp(text, "none"))
        return 0;
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

static int
empty_file(struct parser *p)
{
    char text[512];
    snprintf(text, sizeof text, "%.400s is empty: write a line 'none' to remove all queues",
             p->p->file);
    qos_profile_mistake(p->report, QOS_PROFILE_FILE, 0, text);
    return -EINVAL;
}

void
qos_profile_wrong(struct of_parse *parse, struct qos_profile *p, enum qos_direction dir,
                  uint32_t class_id)
{
    struct qos_profile_part *part = &p->part[dir];
    if (!part->wrong)
        part->wrong = of_arena_alloc(parse->arena, (QOS_CLASS_MAX >> 3) + 1); /* zeroed */
    if (part->wrong && class_id <= QOS_CLASS_MAX)
        part->wrong[class_id >> 3] |= (uint8_t)(1u << (class_id & 7));
}

bool
qos_profile_is_wrong(const struct qos_profile *p, enum qos_direction dir, uint32_t class_id)
{
    const uint8_t *wrong = p->part[dir].wrong;
    return wrong && class_id <= QOS_CLASS_MAX && wrong[class_id >> 3] >> (class_id & 7) & 1;
}

/* Notes the class of a line with a mistake, if that is known. */
static void
note_wrong(struct parser *p)
{
    const char *value;
    size_t n;
    if (!find_key(p->line->text, "class", &value, &n))
        return;
    const struct name *name = find_name(p, line_direction(p), value, n);
    qos_profile_wrong(p->parse, p->p, line_direction(p),
                      name ? name->id : (uint32_t)strtoul(value, NULL, 0));
}

/* A mistake in one line does not hide those in the next. */
static int
parse_lines(struct parser *p, struct profile_line *lines, size_t n)
{
    int err = 0;
    for (size_t i = 0; !err && i < n; i++) {
        p->line = &lines[i];
        err = lines[i].wrong ? -EINVAL : parse_line(p);
        if (err != -EINVAL)
            continue;
        note_wrong(p);
        err = 0;
    }
    return err;
}

/* The file's name without directories and suffix. */
static const char *
set_name(struct of_parse *p, const char *file)
{
    const char *base = strrchr(file, '/');
    base = base ? base + 1 : file;
    return of_arena_text(p->arena, base, strcspn(base, "."));
}

static bool
make_room(struct parser *p, size_t n)
{
    for (int i = 0; i < 2; i++) {
        struct qos_profile_part *part = &p->p->part[i];
        part->want = of_arena_array(p->parse->arena, n, sizeof *part->want);
        part->line = of_arena_array(p->parse->arena, n, sizeof *part->line);
        part->optional = of_arena_array(p->parse->arena, n, sizeof *part->optional);
        if (!part->want || !part->line || !part->optional)
            return false;
    }
    return p->p->map.set != NULL;
}

int
qos_profile_read(struct of_parse *parse, const struct qos_profile_text *text,
                 struct qos_profile *out, struct qos_profile_report *report)
{
    struct parser p = {.parse = parse, .p = out, .report = report};
    struct profile_line *lines;
    size_t n;
    *out = (struct qos_profile){.file = text->file};
    qos_map_init(&out->map, set_name(parse, text->file));
    report->mistakes = 0;
    int err = qos_profile_lines(parse, text, &lines, &n, report);
    if (!err && !n && !report->mistakes)
        return empty_file(&p);
    if (!err && !(err = qos_policy_compile(parse, text->file, &lines, &n, report)) &&
        !(err = make_room(&p, n) ? 0 : -ENOMEM) && !(err = take_names(&p, lines, n)) &&
        !(err = parse_lines(&p, lines, n)))
        err = map_answer(&p, 0, qos_map_finish(parse, &out->map));
    return err != -ENOMEM && report->mistakes ? -EINVAL : err;
}

bool
qos_profile_is_optional(const struct qos_profile *p)
{
    bool some = false;
    for (int dir = QOS_OUT; dir <= QOS_IN; dir++)
        for (size_t i = 0; i < p->part[dir].n; i++)
            some |= p->part[dir].optional[i];
    return some;
}

void
qos_profile_fit(struct qos_profile *p, qos_profile_has *has, void *ctx)
{
    for (int dir = QOS_OUT; dir <= QOS_IN; dir++) {
        struct qos_profile_part *part = &p->part[dir];
        size_t n = 0;
        for (size_t i = 0; i < part->n; i++) {
            if (part->optional[i] && !has(ctx, &part->want[i]))
                continue;
            part->want[n] = part->want[i];
            part->optional[n] = part->optional[i];
            part->line[n++] = part->line[i];
        }
        part->n = n;
    }
}
