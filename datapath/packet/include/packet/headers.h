/* SPDX-License-Identifier: Apache-2.0 */
/* Protocol headers as the packet functions read them (RFC 791, 8200, 3032; IEEE 802.1Q, 802.1ah).
 * Offsets are from the frame's first byte. */
#ifndef PACKET_HEADERS_H
#define PACKET_HEADERS_H

#include <packet/packet.h>

#include <oflib/openflow.h>
#include <oflib/protocols.h>
#include <oflib/wire.h>

#define ETH_ADDR     6
#define ETH_HEADER   14
#define ETH_TYPE_AT  12    /* of an untagged frame; the outermost tag's TPID */
#define ETH_MIN_TYPE 0x600 /* below it is a length (802.3) */
#define ETH_NO_TYPE  0x5ff /* eth_type of an 802.3 frame without SNAP */
#define VLAN_TAG     4
#define MPLS_SHIM    4
#define PPPOE_HEADER 8 /* with the PPP protocol */
#define PBB_ITAG     4 /* the I-TAG's TCI, without the customer's addresses */
#define PBB_PUSH     (ETH_HEADER + PBB_ITAG)
#define LLC_SNAP     8 /* from an 802.3 length to the type behind its SNAP header */

enum { ND_SOLICIT = 135, ND_ADVERT = 136, ND_OPT_SLL = 1, ND_OPT_TLL = 2, ND_HEADER = 24 };

enum {
    IPV4_HEADER = 20,
    IPV6_HEADER = 40,
    TCP_HEADER = 20,
    UDP_HEADER = 8,
    SCTP_HEADER = 12,
    ARP_HEADER = 28 /* for Ethernet and IPv4 */
};

/* Where a header has its fields. */
enum {
    IPV4_LENGTH_AT = 2,
    IPV4_ID_AT = 4,
    IPV4_FRAGMENT_AT = 6,
    IPV4_TTL_AT = 8,
    IPV4_PROTO_AT = 9,
    IPV4_CSUM_AT = 10,
    IPV4_SRC_AT = 12,
    IPV4_DST_AT = 16,
    IPV6_LENGTH_AT = 4,
    IPV6_NEXT_AT = 6,
    IPV6_HOPS_AT = 7,
    IPV6_SRC_AT = 8,
    IPV6_DST_AT = 24,
    TCP_SEQ_AT = 4,
    TCP_OFFSET_AT = 12,
    TCP_FLAGS_AT = 13,
    TCP_CSUM_AT = 16,
    UDP_LENGTH_AT = 4,
    UDP_CSUM_AT = 6,
    ICMP_CSUM_AT = 2,
    SCTP_CSUM_AT = 8,
    ARP_OP_AT = 6,
    ARP_SHA_AT = 8,
    ARP_SPA_AT = 14,
    ARP_THA_AT = 18,
    ARP_TPA_AT = 24,
    MPLS_TTL_AT = 3,
    PPPOE_LENGTH_AT = 4, /* of what follows, PPP's protocol included */
    PPPOE_PROTO_AT = 6
};
#define PPPOE_SESSION 0x1100 /* version 1, type 1, code 0 */

#define MPLS_BOS UINT32_C(0x100) /* bottom of stack, in the shim's 32 bits */

enum { IPV4_DONT_FRAGMENT = 0x4000, IPV4_MORE_FRAGMENTS = 0x2000, IPV4_FRAGMENT_OFFSET = 0x1fff };
enum { TCP_FIN = 0x01, TCP_PSH = 0x08, TCP_ACK = 0x10, TCP_CWR = 0x80 };

static inline bool
is_vlan_type(uint16_t t)
{
    return t == TYPE_VLAN || t == TYPE_SVLAN || t == TYPE_OLD_SVLAN;
}

static inline bool
is_mpls_type(uint16_t t)
{
    return t == TYPE_MPLS || t == TYPE_MPLS_MC;
}

/* Is there a whole VLAN tag and a type behind it, when the TPID is at `at`? */
static inline bool
vlan_tag_at(const uint8_t *data, uint32_t len, uint32_t at)
{
    return len >= 6 && at <= len - 6 && is_vlan_type(of_get16(data + at));
}

/* A complete and valid IP header, and what follows from it. */
struct ip_view {
    uint32_t at;
    uint32_t payload;  /* of `proto`; may be `end`.  0: a later fragment, or cut off before it */
    uint32_t end;      /* of the IP packet, at most the frame's */
    uint32_t proto_at; /* the byte that names `proto` */
    uint16_t exthdr;   /* OFPIEH_* */
    uint8_t proto;
    bool v6;
    bool fragment;
    bool later_fragment;
    bool routed;    /* a routing header has hops to go: dst isn't the pseudo-header's */
    bool malformed; /* lengths say more than there is */
};

/* Reads the IPv4 or IPv6 header at `at`.  `super`: a total length of 0 is fine (more than 64 KB).
 * False: there is no such header. */
bool ip_view(const uint8_t *data, uint32_t len, uint32_t at, bool v6, bool super,
             struct ip_view *v);

/* The same for what is behind the last MPLS label, which doesn't say its type. */
bool ip_view_guess(const uint8_t *data, uint32_t len, uint32_t at, bool super, struct ip_view *v);

/* Offset of the checksum in the transport header; 0: the protocol has none of that kind. */
static inline uint32_t
l4_csum_offset(uint8_t proto)
{
    return proto == PROTO_TCP                             ? TCP_CSUM_AT
           : proto == PROTO_UDP                           ? UDP_CSUM_AT
           : proto == PROTO_ICMP || proto == PROTO_ICMPV6 ? ICMP_CSUM_AT
                                                          : 0;
}

/* The sum of the pseudo-header of what an IP header carries: `len` bytes of `proto`. */
uint16_t ip_pseudo_sum(const uint8_t *ip, bool v6, uint8_t proto, uint32_t len);

/* Completes a partial checksum at `offset` of a transport header, n bytes with its payload: the field
 * holds the sum of the pseudo-header. */
void l4_csum_fill(uint8_t *l4, size_t n, uint32_t offset);

/* Is the checksum of the header at `l4` still partial, so that its field holds the sum of the
 * pseudo-header? */
static inline bool
is_partial(const struct packet *p, uint32_t l4)
{
    return p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM && p->vnet.csum_start == l4;
}

static inline uint8_t
gso_kind(const struct packet *p)
{
    return p->vnet.gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
}

static inline bool
is_super(const struct packet *p)
{
    return gso_kind(p) != VIRTIO_NET_HDR_GSO_NONE && p->vnet.gso_size;
}

/* Is the packet that the tables see in something that they don't (PACKET_INSIDE_)? */
static inline bool
packet_is_inside(const struct packet *p)
{
    return p->l3 > p->eth_type_at + 2;
}

/* Parses again, after an edit that changed which headers there are; in_port, metadata and
 * tunnel_id stay.  It reads any packet, without packet_parse's short way for usual ones; both make
 * the same of a packet. */
void packet_reparse(struct packet *p);

#endif
