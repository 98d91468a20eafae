/* SPDX-License-Identifier: Apache-2.0 */
/* The packet side as workers see it.  Workers read it under RCU; only the control thread changes
 * it. */
#ifndef DATAPLANE_DP_H
#define DATAPLANE_DP_H

#include <dataplane/capture.h>
#include <dataplane/offload-sample.h>
#include <dataplane/worker-awake.h>
#include <dataplane/worker-watch.h>
#include <group/groups.h>
#include <group/meters.h>
#include <latency/probes.h>
#include <normal/normal.h>
#include <normal/vlans.h>
#include <port/port.h>
#include <shared/atomics.h>
#include <shared/ring.h>
#include <table/tables.h>

#include <pthread.h>
#include <string.h>

/* All ports, for flooding and receiving; replaced as a whole. */
struct port_list {
    uint32_t n;
    struct port *v[];
};

/* What becomes of packets that the tables miss (fail.c). */
enum standalone {
    STANDALONE_NO,     /* they are dropped */
    STANDALONE_MISSES, /* they go by OFPP_NORMAL */
    STANDALONE_LEFT,   /* and so do those that table-miss entries send to the controllers */
};

struct dp {
    struct tables *tables;
    struct groups *groups;
    struct meters *meters;
    struct normal *normal;
    struct vlans *vlans[PORT_MAX + 1]; /* RCU; of NORMAL; NULL: the port has all */
    uint16_t group_fwd;      /* bits: addresses 01:80:c2:00:00:00 to 0f that NORMAL forwards */
    struct port_list *ports; /* RCU */
    unsigned watch_serial;   /* changes with the ports' rings; before the grace period after which
                              * one is closed */
    struct port *by_number[PORT_MAX + 1]; /* RCU; 0 is not used */
    struct port *local;                   /* RCU; OFPP_LOCAL, or NULL */
    uint32_t select_seed;                 /* of select groups' hashes: this switch's own */
    uint16_t frag;                        /* OFPC_FRAG_ */
    bool tell_misses;   /* a controller of OpenFlow 1.0 is told of packets that find no flow */
    uint8_t standalone; /* enum standalone */
    bool filled;        /* workers found a ring half full that may grow */
    unsigned n_workers;
    uint32_t cache_entries; /* of each worker; 0: no cache */
    uint32_t busy_poll_us;  /* AWAKE_AUTO, or how long a worker stays awake for a packet */
    struct worker **workers;
    struct capture_set *capture; /* RCU; NULL: nobody captures */
    struct probes probes;        /* of round trips; set before workers start */
    struct offload_kinds
        *kinds; /* RCU; what workers ask the control thread for; NULL: nothing, as no
                                  * packets are handled in the kernel (offload-sample.h) */
};

/* The port of that number (1 to PORT_MAX, OFPP_LOCAL), or NULL. */
static inline struct port *
dp_port(const struct dp *dp, uint32_t no)
{
    if (no == OFPP_LOCAL)
        return rcu_dereference(dp->local);
    return no <= PORT_MAX ? rcu_dereference(dp->by_number[no]) : NULL;
}

/* What the tables look into of packets that come in by this port (PACKET_INSIDE_). */
static inline uint8_t
dp_inside(const struct dp *dp, uint32_t in_port)
{
    const struct port *p = dp_port(dp, in_port);
    return p ? port_inside(p) : 0;
}

static inline const struct vlans *
dp_vlans(const struct dp *dp, uint32_t no)
{
    return no <= PORT_MAX ? rcu_dereference(dp->vlans[no]) : NULL;
}

#define DP_GROUP_STP 1 /* of group_fwd: always, as this is no 802.1D bridge */

/* NORMAL doesn't forward frames to this address, as a bridge doesn't (IEEE 802.1D, 7.12.6; its spanning
 * tree's own pass where it has none). */
static inline bool
dp_keeps(const struct dp *dp, const uint8_t eth_dst[6])
{
    static const uint8_t group[5] = {0x01, 0x80, 0xc2, 0, 0};
    return eth_dst[0] == group[0] && !memcmp(eth_dst, group, sizeof group) && eth_dst[5] < 16 &&
           !(load_relaxed(&dp->group_fwd) >> eth_dst[5] & 1);
}

/* ------------------------------------------------------------------ workers */

