/* SPDX-License-Identifier: Apache-2.0 */
/* A switch's pipeline as the specification reads (OpenFlow 1.3.5), with no thought of speed: what
 * the real one is compared with.  Frames are parsed again for every question that is asked about
 * them, checksums are summed up whole, tables are lists.  Nothing is shared with datapath/.
 *
 * Where the specification leaves it open, what the headers in datapath/ promise is done: where new
 * tags go, that behind an MPLS label nothing is read, that byte counters count a packet as it is
 * when it gets there.
 */
#ifndef SLOW_H
#define SLOW_H

#include <oflib/codec.h>

#define SLOW_ROOM  4096
#define SLOW_LEAST 60 /* of an Ethernet frame, without FCS */
#define SLOW_PORTS 8  /* places in the world's list of ports */

/* ------------------------------------------------------------------ frames (slow-frame.c) */

enum slow_header {
    H_NONE,
    H_ETH,
    H_TAG, /* the TCI of the outermost VLAN tag */
    H_TYPE,
    H_IPV4,
    H_IPV6,
    H_PROTO, /* the byte that says what is behind the IP headers */
    H_ARP,
    H_MPLS,
    H_PBB,
    H_TCP,
    H_UDP,
    H_SCTP,
    H_ICMPV4,
    H_ICMPV6,
    H_ND_TARGET,
    H_ND_SLL,
    H_ND_TLL,
    H_N
};

struct slow_ip {
    bool there, v6, fragment, later, routed;
    uint32_t at, proto_at, end;
    uint32_t payload; /* 0: not there */
    uint8_t proto;
    uint16_t exthdr;
};

struct slow_packet {
    uint8_t data[SLOW_ROOM];
    uint32_t n, came; /* bytes now, and when it came */
    uint32_t in_port, queue;
    uint64_t metadata, tunnel_id;
};

struct slow_view {
    bool there[H_N];
    uint32_t at[H_N];
    uint32_t type_at, l4;
    uint16_t type;
    uint32_t llc_at; /* of an 802.3 length that counts the SNAP header and what follows; 0: none */
    struct slow_ip ip;
};

void slow_parse(const struct slow_packet *p, struct slow_view *v);

/* An IP header at `at` of n bytes. */
struct slow_ip slow_parse_ip(const uint8_t *d, uint32_t n, uint32_t at, bool v6);

/* Where a field is: bits from the header's start, and how many. */
struct slow_place {
    enum slow_header h;
    uint16_t bit, width;
};

/* NULL: it has no place in this packet. */
const struct slow_place *slow_place(const struct slow_view *v, enum oxm_field f);
void slow_copy_bits(uint8_t *to, uint32_t to_bit, const uint8_t *from, uint32_t from_bit,
                    uint32_t n);

/* A field of the packet, as OXM has it.  False: the packet has no such field. */
bool slow_field(const struct slow_packet *p, enum oxm_field f, uint8_t *value);
bool slow_is_fragment(const struct slow_packet *p);

enum slow_end { SLOW_GOES_ON, SLOW_TTL, SLOW_DROP };

/* Any action but output, group and set_queue. */
enum slow_end slow_edit(struct slow_packet *p, const struct of_tagged *action);

/* ------------------------------------------------------------------ what comes out */

struct slow_out {
    bool packet_in;
    uint32_t port, queue; /* packet_in: the ingress port; - */
    uint64_t metadata, tunnel_id, cookie;
    uint8_t table_id, reason;
    uint16_t max_len;
    uint32_t n;
    uint8_t *data; /* malloc'd */
};

struct slow_log {
    uint32_t n, cap;
    struct slow_out *v;
};

struct slow_out *slow_log_add(struct slow_log *l, const uint8_t *data, uint32_t n);
void slow_log_clear(struct slow_log *l);

/* ------------------------------------------------------------------ the world outside */

struct slow_port {
    uint32_t no;     /* 0: no such port */
    uint32_t config; /* OFPPC_ */
    bool link_down;
};

struct slow_world {
    struct slow_port port[SLOW_PORTS];
    uint16_t frag; /* OFPC_FRAG_ */
    uint64_t now;  /* ns */
};

const struct slow_port *slow_port(const struct slow_world *w, uint32_t no);
bool slow_port_up(const struct slow_port *p);

/* ------------------------------------------------------------------ the switch (slow-switch.c) */

struct slow_counter {
    uint64_t packets, bytes;
};

struct slow_flow {
    struct slow_flow *next;
    uint8_t table_id;
    uint16_t priority, flags, idle, hard;
    bool miss;
    uint64_t cookie, created, used;
    const struct of_match *match;
    const struct of_list *instructions;
    struct slow_counter count;
};

#define SLOW_BUCKETS 8
struct slow_group {
    struct slow_group *next;
    uint32_t id;
    uint8_t type;
    const struct of_list *buckets;
    struct slow_counter count, bucket[SLOW_BUCKETS];
};

struct slow_mac {
    uint8_t mac[6];
    uint16_t vid;
    uint32_t port;
};

#define SLOW_TABLES 6
#define SLOW_MACS   256
struct slow_switch {
    struct slow_world *world;
    struct slow_flow *flows;
    struct slow_group *groups;
    uint64_t lookups[SLOW_TABLES], matched[SLOW_TABLES];
    struct slow_mac mac[SLOW_MACS];
    uint32_t n_macs;
    struct slow_log log;
    bool met_queue;       /* the last packet that was received met a set_queue */
    uint32_t first_queue; /* the first one's */
};

/* Messages must outlive the switch.  What the real one refuses for its instructions is not given
 * to this one.  0, or OF_ERR. */
int slow_flow_mod(struct slow_switch *s, const struct of_flow_mod *fm);
int slow_group_mod(struct slow_switch *s, const struct of_group_mod *gm);
void slow_expire(struct slow_switch *s);
void slow_free(struct slow_switch *s);

/* Is there a flow of this priority, other than that with the very same match, which a packet could
 * match as well? */
bool slow_ambiguous(const struct slow_switch *s, const struct of_flow_mod *fm);

/* A packet that has come in, and one that a controller sends. */
void slow_receive(struct slow_switch *s, const uint8_t *data, uint32_t n, uint32_t in_port);
void slow_packet_out(struct slow_switch *s, const uint8_t *data, uint32_t n, uint32_t in_port,
                     const struct of_list *actions);

/* Plain sums. */
uint32_t slow_sum(uint32_t start, const uint8_t *p, uint32_t n);
uint32_t slow_crc32c(const uint8_t *p, uint32_t n);

#endif
