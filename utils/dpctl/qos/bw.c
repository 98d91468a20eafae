/* SPDX-License-Identifier: Apache-2.0 */
/* bw-total, bw-group, bw-del: a port's total for each direction, and the groups that share it. */
#include "bw.h"

#include <core/command.h>
#include <core/say.h>
#include <core/whole.h>
#include <core/words.h>
#include <queues/keys.h>

#include <qos/sched/units.h>

#include <stdio.h>
#include <stdlib.h>

#define ALL_PPM 1000000u

enum { BOTH_WAYS = QOS_IN + 1 };

struct amounts {
    uint32_t port, group; /* the last one */
    int dir;
    uint64_t rate[2]; /* by enum qos_direction; 0: not given */
    bool total;
    struct share {
        uint32_t group;
        uint64_t ppm; /* 0: not given */
    } * shares;
    size_t n, room;
    struct queue_entries now; /* what the switch has */
    struct steps steps;       /* what is to be done */
};

/* ------------------------------------------------------------------------ words */

static enum status
take_rate(struct ctx *c, const struct key *k, char *text, void *to)
{
    uint64_t rate = 1;
    if (!qos_parse_rate(text, &rate, c->parse.why, sizeof c->parse.why) && !rate)
        return say_usage(c, "%s must be more than 0; bw-del port=N,total removes the total",
                         k->name);
    return key_rate(c, k, text, to);
}

/* "group=2" */
static enum status
open_share(struct ctx *c, const struct key *k, char *text, void *to)
{
    struct amounts *a = to;
    enum status st = key_number(c, k, text, to);
    for (size_t i = 0; !st && i < a->n; i++)
        if (a->shares[i].group == a->group)
            return say_usage(c, "group %u is given twice", (unsigned)a->group);
    struct share *v = words_room(c, a->shares, a->n, &a->room, sizeof *v);
    if (!v)
        return say_memory(c);
    a->shares = v;
    a->shares[a->n++] = (struct share){a->group, 0};
    return st;
}

/* "30": above 1 it can only be a percentage. */
static bool
is_percentage(const char *text)
{
    return !text[strspn(text, "0123456789.")] && atof(text) > 1;
}

static enum status
take_share(struct ctx *c, const struct key *k, char *text, void *to)
{
    const struct amounts *a = to;
    char why[256], percent[32];
    struct share *s = a->n ? &a->shares[a->n - 1] : NULL;
    if (!s || s->ppm)
        return say_usage(c, "share=%s: write group=N before its share", text);
    snprintf(percent, sizeof percent, "%.30s%s", text, is_percentage(text) ? "%" : "");
    if (qos_parse_ppm(percent, &s->ppm, why, sizeof why))
        return say_usage(c, "group %u: share=%s", (unsigned)s->group, why);
    return s->ppm
               ? DPCTL_OK
               : say_usage(c, "group %u: share must be more than 0, not %s; bw-del removes a group",
                           (unsigned)s->group, text);
}

#define TO(member) KEY_TO(struct amounts, member)
#define PORT       "port", key_port, TO(port), .need = "port=1"
#define GROUP      "group", open_share, TO(group), .least = 1, .most = QOS_CLASS_MAX, .repeats = true
#define WAY        "direction", key_choice, TO(dir), .values = "out|in|both"
static const struct key total_keys[] = {
    {PORT}, {"in", take_rate, TO(rate[QOS_IN])}, {"out", take_rate, TO(rate[QOS_OUT])}, {NULL}};
static const struct key group_keys[] = {
    {PORT}, {GROUP}, {"share", .take = take_share, .repeats = true}, {WAY}, {NULL}};
static const struct key del_keys[] = {
    {PORT}, {GROUP}, {"total", key_flag, TO(total)}, {WAY}, {NULL}};

static enum status
take_amounts(struct ctx *c, char **words, int n, const struct key *keys, struct amounts *a)
{
    *a = (struct amounts){.dir = BOTH_WAYS};
    return keys_take(c, keys, words, n, a);
}

/* ------------------------------------------------------------------- what is there */

