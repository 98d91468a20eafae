/* SPDX-License-Identifier: Apache-2.0 */
/* COUNTERS (docs/reference/extensions.md): what was dropped, refused and lost, by reason. */
#include <admission/request.h>
#include <dataplane/worker-stack.h>
#include <megaflow/cut.h>
#include <megaflow/megaflow.h>
#include <megaflow/plan.h>
#include <ports/ports.h>
#include <punt/capture.h>
#include <queues/latency.h>
#include <table/flow-cache.h>

#include <daemon/log.h>

#include <stdio.h>

static void
put(struct of_wr *d, const char *room, const char *name, uint64_t value)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%s%s", room, name);
    size_t start = d->len;
    of_wr16(d, (uint16_t)(16 + (n + 8) / 8 * 8));
    of_wr_add(d, 6);
    of_wr64(d, value);
    of_wr_bytes(d, text, (size_t)n + 1);
    of_wr_align(d, start, 8);
}

static void
put_drops(struct of_wr *d, const struct sw *sw)
{
#define DROP_NAME(name, ...) #name,
    static const char *const names[] = {DROP_ROWS(DROP_NAME)};
    for (int i = 0; i < DROP_N; i++)
        put(d, "drop.", names[i], sw_drops(sw, (enum drop_reason)i));
    put(d, "capture.", "sent", sw_capture_sent(sw));
    put(d, "capture.", "lost", sw_capture_lost(sw));
    struct sw_cutter_counts supers = sw_cutter_counts(sw);
    put(d, "super_packets.", "cut", supers.cut);
    put(d, "super_packets.", "lost", supers.lost);
    put(d, "super_packets.", "around", supers.around);
    put(d, "super_packets.", "back", supers.back);
    put(d, "super_packets.", "whole", supers.whole);
    put(d, "latency.", "lost", sw_latency_lost(sw));
#define PUT_SWITCH(name, text) put(d, "", text, sw->counters.name);
    SW_COUNTERS(PUT_SWITCH)
    /* Whoever knows what the switch had reads two numbers instead of 40,000 flows and 20,000 queues. */
    put(d, "changes.", "flows", tables_revision(sw->dp.tables));
    put(d, "changes.", "queues", qos_stamp(sw->qos));
}

/* What the kernel does; nothing without the kernel's part. */
static void
put_kernel(struct of_wr *d, const struct sw *sw)
{
    struct sw_offload_counts n = sw_offload_counts(sw);
    if (!sw->offload)
        return;
    put(d, "kernel_", "entries", n.kernel.entries);
    put(d, "kernel_", "masks", n.kernel.masks);
#define PUT_KERNEL(name) put(d, "kernel_", #name, n.kernel.name);
    OFFLOAD_COUNTS(PUT_KERNEL)
    put(d, "kernel_", "wired", n.kernel.wired);
#define PUT_OFFLOAD(name) put(d, "kernel_", #name, n.name);
    SW_OFFLOAD_COUNTS(PUT_OFFLOAD)
    for (unsigned i = 1; i < SW_OFFLOAD_N; i++)
        put(d, "kernel_refused.", sw_offload_reason_name(i), n.refused[i]);
}

/* Of processors that came to do anything: there may be 256. */
static void
put_processors(struct of_wr *d, const struct sw *sw)
{
    struct offload_counts n;
    for (uint32_t i = 0; sw_offload_counts_of(sw, i, &n); i++) {
        uint64_t left = n.misses + n.other + n.held + n.too_long;
        char room[40];
        if (!n.hits && !left)
            continue;
        snprintf(room, sizeof room, "processor.%u.", (unsigned)i);
        put(d, room, "hits", n.hits);
        put(d, room, "left", left);
    }
}

/* The stack of the worker that used most of it. */
static void
put_stacks(struct of_wr *d, const struct sw *sw)
{
    size_t most = 0;
    for (unsigned w = 0; w < sw->dp.n_workers; w++) {
        size_t used = worker_stack_used(sw->dp.workers[w]->thread);
        most = used > most ? used : most;
    }
    put(d, "worker.", "stack_used", most);
    put(d, "worker.", "stack_size", WORKER_STACK);
}

