/* SPDX-License-Identifier: Apache-2.0 */
/* bw-assign, bw-unassign: connections in bandwidth groups, by flows as qos-map makes them. */
#include "bw.h"

#include <core/command.h>
#include <core/say.h>
#include <core/words.h>
#include <queues/map.h>

#include <stdio.h>

/* ------------------------------------------------------------------- where flows go */

/* The existing flows determine the table, and mustn't send packets elsewhere than the words say. */
static enum status
follow_flows(struct ctx *c, struct qos_map *m, bool table_given, bool then_given)
{
    struct of_list ours;
    enum status st = map_flows(c, NULL, &ours);
    for (uint32_t i = 0; !st && i < ours.n && !table_given; i++) {
        const struct of_flow_stats *f = OF_AT(&ours, i, struct of_flow_stats);
        if (f->cookie == qos_map_cookie(BW_SET) && !qos_map_is_miss(f))
            m->table = f->table_id;
    }
    for (uint32_t i = 0; !st && i < ours.n; i++) {
        const struct of_flow_stats *f = OF_AT(&ours, i, struct of_flow_stats);
        const char *then = then_given && qos_map_is_miss(f) && f->table_id == m->table
                               ? qos_map_then(&c->parse, f)
                               : NULL;
        if (then && strcmp(then, m->then))
            return say_failed(c,
                              "the flows of table %u already have then=%s: use that, or another "
                              "table=N",
                              m->table, then);
    }
    return st;
}

/* ---------------------------------------------------------------------------- words */

struct wanted {
    uint32_t group; /* 0: not given */
    bool table, then;
    char *rules[64];
    int n;
};

