/* SPDX-License-Identifier: Apache-2.0 */
#include "fill.h"

#include <linux/pkt_sched.h>
#include <string.h>

void
netlink_fill_rate(struct tc_ratespec *to, uint64_t bits_per_s, const struct qos_values *v)
{
    uint64_t bytes = bits_per_s / 8;
    memset(to, 0, sizeof *to);
    /* Named, so that the kernel needs no table. */
    to->linklayer = v->v[QOS_LINKLAYER] == QOS_ATM ? TC_LINKLAYER_ATM : TC_LINKLAYER_ETHERNET;
    to->overhead = (unsigned short)v->v[QOS_OVERHEAD];
    to->mpu = (unsigned short)v->v[QOS_MPU];
    to->rate = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
}

void
netlink_read_link(const struct tc_ratespec *rate, struct qos_values *v)
{
    bool atm = (rate->linklayer & TC_LINKLAYER_MASK) == TC_LINKLAYER_ATM;
    qos_put(v, QOS_OVERHEAD, rate->overhead);
    qos_put(v, QOS_MPU, rate->mpu);
    qos_put(v, QOS_LINKLAYER, atm ? QOS_ATM : QOS_ETHERNET);
}

/* An ATM cell, and what of it carries data. */
#define CELL    53
#define PAYLOAD 48

uint64_t
netlink_link_size(const struct qos_values *v, uint64_t bytes)
{
    bytes += v->v[QOS_OVERHEAD];
    bytes = bytes < v->v[QOS_MPU] ? v->v[QOS_MPU] : bytes;
    return v->v[QOS_LINKLAYER] == QOS_ATM ? (bytes + PAYLOAD - 1) / PAYLOAD * CELL : bytes;
}

uint64_t
netlink_link_room(const struct qos_values *v, uint64_t bytes)
{
    if (v->v[QOS_LINKLAYER] == QOS_ATM)
        bytes = bytes / CELL * PAYLOAD;
    return bytes < v->v[QOS_OVERHEAD] ? 0 : bytes - v->v[QOS_OVERHEAD];
}

int
netlink_fill_rate64(struct nl_msg *msg, int attr, uint64_t bits_per_s)
{
    uint64_t bytes = bits_per_s / 8;
    return bytes < UINT32_MAX ? 0 : nla_put_u64(msg, attr, bytes);
}

bool
netlink_read_attr(const struct nlattr *options, int attr, void *to, int size)
{
    const struct nlattr *a = nla_find(nla_data(options), nla_len(options), attr);
    if (!a || nla_len(a) < size)
        return false;
    memcpy(to, nla_data(a), (size_t)size);
    return true;
}

uint64_t
netlink_read_rate(const struct tc_ratespec *rate, const struct nlattr *options, int rate64)
{
    uint64_t bytes;
    return 8 * (netlink_read_attr(options, rate64, &bytes, sizeof bytes) ? bytes : rate->rate);
}

uint32_t
netlink_fill_ticks(uint64_t bytes, uint64_t bits_per_s)
{
    uint64_t per_s = 1000000000u / QOS_TICK_NS, rate = bits_per_s / 8;
    if (!rate)
        return UINT32_MAX;
    uint64_t ticks = (bytes * per_s + rate - 1) / rate;
    return ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}

uint64_t
netlink_read_ticks(uint32_t ticks, uint64_t bits_per_s, bool cut)
{
    const uint64_t per_s = 1000000000u / QOS_TICK_NS; /* no remainder, and below 2^24 */
    uint64_t rate = bits_per_s / 8, whole, sum;
    /* ticks * rate / per_s, in parts: the product alone has up to 93 bits */
    uint64_t part = ticks * (rate % per_s) + (cut ? per_s - 1 : 0);
    if (__builtin_mul_overflow(rate / per_s, ticks, &whole) ||
        __builtin_add_overflow(whole, part / per_s, &sum))
        return UINT64_MAX;
    return sum;
}

uint64_t
netlink_read_codel_time(uint64_t us)
{
    uint64_t t = (us * 1000 + 1023) / 1024;
    return (t * 1024 + 999) / 1000;
}
