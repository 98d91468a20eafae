/* SPDX-License-Identifier: Apache-2.0 */
/* Random packets, right in all lengths and checksums. */
#ifndef BUILD_H
#define BUILD_H

#include <packet/packet.h>

#define BUILD_ROOM 72000

struct build {
    uint64_t seed;
    uint8_t room[BUILD_ROOM];
    uint8_t *frame; /* in room, with headroom in front */
    uint32_t n;
    uint32_t ip, l4; /* offsets, 0: none; of the innermost IP packet */
    uint8_t proto;
    bool v6, gso;
    bool behind_tags; /* the IP packet is behind MPLS or PBB */
    struct virtio_net_hdr vnet;
};

/* A number below n. */
uint32_t build_random(struct build *b, uint32_t n);
void build_bytes(struct build *b, void *out, size_t n);

enum build_want { BUILD_ANY, BUILD_GSO };

/* A packet of up to 1400 bytes payload, with tags, options, extension headers, fragments, partial
 * checksums at random; or a super-packet. */
void build_packet(struct build *b, enum build_want want);

/* ... as a struct packet whose bytes are those in b. */
void build_parse(struct build *b, struct packet_pool *pool, struct packet *out);

#endif
