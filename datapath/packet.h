/* SPDX-License-Identifier: Apache-2.0 */
/* A packet on its way through the switch: bytes, where the headers are, and the flow key.
 *
 * The bytes usually lie in a port's receive ring and are edited in place.  An edit changes bytes,
 * offsets and key together, so nothing is parsed twice.  A packet whose bytes somebody else still
 * needs (queued for sending, or a clone) is marked `shared`; an edit first copies it to the pool.
 *
 * GSO super-packets and partial checksums are kept as they came (`vnet`, as in virtio's
 * virtio_net_hdr, host byte order): lengths up to 64 KB, segments made only where they must be.
 */
#ifndef DATAPATH_PACKET_H
#define DATAPATH_PACKET_H

#include "key.h"

#include <linux/virtio_net.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room that receive buffers leave in front of a packet for pushed headers. */
#define PACKET_HEADROOM 128
#define PACKET_MAX      (65536 + PACKET_HEADROOM)
#define PACKET_MIN      60 /* an Ethernet frame without FCS */

/* Why a packet went nowhere.  X(name, text): one list makes enum, counter and text. */
#define DROP_ROWS(X)                                                                               \
    X(no_match, "no flow matched")                                                                 \
    X(no_action, "matched, but nothing to send it to")                                             \
    X(malformed, "too short or truncated")                                                         \
    X(port_down, "port is down or told not to forward or receive")                                 \
    X(no_port, "no such output port")                                                              \
    X(in_port, "would go back where it came from")                                                 \
    X(ttl, "TTL ran out")                                                                          \
    X(meter, "over a meter's rate")                                                                \
    X(group, "no live bucket, or groups nested too deep")                                          \
    X(fragment, "fragment, and the switch drops fragments")                                        \
    X(bad_action, "an action did not fit the packet")                                              \
    X(no_memory, "no buffer for a copy")                                                           \
    X(tx_full, "the output interface did not take it")                                             \
    X(tx_error, "the output interface refused it")                                                 \
    X(too_long, "longer than a receive buffer or the output MTU")                                  \
    X(packet_in_full, "the controllers' queue was full")
#define DROP_ENUM(name, text) DROP_##name,
enum drop_reason { DROP_ROWS(DROP_ENUM) DROP_N };

/* Copies of packets, for one worker.  Memory is kept and handed out again after a reset. */
struct packet_pool;
struct packet_pool *packet_pool_new(size_t max_bytes);
void packet_pool_free(struct packet_pool *p);
void packet_pool_reset(struct packet_pool *p);
/* n bytes, valid until the reset; NULL: the limit is reached */
uint8_t *packet_pool_alloc(struct packet_pool *p, size_t n);

struct packet {
    uint8_t *data; /* first byte of the Ethernet header */
    uint32_t len;
    uint32_t headroom;     /* writable bytes in front of data */
    uint32_t wire_len;     /* as received, for counters (a super-packet's own length) */
    bool shared;           /* bytes are not ours alone: copy before an edit */
    bool fragment;         /* an IPv4/IPv6 fragment */
    bool later_fragment;   /* one that has no L4 header */
    bool malformed;        /* headers say more than there is */
    uint16_t eth_type_at;  /* offset of the payload's EtherType (after all VLAN tags) */
    uint16_t l3;           /* offset of what that type names: IP, ARP, MPLS shim, PBB I-TAG */
    uint16_t l4;           /* offset of the transport header, 0: none */
    uint16_t nd_sll_at, nd_tll_at; /* offsets of ND option addresses, 0: none */
    uint32_t in_port;      /* host byte order */
    uint32_t queue;        /* set_queue's, 0: none */
    struct virtio_net_hdr vnet;
    struct packet_pool *pool;
    struct flow_key key;
};

/* Fills offsets and key from the bytes; in_port, metadata and tunnel_id must be set in the packet
 * (in_port) or are zeroed.  A packet that is too short for what it says it is gets the fields that
 * are there; the rest of the key is zero. */
void packet_parse(struct packet *p, uint32_t in_port);

/* How many packets and bytes on the wire this is: segments of a super-packet. */
uint32_t packet_segments(const struct packet *p);

/* The bytes of all segments together, as they will be on the wire. */
uint64_t packet_wire_bytes(const struct packet *p);

/* A second packet with the same bytes; both become shared. */
void packet_clone(struct packet *from, struct packet *to);

/* Makes the bytes our own, with `headroom` in front: before any edit.  False: no memory. */
bool packet_own(struct packet *p, uint32_t headroom);

/* Edits.  Each returns 0 or the reason (enum drop_reason) why the packet must be dropped;
 * +1 so that DROP_no_match is not 0.  Checksums (IPv4, TCP, UDP, ICMP, ICMPv6, SCTP) stay right,
 * or partial where they were partial. */
#define EDIT_DROP(reason) ((int)DROP_##reason + 1)
int packet_push_vlan(struct packet *p, uint16_t ethertype);
int packet_pop_vlan(struct packet *p);
int packet_push_mpls(struct packet *p, uint16_t ethertype);
int packet_pop_mpls(struct packet *p, uint16_t ethertype);
int packet_push_pbb(struct packet *p, uint16_t ethertype);
int packet_pop_pbb(struct packet *p);
int packet_set_mpls_ttl(struct packet *p, uint8_t ttl);
int packet_dec_mpls_ttl(struct packet *p); /* DROP_ttl: ran out */
int packet_set_nw_ttl(struct packet *p, uint8_t ttl);
int packet_dec_nw_ttl(struct packet *p);
int packet_copy_ttl_out(struct packet *p);
int packet_copy_ttl_in(struct packet *p);
/* The field's bytes as in OXM; tunnel_id and metadata change the key only. */
int packet_set_field(struct packet *p, enum oxm_field f, const uint8_t *value);

/* The packet as it must look where nobody finishes it for us (a controller, a capture): partial
 * checksum filled in, super-packet cut into segments.  `each` is called once a segment with bytes
 * that last for the call only (for a plain packet: its own bytes). */
typedef void (*packet_each)(void *ctx, const uint8_t *data, uint32_t len);
int packet_finish(struct packet *p, packet_each each, void *ctx);

/* A hash over addresses, protocol and ports that is the same for all packets of a flow. */
uint32_t packet_flow_hash(const struct packet *p);

#endif
