/* SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"

#include "policy-words.h"

#include <qos/sched/units.h>
#include <qos/wire/entry.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ALL_PPM      1000000u
#define POLICIES_MAX 1024
#define DEPTH_MAX    7 /* HTB has 8 levels, one of them the root class */
#define FRAME_BITS   (1514 * 8)
#define DELAY_LEAST  1000 /* us, of DELAY_US */

struct compiler {
    struct of_parse *p;
    const char *file;
    struct qos_profile_report *report;
    struct policy *v;
    size_t n;
    uint64_t total[2];                      /* by enum qos_direction; 0: unknown */
    uint64_t promised[2], shares[2];        /* what the root's policies are given */
    uint8_t used[(QOS_CLASS_MAX >> 3) + 1]; /* classes with numbers of their own */
    struct profile_line *lines_in, *lines;  /* as they came; with classes in place of policies */
    size_t n_lines, room;
    bool wrong; /* a line was */
};

/* Tells p->why, a mistake of this line.  0: the next line; -ECANCELED. */
static int
at_line(struct compiler *c, const struct profile_line *line)
{
    bool before = c->lines_in[line - c->lines_in].wrong;
    c->lines_in[line - c->lines_in].wrong = true;
    c->wrong = true;
    if (before)
        return 0;
    int err = qos_profile_mistake(c->report, QOS_PROFILE_LINE, line->number, c->p->why);
    return err == -EINVAL ? 0 : err;
}

__attribute__((format(printf, 3, 4))) static int
bad_line(struct compiler *c, const struct profile_line *line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->p->why, sizeof c->p->why, fmt, ap);
    va_end(ap);
    return at_line(c, line);
}

/* ------------------------------------------------------------------------ lines */

static bool
is_total(const char *text)
{
    return !strncmp(text, "total", 5) && strchr(" \t", text[5]);
}

static int
take_total(struct compiler *c, const struct profile_line *line, enum qos_direction dir)
{
    char why[256];
    const char *at = line->text + 5;
    at += strspn(at, " \t");
    const char *rate = of_arena_text(c->p->arena, at, strcspn(at, " \t,"));
    if (!rate)
        return -ENOMEM;
    if (!*rate)
        return bad_line(c, line, "total needs a rate: write total 20mbit");
    if (qos_parse_rate(rate, &c->total[dir], why, sizeof why))
        return bad_line(c, line, "total: %s", why);
    return c->total[dir] ? 0 : bad_line(c, line, "total must be more than 0");
}

/* Reserves the numbers that lines of classes have. */
static void
take_numbers(struct compiler *c, const char *text)
{
    for (const char *at = text; (at = strstr(at, "class=")); at++) {
        unsigned long id = strtoul(at + strlen("class="), NULL, 0);
        if (id <= QOS_CLASS_MAX)
            c->used[id >> 3] |= (uint8_t)(1u << (id & 7));
    }
}

static int
take_policy(struct compiler *c, const struct profile_line *line, enum qos_direction dir)
{
    if (c->n == POLICIES_MAX)
        return bad_line(c, line, "more than %d policies in one profile", POLICIES_MAX);
    c->v[c->n].dir = dir;
    int err = qos_policy_words(c->p, line, &c->v[c->n++]);
    if (err == -EINVAL)
        c->n--;
    return err == -EINVAL ? at_line(c, line) : err;
}

static int
take_lines(struct compiler *c, const struct profile_line *lines, size_t n)
{
    enum qos_direction dir = QOS_OUT;
    int err = 0;
    for (size_t i = 0; !err && i < n; i++) {
        const char *text = lines[i].text;
        if (lines[i].wrong)
            c->wrong |= is_total(text) || qos_policy_is(text);
        else if (!strcmp(text, "in") || !strcmp(text, "out"))
            dir = *text == 'i' ? QOS_IN : QOS_OUT;
        else if (is_total(text))
            err = c->total[dir] ? bad_line(c, &lines[i], "total is given twice")
                                : take_total(c, &lines[i], dir);
        else if (qos_policy_is(text))
            err = take_policy(c, &lines[i], dir);
        else
            take_numbers(c, text);
    }
    return err;
}

/* ------------------------------------------------------------------------- tree */

