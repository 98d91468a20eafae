/* SPDX-License-Identifier: Apache-2.0 */
/* bw-total, bw-group, bw-del: a port's total for each direction, and its division into groups. */
#include "bw.h"

#include <oflib/near.h>
#include <qos/sched/units.h>

#include <stdio.h>

#define ALL_PPM 1000000u

/* What the words say. */
enum { BOTH_WAYS = -1 };

struct asked {
    uint32_t port, group; /* OFPP_ANY, 0: not given */
    int dir;
    uint64_t rate[2]; /* by enum qos_direction; 0: not given */
    bool total;
    struct share {
        uint32_t group;
        uint64_t ppm; /* 0: not given */
    } * shares;
    size_t n;
};

/* ------------------------------------------------------------------------ words */

enum status
bw_take_group(struct ctx *c, const char *text, uint32_t *group)
{
    uint64_t v;
    char why[256];
    if (qos_parse_number(text, &v, why, sizeof why))
        return bad_args(c, "group=%s", why);
    if (!v || v > QOS_CLASS_MAX)
        return bad_args(c, "group=%s: 1 to %u is right", text, QOS_CLASS_MAX);
    *group = (uint32_t)v;
    return DPCTL_OK;
}

static enum status
take_rate(struct ctx *c, const char *key, const char *text, uint64_t *rate)
{
    char why[512];
    if (qos_parse_rate(text, rate, why, sizeof why))
        return bad_args(c, "%s=%s", key, why);
    if (!*rate)
        return bad_args(c, "%s=%s: a total is above 0; bw-del total takes it away", key, text);
    if (qos_rate_is_bare(text))
        snprintf(why, sizeof why,
                 "%s=%s is %s bit/s, as for tc: write %smbit, or %sbit if that is "
                 "meant",
                 key, text, text, text, text);
    return doubt(c, qos_rate_is_bare(text) ? why : "");
}

/* "group=2", the first of which opens a group. */
static enum status
open_share(struct ctx *c, const char *text, struct asked *a)
{
    enum status st = bw_take_group(c, text, &a->group);
    for (size_t i = 0; !st && i < a->n; i++)
        if (a->shares[i].group == a->group)
            return bad_args(c, "group %u is given twice", (unsigned)a->group);
    a->shares[a->n++] = (struct share){a->group, 0};
    return st;
}

static enum status
take_share(struct ctx *c, const char *text, struct asked *a)
{
    char why[256];
    struct share *s = a->n ? &a->shares[a->n - 1] : NULL;
    if (!s || s->ppm)
        return bad_args(c, "share=%s: group=N comes before its share", text);
    if (qos_parse_ppm(text, &s->ppm, why, sizeof why))
        return bad_args(c, "group %u: share=%s", (unsigned)s->group, why);
    return s->ppm ? DPCTL_OK
                  : bad_args(c, "group %u: share=%s: a share is above 0; bw-del takes a group away",
                             (unsigned)s->group, text);
}

static enum status
take_direction(struct ctx *c, const char *text, int *dir)
{
    static const char *const names[] = {[QOS_OUT] = "out", [QOS_IN] = "in"};
    for (*dir = QOS_OUT; *dir <= QOS_IN; ++*dir)
        if (!strcasecmp(text, names[*dir]))
            return DPCTL_OK;
    *dir = BOTH_WAYS;
    return strcasecmp(text, "both")
               ? bad_args(c, "direction=%s: in, out or both (unless given) is right", text)
               : DPCTL_OK;
}

static enum status
unknown_key(struct ctx *c, const char *word, const char *keys)
{
    char name[16], text[OF_NEAR_TEXT];
    struct of_near near = of_near(word, strcspn(word, "="));
    for (const char *at = keys; *(at += strspn(at, " =")); at += strlen(name)) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " ="), at);
        of_near_try(&near, name);
    }
    return bad_args(c, "'%.40s' is not understood%s", word, of_near_text(&near, text, sizeof text));
}

