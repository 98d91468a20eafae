/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of packets for connections that subscribed to them by CAPTURE (docs/reference/extensions.md).
 *
 * Control thread: subscribers, each with a filter and limits.  Workers read all filters as one set
 * under RCU, and pass what matches on by a bounded ring of their own; a full ring loses the copy,
 * never the packet.  While nobody captures there are no rings, and a worker has one branch a batch.
 * Packets that leave are seen where port_tx says that its port is watched. */
#ifndef DATAPLANE_CAPTURE_H
#define DATAPLANE_CAPTURE_H

#include <oflib/messages.h>

#include <packet/drop-log.h>

#include <stdbool.h>
#include <stdint.h>

#define CAPTURE_MAX 8 /* subscribers */

struct port;
struct worker;

struct capture_filter {
    uint32_t what; /* OFPCAP_; 0: nobody's */
    uint32_t port_no, queue_id, reason;
    uint32_t snaplen;
};

/* All subscribers' filters; replaced as a whole. */
struct capture_set {
    uint32_t serial;
    uint32_t what; /* of all filters */
    struct capture_filter f[CAPTURE_MAX];
};

/* A captured packet, from a worker to the control thread; its first bytes follow. */
struct capture_record {
    struct packet_at at;
    uint64_t time;   /* ns since 1970 */
    uint32_t serial; /* of the set */
    uint32_t len;    /* the packet's */
    uint32_t n;      /* bytes here */
    uint16_t segment;
    uint16_t reason;
    uint8_t wanted; /* bit i: filter i matched */
    uint8_t point;  /* OFPCAP_ */
    bool unfinished;
    uint8_t data[];
};

/* Whether packets that leave by the port may be captured; set NULL: none are. */
static inline bool
capture_watches(const struct capture_set *set, uint32_t port_no)
{
    for (unsigned i = 0; set && i < CAPTURE_MAX; i++)
        if (set->f[i].what & OFPCAP_OUT &&
            (set->f[i].port_no == OFPP_ANY || set->f[i].port_no == port_no))
            return true;
    return false;
}

/* ------------------------------------------------------------------ workers */

/* Passes on a packet that somebody may capture.  reason: OFPCAP_NONE, or of OFPCAP_DROP */
void capture_packet(struct worker *w, enum ofp_capture point, uint16_t reason,
                    const struct packet_at *at, const struct packet_frame *frame);
/* What a port has just received. */
void capture_received(struct worker *w, const struct port *port, const struct packet *batch,
                      unsigned n);
/* Once a round: the worker takes the current set. */
void capture_begin_round(struct worker *w);

#endif
