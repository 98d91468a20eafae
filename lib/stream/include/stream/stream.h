/* SPDX-License-Identifier: Apache-2.0 */
/* Connections as streams of bytes that never block: Unix sockets, TCP, TLS.
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

/* To be called until it returns 0: the stream is open.  -EAGAIN: call again when the descriptor is
 * ready.  Another -errno: it failed (stream_why); -EPROTO: one side refuses the other's TLS. */
int stream_open(struct stream *s);

/* Ends writing; the peer may still write. */
void stream_end(struct stream *s);

/* Closes at once.  The kernel still sends what was written.  NULL is allowed. */
void stream_close(struct stream *s);

/* Whether two open streams come from the same IP address; Unix sockets have none to differ. */
bool stream_same_source(const struct stream *a, const struct stream *b);

/* The origin of an accepted stream, without what the peer can choose at will: "192.0.2.1",
 * "2001:db8:0:1::/64", "user 1000" of a Unix socket, or "unknown". */
void stream_origin(const struct stream *s, char *out, size_t n);
#define STREAM_ORIGIN_MAX 64

bool stream_is_tls(const struct stream *s);

/* The common name in the certificate of an open stream's peer, as UTF-8.  False: it has none, more than
 * one, or one that is longer than n - 1 bytes, isn't valid in its encoding or has a control character,
 * such as a zero; then *out is "". */
bool stream_common_name(const struct stream *s, char *out, size_t n);
#define STREAM_NAME_MAX 257 /* RFC 5280: ub-common-name is 64 characters */

/* ------------------------------------------------------------------ bytes */

/* -> the number of bytes (> 0) read or written; stream_read 0: the peer has ended.  -EAGAIN: none
 * now; call again when the descriptor is ready.  Another -errno: the stream is broken (stream_why);
 * -EPROTO as above, since a peer may refuse our certificate late.  After -EAGAIN a write must begin
 * with the same bytes again, at any address, and have no fewer. */
ssize_t stream_read(struct stream *s, void *p, size_t n);
ssize_t stream_write(struct stream *s, const void *p, size_t n);

/* Why stream_open, stream_read or stream_write failed, in words; valid as long as the stream. */
const char *stream_why(const struct stream *s);

/* ------------------------------------------------------------------ waiting */

int stream_fd(const struct stream *s);

/* The events (POLLIN, POLLOUT) to wait for at the descriptor in order to read (POLLIN in `wanted`)
 * or write (POLLOUT).  `wanted` is ignored until the stream is open. */
uint32_t stream_wait_for(const struct stream *s, uint32_t wanted);

/* The reverse: what the descriptor's events mean for the stream.  Other events are passed through.
 */
uint32_t stream_ready_for(const struct stream *s, uint32_t events);

/* Whether bytes are buffered that the descriptor will not report.  Callers that don't read until
 * -EAGAIN must ask before they wait. */
bool stream_pending(const struct stream *s);

/* ------------------------------------------------------------------ listening */

/* The number of a group, by name or number.  -EINVAL: there is none of this name. */
int stream_group_of(const char *name, gid_t *out);

/* Sets the group that may use the Unix sockets made from now on.  By default it is the process's own. */
void stream_socket_group(gid_t group);
gid_t stream_socket_group_id(void); /* (gid_t)-1: none was set */

/* Listens.  -errno with a sentence in `why`.  A Unix socket at which nobody answers is taken over;
 * its mode is 0660.  `tls`, which must outlive the listener, is needed for ptls: addresses only;
 * else it may be NULL. */
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
