/* SPDX-License-Identifier: Apache-2.0 */
#include "assembly.h"

#include <megaflow/megaflow.h>
#include <ports/ports.h>
#include <punt/capture.h>
#include <punt/fail.h>
#include <punt/packet-in.h>
#include <punt/packet-out.h>
#include <qos-netlink/blocking.h>
#include <queues/latency.h>
#include <queues/port-queues.h>
#include <queues/qos-notify.h>
#include <queues/service.h>
#include <requests/flows.h>
#include <requests/handlers.h>

#include <daemon/log.h>
#include <shared/rcu.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define SLICE_ARENA_MAX (1u << 20) /* a message that is decoded to see whom it concerns */

/* ------------------------------------------------------------------ what rooms ask each other */

static bool
port_exists(void *ctx, uint32_t no)
{
    const struct sw *sw = ctx;
    return sw->loading || sw_ports_find(sw, no) != NULL;
}

/* ------------------------------------------------------------------ making it */

static void
sweep_normal(void *ctx)
{
    struct sw *sw = ctx;
    uint64_t now = loop_now(sw->loop);
    normal_sweep(sw->dp.normal, (uint32_t)(now / 1000000000));
    sw_ports_forget_askers(sw);
    loop_timer_set(sw->sweep, now + NORMAL_SWEEP_S * UINT64_C(1000000000));
}

static void
between_flows(void *ctx)
{
    sw_ports_hear(ctx);
}

static int
make_tables(struct sw *sw)
{
    bool kernel = sw->offload != NULL;
    struct groups_ops gops = {
        .env = sw_compile_env(sw), .port_exists = port_exists, .kernel = kernel};
    gops.env.queue_ports = NULL; /* a slice's buckets output to its own ports only */
    sw->dp.groups = groups_new(sw->dp.n_workers, &gops);
    sw->dp.meters = meters_new(sw->dp.n_workers);
    struct tables_ops tops = {.env = sw_compile_env(sw),
                              .groups = sw->dp.groups,
                              .meters = sw->dp.meters,
                              .removed = sw_flow_removed,
                              .pause = between_flows,
                              .ctx = sw,
                              .kernel = kernel};
    sw->dp.normal = normal_new();
    sw->dp.group_fwd = sw->opt.reserved | DP_GROUP_STP;
    sw->dp.tables = tables_new(sw->opt.n_tables, sw->dp.n_workers, &tops);
    sw->dp.workers = calloc(sw->dp.n_workers, sizeof *sw->dp.workers);
    if (!sw->dp.groups || !sw->dp.meters || !sw->dp.normal || !sw->dp.tables || !sw->dp.workers)
        return -ENOMEM;
    tables_limit(sw->dp.tables, &sw->opt.limits);
    groups_limit(sw->dp.groups, &sw->opt.limits);
    meters_limit(sw->dp.meters, &sw->opt.limits);
    if (kernel)
        meters_share(sw->dp.meters, sw_offload_meters(sw));
    int err = loop_timer_new(sw->loop, sweep_normal, sw, &sw->sweep);
    if (!err)
        sweep_normal(sw);
    return err;
}

void
sw_set_leaf(struct sw *sw)
{
    const struct qos_sched *leaf = sw->opt.qos_leaf;
    int err = sw->opt.no_slicing ? 0 : qos_set_leaf(sw->qos, leaf, &sw->opt.qos_leaf_config);
    if (err)
        log_info(QOS, "queues get no %s by themselves (--leaf): %s", leaf->name,
                 err == -ENOMEM ? "out of memory" : "the kernel has none, or can't say");
}

/* The netlink thread lets the loop go on while the kernel works (task/task.h). */
static void
leave(void *ctx)
{
    const struct sw *sw = ctx;
    if (loop_is_turning(sw->loop))
        log_error(SWITCH, "a defect of the switch: its control thread asks the kernel itself, "
                          "and all else waits");
    loop_leave(sw->loop);
}

