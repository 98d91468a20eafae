/* SPDX-License-Identifier: Apache-2.0 */
#include <queues/kernel-steps.h>
#include <switch/switch.h>

/* A longer plan is carried out over several turns. */
#define KERNEL_STEP 16

/* ------------------------------------------------------------------ steps */

static void
end(struct sw *sw, bool done)
{
    struct kernel_steps k = sw->steps;
    bool refused = !done && !k.reverting;
    sw->steps = (struct kernel_steps){.timer = k.timer};
    k.work->over(k.ctx, done, k.at, refused ? &k.e : NULL);
    channel_go_on(sw->channel);
}

static void
agreed(struct sw *sw)
{
    struct kernel_steps *k = &sw->steps;
    if (k->work->agreed(k->ctx)) {
        qos_commit_end(sw->qos);
        end(sw, true);
        return;
    }
    k->reverting = true;
    qos_commit_revert(sw->qos);
    loop_timer_set(k->timer, 0);
}

static void
on_timer(void *ctx)
{
    struct sw *sw = ctx;
    struct kernel_steps *k = &sw->steps;
    enum qos_progress p;
    uint64_t until = loop_clock() + TASK_TURN_NS;
    do
        p = qos_commit_step(sw->qos, KERNEL_STEP, &k->at, &k->e);
    while (p == QOS_COMMIT_MORE && loop_clock() < until);
    if (p == QOS_COMMIT_MORE)
        loop_timer_set(k->timer, 0); /* after other requests */
    else if (p == QOS_COMMIT_AGREED)
        agreed(sw);
    else
        end(sw, false);
}

/* ------------------------------------------------------------------ beginning and end */

bool
sw_kernel_steps_needed(const struct sw *sw)
{
    return qos_planned(sw->qos) > KERNEL_STEP;
}

void
sw_kernel_steps_begin(struct sw *sw, const struct kernel_work *work, void *ctx)
{
    sw->steps = (struct kernel_steps){.timer = sw->steps.timer, .work = work, .ctx = ctx};
    loop_timer_set(sw->steps.timer, 0);
}

void
sw_kernel_steps_stop(struct sw *sw)
{
    struct kernel_steps *k = &sw->steps;
    if (!k->work)
        return;
    enum qos_progress p = QOS_COMMIT_AGREED;
    if (sw->opt.qos_keep) {
        if (!k->work->onward)
            qos_commit_revert(sw->qos);
        do
            p = qos_commit_step(sw->qos, KERNEL_STEP, &k->at, &k->e);
        while (p == QOS_COMMIT_MORE);
    }
    if (p == QOS_COMMIT_AGREED)
        qos_commit_end(sw->qos);
    k->work->over(k->ctx, false, 0, NULL);
    k->work = NULL;
}

int
sw_kernel_steps_init(struct sw *sw)
{
    return loop_timer_new(sw->loop, on_timer, sw, &sw->steps.timer);
}

void
sw_kernel_steps_free(struct sw *sw)
{
    if (sw->steps.timer)
        loop_timer_free(sw->steps.timer);
}
