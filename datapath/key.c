/* SPDX-License-Identifier: Apache-2.0 */
#include "key.h"

#include <oflib/wire.h>

#include <stddef.h>
#include <string.h>

#define AT(member) offsetof(struct flow_key, member)

const uint8_t key_offset[OXM_N] = {
    [OXM_in_port] = AT(in_port),
    [OXM_in_phy_port] = AT(in_phy_port),
    [OXM_metadata] = AT(metadata),
    [OXM_eth_dst] = AT(eth_dst),
    [OXM_eth_src] = AT(eth_src),
    [OXM_eth_type] = AT(eth_type),
    [OXM_vlan_vid] = AT(vlan_vid),
    [OXM_vlan_pcp] = AT(vlan_pcp),
    [OXM_ip_dscp] = AT(ip_dscp),
    [OXM_ip_ecn] = AT(ip_ecn),
    [OXM_ip_proto] = AT(ip_proto),
    [OXM_ipv4_src] = AT(ip_src),
    [OXM_ipv4_dst] = AT(ip_dst),
    [OXM_tcp_src] = AT(tp_src),
    [OXM_tcp_dst] = AT(tp_dst),
    [OXM_udp_src] = AT(tp_src),
    [OXM_udp_dst] = AT(tp_dst),
    [OXM_sctp_src] = AT(tp_src),
    [OXM_sctp_dst] = AT(tp_dst),
    [OXM_icmpv4_type] = AT(tp_src),
    [OXM_icmpv4_code] = AT(tp_src) + 1,
    [OXM_arp_op] = AT(tp_src),
    [OXM_arp_spa] = AT(ip_src),
    [OXM_arp_tpa] = AT(ip_dst),
    [OXM_arp_sha] = AT(nd_sll),
    [OXM_arp_tha] = AT(nd_tll),
    [OXM_ipv6_src] = AT(ip_src),
    [OXM_ipv6_dst] = AT(ip_dst),
    [OXM_ipv6_flabel] = AT(ipv6_flabel),
    [OXM_icmpv6_type] = AT(tp_src),
    [OXM_icmpv6_code] = AT(tp_src) + 1,
    [OXM_ipv6_nd_target] = AT(nd_target),
    [OXM_ipv6_nd_sll] = AT(nd_sll),
    [OXM_ipv6_nd_tll] = AT(nd_tll),
    [OXM_mpls_label] = AT(mpls_label),
    [OXM_mpls_tc] = AT(mpls_tc),
    [OXM_mpls_bos] = AT(mpls_bos),
    [OXM_pbb_isid] = AT(pbb_isid),
    [OXM_tunnel_id] = AT(tunnel_id),
    [OXM_ipv6_exthdr] = AT(ipv6_exthdr),
};

/* All bits of a field, in one of its bytes: as many as its row says, right-aligned. */
static inline uint8_t
full_byte(const struct oxm_row *row, int byte)
{
    int bits = row->bits - 8 * (row->bytes - 1 - byte);
    return (uint8_t)(bits >= 8 ? 0xff : bits > 0 ? (1 << bits) - 1 : 0);
}

static void
full_mask(const struct oxm_row *row, uint8_t *out)
{
    for (int b = 0; b < row->bytes; b++)
        out[b] = full_byte(row, b);
}

static const uint8_t has_nd[OXM_N] = {[OXM_ipv6_nd_target] = KEY_HAS_ND_TARGET,
                                      [OXM_ipv6_nd_sll] = KEY_HAS_ND_SLL,
                                      [OXM_ipv6_nd_tll] = KEY_HAS_ND_TLL};

/* Of KEY_HAS, what says that the packet has the field. */
static uint16_t
has_header(enum oxm_field f)
{
    int8_t needs = oxm_rows[f].prereq->field;
    if (needs == OXM_eth_type)
        return KEY_HAS_L3;
    return needs == OXM_ip_proto || needs == OXM_icmpv6_type ? KEY_HAS_L4 : 0;
}

static void
ask_for(struct flow_key *k, enum oxm_field f)
{
    of_set16(k->vlan_vid, of_get16(k->vlan_vid) | has_header(f));
    k->has_nd |= has_nd[f];
}

static bool
is_there(const struct flow_key *k, enum oxm_field f)
{
    return !(has_header(f) & ~of_get16(k->vlan_vid)) && !(has_nd[f] & ~k->has_nd);
}

void
key_of_match(const struct of_match *m, struct flow_key *key, struct flow_key *mask)
{
    memset(key, 0, sizeof *key);
    memset(mask, 0, sizeof *mask);
    for (uint32_t i = 0; i < m->n; i++) {
        const struct of_oxm *o = &m->v[i];
        uint8_t *k = key_field(key, (enum oxm_field)o->row->field);
        uint8_t *w = key_field(mask, (enum oxm_field)o->row->field);
        uint8_t any = 0;
        for (int b = 0; b < o->row->bytes; b++) {
            uint8_t full = o->has_mask ? o->mask[b] : full_byte(o->row, b);
            any |= full;
            w[b] |= full; /* beside bits of ask_for */
            k[b] |= o->value[b] & full;
        }
        if (any) {
            ask_for(key, (enum oxm_field)o->row->field);
            ask_for(mask, (enum oxm_field)o->row->field);
        }
    }
}

/* Does the mask hold the whole field? */
static bool
is_exact(const struct oxm_row *row, const struct flow_key *mask)
{
    uint8_t full[OXM_MAX_LEN];
    const uint8_t *m = (const uint8_t *)mask + key_offset[row->field];
    full_mask(row, full);
    for (int b = 0; b < row->bytes; b++)
        if ((m[b] & full[b]) != full[b])
            return false;
    return true;
}

/* Do key and mask say that the packet has what the field needs (and that needs, and so on)? */
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
    if (!is_exact(need, mask) || !prereq_holds(key, mask, need))
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
    /* A prerequisite's number is always lower than that of the field that needs it. */
    for (int f = 0; f < OXM_N; f++) {
        const struct oxm_row *row = &oxm_rows[f];
        struct of_oxm *o = &out->v[out->n];
        const uint8_t *k = (const uint8_t *)key + key_offset[f];
        const uint8_t *m = (const uint8_t *)mask + key_offset[f];
        uint8_t full[OXM_MAX_LEN], any = 0;
        full_mask(row, full);
        for (int b = 0; b < row->bytes; b++)
            any |= m[b] & full[b];
        if (!any || !prereq_holds(key, mask, row) || !is_there(key, (enum oxm_field)f))
            continue;
        memset(o, 0, sizeof *o);
        o->row = row;
        o->has_mask = !is_exact(row, mask);
        for (int b = 0; b < row->bytes; b++) {
            o->mask[b] = o->has_mask ? m[b] & full[b] : 0xff;
            o->value[b] = k[b] & m[b] & full[b];
        }
        out->n++;
    }
}