static bool
same_name(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

static bool
same_rules(const struct policy *a, const struct policy *b)
{
    bool same = a->n_rules == b->n_rules && a->others == b->others;
    for (unsigned i = 0; same && i < a->n_rules; i++)
        same = !strcmp(a->rules[i], b->rules[i]);
    return same;
}

static bool
has_rules(const struct policy *a)
{
    return a->n_rules || a->others;
}

/* Finds another policy that can't stand beside this one. */
static int
check_twins(struct compiler *c, const struct policy *a)
{
    for (const struct policy *b = c->v; b < a; b++) {
        if (a->dir != b->dir)
            continue;
        if (same_name(a->name, b->name))
            return bad_line(c, a->line, "line %u has the name %s already", b->line->number,
                            a->name);
        if (has_rules(a) && same_rules(a, b))
            return bad_line(c, a->line,
                            "line %u is for the same packets: make one policy of the two",
                            b->line->number);
    }
    return 0;
}

/* Flows choose one queue for both directions, so policies for the same packets share a number. */
static int
number(struct compiler *c, struct policy *a)
{
    for (const struct policy *b = c->v; b < c->v + c->n; b++) {
        if (b->class_id && a->dir != b->dir && same_rules(a, b) &&
            (has_rules(a) || same_name(a->name, b->name))) {
            a->class_id = b->class_id;
            return 0;
        }
    }
    for (uint32_t id = 1; id <= QOS_CLASS_MAX; id++) {
        if (c->used[id >> 3] & 1u << (id & 7))
            continue;
        c->used[id >> 3] |= (uint8_t)(1u << (id & 7));
        a->class_id = id;
        return 0;
    }
    return bad_line(c, a->line, "no class number is left");
}

static int
find_parent(struct compiler *c, struct policy *a)
{
    for (size_t i = 0; a->within && i < c->n; i++)
        if (c->v[i].dir == a->dir && same_name(c->v[i].name, a->within))
            a->parent = &c->v[i];
    if (a->within && !a->parent)
        return bad_line(c, a->line, "no policy has the name %s: add as %s to one", a->within,
                        a->within);
    if (!a->parent)
        return 0;
    a->parent->children++;
    return has_rules(a->parent)
               ? bad_line(c, a->parent->line,
                          "%s has policies within it, so it can't have packets of its own: give "
                          "those a policy within %s, too",
                          a->within, a->within)
               : 0;
}

/* In bit/s; 0: unknown. */
static uint64_t
bits_of(const struct policy_amount *a, uint64_t whole)
{
    return a->ppm ? (uint64_t)((double)whole * (double)a->ppm / ALL_PPM) : a->rate;
}

/* The rate that a policy's shares refer to. */
static uint64_t
whole(const struct compiler *c, const struct policy *a, bool limit)
{
    const struct policy *p = a->parent;
    if (!p)
        return c->total[a->dir];
    const struct policy_amount *of = limit && p->limit.text ? &p->limit : &p->guarantee;
    if (limit && !p->limit.text)
        return whole(c, p, true);
    return bits_of(of, whole(c, p, limit));
}

static int
check_depth(struct compiler *c, struct policy *a)
{
    a->depth = 1;
    for (const struct policy *p = a->parent; p && a->depth <= DEPTH_MAX; p = p->parent)
        a->depth++;
    return a->depth <= DEPTH_MAX
               ? 0
               : bad_line(c, a->line, "%s is within itself, or below more than %d policies",
                          a->name ? a->name : "the policy", DEPTH_MAX - 1);
}

static int
check_sum(struct compiler *c, struct policy *a)
{
    char sum[QOS_UNIT_TEXT], of[QOS_UNIT_TEXT], left[QOS_UNIT_TEXT];
    uint64_t all = whole(c, a, false);
    uint64_t *promised = a->parent ? &a->parent->promised : &c->promised[a->dir];
    uint64_t *shares = a->parent ? &a->parent->shares : &c->shares[a->dir];
    uint64_t before = all ? *promised : *shares;
    uint64_t bits = *promised + a->bits, ppm = *shares + a->guarantee.ppm;
    if (all && bits > all)
        return bad_line(c, a->line,
                        "the guarantees up to this line come to %s of %s: at most guarantee %s is "
                        "left",
                        qos_format_rate(bits, sum), qos_format_rate(all, of),
                        qos_format_rate(all - before, left));
    if (!all && ppm > ALL_PPM)
        return bad_line(c, a->line,
                        "the guarantees up to this line come to %s: at most guarantee %s is left",
                        qos_format_ppm(ppm, sum), qos_format_ppm(ALL_PPM - before, left));
    *promised = bits; /* else the lines below are judged without this one */
    *shares = ppm;
    return 0;
}

static int
check_limit(struct compiler *c, const struct policy *a)
{
    uint64_t most = bits_of(&a->limit, whole(c, a, true));
    bool less = a->limit.ppm && a->guarantee.ppm && !a->parent ? a->limit.ppm < a->guarantee.ppm
                                                               : most && most < a->bits;
    if (a->limit.text && a->guarantee.text && less)
        return bad_line(c, a->line,
                        "limit %s is below guarantee %s: write limit %s or more, or a smaller "
                        "guarantee",
                        a->limit.text, a->guarantee.text, a->guarantee.text);
    return 0;
}

/* Warns if a single packet takes longer at the guaranteed rate than the latency. */
static void
warn_latency(const struct compiler *c, const struct policy *a)
{
    char text[300], us[QOS_UNIT_TEXT], need[QOS_UNIT_TEXT];
    uint64_t wait = a->bits ? FRAME_BITS * 1000000ull / a->bits : 0;
    if (!a->latency || wait <= a->latency_us || !c->report->warn)
        return;
    uint64_t enough = (FRAME_BITS * 1000000ull / a->latency_us + 999) / 1000 * 1000;
    snprintf(text, sizeof text,
             "latency %s: at %s, one frame of 1,514 bytes takes %s; guarantee %s is enough",
             a->latency, a->guarantee.text, qos_format_time(wait, us),
             qos_format_rate(enough, need));
    c->report->warn(c->report->ctx, c->file, a->line->number, text);
}

static int
make_tree(struct compiler *c)
{
    struct policy *end = c->v + c->n;
    bool circle = false;
    int err;
    for (struct policy *a = c->v; a < end; a++)
        if ((err = check_twins(c, a)) || (err = number(c, a)) || (err = find_parent(c, a)))
            return err; /* LCOV_EXCL_LINE: no memory */
    for (struct policy *a = c->v; a < end; a++) {
        if ((err = check_depth(c, a)))
            return err; /* LCOV_EXCL_LINE: no memory */
        circle |= a->depth > DEPTH_MAX;
    }
    for (struct policy *a = c->v; a < end && !circle; a++) {
        a->bits = bits_of(&a->guarantee, whole(c, a, false));
        if ((err = check_limit(c, a)) || (err = check_sum(c, a)))
            return err; /* LCOV_EXCL_LINE: no memory */
        warn_latency(c, a);
    }
    return 0;
}

/* ---------------------------------------------------------------- classes, rules */

static int
add_line(struct compiler *c, unsigned number, char *text, bool wrong)
{
    struct profile_line *v = of_arena_room(c->p->arena, c->lines, c->n_lines, &c->room, sizeof *v);
    if (!v || !text)
        return -ENOMEM;
    c->lines = v;
    v[c->n_lines++] = (struct profile_line){number, text, wrong};
    return 0;
}

__attribute__((format(printf, 3, 4))) static int
put_line(struct compiler *c, const struct profile_line *line, const char *fmt, ...)
{
    char text[700];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof text)
        return bad_line(c, line, "the line becomes '%.60s...', of more than %zu characters", text,
                        sizeof text - 1);
    return add_line(c, line->number, of_arena_text(c->p->arena, text, (size_t)n), false);
}

