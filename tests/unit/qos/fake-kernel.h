/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of qdiscs and classes in memory, which can be told to fail. */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <qos/model/kernel.h>

#define FAKE_SHAPERS 100

struct fake_kernel {
    struct qos_kernel base;
    struct fake_object {
        int ifindex;
        struct qos_object o;
    } * v;
    size_t n, cap;
    int fail_in;    /* the operation that many from now fails (0: the next); -1: none does */
    int fail_errno; /* 0: EINVAL */
    unsigned n_ops; /* operations tried */
    bool goes_on;   /* after one that fails, as netlink does with what was sent at once */
    bool no_shapers;
    bool shaper[FAKE_SHAPERS]; /* by ifindex */
};

void fake_init(struct fake_kernel *k);
void fake_free(struct fake_kernel *k);

/* What is there, as text in a fixed order, to compare; the caller frees it. */
char *fake_text(const struct fake_kernel *k);

/* NULL: not there. */
const struct qos_object *fake_class(const struct fake_kernel *k, int ifindex, uint32_t id);
const struct qos_object *fake_qdisc(const struct fake_kernel *k, int ifindex, uint32_t parent);

/* What the interface has is gone. */
void fake_forget(struct fake_kernel *k, int ifindex);

/* Somebody else's qdisc at the root. */
void fake_foreign_root(struct fake_kernel *k, int ifindex, uint32_t handle, const char *kind);

#endif
