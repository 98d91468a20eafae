/* SPDX-License-Identifier: Apache-2.0 */
/* bw-assign, bw-unassign: connections into bandwidth groups, by flows as qos-map makes them. */
#include "bw.h"

#include <stdio.h>
#include <stdlib.h>

/* The queue that the flow sets, 0: none. */
static uint32_t
queue_of(const struct of_flow_stats *f)
{
    for (uint32_t i = 0; i < f->instructions.n; i++) {
        const struct of_instr_actions *apply = OF_AT(&f->instructions, i, struct of_instr_actions);
        if (apply->row != OF_INSTR(APPLY_ACTIONS))
            continue;
        for (uint32_t k = 0; k < apply->actions.n; k++) {
            const struct of_action_set_queue *a =
                OF_AT(&apply->actions, k, struct of_action_set_queue);
            if (a->row == OF_ACTION(SET_QUEUE))
                return a->queue_id;
        }
    }
    return 0;
}

static int
by_group(const void *a, const void *b)
{
    uint32_t x = ((const struct bw_member *)a)->group, y = ((const struct bw_member *)b)->group;
    return x < y ? -1 : x > y;
}

enum status
bw_members(struct ctx *c, struct bw_members *out)
{
    struct of_list flows;
    enum status st = map_flows(c, BW_SET, &flows);
    *out = (struct bw_members){0};
    if (st)
        return st;
    out->v = of_arena_array(&c->arena, flows.n + 1, sizeof *out->v);
    if (!out->v)
        return failed(c, "out of memory");
    for (uint32_t i = 0; i < flows.n; i++) {
        const struct of_flow_stats *f = OF_AT(&flows, i, struct of_flow_stats);
        if (!map_is_miss(f))
            out->v[out->n++] = (struct bw_member){f, queue_of(f)};
    }
    qsort(out->v, out->n, sizeof *out->v, by_group);
    return DPCTL_OK;
}

/* ------------------------------------------------------------------- where flows go */

/* What a flow does behind its queue, in the words of then=; NULL: something else. */
static const char *
then_of(struct ctx *c, const struct of_flow_stats *f)
{
    static const char apply[] = "apply:output=";
    struct of_wr w = of_wr_grow(1 << 12);
    char text[64], then[64];
    of_print_list(&w, &of_list_instructions, &f->instructions);
    snprintf(text, sizeof text, "%.*s", (int)w.len, (const char *)w.buf);
    of_wr_free(&w);
    if (!strncmp(text, "goto:", 5))
        return keep_text(c, text, strlen(text));
    if (strncmp(text, apply, sizeof apply - 1))
        return NULL;
    const char *port = text + sizeof apply - 1;
    bool number = *port >= '0' && *port <= '9';
    snprintf(then, sizeof then, "%s%s", number ? "output:" : "", port);
    return keep_text(c, then, strlen(then));
}

/* The table, and what happens behind it, are what the flows that are there say; where none are, what
 * the words say. */
static enum status
follow_flows(struct ctx *c, struct map *m, bool table_given, bool then_given)
{
    struct of_list ours;
    enum status st = map_flows(c, NULL, &ours);
    for (uint32_t i = 0; !st && i < ours.n && !table_given; i++) {
        const struct of_flow_stats *f = OF_AT(&ours, i, struct of_flow_stats);
        if (f->cookie == map_cookie(BW_SET) && !map_is_miss(f))
            m->table = f->table_id;
    }
    for (uint32_t i = 0; !st && i < ours.n; i++) {
        const struct of_flow_stats *f = OF_AT(&ours, i, struct of_flow_stats);
        const char *then = map_is_miss(f) && f->table_id == m->table ? then_of(c, f) : NULL;
        if (!then)
            continue;
        if (then_given && strcmp(then, m->then))
            return failed(c,
                          "table %u goes on with then=%s already: that, or another table=N, is "
                          "right",
                          m->table, then);
        m->then = then;
    }
    return st;
}

/* ---------------------------------------------------------------------------- words */

struct asked {
    uint32_t group; /* 0: not given */
    bool table, then;
    char *rules[64];
    int n;
};

