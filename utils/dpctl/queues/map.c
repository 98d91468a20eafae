/* SPDX-License-Identifier: Apache-2.0 */
#include <core/ask.h>
#include <core/say.h>
#include <queues/map.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum status
ask_flows(struct ctx *c, uint8_t table, uint64_t cookie, uint64_t mask, struct of_list *flows)
{
    struct of_mp_flow_request body = {.table_id = table,
                                      .out_port = OFPP_ANY,
                                      .out_group = OFPG_ANY,
                                      .cookie = cookie,
                                      .cookie_mask = mask};
    int err = of_parse_match(&c->parse, "", &body.match);
    return err ? say_parse(c, err) : ask_list(c, OFPMP_FLOW, &body, flows);
}

enum status
map_flows(struct ctx *c, const char *set, struct of_list *out)
{
    return set ? ask_flows(c, OFPTT_ALL, qos_map_cookie(set), UINT64_MAX, out)
               : ask_flows(c, OFPTT_ALL, QOS_MAP_COOKIE, QOS_MAP_COOKIE_MASK, out);
}

static int
by_queue(const void *a, const void *b)
{
    const struct map_member *x = a, *y = b;
    return (x->queue > y->queue) - (x->queue < y->queue);
}

enum status
map_members(struct ctx *c, const char *set, struct map_members *out)
{
    struct of_list flows = {0};
    enum status st = map_flows(c, set, &flows);
    *out = (struct map_members){0};
    if (st)
        return st;
    out->v = of_arena_array(&c->arena, flows.n + 1, sizeof *out->v);
    if (!out->v)
        return say_memory(c);
    for (uint32_t i = 0; i < flows.n; i++) {
        const struct of_flow_stats *f = OF_AT(&flows, i, struct of_flow_stats);
        if (!qos_map_is_miss(f))
            out->v[out->n++] = (struct map_member){f, qos_map_queue(f)};
    }
    qsort(out->v, out->n, sizeof *out->v, by_queue);
    return DPCTL_OK;
}

/* What a function that compares returned. */
static enum status
collect(struct ctx *c, int err, const struct qos_map_changes *changes, struct steps *out)
{
    if (err)
        return err == -ENOMEM ? say_memory(c) : say_failed(c, "%s", c->parse.why);
    for (size_t i = 0; i < changes->n; i++)
        steps_flow(c, out, &changes->v[i]);
    return DPCTL_OK;
}

/* Whether the switch forwards what its tables miss, being without a controller (--fail=open). */
static bool
is_standalone(struct ctx *c)
{
    char *rows;
    return ask_status_if_known(c, &rows) && strstr(rows, "\nstandalone=true\n");
}

/* Refuses to send all packets to a table where each would be dropped.  What earlier commands of a
 * bundle do can't be seen yet. */
static enum status
check_way(struct ctx *c, const struct qos_map *m)
{
    int next = qos_map_next(m);
    struct of_mp_flow_request body = {
        .table_id = (uint8_t)next, .out_port = OFPP_ANY, .out_group = OFPG_ANY};
    struct of_msg reply;
    if (next < 0 || c->bundle)
        return DPCTL_OK;
    int err = of_parse_match(&c->parse, "", &body.match);
    if (err)
        return say_parse(c, err);
    enum status st = ask_multipart(c, OFPMP_AGGREGATE, &body, &reply);
    if (st || ((const struct of_mp_aggregate *)reply.body)->flow_count || is_standalone(c))
        return st;
    return say_failed(
        c,
        "table %d is empty, so %s would be dropped there: write then=normal "
        "(forwards like an ordinary switch) or then=output:PORT, or make table %d's flows first",
        next, m->beside ? "the rules' packets" : "all packets", next);
}

enum status
map_way(struct ctx *c, struct of_parse *p, struct qos_map *m, struct of_list *table)
{
    enum status st = ask_flows(c, m->table, 0, 0, table);
    return st || !qos_map_way(p, m, table) ? st : say_memory(c);
}

enum status
map_diff(struct ctx *c, const struct qos_map *want, bool keep, struct steps *out)
{
    struct of_list all, table;
    struct qos_map m = *want;
    struct qos_map_changes changes = {0};
    if (!m.n)
        return keep ? DPCTL_OK : map_delete(c, m.set, out);
    enum status st;
    if ((st = map_flows(c, NULL, &all)) || (st = map_way(c, &c->parse, &m, &table)))
        return st;
    int err = qos_map_diff(&c->parse, &m, keep, &all, &table, &changes);
    st = collect(c, err, &changes, out);
    return st ? st : check_way(c, &m);
}

enum status
map_delete(struct ctx *c, const char *set, struct steps *out)
{
    struct of_list all;
    struct qos_map_changes changes = {0};
    enum status st = map_flows(c, NULL, &all);
    if (st)
        return st;
    int err = qos_map_delete(&c->parse, set, &all, &changes);
    return collect(c, err, &changes, out);
}

