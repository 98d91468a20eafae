/* SPDX-License-Identifier: Apache-2.0 */
/* An ofp_match of OpenFlow 1.0 (5.2.3) as a match of 1.3, and back. */
#include <oflib/err.h>
#include <oflib/messages10.h>
#include <oflib/protocols.h>

enum { IN_PORT = 4, DL_SRC = 6, DL_DST = 12, DL_VLAN = 18, DL_VLAN_PCP = 20, DL_TYPE = 22 };
enum { NW_TOS = 24, NW_PROTO = 25, NW_SRC = 28, NW_DST = 32, TP_SRC = 36, TP_DST = 38 };
enum { VID_MAX = 0xfff, PCP_MAX = 7 };

/* The fields of 1.3 that hold 1.0's tp_src and tp_dst. */
static const struct ports {
    uint8_t proto;
    enum oxm_field src, dst;
} protocols[] = {
    {PROTO_ICMP, OXM_icmpv4_type, OXM_icmpv4_code},
    {PROTO_TCP, OXM_tcp_src, OXM_tcp_dst},
    {PROTO_UDP, OXM_udp_src, OXM_udp_dst},
    {PROTO_SCTP, OXM_sctp_src, OXM_sctp_dst},
};

static const struct ports *
ports_of(uint32_t proto)
{
    for (size_t i = 0; i < sizeof protocols / sizeof protocols[0]; i++)
        if (protocols[i].proto == proto)
            return &protocols[i];
    return NULL;
}

uint32_t
of_port_of10(uint16_t port)
{
    return port <= OFPP10_MAX ? port : 0xffff0000u | port;
}

bool
of_port10(uint32_t port, uint16_t *out)
{
    *out = (uint16_t)port;
    return port <= OFPP10_MAX || port >= OFPP_IN_PORT;
}

/* ------------------------------------------------------------------ from 40 bytes */

static struct of_oxm *
put(struct of_match *m, enum oxm_field f, uint64_t value)
{
    struct of_oxm *o = &m->v[m->n++];
    *o = (struct of_oxm){.row = &oxm_rows[f]};
    oxm_set_number(o->row, o->value, value);
    memset(o->mask, 0xff, sizeof o->mask);
    return o;
}

static void
put_masked(struct of_match *m, enum oxm_field f, uint32_t value, uint32_t mask)
{
    struct of_oxm *o = put(m, f, value & mask);
    if (mask == oxm_number(o->row, o->mask))
        return;
    o->has_mask = true;
    memset(o->mask, 0, sizeof o->mask);
    oxm_set_number(o->row, o->mask, mask);
}

static void
put_mac(struct of_match *m, enum oxm_field f, const uint8_t *mac)
{
    memcpy(put(m, f, 0)->value, mac, 6);
}

/* An address, all of whose low bits but so many count. */
static void
put_address(struct of_match *m, enum oxm_field f, const uint8_t *p, uint32_t wildcarded)
{
    if (wildcarded < 32)
        put_masked(m, f, of_get32(p), 0xffffffffu << wildcarded);
}

/* dl_vlan and dl_vlan_pcp; a PCP alone asks for a tag of any VID. */
static int
read_vlan(const uint8_t *p, uint32_t w, struct of_match *m)
{
    uint16_t vid = of_get16(p + DL_VLAN);
    bool has_vid = !(w & OFPFW10_DL_VLAN), has_pcp = !(w & OFPFW10_DL_VLAN_PCP);
    if (has_vid && vid == OFP10_VLAN_NONE) {
        put(m, OXM_vlan_vid, OFPVID_NONE);
        return 0;
    }
    if ((has_vid && vid > VID_MAX) || (has_pcp && p[DL_VLAN_PCP] > PCP_MAX))
        return OF_BAD_MATCH(BAD_VALUE);
    if (has_vid)
        put(m, OXM_vlan_vid, OFPVID_PRESENT | vid);
    else if (has_pcp)
        put_masked(m, OXM_vlan_vid, OFPVID_PRESENT, OFPVID_PRESENT);
    if (has_pcp)
        put(m, OXM_vlan_pcp, p[DL_VLAN_PCP]);
    return 0;
}

