/* SPDX-License-Identifier: Apache-2.0 */
/* Tags pushed and popped, TTLs set, counted down and copied (5.12). */
#include <packet/headers.h>

#include <packet/checksum.h>

#include <string.h>

/* ------------------------------------------------------------------ room */

/* Makes n bytes of room at `at`, undefined, by moving what is in front of it.  Offsets in `vnet`
 * follow; the caller moves the packet's own. */
static int
make_room(struct packet *p, uint32_t at, uint32_t n)
{
    bool partial = p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
    if (p->len < ETH_HEADER)
        return EDIT_DROP(malformed);
    if (p->len + n > PACKET_MAX || (partial && p->vnet.csum_start + n > UINT16_MAX))
        return EDIT_DROP(too_long);
    if (!packet_own(p, n))
        return EDIT_DROP(no_memory);
    p->data -= n;
    p->headroom -= n;
    p->len += n;
    memmove(p->data, p->data + n, at);
    if (partial)
        p->vnet.csum_start = (uint16_t)(p->vnet.csum_start + n);
    if (p->vnet.hdr_len)
        p->vnet.hdr_len =
            (uint16_t)(p->vnet.hdr_len + n > UINT16_MAX ? UINT16_MAX : p->vnet.hdr_len + n);
    return 0;
}

/* Removes the n bytes at `at`; at least an Ethernet header is left. */
static int
cut(struct packet *p, uint32_t at, uint32_t n)
{
    bool partial = p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
    if (partial && p->vnet.csum_start < at + n)
        return EDIT_DROP(malformed); /* a checksum that begins in a tag: nobody asks for that */
    if (!packet_own(p, 0))
        return EDIT_DROP(no_memory);
    memmove(p->data + n, p->data, at);
    p->data += n;
    p->headroom += n;
    p->len -= n;
    if (partial)
        p->vnet.csum_start = (uint16_t)(p->vnet.csum_start - n);
    if (p->vnet.hdr_len)
        p->vnet.hdr_len = (uint16_t)(p->vnet.hdr_len > n ? p->vnet.hdr_len - n : 0);
    return 0;
}

/* Everything behind the Ethernet addresses has moved. */
static void
shift_offsets(struct packet *p, uint32_t by)
{
    uint32_t *const offsets[] = {&p->l3, &p->l4, &p->nd_target_at, &p->nd_sll_at, &p->nd_tll_at};
    p->eth_type_at += by;
    for (unsigned i = 0; i < sizeof offsets / sizeof *offsets; i++)
        if (*offsets[i])
            *offsets[i] += by;
}

bool
packet_has_vlan(const struct packet *p)
{
    return p->key.vlan_vid[0] & OFPVID_PRESENT >> 8;
}

static bool
has_mpls(const struct packet *p)
{
    return p->l3 && is_mpls_type(of_get16(p->key.eth_type));
}

static bool
has_pbb(const struct packet *p)
{
    return p->l3 && of_get16(p->key.eth_type) == TYPE_PBB;
}

/* ------------------------------------------------------------------ VLAN */

int
packet_push_vlan(struct packet *p, uint16_t ethertype)
{
    struct flow_key *k = &p->key;
    uint16_t tci = (uint16_t)(k->vlan_pcp << 13 | (key_vid(k) & 0xfff));
    int drop = make_room(p, ETH_TYPE_AT, VLAN_TAG);
    if (drop)
        return drop;
    of_set16(p->data + ETH_TYPE_AT, ethertype);
    of_set16(p->data + ETH_TYPE_AT + 2, tci);
    shift_offsets(p, VLAN_TAG);
    key_set_vid(k, (tci & 0xfff) | OFPVID_PRESENT);
    return 0;
}

int
packet_pop_vlan(struct packet *p)
{
    struct flow_key *k = &p->key;
    if (!packet_has_vlan(p))
        return 0;
    int drop = cut(p, ETH_TYPE_AT, VLAN_TAG);
    if (drop)
        return drop;
    shift_offsets(p, (uint32_t)-VLAN_TAG);
    key_set_vid(k, OFPVID_NONE);
    k->vlan_pcp = 0;
    if (vlan_tag_at(p->data, p->len, ETH_TYPE_AT)) {
        const uint8_t *tci = p->data + ETH_TYPE_AT + 2;
        key_set_vid(k, (of_get16(tci) & 0xfff) | OFPVID_PRESENT);
        k->vlan_pcp = tci[0] >> 5;
    }
    return 0;
}

