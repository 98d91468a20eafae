/* SPDX-License-Identifier: Apache-2.0 */
/* The switch: its options and what the control thread keeps.  Only the control thread uses it,
 * except `dp`, which workers read (dp.h). */
#ifndef SWITCH_SWITCH_H
#define SWITCH_SWITCH_H

#include <control/bundle.h>
#include <control/channel.h>
#include <dataplane/dp.h>

#include <shared/clock.h>
#include <slice/slice.h>
#include <switch/port.h>
#include <task/task.h>

#include <qos-netlink/kernel.h>
#include <qos-netlink/link.h>
#include <qos/model/model.h>

#define SW_NAME "ofqos"

/* Until when an answer that was read from the kernel is also given to others who ask: for as long
 * as reading it took the processor, at most 200 ms, so that reading takes at most half of the
 * time.  What is read quickly is read anew, even if the reading was interrupted by other
 * processes.  begun: sw_reading_clock() before. */
static inline uint64_t
sw_reading_clock(void)
{
    return clock_ns_of(CLOCK_THREAD_CPUTIME_ID);
}

static inline uint64_t
sw_read_counts_until(uint64_t begun)
{
    const uint64_t most = UINT64_C(200000000), took = sw_reading_clock() - begun;
    return clock_ns() + (took < TASK_TURN_NS / 2 ? 0 : took < most ? took : most);
}

struct buffers;
struct captures;
struct flow_list;
struct packet_outs;
struct port_catch_up;
struct service;
struct sw_latency;
struct sw_liveness;
struct sw_offload;
struct sw_cutter;

#define OFFLOAD_WHY_LEN 160

struct sw_offload_options {
    unsigned mode; /* SW_OFFLOAD_ */
    uint32_t entries;
    uint32_t linger_ms; /* entries hold so long after the process was killed; 0: they don't */
};

enum { SW_OFFLOAD_OFF, SW_OFFLOAD_AUTO };

#define SW_WIRES_MAX 16

/* Two ports that forward to each other while nobody serves them (megaflow/wire.h). */
struct sw_wire {
    char end[2][IFNAMSIZ];
    bool unshaped; /* past their queues */
};

#define SW_INSIDE_MAX 64

/* What the tables look into of packets that come in by a port. */
struct sw_inside {
    char port[IFNAMSIZ];
    uint8_t kinds; /* PACKET_INSIDE_ */
};

struct sw_options {
    uint64_t datapath_id;
    unsigned n_tables;
    unsigned n_workers;
    bool fanout;            /* all workers read each port, if its backend can share it out */
    uint32_t cache_entries; /* of each worker; 0: no cache */
    unsigned busy_poll_us;  /* AWAKE_AUTO, or how long workers stay awake for a packet */
    struct sw_offload_options offload;
    struct sw_wire wire[SW_WIRES_MAX];
    unsigned n_wires;
    struct sw_inside inside[SW_INSIDE_MAX];
    unsigned n_inside;
    const char *backend;    /* NULL, "packet", "pcap" */
    const char *local_port; /* name of the tap; NULL: none */
    bool force;             /* take interfaces that others have, too */
    bool no_slicing;        /* never change traffic control */
    unsigned no_latency;    /* 1: round trips are not measured */
    bool qos_keep;          /* leave the queues in the kernel at the end */
    enum qos_foreign qos_foreign;
    const struct qos_sched *qos_leaf; /* below a class without one (qos_set_leaf); NULL: nothing */
    struct qos_values qos_leaf_config;
    struct sw_desc {
        const char *mfr, *hw, *sw, *serial, *dp;
    } desc;            /* of OFPMP_DESC (7.3.5.1); NULL: our own */
    bool fail_open;    /* without a controller packets go by OFPP_NORMAL */
    uint16_t reserved; /* as dp.group_fwd */
    struct channel_options channel;
    struct limits limits;
};

/* N(name, name in the COUNTERS reply): what the control thread counts, once a switch. */
#define SW_COUNTERS(N)                                                                             \
    N(packet_outs_lost, "packet_out.lost")   /* too many waited for a worker */                    \
    N(packet_outs_empty, "packet_out.empty") /* without data and buffer */                         \
    N(standalone_times, "fail.standalone")   /* the last controller was lost, in mode open */      \
    N(links_not_followed, "qos.link_not_followed")    /* the kernel refused a new speed or MTU */  \
    N(packet_ins_unwanted, "packet_in.unheard")       /* no connection wanted them */              \
    N(buffers_replaced, "packet_in.buffers_replaced") /* before anybody used them */