/* One worker: what it has done, and what its flow cache has. */
static void
put_worker(struct of_wr *d, const struct worker *w)
{
    char room[32];
    snprintf(room, sizeof room, "worker.%u.", w->id);
    put(d, room, "cpu_ns", worker_cpu_ns(w));
    put(d, room, "packets", counter_read(&w->packets));
    put(d, room, "batches", counter_read(&w->batches));
    put(d, room, "wakeups", counter_read(&w->wakeups));
    put(d, room, "wake_ns", load_relaxed(&w->awake.wake_ns));
    put(d, room, "waited_ns", counter_read(&w->awake.waited));
    if (!w->cache)
        return;
    struct flow_cache_counts n = flow_cache_counts(w->cache);
    put(d, room, "cache_hits", n.hits);
    put(d, room, "cache_misses", n.misses);
    put(d, room, "cache_bypassed", n.bypassed);
    put(d, room, "cache_withdrawn", n.withdrawn);
    put(d, room, "cache_masks", n.masks);
    put(d, room, "cache_used", n.used);
    put(d, room, "cache_entries", w->dp->cache_entries);
}

static void
put_workers(struct of_wr *d, const struct sw *sw)
{
    uint64_t wakeups = 0, closed = 0;
    for (unsigned i = 0; i < sw->dp.n_workers; i++) {
        const struct worker *w = sw->dp.workers[i];
        wakeups += counter_read(&w->wakeups);
        closed += counter_read(&w->watch.closed);
    }
    put(d, "worker.", "wakeups", wakeups);
    put(d, "worker.", "closed_descriptors", closed);
    for (unsigned i = 0; i < sw->dp.n_workers; i++)
        put_worker(d, sw->dp.workers[i]);
}

static void
put_channel(struct of_wr *d, const struct sw *sw)
{
    const struct channel_counters *c = channel_counters(sw->channel);
#define PUT_CHANNEL(name) put(d, "channel.", #name, c->name);
    CHANNEL_COUNTERS(PUT_CHANNEL, PUT_CHANNEL)
    for (unsigned i = 0; i < CHANNEL_ERROR_TYPES; i++) {
        char name[32];
        snprintf(name, sizeof name, "errors_out.type_%u", i);
        if (c->errors_out_by_type[i])
            put(d, "channel.", name, c->errors_out_by_type[i]);
    }
}

/* What each present connection has missed. */
static void
put_connections(struct of_wr *d, const struct sw *sw)
{
    for (const struct conn *c = NULL; (c = channel_next(sw->channel, c));) {
        const struct channel_counters *n = conn_counters(c);
        char room[200];
        if (!conn_lost(c))
            continue;
        snprintf(room, sizeof room, "connection.%s.", conn_peer(c));
#define PUT_LOST(name) put(d, room, #name, n->name);
        CHANNEL_COUNTERS(CHANNEL_COUNTER_SKIP, PUT_LOST)
    }
}

static void
put_ports(struct of_wr *d, const struct sw *sw)
{
    uint32_t no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no) {
        struct port_counters n;
        char room[32];
        sw_port_read_counters(p, &n);
        snprintf(room, sizeof room, "port.%s.", p->name);
#define PUT_PORT(name) put(d, room, #name, n.name);
        PORT_COUNTERS(PUT_PORT, PUT_PORT, PUT_PORT)
    }
}

static void
put_slices(struct of_wr *d, const struct sw *sw)
{
    for (size_t i = 0; i < sw->slices.n; i++) {
        char room[64];
        snprintf(room, sizeof room, "slice.%s.", sw->slices.v[i]->name);
        put(d, room, "refused", sw->slices.v[i]->refused);
    }
}

static int
handle_counters(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct of_wr w = of_wr_grow(16u << 20);
    put_drops(&w, sw);
    put_kernel(&w, sw);
    put_processors(&w, sw);
    put(&w, "log.", "lost", log_lost());
    put_stacks(&w, sw);
    put_workers(&w, sw);
    put_channel(&w, sw);
    put_connections(&w, sw);
    put_ports(&w, sw);
    put_slices(&w, sw);
    return conn_dump_encoded(c, m, &w, conn_dump_len16);
}

const struct request request_counters = {.access = ACCESS_READ, .run = handle_counters};
