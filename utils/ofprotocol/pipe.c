/* SPDX-License-Identifier: Apache-2.0 */
#include "pipe.h"

#include <errno.h>
#include <string.h>

/* Moves the bytes to the buffer's beginning, so that all its room is behind them. */
static void
gather(struct pipe *p)
{
    if (!p->sent)
        return;
    memmove(p->buf, p->buf + p->sent, p->have - p->sent);
    p->whole -= p->sent;
    p->have -= p->sent;
    p->sent = 0;
}

/* The messages that have become whole. */
static int
take_whole(struct pipe *p, pipe_filter *filter, void *ctx)
{
    for (;;) {
        uint8_t *at = p->buf + p->whole;
        size_t left = p->have - p->whole;
        int len = of_frame_len(at, left);
        if (len < 0)
            return -EBADMSG;
        if (!len || left < (size_t)len)
            return 0;
        if (filter(ctx, (struct of_bytes){at, (size_t)len})) {
            p->whole += (size_t)len;
        } else {
            memmove(at, at + len, left - (size_t)len);
            p->have -= (size_t)len;
        }
    }
}

int
pipe_fill(struct pipe *p, struct stream *from, pipe_filter *filter, void *ctx)
{
    if (p->have == PIPE_SIZE)
        gather(p);
    if (p->have == PIPE_SIZE)
        return 0;
    ssize_t n = stream_read(from, p->buf + p->have, PIPE_SIZE - p->have);
    if (n == -EAGAIN)
        return 0;
    if (n <= 0)
        return n ? (int)n : -ECONNRESET;
    p->have += (size_t)n;
    int err = take_whole(p, filter, ctx);
    return err ? err : 1;
}

int
pipe_drain(struct pipe *p, struct stream *to)
{
    if (!pipe_is_waiting(p))
        return 0;
    ssize_t n = stream_write(to, p->buf + p->sent, p->whole - p->sent);
    if (n < 0)
        return n == -EAGAIN ? 0 : (int)n;
    p->sent += (size_t)n;
    if (p->sent == p->have)
        p->sent = p->whole = p->have = 0;
    return 1;
}

bool
pipe_insert(struct pipe *p, const uint8_t *msg, size_t n)
{
    if (PIPE_SIZE - p->have < n)
        gather(p);
    if (PIPE_SIZE - p->have < n)
        return false;
    memmove(p->buf + p->whole + n, p->buf + p->whole, p->have - p->whole);
    memcpy(p->buf + p->whole, msg, n);
    p->whole += n;
    p->have += n;
    return true;
}
