/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel: OpenFlow connections of the control thread, passive and active.
 *
 * A connection does framing, the hello exchange, decoding, generic checks and error replies.  The
 * switch's handlers (channel_ops) carry out the messages.  Everything runs in one thread, over one
 * epoll descriptor (loop.h).
 *
 * A peer that does not read never stops the switch or fills its memory:
 * - A connection's output buffer is bounded (CONN_OUT_MAX): above the mark its requests are not
 *   read.
 * - Asynchronous messages wait in a list that all connections share.  A peer that doesn't read them
 *   loses the oldest, which are counted.  Those that a connection's own request causes are sent
 *   before its next request is handled.
 * - Packet-ins wait by port.  When too many wait, the oldest are dropped and counted.
 *
 * Sections are those of the OpenFlow Switch Specification 1.3.5. */
#ifndef CONTROL_CHANNEL_H
#define CONTROL_CHANNEL_H

#include <loop/loop.h>

#include <oflib/codec.h>
#include <oflib/openflow10.h>

#include <stdbool.h>

struct channel; /* all connections and listeners */
struct conn;
struct deferred_copy;
struct stream_tls;
struct log_by;

#define CONN_OUT_MAX       (4u << 20)  /* bytes one connection may have waiting to be sent */
#define CHANNEL_OUT_MAX    (64u << 20) /* all of them; above it each has CONN_OUT_FLOOR */
#define CONN_OUT_FLOOR     (256u << 10)
#define CHANNEL_SPARE_PART 16 /* this part of all connections is kept for punix: targets */

/* What a request takes from its sender.  A slave may send what reads (6.3.5). */
enum access {
    ACCESS_NONE, /* it is no request: OFPBRC_BAD_TYPE */
    ACCESS_READ,
    ACCESS_WRITE,
    ACCESS_WRITE_BODY, /* a multipart request that writes if it has a body */
};

/* What the switch does for the channel. */
struct channel_ops {
    /* Handles a request that is decoded and allowed for the connection's role, and replies by
     * conn_reply and the like.  An error that it returns is sent: >0: this one; <0 (-errno, a fault
     * of the switch): the one that comes nearest (conn_error_of). */
    int (*handle)(void *ctx, struct conn *c, const struct of_msg *m);
    void (*connected)(void *ctx, struct conn *c);    /* after the hello exchange */
    void (*disconnected)(void *ctx, struct conn *c); /* c is about to go away */
    /* Of a frame of which only the header is known to be whole. */
    enum access (*access)(void *ctx, struct of_bytes frame);
    /* Whether this message may be handled now; if not, it and all behind it wait until
     * channel_go_on or channel_try_longest.  NULL: always. */
    bool (*allow)(void *ctx, struct conn *c, struct of_bytes frame);
    /* Whether a request asks the kernel, which may keep it for long: then `later` is given a copy, which it carries out
     * elsewhere (control/deferred.h).  NULL: none does. */
    bool (*blocks)(void *ctx, struct of_bytes frame);
    int (*later)(void *ctx, struct of_bytes frame, struct deferred_copy *r);
    /* Whether a connection that has a slice (struct conn_own) may be sent this asynchronous message.
     * NULL: always. */
    bool (*sees)(void *ctx, struct conn *c, struct of_bytes message);
};

int channel_new(struct channel **out, struct loop *loop, const struct channel_ops *ops, void *ctx);

/* Dumps pause until channel_go_on, because what they read is changing. */
void channel_stop_dumps(struct channel *ch);

/* Asks `allow` again about the messages that wait, and lets dumps go on. */
void channel_go_on(struct channel *ch);

/* Sends what it can of what waits, in the middle of long work. */
void channel_flush(struct channel *ch);

/* Asks `allow` again about the message that has waited longest, in the next turn.  Returns whether
 * others wait. */
bool channel_try_longest(struct channel *ch);

/* Closes everything and removes punix sockets.  What waits to be sent is tried once. */
void channel_free(struct channel *ch);

/* Times in milliseconds.  To be set before channel_add; a member that is 0 keeps its default.
 * CHANNEL_NEVER switches off what can be switched off. */
