/* SPDX-License-Identifier: Apache-2.0 */
/* Receive rings of AF_PACKET sockets, as af-packet.c reads them. */
#ifndef PORT_AF_PACKET_H
#define PORT_AF_PACKET_H

#include "backend.h"

#define RING_LEAST (128 << 10)
#define RING_FIRST (4 << 20) /* of one that grows */

struct cursor {
    uint8_t *slot;
    uint32_t in_block, block;
};

struct rx_ring {
    int fd;
    uint8_t *base;
    size_t bytes;
    uint32_t block_bytes, slot_bytes, per_block, n_blocks, n_slots;
    struct cursor head; /* next to read */
    struct cursor tail; /* next to return to the kernel */
    uint32_t held;      /* slots between them */
    bool hears_itself;  /* the kernel has no PACKET_IGNORE_OUTGOING: look at sll_pkttype */
    struct backend_arena arena;

    /* While this ring takes another one's place (af-packet-grow.c). */
    struct rx_ring *before; /* is read first; the worker sets it to NULL when it is done with it */
    bool ended;             /* of `before`: nothing comes any more */
    bool grows;             /* it may be replaced by a larger one */
    bool half_full;         /* it was, when the worker looked; port_is_filling resets it */
};

/* The properties of a ring, which depend neither on its interface nor on its port. */
struct packet_ring_want {
    size_t bytes;  /* about; fewer where memory is in pieces */
    size_t copies; /* of long frames beside the ring, at most */
    uint32_t slot;
};

/* Makes a ring that is not bound to an interface yet.  The kernel waits some 10 ms for its RCU
 * readers.  -errno. */
int packet_ring_new(const struct packet_ring_want *want, struct rx_ring **out, char *why,
                    size_t why_len);
int packet_ring_free(struct rx_ring *r); /* returns its socket, for backend_close_later */
int packet_set_int(int fd, int level, int option, int value);
int packet_bind(int fd, int ifindex, uint16_t protocol);

/* So many rings does the port have. */
unsigned packet_rings(const struct port *p);
/* Its rings as they are to be; with all memory that the port may have, or with what it begins with. */
struct packet_ring_want packet_ring_wanted(const struct port *p, bool grown);
/* A filter drops all that it would get, until it gets another one. */
int packet_ring_block(const struct rx_ring *r);
/* From now on the ring receives what comes in by the interface. */
int packet_ring_bind(const struct port *p, struct rx_ring *r, int ifindex, bool grown, char *why,
                     size_t why_len);
/* Frames that the ring lost since the last call. */
uint64_t packet_ring_lost(const struct rx_ring *r);

/* The port is about to be closed: ends what port_grow has begun.  Rings that were moved from are freed. */
void packet_grow_end(struct port *p);

/* A ring that was made ahead (port_rings_ahead); NULL: there is none.  each: rings of a port. */
struct rx_ring *rings_ahead_take(const struct packet_ring_want *want, unsigned each);
void rings_ahead_done(void); /* one of the ports that were announced has its rings */

#endif
