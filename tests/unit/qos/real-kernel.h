/* SPDX-License-Identifier: Apache-2.0 */
/* The real kernel: in a network namespace of its own, with an interface made by rtnetlink, d1, which is port 1. */
#ifndef QOS_REAL_KERNEL_H
#define QOS_REAL_KERNEL_H

#include "run.h"
#include "test.h"

#include <qos-netlink/kernel.h>
#include <qos-netlink/link.h>

extern struct qos_kernel *kernel;
extern struct qos_link *links;
extern struct qos_link_info link1; /* d1 */

/* What main returns at once; 0: the tests can run.  They need root. */
int real_kernel_begin(void);

/* Negative: libnl's error. */
int make_link(const char *name, const char *kind);

int setup(void **state);
int teardown(void **state);

#define OK(sched, args)                                                                            \
    do {                                                                                           \
        if (run(sched, args))                                                                      \
            fail_msg("%s %s: %x errno %d %s", sched, args, err.err, err.errnum, err.text);         \
    } while (0)

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
