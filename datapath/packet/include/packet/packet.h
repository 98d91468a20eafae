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
#ifndef PACKET_PACKET_H
#define PACKET_PACKET_H

#include <packet/key.h>

#include <linux/virtio_net.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4 /* Linux 6.2; VIRTIO 1.2, 5.1.6 has it as USO */
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/* Room that receive buffers leave in front of a packet for pushed headers. */
#define PACKET_HEADROOM 128
#define PACKET_MAX      (65536 + PACKET_HEADROOM)
#define PACKET_MIN      60 /* an Ethernet frame without FCS */

/* Why a packet went nowhere.  X(name, text, what to do): one list makes enum, counter and text. */
#define DROP_ROWS(X)                                                                                 \
    X(no_match, "no flow matched",                                                                   \
      "Add a flow that matches it, or a table-miss flow (priority 0, no match) to the table; a "     \
      "switch with --fail=open forwards it while no controller is connected; "                       \
      "dpctl trace shows which flows came close.")                                                   \
    X(no_action, "matched, but nothing to send it to",                                               \
      "The last flow has no output. If that is meant, all is well; else give it an output or a "     \
      "goto.")                                                                                       \
    X(malformed, "too short or truncated",                                                           \
      "The sender, or an action that pops tags, made a frame without a whole Ethernet header.")      \
    X(port_down, "port is down, or configured not to forward or receive",                            \
      "Look at the port's config and state in dpctl port-desc; ip link set IF up, or dpctl "         \
      "port-mod.")                                                                                   \
    X(no_port, "no such output port",                                                                \
      "The flow names a port that the switch does not have: dpctl port-add makes it one. To a "      \
      "port that was added as queues-only (dpctl status) no flow sends: its packets are the "        \
      "kernel's.")                                                                                   \
    X(in_port, "would go back where it came from",                                                   \
      "Use output=in_port to send it back; an output that names the number never does.")             \
    X(reserved, "to an address that bridges keep to themselves (LACP, EAPOL, LLDP, pause)",          \
      "NORMAL does not forward 01:80:c2:00:00:01 to 0f; --forward-reserved names those that it is "  \
      "to forward.")                                                                                 \
    X(vlan, "its port does not have this VLAN",                                                      \
      "An access port (vlan=) takes untagged frames, a trunk (trunk=) the tags of its list; dpctl "  \
      "status shows them.")                                                                          \
    X(ttl, "TTL ran out",                                                                            \
      "The sender's TTL was too small for the way, or the packet goes round in a loop.")             \
    X(meter, "over a meter's rate",                                                                  \
      "dpctl stats-meter shows how much the meter drops; raise its rate or burst, or shape with a "  \
      "queue instead.")                                                                              \
    X(group, "no live bucket, or groups nested too deep",                                            \
      "The port of every bucket (watch_port, or a select group's output) or its watch_group is "     \
      "down, or the group does not exist: dpctl stats-group-desc.")                                  \
    X(fragment, "fragment, and the switch drops fragments",                                          \
      "dpctl set-config flags=normal lets fragments pass.")                                          \
    X(bad_action, "an action did not fit the packet",                                                \
      "The flow's match lets packets through that its actions can't edit: match more exactly.")      \
    X(no_memory, "no buffer for a copy",                                                             \
      "The worker's 64 MB for copies are full: use fewer or smaller group buckets.")                 \
    X(tx_full, "the output interface did not take it",                                               \
      "The queue is full: more arrives than its rate lets out. dpctl qos-show has its rate and "     \
      "limit; raise them, or put another scheduler into it.")                                        \
    X(in_full, "the ingress queue did not take it",                                                  \
      "More arrives than the queues with direction=in let through: raise their rate or limit.")      \
    X(tx_error, "the output interface refused it",                                                   \
      "The driver refused the frame: look at the kernel's log and at ip -s link.")                   \
    X(too_long, "longer than a receive buffer or the output MTU",                                    \
      "Make the MTU of the output interface as large as that of the input: ip link set IF mtu N.")   \
    X(packet_in_full, "the controllers' queue was full",                                             \
      "Too many packets go to the controllers: add flows for them, or a meter before the output.")   \
    X(packet_in_share, "its port already fills its share of the controllers' queue",                 \
      "This port floods the controllers: add flows for its packets, or a meter before the output.")  \
    X(no_controller, "no connected controller wants it",                                             \
      "A flow sends it to the controllers, and none is connected (dpctl status says why), or those " \
      "that are do not ask for such packets; a flow with output=normal forwards it without one.")