#define CHANNEL_NEVER   UINT32_MAX
#define CHANNEL_AUX_MAX 8
struct channel_options {
    uint32_t probe_ms;       /* silence after which an echo request is sent, and as long again until
                              the connection is given up; not for punix: peers */
    uint32_t hello_ms;       /* time for the hello exchange, and for a connect */
    uint32_t backoff_ms;     /* before connecting again, doubled each time up to ... */
    uint32_t backoff_max_ms; /* ... this */
    uint32_t aux; /* auxiliary connections to each controller that is connected to by TCP or TLS, up
                     to CHANNEL_AUX_MAX */
    uint32_t max_conns;       /* accepted connections */
    uint32_t packet_in_rate;  /* packet-ins a second to each controller; 0: without limit */
    uint32_t packet_in_burst; /* and how many at once; 0: a quarter of that, or 1 */
    uint32_t versions;        /* OFP_BITMAP_ that new connections may speak: 1.0, 1.3 or both */
};
#define CHANNEL_OPTIONS_DEFAULT                                                                    \
    {                                                                                              \
        .probe_ms = 15000, .hello_ms = 10000, .backoff_ms = 1000, .backoff_max_ms = 8000,          \
        .max_conns = 256, .versions = OFP_BITMAP_1_0 | OFP_BITMAP_1_3                              \
    }
void channel_set_options(struct channel *ch, const struct channel_options *o);

/* For tls: and ptls: targets (stream/tls.h); before channel_add.  It must outlive the channel. */
void channel_set_tls(struct channel *ch, struct stream_tls *tls);

/* Listens at an address (stream/address.h), or connects to it again and again.  A thread of its own
 * looks host names up, and looks them up again when none of their addresses answers any more.
 * A socket that can't be opened to listen is an error; a peer that can't be reached is none.
 * -EINVAL etc. with a sentence in `why`. */
int channel_add(struct channel *ch, const char *target, char *why, size_t why_len);

/* Takes back channel_add of the same text: -ENOENT.  Connections to that controller are closed soon;
 * those that a listener has accepted stay. */
int channel_remove(struct channel *ch, const char *target);

/* ------------------------------------------------------------------ replies */

/* All of these: 0, -EMSGSIZE (does not fit a message; nothing is sent), or -ENOBUFS, -ENOMEM (the
 * connection will be closed). */

/* Queues a reply with the request's xid.  For a multipart reply (7.3.5) that is one message, `type`
 * is OFPT_MULTIPART_REPLY and `body` the reply's structure. */
int conn_reply(struct conn *c, uint8_t type, const struct of_msg *request, const void *body);
int conn_error(struct conn *c, const struct of_msg *request, int err);
/* Logs what failed in the switch itself (-errno), for which OpenFlow has no error.
 * -> the OpenFlow error that comes nearest. */
int conn_error_of(const struct conn *c, const struct of_msg *request, int err);
/* An error with data of its own (the QoS extension's).  With type OFPET_EXPERIMENTER the data
 * begins with the experimenter id, and `code` is the exp_type. */
int conn_error_data(struct conn *c, const struct of_msg *request, uint16_t type, uint16_t code,
                    struct of_bytes data);

/* A dump: a multipart reply that may be larger than one message, or than what the peer reads at
 * once. Its entries are appended one at a time and cut into messages with OFPMPF_REPLY_MORE.
 *
 * `step` is called whenever there is room.  It appends one entry, or a few small ones, by
 * conn_dump_add, and returns true while there are more.  `done` (may be NULL) frees ctx, also when
 * the connection goes away first or conn_dump fails.  Neither is called before the handler has
 * returned, except `done` on failure.  Later requests of the connection wait until the dump is
 * over.
 *
 * OFPT_QUEUE_GET_CONFIG_REQUEST is answered by a dump too, but its messages can't say that more
 * follow.
 *
 * A reply without entries is one message with an empty body.  For OFPMP_EXPERIMENTER each message
 * begins with the request's experimenter and exp_type.  -EBUSY: the request has a dump already. */
struct conn_dump;
typedef bool (*conn_dump_step)(struct conn_dump *d, void *ctx);
int conn_dump(struct conn *c, const struct of_msg *request, conn_dump_step step,
              void (*done)(void *), void *ctx);
/* One element of the reply's list (row: the element's list), or bytes already encoded.
 * -EMSGSIZE: too large for any message; it is left out. */
int conn_dump_add(struct conn_dump *d, const struct of_list_row *row, void *element);
int conn_dump_add_bytes(struct conn_dump *d, struct of_bytes bytes);

