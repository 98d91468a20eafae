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
 * shares with others, is shut for RTT_EVERY after a probe, and open while one is on its way.  For the spin bit there
 * are other gates: a bit is followed until there is a sample of either side, or for RTT_PATIENCE; then its gate is
 * shut for three times as long, or longer if it did not turn at all.
 *
 * Each connection has one place, found by a hash with a secret; both its directions are in one cache line.  Two
 * processors may write a place at once: then samples are lost.  A connection of which a sample was taken keeps
 * its place for RTT_KEEPS s; others' places are given to whoever comes, so a flood of new connections can't
 * take away those that are measured.  A DNS query gives its place back when it is answered, because the next one
 * comes from another port. */
#ifndef LATENCY_RTT_H
#define LATENCY_RTT_H

#include <linux/types.h>

#define RTT_RING       4096 /* samples that nobody has read yet; later ones overwrite them */
#define RTT_GATES      1024
#define RTT_OPEN       0  /* a gate; else the time (rtt_ticks) from which on it is open, not 0 */
#define RTT_TICK       22 /* 2^22 ns: 4 ms */
#define RTT_EVERY      4  /* ticks */
#define RTT_FOLLOWS_NS 10000000u
#define RTT_MOST_NS    10000000000u /* a longer round trip is taken for a lost packet */
#define RTT_KEEPS      16
#define RTT_DNS_PORT   53
#define RTT_QUIC_PORT  443
#define RTT_UDP        13 /* bytes of a datagram that are looked at, header included */
#define RTT_GAP        rtt_fine(10000000)
#define RTT_PROVEN     16
#define RTT_PATIENCE   240 /* ticks: 1 s */
#define RTT_RESTS      7   /* times RTT_PATIENCE: of a bit that did not turn in it, as most don't */

/* ------------------------------------------------------------------ shared memory */

enum rtt_state {
    RTT_NONE,
    RTT_ARMED,  /* a segment came; the next one, if it follows it, is a probe */
    RTT_ALONE,  /* a probe is on its way; it counts once another segment follows, */
    RTT_FLYING, /* or as it is */
    RTT_AGAIN,  /* something was sent again, or is missing: until `end` is acknowledged */
    RTT_OVER,   /* QUIC's handshake is */
    RTT_STILL,  /* `spin` is known; */
    RTT_TURNED, /* and when it became so */
};

/* One direction of a connection. */
struct rtt_way {
    union {
        struct {
            __u32
                high;  /* the sequence number behind the last byte that was sent, unless RTT_NONE */
            __u32 end; /* that acknowledges the probe */
            __u64 sent_at; /* CLOCK_MONOTONIC, ns */
        };
        struct {           /* from RTT_STILL on; rtt_fine */
            __u32 last;    /* packet */
            __u32 turned;  /* the last edge */
            __u32 turning; /* the first packet after it with the other value; 0: none came */
            __u32 took;    /* the round trip that this edge ends, or the one before it; 0: none */
        };
    };
    __u32 ifindex; /* where it left; */
    __u16 queue;   /* 0: by none */
    __u8 state;    /* enum rtt_state */
    __u8 spin;
};

struct rtt_slot {
    __u32 sig;     /* of the connection; 0: the place is free */
    __u8 seen;     /* when last, in units of about a second, */
    __u8 answered; /* a sample was taken */
    __u8 turns;    /* edges in turn, RTT_PROVEN at most */
    __u8 half;     /* the spin bit made a sample of one side since then */
    struct rtt_way way[2];
    __u32
        since; /* the spin bit is looked at, or made a turn that counts (rtt_ticks); 0: it isn't looked at */
    __u32 zeros;
} __attribute__((aligned(64)));

struct rtt_sample {
    __u32 number; /* of all, from 1; 0: being written */
    __u32 us;
    __u32 ifindex;
    __u32 queue;
    __u32 pair; /* which two hosts, by rtt_pair */
    __u32 zero;
};

struct rtt_control {
    __u32 on;
    __u32 slots; /* - 1; a power of two less one */
    __u64 secret[4];
    __u32 samples; /* so far */
    __u32 zero;
    __u32 gate[2 * RTT_GATES]; /* of TCP, of the spin bit */
};

/* ------------------------------------------------------------------ a packet */

