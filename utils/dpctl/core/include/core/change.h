/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that change the switch: sent one by one, or collected and sent as one bundle (ONF
 * EXT-230), which the switch carries out as a whole or not at all. */
#ifndef DPCTL_CORE_CHANGE_H
#define DPCTL_CORE_CHANGE_H

#include <core/context.h>

/* Sends a message that has no reply, with a barrier behind it, so that a refusal is known.  Between
 * change_begin() and change_commit() the message is collected instead. */
enum status change_send(struct ctx *c, uint8_t type, const void *body);

/* A refusal is reported with the c->where at which its message was collected; c->where must be the
 * caller's own again before the commit.  After the commit, whatever it returns, nothing is left;
 * change_drop() forgets what was collected. */
enum status change_begin(struct ctx *c);
enum status change_commit(struct ctx *c);
void change_drop(struct ctx *c);

/* The messages collected so far; *at starts as 0. */
bool change_next(const struct ctx *c, size_t *at, struct of_bytes *message);

#endif
