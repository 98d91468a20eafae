/* SPDX-License-Identifier: Apache-2.0 */
/* The real pipeline with one worker, whose ports are somebody else's lists, beside the slow one. */
#ifndef RIG_H
#define RIG_H

#include "chance.h"

#include <switch/dp.h>

#define RIG_TABLES 5
#define RIG_TX     65536
#define RIG_BATCH  6

struct port {
    const struct slow_world *world;
    uint32_t no;
};

/* What the worker has queued: the bytes are looked at when the batch is over, as a real port
 * does. */
struct rig_tx {
    uint32_t port, queue, n;
    const uint8_t *data;
    struct virtio_net_hdr vnet;
};

struct worker_io {
    uint32_t n;
    struct rig_tx tx[RIG_TX];
};

struct rig {
    struct slow_world world;
    struct slow_switch slow;
    struct dp *dp;
    struct worker worker;
    struct worker_io *io;
    struct port ports[SLOW_PORTS];
    struct packet_pool *pool;
    uint64_t drops[DROP_N];
    struct slow_log got;
    struct of_arena arena; /* messages, which live as long as the rig */
    uint64_t digest;       /* of all that came out of the real one */
    uint8_t *rooms[RIG_BATCH];
    uint32_t n_rooms;
    struct frame shown[RIG_BATCH];                          /* the batch, for whom it fails */
    uint64_t packets, outs, packet_ins, flow_mods, refused; /* how much was done */
    uint64_t asked, in_vain, with_queue; /* outlooks: all; "goes" of what came to nothing; ... */
};

struct rig *rig_new(uint32_t cache_entries);
void rig_free(struct rig *r);

/* Both switches.  `why` (of 256 bytes) is filled in where they differ: false. */
bool rig_flow_mod(struct rig *r, const struct of_flow_mod *fm, char *why);
bool rig_group_mod(struct rig *r, const struct of_group_mod *gm, char *why);
bool rig_packet_out(struct rig *r, const struct of_packet_out *po, char *why);
bool rig_receive(struct rig *r, const struct frame *f, uint32_t in_port, char *why);
void rig_pass_time(struct rig *r, uint32_t seconds);

/* The end of a batch: is what came out the same? */
bool rig_compare(struct rig *r, char *why);
bool rig_compare_counters(struct rig *r, char *why);

/* Frames of the batch, flows, groups. */
void rig_show(const struct rig *r);

#endif
