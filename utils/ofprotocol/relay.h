/* SPDX-License-Identifier: Apache-2.0 */
/* Inside ofprotocol: sessions between peers and the datapath, with bounded buffers.
 *
 * While ofprotocol's own connection to the datapath (manage.c) is up, it connects to each
 * controller. Each controller, and each peer that was accepted, has a connection to the datapath
 * for itself (session.c), so roles, asynchronous messages and xids are its own, and nothing is
 * rewritten.
 *
 * One thread, one poll().  Times are CLOCK_MONOTONIC in ms. */
#ifndef OFPROTOCOL_RELAY_H
#define OFPROTOCOL_RELAY_H

#include "pipe.h"

#include <daemon/daemon.h>
#include <stream/tls.h>

#include <poll.h>

#define TARGETS_MAX   16
#define LISTENERS_MAX 8
#define ACCEPTED_MAX  64
#define CONNECT_MS    10000 /* time for a connection to be made */
#define LAST_WORDS_MS 5000  /* time to pass on what one side said before it ended */

struct relay;

/* --------------------------------------------------------------- session.c */

struct target;

/* The session has ended, for this reason, and is about to be freed. */
typedef void session_over(struct relay *r, struct target *t, const char *why, int64_t now);

struct session {
    struct session *next;
    struct target *target; /* NULL: accepted */
    session_over *over;
    char name[STREAM_PEER_MAX];     /* of the peer */
    struct stream *peer, *datapath; /* datapath NULL: the peer is being connected to */
    bool open;                      /* both are */
    bool busy;                      /* there may be more to do at once */
    bool spoken;                    /* the peer has sent a message */
    bool probed;                    /* it has been sent an echo request */
    const char *why;                /* why one side has ended; NULL: both are there */
    bool ended_peer;                /* ... this one */
    int64_t last_input, probed_at;  /* of the peer */
    int64_t deadline;               /* to be open, or closed */
    unsigned place, places;         /* in relay's fds */
    struct pipe in, out;            /* from the peer, to it */
};

/* Makes a session for a stream that is being opened, and owns the stream.  Without memory the
 * stream is closed.  `over` is called if there is a target. */
struct session *session_new(struct relay *r, struct stream *peer, const char *name,
                            struct target *target, session_over *over, int64_t now);
void session_free(struct relay *r, struct session *s);
/* Registers what to wait for; then does what is due. */
void sessions_wait(struct relay *r, int64_t now);
void sessions_run(struct relay *r, int64_t now);

/* ---------------------------------------------------------------- target.c */

/* A controller to connect to. */
struct target {
    const char *text;
    struct stream_remote remote;
    unsigned address; /* of remote's: the next to try */
    bool is_name;
    struct stream_lookup *lookup; /* of the name; NULL: none is under way */
    unsigned place;               /* in relay's fds, while it is */
    struct session *session;
    bool logged; /* that it can't be reached */
    uint32_t backoff_ms;
    int64_t next; /* time to try */
};

/* -errno with a sentence in `why`. */
int target_add(struct relay *r, const char *text, char *why, size_t why_len);
void targets_wait(struct relay *r, int64_t now);
void targets_run(struct relay *r, int64_t now);
void targets_free(struct relay *r);

/* ---------------------------------------------------------------- manage.c */

/* Ofprotocol's own connection to the datapath, by which it knows that the datapath is there, and
 * reports how many controllers are connected (RELAY, docs/reference/extensions.md). */
struct manage {
    struct stream *stream; /* NULL: not connected */
    bool open, up;         /* up: the datapath has said hello */
    bool logged;           /* that it isn't there */
    bool reported_any;
    struct of_relay reported; /* the last RELAY message */
    uint32_t xid;
    int64_t next;     /* time to try */
    int64_t deadline; /* to be up */
    struct pipe in, out;
};

void manage_wait(struct relay *r, int64_t now);
void manage_run(struct relay *r, int64_t now);
void manage_close(struct relay *r);

/* ----------------------------------------------------------------- relay.c */

struct relay {
    struct stream_tls *tls; /* NULL: there is none */
    const char *datapath_text;
    struct stream_remote datapath;
    uint32_t probe_ms; /* 0: never */
    uint32_t backoff_max_ms;
    uint8_t fail; /* OFP_FAIL_ */
    struct target targets[TARGETS_MAX];
    unsigned n_targets;
    struct stream_listener *listeners[LISTENERS_MAX];
    unsigned n_listeners, n_accepted;
    int64_t accept_at; /* when to accept again, after descriptors or memory ran out */
    bool starved;      /* that has been logged */
    struct session *sessions;
    struct manage manage;
    /* What this turn waits for; the signals' descriptor, then the listeners come first. */
    struct pollfd fds[1 + LISTENERS_MAX + 1 + TARGETS_MAX + 2 * (TARGETS_MAX + ACCEPTED_MAX)];
    unsigned n_fds;
    int64_t wake;
};

/* Runs until a signal (daemon_signals) ends it. */
void relay_loop(struct relay *r, struct daemon *d, int signals);
void relay_free(struct relay *r);

/* ------------------------------------------------------------------ wait.c */

/* Wait for a descriptor or a stream (-> its place in fds), and until this time at the latest. */
unsigned relay_wait_fd(struct relay *r, int fd, uint32_t events);
unsigned relay_wait_stream(struct relay *r, const struct stream *s, uint32_t wanted);
void relay_wait_until(struct relay *r, int64_t when);
bool relay_woken(const struct relay *r, unsigned place);

#endif
