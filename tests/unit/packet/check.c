/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include <packet/headers.h>

#include <oflib/wire.h>

#include <stdlib.h>
#include <string.h>

uint16_t
oracle_sum(uint32_t start, const uint8_t *p, size_t n)
{
    uint32_t sum = start;
    for (size_t i = 0; i < n; i++) {
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

uint32_t
oracle_crc32c(const uint8_t *p, size_t n)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < n; i++) {
        crc ^= p[i];
        for (int b = 0; b < 8; b++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78 : crc >> 1;
    }
    return ~crc;
}

/* NULL, or what packet_reparse makes of the packet that packet_parse doesn't. */
static const char *
differs_from_general(const struct packet *p)
{
    struct packet q = *p;
    memset(q.key.w + 3, 0x5a, sizeof q.key - 3 * sizeof q.key.w[0]);
    q.fragment = q.later_fragment = q.malformed = q.snap = true;
    q.eth_type_at = q.l3 = q.l4 = q.nd_target_at = q.nd_sll_at = q.nd_tll_at = 0x5a5a;
    packet_reparse(&q);
    if (memcmp(&q.key, &p->key, sizeof q.key))
        return "key by packet_reparse";
    return q.fragment == p->fragment && q.later_fragment == p->later_fragment &&
                   q.malformed == p->malformed && q.snap == p->snap &&
                   q.eth_type_at == p->eth_type_at && q.l3 == p->l3 && q.l4 == p->l4 &&
                   q.nd_target_at == p->nd_target_at && q.nd_sll_at == p->nd_sll_at &&
                   q.nd_tll_at == p->nd_tll_at
               ? NULL
               : "offsets by packet_reparse";
}

#define SAME(member)                                                                               \
    if (p->member != q.member) {                                                                   \
        free(copy);                                                                                \
        return #member;                                                                            \
    }

const char *
check_reparse(const struct packet *p)
{
    uint8_t *copy = malloc(p->len);
    struct packet q = *p;
    if (p->len && !copy)
        return "memory";
    if (p->len)
        memcpy(copy, p->data, p->len);
    q.data = copy;
    q.headroom = 0;
    q.vnet.flags = 0;
    q.shared = false;
    q.pool = NULL;
    packet_parse(&q, p->in_port);
    const char *differs = differs_from_general(&q);
    if (differs) {
        free(copy);
        return differs;
    }
    memcpy(q.key.metadata, p->key.metadata, 8);
    memcpy(q.key.tunnel_id, p->key.tunnel_id, 8);
    SAME(len)
    SAME(fragment)
    SAME(later_fragment)
    SAME(malformed)
    SAME(snap)
    SAME(eth_type_at)
    SAME(l3)
    SAME(l4)
    SAME(nd_target_at)
    SAME(nd_sll_at)
    SAME(nd_tll_at)
    for (int w = 0; w < KEY_WORDS; w++)
        SAME(key.w[w])
    free(copy);
    return NULL;
}

/* The address that counts for the pseudo-header: with a type 0 routing header that has hops to go
 * the last one in it. */
static const uint8_t *
final_dst(const struct packet *p)
{
    const uint8_t *ip = p->data + p->l3, *h = ip + 40;
    uint8_t next = ip[6];
    for (;;) {
        if (next == 43 && h[3])
            return h + 8 + (h[1] / 2 - 1) * 16;
        if (next != 0 && next != 60 && next != 43 && next != 44 && next != 51)
            return ip + 24;
        uint8_t now = next;
        next = h[0];
        h += now == 51 ? (h[1] + 2) * 4 : now == 44 ? 8 : (h[1] + 1) * 8;
    }
}

static const char *
transport(const struct packet *p, bool v6, uint32_t end)
{
    const uint8_t *ip = p->data + p->l3, *l4 = p->data + p->l4;
    uint8_t proto = p->key.ip_proto;
    uint32_t n = end - p->l4, pseudo = n + proto;
    bool partial = p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
    if (proto == 132) {
        uint8_t copy[2048];
        if (n > sizeof copy)
            return NULL;
        memcpy(copy, l4, n);
        memset(copy + 8, 0, 4);
        uint32_t crc = oracle_crc32c(copy, n);
        return l4[8] == (crc & 0xff) && l4[9] == (crc >> 8 & 0xff) &&
                       l4[10] == (crc >> 16 & 0xff) && l4[11] == crc >> 24
                   ? NULL
                   : "CRC32c";
    }
    if (proto == 1)
        return oracle_sum(0, l4, n) == 0xffff ? NULL : "ICMP checksum";
    pseudo = v6 ? oracle_sum(oracle_sum(pseudo, ip + 8, 16), final_dst(p), 16)
                : oracle_sum(pseudo, ip + 12, 8);
    if (partial) {
        uint32_t at = proto == 6 ? 16 : proto == 17 ? 6 : 2;
        uint16_t field = of_get16(l4 + at);
        return field == pseudo || (field % 0xffff == 0 && pseudo % 0xffff == 0)
                   ? NULL
                   : "partial checksum";
    }
    if (proto == 17 && !of_get16(l4 + 6))
        return NULL;
    return oracle_sum(pseudo, l4, n) == 0xffff ? NULL : "transport checksum";
}

const char *
check_sums(const struct packet *p)
{
    const uint8_t *ip = p->data + p->l3;
    uint16_t type = of_get16(p->key.eth_type);
    bool v6 = type == 0x86dd;
    if (!p->l3 || (type != 0x800 && !v6) || p->malformed)
        return NULL;
    if (!v6 && oracle_sum(0, ip, (ip[0] & 0xfu) * 4) != 0xffff)
        return "IPv4 checksum";
    if (!p->l4 || p->fragment)
        return NULL;
    return transport(p, v6, p->l3 + (v6 ? 40u + of_get16(ip + 4) : of_get16(ip + 2)));
}