struct rtt_ends {
    __u64 src[2], dst[2]; /* IP addresses; of IPv4 in the first one */
    __u16 sport, dport;   /* of ICMP both: the identifier */
    __u32 ifindexes;      /* sum of those where it came in and goes out */
    __u32 id;             /* of a DNS message */
};

enum rtt_kind {
    RTT_TCP,
    RTT_ECHO, /* questions and answers: `len` of an answer is 0 */
    RTT_DNS,
    RTT_HELLO, /* QUIC: the client's first packet, and what the server sends before the handshake is over */
    RTT_SPIN, /* QUIC: all later ones */
};

struct rtt_seen {
    __u32 sig;
    __u8 dir; /* which of the connection's two */
    __u8 acks;
    __u8 syn;            /* answered at once, as an echo request is */
    __u8 kind;           /* enum rtt_kind */
    __u8 server, spin;   /* of QUIC: who sent it, and the bit */
    __u32 seq, ack, len; /* of TCP with SYN and FIN */
    __u32 first;         /* of these, what the first segment of a super-packet has */
    __u32 ifindex;       /* where it leaves */
    __u16 queue;
    __u64 about; /* the time, some ms old at most, ns */
};

#ifndef RTT_INLINE
#define RTT_INLINE inline
#endif
/* Of an index in the kernel's programs, before its bound: Linux 6.1's verifier forgets that of a word on the stack. */
#ifndef RTT_UNKNOWN
#define RTT_UNKNOWN(index) (void)(index)
#endif

/* ------------------------------------------------------------------ gates */

static RTT_INLINE __u32
rtt_ticks(__u64 ns)
{
    return (__u32)(ns >> RTT_TICK) | 1;
}

/* The time in 32 bits, in units of 1,024 ns. */
static RTT_INLINE __u32
rtt_fine(__u64 ns)
{
    return (__u32)(ns >> 10);
}

/* Of a kind that has gates: RTT_TCP, RTT_SPIN. */
static RTT_INLINE __u32 *
rtt_gate(struct rtt_control *c, __u8 kind, __u16 sport, __u16 dport)
{
    __u32 i = sport ^ dport;
    RTT_UNKNOWN(i);
    return &c->gate[(i & (RTT_GATES - 1)) + (kind == RTT_SPIN ? RTT_GATES : 0)];
}

/* Need a segment of TCP, or a packet that has the spin bit, not be looked at? */
static RTT_INLINE int
rtt_is_shut(const __u32 *gate, __u8 syn, __u64 about)
{
    __u32 from = *(const volatile __u32 *)gate;
    return !syn && from != RTT_OPEN && (__s32)(rtt_ticks(about) - from) < 0;
}

/* Gives up a bit that makes no samples, and its place, which others may have. */
static RTT_INLINE void
rtt_leave_spin(__u32 *gate, struct rtt_slot *s, const struct rtt_seen *p, __u32 took)
{
    __u32 now = rtt_ticks(p->about), looked = RTT_PATIENCE, rests = 3;
    if (s->sig == p->sig) {
        int first = took && !s->half;
        if (!s->since)
            s->since = now;
        s->half |= took != 0;
        if ((!took || first) && now - s->since <= RTT_PATIENCE) {
            if (*gate != RTT_OPEN)
                *gate = RTT_OPEN;
            return;
        }
        if (now - s->since < RTT_PATIENCE)
            looked = now - s->since;
        if (s->way[0].state == RTT_STILL && s->way[1].state == RTT_STILL)
            rests = RTT_RESTS;
        s->answered &= s->half;
        s->since = s->half = 0;
    }
    *gate = now + 2 * RTT_EVERY + rests * looked;
}

/* Once it was looked at.  took: the round trip that it ended, us; 0: none.  A quarter of the time the gate may be open. */
static RTT_INLINE void
rtt_leave(struct rtt_control *c, const struct rtt_ends *e, struct rtt_slot *s,
          const struct rtt_seen *p, __u32 took)
{
    __u32 *gate = rtt_gate(c, p->kind, e->sport, e->dport);
    if (p->kind == RTT_SPIN)
        rtt_leave_spin(gate, s, p, took);
    else if (p->kind != RTT_TCP)
        return;
    else if (s->sig == p->sig && (s->way[0].state || s->way[1].state))
        *gate = RTT_OPEN;
    else if (p->len || took)
        *gate = rtt_ticks(p->about) + RTT_EVERY + (took >> 12) * 3;
}

