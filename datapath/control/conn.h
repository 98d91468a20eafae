/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the control channel: what its own files share (channel.h is for everybody else).
 *
 * A connection is freed by the loop's callbacks only (its descriptor, its timer, the channel's
 * flush), never by a function that a handler may call: those leave the reason in `fail`.
 */
#ifndef CONTROL_CONN_H
#define CONTROL_CONN_H

#include "async-log.h"
#include <control/channel.h>

#include <stream/stream.h>
#include <stream/tls.h>

#define IN_CAP (64u << 10) /* receive buffer: any frame fits */
/* One handler, or one step of a dump, may go that far above the mark; no peer can make it. */
#define OUT_HARD (3 * (size_t)CONN_OUT_MAX)
#define DUMP_CUT 60000u /* multipart replies are cut at about so many bytes */
/* A dump fills up to this, then sends: with one message more it is within CONN_OUT_FLOOR, a power
 * of two, as buffers are. */
#define DUMP_CHUNK       (192u << 10)
#define ENCODED_MAX      (64u << 20) /* replies that are encoded as a whole, of all connections */
#define ENCODED_STUCK_NS UINT64_C(10000000000)
#define PARTS_MAX        4           /* multipart requests that a connection may have open */
#define PART_BYTES_MAX   (1u << 20)  /* the body of one */
#define PARTS_TOTAL_MAX  (16u << 20) /* the bodies of all, of all connections */
#define PART_IDLE_NS     UINT64_C(10000000000) /* then it is given up */
#define HALF_OPEN_MAX    64                    /* accepted connections before hello is over */
#define HELLO_CAP        1024u                 /* bytes that are read before */
#define LINGER_NS        2000000000u           /* for the peer to read what it is told last */
#define NS_PER_MS        1000000u

/* Asynchronous messages that may wait for a peer: for one that reads, for one that hasn't for
 * ASYNC_STUCK_NS. */
#define ASYNC_MAX       (64u << 20)
#define ASYNC_STUCK_MAX (4u << 20)
#define ASYNC_STUCK_NS  UINT64_C(5000000000)

enum conn_phase {
    CONN_CONNECTING, /* the stream is not open yet */
    CONN_HELLO,      /* ours is sent, the peer's not yet here */
    CONN_OPEN,
    CONN_ENDING, /* sends what is waiting, then says that it is over */
    CONN_LINGER, /* said so; waits for the peer to end too, so that it reads the last message */
};

/* A multipart request that comes in several messages (7.3.5, OFPMPF_REQ_MORE). */
struct part {
    uint32_t xid;
    uint16_t type; /* OFPMP_ */
    bool used;
    bool refused;  /* an error went out: the rest is passed over */
    uint64_t last; /* loop time, ns */
    struct of_wr body;
};

struct conn_dump {
    struct conn *c;
    conn_dump_step step; /* NULL: none is under way */
    void (*done)(void *);
    void *ctx;
    uint32_t xid;
    const struct of_mp_row *mp; /* NULL: OFPT_QUEUE_GET_CONFIG_REPLY, of this port */
    uint32_t port;
    size_t head;    /* bytes before the first element */
    struct of_wr w; /* the message being filled, header included */
};

struct target;
struct packet_ins;

/* One of the connections to a controller that the switch itself connects to: the main one or an
 * auxiliary one (6.3.6). */
struct uplink {
    struct target *target;
    struct uplink *main;
    uint8_t aux; /* its auxiliary id; 0: it is the main one */
    uint32_t backoff_ms;
    struct loop_timer *timer; /* to connect */
    struct conn *conn;
};

/* Where accepted connections come from: an address or a local user, while it has any. */
struct origin {
    struct origin *next;
    char name[STREAM_ORIGIN_MAX];
    bool local;
    unsigned refs, n, half_open; /* connections, and those of them before hello */
};