static void
back(void *ctx)
{
    loop_enter(((struct sw *)ctx)->loop);
}

static void
silent(void *ctx)
{
    sw_ports_look_again(ctx);
}

static int
make_kernel_side(struct sw *sw)
{
    const struct qos_events events = sw_ports_qos_events(sw);
    const struct qos_netlink_blocking hooks = {leave, back, silent, sw};
    qos_netlink_set_blocking(&hooks);
    int err = qos_netlink_new(&sw->kernel);
    if (!err)
        sw->kernel->observe = sw_qos_log;
    if (!err)
        err = qos_new(&sw->qos, sw->kernel, &events);
    if (!err)
        qos_set_foreign(sw->qos, sw->opt.qos_foreign);
    if (!err)
        sw_set_leaf(sw);
    if (!err)
        err = qos_link_open(&sw->link);
    if (!err)
        sw_kernel_ask(sw);
    return err ? err : sw_ports_watch(sw);
}

static void
end_of_turn(void *ctx)
{
    struct sw *sw = ctx;
    tables_tidy(sw->dp.tables);
    sw_offload_end_of_turn(sw);
    rcu_turn();
}

static void
connected(void *ctx, struct conn *c)
{
    sw_slices_tie(ctx, c);
    sw_fail_update(ctx);
    sw_misses_update(ctx);
}

static void
disconnected(void *ctx, struct conn *c)
{
    struct sw *sw = ctx;
    bundle_forget(c);
    sw_capture_forget(sw, c);
    sw_slices_untie(c);
    sw_fail_update(sw);
    sw_misses_update(sw);
}

static bool
sees(void *ctx, struct conn *c, struct of_bytes message)
{
    return sw_slices_see(ctx, c, message);
}

static void
unlocked(void *ctx)
{
    channel_go_on(((struct sw *)ctx)->channel);
}

static int
make_control(struct sw *sw)
{
    static const struct channel_ops ops = {.handle = sw_handle_message,
                                           .connected = connected,
                                           .disconnected = disconnected,
                                           .access = sw_request_access,
                                           .allow = sw_request_allowed,
                                           .blocks = sw_request_blocks,
                                           .later = sw_request_later,
                                           .sees = sees};
    int err = loop_new(&sw->loop);
    if (err)
        return err;
    loop_set_idle(sw->loop, end_of_turn, sw);
    bundle_room_init(&sw->bundles, sw->loop, &sw_bundle_ops, sw);
    of_arena_init(&sw->slice_arena, SLICE_ARENA_MAX);
    sw->started = loop_now(sw->loop);
    err = tasks_new(sw->loop, unlocked, sw, &sw->tasks);
    if (!err)
        err = sw_port_queues_init(sw);
    if (!err)
        err = sw_queue_replies_init(sw);
    if (!err)
        err = channel_new(&sw->channel, sw->loop, &ops, sw);
    if (!err)
        channel_set_options(sw->channel, &sw->opt.channel);
    if (!err)
        err = loop_timer_new(sw->loop, sw_flows_expire, sw, &sw->expiry);
    if (!err)
        err = sw_packet_outs_start(sw);
    return err ? err : sw_packet_in_start(sw);
}

static int
start_workers(struct sw *sw)
{
    for (unsigned i = 0; i < sw->dp.n_workers; i++) {
        int err = worker_start(&sw->dp, i, sw->packet_in_fd, &sw->dp.workers[i]);
        if (err)
            return err;
    }
    return 0;
}

static int
start_tasks(struct sw *sw)
{
    return tasks_start(sw->tasks);
}

static int
make_latency(struct sw *sw)
{
    const struct probes kernel = sw_offload_probes(sw);
    return sw_latency_open(sw, &kernel);
}

