/* SPDX-License-Identifier: Apache-2.0 */
/* A plan for the kernel that is carried out as a task (task/task.h): of a commit, or for a port's new interface, speed or
 * MTU.  On a port with thousands of queues one operation takes the kernel milliseconds.  One plan at a time; it is made
 * already (qos_begin, qos_execute; qos_port_plan).
 *
 * Until its end the model of the queues is neither the old nor the new one, so it is locked.  If the switch ends before,
 * the plan is reverted, completed or dropped, and over is called without an error. */
#ifndef QUEUES_KERNEL_PLAN_H
#define QUEUES_KERNEL_PLAN_H

#include <qos/model/model.h>
#include <task/task.h>

struct sw;

struct kernel_work {
    /* The kernel has carried out the plan.  Returns false if what else had to be done has failed,
     * and the peer has been answered: the kernel's part is then reverted. */
    bool (*agreed)(void *ctx);
    /* The end; frees ctx.  e: why the kernel refused operation `at`, or NULL. */
    void (*over)(void *ctx, bool done, unsigned at, const struct qos_error *e);
    /* If the switch ends and leaves its queues in the kernel: complete the plan instead of
     * reverting. */
    bool onward;
};

/* A part of whatever ctx is. */
struct kernel_plan {
    struct task task;
    struct sw *sw;
    const struct kernel_work *work;
    void *ctx;
    bool done, reverting;
    unsigned at;
    struct qos_error e;
};

/* Whether the plan is too long for one turn. */
bool sw_kernel_plan_is_long(const struct sw *sw);

/* Begins; the caller returns to the loop. */
void sw_kernel_plan_begin(struct sw *sw, struct kernel_plan *k, const struct kernel_work *work,
                          void *ctx);

#endif