/* Of ICMP's type and code only the lower eight bits count (1.0, table 3). */
static void
read_ports(const uint8_t *p, uint32_t w, struct of_match *m)
{
    const struct ports *f = w & OFPFW10_NW_PROTO ? NULL : ports_of(p[NW_PROTO]);
    uint16_t src = of_get16(p + TP_SRC), dst = of_get16(p + TP_DST);
    uint16_t counts = f && f->proto == PROTO_ICMP ? UINT8_MAX : UINT16_MAX;
    if (f && !(w & OFPFW10_TP_SRC))
        put(m, f->src, src & counts);
    if (f && !(w & OFPFW10_TP_DST))
        put(m, f->dst, dst & counts);
}

static void
read_network(const uint8_t *p, uint32_t w, struct of_match *m)
{
    uint32_t src = w >> OFPFW10_NW_SRC_SHIFT & OFPFW10_NW_MASK;
    uint32_t dst = w >> OFPFW10_NW_DST_SHIFT & OFPFW10_NW_MASK;
    uint16_t type = w & OFPFW10_DL_TYPE ? 0 : of_get16(p + DL_TYPE);
    if (type == TYPE_ARP) {
        if (!(w & OFPFW10_NW_PROTO))
            put(m, OXM_arp_op, p[NW_PROTO]);
        put_address(m, OXM_arp_spa, p + NW_SRC, src);
        put_address(m, OXM_arp_tpa, p + NW_DST, dst);
    }
    if (type != TYPE_IPV4)
        return;
    if (!(w & OFPFW10_NW_TOS))
        put(m, OXM_ip_dscp, p[NW_TOS] >> 2);
    if (!(w & OFPFW10_NW_PROTO))
        put(m, OXM_ip_proto, p[NW_PROTO]);
    put_address(m, OXM_ipv4_src, p + NW_SRC, src);
    put_address(m, OXM_ipv4_dst, p + NW_DST, dst);
    read_ports(p, w, m);
}

int
of_match10_decode(const uint8_t *p, struct of_arena *arena, struct of_match *out)
{
    struct of_oxm v[12];
    struct of_match m = {.v = v};
    uint32_t w = of_get32(p);
    if (!(w & OFPFW10_IN_PORT))
        put(&m, OXM_in_port, of_port_of10(of_get16(p + IN_PORT)));
    if (!(w & OFPFW10_DL_DST))
        put_mac(&m, OXM_eth_dst, p + DL_DST);
    if (!(w & OFPFW10_DL_SRC))
        put_mac(&m, OXM_eth_src, p + DL_SRC);
    if (!(w & OFPFW10_DL_TYPE))
        put(&m, OXM_eth_type, of_get16(p + DL_TYPE));
    int err = read_vlan(p, w, &m);
    if (err)
        return err;
    read_network(p, w, &m);
    return of_match_keep(&m, arena, out);
}

/* ------------------------------------------------------------------ to 40 bytes */

struct match10 {
    uint8_t *p;
    uint32_t w; /* wildcards */
    uint16_t type;
};

/* False: its mask leaves out other bits than low ones. */
static bool
write_address(struct match10 *x, const struct of_oxm *o, unsigned at, unsigned shift)
{
    uint32_t mask = of_get32(o->mask), low = ~mask, n = 0;
    if (low & (low + 1))
        return false;
    for (; low; low >>= 1)
        n++;
    memcpy(x->p + at, o->value, 4);
    x->w = (x->w & ~(OFPFW10_NW_MASK << shift)) | n << shift;
    return true;
}

static bool
write_vlan(struct match10 *x, const struct of_oxm *o)
{
    uint16_t vid = of_get16(o->value);
    if (o->has_mask && of_get16(o->mask) != OFPVID_PRESENT)
        return false;
    if (o->has_mask)
        return vid == OFPVID_PRESENT; /* and there must be a PCP */
    of_set16(x->p + DL_VLAN, vid == OFPVID_NONE ? OFP10_VLAN_NONE : vid & VID_MAX);
    x->w &= ~OFPFW10_DL_VLAN;
    if (vid == OFPVID_NONE)
        x->w &= ~OFPFW10_DL_VLAN_PCP; /* no PCP can be there, so all that there is is matched */
    return true;
}

