/* SPDX-License-Identifier: Apache-2.0 */
#include <latency/probes.h>

#include <oflib/wire.h>
#include <packet/headers.h>
#include <shared/atomics.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define SLOTS_LEAST 256u
#define SLOTS_MOST  4096u
#define PART        4096 /* of the machine's memory */
#define TCP_SYN     2

uint32_t
probes_slots(uint64_t memory)
{
    uint32_t n = SLOTS_LEAST;
    while (n < SLOTS_MOST && (uint64_t)n * 2 * sizeof(struct rtt_slot) <= memory / PART)
        n *= 2;
    return n;
}

uint64_t
probes_bytes(uint32_t slots)
{
    return sizeof(struct rtt_control) + (uint64_t)slots * sizeof(struct rtt_slot) +
           RTT_RING * sizeof(struct rtt_sample);
}

void
probes_begin(struct probes *p, uint32_t slots)
{
    p->control->slots = slots - 1;
    if (getrandom(p->control->secret, sizeof p->control->secret, GRND_NONBLOCK) < 0)
        p->control->secret[0] = clock_ns(); /* early at boot */
}

int
probes_new(struct probes *p, uint32_t slots)
{
    *p = (struct probes){.control = calloc(1, sizeof *p->control),
                         .slot = aligned_alloc(sizeof *p->slot, slots * sizeof *p->slot),
                         .ring = calloc(RTT_RING, sizeof *p->ring)};
    if (!p->control || !p->slot || !p->ring) {
        probes_free(p);
        return -ENOMEM;
    }
    memset(p->slot, 0, slots * sizeof *p->slot);
    probes_begin(p, slots);
    return 0;
}

void
probes_free(struct probes *p)
{
    free(p->control);
    free(p->slot);
    free(p->ring);
    *p = (struct probes){0};
}

void
probes_turn(struct probes *p, bool on)
{
    if (p->control)
        *(volatile uint32_t *)&p->control->on = on;
}

/* ------------------------------------------------------------------ workers */

/* The bytes behind the transport's header; of a super-packet all of them.  Negative: the header says something
 * impossible. */
static int64_t
payload(const struct packet *p, bool v6, uint32_t header)
{
    const uint8_t *ip = p->data + p->l3;
    int64_t from = p->l4 - p->l3 + header;
    int64_t all = of_get16(ip + (v6 ? IPV6_LENGTH_AT : IPV4_LENGTH_AT)) + (v6 ? IPV6_HEADER : 0);
    if (p->vnet.gso_type || all > p->len - p->l3)
        all = p->len - p->l3;
    return all - from;
}

static bool
read_tcp(const struct packet *p, bool v6, struct rtt_seen *out)
{
    const uint8_t *tcp = p->data + p->l4;
    uint8_t flags = tcp[TCP_FLAGS_AT];
    int64_t bytes = payload(p, v6, (uint32_t)(tcp[TCP_OFFSET_AT] >> 4) * 4);
    if (bytes < 0)
        return false;
    out->syn = flags >> 1 & 1;
    out->acks = flags >> 4 & 1;
    out->seq = of_get32(tcp + TCP_SEQ_AT);
    out->ack = of_get32(tcp + TCP_SEQ_AT + 4);
    out->len = (uint32_t)bytes + out->syn + (flags & 1);
    out->first = p->vnet.gso_type && p->vnet.gso_size < out->len ? p->vnet.gso_size : out->len;
    return true;
}

/* An echo request, or the reply to one (RFC 792, 4443). */
static bool
read_echo(const struct packet *p, bool v6, struct rtt_ends *e, struct rtt_seen *out)
{
    const uint8_t *icmp = p->data + p->l4;
    bool request = icmp[0] == (v6 ? 128 : 8), reply = icmp[0] == (v6 ? 129 : 0);
    if ((!request && !reply) || p->l4 + 8 > p->len)
        return false;
    e->sport = e->dport = of_get16(icmp + 4);
    out->kind = RTT_ECHO;
    out->acks = reply;
    out->len = out->first = request;
    out->seq = out->ack = of_get16(icmp + 6);
    return true;
}

static bool
read_udp(const struct packet *p, struct rtt_ends *e, struct rtt_seen *out)
{
    const uint8_t *udp = p->data + p->l4;
    return p->l4 + RTT_UDP <= p->len && rtt_read_udp(udp, of_get16(udp + UDP_LENGTH_AT), e, out);
}