/* A class of a port (0: the root class), or NULL. */
static const struct qos_request *
class_of(const struct queue_entries *now, uint32_t port, enum qos_direction dir, uint32_t id)
{
    for (size_t i = 0; i < now->n; i++) {
        const struct qos_request *r = &now->v[i].config;
        if (r->object_type == OFP_QOS_CLASS && r->port_no == port && r->class_id == id &&
            queues_direction(&now->v[i]) == dir)
            return r;
    }
    return NULL;
}

/* Is this direction meant: the one given, else those in which the port has a total? */
static bool
means(const struct amounts *a, enum qos_direction dir)
{
    return a->dir == BOTH_WAYS ? class_of(&a->now, a->port, dir, 0) != NULL : a->dir == (int)dir;
}

static const char *
way(enum qos_direction dir)
{
    return dir == QOS_IN ? "incoming" : "outgoing";
}

/* Gives the class these values and leaves its others alone.  No step where it has them already. */
static void
set_class(struct ctx *c, struct amounts *a, enum qos_direction dir, uint32_t id,
          const struct qos_values *values)
{
    const struct qos_request *is = class_of(&a->now, a->port, dir, id);
    struct qos_request r = {.sched = qos_sched_by_id(OFP_QOS_SCHED_HTB),
                            .object_type = OFP_QOS_CLASS,
                            .action_type = is ? OFP_QOS_CHANGE : OFP_QOS_ADD,
                            .port_no = a->port,
                            .class_id = id};
    if (is)
        r.values = is->values;
    else if (dir == QOS_IN)
        qos_put(&r.values, QOS_DIRECTION, QOS_IN);
    qos_values_merge(r.sched, &r.values, values);
    if (!is || memcmp(&r.values, &is->values, sizeof r.values))
        steps_qos(c, &a->steps, &r, NULL);
}

/* ------------------------------------------------------------------------ bw-total */

static enum status
bw_total(struct ctx *c, const struct command *self, char **words, int n)
{
    struct amounts a;
    enum status st = take_amounts(c, words, n, total_keys, &a);
    if (!st && !a.rate[QOS_OUT] && !a.rate[QOS_IN])
        return say_usage(c, "no total given: add in=RATE, out=RATE or both");
    st = st ? st : queues_ask(c, a.port, QOS_ALL_CLASSES, &a.now);
    for (int dir = QOS_OUT; !st && dir <= QOS_IN; dir++) {
        struct qos_values v = {0};
        qos_put(&v, QOS_RATE, a.rate[dir]);
        qos_put(&v, QOS_CEIL, a.rate[dir]);
        if (a.rate[dir])
            set_class(c, &a, (enum qos_direction)dir, 0, &v);
    }
    return st ? st : steps_run(c, &a.steps);
}

/* ------------------------------------------------------------------------ bw-group */

/* The class's part of the total, in ppm. */
static uint64_t
share_of(const struct qos_request *class, const struct qos_request *root)
{
    if (qos_has(&class->values, QOS_RATE_SHARE))
        return class->values.v[QOS_RATE_SHARE];
    uint64_t total = root->values.v[QOS_RATE], rate = class->values.v[QOS_RATE];
    return total ? whole((double)rate * ALL_PPM / (double)total + 0.5) : 0;
}

static bool
is_asked(const struct amounts *a, uint32_t group)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->shares[i].group == group)
            return true;
    return false;
}

/* Refuses shares that come to more than the total. */
static enum status
check_shares(struct ctx *c, const struct amounts *a, enum qos_direction dir,
             const struct qos_request *root)
{
    uint64_t asked = 0, others = 0;
    char sum[QOS_UNIT_TEXT], new[QOS_UNIT_TEXT], old[QOS_UNIT_TEXT], left[QOS_UNIT_TEXT];
    for (size_t i = 0; i < a->n; i++)
        asked += a->shares[i].ppm;
    for (size_t i = 0; i < a->now.n; i++)
        if (bw_is_group(&a->now.v[i]) && queues_direction(&a->now.v[i]) == dir &&
            !is_asked(a, a->now.v[i].config.class_id))
            others += share_of(&a->now.v[i].config, root);
    if (asked + others <= ALL_PPM)
        return DPCTL_OK;
    return say_failed(
        c,
        "port %u, %s packets: %s asked for and %s of other groups come to %s; at most "
        "%s is left",
        (unsigned)a->port, way(dir), qos_format_ppm(asked, new), qos_format_ppm(others, old),
        qos_format_ppm(asked + others, sum),
        qos_format_ppm(others < ALL_PPM ? ALL_PPM - others : 0, left));
}