static void
write16(struct match10 *x, uint64_t v, unsigned at, uint32_t bit)
{
    of_set16(x->p + at, (uint16_t)v);
    x->w &= ~bit;
}

static void
write8(struct match10 *x, uint64_t v, unsigned at, uint32_t bit)
{
    x->p[at] = (uint8_t)v;
    x->w &= ~bit;
}

static void
write_mac(struct match10 *x, const struct of_oxm *o, unsigned at, uint32_t bit)
{
    memcpy(x->p + at, o->value, 6);
    x->w &= ~bit;
}

static bool
write_network(struct match10 *x, const struct of_oxm *o, uint64_t v)
{
    switch (o->row->field) {
    case OXM_ip_dscp: write8(x, v << 2, NW_TOS, OFPFW10_NW_TOS); return x->type == TYPE_IPV4;
    case OXM_ip_proto: write8(x, v, NW_PROTO, OFPFW10_NW_PROTO); return x->type == TYPE_IPV4;
    case OXM_arp_op: write8(x, v, NW_PROTO, OFPFW10_NW_PROTO); return v <= UINT8_MAX;
    case OXM_ipv4_src:
    case OXM_arp_spa: return write_address(x, o, NW_SRC, OFPFW10_NW_SRC_SHIFT);
    case OXM_ipv4_dst:
    case OXM_arp_tpa: return write_address(x, o, NW_DST, OFPFW10_NW_DST_SHIFT);
    case OXM_icmpv4_type:
    case OXM_tcp_src:
    case OXM_udp_src:
    case OXM_sctp_src: write16(x, v, TP_SRC, OFPFW10_TP_SRC); return x->type == TYPE_IPV4;
    case OXM_icmpv4_code:
    case OXM_tcp_dst:
    case OXM_udp_dst:
    case OXM_sctp_dst: write16(x, v, TP_DST, OFPFW10_TP_DST); return x->type == TYPE_IPV4;
    default: return false;
    }
}

static bool
write_field(struct match10 *x, const struct of_oxm *o)
{
    uint64_t v = oxm_number(o->row, o->value);
    uint16_t port;
    bool address = o->row->fmt == OXM_FMT_IPV4, whole = !o->has_mask;
    switch (o->row->field) {
    case OXM_in_port:
        whole = of_port10((uint32_t)v, &port);
        write16(x, port, IN_PORT, OFPFW10_IN_PORT);
        return whole;
    case OXM_eth_src: write_mac(x, o, DL_SRC, OFPFW10_DL_SRC); return whole;
    case OXM_eth_dst: write_mac(x, o, DL_DST, OFPFW10_DL_DST); return whole;
    case OXM_eth_type:
        x->type = (uint16_t)v;
        write16(x, v, DL_TYPE, OFPFW10_DL_TYPE);
        return true;
    case OXM_vlan_vid: return write_vlan(x, o);
    case OXM_vlan_pcp: write8(x, v, DL_VLAN_PCP, OFPFW10_DL_VLAN_PCP); return true;
    default: return write_network(x, o, v) && (whole || address);
    }
}

bool
of_match10_encode(uint8_t out[OF10_MATCH_LEN], const struct of_match *m)
{
    struct match10 x = {.p = out,
                        .w = (OFPFW10_ALL & ~(OFPFW10_NW_MASK << OFPFW10_NW_SRC_SHIFT |
                                              OFPFW10_NW_MASK << OFPFW10_NW_DST_SHIFT)) |
                             32u << OFPFW10_NW_SRC_SHIFT | 32u << OFPFW10_NW_DST_SHIFT};
    const struct of_oxm *vlan = of_match_find(m, OXM_vlan_vid);
    const struct of_oxm *type = of_match_find(m, OXM_eth_type);
    bool says = true;
    memset(out, 0, OF10_MATCH_LEN);
    x.type = type ? of_get16(type->value) : 0;
    for (uint32_t i = 0; i < m->n; i++)
        says = write_field(&x, &m->v[i]) && says;
    if (vlan && vlan->has_mask && x.w & OFPFW10_DL_VLAN_PCP)
        says = false; /* a tag, whatever its VID and PCP */
    of_set32(out, x.w);
    return says;
}