/* Takes "group=N" out of a word; what is left of it is a rule. */
static enum status
take_word(struct ctx *c, char *word, struct map *m, struct asked *a)
{
    const char *why = NULL;
    char *save, rule[512] = "";
    if (strlen(word) >= sizeof rule - 1)
        return bad_args(c, "'%.40s...' is too long", word);
    if (strncmp(word, "set=", 4) && map_option(c, m, word, &why)) {
        a->table |= !strncmp(word, "table=", 6);
        a->then |= !strncmp(word, "then=", 5);
        return why ? bad_args(c, "%s", why) : DPCTL_OK;
    }
    for (char *w = strtok_r(word, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (strncmp(w, "group=", 6)) {
            snprintf(rule + strlen(rule), sizeof rule - strlen(rule), ",%s", w);
            continue;
        }
        if (a->group)
            return bad_args(c, "group is given twice: one command is about one group");
        enum status st = bw_take_group(c, w + 6, &a->group);
        if (st)
            return st;
    }
    if (!*rule)
        return DPCTL_OK;
    if (a->n == (int)(sizeof a->rules / sizeof a->rules[0]))
        return bad_args(c, "more than %d connections", a->n);
    a->rules[a->n] = keep_text(c, rule, strlen(rule));
    return a->rules[a->n++] ? DPCTL_OK : failed(c, "out of memory");
}

static enum status
take_words(struct ctx *c, char **words, int n, struct map *m, struct asked *a)
{
    enum status st = DPCTL_OK;
    *a = (struct asked){0};
    map_init(m, BW_SET);
    for (int i = 0; !st && i < n; i++)
        st = take_word(c, words[i], m, a);
    return st ? st : follow_flows(c, m, a->table, a->then);
}

/* The rules' flows, both ways. */
static enum status
make_rules(struct ctx *c, const struct asked *a, struct map *m)
{
    char text[600];
    const char *why = NULL;
    for (int i = 0; i < a->n && !why; i++) {
        snprintf(text, sizeof text, "queue=%u%s", a->group ? (unsigned)a->group : 1u, a->rules[i]);
        map_rule(c, m, text, true, &why);
    }
    return why ? bad_args(c, "%s", why) : DPCTL_OK;
}

/* ------------------------------------------------------------------------- commands */

static enum status
check_group(struct ctx *c, uint32_t group)
{
    struct qos_entries now;
    enum status st = ask_queues(c, OFPP_ANY, QOS_ALL_CLASSES, &now);
    for (size_t i = 0; !st && i < now.n; i++)
        if (now.v[i].config.class_id == group && bw_is_group(&now.v[i]))
            return DPCTL_OK;
    return st ? st
              : failed(c, "no port has a group %u: bw-group port=N,group=%u,share=P%% first",
                       (unsigned)group, (unsigned)group);
}

enum status
bw_assign(struct ctx *c, char **words, int n)
{
    struct asked a;
    struct map m;
    struct steps steps = {0};
    bool dry = take_flag(words, &n, "dry-run") || c->dry_run;
    const char *why = NULL;
    enum status st = take_words(c, words, n, &m, &a);
    if (!st && (!a.group || !a.n))
        return bad_args(c, "%s is missing: group=2 ip_dst=10.0.0.1,tcp_dst=80 is right",
                        a.group ? "the connection" : "the group");
    st = st ? st : check_group(c, a.group);
    st = st ? st : make_rules(c, &a, &m);
    if (!st)
        map_finish(c, &m, &why);
    if (why)
        return bad_args(c, "%s", why);
    st = st ? st : map_diff(c, &m, true, &steps);
    return st ? st : steps_run(c, &steps, dry);
}

enum status
bw_unassign(struct ctx *c, char **words, int n)
{
    struct asked a;
    struct map m;
    struct bw_members members;
    struct steps steps = {0};
    bool dry = take_flag(words, &n, "dry-run") || c->dry_run;
    enum status st = take_words(c, words, n, &m, &a);
    if (!st && !a.group == !a.n)
        return bad_args(c, "a connection, or group=N for all of a group, is right");
    st = st ? st : make_rules(c, &a, &m);
    st = st ? st : map_remove(c, &m, &steps);
    st = st ? st : bw_members(c, &members);
    for (size_t i = 0; !st && a.group && i < members.n; i++)
        if (members.v[i].group == a.group)
            steps_delete(c, &steps, members.v[i].flow);
    st = st ? st : map_remove_misses(c, &steps);
    return st ? st : steps_run(c, &steps, dry);
}
