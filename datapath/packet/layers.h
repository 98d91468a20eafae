/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of a super-packet, from the frame's first byte to the transport whose payload is cut.
 *
 * In between may be tags (VLAN, MPLS, PBB), a PPPoE session, and tunnels (IP in IP, GRE, VXLAN, Geneve, and others
 * above UDP).  A virtio header only names the transport, so the others are found here.  Headers that
 * say how long the packet is, or sum it up, are layers: each segment needs its own.  Everything else
 * is repeated as it is. */
#ifndef PACKET_LAYERS_H
#define PACKET_LAYERS_H

#include <packet/headers.h>

#define LAYERS_MAX   8
#define HEADERS_MAX  1024 /* bytes in front of the payload */
#define GRE_HEADER   4    /* without what its flags add */
#define VXLAN_HEADER 8

enum { GRE_CSUM = 0x80, GRE_ROUTING = 0x40, GRE_KEY = 0x20, GRE_SEQ = 0x10, GRE_VERSION = 0x07 };

struct layer {
    enum { LAYER_IPV4, LAYER_IPV6, LAYER_UDP, LAYER_GRE, LAYER_PPPOE } kind;
    uint16_t at;
    uint16_t ip; /* LAYER_UDP: the layer whose addresses it sums up */
    bool csum;   /* LAYER_UDP, LAYER_GRE: it has a checksum */
};

struct layers {
    unsigned n;
    struct layer layer[LAYERS_MAX]; /* outermost first, without `ip` */
    struct ip_view ip;              /* the transport's */
    bool guessed;                   /* it is in something that isn't known here */
};

/* Finds the transport `proto` of a packet: the one that vnet's partial checksum belongs to, or else
 * the first.  False: it is not there, is a fragment, or lengths contradict each other. */
bool layers_find(const struct packet *p, uint8_t proto, struct layers *l);

/* Writes into the headers of segment i, `len` bytes long, what differs from `before`, the
 * super-packet's: lengths, identifications, sequence numbers, checksums. */
void layers_edit_ip(uint8_t *header, const uint8_t *before, uint32_t at, bool v6, uint32_t i,
                    uint32_t len);
/* The same for all layers, once the transport's IP header is right.  inner: the sum of all bytes
 * from the transport on. */
void layers_edit(const struct layers *l, uint8_t *header, const uint8_t *before, uint32_t i,
                 uint32_t len, uint16_t inner);

#endif