struct sw_counters {
#define SW_COUNTER_MEMBER(name, text) uint64_t name;
    SW_COUNTERS(SW_COUNTER_MEMBER)
};

/* What was last read to answer questions about queues (requests/queue-reply.h). */
enum queue_reply_kind { QUEUE_REPLY_STATS, QUEUE_REPLY_CONFIG, QUEUE_REPLY_ENTRIES, QUEUE_REPLIES };
struct queue_reply {
    struct dump_shared *bytes; /* NULL: nothing */
    uint32_t port, queue;
    uint64_t stamp, until;
};

struct sw {
    struct sw_options opt;
    struct loop *loop;
    struct tasks *tasks;
    struct channel *channel;
    struct dp dp;
    uint64_t started; /* loop time, ns */
    struct sw_counters counters;
    struct drop_log *drop_log; /* of packets that the control thread drops */

    struct qos_kernel *kernel;
    struct qos *qos;
    struct qos_link *link;
    struct sw_liveness *liveness; /* the thread that watches links (liveness.c) */
    struct qos_link_monitor *watch;
    struct loop_io *watch_io;
    struct loop_timer *sync_timer;  /* begins sync_task */
    struct task sync_task;          /* reads again the queues that another program changed */
    struct task links_task;         /* follows events of links */
    struct loop_timer *links_timer; /* reports those that had to wait */
    uint32_t qos_changes;           /* the last serial number of QOS_CHANGED */

    struct sw_port *ports[PORT_MAX + 1];
    uint32_t n_ports; /* highest number in use */
    struct sw_port local;
    struct port_list *spare_list;   /* with room for dp.ports; see port-attach.c */
    struct port_catch_up *catch_up; /* one at a time (queues/port-queues.h) */

    char dp_desc[OFP_DESC_STR_LEN];
    uint16_t miss_send_len;
    bool controlled; /* a controller is connected, here or to a relay */
    /* A new process takes the switch over.  Returns only if that fails: -errno and a sentence.
     * NULL: not possible. */
    int (*restart)(struct sw *sw, char *why, size_t n);
    bool loading; /* a saved state: groups may watch ports that come later */

    struct flow_list *flow_list; /* of all flows, being sent to at least one peer; NULL */
    size_t flows_listed;         /* on all lists */
    struct service *service;     /* how queues are served; NULL: nobody has asked */
    struct sw_latency *latency;  /* how long packets take; NULL: it is not measured */
    struct loop_timer *expiry;   /* of the next flow with a timeout; begins expiry_task */
    struct task expiry_task;
    struct loop_timer *sweep; /* of what NORMAL learnt long ago */

    struct slices slices;
    struct conn_roles slice_roles[SLICES_MAX]; /* of each */
    struct of_arena slice_arena;               /* scratch space */
    bool bound;                                /* see sw_bind_queues; struct queue_ports */
    uint32_t bound_ports[1 + 2 * SLICE_RANGES_MAX];

    struct queue_reply queue_reply[QUEUE_REPLIES];
    struct loop_timer *queue_reply_timer;

    struct bundle_room bundles;

    /* RELOAD: reads the configuration file again.  0, or -errno with a sentence in `why`: nothing has
     * changed. */
    int (*reload)(void *ctx, char *why, size_t why_len);
    /* To be called when the interface has come of a port that was added without one
     * (sw_ports_expect), or that had lost it (again).  NULL: nobody wants to know. */
    void (*port_has_come)(void *ctx, const char *name, bool again);
    /* The i-th part of the configuration that was refused, with the reason; NULL: there is none. */
    const char *(*config_refused)(void *ctx, unsigned i);
    void *config_ctx; /* of all three */

    struct packet_outs *outs;
    int packet_in_fd;
    struct loop_io *packet_in_io;
    struct buffers *buffers;
    struct captures *captures;         /* NULL: nobody has captured yet */
    struct sw_cutter *cutter;          /* of super-packets; NULL: none */
    struct sw_offload *offload;        /* what the kernel does; NULL: nothing, */
    char offload_why[OFFLOAD_WHY_LEN]; /* and why */
};

#endif
