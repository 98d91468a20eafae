/* SPDX-License-Identifier: Apache-2.0 */
/* One direction of a session: a bounded buffer between two streams that knows where messages end.
 */
#ifndef OFPROTOCOL_PIPE_H
#define OFPROTOCOL_PIPE_H

#include <oflib/codec.h>
#include <stream/stream.h>

#define PIPE_SIZE (2 * (OF_MSG_MAX + 1)) /* so that a whole message always fits */

struct pipe {
    size_t sent, whole, have; /* written; up to here are whole messages; read */
    uint8_t buf[PIPE_SIZE];
};

/* Called with each message that has come, of a header's length at least.  False: the message is
 * taken out. */
typedef bool pipe_filter(void *ctx, struct of_bytes msg);

/* Reads once.  >0: something came; 0: nothing for now, or there is no room.  -ECONNRESET: the peer
 * has ended; -EBADMSG: it sent what can't be OpenFlow; another -errno of the stream. */
int pipe_fill(struct pipe *p, struct stream *from, pipe_filter *filter, void *ctx);

/* Writes what is whole.  >0: some was written; 0: nothing for now; -errno of the stream. */
int pipe_drain(struct pipe *p, struct stream *to);

/* Puts a message between two others.  False: there is no room now. */
bool pipe_insert(struct pipe *p, const uint8_t *msg, size_t n);

static inline bool
pipe_has_room(const struct pipe *p)
{
    return p->have - p->sent < PIPE_SIZE;
}

static inline bool
pipe_is_waiting(const struct pipe *p)
{
    return p->sent < p->whole;
}

#endif