/* HTB needs a rate: for a policy that guarantees nothing, it is a hundredth of its limit. */
static const char *
rate_of(const struct policy *a, char buf[QOS_UNIT_TEXT])
{
    if (a->guarantee.text)
        return a->guarantee.text;
    if (a->limit.ppm)
        return qos_format_ppm(a->limit.ppm / 100 ? a->limit.ppm / 100 : 1, buf);
    uint64_t rate = a->limit.rate / 100 / 8 * 8;
    return qos_format_rate(rate ? rate : a->limit.rate, buf);
}

/* Those rates come on top of the guarantees, which may be all there is: that is wanted. */
static const char *
oversubscribe(const struct compiler *c, enum qos_direction dir, const struct policy *parent)
{
    uint64_t all = parent ? parent->bits : c->total[dir], bits = 0, ppm = 0;
    for (const struct policy *a = c->v; a < c->v + c->n; a++) {
        const struct policy_amount *of = a->guarantee.text ? &a->guarantee : &a->limit;
        unsigned part = a->guarantee.text ? 1 : 100;
        if (a->dir != dir || a->parent != parent)
            continue;
        bits += bits_of(of, all) / part;
        ppm += of->ppm / part;
    }
    return (all ? bits > all : ppm > ALL_PPM) ? ",oversubscribe=yes" : "";
}