struct conn {
    struct channel *ch;
    struct conn *prev, *next;             /* ch->conns */
    struct conn *flush_prev, *flush_next; /* ch->flush, while to_flush */
    bool to_flush;
    struct uplink *uplink; /* active: what it belongs to */
    char *peer;
    struct stream *stream;
    struct loop_io *io;
    struct loop_timer *timer;
    enum conn_phase phase;
    struct origin *origin; /* of one that was accepted; NULL: it is one of our own */
    bool half_open;        /* accepted, and hello isn't over: counts against HALF_OPEN_MAX */
    bool probe;            /* echo requests when silent */
    bool probing;          /* one is on its way */
    bool held;             /* its next message must wait for channel_go_on */
    bool eof;              /* the peer sends no more */
    bool mute;             /* the peer reads no more: what it sent is still carried out */
    bool announced;        /* ops->connected was called */
    int fail;              /* -errno: to be closed as soon as a callback of the loop may */
    char why[160];         /* it ends or ended; "": for no reason that has been told */
    uint64_t seen;         /* last sign of life, loop time */
    uint8_t *in;           /* IN_CAP bytes, those from in_at to in_len not yet handled */
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
    struct conn_state state; /* of a main connection */
    struct conn_own own;
    struct channel_counters counters;
};

struct channel {
    struct loop *loop;
    struct channel_ops ops;
    void *ctx;
    struct channel_options opt;
    struct stream_tls *tls;
    struct conn *conns;
    bool no_dumps;                   /* until channel_go_on */
    struct conn *flush, *flush_last; /* those for which something is to be done after the events */
    unsigned n_flush;
    struct loop_timer *flush_timer;
    struct listener *listeners;
    struct target *targets;
    struct origin *origins;
    unsigned n_accepted, n_half_open; /* there now */
    size_t out_total;                 /* capacity of all out buffers */
    size_t parts_total;
    struct loop_timer *parts_timer;     /* while there are any */
    size_t encoded_total;               /* capacity of the replies of conn_dump_encoded */
    struct loop_timer *packet_in_timer; /* some connection's rate allows more then */
    uint64_t packet_in_due;             /* loop time, ns; 0: the timer is not set */
    unsigned packet_in_batch;           /* packet-ins since the last channel_packet_ins_send */
    bool has_generation;
    uint64_t generation;
    struct of_arena arena;          /* of the message being handled */
    struct of_wr scratch;           /* asynchronous messages */
    struct async_log async;         /* those that some connection has no room for */
    struct loop_timer *async_timer; /* while there are any */
    uint64_t async_trimmed;         /* loop time */
    bool hold;
    struct async_log held; /* those kept meanwhile */
    struct async_reader held_reader;
    struct channel_counters counters;
};

#define COUNT(c, name, n) ((c)->counters.name += (n), (c)->ch->counters.name += (n))

/* ------------------------------------------------------------------ conn.c */

/* A connection over a stream (it may be one that is connecting), which it owns; closed on failure.
 * `peer` is copied. */
int conn_new(struct channel *ch, struct stream *s, const char *peer, struct conn **out);

/* These two free c: for callbacks of the loop only. */
void conn_close(struct conn *c);
void conn_run(struct conn *c); /* sends, goes on with what was held up, closes where that is due */

void conn_flush(struct conn *c);                    /* sends what it can */
void conn_flush_later(struct conn *c);              /* conn_run at the end of the turn */
void conn_end(struct conn *c);                      /* handles no more; closes when all is sent */
void conn_opened(struct conn *c);                   /* after the hello exchange */
void conn_fail(struct conn *c, int err);            /* to be closed soon; err: -errno */
void conn_because(struct conn *c, const char *why); /* the first reason counts */

/* Whether requests have to wait: for a dump, for the peer to read, or until they are allowed. */
bool conn_blocked(const struct conn *c);

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

/* Milliseconds of a cheap clock, to keep one connection from taking a turn for itself. */
#define TURN_MS 10
uint64_t conn_clock_ms(void);

