/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of connections that pass, measured without a packet of our own: included by the workers and by the
 * programs in the kernel (offload/bpf/rtt.h), which share this memory.
 *
 * A packet that leaves by a port is the probe; the packet that comes in by that port and acknowledges it ends it.
 * So a sample is what lies behind the port: the queue that the probe went into, the way there, the host, and
 * the way back.
 *
 * TCP (RFC 9293): a segment with data, or a SYN, until its last byte is acknowledged.  What would spoil it is
 * left out:
 * - a connection in which anything was sent again, or came out of order, until all of that is acknowledged
 *   (RFC 6298, 3: Karn's algorithm);
 * - the last segment of a burst, whose acknowledgement a receiver may hold back (RFC 1122, 4.2.3.2): a probe
 *   counts only if another segment followed within RTT_FOLLOWS_NS, so that the receiver had to answer.  Of a
 *   super-packet the first segment is the probe.
 * Timestamps (RFC 7323) are not needed: a segment that was sent again is seen by its number.
 * ICMP and ICMPv6: echo request to its reply.
 * DNS over UDP: query to the first answer that has its id.  Of a query that was sent again none: nobody knows which
 * of the two was answered.
 *
 * QUIC (port 443): from the client's first packet to the server's first one; then the spin bit (RFC 9000, 17.4),
 * which the server sends back as it came, the client inverted.  So from an edge that leaves to the next one that
 * comes in is a round trip.  But an end that has nothing to send holds an edge back, packets that come late make false
 * ones, and an end may make up its bits.  Therefore:
 * - an edge is two packets in a row with the new value, each no later than RTT_GAP after the one before it;
 * - the end that answers must have sent eight packets in the time of the round trip: so it held the edge back for
 *   an eighth of it at most;
 * - the ends must take turns, RTT_PROVEN times without a false edge before the first sample: random bits don't;
 * - a sample counts once the next edge came in turn: that late packets in a row were no answer is seen by then.
 *
 * A connection is only looked at now and then, because that costs a cache line and some 50 ns: its gate, which it
 * shares with others, is open for up to RTT_RUN probes, one after the other, and then shut for three times as long,
 * and RTT_EVERY for each.  For the spin bit there are other gates: a bit is followed until there is a sample of
 * either side, or for RTT_PATIENCE; then its gate is shut for three times as long, or longer if it did not turn at all.
 *
 * Each connection has one place, found by a hash with a secret; both its directions are in one cache line.  Two
 * processors may write a place at once: then samples are lost.  A connection of which a sample was taken keeps
 * its place for RTT_KEEPS s; others' places are given to whoever comes, so a flood of new connections can't
 * take away those that are measured.  A DNS query gives its place back when it is answered, because the next one
 * comes from another port. */
#ifndef LATENCY_RTT_H
#define LATENCY_RTT_H

#include <latency/rtt-place.h>
#include <latency/rtt-spin.h>
#include <latency/rtt-tcp.h>

/* ------------------------------------------------------------------ datagrams */

static RTT_INLINE int
rtt_is_udp(__u16 sport, __u16 dport)
{
    return sport == RTT_DNS_PORT || dport == RTT_DNS_PORT || sport == RTT_QUIC_PORT ||
           dport == RTT_QUIC_PORT;
}

static RTT_INLINE int
rtt_read_dns(const __u8 *b, __u32 length, struct rtt_ends *e, struct rtt_seen *p)
{
    int answer = b[10] >> 7;
    if (length < 8 + 12 || (answer ? e->sport : e->dport) != RTT_DNS_PORT)
        return 0;
    e->id = (__u32)(b[8] << 8 | b[9]);
    p->kind = RTT_DNS;
    p->acks = (__u8)answer;
    p->len = p->first = !answer;
    return 1;
}

/* RFC 9000, 17.2 and 17.3, RFC 9369, 3.2. */
static RTT_INLINE int
rtt_read_quic(const __u8 *b, const struct rtt_ends *e, struct rtt_seen *p)
{
    __u8 first = b[8], type = first >> 4 & 3;
    __u32 version = (__u32)b[9] << 24 | (__u32)(b[10] << 16 | b[11] << 8 | b[12]);
    p->server = e->sport == RTT_QUIC_PORT;
    if (!(first & 0x40) || (p->server && e->dport == RTT_QUIC_PORT)) /* who is who? */
        return 0;
    p->kind = first & 0x80 ? RTT_HELLO : RTT_SPIN;
    p->spin = first >> 5 & 1;
    p->acks = p->kind == RTT_HELLO && p->server;
    p->len = p->first = !p->acks;
    return p->kind == RTT_SPIN || p->server || (version == 1 && type == 0) ||
           (version == 0x6b3343cf && type == 1); /* Initial */
}

/* Has the datagram the spin bit, and so a gate? */
static RTT_INLINE int
rtt_is_spin(const __u8 *b)
{
    __u16 sport = (__u16)(b[0] << 8 | b[1]), dport = (__u16)(b[2] << 8 | b[3]);
    return sport != RTT_DNS_PORT && dport != RTT_DNS_PORT && (b[8] & 0xc0) == 0x40;
}

/* A datagram of `length` bytes, of which RTT_UDP are at b.  False: nothing to be measured. */
static RTT_INLINE int
rtt_read_udp(const __u8 *b, __u32 length, struct rtt_ends *e, struct rtt_seen *p)
{
    e->sport = (__u16)(b[0] << 8 | b[1]);
    e->dport = (__u16)(b[2] << 8 | b[3]);
    if (e->sport == RTT_DNS_PORT || e->dport == RTT_DNS_PORT)
        return rtt_read_dns(b, length, e, p);
    return rtt_read_quic(b, e, p);
}

/* ------------------------------------------------------------------ questions */

/* An echo request, or a DNS query. */
static RTT_INLINE void
rtt_question(struct rtt_way *w, const struct rtt_seen *p)
{
    if (w->state != RTT_NONE && w->end == p->seq)
        w->state = RTT_AGAIN;
    else
        rtt_begin(w, p, p->seq, RTT_FLYING);
}

/* The client may need two packets for what it says first. */
static RTT_INLINE int
rtt_hello(struct rtt_slot *s, struct rtt_way *mine, struct rtt_way *other, const struct rtt_seen *p,
          struct rtt_sample *out)
{
    int ends = 0;
    if (p->acks && other->state >= RTT_FLYING && other->state <= RTT_AGAIN) {
        ends = rtt_answer(s, other, out);
        other->state = RTT_OVER;
    } else if (!p->acks && mine->state == RTT_NONE) {
        rtt_begin(mine, p, 0, RTT_FLYING);
    } else if (!p->acks && mine->state == RTT_FLYING &&
               RTT_CLOCK_NS() - mine->sent_at > RTT_FOLLOWS_NS) {
        mine->state = RTT_AGAIN;
    }
    return ends;
}

/* ------------------------------------------------------------------ all of them */

/* Follows a packet that leaves by a port.  Returns 1 if it ends a round trip: *out then has all but its number and
 * the pair.  Else it may have a tally.  The caller has made *out zero. */
static RTT_INLINE int
rtt_look(struct rtt_slot *s, const struct rtt_seen *p, struct rtt_sample *out)
{
    int ends = 0;
    if (!rtt_claim(s, p))
        return 0;
    __u32 dir = p->dir;
    RTT_UNKNOWN(dir);
    struct rtt_way *mine = &s->way[dir & 1], *other = &s->way[~dir & 1];
    if (p->kind == RTT_SPIN)
        return rtt_spin(s, mine, other, p, out);
    if (p->kind == RTT_HELLO)
        return rtt_hello(s, mine, other, p, out);
    if (p->kind == RTT_TCP)
        return rtt_tcp(s, dir & 1, p, out);
    if (p->acks && p->ack == other->end)
        ends = rtt_answer(s, other, out);
    if (p->len)
        rtt_question(mine, p);
    if (p->kind == RTT_DNS && p->acks)
        s->sig = 0;
    return ends;
}

#endif
