/* SPDX-License-Identifier: Apache-2.0 */
/* What a slice (docs/slices.md) may ask for: one row a message, in slice.c alone. */
#ifndef HANDLERS_SLICE_H
#define HANDLERS_SLICE_H

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

/* Whether the request, or a message in a bundle, lies within the slice.  0, or an error; e->err is the
 * same, with the right that is missing in e->text.  Counted and logged. */
int sw_slice_check(struct sw *sw, struct conn *c, const struct of_msg *m, struct qos_error *e);

/* The same of a message of a bundle that commits; c NULL: its connection has gone. */
int sw_slice_check_for(struct sw *sw, struct slice *s, struct conn *c, const struct of_msg *m,
                       struct qos_error *e);

/* After the request was planned (qos_execute): what the class is below, and whether rates fit. */
int sw_slice_check_planned(struct sw *sw, struct slice *s, const struct qos_request *r,
                           struct qos_error *e);

/* Answers what sw_slice_check has refused.  -> the error that is still to be sent; 0: none. */
int sw_slice_refuse(struct conn *c, const struct of_msg *m, const struct qos_error *e);

/* Whether statistics tell it of the flow. */
bool sw_slice_sees_flow(const struct sw *sw, const struct slice *s, const struct flow *f);

#endif
