/* SPDX-License-Identifier: Apache-2.0 */
/* What the switch does with its controllers' requests: the functions that the channel calls. */
#ifndef REQUESTS_HANDLERS_H
#define REQUESTS_HANDLERS_H

#include <control/bundle.h>
#include <control/channel.h>

struct sw;

/* struct channel_ops: who may send a request, whether it may be handled now, or waits for the end of a task, or is one
 * itself, and handling it. */
enum access sw_request_access(void *sw, struct of_bytes frame);
bool sw_request_allowed(void *sw, struct conn *c, struct of_bytes frame);
bool sw_request_blocks(void *sw, struct of_bytes frame);
int sw_request_later(void *sw, struct of_bytes frame, struct deferred_copy *r);
int sw_handle_message(void *sw, struct conn *c, const struct of_msg *m);

/* Checking and committing bundles. */
extern const struct bundle_ops sw_bundle_ops;

/* Replies about queues that several connections share. */
int sw_queue_replies_init(struct sw *sw);
void sw_queue_replies_free(struct sw *sw); /* before the channel is freed */

/* Slices (docs/how-to/slices.md).  _tie gives a connection the one that is its; _see is struct channel_ops'.
 * _set exchanges all of them, takes the new ones, and ties all connections again. */
struct slices;
void sw_slices_tie(struct sw *sw, struct conn *c);
void sw_slices_untie(struct conn *c);
bool sw_slices_see(struct sw *sw, struct conn *c, struct of_bytes message);
void sw_slices_set(struct sw *sw, struct slices *new);

/* Asks once, at the start, which schedulers the kernel has. */
void sw_kernel_ask(struct sw *sw);

#endif
