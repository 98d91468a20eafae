/* SPDX-License-Identifier: Apache-2.0 */
#include "groups-inside.h"

#include <flow/action-set.h>
#include <shared/rcu.h>

#include <errno.h>
#include <string.h>

static void free_group(void *arg);
static void refer_buckets(void *ctx, void *group, int delta);
static void inherit(void *group, void *old);

struct groups *
groups_new(unsigned n_workers, const struct groups_ops *ops)
{
    struct groups *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    static const struct idmap_ops map_ops = {free_group, refer_buckets, inherit};
    idmap_init(&g->map, &map_ops, g);
    refs_init(&g->refs);
    g->n_workers = n_workers;
    g->ops = *ops;
    g->limits = limits_default(UINT64_MAX);
    return g;
}

void
groups_limit(struct groups *g, const struct limits *l)
{
    g->limits = *l;
}

uint32_t
groups_most(const struct groups *g)
{
    return g->limits.groups;
}

static void
free_group(void *arg)
{
    struct group *gr = arg;
    for (uint32_t i = 0; i < gr->n_buckets; i++) {
        free(gr->buckets[i].program);
        free((void *)(uintptr_t)gr->buckets[i].wire.p);
    }
    free(gr->by_weight);
    if (gr->owns_total)
        free(gr->total);
    free(gr->counters);
    free(gr);
}

void
groups_free(struct groups *g)
{
    idmap_free(&g->map);
    refs_free(&g->refs);
    free(g);
}

struct group *
groups_find(const struct groups *g, uint32_t id)
{
    return idmap_find(&g->map, id);
}

struct group *
groups_each(const struct groups *g, uint32_t *pos)
{
    return idmap_each(&g->map, pos);
}

unsigned long
groups_changes(const struct groups *g)
{
    return g->map.changes;
}

uint32_t
groups_count(const struct groups *g)
{
    return idmap_count(&g->map);
}

struct flow_counter
groups_counter(const struct groups *g, const struct group *gr, int bucket)
{
    struct flow_counter sum = {0};
    for (unsigned w = 0; w < flow_counters_slots(g->n_workers, g->ops.kernel); w++) {
        const struct flow_counter *c = group_counter(gr, w, bucket);
        sum.packets += counter_read(&c->packets);
        sum.bytes += counter_read(&c->bytes);
    }
    return sum;
}

void
groups_kernel_count(const struct groups *g, const struct group *gr, int bucket, uint64_t packets,
                    uint64_t bytes)
{
    flow_counter_add(group_counter(gr, g->n_workers, bucket), packets, bytes);
}

/* ------------------------------------------------------------------ references */

static void
refer_flow(struct groups *g, struct act_list l, struct flow *f, struct flow_use **use, int delta)
{
    ACTS_EACH(a, l)
        if (a->op == OFPAT_GROUP)
            refs_flow(&g->refs, a->arg, f, (*use)++, delta);
}

void
groups_refer(struct groups *g, struct flow *f, struct program *p, int delta)
{
    struct flow_use *use = program_uses(p) + (p->meter_id != 0);
    if (!p->n_uses)
        return;
    refer_flow(g, program_apply(p), f, &use, delta);
    refer_flow(g, program_write(p), f, &use, delta);
}

uint32_t
groups_refs(const struct groups *g, uint32_t id)
{
    const struct id_refs *r = refs_find(&g->refs, id);
    return r ? r->flows + r->buckets : 0;
}

static void
refer_bucket(struct groups *g, const struct bucket *b, int delta)
{
    struct id_refs *r = b->watched == OFPG_ANY ? NULL : refs_get(&g->refs, b->watched);
    if (r)
        r->watchers += (uint32_t)delta;
    ACTS_EACH(a, program_apply(b->program))
        if (a->op == OFPAT_GROUP && (r = refs_get(&g->refs, a->arg)))
            r->buckets += (uint32_t)delta;
}

static void
refer_buckets(void *ctx, void *group, int delta)
{
    struct groups *g = ctx;
    const struct group *gr = group;
    g->n_buckets += delta > 0 ? gr->n_buckets : -gr->n_buckets;
    g->bytes += delta > 0 ? gr->bytes : -gr->bytes;
    for (uint32_t i = 0; i < gr->n_buckets; i++)
        refer_bucket(g, &gr->buckets[i], delta);
}

