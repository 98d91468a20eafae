/* SPDX-License-Identifier: Apache-2.0 */
/* Merges TCP segments of one connection in one batch into a super-packet.
 *
 * It merges only segments that segmentation will restore.  Their headers differ only in sequence
 * number, length and checksum.  They have one payload size (the last may be shorter), right
 * checksums, no flags but ACK and, in the last one, PSH, and IPv4 ids that count up by one.
 *
 * MPLS labels and PBB tags may be in front of IP: they are the same in all segments.  Segments in PPPoE,
 * which Linux doesn't cut, or in IP tunnels stay single, because no action takes a tunnel off, and sending would cut them
 * again. */
#include "layers.h"

#include <packet/checksum.h>

#include <string.h>

#define CONNECTIONS 8 /* merged at the same time */
#define MAX_IP_LEN  65535
#define MAX_TAGS    64 /* bytes in front of IP: a super-packet is not longer than one received */

/* A segment that may be merged. */
struct segment {
    uint32_t l3, l4;
    bool v6;
    bool inside;     /* of labels or tags: the key has no addresses and ports */
    uint32_t header; /* bytes up to the payload */
    uint32_t payload;
    uint32_t seq;
    uint8_t flags;
};

/* A connection's super-packet as it grows; its members are linked by `next` in the batch. */
struct head {
    unsigned first, last, n;
    struct segment seg; /* of the first */
    uint32_t next_seq;
    uint32_t len; /* of the super-packet */
    bool open;
    bool push;
};

struct coalescer {
    struct packet *batch;
    struct head head[CONNECTIONS];
    unsigned n_heads, oldest;
    uint8_t next[256]; /* the packet that follows in its super-packet */
    bool taken[256];   /* merged into an earlier packet of the batch */
};

static bool
checksum_right(const struct packet *p, const struct segment *s)
{
    if (p->vnet.flags & (VIRTIO_NET_HDR_F_NEEDS_CSUM | VIRTIO_NET_HDR_F_DATA_VALID))
        return true;
    uint32_t n = p->len - s->l4, sum = ip_pseudo_sum(p->data + s->l3, s->v6, PROTO_TCP, n);
    return csum_fold(sum + csum_sum(p->data + s->l4, n)) == 0xffff;
}

/* An IP header without options whose packet is exactly the rest of the frame. */
static bool
plain_ip(const struct packet *p, const struct segment *s)
{
    const uint8_t *ip = p->data + s->l3;
    if (!s->v6)
        return s->l4 == s->l3 + IPV4_HEADER && s->l3 + of_get16(ip + IPV4_LENGTH_AT) == p->len &&
               csum_sum(ip, IPV4_HEADER) == 0xffff;
    return s->l4 == s->l3 + IPV6_HEADER && s->l4 + of_get16(ip + IPV6_LENGTH_AT) == p->len;
}

static bool
find_inside(const struct packet *p, struct segment *s)
{
    struct layers l;
    uint16_t type = of_get16(p->key.eth_type);
    if (!(is_mpls_type(type) || type == TYPE_PBB) || !layers_find(p, PROTO_TCP, &l) || l.n ||
        l.guessed || l.ip.at > MAX_TAGS || l.ip.end - l.ip.payload < TCP_HEADER)
        return false;
    *s = (struct segment){.l3 = l.ip.at, .l4 = l.ip.payload, .v6 = l.ip.v6, .inside = true};
    return true;
}

/* Finds TCP; false: there is none. */
static bool
find_tcp(const struct packet *p, struct segment *s)
{
    if (!p->l4)
        return find_inside(p, s);
    if (p->key.ip_proto != PROTO_TCP || p->fragment || packet_is_inside(p))
        return false;
    s->l3 = p->l3;
    s->l4 = p->l4;
    s->v6 = of_get16(p->key.eth_type) == TYPE_IPV6;
    s->inside = false;
    return true;
}