/* `keys`: those that the command takes, a blank before and behind each. */
static enum status
take_pair(struct ctx *c, const char *word, const char *keys, struct asked *a)
{
    const char *eq = strchr(word, '='), *value = eq ? eq + 1 : "";
    char key[16];
    snprintf(key, sizeof key, " %.*s ", eq ? (int)(eq + 1 - word) : 12, word);
    if (!strstr(keys, key))
        return unknown_key(c, word, keys);
    if (!strcmp(key, " port= "))
        return port_number(c, value, &a->port);
    if (!strcmp(key, " group= "))
        return open_share(c, value, a);
    if (!strcmp(key, " share= "))
        return take_share(c, value, a);
    if (!strcmp(key, " direction= "))
        return take_direction(c, value, &a->dir);
    if (!strcmp(key, " in= "))
        return take_rate(c, "in", value, &a->rate[QOS_IN]);
    if (!strcmp(key, " out= "))
        return take_rate(c, "out", value, &a->rate[QOS_OUT]);
    a->total = true;
    return DPCTL_OK;
}

static enum status
take_words(struct ctx *c, char **words, int n, const char *keys, struct asked *a)
{
    enum status st = DPCTL_OK;
    char *text = join_words(c, words, n, ',');
    *a = (struct asked){.port = OFPP_ANY, .dir = BOTH_WAYS};
    a->shares = text ? of_arena_array(&c->arena, strlen(text) + 1, sizeof *a->shares) : NULL;
    if (!a->shares)
        return failed(c, "out of memory");
    for (char *save, *w = strtok_r(text, ",", &save); w && !st; w = strtok_r(NULL, ",", &save))
        st = take_pair(c, w, keys, a);
    if (!st && a->port == OFPP_ANY)
        st = bad_args(c, "which port is missing: port=N is right");
    return st;
}

/* ------------------------------------------------------------------- what is there */

bool
bw_is_group(const struct qos_entry *e)
{
    const struct qos_request *r = &e->config;
    return r->object_type == OFP_QOS_CLASS && r->class_id && r->class_id <= QOS_CLASS_MAX &&
           !e->parent_id;
}

/* A class of a port, 0: the root class; NULL: isn't there. */
static const struct qos_request *
find_class(const struct qos_entries *now, uint32_t port, enum qos_direction dir, uint32_t id)
{
    for (size_t i = 0; i < now->n; i++) {
        const struct qos_request *r = &now->v[i].config;
        if (r->object_type == OFP_QOS_CLASS && r->port_no == port && r->class_id == id &&
            entry_direction(&now->v[i]) == dir)
            return r;
    }
    return NULL;
}

/* Whether the words mean this direction: the one given, else those in which the port has a total. */
static bool
means(const struct asked *a, const struct qos_entries *now, enum qos_direction dir)
{
    return a->dir == BOTH_WAYS ? find_class(now, a->port, dir, 0) != NULL : a->dir == (int)dir;
}

static const char *
way(enum qos_direction dir)
{
    return dir == QOS_IN ? "enters" : "leaves";
}

/* What makes a class have these two values, the others it has as they are; nothing where it has. */
static void
set_class(struct ctx *c, struct steps *steps, const struct qos_entries *now, uint32_t port,
          enum qos_direction dir, uint32_t id, const struct qos_values *values)
{
    const struct qos_request *is = find_class(now, port, dir, id);
    struct qos_request r = {.sched = qos_sched_by_id(OFP_QOS_SCHED_HTB),
                            .object_type = OFP_QOS_CLASS,
                            .action_type = is ? OFP_QOS_CHANGE : OFP_QOS_ADD,
                            .port_no = port,
                            .class_id = id};
    if (is)
        r.values = is->values;
    else if (dir == QOS_IN)
        qos_put(&r.values, QOS_DIRECTION, QOS_IN);
    qos_values_merge(r.sched, &r.values, values);
    if (!is || memcmp(&r.values, &is->values, sizeof r.values))
        steps_qos(c, steps, &r, NULL);
}

/* ------------------------------------------------------------------------ bw-total */