/* ------------------------------------------------------------------ TTL */

struct ttl {
    uint32_t at; /* of the byte */
    enum { TTL_MPLS, TTL_IPV4, TTL_IPV6 } kind;
};

static void
set_ttl(struct packet *p, const struct ttl *t, uint8_t value)
{
    uint8_t *byte = p->data + t->at;
    if (t->kind == TTL_IPV4) { /* the checksum counts TTL and protocol as one word */
        uint8_t after[2] = {value, byte[1]};
        csum_update(byte + 2, byte, after, 2);
    }
    *byte = value;
}

static void
ip_ttl(const struct ip_view *v, struct ttl *out)
{
    out->kind = v->v6 ? TTL_IPV6 : TTL_IPV4;
    out->at = v->at + (v->v6 ? IPV6_HOPS_AT : IPV4_TTL_AT);
}

static bool
outer_ip_ttl(const struct packet *p, struct ttl *out)
{
    uint16_t type = of_get16(p->key.eth_type);
    if (!p->l3 || (type != TYPE_IPV4 && type != TYPE_IPV6))
        return false;
    ip_ttl(&(struct ip_view){.at = p->l3, .v6 = type == TYPE_IPV6}, out);
    return true;
}

static bool
outer_ttl(const struct packet *p, struct ttl *out)
{
    if (!has_mpls(p))
        return outer_ip_ttl(p, out);
    *out = (struct ttl){.at = p->l3 + MPLS_TTL_AT, .kind = TTL_MPLS};
    return true;
}

/* The TTL of the header behind the outermost one that has a TTL. */
static bool
inner_ttl(const struct packet *p, const struct ttl *outer, struct ttl *out)
{
    bool super = gso_kind(p);
    struct ip_view v, in;
    if (outer->kind == TTL_MPLS) {
        uint32_t next = p->l3 + MPLS_SHIM;
        if (!p->key.mpls_bos) {
            *out = (struct ttl){.at = next + MPLS_TTL_AT, .kind = TTL_MPLS};
            return p->len - next >= MPLS_SHIM;
        }
        if (!ip_view_guess(p->data, p->len, next, super, &v))
            return false;
        ip_ttl(&v, out);
        return true;
    }
    if (!ip_view(p->data, p->len, p->l3, outer->kind == TTL_IPV6, super, &v) || !v.payload ||
        (v.proto != PROTO_IPIP && v.proto != PROTO_IPV6) ||
        !ip_view(p->data, v.end, v.payload, v.proto == PROTO_IPV6, super, &in))
        return false;
    ip_ttl(&in, out);
    return true;
}

static int
write_ttl(struct packet *p, const struct ttl *t, uint8_t value)
{
    if (p->data[t->at] == value)
        return 0;
    if (!packet_own(p, 0))
        return EDIT_DROP(no_memory);
    set_ttl(p, t, value);
    return 0;
}

static int
dec_ttl(struct packet *p, const struct ttl *t)
{
    uint8_t now = p->data[t->at];
    return now <= 1 ? EDIT_DROP(ttl) : write_ttl(p, t, (uint8_t)(now - 1));
}

int
packet_set_mpls_ttl(struct packet *p, uint8_t ttl)
{
    struct ttl t;
    return has_mpls(p) && outer_ttl(p, &t) ? write_ttl(p, &t, ttl) : 0;
}

int
packet_dec_mpls_ttl(struct packet *p)
{
    struct ttl t;
    return has_mpls(p) && outer_ttl(p, &t) ? dec_ttl(p, &t) : 0;
}

int
packet_set_nw_ttl(struct packet *p, uint8_t ttl)
{
    struct ttl t;
    return outer_ip_ttl(p, &t) ? write_ttl(p, &t, ttl) : 0;
}

int
packet_dec_nw_ttl(struct packet *p)
{
    struct ttl t;
    return outer_ip_ttl(p, &t) ? dec_ttl(p, &t) : 0;
}

