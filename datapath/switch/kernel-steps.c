/* SPDX-License-Identifier: Apache-2.0 */
#include <switch/switch.h>

/* ------------------------------------------------------------------ steps */

static void
end(struct sw *sw, bool done)
{
    struct kernel_steps k = sw->steps;
    bool refused = !done && !k.reverting;
    sw->steps = (struct kernel_steps){.timer = k.timer};
    k.work->over(k.ctx, k.c, done, k.at, refused ? &k.e : NULL);
    channel_go_on(sw->channel);
}

static void
agreed(struct sw *sw)
{
    struct kernel_steps *k = &sw->steps;
    if (k->work->agreed(k->ctx, k->c)) {
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
    uint64_t until = loop_clock() + COMMIT_TURN_NS;
    do
        p = qos_commit_step(sw->qos, KERNEL_STEP, &k->at, &k->e);
    while (p == QOS_COMMIT_MORE && loop_clock() < until);
    if (p == QOS_COMMIT_MORE)
        loop_timer_set(k->timer, 0); /* the others' turn */
    else if (p == QOS_COMMIT_AGREED)
        agreed(sw);
    else
        end(sw, false);
}

/* ------------------------------------------------------------------ who waits */

static bool
multipart_waits(struct of_bytes frame)
{
    uint16_t type = frame.n >= 10 ? of_get16(frame.p + 8) : OFPMP_DESC;
    if (type != OFPMP_EXPERIMENTER || frame.n < 24)
        return type == OFPMP_QUEUE || type == OFPMP_TABLE_FEATURES;
    uint32_t exp_type = of_get32(frame.p + 20);
    return exp_type == OFP_QOS_EXP_DUMP || exp_type == OFP_EXP_QOS_PORTS;
}

static bool
experimenter_waits(struct of_bytes frame)
{
    if (frame.n < 16)
        return false;
    uint32_t experimenter = of_get32(frame.p + 8), exp_type = of_get32(frame.p + 12);
    if (experimenter == OFP_ONF_EXPERIMENTER) /* a bundle may be filled, but not committed */
        return exp_type == OFP_ONF_BUNDLE_CONTROL &&
               (frame.n < 24 || of_get16(frame.p + 20) == OFPBCT_COMMIT_REQUEST);
    return experimenter == OFP_OPENFLOW_EXPERIMENTER ||
           (experimenter == OFP_QOS_EXPERIMENTER && exp_type != OFP_EXP_RELAY &&
            exp_type != OFP_EXP_MONITOR);
}

bool
sw_kernel_steps_concern(struct of_bytes frame)
{
    switch (frame.p[1]) {
    case OFPT_SET_CONFIG:
    case OFPT_FLOW_MOD:
    case OFPT_GROUP_MOD:
    case OFPT_PORT_MOD:
    case OFPT_TABLE_MOD:
    case OFPT_METER_MOD:
    case OFPT_QUEUE_GET_CONFIG_REQUEST:
    case OFPT_QOS_QUEUEING_DISCIPLINE: return true;
    case OFPT_MULTIPART_REQUEST: return multipart_waits(frame);
    case OFPT_EXPERIMENTER: return experimenter_waits(frame);
    default: return false;
    }
}

bool
sw_kernel_steps_pass(struct of_bytes frame)
{
    uint8_t type = frame.p[1];
    return type == OFPT_ECHO_REQUEST || type == OFPT_ECHO_REPLY || type == OFPT_ERROR;
}

bool
sw_kernel_steps_allow(const struct sw *sw, const struct conn *c, struct of_bytes frame)
{
    if (!sw->steps.work)
        return true;
    return c == sw->steps.c ? sw_kernel_steps_pass(frame) : !sw_kernel_steps_concern(frame);
}

/* ------------------------------------------------------------------ beginning and end */

bool
sw_kernel_steps_needed(const struct sw *sw)
{
    return qos_planned(sw->qos) > KERNEL_STEP;
}

bool
sw_kernel_steps_under_way(const struct sw *sw)
{
    return sw->steps.work != NULL;
}

void
sw_kernel_steps_begin(struct sw *sw, struct conn *c, const struct kernel_work *work, void *ctx)
{
    sw->steps = (struct kernel_steps){.timer = sw->steps.timer, .work = work, .ctx = ctx, .c = c};
    loop_timer_set(sw->steps.timer, 0);
}

void
sw_kernel_steps_forget(struct sw *sw, const struct conn *c)
{
    if (sw->steps.c == c)
        sw->steps.c = NULL;
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
    k->work->over(k->ctx, NULL, false, 0, NULL);
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
