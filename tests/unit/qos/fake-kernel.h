/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of qdiscs and classes in memory, which can be made to fail. */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <qos/kernel/kernel.h>

#define FAKE_SHAPERS 100

struct fake_kernel {
    struct qos_kernel base;
    struct fake_object {
        int ifindex;
        struct qos_object o;
    } * v;
    size_t n, cap;
    int fail_in;       /* how many operations succeed before one fails; -1: none fails */
    int fail_errno;    /* 0: EINVAL */
    unsigned n_ops;    /* operations tried */
    bool goes_on;      /* after a failure, as netlink does with what was sent at once */
    const char *lacks; /* the one kind that it has not; NULL: it has all */
    bool no_shapers;
    int find_errno;            /* of looking for a shaper; 0: none */
    bool shaper[FAKE_SHAPERS]; /* by ifindex */
};

void fake_init(struct fake_kernel *k);
void fake_free(struct fake_kernel *k);

/* All objects as text in a fixed order, for comparison; the caller frees it. */
char *fake_text(const struct fake_kernel *k);

/* NULL: not there. */
const struct qos_object *fake_class(const struct fake_kernel *k, int ifindex, uint32_t id);
const struct qos_object *fake_class_of(const struct fake_kernel *k, int ifindex, uint32_t handle);
const struct qos_object *fake_qdisc(const struct fake_kernel *k, int ifindex, uint32_t parent);

/* Removes all that the interface has. */
void fake_forget(struct fake_kernel *k, int ifindex);

/* Puts somebody else's qdisc at the root. */
void fake_foreign_root(struct fake_kernel *k, int ifindex, uint32_t handle, const char *kind);

#endif