/* False: the segment can't be merged. */
static bool
read_segment(const struct packet *p, struct segment *s)
{
    const uint8_t *tcp = p->data + s->l4;
    uint32_t hlen = (tcp[TCP_OFFSET_AT] >> 4) * 4u;
    if (p->vnet.gso_type != VIRTIO_NET_HDR_GSO_NONE || p->snap || p->shared || hlen < TCP_HEADER ||
        s->l4 + hlen >= p->len || !plain_ip(p, s))
        return false;
    s->header = s->l4 + hlen;
    s->payload = p->len - s->header;
    s->seq = of_get32(tcp + TCP_SEQ_AT);
    s->flags = tcp[TCP_FLAGS_AT];
    return (s->flags & ~TCP_PSH) == TCP_ACK && !(tcp[TCP_OFFSET_AT] & 0xf) && checksum_right(p, s);
}

/* The same addresses and ports. */
static bool
same_ends(const struct packet *a, const struct packet *b, const struct segment *s)
{
    uint32_t at = s->l3 + (s->v6 ? IPV6_SRC_AT : IPV4_SRC_AT), n = s->v6 ? 32 : 8;
    return !memcmp(a->data + at, b->data + at, n) &&
           !memcmp(a->data + s->l4, b->data + s->l4, TCP_SEQ_AT);
}

/* The same connection: every field of the key is equal. */
static bool
same_flow(const struct coalescer *c, const struct head *h, const struct packet *p,
          const struct segment *s)
{
    const struct packet *first = &c->batch[h->first];
    return h->seg.l4 == s->l4 && !memcmp(&first->key, &p->key, sizeof p->key) &&
           (!s->inside || (h->seg.v6 == s->v6 && same_ends(first, p, s)));
}

/* The headers of one connection differ only in id, lengths, sequence number, PSH and checksums. */
static bool
same_headers(const struct packet *a, const struct packet *b, const struct segment *s)
{
    const uint8_t *x = a->data, *y = b->data;
    uint32_t ip = s->l3, tcp = s->l4;
    if (memcmp(x, y, ip))
        return false;
    if (!s->v6) {
        if (memcmp(x + ip, y + ip, 2) || memcmp(x + ip + 6, y + ip + 6, 4))
            return false;
    } else if (memcmp(x + ip, y + ip, 4) || memcmp(x + ip + 6, y + ip + 6, 2)) {
        return false;
    }
    return !memcmp(x + tcp + 8, y + tcp + 8, 5) && !memcmp(x + tcp + 14, y + tcp + 14, 2) &&
           !memcmp(x + tcp + 18, y + tcp + 18, s->header - tcp - 18);
}

static bool
follows(const struct coalescer *c, const struct head *h, const struct packet *p,
        const struct segment *s)
{
    const struct packet *first = &c->batch[h->first];
    if (!h->open || s->seq != h->next_seq || s->payload > h->seg.payload ||
        s->header != h->seg.header || s->l3 != h->seg.l3 ||
        h->len + s->payload - s->l3 > MAX_IP_LEN)
        return false;
    if (!s->v6 && of_get16(p->data + s->l3 + IPV4_ID_AT) !=
                      (uint16_t)(of_get16(first->data + s->l3 + IPV4_ID_AT) + h->n))
        return false;
    return same_headers(first, p, s);
}

static void
start(struct coalescer *c, unsigned i, const struct segment *s)
{
    struct head *h =
        c->n_heads < CONNECTIONS ? &c->head[c->n_heads++] : &c->head[c->oldest++ % CONNECTIONS];
    *h = (struct head){.first = i,
                       .last = i,
                       .n = 1,
                       .seg = *s,
                       .next_seq = s->seq + s->payload,
                       .len = s->header + s->payload,
                       .open = !(s->flags & TCP_PSH),
                       .push = s->flags & TCP_PSH};
}

static void
append(struct coalescer *c, struct head *h, unsigned i, const struct segment *s)
{
    c->next[h->last] = (uint8_t)i;
    c->taken[i] = true;
    h->last = i;
    h->n++;
    h->next_seq += s->payload;
    h->len += s->payload;
    h->push = s->flags & TCP_PSH;
    h->open = !h->push && s->payload == h->seg.payload;
}

