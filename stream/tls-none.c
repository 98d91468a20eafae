/* SPDX-License-Identifier: Apache-2.0 */
/* In place of TLS, in a build without it: nothing can be begun. */
#include <stream/stream.h>

#include "inside.h"

#include <errno.h>

const char tls_missing[] = "this build has no TLS";

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
                                 tls_missing);
    return 0;
}

void
stream_tls_free(struct stream_tls *tls)
{
}

int
tls_start(struct stream_tls *tls, struct stream *under, const char *host, struct tls_session **out)
{
    return -ENOTSUP;
}

void
tls_free(struct tls_session *t)
{
}

int
tls_open(struct tls_session *t)
{
    return -ENOTSUP;
}

ssize_t
tls_read(struct tls_session *t, void *p, size_t n)
{
    return -ENOTSUP;
}

ssize_t
tls_write(struct tls_session *t, const void *p, size_t n)
{
    return -ENOTSUP;
}

void
tls_end(struct tls_session *t)
{
}

bool
tls_pending(const struct tls_session *t)
{
    return false;
}

uint32_t
tls_wait_for(const struct tls_session *t, uint32_t wanted)
{
    return wanted;
}

const char *
tls_why(const struct tls_session *t)
{
    return tls_missing;
}
