/* SPDX-License-Identifier: Apache-2.0 */
/* What a slice (docs/slices.md) may ask for: one row for each message, in slice.c alone. */
#ifndef REQUESTS_SLICE_H
#define REQUESTS_SLICE_H

#include <slice/slice.h>
#include <switch/switch.h>

/* NULL: it may do everything. */
static inline struct slice *
sw_slice_of(struct conn *c)
{
    return c ? conn_own(c)->slice : NULL;
}

/* The entries of a dump, as far as the slice sees them. */
struct sliced_dump {
    const struct slice *slice;
    struct of_wr w;
};

/* Checks whether the request, or a message in a bundle, lies within the slice.  0, or an error,
 * which is counted and logged; e->err is the same error, and e->text names the right that is
 * missing. */
int sw_slice_check(struct sw *sw, struct conn *c, const struct of_msg *m, struct qos_error *e);

/* The same for a message of a bundle that is being committed; c NULL: its connection has gone. */
int sw_slice_check_for(struct sw *sw, struct slice *s, struct conn *c, const struct of_msg *m,
                       struct qos_error *e);

/* Before the request is planned: whether the classes that go with the one that it deletes are the slice's, too. */
int sw_slice_check_below(struct sw *sw, struct slice *s, const struct qos_request *r,
                         struct qos_error *e);

/* After the request was planned (qos_execute): what the class is below, and whether rates fit. */
int sw_slice_check_planned(struct sw *sw, struct slice *s, const struct qos_request *r,
                           struct qos_error *e);

/* Answers a request that sw_slice_check has refused.  -> the error that is still to be sent; 0:
 * none. */
int sw_slice_refuse(struct conn *c, const struct of_msg *m, const struct qos_error *e);

/* whether the slice's statistics include the flow */
bool sw_slice_sees_flow(const struct sw *sw, const struct slice *s, const struct flow *f);

#endif
