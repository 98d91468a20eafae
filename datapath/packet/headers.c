/* SPDX-License-Identifier: Apache-2.0 */
#include <packet/headers.h>

#include <packet/checksum.h>

static bool
ipv4_view(const uint8_t *data, uint32_t len, uint32_t at, bool super, struct ip_view *v)
{
    const uint8_t *h = data + at;
    uint32_t room = len - at, header, total;
    if (room < IPV4_HEADER || h[0] >> 4 != 4)
        return false;
    header = (h[0] & 0xfu) * 4;
    if (header < IPV4_HEADER || header > room)
        return false;
    total = of_get16(h + IPV4_LENGTH_AT);
    if (!total && super)
        total = room;
    v->malformed = total < header || total > room;
    if (total > room)
        total = room;
    v->end = at + (total < header ? header : total);
    uint16_t fragment = of_get16(h + IPV4_FRAGMENT_AT);
    v->proto = h[IPV4_PROTO_AT];
    v->proto_at = at + IPV4_PROTO_AT;
    v->fragment = fragment & (IPV4_MORE_FRAGMENTS | IPV4_FRAGMENT_OFFSET);
    v->later_fragment = fragment & IPV4_FRAGMENT_OFFSET;
    v->payload = v->later_fragment ? 0 : at + header;
    return true;
}

/* Extension headers by their rank in the order of RFC 2460, 4.1.  Destination options have two
 * ranks: before a routing header, and last. */
struct ext_header {
    uint8_t proto;
    uint8_t rank;
    uint8_t most; /* times that it may occur */
    uint16_t bit;
};
#define DEST_RANK 2 /* the first of them */
#define LAST_RANK 7
static const struct ext_header exts[] = {
    {PROTO_HOPOPTS, 1, 1, OFPIEH_HOP},    {PROTO_DSTOPTS, LAST_RANK, 2, OFPIEH_DEST},
    {PROTO_ROUTING, 3, 1, OFPIEH_ROUTER}, {PROTO_FRAGMENT, 4, 1, OFPIEH_FRAG},
    {PROTO_AH, 5, 1, OFPIEH_AUTH},        {PROTO_ESP, 6, 1, OFPIEH_ESP},
};
#define N_EXTS (sizeof exts / sizeof *exts)

static const struct ext_header *
find_ext(uint8_t proto)
{
    for (unsigned i = 0; i < N_EXTS; i++)
        if (exts[i].proto == proto)
            return &exts[i];
    return NULL;
}

/* The chain so far, for OFPIEH_UNREP and OFPIEH_UNSEQ. */
struct order {
    uint8_t seen[N_EXTS];
    uint8_t rank;
};

static uint16_t
note_ext(struct order *o, const struct ext_header *e)
{
    uint8_t *seen = &o->seen[e - exts];
    uint8_t rank = e->proto == PROTO_DSTOPTS && !*seen && o->rank < DEST_RANK ? DEST_RANK : e->rank;
    uint16_t bits = e->bit;
    if (*seen < 255)
        ++*seen;
    if (*seen > e->most)
        bits |= OFPIEH_UNREP;
    if (rank < o->rank)
        bits |= OFPIEH_UNSEQ;
    else
        o->rank = rank;
    return bits;
}

/* Walks the extension headers from v->payload on; payload becomes 0 if the packet ends within them.
 * */
static void
walk_exts(const uint8_t *data, struct ip_view *v)
{
    struct order order = {{0}, 0};
    uint32_t at = v->payload;
    v->payload = 0;
    for (;;) {
        const uint8_t *h = data + at;
        const struct ext_header *e = find_ext(v->proto);
        if (v->proto == PROTO_NONE)
            v->exthdr |= OFPIEH_NONEXT;
        if (e)
            v->exthdr |= note_ext(&order, e);
        if (!e || v->proto == PROTO_ESP) /* behind ESP nothing can be read */
            break;
        uint32_t room = v->end - at;
        uint32_t n = room < 8                     ? 8
                     : v->proto == PROTO_FRAGMENT ? 8
                     : v->proto == PROTO_AH       ? (h[1] + 2u) * 4
                                                  : (h[1] + 1u) * 8;
        if (n > room || n < 8) {
            v->malformed = true;
            return;
        }
        if (v->proto == PROTO_FRAGMENT) {
            v->fragment |= (of_get16(h + 2) & 0xfff9) != 0;
            v->later_fragment |= (of_get16(h + 2) & 0xfff8) != 0;
        }
        if (v->proto == PROTO_ROUTING)
            v->routed |= h[3] != 0;
        v->proto = h[0];
        v->proto_at = at;
        at += n;
        if (v->later_fragment)
            return;
    }
    v->payload = at;
}

static bool
ipv6_view(const uint8_t *data, uint32_t len, uint32_t at, bool super, struct ip_view *v)
{
    const uint8_t *h = data + at;
    uint32_t room = len - at, total;
    if (room < IPV6_HEADER || h[0] >> 4 != 6)
        return false;
    total = IPV6_HEADER + of_get16(h + IPV6_LENGTH_AT);
    if (total == IPV6_HEADER && super)
        total = room;
    v->malformed = total > room;
    v->end = at + (total > room ? room : total);
    v->proto = h[IPV6_NEXT_AT];
    v->proto_at = at + IPV6_NEXT_AT;
    v->payload = at + IPV6_HEADER;
    walk_exts(data, v);
    return true;
}

bool
ip_view(const uint8_t *data, uint32_t len, uint32_t at, bool v6, bool super, struct ip_view *v)
{
    *v = (struct ip_view){.at = at, .v6 = v6};
    if (at > len)
        return false;
    return v6 ? ipv6_view(data, len, at, super, v) : ipv4_view(data, len, at, super, v);
}

bool
ip_view_guess(const uint8_t *data, uint32_t len, uint32_t at, bool super, struct ip_view *v)
{
    return at < len && ip_view(data, len, at, data[at] >> 4 == 6, super, v);
}

uint16_t
ip_pseudo_sum(const uint8_t *ip, bool v6, uint8_t proto, uint32_t len)
{
    return v6 ? csum_pseudo(ip + IPV6_SRC_AT, ip + IPV6_DST_AT, 16, proto, len)
              : csum_pseudo(ip + IPV4_SRC_AT, ip + IPV4_DST_AT, 4, proto, len);
}

void
l4_csum_fill(uint8_t *l4, size_t n, uint32_t offset)
{
    uint16_t csum = (uint16_t)~csum_sum(l4, n);
    /* A UDP checksum of 0 means that there is none. */
    of_set16(l4 + offset, !csum && offset == UDP_CSUM_AT ? 0xffff : csum);
}