#define DROP_ENUM(name, text, help) DROP_##name,
enum drop_reason { DROP_ROWS(DROP_ENUM) DROP_N };

/* Copies of packets, for one worker.  Memory is kept and handed out again after a reset. */
struct packet_pool;
struct packet_pool *packet_pool_new(size_t max_bytes);
void packet_pool_free(struct packet_pool *p);
void packet_pool_reset(struct packet_pool *p);
/* n bytes, valid until the reset; NULL: the limit is reached */
uint8_t *packet_pool_alloc(struct packet_pool *p, size_t n);

/* The ports at which a queue that was chosen holds: at others the packet has none. */
struct queue_ports {
    uint32_t n;
    struct {
        uint32_t first, last;
    } v[];
};

static inline uint32_t
queue_at(uint32_t queue, const struct queue_ports *ports, uint32_t port_no)
{
    for (uint32_t i = 0; ports && i < ports->n; i++)
        if (port_no >= ports->v[i].first && port_no <= ports->v[i].last)
            return queue;
    return ports ? 0 : queue;
}

struct packet {
    uint8_t *data; /* first byte of the Ethernet header */
    uint32_t len;
    uint32_t headroom;     /* writable bytes in front of data */
    uint32_t wire_len;     /* as received, for counters (a super-packet's own length) */
    bool shared;           /* bytes are not ours alone: copy before an edit */
    bool fragment;         /* an IPv4/IPv6 fragment */
    bool later_fragment;   /* one that has no L4 header */
    bool malformed;        /* headers say more than there is */
    bool snap;             /* 802.3 with an LLC/SNAP header; its type is at eth_type_at */
    uint32_t eth_type_at;  /* offset of the payload's EtherType (after all VLAN tags) */
    uint32_t l3;           /* of what that type names: IP, ARP, MPLS shim, PBB I-TAG; 0: not there
                              as a whole, or none of these */
    uint32_t l4;           /* of the TCP, UDP, SCTP, ICMP or ICMPv6 header, 0: not there */
    uint32_t nd_target_at; /* of ND's target, 0: none */
    uint32_t nd_sll_at, nd_tll_at;         /* of ND option addresses, 0: none */
    uint8_t inside;                        /* PACKET_INSIDE_: what packet_parse looks into */
    uint32_t in_port;                      /* host byte order */
    uint32_t queue;                        /* set_queue's, 0: none */
    const struct queue_ports *queue_ports; /* where that holds; NULL: everywhere */
    struct virtio_net_hdr vnet;
    struct packet_pool *pool;
    struct flow_key key;
};

/* Kinds of frames of which the tables are to see the IP packet in it: eth_type and all that follows are its own,
 * and l3 is where it is.  The bytes in front of it stay as they are, and so do their lengths, as no edit of an IP
 * packet changes its length.  A label or tag that an action pushes is seen, and nothing inside it any more. */
#define PACKET_INSIDE_PPPOE 1 /* IPv4 and IPv6 in a PPPoE session */
#define PACKET_INSIDE_MPLS  2 /* behind at most PACKET_LABELS labels */
#define PACKET_LABELS       4