struct worker {
    unsigned id;
    struct dp *dp;
    struct port_io *io;
    struct flow_cache *cache; /* NULL: every packet is looked up in the tables */
    uint64_t *drops;          /* DROP_N */
    struct drop_log *drop_log;
    uint64_t now;            /* ns, monotonic; as of this batch */
    uint32_t flow_now;       /* the same by flow_clock */
    unsigned rounds;         /* over its ports; shows others that it does not hang */
    uint64_t packets;        /* received, and packet-outs */
    uint64_t batches;        /* rounds that had packets */
    uint64_t wakeups;        /* from sleep */
    struct ring *packet_ins; /* struct packet_in_record by in_port, to the control thread */
    int control_fd;          /* eventfd that wakes it */
    uint8_t standalone;      /* dp->standalone as of this round */
    bool to_tell; /* control_fd has not been written yet for some packet-ins or requests */
    const struct capture_set *capture; /* as of this round */
    struct ring *captured; /* struct capture_record, to the control thread; NULL: none */
    uint64_t capture_lost[CAPTURE_MAX]; /* by subscriber: that ring was full */
    const struct offload_kinds *kinds;  /* dp->kinds as of this round; NULL while it captures */
    struct offload_sample *sample;
    struct ring *jobs;    /* struct packet_out_job, from the control thread */
    int wake_fd;          /* eventfd that wakes this worker */
    uint32_t round_bytes; /* received in this round */
    struct awake awake;
    struct watch watch;
    struct share_clocks clocks;
    uint64_t began;       /* when the last batch ended */
    struct share outs;    /* of packet-outs */
    uint32_t outs_put;    /* into `jobs`; the control thread's */
    uint32_t outs_sent;   /* out of it */
    uint32_t outs_last;   /* the number of the last one sent */
    bool outs_dear;       /* they take long */
    bool outs_waited_for; /* the control thread wants to know when some are sent */
    unsigned watched;     /* the watch_serial that `watch` is up to date with, if `watching` */
    bool watching;
    bool stop;
    pthread_t thread;
};

/* A packet for the controllers; the frame follows. */
struct packet_in_record {
    uint32_t in_port, in_phy_port;
    uint64_t metadata, tunnel_id;
    uint64_t cookie;
    uint8_t table_id;
    uint8_t reason; /* OFPR_ */
    uint16_t max_len;
    uint32_t len;
    uint8_t data[];
};

/* A packet-out; the program's ownership goes along, the frame follows. */
struct packet_out_job {
    struct program *program;
    uint32_t in_port; /* OFPP_CONTROLLER where there is none */
    uint32_t number;
    uint32_t len;
    uint8_t data[];
};

int worker_start(struct dp *dp, unsigned id, int control_fd, struct worker **out);
void worker_stop(struct worker *w); /* joins and frees */
void worker_wake(struct worker *w);
void worker_wake_all(struct dp *dp); /* the ports' descriptors have changed */
uint64_t
worker_cpu_ns(const struct worker *w); /* processor time so far, user and system; 0: unknown */

/* Control thread: passes a packet and its program to the worker; false if its ring is full.  Numbers
 * rise. */
bool worker_packet_out(struct worker *w, struct program *program, uint32_t in_port,
                       const uint8_t *data, uint32_t len, uint32_t number);
/* Control thread: whether the ring has room for one of this length, and fewer than `most` wait in it;
 * fewer than `dear` where the last ones took long. */
bool worker_has_room(const struct worker *w, uint32_t len, unsigned most, unsigned dear);
/* Control thread: whether all up to this number have been sent. */
bool worker_has_sent(const struct worker *w, uint32_t number);

/* ------------------------------------------------------------------ the pipeline */

void pipeline_packet(struct worker *w, struct packet *p);
void pipeline_packet_out(struct worker *w, struct packet *p, const struct program *actions);

/* What the tables would do with a packet that has just come in, if meters let it pass. */
struct preview {
    bool goes;      /* it would leave the switch, by a port or to the controllers */
    bool has_queue; /* by a set_queue */
    uint32_t queue; /* the first set_queue's */
};

/* Sends, counts, meters and learns nothing, and leaves the packet as it is. */
struct preview pipeline_preview(struct worker *w, struct packet *p);

/* A round, or a batch, begins. */
static inline void
worker_set_clock(struct worker *w, uint64_t now)
{
    w->now = w->drop_log->now = now;
    w->flow_now = flow_clock(now);
}

/* Counts a drop, a super-packet as its segments, and may keep a sample.  p: the packet as it was
 * then. */
static inline void
worker_drop(struct worker *w, enum drop_reason why, const struct packet *p,
            const struct packet_at *at)
{
    uint32_t segments = packet_segments(p);
    counter_add(&w->drops[why], segments);
    drop_log_note(w->drop_log, why, at,
                  &(struct packet_frame){p->data, p->len, segments, &p->vnet});
}

/* The same for a packet that has met no flow yet. */
static inline void
worker_drop_early(struct worker *w, enum drop_reason why, const struct packet *p)
{
    struct packet_at at = PACKET_AT_NONE;
    at.in_port = p->in_port;
    worker_drop(w, why, p, &at);
}

#endif
