/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and the switch's answers.  Every function reports on stderr what went wrong; replies are
 * in the arena. */
#ifndef DPCTL_CORE_ASK_H
#define DPCTL_CORE_ASK_H

#include <core/context.h>

/* Sends a message without waiting; its xid is then c->remote.xid. */
enum status ask_send(struct ctx *c, uint8_t type, const void *body);

/* Sends a message and waits for its reply, of any type. */
enum status ask_message(struct ctx *c, uint8_t type, const void *body, struct of_msg *reply);

/* Waits for the reply to c->remote.xid, or an error for a request from `first` on. */
enum status ask_wait(struct ctx *c, uint32_t first, struct of_msg *reply);

/* OFPT_QUEUE_GET_CONFIG_REQUEST; several replies become one. */
enum status ask_queue_config(struct ctx *c, const void *body, struct of_msg *reply);

/* A multipart request; the parts of the reply become one. */
enum status ask_multipart(struct ctx *c, uint16_t mp, const void *body, struct of_msg *reply);

/* A multipart request whose reply is a list.  body NULL: ask_all. */
enum status ask_list(struct ctx *c, uint16_t mp, const void *body, struct of_list *list);

/* The body of a multipart request for all that there is; NULL: that is an empty one. */
const void *ask_all(uint16_t mp);

/* Only sends it; the parts of the reply have c->remote.xid. */
enum status ask_multipart_send(struct ctx *c, uint16_t mp, const void *body);

/* A multipart request of ofqos's own (docs/reference/extensions.md); the reply is what follows exp_type. */
enum status ask_experimenter(struct ctx *c, uint32_t exp_type, struct of_bytes request,
                             struct of_bytes *reply);

/* The same, where the caller does without: other switches, and older ones, have no such request.  False: no answer, of
 * which nothing is said. */
bool ask_experimenter_if_known(struct ctx *c, uint32_t exp_type, struct of_bytes request,
                               struct of_bytes *reply);

/* STATUS of ofqos: lines "KEY=VALUE" of printable characters, with a newline between two. */
enum status ask_status(struct ctx *c, char **lines);
/* The same, where the caller does without: other switches have no such request.  False: no answer, of which
 * nothing is said. */
bool ask_status_if_known(struct ctx *c, char **lines);

#endif
