/* SPDX-License-Identifier: Apache-2.0 */
/* Multipart replies of any size, sent as the peer reads them. */
#ifndef CONTROL_CONN_DUMP_H
#define CONTROL_CONN_DUMP_H

#include <control/channel.h>

#define DUMP_CUT 60000u /* a reply is cut into messages of about so many bytes */
/* A dump fills the buffer up to this, then sends.  One message more still fits into
 * CONN_OUT_FLOOR, a power of two as all buffers are. */
#define DUMP_CHUNK       (192u << 10)
#define ENCODED_MAX      (64u << 20) /* replies that are encoded as a whole, of all connections */
#define ENCODED_STUCK_NS UINT64_C(10000000000)

struct conn_dump {
    struct conn *c;
    conn_dump_step step; /* NULL: none is under way */
    void (*done)(void *);
    void *ctx;
    uint32_t xid;
    const struct of_mp_row *mp; /* NULL: OFPT_QUEUE_GET_CONFIG_REPLY, of this port */
    uint32_t port;
    size_t head;    /* bytes before the first element */
    struct of_wr w; /* the message being filled, header included */
};

void conn_dump_run(struct conn *c); /* as far as there is room */

#endif
