/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel: OpenFlow connections of the control thread, passive and active.
 *
 * A connection does framing, the hello handshake, decode, generic checks and error replies; what a
 * message does is the business of handler rows (handler.h).  Everything runs in one thread, over
 * one epoll descriptor (loop.h).
 *
 * Quotas: what a connection has waiting to be sent is bounded (CONN_OUT_MAX): while it is above
 * the mark, its requests are not read; asynchronous messages are dropped and counted.  A peer that
 * does not read never stops the switch or eats its memory.
 */
#ifndef DATAPATH_CHANNEL_H
#define DATAPATH_CHANNEL_H

#include "loop.h"

#include <oflib/codec.h>

#include <stdbool.h>

struct channel; /* all connections and listeners */
struct conn;

/* Which handler rows, and what is told to the switch. */
struct channel_ops {
    /* One request, decoded and allowed for the connection's role.  Replies with conn_reply*; the
     * returned value is answered with an error message (>0) or closes the connection (<0). */
    int (*handle)(void *ctx, struct conn *c, const struct of_msg *m);
    void (*connected)(void *ctx, struct conn *c);    /* after the hello exchange */
    void (*disconnected)(void *ctx, struct conn *c); /* c is about to go away */
};

int channel_new(struct channel **out, struct loop *loop, const struct channel_ops *ops, void *ctx);
void channel_free(struct channel *ch);

/* punix:PATH, ptcp:[PORT][:IP], unix:PATH, tcp:HOST[:PORT].  -EINVAL etc. with a sentence. */
int channel_add(struct channel *ch, const char *target, char *why, size_t why_len);

/* ------------------------------------------------------------------ replies */

/* Queue an encoded reply to the request being handled (its xid). */
int conn_reply(struct conn *c, uint8_t type, const struct of_msg *request, const void *body);
int conn_error(struct conn *c, const struct of_msg *request, int err);
/* An error with data of our own (QoS): exp: as OFPET_EXPERIMENTER. */
int conn_error_data(struct conn *c, const struct of_msg *request, uint16_t type, uint16_t code,
                    struct of_bytes data);

/* Multipart replies that may be larger than one message, or than what the peer reads at once:
 * entries are appended one at a time and cut into messages with OFPMPF_REPLY_MORE.
 *
 * `step` is called whenever there is room; it appends one or more entries by dump_add and returns
 * true while there are more.  `done` frees ctx (also when the connection goes away first). */
struct dump;
typedef bool (*dump_step)(struct dump *d, void *ctx);
int conn_dump(struct conn *c, const struct of_msg *request, dump_step step, void (*done)(void *),
              void *ctx);
/* One element of the reply's list (row: the element's list), or bytes already encoded. */
int dump_add(struct dump *d, const struct of_list_row *row, void *element);
int dump_add_bytes(struct dump *d, struct of_bytes bytes);

/* ------------------------------------------------------------------ asynchronous messages */

enum async_kind { ASYNC_PACKET_IN, ASYNC_PORT_STATUS, ASYNC_FLOW_REMOVED };

/* To every connection whose role and masks want this reason; encoded once. */
void channel_async(struct channel *ch, enum async_kind kind, uint8_t reason, uint8_t type,
                   const void *body);

/* ------------------------------------------------------------------ a connection's state */

struct conn_state {
    uint32_t role; /* OFPCR_ROLE_ */
    uint16_t miss_send_len;
    struct of_async async;
};
struct conn_state *conn_state(struct conn *c);
const char *conn_peer(const struct conn *c);
bool conn_is_controller(const struct conn *c); /* gets asynchronous messages at all */

/* Role request (6.3.4 in 1.3.5): demotes the other masters; OFPRRFC_ errors. */
int conn_set_role(struct conn *c, uint32_t role, uint64_t generation_id);
bool channel_generation(const struct channel *ch, uint64_t *out);

#endif
