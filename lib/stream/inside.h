/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share, above inside.c: inside <- tls-files <- tls <- stream <-
 * listener; inside <- lookup <- address. */
#ifndef STREAM_INSIDE_H
#define STREAM_INSIDE_H

#include <stream/stream.h>
#include <stream/tls.h>

/* Where a sentence about what went wrong is put. */
struct why {
    char *text;
    size_t len;
};

/* -> err */
int __attribute__((format(printf, 3, 4)))
stream_refuse(struct why why, int err, const char *fmt, ...);

/* The addresses of r->name.host, by getaddrinfo (flags: AI_NUMERICHOST or 0); -EAGAIN: it is no
 * number, and numbers were asked for. */
int stream_look_up(struct stream_remote *r, int flags, struct why why);

void stream_no_delay(int fd); /* nothing waits for more to be sent with it */

/* From here on a stream's bytes go through TLS: connecting to `host`, or accepted (NULL). */
int stream_start_tls(struct stream *s, struct stream_tls *tls, const char *host);

/* The bytes as they are on the socket; returns as stream_read and stream_write do. */
ssize_t stream_socket_read(int fd, void *p, size_t n);
ssize_t stream_socket_write(int fd, const void *p, size_t n);

/* ------------------------------------------------------------------ tls.c, or tls-none.c */

/* TLS over a connected socket.  The functions do what those of stream.h with these names do; all
 * errors but -EAGAIN leave a sentence. */
struct stream_session;

extern const char stream_tls_missing[]; /* why there is no TLS */

int stream_session_start(struct stream_tls *tls, int fd, const char *host,
                         struct stream_session **out);
/* Sends TLS's close_notify if that is possible without waiting. */
void stream_session_free(struct stream_session *t);
int stream_session_open(struct stream_session *t);
ssize_t stream_session_read(struct stream_session *t, void *p, size_t n);
ssize_t stream_session_write(struct stream_session *t, const void *p, size_t n);
void stream_session_end(struct stream_session *t);
bool stream_session_pending(const struct stream_session *t);
uint32_t stream_session_wait_for(const struct stream_session *t, uint32_t wanted);
const char *stream_session_why(const struct stream_session *t);
bool stream_session_name(const struct stream_session *t, char *out, size_t n);

#endif