int
packet_copy_ttl_out(struct packet *p)
{
    struct ttl outer, inner;
    if (!outer_ttl(p, &outer) || !inner_ttl(p, &outer, &inner))
        return 0;
    return write_ttl(p, &outer, p->data[inner.at]);
}

int
packet_copy_ttl_in(struct packet *p)
{
    struct ttl outer, inner;
    if (!outer_ttl(p, &outer) || !inner_ttl(p, &outer, &inner))
        return 0;
    return write_ttl(p, &inner, p->data[outer.at]);
}

/* ------------------------------------------------------------------ MPLS */

/* A new label takes the fields of the packet's outermost one, else the IP header's TTL. */
static uint32_t
new_shim(const struct packet *p, bool bottom)
{
    struct ttl t;
    uint32_t shim = 0;
    if (has_mpls(p))
        shim = of_get32(p->data + p->l3) & ~MPLS_BOS;
    else if (outer_ip_ttl(p, &t))
        shim = p->data[t.at];
    return shim | (bottom ? MPLS_BOS : 0);
}

/* The length field of an 802.3 frame; its SNAP type is at type_at. */
static void
add_llc_length(struct packet *p, uint32_t type_at, int by)
{
    uint8_t *field = p->data + type_at - LLC_SNAP;
    int n = of_get16(field) + by;
    if (n >= 0 && n < ETH_MIN_TYPE)
        of_set16(field, (uint16_t)n);
}

int
packet_push_mpls(struct packet *p, uint16_t ethertype)
{
    uint32_t at = packet_has_vlan(p) ? ETH_TYPE_AT : p->eth_type_at;
    if (p->len < ETH_HEADER)
        return EDIT_DROP(malformed);
    uint32_t shim = new_shim(p, !is_mpls_type(of_get16(p->data + at)));
    bool llc = p->snap && at == p->eth_type_at;
    int drop = make_room(p, at + 2, MPLS_SHIM);
    if (drop)
        return drop;
    of_set16(p->data + at, ethertype);
    of_set32(p->data + at + 2, shim);
    if (llc)
        add_llc_length(p, at, MPLS_SHIM);
    p->inside = 0;
    packet_reparse(p);
    return 0;
}

int
packet_pop_mpls(struct packet *p, uint16_t ethertype)
{
    if (!has_mpls(p))
        return 0;
    int drop = cut(p, p->l3, MPLS_SHIM);
    if (drop)
        return drop;
    of_set16(p->data + p->eth_type_at, ethertype);
    if (p->snap)
        add_llc_length(p, p->eth_type_at, -MPLS_SHIM);
    packet_reparse(p);
    return 0;
}

/* ------------------------------------------------------------------ PBB */

/* In front come a whole Ethernet header and the I-TAG.  The old header is then the customer's. */
int
packet_push_pbb(struct packet *p, uint16_t ethertype)
{
    uint32_t isid = 0, pcp = p->key.vlan_pcp;
    if (has_pbb(p))
        isid = of_get32(p->data + p->l3) & 0xffffff;
    int drop = make_room(p, 0, PBB_PUSH);
    if (drop)
        return drop;
    memcpy(p->data, p->data + PBB_PUSH, ETH_TYPE_AT);
    of_set16(p->data + ETH_TYPE_AT, ethertype);
    of_set32(p->data + ETH_HEADER, pcp << 29 | isid);
    p->inside = 0;
    packet_reparse(p);
    return 0;
}

/* The backbone's addresses and the I-TAG go.  VLAN tags in front of the I-TAG stay, behind the
 * customer's addresses (7.2.5). */
int
packet_pop_pbb(struct packet *p)
{
    uint8_t addresses[ETH_TYPE_AT];
    if (!has_pbb(p))
        return 0;
    uint32_t customer = p->l3 + PBB_ITAG;
    if (p->len - customer < ETH_HEADER)
        return EDIT_DROP(malformed);
    memcpy(addresses, p->data + customer, ETH_TYPE_AT);
    int drop = cut(p, p->eth_type_at, customer + ETH_TYPE_AT - p->eth_type_at);
    if (drop)
        return drop;
    memcpy(p->data, addresses, ETH_TYPE_AT);
    packet_reparse(p);
    return 0;
}