static enum status
divide(struct ctx *c, struct amounts *a, enum qos_direction dir)
{
    const struct qos_request *root = class_of(&a->now, a->port, dir, 0), *is;
    if (!root)
        return say_failed(
            c, "port %u has no total for %s packets: run bw-total port=%u,%s=RATE first",
            (unsigned)a->port, way(dir), (unsigned)a->port, dir == QOS_IN ? "in" : "out");
    enum status st = check_shares(c, a, dir, root);
    for (size_t i = 0; !st && i < a->n; i++) {
        struct qos_values v = {0};
        qos_put(&v, QOS_RATE, 0);
        qos_put(&v, QOS_RATE_SHARE, a->shares[i].ppm);
        qos_put(&v, QOS_CEIL, 0);
        qos_put(&v, QOS_CEIL_SHARE, ALL_PPM);
        is = class_of(&a->now, a->port, dir, a->shares[i].group);
        if (is && is->values.v[QOS_PARENT])
            st = say_failed(c,
                            "class %u of port %u is below class %u, so it can't be a group: choose "
                            "another number",
                            (unsigned)is->class_id, (unsigned)a->port,
                            (unsigned)is->values.v[QOS_PARENT]);
        else
            set_class(c, a, dir, a->shares[i].group, &v);
    }
    return st;
}

static enum status
bw_group(struct ctx *c, const struct command *self, char **words, int n)
{
    struct amounts a;
    bool any = false;
    enum status st = take_amounts(c, words, n, group_keys, &a);
    if (!st && (!a.n || !a.shares[a.n - 1].ppm))
        return say_usage(c, "no share given: write group=2,share=30%%");
    for (size_t i = 0; !st && i < a.n; i++)
        if (!a.shares[i].ppm)
            return say_usage(c, "group %u has no share: write group=%u,share=30%%",
                             (unsigned)a.shares[i].group, (unsigned)a.shares[i].group);
    st = st ? st : queues_ask(c, a.port, QOS_ALL_CLASSES, &a.now);
    for (int dir = QOS_OUT; !st && dir <= QOS_IN; dir++) {
        if (!means(&a, (enum qos_direction)dir))
            continue;
        any = true;
        st = divide(c, &a, (enum qos_direction)dir);
    }
    if (!st && !any)
        return say_failed(c,
                          "port %u has no total yet: run bw-total port=%u,in=RATE,out=RATE first",
                          (unsigned)a.port, (unsigned)a.port);
    st = st ? st : steps_run(c, &a.steps);
    if (!st && !c->json && !c->dry_run)
        printf(
            "packets in no group (none in bw-show) get at least 5%% of the total, beside the shares, "
            "and what the groups leave\n");
    return st;
}

/* -------------------------------------------------------------------------- bw-del */

static void
drop_class(struct ctx *c, struct steps *steps, const struct qos_request *class,
           enum qos_direction dir)
{
    struct qos_request r = {.sched = class->sched,
                            .object_type = OFP_QOS_CLASS,
                            .action_type = OFP_QOS_DEL,
                            .port_no = class->port_no,
                            .class_id = class->class_id};
    qos_put(&r.values, QOS_WITH_CHILDREN, 1);
    if (dir == QOS_IN)
        qos_put(&r.values, QOS_DIRECTION, QOS_IN);
    steps_qos(c, steps, &r, NULL);
}

static bool
is_deleted(const struct amounts *a, const struct qos_entry *e)
{
    return e->config.port_no == a->port &&
           (a->dir == BOTH_WAYS || a->dir == (int)queues_direction(e)) &&
           (a->total || is_asked(a, e->config.class_id));
}

