/* SPDX-License-Identifier: Apache-2.0 */
/* One connection: what it is, and what all files of this room do with it, above all sending.
 *
 * The files are in layers, each calls those below it:
 *
 *     channel                          all connections together
 *     bundle                           messages that are carried out together
 *     target, accept                   make connections, and follow their life
 *     conn-life                        reading, phases, silence, the end
 *     conn-request, conn-role, conn-packet-in
 *     deferred                         requests that are answered later
 *     conn-hello, conn-parts, conn-dump, conn-async
 *     conn                             state and sending
 *     async-log, fair-queue, loop
 *
 * A connection is freed by conn-life.c in callbacks of the loop only, never by what a handler may
 * call: that leaves the reason in `fail`.
 */
#ifndef CONTROL_CONN_H
#define CONTROL_CONN_H

#include "async-log.h"
#include "channel-inside.h"
#include "conn-dump.h"
#include "conn-parts.h"

#include <control/deferred.h>
#include <daemon/log.h>
#include <of10/door.h>
#include <stream/stream.h>

#define IN_CAP (64u << 10) /* receive buffer: any frame fits */
/* One handler, or one step of a dump, may go that far above the mark; no peer can make it. */
#define OUT_HARD  (3 * (size_t)CONN_OUT_MAX)
#define NS_PER_MS 1000000u

enum conn_phase {
    CONN_CONNECTING, /* the stream is not open yet */
    CONN_HELLO,      /* ours is sent, the peer's not yet here */
    CONN_OPEN,
    CONN_ENDING, /* sends what is waiting, then ends writing */
    CONN_LINGER, /* has ended writing; waits until the peer has read all and ends too */
};

struct packet_ins;

/* What a connection calls in the file that made it.  Any member may be NULL. */
struct conn_owner {
    bool (*connected)(const struct conn *c); /* the stream is open; false: it must not be used */
    void (*opened)(struct conn *c);          /* hello is over */
    void (*ending)(struct conn *c);          /* it takes no more part in anything */
    void (*gone)(struct conn *c);            /* it is about to be freed; c->why says why */
};

struct conn {
    struct channel *ch;
    struct conn *prev, *next;             /* ch->conns */
    struct conn *flush_prev, *flush_next; /* ch->flush, while to_flush */
    bool to_flush;
    const struct conn_owner *owner; /* NULL: not set yet, or the owner is gone */
    struct uplink *uplink;          /* one that the switch connects itself; NULL: another */
    struct origin *origin;          /* of one that was accepted; NULL: another */
    char *peer;
    char *listener;   /* at which it was accepted; NULL: the switch has connected it, to `peer` */
    struct log_by by; /* the peer, and its request that is being handled */
    struct stream *stream;
    struct loop_io *io;
    struct loop_timer *timer;
    enum conn_phase phase;
    struct of10_door *door; /* of a peer that speaks 1.0; NULL: 1.3, or hello isn't over */
    bool half_open;         /* accepted, and hello isn't over: counts against HALF_OPEN_MAX */
    bool probe;             /* echo requests when silent */
    bool probing;           /* one is on its way */
    bool held;              /* its next message must wait for channel_go_on */
    uint64_t held_since;    /* a lower one has been held for longer */
    bool eof;               /* the peer sends no more */
    bool mute;              /* the peer reads no more: what it sent is still carried out */
    bool announced;         /* ops->connected was called */
    int fail;               /* -errno: to be closed as soon as a callback of the loop may */
    char why[160];          /* it ends or ended; "": for no reason that is known */
    uint64_t seen;          /* last sign of life, loop time */
    bool heavy;             /* its last requests took more than its share of a turn */
    uint64_t ticket;        /* its place among those that wait for a turn; 0: it doesn't wait */
    uint64_t its_turn;      /* the turn that it was given, loop time */
    uint8_t *in;            /* IN_CAP bytes, those from in_at to in_len not yet handled */
    size_t in_at, in_len;
    struct of_wr out; /* bytes from out_at on are to be sent */
    size_t out_at;
    size_t out_counted;            /* of out.cap in ch->out_total */
    uint64_t sent_at;              /* loop time: when the stream last took something */
    struct packet_ins *packet_ins; /* that wait; NULL: none ever did */
    struct async_reader async;     /* of ch->async */
    uint64_t async_first; /* pos of ch->async: what is before it goes before the next answer */
    struct conn_dump dump;
    struct part parts[PARTS_MAX];
    struct deferred *deferred; /* its request that is answered later; NULL: none */
    bool kept;                 /* the request is a deferred copy: not to be freed before its end */
    struct conn_state state;   /* of a main connection */
    struct conn_own own;
    struct channel_counters counters;
};

#define COUNT(c, name, n) ((c)->counters.name += (n), (c)->ch->counters.name += (n))

/* ------------------------------------------------------------------ what it is */

/* The main one of the controller that c belongs to; c itself where there is none (any more). */
static inline struct conn *
conn_main(struct conn *c)
{
    return c->uplink && c->uplink->main->conn ? c->uplink->main->conn : c;
}

bool conn_is_controller(const struct conn *c); /* gets asynchronous messages at all */

/* Milliseconds of a cheap clock, to keep one connection from taking a turn for itself. */
#define TURN_MS      10
#define LONG_TURN_MS (5 * TURN_MS) /* of all connections together */
uint64_t conn_clock_ms(void);
bool conn_turn_is_long(const struct conn *c);

/* Whether it may be sent this asynchronous message. */
bool conn_sees(struct conn *c, struct of_bytes message);

/* ------------------------------------------------------------------ the end */

void conn_fail(struct conn *c, int err);            /* to be closed soon; err: -errno */
void conn_because(struct conn *c, const char *why); /* the first reason counts */
void conn_lose(struct conn *c, int err);            /* the stream is broken */
void conn_end(struct conn *c);                      /* handles no more; closes when all is sent */

/* ------------------------------------------------------------------ sending */

static inline size_t
conn_waiting(const struct conn *c)
{
    return c->out.len - c->out_at;
}

/* What it may have waiting. */
static inline size_t
conn_out_mark(const struct conn *c)
{
    return c->ch->out_total > CHANNEL_OUT_MAX ? CONN_OUT_FLOOR : CONN_OUT_MAX;
}

static inline bool
conn_async_waits(const struct conn *c) /* are there any for which it had no room? */
{
    return c->async.chunk;
}

void conn_flush(struct conn *c);        /* sends what it can */
void conn_flush_later(struct conn *c);  /* conn_run (conn-life.h) at the end of the turn */
void conn_flush_forget(struct conn *c); /* not any more */
void conn_fall_mute(struct conn *c);    /* nothing that it is sent arrives: what waits is dropped */
void conn_out_count(struct conn *c);    /* out.cap has changed */
void conn_dump_end(struct conn *c);     /* frees the dump, finished or not */

/* Append a message: 0, -EMSGSIZE, or what c->fail now says.  To a mute peer: nothing, 0. */
int conn_send(struct conn *c, uint8_t type, uint32_t xid, const void *body);
int conn_send_bytes(struct conn *c, struct of_bytes message);
int conn_send_error(struct conn *c, uint32_t xid, int err, struct of_bytes request,
                    const char *text);

/* At level debug. */
void conn_log_received(const struct conn *c, struct of_bytes frame);

/* Before something is to be sent: 1: not, as the peer doesn't read; <0: c->fail. */
int conn_send_begin(struct conn *c);

#endif
