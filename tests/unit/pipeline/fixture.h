/* SPDX-License-Identifier: Apache-2.0 */
/* The real pipeline with one worker, whose ports are somebody else's lists, beside the oracle. */
#ifndef FIXTURE_H
#define FIXTURE_H

#include "random.h"

#include <dataplane/dp.h>

#define FIXTURE_TABLES 5
#define FIXTURE_TX     65536
#define FIXTURE_BATCH  6

struct port {
    const struct oracle_world *world;
    uint32_t no;
    bool not_kernel, shaped; /* for offload plans */
    bool half;               /* of a shaper; */
    int first_ifindex;       /* then port 0 has this one */
    uint32_t mtu;            /* 0: any frame fits */
    uint32_t most_queue;     /* higher ones don't exist; 0: all do */
    uint32_t super;          /* the longest super-packet of a queue; 0: any */
};

/* Of an entry's output with this queue. */
#define FIXTURE_QUEUE(q) ((uint64_t)(q) << 32 | 0x10000 | (q))
#define FIXTURE_IFINDEX  100 /* of port 0 */
#define FIXTURE_TO       200 /* of the queues for what enters by port 0 */
#define FIXTURE_FROM     300 /* where it comes out of these */

/* What the worker has queued: the bytes are looked at when the batch is over, as a real port
 * does. */
struct fixture_tx {
    uint32_t port, queue, n;
    const uint8_t *data;
    struct virtio_net_hdr vnet;
};

struct port_io {
    uint32_t n;
    struct fixture_tx tx[FIXTURE_TX];
};

struct fixture {
    struct oracle_world world;
    struct oracle_switch oracle;
    struct dp *dp;
    struct worker worker;
    struct port_io *io;
    struct port ports[ORACLE_PORTS];
    struct vlans vlans[ORACLE_PORTS];
    struct packet_pool *pool;
    uint64_t drops[DROP_N];
    struct drop_log drop_log;
    struct oracle_log got;
    struct of_arena arena; /* messages, which live as long as the fixture */
    uint64_t digest;       /* of all that came out of the real one */
    uint8_t *rooms[FIXTURE_BATCH];
    uint32_t n_rooms;
    struct frame shown[FIXTURE_BATCH];                      /* the batch, for whom it fails */
    uint64_t packets, outs, packet_ins, flow_mods, refused; /* how much was done */
    uint64_t traced, traced_out;
    uint64_t asked, in_vain, with_queue; /* previews: all; "goes" of what came to nothing; ... */
};

struct fixture *fixture_new(uint32_t cache_entries);
struct fixture *fixture_of_tables(uint32_t cache_entries, unsigned n_tables);
void fixture_free(struct fixture *fx);

/* Both switches.  `why` (of 256 bytes) is filled in where they differ: false. */
bool fixture_flow_mod(struct fixture *fx, const struct of_flow_mod *fm, char *why);
bool fixture_group_mod(struct fixture *fx, const struct of_group_mod *gm, char *why);
bool fixture_packet_out(struct fixture *fx, const struct of_packet_out *po, char *why);
bool fixture_receive(struct fixture *fx, const struct frame *f, uint32_t in_port, char *why);
/* What a port with queues for what enters would ask about the frame.  Between batches. */
struct preview fixture_preview(struct fixture *fx, const struct frame *f, uint32_t in_port);
void fixture_pass_time(struct fixture *fx, uint32_t seconds);

/* The message as it comes out of the codec. */
void *fixture_through_codec(struct fixture *fx, uint8_t type, const void *body);
/* A random flow-mod or group-mod; now and then a port changes, or time passes. */
bool fixture_change(struct fixture *fx, struct random_env *e, char *why);

/* What the switch says that it would do with the frame (trace/trace.h).  It is to change nothing:
 * false, with `why`. */
struct traced {
    struct oracle_log log;
    uint64_t drops[DROP_N];
};
bool fixture_trace(struct fixture *fx, const struct frame *f, uint32_t in_port, struct traced *out,
                   char *why);
/* Is that what came out, by the oracle's log from `from` on and by the drops? */
bool fixture_check_trace(const struct fixture *fx, const struct traced *t, uint32_t from,
                         const uint64_t *drops, char *why);
void fixture_traced_free(struct traced *t);

/* The end of a batch: is what came out the same? */
bool fixture_compare(struct fixture *fx, char *why);
bool fixture_compare_counters(struct fixture *fx, char *why);

/* Frames of the batch, flows, groups. */
void fixture_show(const struct fixture *fx);

#endif
