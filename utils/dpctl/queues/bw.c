/* SPDX-License-Identifier: Apache-2.0 */
#include <core/say.h>
#include <queues/bw.h>

#include <qos/sched/units.h>

#include <stdlib.h>

enum status
bw_take_group(struct ctx *c, const char *text, uint32_t *group)
{
    uint64_t v;
    char why[256];
    if (qos_parse_number(text, &v, why, sizeof why))
        return say_usage(c, "group=%s", why);
    if (!v || v > QOS_CLASS_MAX)
        return say_usage(c, "group must be 1 to %u, not '%s'", QOS_CLASS_MAX, text);
    *group = (uint32_t)v;
    return DPCTL_OK;
}

bool
bw_is_group(const struct qos_entry *e)
{
    const struct qos_request *r = &e->config;
    return r->object_type == OFP_QOS_CLASS && r->class_id && r->class_id <= QOS_CLASS_MAX &&
           !e->parent_id;
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
        return say_memory(c);
    for (uint32_t i = 0; i < flows.n; i++) {
        const struct of_flow_stats *f = OF_AT(&flows, i, struct of_flow_stats);
        if (!qos_map_is_miss(f))
            out->v[out->n++] = (struct bw_member){f, qos_map_queue(f)};
    }
    qsort(out->v, out->n, sizeof *out->v, by_group);
    return DPCTL_OK;
}
