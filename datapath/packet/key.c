/* SPDX-License-Identifier: Apache-2.0 */
#include <packet/key.h>

#include <oflib/protocols.h>
#include <oflib/wire.h>

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(struct flow_key, member)

const uint8_t key_offset[OXM_N] = {
    [OXM_in_port] = AT(in_port),         [OXM_in_phy_port] = AT(in_phy_port),
    [OXM_metadata] = AT(metadata),       [OXM_eth_dst] = AT(eth_dst),
    [OXM_eth_src] = AT(eth_src),         [OXM_eth_type] = AT(eth_type),
    [OXM_vlan_vid] = AT(vlan_vid),       [OXM_vlan_pcp] = AT(vlan_pcp),
    [OXM_ip_dscp] = AT(ip_dscp),         [OXM_ip_ecn] = AT(ip_ecn),
    [OXM_ip_proto] = AT(ip_proto),       [OXM_ipv4_src] = AT(ip_src),
    [OXM_ipv4_dst] = AT(ip_dst),         [OXM_tcp_src] = AT(tp_src),
    [OXM_tcp_dst] = AT(tp_dst),          [OXM_udp_src] = AT(tp_src),
    [OXM_udp_dst] = AT(tp_dst),          [OXM_sctp_src] = AT(tp_src),
    [OXM_sctp_dst] = AT(tp_dst),         [OXM_icmpv4_type] = AT(tp_src),
    [OXM_icmpv4_code] = AT(tp_src) + 1,  [OXM_arp_op] = AT(tp_src),
    [OXM_arp_spa] = AT(ip_src),          [OXM_arp_tpa] = AT(ip_dst),
    [OXM_arp_sha] = AT(nd_sll),          [OXM_arp_tha] = AT(nd_tll),
    [OXM_ipv6_src] = AT(ip_src),         [OXM_ipv6_dst] = AT(ip_dst),
    [OXM_ipv6_flabel] = AT(ipv6_flabel), [OXM_icmpv6_type] = AT(tp_src),
    [OXM_icmpv6_code] = AT(tp_src) + 1,  [OXM_ipv6_nd_target] = AT(nd_target),
    [OXM_ipv6_nd_sll] = AT(nd_sll),      [OXM_ipv6_nd_tll] = AT(nd_tll),
    [OXM_mpls_label] = AT(mpls_label),   [OXM_mpls_tc] = AT(mpls_tc),
    [OXM_mpls_bos] = AT(mpls_bos),       [OXM_pbb_isid] = AT(pbb_isid),
    [OXM_tunnel_id] = AT(tunnel_id),     [OXM_ipv6_exthdr] = AT(ipv6_exthdr),
};

bool
key_is_arp(const struct flow_key *k)
{
    uint16_t type = of_get16(k->eth_type);
    return (type == TYPE_ARP || type == TYPE_RARP) && of_get16(k->vlan_vid) & KEY_HAS_L3;
}

/* All bits of a field: as many as its row says, right-aligned in its bytes. */
#define FULL_BYTE(bytes, bits, b)                                                                  \
    ((b) >= (bytes)                    ? 0                                                         \
     : (bits) >= 8 * ((bytes) - (b))   ? 0xff                                                      \
     : (bits) <= 8 * ((bytes) - (b)-1) ? 0                                                         \
                                       : (1 << (bits) % 8) - 1)
#define FULL_HALF(by, bi, b)                                                                       \
    FULL_BYTE(by, bi, b), FULL_BYTE(by, bi, (b) + 1), FULL_BYTE(by, bi, (b) + 2),                  \
        FULL_BYTE(by, bi, (b) + 3), FULL_BYTE(by, bi, (b) + 4), FULL_BYTE(by, bi, (b) + 5),        \
        FULL_BYTE(by, bi, (b) + 6), FULL_BYTE(by, bi, (b) + 7)
#define FULL_MASK(num, name, by, bi, mask, set, fmt, pre)                                          \
    [num] = {FULL_HALF(by, bi, 0), FULL_HALF(by, bi, 8)},
static const uint8_t full_mask[OXM_N][OXM_MAX_LEN] = {OXM_ROWS(FULL_MASK)};

static const uint8_t has_nd[OXM_N] = {[OXM_ipv6_nd_target] = KEY_HAS_ND_TARGET,
                                      [OXM_ipv6_nd_sll] = KEY_HAS_ND_SLL,
                                      [OXM_ipv6_nd_tll] = KEY_HAS_ND_TLL};

uint16_t
key_has(enum oxm_field f)
{
    int8_t needs = oxm_rows[f].prereq->field;
    if (needs == OXM_eth_type)
        return KEY_HAS_L3;
    return needs == OXM_ip_proto || needs == OXM_icmpv6_type ? KEY_HAS_L4 : 0;
}

static bool
is_there(const struct flow_key *k, enum oxm_field f)
{
    return !(key_has(f) & ~of_get16(k->vlan_vid)) && !(has_nd[f] & ~k->has_nd);
}

static void
set_bits(uint8_t *at, uint64_t bits)
{
    uint64_t v;
    memcpy(&v, at, sizeof v);
    v |= bits;
    memcpy(at, &v, sizeof v);
}

