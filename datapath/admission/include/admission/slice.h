/* SPDX-License-Identifier: Apache-2.0 */
/* What a slice (docs/how-to/slices.md) may do and see.  Rows (request.h) say what a request needs of a slice: READ or WRITE
 * access, and a function that checks what it names.  A row without one is beyond every slice, so a new request stays
 * closed until somebody opens it there. */
#ifndef ADMISSION_SLICE_H
#define ADMISSION_SLICE_H

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

/* What a row's function checks, and where it says why not. */
struct slice_request {
    struct sw *sw;
    const struct slice *slice;
    const struct of_msg *m;
    struct qos_error *e;
};

/* 0, or slice_deny: the error to answer with. */
typedef int slice_right(const struct slice_request *q);

slice_right slice_anything; /* what is the same for everybody, or is left out of the reply */

/* The sentence names the right that is missing. */
#define slice_deny(q, err, ...) qos_fail((q)->e, err, __VA_ARGS__)
int slice_deny_port(const struct slice_request *q, int err, uint32_t no);

#define SLICE_PERM QOS_ERR(OFPSFC_PERM)

/* Whether a QoS request is the slice's as far as it shows itself; the next two check the rest. */
int sw_slice_check_request(const struct slice_request *a, const struct qos_request *r);

/* Before the request is planned: whether the classes that go with the one that it deletes are the slice's, too. */
int sw_slice_check_below(struct sw *sw, struct slice *s, const struct qos_request *r,
                         struct qos_error *e);

/* After the request was planned (qos_execute): what the class is below, and whether rates fit. */
int sw_slice_check_planned(struct sw *sw, struct slice *s, const struct qos_request *r,
                           struct qos_error *e);

#endif