/* Makes the first segment's header, copied to p->data, the super-packet's. */
static void
write_header(struct packet *p, const struct head *h)
{
    uint8_t *ip = p->data + h->seg.l3, *tcp = p->data + h->seg.l4;
    bool v6 = h->seg.v6;
    uint32_t tcp_len = p->len - h->seg.l4;
    if (v6) {
        of_set16(ip + IPV6_LENGTH_AT, (uint16_t)tcp_len);
    } else {
        uint8_t *length = ip + IPV4_LENGTH_AT, before[2] = {length[0], length[1]};
        of_set16(length, (uint16_t)(p->len - h->seg.l3));
        csum_update(ip + IPV4_CSUM_AT, before, length, 2);
    }
    if (h->push)
        tcp[TCP_FLAGS_AT] |= TCP_PSH;
    of_set16(tcp + TCP_CSUM_AT, ip_pseudo_sum(ip, v6, PROTO_TCP, tcp_len));
    p->vnet = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                      .gso_type =
                                          v6 ? VIRTIO_NET_HDR_GSO_TCPV6 : VIRTIO_NET_HDR_GSO_TCPV4,
                                      .hdr_len = (uint16_t)h->seg.header,
                                      .gso_size = (uint16_t)h->seg.payload,
                                      .csum_start = (uint16_t)h->seg.l4,
                                      .csum_offset = TCP_CSUM_AT};
}

/* False: no memory; nothing is changed. */
static bool
merge(struct coalescer *c, const struct head *h)
{
    struct packet *p = &c->batch[h->first];
    uint8_t *room = packet_pool_alloc(p->pool, PACKET_HEADROOM + h->len);
    if (!room)
        return false;
    uint8_t *to = room + PACKET_HEADROOM;
    memcpy(to, p->data, p->len);
    uint32_t at = p->len;
    for (unsigned k = 1, i = h->first; k < h->n; k++) {
        i = c->next[i];
        const struct packet *q = &c->batch[i];
        memcpy(to + at, q->data + h->seg.header, q->len - h->seg.header);
        at += q->len - h->seg.header;
        p->wire_len += q->wire_len;
    }
    p->data = to;
    p->len = at;
    p->headroom = PACKET_HEADROOM;
    write_header(p, h);
    return true;
}

static void
unmerge(struct coalescer *c, const struct head *h)
{
    for (unsigned k = 1, i = h->first; k < h->n; k++) {
        i = c->next[i];
        c->taken[i] = false;
    }
}

/* Merges what the head has collected. */
static void
finish(struct coalescer *c, struct head *h)
{
    if (h->n > 1 && !merge(c, h))
        unmerge(c, h);
    h->n = 0;
}

static void
collect(struct coalescer *c, unsigned i)
{
    const struct packet *p = &c->batch[i];
    struct segment s;
    if (!find_tcp(p, &s))
        return;
    struct head *h = NULL;
    for (unsigned k = 0; k < c->n_heads && !h; k++)
        if (c->head[k].n && same_flow(c, &c->head[k], p, &s))
            h = &c->head[k];
    bool good = read_segment(p, &s);
    if (h && good && follows(c, h, p, &s)) {
        append(c, h, i, &s);
        return;
    }
    /* No later packet of the connection may overtake this one. */
    if (h)
        finish(c, h);
    if (!good)
        return;
    if (c->n_heads == CONNECTIONS)
        finish(c, &c->head[c->oldest % CONNECTIONS]);
    start(c, i, &s);
}

unsigned
packet_coalesce(struct packet *batch, unsigned n)
{
    struct coalescer c;
    if (n < 2 || n > sizeof c.taken)
        return n;
    c.batch = batch;
    c.n_heads = c.oldest = 0;
    memset(c.taken, 0, n);
    for (unsigned i = 0; i < n; i++)
        collect(&c, i);
    unsigned merged = 0, out = 0;
    for (unsigned k = 0; k < c.n_heads; k++)
        finish(&c, &c.head[k]);
    for (unsigned i = 0; i < n; i++)
        merged += c.taken[i];
    if (!merged)
        return n;
    for (unsigned i = 0; i < n; i++) {
        if (c.taken[i])
            continue;
        if (out != i)
            batch[out] = batch[i];
        out++;
    }
    return out;
}