/* ------------------------------------------------------------------ conn-request.c */

/* One whole frame, of which nothing is known but the length. */
void conn_frame(struct conn *c, struct of_bytes frame);

/* The first 8 bytes or more of a frame with an impossible length: the end, the framing is lost. */
void conn_bad_frame(struct conn *c, struct of_bytes head);

/* ------------------------------------------------------------------ conn-hello.c (6.3.1) */

int conn_send_hello(struct conn *c);
void conn_hello(struct conn *c, struct of_bytes frame);
void conn_no_hello(struct conn *c, struct of_bytes head); /* something else came, or too much */

/* ------------------------------------------------------------------ conn-parts.c */

/* A multipart request (m: header and raw are set), which may be a piece of a larger one.
 * 1: it is whole; *part, where it came in pieces, has its body, and m->mp and body_row are set.
 * 0: not yet, or it is passed over.  >0: OFPBRC_ errors. */
int conn_part(struct conn *c, struct of_msg *m, struct part **part);
bool conn_part_open(struct conn *c, const struct of_msg *m); /* pieces of it have come before */
void conn_part_forget(struct conn *c, struct part *p);
void conn_parts_free(struct conn *c);
void channel_parts_due(void *ch); /* the timer's */

/* ------------------------------------------------------------------ conn-reply.c */

/* Append a message: 0, -EMSGSIZE, or what c->fail now says.  To a mute peer: nothing, 0. */
int conn_send(struct conn *c, uint8_t type, uint32_t xid, const void *body);
int conn_send_bytes(struct conn *c, struct of_bytes message);
int conn_send_error(struct conn *c, uint32_t xid, int err, struct of_bytes request,
                    const char *text);

void conn_out_count(struct conn *c); /* out.cap has changed */

void conn_dump_run(struct conn *c); /* as far as there is room */
void conn_dump_end(struct conn *c); /* frees it, finished or not */

/* ------------------------------------------------------------------ conn-packet-in.c */

void conn_packet_ins_run(struct conn *c); /* sends those whose turn has come, as there is room */
void conn_packet_ins_free(struct conn *c);
void channel_packet_ins_due(void *ch); /* the timer's */

/* ------------------------------------------------------------------ conn-async.c */

bool conn_async_waits(const struct conn *c); /* is there any for which it had no room? */
void conn_async_run(struct conn *c);         /* sends them, as far as there is room */
void conn_async_forget(struct conn *c);
void channel_async_due(void *ch); /* the timer's */

/* ------------------------------------------------------------------ conn-role.c */

void conn_state_init(struct conn_state *s);
bool conn_is_controller(const struct conn *c); /* gets asynchronous messages at all */
bool conn_wants(const struct conn *c, enum async_kind kind, uint8_t reason);

/* ------------------------------------------------------------------ control/accept.c */

int channel_listen(struct channel *ch, const char *text, char *why, size_t why_len);
void channel_listeners_free(struct channel *ch);
void channel_accepted_open(struct conn *c); /* hello is over */
void channel_accepted_gone(struct conn *c);

/* ------------------------------------------------------------------ control/target.c */

void channel_targets_free(struct channel *ch);
bool uplink_connected(const struct uplink *u); /* false: by a way that must not be used */
void uplink_opened(struct uplink *u);
void uplink_ending(struct uplink *u); /* its connection takes no more part in anything */
void uplink_lost(struct uplink *u, const char *why); /* its connection is no more */

/* Which of a controller's connections the packet-ins of a port take; c is its main one. */
struct conn *conn_for_packet_in(struct conn *c, uint32_t in_port);

/* The main one of the controller that c belongs to; c itself where there is none (any more). */
static inline struct conn *
conn_main(struct conn *c)
{
    return c->uplink && c->uplink->main->conn ? c->uplink->main->conn : c;
}

#endif