/* A reply of elements that are encoded already.  w is taken over, also on failure: -ENOMEM (w has
 * overflowed), MULTIPART_BUFFER_OVERFLOW (peers that don't read hold too many such replies).
 * `next` -> the length of the first element of what is left. */
typedef size_t (*conn_dump_next)(struct of_bytes left);
size_t conn_dump_len16(struct of_bytes left); /* where elements begin with their length */
/* Where they are tagged: type, then length, which leaves out the padding to a multiple of 8. */
size_t conn_dump_tagged(struct of_bytes left);
int conn_dump_encoded(struct conn *c, const struct of_msg *request, struct of_wr *w,
                      conn_dump_next next);
/* Where each has this length. */
int conn_dump_fixed(struct conn *c, const struct of_msg *request, struct of_wr *w, size_t each);

/* The same for several connections.  dump_shared_new takes w over in the same way; its caller owns a
 * reference. */
struct dump_shared;
int dump_shared_new(struct channel *ch, struct of_wr *w, conn_dump_next next,
                    struct dump_shared **out);
void dump_shared_put(struct dump_shared *s);
/* Sends the elements that the peer may see.  `done` frees ctx, also on failure. */
typedef bool (*conn_dump_sees)(void *ctx, struct of_bytes element);
int conn_dump_shared(struct conn *c, const struct of_msg *request, struct dump_shared *s,
                     conn_dump_sees sees, void (*done)(void *), void *ctx);

/* ------------------------------------------------------------------ asynchronous messages */

/* The last four have no reasons (0): a connection subscribes to them by MONITOR
 * (docs/reference/extensions.md). */
enum async_kind {
    ASYNC_PACKET_IN,
    ASYNC_PORT_STATUS,
    ASYNC_FLOW_REMOVED,
    ASYNC_QOS,
    ASYNC_ROLE,
    ASYNC_PROMISE,
    ASYNC_DROPS,
    ASYNC_DELAYS
};

/* Encodes a message (xid 0) once and sends it to every connection whose role and masks want the
 * reason. */
void channel_async(struct channel *ch, enum async_kind kind, uint8_t reason, uint8_t type,
                   const void *body);

/* Sends a message (xid 0) to this connection alone.  -EAGAIN: the peer has not read those before;
 * then only what `must` be sent is. */
int conn_notify(struct conn *c, uint8_t type, const void *body, bool must);

/* Is there a connection that wants this reason? */
bool channel_wants(const struct channel *ch, enum async_kind kind, uint8_t reason);

/* Whether a packet-in for this reason goes to the connection or to one of its auxiliary
 * connections. */
bool conn_wants_packet_in(const struct conn *c, uint8_t reason);

/* Queues a packet-in for every controller that wants its reason; channel_packet_ins_send sends
 * what is queued.  Ports take turns, and each controller has its rate (struct channel_options).  A
 * controller's auxiliary connections, if it has any, carry the messages (6.3.6).  What exceeds the
 * room or the rate is dropped and counted. */
void channel_packet_in(struct channel *ch, uint32_t in_port, const struct of_packet_in *p);
void channel_packet_ins_send(struct channel *ch);

/* Asynchronous messages between the two calls are kept, then sent or dropped. */
void channel_hold(struct channel *ch);
void channel_release(struct channel *ch, bool send);

/* ------------------------------------------------------------------ a connection's state */

/* Of a controller: its main connection and the auxiliary ones share it. */
struct conn_state {
    uint32_t role; /* OFPCR_ROLE_ */
    struct of_async async;
    uint32_t monitor; /* OFPMON_ */
};
struct conn_state *conn_state(struct conn *c);

/* Connections of which only one may be master, and their generation (6.3.5). */
struct conn_roles {
    bool has_generation;
    uint64_t generation;
};

/* The last packet-out of a connection. */
struct conn_packet_out {
    bool waits; /* it may not have been sent yet */
    uint32_t number;
};

/* Of each connection alone.  The handlers own it, and free it when `disconnected` is called. */
struct conn_own {
    struct bundles *bundles;  /* bundle.h; NULL: it has none */
    struct of_relay relay;    /* the last RELAY message */
    bool is_relay;            /* it has sent one */
    struct slice *slice;      /* what it may do and see (slice/slice.h); NULL: everything */
    struct conn_roles *roles; /* that it belongs to; NULL: those of all without a slice */
    struct conn_packet_out packet_out;
};
struct conn_own *conn_own(struct conn *c);

