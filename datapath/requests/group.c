/* SPDX-License-Identifier: Apache-2.0 */
#include "describe.h"
#include "dump-ids.h"
#include "flow-mod.h"
#include <admission/request.h>

#include <shared/reply.h>

#include <errno.h>
#include <stdlib.h>

static int
group_mod(struct sw *sw, const struct of_msg *m)
{
    return tables_group_mod(sw->dp.tables, m->body, UINT32_MAX, loop_now(sw->loop));
}

static int
handle_group_mod(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_group_mod *q = m->body;
    if (q->command == OFPGC_DELETE)
        return sw_delete_with_flows(sw, c, m);
    return group_mod(sw, m);
}

static int
may_group_mod(const struct slice_request *a)
{
    char why[SLICE_WHY];
    int err = slice_check_group_mod(a->slice, a->m->body, why);
    return err ? slice_deny(a, err, "%s", why) : 0;
}

const struct request request_group_mod = {.access = ACCESS_WRITE,
                                          .slice = may_group_mod,
                                          .denied = OF_GROUP_MOD_FAILED(EPERM),
                                          .needs = QUEUES,
                                          .bundle = BUNDLE_TABLES,
                                          .in_change_set = group_mod,
                                          LOGGED(GROUP),
                                          .run = handle_group_mod};

static void
add_stats(struct sw *sw, struct conn_dump *to, uint32_t id)
{
    const struct group *g = groups_find(sw->dp.groups, id);
    if (!g)
        return;
    struct flow_counter n = groups_counter(sw->dp.groups, g, -1);
    struct of_bucket_counter *b = calloc(g->n_buckets + 1, sizeof *b);
    void **v = calloc(g->n_buckets + 1, sizeof *v);
    struct of_group_stats s = {.group_id = g->id,
                               .ref_count = groups_refs(sw->dp.groups, g->id),
                               .packet_count = n.packets,
                               .byte_count = n.bytes,
                               .bucket_stats = OF_LIST(v, g->n_buckets)};
    for (uint32_t i = 0; b && v && i < g->n_buckets; i++) {
        n = groups_counter(sw->dp.groups, g, (int)i);
        b[i] = (struct of_bucket_counter){n.packets, n.bytes};
        v[i] = &b[i];
    }
    split_duration(loop_now(sw->loop), g->created, &s.duration_sec, &s.duration_nsec);
    if (b && v)
        conn_dump_add(to, &of_list_group_stats, &s);
    free(b);
    free(v);
}

/* One allocation: the list's pointers, then what they point to. */
bool
sw_group_buckets(const struct group *g, struct of_list *out)
{
    void **v = malloc(g->n_buckets * (sizeof *v + sizeof(struct of_bucket)) + 1);
    struct of_bucket *b = v ? (struct of_bucket *)(v + g->n_buckets) : NULL;
    for (uint32_t i = 0; v && i < g->n_buckets; i++) {
        const struct bucket *from = &g->buckets[i];
        b[i] = (struct of_bucket){.weight = from->weight,
                                  .watch_port = from->watch_port,
                                  .watch_group = from->watch_group,
                                  .actions = {.raw = from->wire}};
        v[i] = &b[i];
    }
    *out = OF_LIST(v, g->n_buckets);
    return v;
}

static void
add_desc(struct sw *sw, struct conn_dump *to, uint32_t id)
{
    const struct group *g = groups_find(sw->dp.groups, id);
    struct of_group_desc d;
    if (!g)
        return;
    d = (struct of_group_desc){.type = g->type, .group_id = g->id};
    if (sw_group_buckets(g, &d.buckets))
        conn_dump_add(to, &of_list_group_descs, &d);
    free(d.buckets.v);
}

/* One group, or all of them. */
static int
dump_groups(struct sw *sw, struct conn *c, const struct of_msg *m, uint32_t id, id_dump_add add)
{
    struct id_dump *d = sw_id_dump_new(sw, id == OFPG_ALL ? groups_count(sw->dp.groups) : 1, add);
    uint32_t pos = 0;
    if (!d)
        return -ENOMEM;
    if (id != OFPG_ALL)
        sw_id_dump_put(d, id);
    else
        for (const struct group *g; (g = groups_each(sw->dp.groups, &pos));)
            if (slice_has_group(sw_slice_of(c), g->id))
                sw_id_dump_put(d, g->id);
    return sw_id_dump_send(d, c, m);
}

static int
handle_group_stats(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    uint32_t id = ((const struct of_mp_group_request *)m->body)->group_id;
    if (id != OFPG_ALL && id > OFPG_MAX)
        return OF_GROUP_MOD_FAILED(INVALID_GROUP);
    return dump_groups(sw, c, m, id, add_stats);
}

static int
may_group_stats(const struct slice_request *a)
{
    uint32_t id = ((const struct of_mp_group_request *)a->m->body)->group_id;
    return id == OFPG_ALL || slice_has_group(a->slice, id)
               ? 0
               : slice_deny(a, OF_BAD_REQUEST(EPERM), "group %u", (unsigned)id);
}

const struct request request_group_stats = {
    .access = ACCESS_READ, .slice = may_group_stats, .needs = TABLES, .run = handle_group_stats};

static int
handle_group_desc(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return dump_groups(sw, c, m, OFPG_ALL, add_desc);
}

const struct request request_group_desc = {
    .access = ACCESS_READ, .slice = slice_anything, .needs = TABLES, .run = handle_group_desc};

static int
handle_group_features(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    uint32_t actions = 0, most = groups_most(sw->dp.groups);
    for (size_t i = 0; i < of_list_actions.n_tags; i++)
        if (of_list_actions.tags[i].type < 32)
            actions |= 1u << of_list_actions.tags[i].type;
    struct of_mp_group_features r = {
        .types = 1 << OFPGT_ALL | 1 << OFPGT_SELECT | 1 << OFPGT_INDIRECT | 1 << OFPGT_FF,
        .capabilities = OFPGFC_SELECT_WEIGHT | OFPGFC_CHAINING | OFPGFC_CHAINING_CHECKS,
        .max_groups_all = most,
        .max_groups_select = most,
        .max_groups_indirect = most,
        .max_groups_ff = most,
        .actions_all = actions,
        .actions_select = actions,
        .actions_indirect = actions,
        .actions_ff = actions};
    return conn_reply(c, OFPT_MULTIPART_REPLY, m, &r);
}

const struct request request_group_features = {
    .access = ACCESS_READ, .slice = slice_anything, .run = handle_group_features};
