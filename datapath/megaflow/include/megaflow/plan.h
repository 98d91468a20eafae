/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the plan for a packet's key: what the kernel is to do with packets like it
 * (offload/offload.h), or why they stay with the workers.  Control thread, under RCU.
 *
 * A plan is the record of a dry run of the pipeline (dataplane/pipeline-trace.h): outputs, edits, groups, the
 * meter, drops.  What the run looked at becomes bits of the rule's mask, so every packet that finds the entry
 * would have gone the same way. */
#ifndef MEGAFLOW_PLAN_H
#define MEGAFLOW_PLAN_H

#include <dataplane/dp.h>
#include <offload/offload.h>
#include <table/flow-cache.h>

/* Why packets are not handled in the kernel.  R(name, sentence). */
#define OFFLOAD_REASONS(R)                                                                             \
    R(kind,                                                                                            \
      "the programs don't read such packets (802.3, odd extension headers), or fragments are dropped") \
    R(in_port, "they come in by a port that is not an interface with rings, or takes nothing in")      \
    R(shaped, "what comes in by the port has queues, and the kernel took no programs for these")       \
    R(controller, "they, or some of them, go to a controller")                                         \
    R(normal, "they go by OFPP_NORMAL, and their source or destination was not learnt yet")            \
    R(table, "they go through the tables again")                                                       \
    R(port_kind, "they go out by a port that is not an interface with rings (LOCAL, tap, pcap)")       \
    R(unknown_key, "they depend on what a pop uncovers, which their key doesn't have")                 \
    R(long_path, "they pass more tables than an entry can remember")                                   \
    R(set_field, "they get a field that the kernel's programs can't set")                              \
    R(action,                                                                                          \
      "they meet an action that the programs don't have (copied TTL, labels at --port-inside)")        \
    R(ttl, "their TTL runs out: controllers may want such packets")                                    \
    R(group_edits, "an output after a group sends them without the edits of the group's bucket")       \
    R(runs, "they run through more buckets, ports or drops than an entry counts")                      \
    R(ops, "they need more operations than an entry has")                                              \
    R(meter,                                                                                           \
      "a meter remarks, has over two bands, is a second one, or follows outputs, groups or tags")      \
    R(mask, "they depend on fields that the kernel's programs don't read")

#define OFFLOAD_REASON(name, text) OFFLOAD_WHY_##name,
enum offload_reason { OFFLOADED, OFFLOAD_REASONS(OFFLOAD_REASON) OFFLOAD_REASON_N };
extern const char *const offload_reason_name[OFFLOAD_REASON_N]; /* [OFFLOADED]: "offloaded" */
extern const char *const offload_reason_text[OFFLOAD_REASON_N];

#define OFFLOAD_RUNS 32 /* of buckets, outputs and drops that an entry counts */

/* Where the kernel meets a packet.  One whose port has queues for what enters (port_shaper) comes by twice. */
enum offload_stage { OFFLOAD_AT_PORT, OFFLOAD_BEHIND_QUEUES };

/* `added`, below, says how many bytes longer each packet (of a super-packet: each segment) is at
 * that place than when it came in.  Each place counts packets, and bytes + added * packets. */

struct offload_plan {
    struct offload_rule rule;

    /* The tables that it comes to.  flow and program NULL: the last one, where nothing matched. */
    uint32_t n_steps;
    struct offload_step {
        struct flow *flow;
        const struct program *program;
        uint8_t table;
        int16_t added;
    } step[CACHE_STEPS];

    /* 0: none.  Steps from `metered` on, runs, outputs and drops count only what the meter let
     * pass.  Packets count in the meter as they came in. */
    uint32_t meter_id;
    uint32_t metered;

    /* Groups: each run of one (bucket -1), and of a bucket. */
    uint32_t n_runs;
    struct offload_run {
        uint32_t group;
        int32_t bucket;
        int16_t added;
    } run[OFFLOAD_RUNS];

    uint32_t n_outs;
    struct offload_out {
        uint32_t port;
        uint32_t queue; /* where it goes; 0: by none */
        int16_t added;
        bool no_queue; /* set_queue's does not exist: to be counted in tx_no_queue */
    } out[OFFLOAD_RUNS];

    /* Where it, or a copy of it, is dropped. */
    uint32_t n_drops;
    struct offload_drop {
        enum drop_reason why;
        uint32_t port;  /* where it was to go; OFPP_ANY: nowhere */
        uint32_t group; /* DROP_group: the group that is missing or has no live bucket */
    } drop[OFFLOAD_RUNS];

    /* OFPP_NORMAL: what must stay learnt for the plan to hold.  in 0: nothing. */
    struct offload_stations {
        uint8_t src[6], dst[6];
        uint16_t vid;
        uint16_t in; /* where src is, in normal_find's numbers */
        uint16_t to; /* where dst is; 0: to all, as it is a group's address */
    } stations;

    /* At a port with queues for what enters: all that the rule does is to send it there.  What is above is only
     * what that depends on, and counts behind the queues. */
    bool queue_in;
    bool no_queue_in; /* set_queue's does not exist: to be counted in rx_no_queue */

    /* Whether any change of a port's state or config or of the set of ports, or any change of a
     * group, may concern the plan, not only those of the ports and groups above. */
    bool any_port, any_group;
};

/* Where a meter is, or is to be, among the kernel's; -1: there is no room.  The caller of
 * offload_plan_make fills the place; it is asked only for meters that fit (offload_meter_fits). */
struct offload_meters {
    int (*place)(void *ctx, const struct meter *m);
    void *ctx;
};

/* Whether the kernel's programs can do what the meter does. */
bool offload_meter_fits(const struct meter *m);

/* key: as a worker saw it when the packet came in (in_port included); the packet was not malformed.  OFFLOADED, or why not: `out` is then undefined. */
enum offload_reason offload_plan_make(struct dp *dp, const struct flow_key *key,
                                      enum offload_stage stage, const struct offload_meters *meters,
                                      struct offload_plan *out);

#endif
