/* SPDX-License-Identifier: Apache-2.0 */
#include <megaflow/megaflow.h>
#include <requests/flows.h>
#include <shared/reply.h>
#include <switch/switch.h>

/* ------------------------------------------------------------------ what actions may name */

/* A port may be added at any time, so any number that one can have is allowed (6.4). */
static bool
out_port_ok(void *sw, uint32_t no)
{
    return (no && no <= PORT_MAX) || (no >= OFPP_IN_PORT && no != OFPP_TABLE && no != OFPP_ANY);
}

static bool
group_exists(void *ctx, uint32_t id)
{
    const struct sw *sw = ctx;
    return groups_find(sw->dp.groups, id) != NULL;
}

static bool
meter_exists(void *ctx, uint32_t id)
{
    const struct sw *sw = ctx;
    return meters_find(sw->dp.meters, id) != NULL;
}

/* A queue that a slice chooses holds at its own ports, wherever the packet goes next. */
static const struct queue_ports *
bound_ports(void *ctx)
{
    const struct sw *sw = ctx;
    return sw->bound ? (const struct queue_ports *)(const void *)sw->bound_ports : NULL;
}

void
sw_bind_queues(struct sw *sw, const struct slice *s)
{
    sw->bound = s != NULL;
    if (!s)
        return;
    _Static_assert(SLICE_RANGES_MAX <= QUEUE_PORTS_MAX, "all ports of a slice fit");
    uint32_t *to = sw->bound_ports;
    *to++ = s->ports.n;
    for (unsigned i = 0; i < s->ports.n; i++) {
        *to++ = s->ports.v[i].first;
        *to++ = s->ports.v[i].last;
    }
}

struct compile_env
sw_compile_env(struct sw *sw)
{
    return (struct compile_env){.sw = sw,
                                .port_ok = out_port_ok,
                                .group_ok = group_exists,
                                .meter_ok = meter_exists,
                                .queue_ports = bound_ports};
}

/* ------------------------------------------------------------------ timeouts and FLOW_REMOVED */

#define EXPIRE_AT_ONCE 256

static enum task_progress
expire(void *ctx, uint64_t deadline)
{
    struct sw *sw = ctx;
    sw_offload_sync_lately(sw); /* flows whose packets the kernel handles are not idle */
    uint64_t now = loop_now(sw->loop), next;
    do
        next = tables_expire(sw->dp.tables, now, EXPIRE_AT_ONCE);
    while (next && next <= now && loop_clock() < deadline);
    if (next && next <= now)
        return TASK_MORE;
    if (next)
        loop_timer_set(sw->expiry, next);
    return TASK_OVER;
}

/* Not while a bundle is committed: the removals would be a part of its change set. */
void
sw_flows_expire(void *ctx)
{
    static const struct task_kind kind = {.needs = TABLES, .run = expire};
    struct sw *sw = ctx;
    task_queue(sw->tasks, &sw->expiry_task, &kind, sw);
}

void
sw_flow_describe(const struct sw *sw, const struct flow *f, struct of_oxm *oxms,
                 struct of_flow_stats *out)
{
    struct flow_key key;
    struct flow_counter n = tables_flow_counter(sw->dp.tables, f);
    *out = (struct of_flow_stats){.table_id = f->table_id,
                                  .priority = f->priority,
                                  .idle_timeout = f->idle_timeout,
                                  .hard_timeout = f->hard_timeout,
                                  .flags = f->flags,
                                  .cookie = flow_program(f)->cookie,
                                  .packet_count = n.packets,
                                  .byte_count = n.bytes,
                                  .match = {.v = oxms},
                                  .instructions = {.raw = program_wire(flow_program(f))}};
    split_duration(loop_now(sw->loop), f->created, &out->duration_sec, &out->duration_nsec);
    flow_key_of(f, &key);
    key_to_match(&key, &f->sub->mask, &out->match);
}

void
sw_flow_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
    struct sw *sw = ctx;
    struct of_oxm oxms[OXM_N];
    struct flow_key key;
    sw_offload_settle(sw); /* counters are final */
    struct flow_counter n = tables_flow_counter(sw->dp.tables, f);
    struct of_flow_removed r = {.cookie = flow_program(f)->cookie,
                                .priority = f->priority,
                                .reason = reason,
                                .table_id = f->table_id,
                                .idle_timeout = f->idle_timeout,
                                .hard_timeout = f->hard_timeout,
                                .packet_count = n.packets,
                                .byte_count = n.bytes,
                                .match = {.v = oxms}};
    split_duration(now, f->created, &r.duration_sec, &r.duration_nsec);
    flow_key_of(f, &key);
    key_to_match(&key, &f->sub->mask, &r.match);
    channel_async(sw->channel, ASYNC_FLOW_REMOVED, reason, OFPT_FLOW_REMOVED, &r);
}

bool
sw_slice_sees_flow(const struct sw *sw, const struct slice *s, const struct flow *f)
{
    struct of_oxm oxms[OXM_N];
    struct of_flow_stats described;
    if (!s || slice_set_has(&s->tables, f->table_id))
        return true;
    if (!slice_set_has(&s->shared, f->table_id))
        return false;
    sw_flow_describe(sw, f, oxms, &described);
    return slice_has_flow(s, f->table_id, &described.match);
}
