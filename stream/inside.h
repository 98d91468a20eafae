/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this room share. */
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

/* The bytes as they are on the socket: as stream_read and stream_write, but nothing is kept. */
ssize_t socket_read(const struct stream *s, void *p, size_t n);
ssize_t socket_write(const struct stream *s, const void *p, size_t n);

/* ------------------------------------------------------------------ tls.c, or tls-none.c
 * As the functions of stream.h with these names; all errors but -EAGAIN leave a sentence. */
struct tls_session;

extern const char tls_missing[]; /* why there is no TLS */

int tls_start(struct stream_tls *tls, struct stream *under, const char *host,
              struct tls_session **out);
void tls_free(struct tls_session *t); /* says farewell where that is possible at once */
int tls_open(struct tls_session *t);
ssize_t tls_read(struct tls_session *t, void *p, size_t n);
ssize_t tls_write(struct tls_session *t, const void *p, size_t n);
void tls_end(struct tls_session *t);
bool tls_pending(const struct tls_session *t);
uint32_t tls_wait_for(const struct tls_session *t, uint32_t wanted);
const char *tls_why(const struct tls_session *t);

#endif