enum status
map_remove(struct ctx *c, const struct qos_map *m, bool any_queue, struct steps *out)
{
    struct of_list set;
    struct qos_map_changes changes = {0};
    enum status st = map_flows(c, m->set, &set);
    if (st)
        return st;
    int err = qos_map_remove(&c->parse, m, any_queue, &set, &changes);
    return collect(c, err, &changes, out);
}

/* ----------------------------------------------------------------------- queues */

struct queue_set {
    uint8_t has[(QOS_CLASS_MAX + 8) / 8];
    uint32_t n;
};

static bool
has_queue(const struct queue_set *s, uint32_t queue)
{
    return queue <= QOS_CLASS_MAX && s->has[queue / 8] >> queue % 8 & 1;
}

static void
put_queue(struct queue_set *s, uint32_t queue)
{
    if (queue && queue <= QOS_CLASS_MAX && !has_queue(s, queue)) {
        s->has[queue / 8] |= (uint8_t)(1u << queue % 8);
        s->n++;
    }
}

static uint32_t
missing_queue(const struct qos_map *m, const struct queue_set *s)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->v[i].does.queue && !has_queue(s, m->v[i].does.queue))
            return m->v[i].does.queue;
    return 0;
}

/* What leaves by the ports has these queues, bands and transmit queues too. */
static enum status
add_queues_out(struct ctx *c, struct queue_set *s)
{
    struct of_list v;
    enum status st = ask_list(c, OFPMP_QUEUE, NULL, &v);
    for (uint32_t i = 0; !st && i < v.n; i++)
        put_queue(s, OF_AT(&v, i, struct of_queue_stats)->queue_id);
    return st;
}

static enum status
add_queues_in(struct ctx *c, struct queue_set *s)
{
    struct queue_entries all;
    enum status st = queues_ask(c, OFPP_ANY, QOS_ALL_CLASSES, &all);
    for (size_t i = 0; !st && i < all.n; i++)
        if (all.v[i].config.object_type == OFP_QOS_CLASS)
            put_queue(s, all.v[i].config.class_id);
    return st;
}

enum status
map_doubt_queues(struct ctx *c, const struct qos_map *m, const struct qos_profile *made)
{
    struct queue_set *s = of_arena_array(&c->arena, 1, sizeof *s);
    char text[600];
    enum status st = s ? DPCTL_OK : say_memory(c);
    if (c->bundle) /* which may make the queues */
        return st;
    for (int dir = 0; !st && made && dir < 2; dir++)
        for (size_t i = 0; i < made->part[dir].n; i++)
            put_queue(s, made->part[dir].want[i].class_id);
    if (!st && missing_queue(m, &(struct queue_set){0}))
        st = add_queues_out(c, s);
    if (!st && missing_queue(m, s))
        st = add_queues_in(c, s);
    uint32_t queue = st ? 0 : missing_queue(m, s);
    if (!queue)
        return st;
    int at = snprintf(
        text, sizeof text,
        "no port has queue %u: its packets go to the default class until one has. There %s",
        (unsigned)queue,
        !s->n       ? "are no queues"
        : s->n == 1 ? "is queue"
                    : "are queues");
    for (uint32_t q = 1, shown = 0; q <= QOS_CLASS_MAX && at < (int)sizeof text - 24; q++) {
        if (!has_queue(s, q))
            continue;
        at +=
            snprintf(text + at, sizeof text - (size_t)at, "%s %u", shown++ ? "," : "", (unsigned)q);
    }
    return say_doubt(c, text);
}

/* ----------------------------------------------------------------- table-miss flows */

static bool
leaves_none(const struct of_list *all, const struct steps *s, uint8_t table)
{
    size_t there = 0, deleted = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct of_flow_stats *f = OF_AT(all, i, struct of_flow_stats);
        there += f->table_id == table && !qos_map_is_miss(f);
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct of_flow_mod *fm = s->v[i].flow;
        deleted += fm && fm->command == OFPFC_DELETE_STRICT && fm->table_id == table;
    }
    return there == deleted;
}

enum status
map_remove_misses(struct ctx *c, struct steps *out)
{
    struct of_list all = {0};
    struct steps misses = {0};
    enum status st = map_flows(c, NULL, &all);
    for (uint32_t i = 0; !st && i < all.n; i++) {
        const struct of_flow_stats *f = OF_AT(&all, i, struct of_flow_stats);
        if (qos_map_is_miss(f) && leaves_none(&all, out, f->table_id))
            steps_delete(c, &misses, f);
    }
    for (size_t i = 0; i < misses.n; i++)
        steps_flow(c, out, misses.v[i].flow);
    out->nomem |= misses.nomem;
    return st;
}

void
map_offer_rule(struct complete *k, const struct command *self)
{
    const char *key, *name;
    bool bandwidth = !strncmp(self->name, "bw-", 3); /* has groups instead of queues */
    for (size_t i = 0; (key = qos_map_key_at(i)); i++) {
        if (bandwidth && !strcmp(key, "queue"))
            continue;
        complete_key(k, key, "", NULL);
        for (size_t n = 0; (name = qos_map_name_at(key, n)); n++)
            complete_key(k, key, name, NULL);
    }
}
