/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that the files of this folder define, one a kind, and what they share. */
#ifndef QOS_ROWS_H
#define QOS_ROWS_H

#include <qos/sched/sched.h>

#include <stddef.h>

#define QOS_FIELDS(a) .fields = (a), .n_fields = (uint8_t)QOS_COUNT(a)

/* A qdisc's field that a DEL doesn't carry; likewise a class's. */
#define QOS_QDISC_SET (QOS_ON_QDISC | QOS_ON_SET)
#define QOS_CLASS_SET (QOS_ON_CLASS | QOS_ON_SET)

#define QOS_U32_MAX 0xffffffffull
/* 8 bit/s is the kernel's smallest rate (1 byte/s); 10 Pbit/s keeps every product below 2^64. */
#define QOS_RATE_MIN    8ull
#define QOS_RATE_MAX    10000000000000000ull
#define QOS_TIME_MAX_US 3600000000ull

/* The shape of a property in a row: its type, its field's unit. */
#define QOS_PROP(type) .prop = OFP_QOS_PROP_##type

extern const struct qos_sched qos_sched_none, qos_sched_htb, qos_sched_pfifo, qos_sched_bfifo,
    qos_sched_sfq, qos_sched_red, qos_sched_tbf, qos_sched_prio, qos_sched_codel,
    qos_sched_fq_codel, qos_sched_fq, qos_sched_pie, qos_sched_cake, qos_sched_hfsc, qos_sched_drr,
    qos_sched_netem, qos_sched_ets;

/* txqueuelen, or what the kernel gives an interface that has none (DEFAULT_TX_QUEUE_LEN). */
uint32_t qos_env_packets(const struct qos_env *env);

/* Bytes of a full frame: the MTU with an Ethernet header. */
uint32_t qos_env_frame(const struct qos_env *env);

/* Bytes of the longest frame that the interface takes: a bucket that holds less drops it. */
uint32_t qos_env_longest(const struct qos_env *env);

/* A token bucket's size in bytes that can sustain the rate on any timer: a frame, and what the
 * rate sends in a millisecond. */
uint32_t qos_default_burst(uint64_t rate, const struct qos_env *env);

/* Does this many bytes at this rate fit the kernel's 32-bit count of 64 ns ticks? */
bool qos_burst_fits(uint64_t bytes, uint64_t rate);

/* The check of schedulers with bands: the priomap names none that there isn't (sched.c). */
int qos_check_priomap(const struct qos_values *v, const struct qos_values *given,
                      struct qos_error *e);

#endif
