/* SPDX-License-Identifier: Apache-2.0 */
/* A plan for the kernel that is carried out over many turns of the loop: of a commit, or for a
 * port's new interface, speed or MTU.  On a port with thousands of queues one operation takes the
 * kernel milliseconds.  One plan at a time; it is made already (qos_begin, qos_execute;
 * qos_port_plan).
 *
 * Until its end the model of the queues is neither the old nor the new one, so requests and events
 * that need it wait (sw_commit_under_way; requests/admission.c). */
#ifndef QUEUES_KERNEL_STEPS_H
#define QUEUES_KERNEL_STEPS_H

#include <control/channel.h>

#include <qos/model/model.h>

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

int sw_kernel_steps_init(struct sw *sw);
void sw_kernel_steps_free(struct sw *sw);

/* Whether the plan is too long for one turn. */
bool sw_kernel_steps_needed(const struct sw *sw);

/* Begins; the caller returns to the loop. */
void sw_kernel_steps_begin(struct sw *sw, const struct kernel_work *work, void *ctx);

/* The switch ends: reverts the plan or completes it at once, or drops it if the queues will be
 * cleared anyway. */
void sw_kernel_steps_stop(struct sw *sw);

#endif
