/* SPDX-License-Identifier: Apache-2.0 */
/* All connections, for the files of this room (control/channel.h is for everybody else). */
#ifndef CONTROL_CHANNEL_INSIDE_H
#define CONTROL_CHANNEL_INSIDE_H

#include "async-log.h"
#include <control/channel.h>

#include <stream/stream.h>

struct target;   /* target.c */
struct listener; /* accept.c */

/* Where accepted connections come from: an address or a local user.  Exists as long as it has
 * connections. */
struct origin {
    struct origin *next;
    char name[STREAM_ORIGIN_MAX];
    bool local;
    unsigned refs, n, half_open; /* connections, and those of them before the end of hello */
};

/* One of the connections to a controller that the switch itself connects to.  A target's are in one
 * array: the main one, then the auxiliary ones (6.3.6). */
struct uplink {
    struct target *target;
    struct uplink *main;
    unsigned n_aux; /* of the main one: how many follow it */
    uint8_t aux;    /* its auxiliary id; 0: it is the main one */
    uint32_t backoff_ms;
    struct loop_timer *timer; /* to connect */
    struct conn *conn;        /* NULL: not connected */
};

struct channel {
    struct loop *loop;
    struct channel_ops ops;
    void *ctx;
    struct channel_options opt;
    struct stream_tls *tls;
    struct conn *conns;              /* the newest first */
    struct conn *flush, *flush_last; /* conn_run is to be called for these after the events */
    unsigned n_flush;
    struct loop_timer *flush_timer;
    size_t out_total; /* capacity of all out buffers */
    struct channel_counters counters;

    /* target.c, accept.c */
    struct target *targets;
    struct listener *listeners;
    struct origin *origins;
    unsigned n_accepted, n_half_open; /* there now */

    /* conn-life.c: connections whose requests take long have turns */
    uint64_t n_tickets; /* how often a connection had to wait for others */
    uint64_t given;     /* when a turn was last given, loop time */

    /* conn-request.c, conn-parts.c */
    struct of_arena arena; /* of the message being handled */
    size_t parts_total;
    struct loop_timer *parts_timer; /* runs while there are any */

    /* conn-dump.c */
    bool no_dumps;        /* until channel_go_on */
    size_t encoded_total; /* capacity of the replies of conn_dump_encoded */

    /* conn.c */
    struct of_wr door_scratch; /* a message on its way to a peer of 1.0 */

    /* conn-async.c */
    struct of_wr scratch;           /* the message being encoded */
    struct async_log async;         /* those that some connection has no room for */
    struct loop_timer *async_timer; /* runs while there are any */
    uint64_t async_trimmed;         /* loop time */
    bool hold;
    uint64_t n_held;       /* how often a connection's message had to wait */
    struct async_log held; /* those kept meanwhile */
    struct async_reader held_reader;

    /* conn-packet-in.c */
    struct loop_timer *packet_in_timer; /* some connection's rate allows more then */
    uint64_t packet_in_due;             /* loop time, ns; 0: the timer is not set */
    unsigned packet_in_batch;           /* packet-ins since the last channel_packet_ins_send */

    /* conn-role.c */
    struct conn_roles roles;
};

/* ------------------------------------------------------------------ accept.c */

int channel_listen(struct channel *ch, const char *text, char *why, size_t why_len);
bool channel_unlisten(struct channel *ch, const char *text); /* false: there is none */
void channel_listeners_free(struct channel *ch);

/* ------------------------------------------------------------------ target.c */

void channel_targets_free(struct channel *ch);

#endif
