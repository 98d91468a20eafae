/* SPDX-License-Identifier: Apache-2.0 */
/* The messages that make the switch's state, one after the other (oflib/state.h). */
#ifndef REQUESTS_STATE_DUMP_H
#define REQUESTS_STATE_DUMP_H

#include <oflib/wire.h>

struct sw;
struct state_dump;

/* Lists what there is.  What goes away before its message is made is left out.  0 or -ENOMEM. */
int sw_state_dump_new(struct sw *sw, struct state_dump **out);
void sw_state_dump_free(struct state_dump *d);

/* Appends the next message to w; false: there are no more. */
bool sw_state_dump_next(struct state_dump *d, struct of_wr *w);

#endif