const char *conn_peer(const struct conn *c);
/* The text of the channel_add that made it: the address that was connected to or listened at. */
const char *conn_target(const struct conn *c);
bool conn_is_tls(const struct conn *c);
/* In its certificate (stream_common_name). */
bool conn_common_name(const struct conn *c, char *out, size_t n);
/* Ends an open connection that may do nothing here: its requests are not handled any more, and it is
 * sent OFPHFC_EPERM with this sentence. */
void conn_refuse(struct conn *c, const char *why);
/* For the log: the connection, and the request of it that is being handled. */
const struct log_by *conn_by(const struct conn *c);
bool conn_is_local(const struct conn *c); /* accepted at a Unix socket */
bool conn_is_of10(const struct conn *c); /* it speaks OpenFlow 1.0 (docs/reference/openflow10.md) */
uint8_t conn_aux(const struct conn *c);  /* 0: a main connection */

/* Role request (6.3.5, 7.3.9): demotes the other masters, and notifies those who subscribed to
 * changes of roles.  OFPRRFC_ errors. */
int conn_set_role(struct conn *c, uint32_t role, uint64_t generation_id);
/* The generation of the connections that share its roles.  False, and UINT64_MAX: none has sent
 * one yet. */
bool conn_generation(struct conn *c, uint64_t *out);

/* ------------------------------------------------------------------ counters */

#define CHANNEL_ERROR_TYPES 16 /* OFPET_ below 15; the last: all others */

/* One row each.  `in` is from the peer.  LOST(name) counts messages that the peer has missed:
 * COUNTERS and STATUS report them for each connection too. */
#define CHANNEL_COUNTERS(N, LOST)                                                                  \
    N(messages_in)                                                                                 \
    N(messages_out)                                                                                \
    N(bytes_in)                                                                                    \
    N(bytes_out)                                                                                   \
    N(errors_in) /* error messages from the peer */                                                \
    N(errors_out)                                                                                  \
    LOST(async_dropped)     /* the peer did not read fast enough */                                \
    LOST(packet_in_dropped) /* the same, of packet-ins */                                          \
    LOST(packet_in_limited) /* packet-ins beyond the controller's rate */                          \
    N(dump_skipped)         /* elements too large for a message */                                 \
    N(probes)               /* echo requests sent to silent peers */                               \
    N(accepted)             /* from here on of the whole channel only */                           \
    N(refused)              /* not accepted: all places were taken */                              \
    N(displaced)            /* closed to make room for other addresses or users */                 \
    N(hello_late)           /* no hello in time */                                                 \
    N(silent)               /* given up after a probe */                                           \
    N(connects)             /* attempts of active targets */                                       \
    N(connected)            /* hello exchanges that succeeded */                                   \
    N(hello_failed)                                                                                \
    N(tls_failed) /* refused by either side, or the handshake was not finished */                  \
    N(no_slice)   /* ended: their address has slices, and none is theirs */                        \
    N(disconnected)

#define CHANNEL_COUNTER_MEMBER(name) uint64_t name;
#define CHANNEL_COUNTER_SKIP(name)
struct channel_counters {
    CHANNEL_COUNTERS(CHANNEL_COUNTER_MEMBER, CHANNEL_COUNTER_MEMBER)
    uint64_t errors_out_by_type[CHANNEL_ERROR_TYPES];
};

/* Of one connection; of all present and former ones. */
const struct channel_counters *conn_counters(const struct conn *c);
uint64_t conn_lost(const struct conn *c); /* the sum of the LOST ones */
const struct channel_counters *channel_counters(const struct channel *ch);

/* The next open connection, in no order.  c NULL: the first.  -> NULL: no more. */
struct conn *channel_next(const struct channel *ch, const struct conn *c);

/* How many controllers the switch connects to, and how many of them are connected. */
struct channel_controllers {
    unsigned targets, connected;
};
struct channel_controllers channel_controllers(const struct channel *ch);

/* All connections, also those that are being set up or ended: first the controllers that the switch
 * connects to, in the order in which they were added, then the accepted ones, oldest first.  c is
 * NULL for a controller that is not connected at present; `why` says why its last attempt failed,
 * "" while it is connected. */
typedef void channel_each_fn(void *ctx, const char *peer, struct conn *c, const char *why);
void channel_each(const struct channel *ch, channel_each_fn *each, void *ctx);
const char *conn_phase_name(const struct conn *c); /* "open", ... */

#endif
