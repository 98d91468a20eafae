/* SPDX-License-Identifier: Apache-2.0 */
/* A switch's pipeline as the specification reads (OpenFlow 1.3.5), with no thought of speed: what
 * the real one is compared with.  Frames are parsed again for every question that is asked about
 * them, checksums are summed up whole, tables are lists.  Nothing is shared with datapath/.
 *
 * Where the specification leaves it open, what the headers in datapath/ promise is done: where new
 * tags go, that behind an MPLS label nothing is read, that byte counters count a packet as it is
 * when it gets there.
 */
#ifndef ORACLE_H
#define ORACLE_H

#include <oflib/codec.h>

#define ORACLE_ROOM      4096
#define ORACLE_MIN_FRAME 60 /* of an Ethernet frame, without FCS */
#define ORACLE_PORTS     8  /* places in the world's list of ports */

/* ------------------------------------------------------------------ frames (oracle-frame.c) */

enum oracle_header {
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

struct oracle_ip {
    bool there, v6, fragment, later, routed;
    uint32_t at, proto_at, end;
    uint32_t payload; /* 0: not there */
    uint8_t proto;
    uint16_t exthdr;
};

struct oracle_packet {
    uint8_t data[ORACLE_ROOM];
    uint32_t n, came; /* bytes now, and when it came */
    uint32_t in_port, queue;
    uint64_t metadata, tunnel_id;
};

struct oracle_view {
    bool there[H_N];
    uint32_t at[H_N];
    uint32_t type_at, l4;
    uint16_t type;
    uint32_t llc_at; /* of an 802.3 length that counts the SNAP header and what follows; 0: none */
    struct oracle_ip ip;
};

void oracle_parse(const struct oracle_packet *p, struct oracle_view *v);

/* An IP header at `at` of n bytes. */
struct oracle_ip oracle_parse_ip(const uint8_t *d, uint32_t n, uint32_t at, bool v6);

/* Where a field is: bits from the header's start, and how many. */
struct oracle_place {
    enum oracle_header h;
    uint16_t bit, width;
};

/* NULL: it has no place in this packet. */
const struct oracle_place *oracle_place(const struct oracle_view *v, enum oxm_field f);
void oracle_copy_bits(uint8_t *to, uint32_t to_bit, const uint8_t *from, uint32_t from_bit,
                      uint32_t n);

/* A field of the packet, as OXM has it.  False: the packet has no such field. */
bool oracle_field(const struct oracle_packet *p, enum oxm_field f, uint8_t *value);
bool oracle_is_fragment(const struct oracle_packet *p);

enum oracle_end { ORACLE_GOES_ON, ORACLE_TTL, ORACLE_DROP };

/* Any action but output, group and set_queue. */
enum oracle_end oracle_edit(struct oracle_packet *p, const struct of_tagged *action);

/* Gives the frame a tag of this VLAN, or none. */
void oracle_retag(struct oracle_packet *p, uint16_t vlan, bool tagged);

/* ------------------------------------------------------------------ what comes out */

struct oracle_out {
    bool packet_in;
    uint32_t port, queue; /* packet_in: the ingress port; - */
    uint64_t metadata, tunnel_id, cookie;
    uint8_t table_id, reason;
    uint16_t max_len;
    uint32_t n;
    uint8_t *data; /* malloc'd */
};

struct oracle_log {
    uint32_t n, cap;
    struct oracle_out *v;
};

struct oracle_out *oracle_log_add(struct oracle_log *l, const uint8_t *data, uint32_t n);
void oracle_log_clear(struct oracle_log *l);

/* ------------------------------------------------------------------ the world outside */

struct oracle_port {
    uint32_t no;     /* 0: no such port */
    uint32_t config; /* OFPPC_ */
    bool link_down;
    bool limited; /* for NORMAL: to these VLANs */
    uint16_t untagged, tagged[2];
};

struct oracle_world {
    struct oracle_port port[ORACLE_PORTS];
    uint16_t frag;      /* OFPC_FRAG_ */
    uint16_t group_fwd; /* bits: addresses 01:80:c2:00:00:00 to 0f that NORMAL forwards */
    int alone;          /* fail standalone mode; 2: controllers are configured, and none is there */
    uint64_t now;       /* ns */
};

const struct oracle_port *oracle_port(const struct oracle_world *w, uint32_t no);
bool oracle_port_up(const struct oracle_port *p);

/* ------------------------------------------------------------------ the switch (oracle-switch.c) */

struct oracle_counter {
    uint64_t packets, bytes;
};

struct oracle_flow {
    struct oracle_flow *next;
    uint8_t table_id;
    uint16_t priority, flags, idle, hard;
    bool miss;
    uint64_t cookie, created, used;
    const struct of_match *match;
    const struct of_list *instructions;
    struct oracle_counter count;
};

#define ORACLE_BUCKETS 8
struct oracle_group {
    struct oracle_group *next;
    uint32_t id;
    uint8_t type;
    const struct of_list *buckets;
    struct oracle_counter count, bucket[ORACLE_BUCKETS];
};

struct oracle_mac {
    uint8_t mac[6];
    uint16_t vid;
    uint32_t port;
};

#define ORACLE_TABLES 6
#define ORACLE_MACS   256
struct oracle_switch {
    struct oracle_world *world;
    struct oracle_flow *flows;
    struct oracle_group *groups;
    uint64_t lookups[ORACLE_TABLES], matched[ORACLE_TABLES];
    struct oracle_mac mac[ORACLE_MACS];
    uint32_t n_macs;
    struct oracle_log log;
    bool met_queue;       /* the last packet that was received met a set_queue */
    uint32_t first_queue; /* the first one's */
};

/* Messages must outlive the switch.  What the real one refuses for its instructions is not given
 * to this one.  0, or OF_ERR. */
int oracle_flow_mod(struct oracle_switch *s, const struct of_flow_mod *fm);
int oracle_group_mod(struct oracle_switch *s, const struct of_group_mod *gm);
void oracle_expire(struct oracle_switch *s);
void oracle_free(struct oracle_switch *s);

/* NORMAL's stations behind the port. */
void oracle_forget_port(struct oracle_switch *s, uint32_t no);

/* Is there a flow of this priority, other than that with the very same match, which a packet could
 * match as well? */
bool oracle_ambiguous(const struct oracle_switch *s, const struct of_flow_mod *fm);

/* A packet that has come in, and one that a controller sends. */
void oracle_receive(struct oracle_switch *s, const uint8_t *data, uint32_t n, uint32_t in_port);
void oracle_packet_out(struct oracle_switch *s, const uint8_t *data, uint32_t n, uint32_t in_port,
                       const struct of_list *actions);

/* Plain sums. */
uint32_t oracle_sum(uint32_t start, const uint8_t *p, uint32_t n);
uint32_t oracle_crc32c(const uint8_t *p, uint32_t n);

#endif