_Static_assert(AT(nd_tll) + 8 <= sizeof(struct flow_key),
               "eight bytes from where any field begins are within the key");

/* Copies 8 bytes of a field; returns whether the mask has any bit of them. */
static bool
put_half(const struct of_oxm *o, int from, struct flow_key *key, struct flow_key *mask)
{
    enum oxm_field f = (enum oxm_field)o->row->field;
    uint64_t bits, value, given;
    memcpy(&bits, full_mask[f] + from, sizeof bits);
    memcpy(&value, o->value + from, sizeof value);
    memcpy(&given, o->mask + from, sizeof given);
    if (o->has_mask)
        bits &= given;
    set_bits(key_field(mask, f) + from, bits);
    set_bits(key_field(key, f) + from, value & bits);
    return bits;
}

void
key_of_match(const struct of_match *m, struct flow_key *key, struct flow_key *mask)
{
    uint16_t has = 0;
    memset(key, 0, sizeof *key);
    memset(mask, 0, sizeof *mask);
    for (uint32_t i = 0; i < m->n; i++) {
        const struct of_oxm *o = &m->v[i];
        enum oxm_field f = (enum oxm_field)o->row->field;
        bool any = put_half(o, 0, key, mask);
        if (o->row->bytes > 8 && put_half(o, 8, key, mask))
            any = true;
        if (any) {
            has |= key_has(f);
            mask->has_nd |= has_nd[f];
        }
    }
    of_set16(key->vlan_vid, of_get16(key->vlan_vid) | has);
    of_set16(mask->vlan_vid, of_get16(mask->vlan_vid) | has);
    key->has_nd = mask->has_nd;
}

bool
key_mask_is_whole(enum oxm_field f, const uint8_t *mask)
{
    const uint8_t *full = full_mask[f];
    for (int b = 0; b < oxm_rows[f].bytes; b++)
        if ((mask[b] & full[b]) != full[b])
            return false;
    return true;
}

/* Whether key and mask have the field's prerequisite, that one's prerequisite, and so on. */
static bool
prereq_holds(const struct flow_key *key, const struct flow_key *mask, const struct oxm_row *row)
{
    const struct oxm_prereq *p = row->prereq;
    if (p->field < 0)
        return true;
    const struct oxm_row *need = &oxm_rows[p->field];
    const uint8_t *k = (const uint8_t *)key + key_offset[p->field];
    const uint8_t *m = (const uint8_t *)mask + key_offset[p->field];
    if (p->field == OXM_vlan_vid)
        return of_get16(k) & of_get16(m) & OFPVID_PRESENT;
    if (!key_mask_is_whole((enum oxm_field)p->field, m) || !prereq_holds(key, mask, need))
        return false;
    for (int i = 0; i < p->n; i++)
        if (oxm_number(need, k) == p->value[i])
            return true;
    return p->n == 0;
}

void
key_to_match(const struct flow_key *key, const struct flow_key *mask, struct of_match *out)
{
    out->n = 0;
    /* In this order a prerequisite comes before the fields that need it. */
    for (int f = 0; f < OXM_N; f++) {
        const struct oxm_row *row = &oxm_rows[f];
        struct of_oxm *o = &out->v[out->n];
        const uint8_t *k = (const uint8_t *)key + key_offset[f];
        const uint8_t *m = (const uint8_t *)mask + key_offset[f];
        const uint8_t *full = full_mask[f];
        uint8_t any = 0;
        for (int b = 0; b < row->bytes; b++)
            any |= m[b] & full[b];
        if (!any || !prereq_holds(key, mask, row) || !is_there(key, (enum oxm_field)f))
            continue;
        memset(o, 0, sizeof *o);
        o->row = row;
        o->has_mask = !key_mask_is_whole((enum oxm_field)f, m);
        for (int b = 0; b < row->bytes; b++) {
            o->mask[b] = o->has_mask ? m[b] & full[b] : 0xff;
            o->value[b] = k[b] & m[b] & full[b];
        }
        out->n++;
    }
}

/* Is this value of the field what most packets have anyway? */
static bool
goes_without_saying(const struct flow_key *key, enum oxm_field f)
{
    uint64_t value =
        oxm_rows[f].bytes > 8 ? 1 : oxm_number(&oxm_rows[f], (const uint8_t *)key + key_offset[f]);
    switch (f) {
    case OXM_in_port: return value == OFPP_ANY;
    case OXM_in_phy_port: return !value || value == of_get32(key->in_port);
    case OXM_vlan_vid: return !(value & OFPVID_PRESENT);
    case OXM_metadata:
    case OXM_tunnel_id:
    case OXM_ipv6_flabel:
    case OXM_ipv6_exthdr: return !value;
    default: return false;
    }
}

void
key_describe(const struct flow_key *key, struct of_match *out)
{
    struct flow_key mask;
    memset(&mask, 0xff, sizeof mask);
    key_to_match(key, &mask, out);
    uint32_t n = 0;
    for (uint32_t i = 0; i < out->n; i++)
        if (!goes_without_saying(key, (enum oxm_field)out->v[i].row->field))
            out->v[n++] = out->v[i];
    out->n = n;
}