/* ------------------------------------------------------------------ connections */

static RTT_INLINE __u64
rtt_mix(__u64 h)
{
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15ull;
    return h ^ h >> 29;
}

static RTT_INLINE __u64
rtt_end_hash(const struct rtt_control *c, const __u64 address[2], __u16 port)
{
    return rtt_mix((address[0] ^ c->secret[0]) * (c->secret[1] | 1) +
                   (address[1] ^ c->secret[2]) * (c->secret[3] | 1) + port);
}

/* The same for both directions, but `dir`. */
static RTT_INLINE void
rtt_sign(const struct rtt_control *c, const struct rtt_ends *e, struct rtt_seen *out)
{
    __u64 from = rtt_end_hash(c, e->src, e->sport), to = rtt_end_hash(c, e->dst, e->dport);
    __u64 both = rtt_mix(from + to + ((__u64)e->id << 32) + e->ifindexes);
    out->sig = (__u32)(both >> 32) | 1;
    out->dir = from < to;
}

/* Of the two addresses, whatever the direction and the ports; never 0. */
static RTT_INLINE __u32
rtt_pair(const struct rtt_control *c, const struct rtt_ends *e)
{
    return (__u32)rtt_mix(rtt_end_hash(c, e->src, 0) + rtt_end_hash(c, e->dst, 0)) | 1;
}

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

/* ------------------------------------------------------------------ measuring */

static RTT_INLINE int
rtt_claim(struct rtt_slot *s, const struct rtt_seen *p)
{
    __u8 now = (__u8)(p->about >> 30);
    if (s->sig == p->sig) {
        if (s->seen != now)
            s->seen = now;
        return 1;
    }
    if (!p->len || (s->sig && s->answered && (__u8)(now - s->seen) < RTT_KEEPS))
        return 0;
    s->sig = p->sig;
    s->seen = now;
    s->answered = s->turns = 0;
    s->since = s->half = 0;
    s->way[0].state = s->way[1].state = RTT_NONE;
    return 1;
}

/* The other direction's probe is acknowledged.  Returns whether it makes a sample. */
static RTT_INLINE int
rtt_answer(struct rtt_slot *s, struct rtt_way *probe, struct rtt_sample *out)
{
    __u8 was = probe->state;
    if (was <= RTT_ARMED)
        return 0;
    probe->state = RTT_NONE;
    if (was != RTT_FLYING)
        return 0;
    __u64 took = RTT_CLOCK_NS() - probe->sent_at;
    if (took > RTT_MOST_NS)
        return 0;
    s->answered = 1;
    out->us = (__u32)((__u32)(took >> 3) / 125); /* 32-bit: nothing to divide 64 bits with */
    out->ifindex = probe->ifindex;
    out->queue = probe->queue;
    return 1;
}

static RTT_INLINE void
rtt_begin(struct rtt_way *w, const struct rtt_seen *p, __u32 end, __u8 state)
{
    w->end = end;
    w->ifindex = p->ifindex;
    w->queue = p->queue;
    w->sent_at = RTT_CLOCK_NS();
    w->state = state;
}

/* A segment with data, SYN or FIN. */
static RTT_INLINE void
rtt_segment(struct rtt_way *w, const struct rtt_seen *p)
{
    __u32 end = p->seq + p->len;
    if (p->syn && w->state <= RTT_ARMED) {
        w->high = end;
        rtt_begin(w, p, end, RTT_FLYING);
    } else if (w->state == RTT_NONE) {
        w->high = end;
        w->state = RTT_ARMED;
    } else if (p->seq != w->high) {
        if ((__s32)(end - w->high) > 0)
            w->high = end;
        w->end = w->high;
        w->state = RTT_AGAIN;
    } else {
        w->high = end;
        if (w->state == RTT_ARMED)
            rtt_begin(w, p, p->seq + p->first, p->first != p->len ? RTT_FLYING : RTT_ALONE);
        else if (w->state == RTT_ALONE)
            w->state = RTT_CLOCK_NS() - w->sent_at < RTT_FOLLOWS_NS ? RTT_FLYING : RTT_NONE;
        else if (w->state == RTT_FLYING &&
                 (__s64)(p->about - w->sent_at) > (__s64)RTT_MOST_NS) /* nobody answers */
            w->state = RTT_NONE;
    }
}

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

