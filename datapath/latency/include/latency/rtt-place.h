/* SPDX-License-Identifier: Apache-2.0 */
/* Places for connections, gates, and packets as they are looked at (rtt.h). */
#ifndef LATENCY_RTT_PLACE_H
#define LATENCY_RTT_PLACE_H

#include <linux/types.h>

#define RTT_RING       4096 /* samples that nobody has read yet; later ones overwrite them */
#define RTT_GATES      1024
#define RTT_OPEN       0  /* a gate of the spin bit, and any gate at first */
#define RTT_TICK       22 /* 2^22 ns: 4 ms */
#define RTT_EVERY      4  /* ticks */
#define RTT_RUN        8  /* probes while a gate is open; two once it was for RTT_PATIENCE */
#define RTT_LATE       rtt_fine(3000000)
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
            union {
                __u64 sent_at;     /* CLOCK_MONOTONIC, ns */
                struct {           /* RTT_AGAIN */
                    __u32 since;   /* rtt_fine: of that, or of the oldest gap */
                    __u32 missing; /* bytes of gaps */
                };
            };
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
    union {
        __u8 spin;
        __u8 sure; /* of TCP: `high` is the highest number, so what is lower was sent again */
    };
};

struct rtt_slot {
    __u32 sig;     /* of the connection; 0: the place is free */
    __u8 seen;     /* when last, in units of about a second, */
    __u8 answered; /* a sample was taken */
    union {
        __u8 turns;   /* edges in turn, RTT_PROVEN at most */
        __u8 answers; /* TCP: in this opening of the gate, */
    };
    union {
        __u8 half;    /* the spin bit made a sample of one side since then */
        __u8 opening; /* which is this one (rtt_opening) */
    };
    struct rtt_way way[2];
    union {
        __u32
            since; /* the spin bit is looked at, or made a turn that counts (rtt_ticks); 0: it isn't looked at */
        __u32 tally[2]; /* TCP: of each way, not yet in a sample */
    };
} __attribute__((aligned(64)));

/* A tally has how many segments were counted in its lower half; of them were sent again, lost behind us and before us: */
#define RTT_BEHIND     16
#define RTT_BEFORE     24
#define RTT_TALLY_FULL 0x80808000u /* one of these bits: put it into a sample */
#define RTT_TALLY_MOST 127         /* of one packet */

struct rtt_sample {
    __u32 number; /* of all, from 1; 0: being written */
    __u32 us;
    __u32 ifindex;
    __u32 queue;
    __u32 pair; /* which two hosts, by rtt_pair; 0: it is no round trip, only */
    __u32 tally;
};

struct rtt_control {
    __u32 on;
    __u32 slots; /* - 1; a power of two less one */
    __u64 secret[4];
    __u32 samples; /* so far */
    __u32 zero;
    /* Of TCP, of the spin bit: the time (rtt_ticks) from which on it is open, odd; or open, of TCP since then, even */
    __u32 gate[2 * RTT_GATES];
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

/* Nothing is known of the connection but that it is there. */
static RTT_INLINE void
rtt_reset(struct rtt_slot *s)
{
    s->turns = s->half = 0;
    s->tally[0] = s->tally[1] = 0;
    s->way[0].state = s->way[1].state = RTT_NONE;
    s->way[0].spin = s->way[1].spin = 0;
}

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
    return !syn && from & 1 && (__s32)(rtt_ticks(about) - from) < 0;
}

/* Of an open gate of TCP, nearly always another one than the last time. */
static RTT_INLINE __u8
rtt_opening(__u32 gate)
{
    return (__u8)(gate >> 1);
}

/* Before it is looked at: what is known of a connection holds while its gate stays open, which others may shut. */
static RTT_INLINE void
rtt_enter(struct rtt_control *c, const struct rtt_ends *e, struct rtt_slot *s,
          const struct rtt_seen *p)
{
    __u32 gate = p->kind == RTT_TCP ? *rtt_gate(c, RTT_TCP, e->sport, e->dport) : 0;
    if (p->kind == RTT_TCP && s->sig == p->sig && (gate & 1 || s->opening != rtt_opening(gate)))
        rtt_reset(s);
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
    *gate = (now + 2 * RTT_EVERY + rests * looked) | 1;
}

/* What was begun goes on.  took: as of rtt_leave. */
static RTT_INLINE void
rtt_leave_tcp(__u32 *gate, struct rtt_slot *s, __u32 now, __u32 took)
{
    if (*gate & 1 || *gate == RTT_OPEN)
        *gate = now & ~1u;
    __u32 since = *gate, open = now - since;
    s->opening = rtt_opening(since);
    if (!took || (s->answers < RTT_RUN && (s->answers < 2 || open < RTT_PATIENCE)))
        return;
    __u32 period = s->answers * (RTT_EVERY + (took >> 12) * 4);
    *gate = (now + (period > open + RTT_EVERY ? period - open : RTT_EVERY)) | 1;
    rtt_reset(s);
}

/* Once it was looked at.  took: since when the probe that it acknowledges was on its way, us; 0: it doesn't.  A quarter
 * of the time the gate may be open. */
static RTT_INLINE void
rtt_leave(struct rtt_control *c, const struct rtt_ends *e, struct rtt_slot *s,
          const struct rtt_seen *p, __u32 took)
{
    __u32 *gate = rtt_gate(c, p->kind, e->sport, e->dport), now = rtt_ticks(p->about);
    if (p->kind == RTT_SPIN)
        rtt_leave_spin(gate, s, p, took);
    else if (p->kind != RTT_TCP)
        return;
    else if (s->sig == p->sig && (s->way[0].state || s->way[1].state))
        rtt_leave_tcp(gate, s, now, took);
    else if (p->len && (s->sig == p->sig || *gate & 1 || now - *gate > 2 * RTT_PATIENCE))
        *gate = (now + RTT_EVERY) | 1; /* not while it is open for another one */
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

/* ------------------------------------------------------------------ probes */

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
    s->answered = 0;
    rtt_reset(s);
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

#endif
