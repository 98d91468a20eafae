/* SPDX-License-Identifier: Apache-2.0 */
#include <queues/kernel-plan.h>
#include <switch/switch.h>

#define AT_ONCE 16 /* operations; a longer plan is carried out over several turns */

static enum task_progress
run(void *ctx, uint64_t deadline)
{
    struct kernel_plan *k = ctx;
    struct qos *qos = k->sw->qos;
    enum qos_progress p;
    do
        p = qos_commit_step(qos, AT_ONCE, &k->at, &k->e);
    while (p == QOS_COMMIT_MORE && loop_clock() < deadline);
    if (p == QOS_COMMIT_MORE)
        return TASK_MORE;
    k->done = p == QOS_COMMIT_AGREED && k->work->agreed(k->ctx);
    if (k->done) {
        qos_commit_end(qos);
    } else if (p == QOS_COMMIT_AGREED) {
        k->reverting = true;
        qos_commit_revert(qos);
        return TASK_MORE;
    }
    return TASK_OVER;
}

static void
end(void *ctx)
{
    struct kernel_plan k = *(struct kernel_plan *)ctx; /* which is free now */
    k.work->over(k.ctx, k.done, k.at, k.done || k.reverting ? NULL : &k.e);
}

/* Reverts the plan or completes it at once, or drops it if the queues will be cleared anyway. */
static void
stop(void *ctx)
{
    struct kernel_plan *k = ctx;
    struct qos *qos = k->sw->qos;
    enum qos_progress p = QOS_COMMIT_AGREED;
    if (k->sw->opt.qos_keep || k->sw->opt.n_wires) {
        if (!k->work->onward)
            qos_commit_revert(qos);
        do
            p = qos_commit_step(qos, AT_ONCE, &k->at, &k->e);
        while (p == QOS_COMMIT_MORE);
    }
    if (p == QOS_COMMIT_AGREED)
        qos_commit_end(qos);
    k->work->over(k->ctx, false, 0, NULL);
}

bool
sw_kernel_plan_is_long(const struct sw *sw)
{
    return qos_planned(sw->qos) > AT_ONCE;
}

void
sw_kernel_plan_begin(struct sw *sw, struct kernel_plan *k, const struct kernel_work *work,
                     void *ctx)
{
    static const struct task_kind kind = {
        .needs = QUEUES, .locks = QUEUES, .blocks = true, .run = run, .end = end, .stop = stop};
    *k = (struct kernel_plan){.sw = sw, .work = work, .ctx = ctx};
    task_begin(sw->tasks, &k->task, &kind, k);
}