/* ------------------------------------------------------------------ the spin bit */

/* What is not as it should be: random bits, or packets that came late.  The gate is shut for a while. */
static RTT_INLINE void
rtt_disbelieve(struct rtt_slot *s, struct rtt_way *mine, struct rtt_way *other,
               const struct rtt_seen *p)
{
    s->turns = 0;
    s->since = rtt_ticks(p->about) - RTT_PATIENCE - 1;
    mine->state = RTT_OVER;
    if (other->state > RTT_OVER)
        other->state = RTT_OVER;
}

/* The first packet of an edge, if it is one. */
static RTT_INLINE void
rtt_turning(struct rtt_way *mine, struct rtt_way *other, const struct rtt_seen *p, __u32 gap)
{
    __u32 took = 0;
    if (other->state >= RTT_STILL && other->turning)
        took = mine->last - other->turning;
    else if (other->state == RTT_TURNED)
        took = mine->last - other->turned;
    mine->turning = mine->last | 1;
    mine->took = gap <= took / 8 && took <= rtt_fine(RTT_MOST_NS) ? took : 0;
    if (mine->ifindex != p->ifindex || mine->queue != p->queue)
        other->took = 0;
    mine->ifindex = p->ifindex;
    mine->queue = p->queue;
}

/* The second one: *out is what the edge before this one ended. */
static RTT_INLINE int
rtt_turned(struct rtt_slot *s, struct rtt_way *mine, struct rtt_way *other,
           const struct rtt_seen *p, struct rtt_sample *out)
{
    int ends = 0;
    if (other->turning &&
        (mine->spin ^ other->spin) != p->server) { /* who answers it has seen it */
        other->spin ^= 1;
        other->turned = other->turning;
        other->turning = 0;
        other->state = RTT_TURNED;
    }
    int in_turn = (mine->spin ^ other->spin) == p->server;
    if (in_turn && mine->state == RTT_TURNED && other->state == RTT_TURNED) {
        ends = s->turns == RTT_PROVEN && other->took;
        if (s->turns < RTT_PROVEN) {
            s->turns++;
            s->since = rtt_ticks(p->about);
        }
    }
    if (ends) {
        s->answered = 1;
        out->us = other->took * 128 / 125;
        out->ifindex = mine->ifindex;
        out->queue = mine->queue;
    }
    other->took = 0;
    mine->spin ^= 1;
    mine->turned = mine->turning;
    mine->turning = 0;
    mine->state = RTT_TURNED;
    if (!in_turn)
        rtt_disbelieve(s, mine, other, p);
    return ends;
}

/* Returns 1 if it ends a round trip. */
static RTT_INLINE int
rtt_spin(struct rtt_slot *s, struct rtt_way *mine, struct rtt_way *other, const struct rtt_seen *p,
         struct rtt_sample *out)
{
    __u32 now = rtt_fine(RTT_CLOCK_NS()), gap = now - mine->last;
    mine->last = now;
    if (mine->state < RTT_STILL || gap > RTT_GAP) { /* what came before isn't known */
        mine->state = RTT_STILL;
        mine->spin = p->spin;
        mine->turning = mine->took = 0;
        if (other->state >= RTT_STILL)
            other->took = 0;
    } else if (p->spin == mine->spin) {
        if (mine->turning)
            rtt_disbelieve(s, mine, other, p);
        mine->turning = 0;
    } else if (!mine->turning) {
        rtt_turning(mine, other, p, gap);
    } else if (other->state >= RTT_STILL && now - other->last <= RTT_GAP) {
        return rtt_turned(s, mine, other, p, out);
    } else { /* the other's bit isn't known */
        mine->state = RTT_STILL;
        mine->spin = p->spin;
        mine->turning = mine->took = 0;
    }
    return 0;
}

/* ------------------------------------------------------------------ all of them */

/* Follows a packet that leaves by a port.  Returns 1 if it ends a round trip: *out then has all but its number and
 * the pair. */
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
    if (p->acks && (p->kind ? p->ack == other->end : (__s32)(p->ack - other->end) >= 0))
        ends = rtt_answer(s, other, out);
    if (p->len && p->kind)
        rtt_question(mine, p);
    else if (p->len)
        rtt_segment(mine, p);
    if (p->kind == RTT_DNS && p->acks)
        s->sig = 0;
    return ends;
}

#endif