static enum status
bw_total(struct ctx *c, char **words, int n)
{
    struct asked a;
    struct qos_entries now;
    struct steps steps = {0};
    bool dry = take_flag(words, &n, "dry-run") || c->dry_run;
    enum status st = take_words(c, words, n, " port= in= out= ", &a);
    if (!st && !a.rate[QOS_OUT] && !a.rate[QOS_IN])
        return bad_args(c, "the total is missing: in=RATE, out=RATE or both are right");
    st = st ? st : ask_queues(c, a.port, QOS_ALL_CLASSES, &now);
    for (int dir = QOS_OUT; !st && dir <= QOS_IN; dir++) {
        struct qos_values v = {0};
        qos_put(&v, QOS_RATE, a.rate[dir]);
        qos_put(&v, QOS_CEIL, a.rate[dir]);
        if (a.rate[dir])
            set_class(c, &steps, &now, a.port, (enum qos_direction)dir, 0, &v);
    }
    return st ? st : steps_run(c, &steps, dry);
}

/* ------------------------------------------------------------------------ bw-group */

/* Of the total, by its share or its rate. */
static uint64_t
share_of(const struct qos_request *class, const struct qos_request *root)
{
    if (qos_has(&class->values, QOS_RATE_SHARE))
        return class->values.v[QOS_RATE_SHARE];
    uint64_t total = root->values.v[QOS_RATE], rate = class->values.v[QOS_RATE];
    return total ? (uint64_t)((double)rate * ALL_PPM / (double)total + 0.5) : 0;
}

static bool
is_asked(const struct asked *a, uint32_t group)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->shares[i].group == group)
            return true;
    return false;
}

/* All shares together are at most the whole. */
static enum status
check_shares(struct ctx *c, const struct asked *a, const struct qos_entries *now,
             enum qos_direction dir, const struct qos_request *root)
{
    uint64_t asked = 0, others = 0;
    char sum[QOS_UNIT_TEXT], new[QOS_UNIT_TEXT], old[QOS_UNIT_TEXT], left[QOS_UNIT_TEXT];
    for (size_t i = 0; i < a->n; i++)
        asked += a->shares[i].ppm;
    for (size_t i = 0; i < now->n; i++)
        if (bw_is_group(&now->v[i]) && entry_direction(&now->v[i]) == dir &&
            !is_asked(a, now->v[i].config.class_id))
            others += share_of(&now->v[i].config, root);
    if (asked + others <= ALL_PPM)
        return DPCTL_OK;
    return failed(c,
                  "port %u, what %s by it: %s asked for and %s that other groups have are %s: "
                  "%s at most is left",
                  (unsigned)a->port, way(dir), qos_format_ppm(asked, new),
                  qos_format_ppm(others, old), qos_format_ppm(asked + others, sum),
                  qos_format_ppm(others < ALL_PPM ? ALL_PPM - others : 0, left));
}

static enum status
divide(struct ctx *c, const struct asked *a, const struct qos_entries *now, enum qos_direction dir,
       struct steps *steps)
{
    const struct qos_request *root = find_class(now, a->port, dir, 0), *is;
    if (!root)
        return failed(c, "port %u has no total for what %s by it: bw-total port=%u,%s=RATE first",
                      (unsigned)a->port, way(dir), (unsigned)a->port, dir == QOS_IN ? "in" : "out");
    enum status st = check_shares(c, a, now, dir, root);
    for (size_t i = 0; !st && i < a->n; i++) {
        struct qos_values v = {0};
        qos_put(&v, QOS_RATE, 0);
        qos_put(&v, QOS_RATE_SHARE, a->shares[i].ppm);
        qos_put(&v, QOS_CEIL, 0);
        qos_put(&v, QOS_CEIL_SHARE, ALL_PPM);
        is = find_class(now, a->port, dir, a->shares[i].group);
        if (is && is->values.v[QOS_PARENT])
            st = failed(c,
                        "class %u of port %u is below class %u and no group: another number is "
                        "right",
                        (unsigned)is->class_id, (unsigned)a->port,
                        (unsigned)is->values.v[QOS_PARENT]);
        else
            set_class(c, steps, now, a->port, dir, a->shares[i].group, &v);
    }
    return st;
}