/* Fills offsets and key from the bytes (7.2.3.7); in_phy_port becomes in_port, metadata and
 * tunnel_id 0.  vnet, pool and inside must be set.  A packet that is too short for what it says it is gets
 * the fields that are there; the rest of the key is zero.
 *
 * - VLAN tags: TPIDs 0x8100, 0x88a8, 0x9100, any number; vid and pcp are the outermost one's.
 * - 802.3: with SNAP and OUI 0 the SNAP type, else eth_type 0x05ff.
 * - Behind an MPLS label or a PBB I-TAG nothing is read, but for `inside`.
 * - A transport header counts only when its fixed part is there (TCP 20, UDP 8, SCTP 12, ICMP 4
 *   bytes); ICMP belongs to IPv4, ICMPv6 to IPv6; later fragments have none.
 * - ND addresses come from the first option of their kind that is 8 bytes long.
 *
 * A CRC32c that SCTP's sender left to hardware (NEEDS_CSUM) is filled in here: a virtio header
 * can't tell it from an Internet checksum. */
void packet_parse(struct packet *p, uint32_t in_port);

/* What a packet is on the wire: of a super-packet all segments together. */
struct packet_wire {
    uint32_t packets, bytes;
    enum {
        PACKET_WHOLE, /* it is no super-packet */
        PACKET_CUT_BY_KERNEL,
        PACKET_CUT_BY_US, /* packet_cut: the kernel does not see the headers (MPLS, tunnels, ...) */
        PACKET_CUT_BY_NOBODY /* vnet contradicts the headers */
    } cut;
};
struct packet_wire packet_wire(const struct packet *p);

/* The same; a plain packet costs no call. */
static inline struct packet_wire
packet_on_wire(const struct packet *p)
{
    if (p->vnet.gso_type)
        return packet_wire(p);
    return (struct packet_wire){.packets = 1, .bytes = p->len, .cut = PACKET_WHOLE};
}

static inline uint32_t
packet_segments(const struct packet *p)
{
    return packet_on_wire(p).packets;
}

/* A second packet with the same bytes; both become shared. */
void packet_clone(struct packet *from, struct packet *to);

/* Makes the bytes our own, with `headroom` in front: before any edit.  False: no memory. */
bool packet_own(struct packet *p, uint32_t headroom);

/* Fills in a partial checksum (in a copy, if the bytes are shared).  False: no memory, or the
 * header says something impossible.  Not for super-packets. */
bool packet_complete_csum(struct packet *p);

/* Makes a whole frame of TCP or UDP one segment of a super-packet, which a packet socket sends without a look at
 * its length; the kernel then makes of it the bytes that it has now.  False: it is no such frame, or no memory. */
bool packet_call_segment(struct packet *p);

/* Edits.  Each returns 0 or why the packet must be dropped: EDIT_DROP(reason of enum drop_reason),
 * which is never 0.
 *
 * - Checksums (IPv4, TCP, UDP, ICMP, ICMPv6, SCTP) stay right, partial ones partial, wrong ones
 *   wrong.
 * - What the packet lacks (a tag to pop, a header to set a field in, a TTL) is no error: the
 *   packet stays as it is.  Prerequisites are checked when a flow is made. */
#define EDIT_DROP(reason) ((int)DROP_##reason + 1)

/* New tags are the outermost, right behind the Ethernet addresses (5.12).  Their fields are copied
 * from the packet: VLAN vid and pcp; MPLS label, TC and TTL, without a label the IP header's TTL;
 * PBB I-SID, and I-PCP from the VLAN tag; else 0.  An MPLS shim hides the VLAN tag behind it; a pop
 * with ethertype 0x8100 brings the tag back. */
bool packet_has_vlan(const struct packet *p);
int packet_push_vlan(struct packet *p, uint16_t ethertype);
int packet_pop_vlan(struct packet *p);
int packet_push_mpls(struct packet *p, uint16_t ethertype);
int packet_pop_mpls(struct packet *p, uint16_t ethertype);
int packet_push_pbb(struct packet *p, uint16_t ethertype);
int packet_pop_pbb(struct packet *p);

