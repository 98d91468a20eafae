/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of a state: requests that make them where there are none (oflib/state.h). */
#ifndef REQUESTS_STATE_QUEUES_H
#define REQUESTS_STATE_QUEUES_H

#include <oflib/wire.h>

struct qos_request;
struct sw;

/* Appends a message for each request; false: out of memory.  A root class that only follows the
 * link's speed needs no request. */
bool sw_state_queues(struct sw *sw, struct of_wr *w);

/* Makes the queues of all ports those that the ADD requests ask for, in one transaction with the
 * kernel.  0, or an error and a sentence in `why`. */
int sw_state_set_queues(struct sw *sw, const struct qos_request *want, size_t n, char *why,
                        size_t why_len);

#endif