static enum status
bw_group(struct ctx *c, char **words, int n)
{
    struct asked a;
    struct qos_entries now;
    struct steps steps = {0};
    bool dry = take_flag(words, &n, "dry-run") || c->dry_run;
    bool any = false;
    enum status st = take_words(c, words, n, " port= group= share= direction= ", &a);
    if (!st && (!a.n || !a.shares[a.n - 1].ppm))
        return bad_args(c, "the group and its share are missing: group=2,share=30%% is right");
    for (size_t i = 0; !st && i < a.n; i++)
        if (!a.shares[i].ppm)
            return bad_args(c, "group %u: its share is missing", (unsigned)a.shares[i].group);
    st = st ? st : ask_queues(c, a.port, QOS_ALL_CLASSES, &now);
    for (int dir = QOS_OUT; !st && dir <= QOS_IN; dir++) {
        if (!means(&a, &now, (enum qos_direction)dir))
            continue;
        any = true;
        st = divide(c, &a, &now, (enum qos_direction)dir, &steps);
    }
    if (!st && !any)
        return failed(c, "port %u has no total yet: bw-total port=%u,in=RATE,out=RATE first",
                      (unsigned)a.port, (unsigned)a.port);
    st = st ? st : steps_run(c, &steps, dry);
    if (!st && !c->json && !dry)
        printf(
            "what is in no group gets 5%% of the total at least, beside the shares, and what the groups "
            "leave (none in bw-show)\n");
    return st;
}

/* -------------------------------------------------------------------------- bw-del */

