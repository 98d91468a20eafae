/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <qos/sched/delay.h>
#include <qos/sched/units.h>

#include <stdio.h>

#define FRAMES_LEAST   4    /* that a scheduler which measures needs */
#define FRAME_SHORTEST 60u  /* of Ethernet, as the kernel counts it */
#define TARGET_US      5000 /* CoDel's own (RFC 8289, 4.2) */
#define INTERVAL_US    100000

/* Bytes that the rate sends in this time. */
static uint64_t
sent_in(uint64_t rate, double us)
{
    double bytes = (double)rate / 8e6 * us;
    return bytes < (double)QOS_U32_MAX ? (uint64_t)bytes : QOS_U32_MAX;
}

/* How much may wait: three quarters of what the class sends in that time, as a queue is also as long as the frame
 * that is on its way, and HTB may be late. */
static uint64_t
bytes_within(uint64_t rate, uint64_t delay)
{
    return sent_in(rate, (double)delay * 3 / 4);
}

static uint32_t
frame_of(uint32_t mtu)
{
    return qos_env_frame(&(struct qos_env){.mtu = mtu});
}

bool
qos_delay_measurable(uint64_t rate, uint64_t delay, uint32_t mtu)
{
    return bytes_within(rate, delay) >= FRAMES_LEAST * (uint64_t)frame_of(mtu);
}

uint64_t
qos_delay_cut(uint64_t rate, uint64_t delay)
{
    double cut = (double)rate * (double)delay / 8000;
    return cut < (double)QOS_RATE_MAX ? (uint64_t)cut : QOS_RATE_MAX;
}

uint64_t
qos_delay_burst(uint64_t rate, uint64_t delay)
{
    return sent_in(rate, (double)delay / 4);
}

/* ------------------------------------------------------------------ of the switch's own scheduler */

/* DRR guarantees no rate: then the most that the class may get. */
static uint64_t
rate_of(const struct qos_env *env)
{
    return env->parent_rate ? env->parent_rate : env->parent_ceil;
}

uint64_t
qos_env_waits(const struct qos_env *env)
{
    uint64_t rate = rate_of(env), bytes = bytes_within(rate, env->delay);
    uint64_t least = qos_env_longest(env);
    return !env->delay || !rate ? 0 : bytes > least ? bytes : least;
}

/* A quarter of the delay is for what always waits, the rest for bursts; but CoDel drops for no reason where its target is
 * less than one frame takes. */
static uint64_t
target_of(uint64_t rate, uint64_t delay, uint32_t frame)
{
    uint64_t target = delay / 4 < TARGET_US ? delay / 4 : TARGET_US;
    uint64_t one = rate ? (uint64_t)((double)frame * 8e6 / (double)rate) : 0;
    one = one < delay / 2 ? one : delay / 2;
    return target > one ? target : one;
}

/* As CoDel's own: 20 times the target; a longer target, of a slow link, makes it longer by as much. */
static uint64_t
interval_of(uint64_t target)
{
    return target < TARGET_US ? 20 * target : INTERVAL_US - TARGET_US + target;
}

void
qos_default_codel(struct qos_values *v, const struct qos_env *env)
{
    uint64_t target =
        env->delay ? target_of(rate_of(env), env->delay, qos_env_frame(env)) : TARGET_US;
    qos_default(v, QOS_TARGET, target);
    qos_default(v, QOS_INTERVAL, env->delay ? interval_of(v->v[QOS_TARGET]) : INTERVAL_US);
}

/* The kernel counts 2,304 bytes of memory for a full frame of 1,514. */
uint64_t
qos_env_memory(const struct qos_env *env)
{
    uint64_t waits = qos_env_waits(env), least = FRAMES_LEAST * (uint64_t)qos_env_frame(env);
    return (waits > least ? waits : least) * 3 / 2;
}

/* ------------------------------------------------------------------ what can't be kept */

static double
ms_of(uint64_t bytes, uint64_t rate)
{
    return (double)bytes * 8e3 / (double)rate;
}

/* In kbit/s, rounded up. */
static uint64_t
rate_for(uint64_t bytes, uint64_t delay)
{
    return (bytes * 8000 / delay + 1) * 1000;
}

int
qos_delay_check(const struct qos_values *class, struct qos_error *e)
{
    uint64_t rate = class->v[QOS_RATE], delay = class->v[QOS_DELAY];
    char at[QOS_UNIT_TEXT], promised[QOS_UNIT_TEXT], enough[QOS_UNIT_TEXT];
    if (!rate || !delay || ms_of(FRAME_SHORTEST, rate) * 1e3 <= (double)delay)
        return 0;
    return qos_fail(
        e, QOS_BAD_PARAM,
        "a delay of %s cannot be kept at a rate of %s: the shortest frame, %u bytes, takes %.1f ms; "
        "it takes a rate of %s",
        qos_format_time(delay, promised), qos_format_rate(rate, at), FRAME_SHORTEST,
        ms_of(FRAME_SHORTEST, rate), qos_format_rate(rate_for(FRAME_SHORTEST, delay), enough));
}

/* ------------------------------------------------------------------ for people */

const char *
qos_delay_doubt(const struct qos_values *class, uint32_t mtu, char *buf, size_t n)
{
    uint64_t rate = class->v[QOS_RATE], delay = class->v[QOS_DELAY], frame = frame_of(mtu);
    char at[QOS_UNIT_TEXT], promised[QOS_UNIT_TEXT], enough[QOS_UNIT_TEXT];
    *buf = '\0';
    if (!rate || !delay || ms_of(frame, rate) * 1e3 <= (double)delay)
        return buf;
    snprintf(
        buf, n,
        "one frame of %u bytes takes %.1f ms at the class's rate of %s: while others are busy it can't "
        "keep a delay of %s, which takes a rate of %s",
        (unsigned)frame, ms_of(frame, rate), qos_format_rate(rate, at),
        qos_format_time(delay, promised), qos_format_rate(rate_for(frame, delay), enough));
    return buf;
}

const char *
qos_delay_print(const struct qos_values *class, uint32_t mtu, char *buf, size_t n)
{
    uint64_t rate = class->v[QOS_RATE], delay = class->v[QOS_DELAY];
    uint64_t ceil = qos_or(class, QOS_CEIL, rate), cut = qos_delay_cut(rate, delay);
    const struct qos_env env = {
        .mtu = mtu, .parent_rate = rate, .parent_ceil = ceil, .delay = (uint32_t)delay};
    char target[QOS_UNIT_TEXT], interval[QOS_UNIT_TEXT];
    struct qos_values v = {0};
    int at = 0;
    *buf = '\0';
    if (!delay || !rate)
        return buf;
    if (qos_delay_measurable(rate, delay, mtu)) {
        qos_default_codel(&v, &env);
        qos_append(buf, n, &at, "fq_codel target=%s,interval=%s,memory_limit=%llub, or ",
                   qos_format_time(v.v[QOS_TARGET], target),
                   qos_format_time(v.v[QOS_INTERVAL], interval),
                   (unsigned long long)qos_env_memory(&env));
    }
    cut = cut < ceil ? cut : ceil;
    qos_append(buf, n, &at, "bfifo limit=%llub; super-packets above %llu bytes are cut",
               (unsigned long long)qos_env_waits(&env), (unsigned long long)cut / 8000);
    return buf;
}