int
sw_new(const struct sw_options *opt, struct sw **out, char *why, size_t why_len)
{
    static const struct {
        const char *what;
        int (*make)(struct sw *);
    } steps[] = {
        {"the event loop", make_control},
        {"rtnetlink", make_kernel_side},
        {"the kernel's part", sw_offload_open},
        {"the thread for rtnetlink", start_tasks}, /* without the rights to load programs */
        {"the round trips", make_latency},
        {"the tables", make_tables},
        {"the thread for links", sw_liveness_start},
        {"the packet workers", start_workers},
    };
    struct sw *sw = calloc(1, sizeof *sw);
    if (!sw) {
        snprintf(why, why_len, "out of memory");
        return -ENOMEM;
    }
    sw->opt = *opt;
    sw->dp.n_workers = opt->n_workers;
    sw->dp.cache_entries = opt->cache_entries;
    sw->dp.busy_poll_us = opt->busy_poll_us;
    sw->miss_send_len = 128;
    snprintf(sw->dp_desc, sizeof sw->dp_desc, "%s", opt->desc.dp ? opt->desc.dp : SW_NAME);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        int err = steps[i].make(sw);
        if (!err)
            continue;
        snprintf(why, why_len, "cannot set up %s: %s", steps[i].what, strerror(-err));
        sw_free(sw);
        return err;
    }
    *out = sw;
    return 0;
}

static void
free_kernel_side(struct sw *sw)
{
    if (sw->watch_io)
        loop_io_del(sw->watch_io);
    if (sw->watch)
        qos_link_monitor_close(sw->watch);
    loop_timer_free(sw->sync_timer);
    loop_timer_free(sw->links_timer);
    if (sw->qos)
        qos_free(sw->qos);
    if (sw->link)
        qos_link_close(sw->link);
    if (sw->kernel)
        qos_netlink_free(sw->kernel);
}

/* Closing a packet socket waits for the kernel's RCU readers, some 10 ms each: the process's end
 * does that later. */
void
sw_halt(struct sw *sw)
{
    qos_netlink_set_blocking(NULL); /* the loop does not go on, so the netlink thread neither */
    channel_free(sw->channel);
    sw_offload_stop(sw);
    sw_ports_close_local(sw); /* a tap must be gone before it can be made again */
    sw_ports_disown_all(sw);
    for (unsigned i = 0; i < sw->dp.n_workers; i++)
        worker_stop(sw->dp.workers[i]);
    sw_liveness_stop(sw);
    sw_latency_free(sw);
    sw_offload_free(sw);
}

void
sw_free(struct sw *sw)
{
    tasks_stop(sw->tasks);
    qos_netlink_set_blocking(NULL);
    rcu_turn(); /* flow-removed messages that are still to be sent */
    sw_queue_replies_free(sw);
    if (sw->channel)
        channel_free(sw->channel); /* also lets go of flows that replies hold */
    bundle_room_free(&sw->bundles);
    sw_offload_stop(sw);
    if (sw->qos)
        sw_ports_close_all(sw);
    sw_liveness_stop(sw);
    for (unsigned i = 0; sw->dp.workers && i < sw->dp.n_workers; i++)
        if (sw->dp.workers[i])
            worker_stop(sw->dp.workers[i]);
    free(sw->dp.workers);
    if (sw->dp.tables)
        tables_free(sw->dp.tables);
    if (sw->dp.groups)
        groups_free(sw->dp.groups);
    if (sw->dp.meters)
        meters_free(sw->dp.meters);
    normal_free(sw->dp.normal);
    rcu_wait();
    free(sw->dp.kinds);
    sw_latency_free(sw);
    sw_offload_free(sw);
    sw_capture_free(sw);
    free_kernel_side(sw);
    sw_packet_in_stop(sw);
    sw_packet_outs_stop(sw);
    if (sw->expiry)
        loop_timer_free(sw->expiry);
    if (sw->sweep)
        loop_timer_free(sw->sweep);
    sw_port_queues_free(sw);
    sw_service_free(sw);
    slices_clear(&sw->slices);
    of_arena_free(&sw->slice_arena);
    tasks_free(sw->tasks);
    if (sw->loop)
        loop_free(sw->loop);
    free(sw);
}