/* Takes "group=N" out of a word; what is left of it is a rule. */
static enum status
take_member(struct ctx *c, char *word, struct qos_map *m, struct wanted *a)
{
    char *save, rule[512] = "";
    if (strlen(word) >= sizeof rule - 1)
        return say_usage(c, "'%.40s...' is longer than %zu characters", word, sizeof rule - 2);
    int taken = qos_map_place(&c->parse, m, word);
    if (taken < 0)
        return say_parse(c, taken);
    if (taken) {
        a->table |= !strncmp(word, "table=", 6);
        a->then |= !strncmp(word, "then=", 5);
        return DPCTL_OK;
    }
    for (char *w = strtok_r(word, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (strncmp(w, "group=", 6)) {
            snprintf(rule + strlen(rule), sizeof rule - strlen(rule), ",%s", w);
            continue;
        }
        if (a->group)
            return say_usage(c, "group is given twice: use a command for each group");
        uint64_t group = 0;
        enum status st = words_number(c, "group", w + 6, 1, QOS_CLASS_MAX, &group);
        a->group = (uint32_t)group;
        if (st)
            return st;
    }
    if (!*rule)
        return DPCTL_OK;
    if (a->n == (int)(sizeof a->rules / sizeof a->rules[0]))
        return say_usage(c, "more than %d connections in one command", a->n);
    a->rules[a->n] = words_keep(c, rule, strlen(rule));
    return a->rules[a->n++] ? DPCTL_OK : say_memory(c);
}

static enum status
take_members(struct ctx *c, char **words, int n, struct qos_map *m, struct wanted *a)
{
    enum status st = DPCTL_OK;
    *a = (struct wanted){0};
    qos_map_init(m, BW_SET);
    for (int i = 0; !st && i < n; i++)
        st = take_member(c, words[i], m, a);
    return st ? st : follow_flows(c, m, a->table, a->then);
}

/* The flows of the connections, in both directions. */
static enum status
make_rules(struct ctx *c, const struct wanted *a, struct qos_map *m)
{
    char text[600];
    int err = 0;
    for (int i = 0; i < a->n && !err; i++) {
        snprintf(text, sizeof text, "queue=%u%s", a->group ? (unsigned)a->group : 1u, a->rules[i]);
        err = qos_map_rule(&c->parse, m, text, true);
    }
    return err ? say_parse(c, err) : DPCTL_OK;
}

/* ------------------------------------------------------------------------- commands */

static enum status
check_group(struct ctx *c, uint32_t group)
{
    struct queue_entries now;
    enum status st = queues_ask(c, OFPP_ANY, QOS_ALL_CLASSES, &now);
    for (size_t i = 0; !st && i < now.n; i++)
        if (now.v[i].config.class_id == group && bw_is_group(&now.v[i]))
            return DPCTL_OK;
    return st ? st
              : say_failed(c,
                           "no port has a group %u: run bw-group port=N,group=%u,share=P%% first",
                           (unsigned)group, (unsigned)group);
}

static enum status
bw_assign(struct ctx *c, const struct command *self, char **words, int n)
{
    struct wanted a;
    struct qos_map m;
    struct steps steps = {0};
    int err = 0;
    enum status st = take_members(c, words, n, &m, &a);
    if (!st && (!a.group || !a.n))
        return say_usage(c, "no %s given: write group=2 ip_dst=10.0.0.1,tcp_dst=80",
                         a.group ? "connection" : "group");
    st = st ? st : check_group(c, a.group);
    st = st ? st : make_rules(c, &a, &m);
    if (!st && (err = qos_map_finish(&c->parse, &m)))
        return say_parse(c, err);
    st = st ? st : map_diff(c, &m, true, &steps);
    return st ? st : steps_run(c, &steps);
}

static enum status
bw_unassign(struct ctx *c, const struct command *self, char **words, int n)
{
    struct wanted a;
    struct qos_map m;
    struct map_members members;
    struct steps steps = {0};
    enum status st = take_members(c, words, n, &m, &a);
    if (!st && !a.group == !a.n)
        return say_usage(c, "write connections, or group=N for all of a group");
    st = st ? st : make_rules(c, &a, &m);
    st = st ? st : map_remove(c, &m, true, &steps);
    st = st ? st : map_members(c, BW_SET, &members);
    for (size_t i = 0; !st && a.group && i < members.n; i++)
        if (members.v[i].queue == a.group)
            steps_delete(c, &steps, members.v[i].flow);
    st = st ? st : map_remove_misses(c, &steps);
    return st ? st : steps_run(c, &steps);
}

/* ------------------------------------------------------------------------ the rows */

static const char assign_help[] =
    "Makes flows that put a connection's packets, in both directions, into a group.  A CONNECTION is\n"
    "one word:\n"
    "  ip_dst=10.0.0.1,tcp_dst=80   addresses or prefixes, IPv4 or IPv6 (ip_src, ip_dst), ports or\n"
    "                   ranges (tcp_src, tcp_dst, tcp; udp, sctp), app=, dscp=, ecn=yes, ip_proto=,\n"
    "                   prio=: a RULE of qos-map (dpctl help qos-map), as seen from one of the two hosts\n"
    "  then=goto:N      where packets go next: table N, normal, flood, output:PORT (default: as\n"
    "                   now, else table 1)\n"
    "  table=N          the flows' table (default: 0, or that of the existing flows)\n"
    "A connection that is in another group moves to this one and loses no packets.";

static const char unassign_help[] =
    "Takes a connection, written as for bw-assign, or all connections of a group out of their group.\n"
    "They get what the groups leave.  With the last one the table-miss flow goes, too.";

static const struct command rows[] = {
    {.name = "bw-assign",
     .subject = SUBJECT_BW,
     .args = "group=N CONNECTION... [then=...] [table=N] [--dry-run]",
     .help = "puts connections into a group",
     .text = assign_help,
     .examples = "bw-assign group=1 ip_dst=10.0.0.1,tcp_dst=80",
     .run = bw_assign,
     .offer = map_offer_rule,
     .options = COMMAND_DRY_RUN},
    {.name = "bw-unassign",
     .subject = SUBJECT_BW,
     .args = "CONNECTION...|group=N [--dry-run]",
     .help = "takes connections out of their group",
     .text = unassign_help,
     .examples = "bw-unassign ip_dst=10.0.0.1,tcp_dst=80\nbw-unassign group=1",
     .run = bw_unassign,
     .offer = map_offer_rule,
     .options = COMMAND_DRY_RUN},
};

const struct command_table commands_bw_assign = COMMAND_TABLE(rows);