/* ------------------------------------------------------------------ group-mods */

/* A bucket's actions are a set, so there is one output at most. */
static uint32_t
output_of(const struct program *p)
{
    ACTS_EACH(a, program_apply(p))
        if (a->op == OFPAT_OUTPUT && (a->arg <= OFPP_MAX || a->arg == OFPP_LOCAL))
            return a->arg;
    return OFPP_ANY;
}

static int
build_bucket(const struct groups *g, uint8_t type, const struct of_bucket *from, struct bucket *to)
{
    to->weight = from->weight;
    to->watched = type == OFPGT_FF ? from->watch_group : OFPG_ANY;
    to->watch_port = from->watch_port;
    to->watch_group = from->watch_group;
    int err = compile_actions(&g->ops.env, &from->actions, &to->program);
    if (err)
        return err;
    action_set_sort(to->program);
    to->out_port = output_of(to->program);
    to->other_port = to->watch_port == to->out_port || !to->watch_port ? OFPP_ANY : to->watch_port;
    uint8_t *wire = malloc(from->actions.raw.n + 1);
    if (!wire)
        return -ENOMEM;
    if (from->actions.raw.n)
        memcpy(wire, from->actions.raw.p, from->actions.raw.n);
    to->wire = (struct of_bytes){wire, from->actions.raw.n};
    return 0;
}

#define UNITS_OF_A_BUCKET 16 /* of weight, on average, in by_weight */

static bool
lists_by_weight(const struct group *gr)
{
    return gr->type == OFPGT_SELECT && gr->total_weight &&
           gr->total_weight <= UNITS_OF_A_BUCKET * gr->n_buckets;
}

/* Computes the group's bytes and checks the limits; old: the group that it replaces, or NULL. */
static int
check_room(const struct groups *g, struct group *gr, const struct group *old)
{
    uint32_t fewer = old ? old->n_buckets : 0;
    uint64_t less = old ? old->bytes : 0;
    gr->bytes = sizeof *gr + ((uint64_t)gr->stride + gr->total_stride) *
                                 flow_counters_slots(g->n_workers, g->ops.kernel) *
                                 sizeof gr->counters[0];
    if (lists_by_weight(gr))
        gr->bytes += gr->total_weight * sizeof *gr->by_weight;
    for (uint32_t i = 0; i < gr->n_buckets; i++)
        gr->bytes +=
            sizeof gr->buckets[i] + program_size(gr->buckets[i].program) + gr->buckets[i].wire.n;
    if (gr->n_buckets > fewer && g->n_buckets - fewer + gr->n_buckets > g->limits.buckets)
        return OF_GROUP_MOD_FAILED(OUT_OF_BUCKETS);
    if (gr->bytes > less && g->bytes - less + gr->bytes > g->limits.group_bytes)
        return OF_GROUP_MOD_FAILED(OUT_OF_BUCKETS);
    return 0;
}

static bool
make_by_weight(struct group *gr)
{
    uint32_t n = 0;
    if (!lists_by_weight(gr))
        return true;
    gr->by_weight = malloc(gr->total_weight * sizeof *gr->by_weight);
    for (uint32_t i = 0; gr->by_weight && i < gr->n_buckets; i++)
        for (uint32_t k = 0; k < gr->buckets[i].weight; k++)
            gr->by_weight[n++] = (uint16_t)i;
    return gr->by_weight;
}

/* A modify clears the buckets' counts, but not the group's (6.5).  Workers count into the group that is
 * replaced until the next grace period, so both count into the same memory. */
static bool
make_counters(const struct groups *g, struct group *gr, const struct group *old)
{
    gr->counters =
        flow_counters_new(gr->n_buckets ? gr->n_buckets : 1, g->n_workers, g->ops.kernel);
    gr->total = old ? old->total : flow_counters_new(1, g->n_workers, g->ops.kernel);
    gr->owns_total = !old;
    return gr->counters && gr->total;
}