/* What has a latency is promised it.  One that is too short to be promised gets CoDel, which begins to drop at half
 * of it. */
static int
put_policy(struct compiler *c, const struct policy *a)
{
    const struct profile_line *line = a->line;
    char rate[QOS_UNIT_TEXT], target[QOS_UNIT_TEXT], parent[32] = "", delay[48] = "";
    if (a->latency && a->latency_us >= DELAY_LEAST && !a->children)
        snprintf(delay, sizeof delay, ",delay=%s", qos_format_time(a->latency_us, target));
    if (a->parent)
        snprintf(parent, sizeof parent, ",parent=%u", (unsigned)a->parent->class_id);
    int err = put_line(c, line, "htb class=%u%s%s%s,rate=%s,ceil=%s,prio=%d%s%s",
                       (unsigned)a->class_id, a->name ? ",name=" : "", a->name ? a->name : "",
                       parent, rate_of(a, rate), a->limit.text ? a->limit.text : "100%",
                       a->latency ? 0 : 1, delay, oversubscribe(c, a->dir, a));
    if (!err && a->others)
        err = put_line(c, line, "htb default=%u", (unsigned)a->class_id);
    if (!err && a->latency && !*delay && !a->children)
        err = put_line(c, line, "try fq_codel class=%u,target=%s", (unsigned)a->class_id,
                       qos_format_time(a->latency_us / 2, target));
    for (unsigned i = 0; !err && i < a->n_rules; i++)
        err = put_line(c, line, "map queue=%u,%s", (unsigned)a->class_id, a->rules[i]);
    return err;
}

static int
put_total(struct compiler *c, const struct profile_line *line, enum qos_direction dir)
{
    const char *keys = line->text + 5 + strspn(line->text + 5, " \t");
    bool given = strstr(keys, "oversubscribe");
    return put_line(c, line, "htb class=0%s,rate=%s", given ? "" : oversubscribe(c, dir, NULL),
                    keys);
}

static int
put_lines(struct compiler *c, const struct profile_line *lines, size_t n)
{
    const struct policy *next = c->v;
    enum qos_direction dir = QOS_OUT;
    int err = 0;
    for (size_t i = 0; !err && i < n; i++) {
        if (!strcmp(lines[i].text, "in") || !strcmp(lines[i].text, "out"))
            dir = lines[i].text[0] == 'i' ? QOS_IN : QOS_OUT;
        if (next < c->v + c->n && next->line == &lines[i])
            err = put_policy(c, next++);
        else if (is_total(lines[i].text))
            err = put_total(c, &lines[i], dir);
        else
            err = add_line(c, lines[i].number, lines[i].text, lines[i].wrong);
    }
    return err;
}

/* Where a policy is wrong, none is looked at any more. */
static void
drop_policies(struct profile_line *lines, size_t *n)
{
    size_t out = 0;
    for (size_t i = 0; i < *n; i++)
        if (!is_total(lines[i].text) && !qos_policy_is(lines[i].text))
            lines[out++] = lines[i];
    *n = out;
}

int
qos_policy_compile(struct of_parse *p, const char *file, struct profile_line **lines, size_t *n,
                   struct qos_profile_report *report)
{
    struct compiler c = {.p = p, .file = file, .report = report, .lines_in = *lines};
    size_t room = 1;
    for (size_t i = 0; i < *n && room < POLICIES_MAX; i++)
        room += qos_policy_is((*lines)[i].text);
    c.v = of_arena_array(p->arena, room, sizeof *c.v);
    if (!c.v)
        return -ENOMEM;
    memset(c.v, 0, room * sizeof *c.v);
    int err = take_lines(&c, *lines, *n);
    if (err || (!c.wrong && !c.n && !c.total[QOS_OUT] && !c.total[QOS_IN]))
        return err;
    if (!c.wrong) /* else mistakes would follow from the first ones */
        err = make_tree(&c);
    err = err || c.wrong ? err : put_lines(&c, *lines, *n);
    if (err || c.wrong) {
        drop_policies(*lines, n);
        return err;
    }
    *lines = c.lines;
    *n = c.n_lines;
    return err;
}