static void
delete_class(struct ctx *c, struct steps *steps, const struct qos_request *class,
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
goes(const struct asked *a, const struct qos_entry *e)
{
    return e->config.port_no == a->port &&
           (a->dir == BOTH_WAYS || a->dir == (int)entry_direction(e)) &&
           (a->total || is_asked(a, e->config.class_id));
}

/* Flows of groups that no port has any more. */
static enum status
drop_members(struct ctx *c, const struct asked *a, const struct qos_entries *now,
             struct steps *steps)
{
    struct bw_members members;
    enum status st = bw_members(c, &members);
    for (size_t i = 0; !st && i < members.n; i++) {
        bool was = false, stays = false;
        for (size_t k = 0; k < now->n && !stays; k++) {
            const struct qos_entry *e = &now->v[k];
            if (!bw_is_group(e) || e->config.class_id != members.v[i].group)
                continue;
            was |= goes(a, e);
            stays = !goes(a, e);
        }
        if (was && !stays)
            steps_delete(c, steps, members.v[i].flow);
    }
    return st ? st : map_remove_misses(c, steps);
}

static enum status
bw_del(struct ctx *c, char **words, int n)
{
    struct asked a;
    struct qos_entries now;
    struct steps steps = {0};
    bool dry = take_flag(words, &n, "dry-run") || c->dry_run;
    enum status st = take_words(c, words, n, " port= group= total direction= ", &a);
    if (!st && a.total == !!a.n)
        return bad_args(c, "what is to go: group=N, several of them, or total is right");
    st = st ? st : ask_queues(c, OFPP_ANY, QOS_ALL_CLASSES, &now);
    st = st ? st : drop_members(c, &a, &now, &steps);
    for (size_t i = 0; !st && i < now.n; i++) {
        const struct qos_entry *e = &now.v[i];
        bool root = e->config.object_type == OFP_QOS_CLASS && !e->config.class_id;
        if (goes(&a, e) && (a.total ? root : bw_is_group(e)))
            delete_class(c, &steps, &e->config, entry_direction(e));
    }
    return st ? st : steps_run(c, &steps, dry);
}

/* ---------------------------------------------------------------------- the commands */

static const char total_help[] =
    "  port=N           the port\n"
    "  out=RATE         for what leaves by it: what the host behind it receives\n"
    "  in=RATE          for what enters by it: what that host sends\n"
    "Rates as for tc: 100kBps (or 100kbps) are 100,000 bytes a second, 800kbit the same in bits.\n"
    "A direction that isn't given stays as it is.  Shares follow their total.";

static const char group_help[] =
    "  port=N           the port, which has a total (bw-total)\n"
    "  group=N          the group's number, 1 to 65519: the queue of that number\n"
    "  share=30%        what it is assured of the total; what it leaves others may use, and the\n"
    "                   other way round\n"
    "  direction=out    only for what leaves by the port (in: enters); default: every direction in\n"
    "                   which the port has a total\n"
    "Several groups are changed in one step: bw-group port=1 group=1,share=30% group=2,share=70%";

static const char assign_help[] =
    "Flows that put a connection's packets of both ways into a group.  A CONNECTION is one word:\n"
    "  ip_dst=10.0.0.1,tcp_dst=80   addresses or prefixes, IPv4 or IPv6 (ip_src, ip_dst), ports or\n"
    "                   ranges (tcp_src, tcp_dst, tcp; udp, sctp), app=, dscp=, ip_proto=, prio=: a\n"
    "                   RULE of qos-map (dpctl help qos-map), as seen from one of the two hosts\n"
    "  then=goto:N      what happens to packets next: on to table N (default: 1, or as the flows that\n"
    "                   are there), normal, flood, output:PORT\n"
    "  table=N          where the flows are (default: 0, or where they are)\n"
    "A connection that is in another group moves; nothing of it is lost.";

static const char unassign_help[] =
    "The connection, as it was given to bw-assign, or all of a group belong to no group any more: they\n"
    "get what the groups leave.  With the last one the flow that leads on what is in no group goes, too.";

static const char del_help[] = "  port=N,group=N   the group (several: group=1,group=2)\n"
                               "  port=N,total     the port's total, and all groups\n"
                               "  direction=out    only for what leaves by the port (in: enters)\n"
                               "Connections of a group that no port has any more belong to none.";

static const char bw_watch_help[] =
    "  port=N           only this port\n"
    "  interval=1s      time between two looks (at least 100ms)\n"
    "  count=N          bw-watch: ends after N of them; else SIGINT (^C) does\n"
    "Columns: the group's share, what it uses now, as a bar of the total ('=' within its share, '+'\n"
    "borrowed, '|' where the share ends), what it is assured, packets dropped in the interval, what it\n"
    "lends or borrows and to or of whom.  none: what is in no group.  --json: a line for each port\n"
    "and direction with all of it in bit/s; of bw-show one object with the connections, too.";

const struct command bw_commands[] = {
    {"bw-total", NULL, "port=N [in=RATE] [out=RATE] [--dry-run]",
     "a port's total for what enters and for what leaves by it", bw_total,
     MORE(.text = total_help)},
    {"bw-group", NULL, "port=N group=N,share=P%... [direction=in|out] [--dry-run]",
     "groups of connections that are assured shares of the total", bw_group,
     MORE(.text = group_help)},
    {"bw-assign", NULL, "group=N CONNECTION... [then=...] [table=N] [--dry-run]",
     "puts connections into a group", bw_assign, MORE(.text = assign_help)},
    {"bw-unassign", NULL, "CONNECTION...|group=N [--dry-run]", "takes them out of their group",
     bw_unassign, MORE(.text = unassign_help)},
    {"bw-show", NULL, "[port=N] [interval=TIME]",
     "the groups, what they use, lend and borrow, and their connections", bw_show,
     MORE(.text = bw_watch_help)},
    {"bw-watch", NULL, "[port=N] [interval=TIME] [count=N]", "the same as it changes", bw_watch,
     MORE(.text = bw_watch_help)},
    {"bw-del", NULL, "port=N group=N...|total [direction=in|out] [--dry-run]",
     "takes groups away, or a port's total with all of them", bw_del, MORE(.text = del_help)},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