/* Deletes the flows of groups that no port has any more. */
static enum status
drop_members(struct ctx *c, struct amounts *a)
{
    struct map_members members;
    enum status st = map_members(c, BW_SET, &members);
    for (size_t i = 0; !st && i < members.n; i++) {
        bool was = false, stays = false;
        for (size_t k = 0; k < a->now.n && !stays; k++) {
            const struct qos_entry *e = &a->now.v[k];
            if (!bw_is_group(e) || e->config.class_id != members.v[i].queue)
                continue;
            was |= is_deleted(a, e);
            stays = !is_deleted(a, e);
        }
        if (was && !stays)
            steps_delete(c, &a->steps, members.v[i].flow);
    }
    return st ? st : map_remove_misses(c, &a->steps);
}

static enum status
bw_del(struct ctx *c, const struct command *self, char **words, int n)
{
    struct amounts a;
    enum status st = take_amounts(c, words, n, del_keys, &a);
    if (!st && a.total == !!a.n)
        return say_usage(c, "write what to delete: group=N, several of them, or total");
    st = st ? st : queues_ask(c, OFPP_ANY, QOS_ALL_CLASSES, &a.now);
    st = st ? st : drop_members(c, &a);
    for (size_t i = 0; !st && i < a.now.n; i++) {
        const struct qos_entry *e = &a.now.v[i];
        bool root = e->config.object_type == OFP_QOS_CLASS && !e->config.class_id;
        if (is_deleted(&a, e) && (a.total ? root : bw_is_group(e)))
            drop_class(c, &a.steps, &e->config, queues_direction(e));
    }
    return st ? st : steps_run(c, &a.steps);
}

/* ------------------------------------------------------------------------ the rows */

static const char total_help[] =
    "  port=N           the port\n"
    "  out=RATE         the total for packets that leave by it: what the host behind it receives\n"
    "  in=RATE          the total for packets that enter by it: what that host sends\n"
    "Rates as for tc: 100kBps (or 100kbps) are 100,000 bytes a second, 800kbit the same in bits.\n"
    "A direction that is not given stays as it is.  Shares follow their total.";

static const char group_help[] =
    "  port=N           the port, which has a total (bw-total)\n"
    "  group=N          the group's number, 1 to 65519: the queue of that number\n"
    "  share=30%        its guaranteed share of the total; groups lend each other what they don't use\n"
    "  direction=out    only for outgoing packets (in: incoming); default: every direction in which\n"
    "                   the port has a total\n"
    "Several groups in one command are changed in one step.";

static const char del_help[] =
    "  port=N,group=N   the group (several: group=1,group=2)\n"
    "  port=N,total     the port's total, and all groups\n"
    "  direction=out    only for outgoing packets (in: incoming)\n"
    "A group's connections are taken out of it when no port has the group any more.";

static const struct command rows[] = {
    {.name = "bw-total",
     .subject = SUBJECT_BW,
     .first = {TASK_SHAPE, "bw-total port=eth1,out=100mbit", "what bandwidth groups share"},
     .args = "port=N [in=RATE] [out=RATE] [--dry-run]",
     .help = "sets a port's total for incoming and for outgoing packets",
     .text = total_help,
     .examples = "bw-total port=1,in=100mbit,out=100mbit",
     .run = bw_total,
     .options = COMMAND_DRY_RUN},
    {.name = "bw-group",
     .subject = SUBJECT_BW,
     .args = "port=N group=N,share=P%... [direction=in|out] [--dry-run]",
     .help = "makes groups of connections with guaranteed shares of the total",
     .text = group_help,
     .examples = "bw-group port=1 group=1,share=30% group=2,share=70%",
     .run = bw_group,
     .options = COMMAND_DRY_RUN},
    {.name = "bw-del",
     .subject = SUBJECT_BW,
     .args = "port=N group=N...|total [direction=in|out] [--dry-run]",
     .help = "deletes groups, or a port's total with all of them",
     .text = del_help,
     .examples = "bw-del port=1,group=2\nbw-del port=1,total",
     .run = bw_del,
     .options = COMMAND_DRY_RUN},
};

const struct command_table commands_bw = COMMAND_TABLE(rows);
