/* SPDX-License-Identifier: Apache-2.0 */
/* Connections as streams of bytes, never blocking, whatever carries them.
 *
 * One thread at a time may use a stream or a listener.  Nothing here raises SIGPIPE.
 */
#ifndef STREAM_STREAM_H
#define STREAM_STREAM_H

#include <stream/address.h>

#include <stdint.h>
#include <sys/types.h>

struct stream;
struct stream_listener;

/* ------------------------------------------------------------------ beginning and end */

/* Begins to connect to the i-th address of r.  -errno: there is no stream. */
int stream_connect(const struct stream_remote *r, unsigned i, struct stream **out);

/* Out of a connected socket, which is the stream's from then on; closed on failure (-ENOMEM). */
int stream_of_fd(int fd, struct stream **out);

/* To be called until it says 0: the stream is open.  -EAGAIN: not yet, again when the descriptor
 * is ready.  Another -errno: it never will be (stream_why); -EPROTO: over TLS, and either side
 * refuses the other. */
int stream_open(struct stream *s);

/* Says that no more will be written; the peer may still write. */
void stream_end(struct stream *s);

/* At once; what was written is still sent by the kernel.  NULL is allowed. */
void stream_close(struct stream *s);

/* Whether two open streams come from the same IP address; Unix sockets have none to differ. */
bool stream_same_source(const struct stream *a, const struct stream *b);

/* Who the peer of an accepted stream is, without what it can choose at will: "192.0.2.1",
 * "2001:db8:0:1::/64", "user 1000" of a Unix socket; "unknown". */
void stream_origin(const struct stream *s, char *out, size_t n);
#define STREAM_ORIGIN_MAX 64

/* ------------------------------------------------------------------ bytes */

/* How many bytes (> 0) were read or written; stream_read 0: the peer has ended.  -EAGAIN: none now,
 * again when the descriptor is ready.  Another -errno: the stream is broken (stream_why); -EPROTO
 * as above, since a peer may refuse our certificate late.  After -EAGAIN a write must begin with
 * the same bytes again, wherever they are, and have no fewer. */
ssize_t stream_read(struct stream *s, void *p, size_t n);
ssize_t stream_write(struct stream *s, const void *p, size_t n);

/* Why stream_open, stream_read or stream_write failed, in words; valid as long as the stream. */
const char *stream_why(const struct stream *s);

/* ------------------------------------------------------------------ waiting */

int stream_fd(const struct stream *s);

/* What to wait for at the descriptor by poll or epoll (POLLIN, POLLOUT) in order to do what
 * `wanted` says: POLLIN to read, POLLOUT to write; both are ignored until the stream is open. */
uint32_t stream_wait_for(const struct stream *s, uint32_t wanted);

/* The other way: what the descriptor's events mean for the stream.  Others are passed through. */
uint32_t stream_ready_for(const struct stream *s, uint32_t events);

/* Whether there is more to read that the descriptor, having given it out, will not tell about.
 * To be asked before waiting by whoever does not read until -EAGAIN. */
bool stream_pending(const struct stream *s);

/* ------------------------------------------------------------------ listening */

/* -errno with a sentence in `why`.  A Unix socket at which nobody answers is taken over; its mode
 * is 0660.  `tls` (it must outlive the listener) is needed for ptls: addresses only, else NULL will
 * do. */
/* The group that may use the Unix sockets which are made from now on, by name or number; else it is
 * this process's own. */
int stream_socket_group(const char *name, char *why, size_t why_len);

int stream_listen(const char *text, struct stream_tls *tls, struct stream_listener **out, char *why,
                  size_t why_len);

/* Ends listening; removes a Unix socket if it is still the one that was made. */
void stream_listener_free(struct stream_listener *l);

int stream_listener_fd(const struct stream_listener *l);        /* readable: a peer waits */
bool stream_listener_is_local(const struct stream_listener *l); /* a Unix socket */

/* The next peer and its name ("tcp:192.0.2.1:40000", "unix:PATH#1").  -EAGAIN: nobody waits now;
 * another -errno of accept (-EMFILE, ...), or -ENOMEM. */
int stream_accept(struct stream_listener *l, struct stream **out, char *peer, size_t peer_len);
#define STREAM_PEER_MAX 160 /* bytes of the longest name */

#endif
