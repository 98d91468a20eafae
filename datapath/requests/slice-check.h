/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a request lies within its connection's slice. */
#ifndef REQUESTS_SLICE_CHECK_H
#define REQUESTS_SLICE_CHECK_H

#include <switch/switch.h>

struct slice;

/* Checks whether the request, or a message in a bundle, lies within the slice.  0, or an error,
 * which is counted and logged; e->err is the same error, and e->text names the right that is
 * missing. */
int sw_slice_check(struct sw *sw, struct conn *c, const struct of_msg *m, struct qos_error *e);

/* The same for a message of a bundle that is being committed; c NULL: its connection has gone. */
int sw_slice_check_for(struct sw *sw, struct slice *s, struct conn *c, const struct of_msg *m,
                       struct qos_error *e);

#endif