/* dec: DROP_ttl, with the packet unchanged, when the TTL is 1 or 0.  copy: between the outermost
 * header that has a TTL and the next: MPLS to MPLS, MPLS to IP, IP to IP. */
int packet_set_mpls_ttl(struct packet *p, uint8_t ttl);
int packet_dec_mpls_ttl(struct packet *p);
int packet_set_nw_ttl(struct packet *p, uint8_t ttl);
int packet_dec_nw_ttl(struct packet *p);
int packet_copy_ttl_out(struct packet *p);
int packet_copy_ttl_in(struct packet *p);

/* value: the field's bytes as in OXM.  tunnel_id and metadata are in the key only.  A new eth_type,
 * ip_proto or icmpv6_type gives the bytes behind it another meaning: they are parsed again. */
int packet_set_field(struct packet *p, enum oxm_field f, const uint8_t *value);

/* The packet as it must be for a receiver that finishes nothing itself (a controller, a capture):
 * partial checksum filled in, super-packet cut into segments.  `each` is called once for each
 * segment with bytes that last for the call only (for a plain packet: its own bytes). */
typedef void (*packet_each)(void *ctx, const uint8_t *data, uint32_t len);
int packet_finish(struct packet *p, packet_each each, void *ctx);

/* A super-packet's segment: headers of its own, then a part of the packet.  The transport's checksum
 * is partial, as vnet says; all others are right. */
struct packet_segment {
    const uint8_t *header; /* for the time of the call */
    const uint8_t *payload;
    uint32_t header_len; /* at most PACKET_SEGMENT_HEADERS */
    uint32_t payload_len;
    uint32_t packets; /* on the wire: 1, or of packet_pack */
    struct virtio_net_hdr vnet;
};
#define PACKET_SEGMENT_ADDS    8 /* bytes that a segment may have more than the packet had */
#define PACKET_SEGMENT_HEADERS 1096

/* Cuts a super-packet, in any tags and tunnels: lengths, identifications and checksums of outer
 * headers are each segment's own.  Returns 0 or an EDIT_DROP. */
typedef void (*packet_segment_each)(void *ctx, const struct packet_segment *s);
int packet_cut(struct packet *p, packet_segment_each each, void *ctx);

/* The same for a UDP tunnel, in super-packets of UDP, which need a pool and Linux 6.2.  Their payload
 * lasts as long as the pool's memory.  The tunnel's datagrams then have checksums, if they had none. */
bool packet_can_pack(const struct packet *p);
int packet_pack(struct packet *p, packet_segment_each each, void *ctx);

/* Joins TCP segments of one connection that follow each other in a batch (parsed, at most 256) to
 * super-packets, which go through the switch and out at a fraction of the cost.  Returns how many
 * packets are left, at the batch's start, in order. */
unsigned packet_coalesce(struct packet *batch, unsigned n);

/* Did packet_coalesce make it of several packets?  Until an edit or a tag changes its length. */
static inline bool
packet_is_merged(const struct packet *p)
{
    return p->wire_len != p->len;
}

/* What the tables see of a frame, or of its beginning: key_describe.  inside: as struct packet has it. */
void packet_describe(uint8_t *data, uint32_t len, uint32_t in_port, uint8_t inside,
                     struct of_match *out);

/* A hash over addresses (also those below IP), protocol and ports that is the same for all packets
 * of a flow. */
uint32_t packet_flow_hash(const struct packet *p);

/* A packet without bytes that has the same hash as one of this key, which is no fragment; and the
 * bits of its key that the hash depends on. */
void packet_of_key(const struct flow_key *k, struct packet *out);
void packet_flow_hash_bits(const struct packet *p, struct flow_key *bits);
void packet_flow_hash_any_bits(struct flow_key *bits); /* all that any hash depends on */

#endif
