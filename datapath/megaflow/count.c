/* SPDX-License-Identifier: Apache-2.0 */
/* Adds what entries have counted to OpenFlow's counters.  The kernel counts packets as they came
 * in, super-packets as their segments; what an entry does to them gives the rest. */
#include "state.h"

/* offload_used may be that much behind. */
#define USED_SLACK_NS UINT64_C(64000000)

struct more {
    uint64_t packets, bytes;
};

/* The bytes at a place where each packet is `added` bytes longer than when it came in. */
static uint64_t
bytes_at(struct more m, int16_t added)
{
    return m.bytes + m.packets * (uint64_t)(int64_t)added;
}

static void
count_path(struct sw_offload *f, const struct entry *e, struct more came, struct more passed,
           uint64_t used)
{
    struct tables *t = f->sw->dp.tables;
    for (unsigned i = 0; i < e->n_steps; i++) {
        struct more m = i < e->metered || !e->meter_id ? came : passed;
        struct flow *flow = e->step[i].flow;
        tables_kernel_lookups(t, e->table[i], m.packets, flow != NULL);
        if (flow)
            tables_kernel_flow(t, flow, m.packets, bytes_at(m, e->added[i]), used);
    }
}

static void
count_groups(struct sw_offload *f, const struct entry *e, struct more m)
{
    for (unsigned i = 0; i < e->n_runs; i++)
        if (e->run[i].group)
            groups_kernel_count(f->sw->dp.groups, e->run[i].group, e->run[i].bucket, m.packets,
                                bytes_at(m, e->run[i].added));
}

/* The band with the highest rate that is exceeded drops the packet.  With two bands the kernel
 * doesn't tell which one it was; the one with the lower rate is exceeded more often. */
static int
band_of(const struct meter *m)
{
    int lowest = -1;
    for (uint32_t i = 0; i < m->n_bands; i++)
        if (lowest < 0 || m->bands[i].rate < m->bands[lowest].rate)
            lowest = (int)i;
    return lowest;
}

static void
count_meter(struct sw_offload *f, const struct entry *e, struct more came, struct more dropped)
{
    struct meters *meters = f->sw->dp.meters;
    int band = e->meter ? band_of(e->meter) : -1;
    f->drops[DROP_meter] += dropped.packets;
    if (!e->meter)
        return;
    meters_kernel_count(meters, e->meter, -1, came.packets, came.bytes);
    if (band >= 0 && dropped.packets)
        meters_kernel_count(meters, e->meter, band, dropped.packets, dropped.bytes);
}

static void
count_port(struct sw_offload *f, uint32_t no, const struct port_counters *more)
{
    const struct sw_port *p = sw_ports_find(f->sw, no);
    if (p && p->port)
        port_count_kernel(p->port, more);
}

static void
count_came(struct sw_offload *f, const struct entry *e, struct more came)
{
    count_port(f, e->in_port,
               &(struct port_counters){.rx_packets = came.packets, .rx_bytes = came.bytes});
}

/* The rest counts when the packets come out of their queues. */
static void
count_queued(struct sw_offload *f, const struct entry *e, struct more came)
{
    const struct sw_port *p = sw_ports_find(f->sw, e->in_port);
    const struct port_shaper *s = p && p->port ? port_shaper(p->port) : NULL;
    count_came(f, e, came);
    if (s && e->no_queue_in)
        port_count_kernel(s->to, &(struct port_counters){.tx_no_queue = came.packets});
}

static void
count_ports(struct sw_offload *f, const struct entry *e, struct more came, struct more m)
{
    if (e->stage == OFFLOAD_AT_PORT)
        count_came(f, e, came);
    for (unsigned i = 0; i < e->n_outs; i++) {
        const struct entry_out *o = &e->out[i];
        struct port_counters more = {.tx_packets = m.packets,
                                     .tx_bytes = bytes_at(m, o->added),
                                     .tx_no_queue = o->no_queue ? m.packets : 0};
        count_port(f, o->port, &more);
    }
    for (unsigned i = 0; i < e->n_drops; i++)
        f->drops[e->drop[i].why] += m.packets;
}

