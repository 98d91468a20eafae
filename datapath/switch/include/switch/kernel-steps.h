/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's part of a commit, or of a port's new interface, speed or MTU, over as many turns of the
 * loop as it takes: on a port with thousands of queues the kernel needs milliseconds for each.  One at
 * a time; it is planned already (qos_begin, qos_execute; qos_port_plan).
 *
 * Until it is over, the queues' model is neither before nor after it.  So who asks for queues or wants
 * to change anything waits (sw_kernel_steps_allow), and so does news of interfaces; the connection whose
 * commit it is gets answers to echo requests only, as its requests keep their order. */
#ifndef SWITCH_KERNEL_STEPS_H
#define SWITCH_KERNEL_STEPS_H

#include <control/channel.h>

#include <qos/model/model.h>

struct sw;

/* More operations than this are not for one turn. */
#define KERNEL_STEP    16
#define COMMIT_TURN_NS 10000000 /* the others' turn comes then; one step is done anyway */

struct kernel_work {
    /* The kernel has agreed.  False: what else had to be done has failed, and the peer has been told;
     * what the kernel did is taken back. */
    bool (*agreed)(void *ctx, struct conn *c);
    /* All is over, and ctx is the callee's to free.  e: why the kernel refused; NULL: it did not.  c:
     * whose it was; NULL: gone. */
    void (*over)(void *ctx, struct conn *c, bool done, unsigned at, const struct qos_error *e);
    /* Where the switch ends and leaves the queues, it is carried out to its end rather than taken back. */
    bool onward;
};

struct kernel_steps {
    struct loop_timer *timer;
    const struct kernel_work *work; /* NULL: none is under way */
    void *ctx;
    struct conn *c; /* NULL: gone */
    bool reverting;
    unsigned at;
    struct qos_error e;
};

int sw_kernel_steps_init(struct sw *sw);
void sw_kernel_steps_free(struct sw *sw);

/* Whether what is planned is more than one turn's work. */
bool sw_kernel_steps_needed(const struct sw *sw);

/* Begins; the caller returns to the loop.  c: whose it is; NULL: nobody's. */
void sw_kernel_steps_begin(struct sw *sw, struct conn *c, const struct kernel_work *work,
                           void *ctx);

bool sw_kernel_steps_under_way(const struct sw *sw);

/* What is answered on the connection whose commit it is, too. */
bool sw_kernel_steps_pass(struct of_bytes frame);

/* Whether a request asks for queues or wants to change anything. */
bool sw_kernel_steps_concern(struct of_bytes frame);

/* Whether this request may be handled now. */
bool sw_kernel_steps_allow(const struct sw *sw, const struct conn *c, struct of_bytes frame);

/* The connection goes; the work goes on. */
void sw_kernel_steps_forget(struct sw *sw, const struct conn *c);

/* The switch ends: what is under way is taken back or carried out at once, or (the queues will be
 * cleared) left. */
void sw_kernel_steps_stop(struct sw *sw);

#endif
