/* SPDX-License-Identifier: Apache-2.0 */
/* What the defaults and checks of several schedulers share. */
#include "rows.h"

uint32_t
qos_env_packets(const struct qos_env *env)
{
    return env->txqueuelen ? env->txqueuelen : 1000;
}

uint32_t
qos_env_mtu(const struct qos_env *env)
{
    return env->mtu ? env->mtu : 1500;
}

uint32_t
qos_env_frame(const struct qos_env *env)
{
    uint32_t mtu = qos_env_mtu(env);
    return (mtu < 0xffff ? mtu : 0xffff) + 14;
}

/* The kernel counts VLAN tags and MPLS labels, 4 bytes each, beside the MTU; stacks of eight are
 * rare. */
#define TAGS (8 * 4)

uint32_t
qos_env_longest(const struct qos_env *env)
{
    return qos_env_frame(env) + TAGS;
}

/* A queue that isn't served for some milliseconds (the machine is busy) must be able to catch up,
 * or it falls behind its rate: 10 ms of the rate, up to 5 MB (above that a millisecond is enough);
 * 4 ms below 10 Mbit/s, where a single packet takes milliseconds. */
#define FAST         10000000u /* bit/s */
#define BURST_ENOUGH 5000000u

uint32_t
qos_default_burst(uint64_t rate, const struct qos_env *env)
{
    uint64_t ms = rate / 8 / 1000, burst = (rate < FAST ? 4 : 10) * ms;
    burst = burst < BURST_ENOUGH ? burst : BURST_ENOUGH;
    burst = (burst > ms ? burst : ms) + qos_env_longest(env);
    return burst < QOS_U32_MAX ? (uint32_t)burst : (uint32_t)QOS_U32_MAX;
}

/* The kernel counts a bucket's time in 32 bits. */
#define BUCKET_SECONDS (QOS_U32_MAX * QOS_TICK_NS / 1000000000)

int
qos_check_burst(const char *name, uint64_t bytes, uint64_t rate, struct qos_error *e)
{
    if (rate && bytes * 8 / rate < BUCKET_SECONDS)
        return 0;
    return qos_fail(e, QOS_BAD_PARAM, "%s %llu takes more than %llu s at this rate; give less",
                    name, (unsigned long long)bytes, BUCKET_SECONDS - 1);
}

int
qos_check_link(const struct qos_values *v, struct qos_error *e)
{
    if ((int64_t)v->v[QOS_OVERHEAD] < 0)
        return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "the kernel takes an overhead below 0 for cake alone");
    if (v->v[QOS_LINKLAYER] == QOS_PTM)
        return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "the kernel knows linklayer ptm for cake alone; a rate of 64/65 of the "
                        "link's is the same");
    return 0;
}

/* The kernel chooses the transmit queue by the lowest 4 bits of skb->priority, and those of a packet
 * with a queue are the queue's. */
void
qos_default_tx_bands(struct qos_values *v, const struct qos_env *env)
{
    uint32_t most = env->tx_queues < QOS_BANDS_MAX ? env->tx_queues : QOS_BANDS_MAX;
    qos_default(v, QOS_BANDS, most ? most : 1);
    qos_default(v, QOS_OFFLOAD, 0);
    unsigned bands = (unsigned)v->v[QOS_BANDS];
    if (qos_has(v, QOS_PRIOMAP))
        return;
    qos_put(v, QOS_PRIOMAP, 0);
    qos_put(v, QOS_PRIOMAP + 1, 0);
    for (unsigned i = 0; i < 16; i++)
        qos_priomap_put(&v->v[QOS_PRIOMAP], i, (i && i <= bands ? i : bands) - 1);
}

int
qos_check_priomap(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    uint64_t bands = v->v[QOS_BANDS];
    for (unsigned i = 0; i < 16 && qos_has(v, QOS_PRIOMAP); i++) {
        if (qos_priomap_get(&v->v[QOS_PRIOMAP], i) >= bands)
            return qos_fail(e, QOS_BAD_PARAM, "the priomap names a band above %u",
                            (unsigned)bands - 1);
    }
    return 0;
}
