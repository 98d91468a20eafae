/* SPDX-License-Identifier: Apache-2.0 */
#include <packet/headers.h>

#include <string.h>

static inline uint64_t
mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9fb21c651e98df25);
    return h ^ h >> 32;
}

uint32_t
packet_flow_hash(const struct packet *p)
{
    const struct flow_key *k = &p->key;
    uint64_t h = UINT64_C(0x2545f4914f6cdd1d), ports = 0;
    uint16_t type = of_get16(k->eth_type);
    h = mix(h, k->w[3]); /* both MAC addresses, the type and the outermost VLAN */
    h = mix(h, (uint64_t)of_get32(k->eth_src + 2) << 32 | (uint32_t)type << 16 | key_vid(k));
    h = mix(h, k->w[8]); /* IPv4 or ARP */
    h = mix(h, k->w[10]);
    if (!p->l3 || (type != TYPE_IPV4 && type != TYPE_IPV6)) {
        h = mix(h, k->w[6]); /* MPLS */
    } else {
        if (type == TYPE_IPV6) {
            h = mix(h, k->w[9]);
            h = mix(h, k->w[11]);
        }
        /* A later fragment has no ports, so the ports of the packet's other fragments must not
         * count either. */
        if (p->l4 && !p->fragment && k->ip_proto != PROTO_ICMP && k->ip_proto != PROTO_ICMPV6)
            ports = (uint64_t)of_get16(k->tp_src) << 16 | of_get16(k->tp_dst);
        h = mix(h, ports << 8 | k->ip_proto);
    }
    h *= UINT64_C(0xd6e8feb86659fd93);
    return (uint32_t)(h >> 32);
}

void
packet_of_key(const struct flow_key *k, struct packet *out)
{
    uint16_t has = of_get16(k->vlan_vid);
    *out = (struct packet){
        .key = *k, .l3 = has & KEY_HAS_L3, .l4 = has & KEY_HAS_L4, .fragment = k->fragment};
}

#define ALL(member) memset(bits->member, 0xff, sizeof bits->member)

static void
bits_of_all(struct flow_key *bits)
{
    *bits = (struct flow_key){0};
    ALL(eth_dst);
    ALL(eth_src);
    ALL(eth_type);
    ALL(vlan_vid);
    bits->w[8] = bits->w[10] = UINT64_MAX;
}

void
packet_flow_hash_any_bits(struct flow_key *bits)
{
    bits_of_all(bits);
    bits->ip_proto = 0xff;
    ALL(tp_src);
    ALL(tp_dst);
    bits->w[6] = bits->w[9] = bits->w[11] = UINT64_MAX;
}

void
packet_flow_hash_bits(const struct packet *p, struct flow_key *bits)
{
    const struct flow_key *k = &p->key;
    uint16_t type = of_get16(k->eth_type);
    bits_of_all(bits);
    if (!p->l3 || (type != TYPE_IPV4 && type != TYPE_IPV6)) {
        bits->w[6] = UINT64_MAX;
        return;
    }
    bits->ip_proto = 0xff;
    if (type == TYPE_IPV6)
        bits->w[9] = bits->w[11] = UINT64_MAX;
    if (p->l4 && k->ip_proto != PROTO_ICMP && k->ip_proto != PROTO_ICMPV6) {
        bits->fragment = 0xff;
        ALL(tp_src);
        ALL(tp_dst);
    }
}