static int
build_group(struct groups *g, const struct of_group_mod *m, uint64_t now, const struct group *old,
            struct group **out)
{
    int err = groups_check(g, m);
    if (err)
        return err;
    struct group *gr = calloc(1, sizeof *gr + m->buckets.n * sizeof gr->buckets[0]);
    if (!gr)
        return -ENOMEM;
    gr->id = m->group_id;
    gr->type = m->type;
    gr->created = now;
    for (uint32_t i = 0; i < m->buckets.n && !err; i++) {
        gr->n_buckets++;
        err = build_bucket(g, m->type, OF_AT(&m->buckets, i, struct of_bucket), &gr->buckets[i]);
        gr->total_weight += gr->buckets[i].weight;
    }
    if (!err)
        err = groups_check_chains(g, gr);
    gr->stride = flow_counters_apart(gr->n_buckets, g->n_workers);
    gr->total_stride = flow_counters_apart(1, g->n_workers);
    if (!err)
        err = check_room(g, gr, old);
    if (!err && !(make_counters(g, gr, old) && make_by_weight(gr)))
        err = -ENOMEM;
    if (err)
        free_group(gr);
    else
        *out = gr;
    return err;
}

static int
add_group(struct groups *g, const struct of_group_mod *m, uint64_t now)
{
    struct group *gr;
    if (groups_find(g, m->group_id))
        return OF_GROUP_MOD_FAILED(GROUP_EXISTS);
    if (idmap_count(&g->map) >= g->limits.groups)
        return OF_GROUP_MOD_FAILED(OUT_OF_GROUPS);
    int err = build_group(g, m, now, NULL, &gr);
    if (err)
        return err;
    if ((err = idmap_add(&g->map, gr)))
        free_group(gr);
    return err;
}

static void
inherit(void *group, void *old)
{
    struct group *from = old, *to = group;
    to->owns_total = from->owns_total;
    from->owns_total = false;
}

static int
modify_group(struct groups *g, const struct of_group_mod *m, uint64_t now)
{
    struct group *gr, *old = groups_find(g, m->group_id);
    if (!old)
        return m->group_id > OFPG_MAX ? OF_GROUP_MOD_FAILED(INVALID_GROUP)
                                      : OF_GROUP_MOD_FAILED(UNKNOWN_GROUP);
    int err = build_group(g, m, now, old, &gr);
    if (err)
        return err;
    gr->created = old->created;
    if ((err = idmap_replace(&g->map, old, gr)))
        free_group(gr);
    return err;
}

int
groups_remove_users(const struct groups *g, uint32_t id, uint32_t most,
                    int (*remove)(void *ctx, struct flow *f), void *ctx)
{
    uint32_t pos = 0;
    int err = 0;
    if (id != OFPG_ALL)
        return refs_remove_users(&g->refs, id, &most, remove, ctx);
    for (const struct group *gr; !err && (gr = groups_each(g, &pos));)
        err = refs_remove_users(&g->refs, gr->id, &most, remove, ctx);
    return err;
}

int
groups_check_delete(const struct groups *g, uint32_t id)
{
    const struct id_refs *r = refs_find(&g->refs, id);
    if (id > OFPG_MAX && id != OFPG_ALL)
        return OF_GROUP_MOD_FAILED(INVALID_GROUP);
    return groups_find(g, id) && r && r->buckets ? OF_GROUP_MOD_FAILED(CHAINED_GROUP) : 0;
}

static int
delete_groups(struct groups *g, const struct of_group_mod *m)
{
    int wrong = groups_check_delete(g, m->group_id);
    if (wrong)
        return wrong;
    if (m->group_id == OFPG_ALL) {
        uint32_t pos = 0;
        int err = 0;
        for (struct group *gr; !err && (gr = groups_each(g, &pos));)
            err = idmap_drop(&g->map, gr);
        return err;
    }
    struct group *gr = groups_find(g, m->group_id);
    return gr ? idmap_drop(&g->map, gr) : 0;
}

int
groups_mod(struct groups *g, const struct of_group_mod *m, uint64_t now)
{
    int err;
    switch (m->command) {
    case OFPGC_ADD: err = add_group(g, m, now); break;
    case OFPGC_MODIFY: err = modify_group(g, m, now); break;
    case OFPGC_DELETE: err = delete_groups(g, m); break;
    default: return OF_GROUP_MOD_FAILED(BAD_COMMAND);
    }
    return err == -ENOMEM ? OF_GROUP_MOD_FAILED(OUT_OF_GROUPS) : err;
}