static bool
read_packet(const struct packet *p, struct rtt_ends *e, struct rtt_seen *out)
{
    const uint8_t *ip = p->data + p->l3;
    bool v6 = ip[0] >> 4 == 6;
    if (v6) {
        memcpy(e->src, ip + IPV6_SRC_AT, sizeof e->src);
        memcpy(e->dst, ip + IPV6_DST_AT, sizeof e->dst);
    } else {
        e->src[0] = of_get32(ip + IPV4_SRC_AT);
        e->dst[0] = of_get32(ip + IPV4_DST_AT);
    }
    if (p->key.ip_proto == PROTO_UDP)
        return read_udp(p, e, out);
    if (p->key.ip_proto != PROTO_TCP)
        return read_echo(p, v6, e, out);
    e->sport = of_get16(p->data + p->l4);
    e->dport = of_get16(p->data + p->l4 + 2);
    return read_tcp(p, v6, out);
}

static void
put_sample(const struct probes *p, const struct rtt_sample *s)
{
    uint32_t before = fetch_add(&p->control->samples, 1);
    struct rtt_sample *at = &p->ring[before % RTT_RING];
    store_relaxed(&at->number, 0);
    store_relaxed(&at->us, s->us);
    store_relaxed(&at->ifindex, s->ifindex);
    store_relaxed(&at->queue, s->queue);
    store_relaxed(&at->pair, s->pair);
    store_relaxed(&at->tally, s->tally);
    store_release(&at->number, before + 1);
}

RTT_UNCHECKED static bool
is_shut(const struct probes *p, const struct packet *pkt, uint64_t about)
{
    const uint8_t *l4 = pkt->data + pkt->l4;
    bool tcp = pkt->key.ip_proto == PROTO_TCP;
    if (!tcp &&
        (pkt->key.ip_proto != PROTO_UDP || pkt->l4 + RTT_UDP > pkt->len || !rtt_is_spin(l4)))
        return false;
    const uint32_t *gate =
        rtt_gate(p->control, tcp ? RTT_TCP : RTT_SPIN, of_get16(l4), of_get16(l4 + 2));
    return rtt_is_shut(gate, tcp && l4[TCP_FLAGS_AT] & TCP_SYN, about);
}

RTT_UNCHECKED void
probes_look(const struct probes *p, const struct packet *pkt, int in_ifindex, int ifindex,
            uint32_t queue, uint64_t about)
{
    struct rtt_ends e = {.ifindexes = (uint32_t)in_ifindex + (uint32_t)ifindex};
    struct rtt_seen seen = {.ifindex = (uint32_t)ifindex, .queue = (uint16_t)queue, .about = about};
    struct rtt_sample s = {0};
    if (!pkt->l3 || !pkt->l4 || pkt->fragment || is_shut(p, pkt, about) ||
        !read_packet(pkt, &e, &seen))
        return;
    rtt_sign(p->control, &e, &seen);
    struct rtt_slot *slot = &p->slot[seen.sig >> 1 & p->control->slots];
    rtt_enter(p->control, &e, slot, &seen);
    if (rtt_look(slot, &seen, &s))
        s.pair = rtt_pair(p->control, &e);
    if (s.pair || s.tally)
        put_sample(p, &s);
    rtt_leave(p->control, &e, slot, &seen, s.us);
}

/* ------------------------------------------------------------------ the control thread */

void
probes_read(const struct probes *p, uint32_t *from, probes_fn *each, void *ctx)
{
    uint32_t to = p->control ? load_acquire(&p->control->samples) : *from;
    if (to - *from > RTT_RING)
        *from = to - RTT_RING;
    for (; *from != to; ++*from) {
        const struct rtt_sample *at = &p->ring[*from % RTT_RING];
        struct rtt_sample s = {.number = load_acquire(&at->number),
                               .us = load_relaxed(&at->us),
                               .ifindex = load_relaxed(&at->ifindex),
                               .queue = load_relaxed(&at->queue),
                               .pair = load_relaxed(&at->pair),
                               .tally = load_relaxed(&at->tally)};
        if (s.number == *from + 1) /* else it is being written, or was overwritten */
            each(ctx, &s);
    }
}
