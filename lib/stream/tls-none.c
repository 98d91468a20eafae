/* SPDX-License-Identifier: Apache-2.0 */
/* In place of TLS, in a build without it: nothing can be begun. */
#include <stream/stream.h>

#include "inside.h"

#include <errno.h>

const char stream_tls_missing[] = "this build has no TLS";

int
stream_tls_new(const struct stream_tls_options *o, struct stream_tls **out, char *why,
               size_t why_len)
{
    static const char *const names[] = {
#define NAME(id, name, arg, help) name,
        STREAM_TLS_OPTIONS(NAME)};
    *out = NULL;
    for (int i = 0; i < STREAM_TLS_N; i++)
        if (o->values[i])
            return stream_refuse((struct why){why, why_len}, -ENOTSUP, "--%s: %s", names[i],
                                 stream_tls_missing);
    return 0;
}

void
stream_tls_free(struct stream_tls *tls)
{
}

int
stream_session_start(struct stream_tls *tls, int fd, const char *host, struct stream_session **out)
{
    return -ENOTSUP;
}

void
stream_session_free(struct stream_session *t)
{
}

int
stream_session_open(struct stream_session *t)
{
    return -ENOTSUP;
}

ssize_t
stream_session_read(struct stream_session *t, void *p, size_t n)
{
    return -ENOTSUP;
}

ssize_t
stream_session_write(struct stream_session *t, const void *p, size_t n)
{
    return -ENOTSUP;
}

void
stream_session_end(struct stream_session *t)
{
}

bool
stream_session_pending(const struct stream_session *t)
{
    return false;
}

uint32_t
stream_session_wait_for(const struct stream_session *t, uint32_t wanted)
{
    return wanted;
}

const char *
stream_session_why(const struct stream_session *t)
{
    return stream_tls_missing;
}

bool
stream_session_name(const struct stream_session *t, char *out, size_t n)
{
    return false;
}