void
offload_count(struct sw_offload *f, struct entry *e)
{
    struct offload_hits now = offload_read(f->o, e->id), *was = &e->read;
    struct more came = {now.packets - was->packets, now.bytes - was->bytes};
    struct more dropped = {now.dropped - was->dropped, now.dropped_bytes - was->dropped_bytes};
    struct more passed = {came.packets - dropped.packets, came.bytes - dropped.bytes};
    e->used = offload_used(f->o, e->id);
    e->looked = loop_clock();
    if (!came.packets && !dropped.packets)
        return;
    *was = now;
    if (e->queue_in) {
        count_queued(f, e, came);
        return;
    }
    count_path(f, e, came, passed, e->used);
    if (e->meter_id)
        count_meter(f, e, came, dropped);
    count_groups(f, e, passed);
    count_ports(f, e, came, passed);
}

/* Whether no packet has come since it was last read: then `used` is unchanged. */
static bool
is_quiet(const struct sw_offload *f, const struct entry *e)
{
    return offload_used(f->o, e->id) == e->used && e->looked > e->used + USED_SLACK_NS;
}

void
offload_sync(struct sw_offload *f)
{
    uint64_t begun = sw_reading_clock();
    for (uint32_t i = 0; i < f->n_live; i++)
        if (!is_quiet(f, f->live[i]))
            offload_count(f, f->live[i]);
    f->synced_until = sw_read_counts_until(begun);
}

void
offload_sync_lately(struct sw_offload *f)
{
    if (loop_clock() >= f->synced_until)
        offload_sync(f);
}

void
sw_offload_sync(struct sw *sw)
{
    if (sw->offload)
        offload_sync(sw->offload);
}

void
sw_offload_sync_lately(struct sw *sw)
{
    if (sw->offload)
        offload_sync_lately(sw->offload);
}

/* ------------------------------------------------------------------ what others read */

uint64_t
sw_drops(const struct sw *sw, enum drop_reason why)
{
    uint64_t sum = sw->offload ? sw->offload->drops[why] : 0;
    if (why == DROP_no_controller)
        sum += sw->counters.packet_ins_unwanted;
    for (unsigned i = 0; i < sw->dp.n_workers; i++)
        sum += counter_read(&sw->dp.workers[i]->drops[why]);
    return sum;
}

struct sw_offload_counts
sw_offload_counts(const struct sw *sw)
{
    struct sw_offload_counts c = {0};
    if (sw->offload) {
        c = sw->offload->counts;
        c.kernel = offload_counts(sw->offload->o);
    }
    return c;
}

bool
sw_offload_counts_of(const struct sw *sw, uint32_t processor, struct offload_counts *out)
{
    return sw->offload && offload_counts_of(sw->offload->o, processor, out);
}

static bool
each_entry(struct sw_offload *f, bool (*each)(void *ctx, const struct sw_offload_view *v),
           void *ctx)
{
    for (uint32_t i = 0; i < f->n_live; i++) {
        const struct entry *e = f->live[i];
        struct sw_offload_view v = {.key = e->key,
                                    .mask = e->mask,
                                    .hits = e->read,
                                    .used = e->used,
                                    .created = e->created,
                                    .meter_id = e->meter_id,
                                    .op = e->op,
                                    .n_ops = e->n_ops};
        if (!each(ctx, &v))
            return false;
    }
    return true;
}

void
sw_offload_each(struct sw *sw, bool (*each)(void *ctx, const struct sw_offload_view *v), void *ctx)
{
    struct sw_offload *f = sw->offload;
    if (!f)
        return;
    offload_sync_lately(f);
    if (!each_entry(f, each, ctx))
        return;
    for (unsigned i = 0; i < OFFLOAD_REFUSED; i++) {
        const struct refusal *r = &f->refusal[i];
        struct sw_offload_view v = {.why = r->why, .key = r->key};
        bool told = r->stage == OFFLOAD_BEHIND_QUEUES; /* the port's request has the same reason */
        if (!told && r->until > loop_now(f->sw->loop) && !each(ctx, &v))
            return;
    }
}
