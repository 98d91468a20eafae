/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a request's head, its properties, and a set of parameters with their values. */
#ifndef QOS_VALUES_H
#define QOS_VALUES_H

#include <oflib/openflow.h>

#include <stdbool.h>
#include <stdint.h>

#define QOS_COUNT(a) (sizeof(a) / sizeof((a)[0]))

enum ofp_qos_object { OFP_QOS_QDISC = 0, OFP_QOS_CLASS = 1 };

enum ofp_qos_action { OFP_QOS_ADD = 0, OFP_QOS_DEL = 1, OFP_QOS_CHANGE = 2, OFP_QOS_REPLACE = 3 };

/* Which packets: those that leave by a port, or those that enter by it (the DIRECTION property). */
enum qos_direction { QOS_OUT = 0, QOS_IN = 1 };

/* Values of LINKLAYER, and the kernel's for CAKE (CAKE_ATM_). */
enum qos_linklayer { QOS_ETHERNET, QOS_ATM, QOS_PTM };

/* Class ids (docs/reference/qos-extension.md, "Queues and classes"). */
#define QOS_CLASS_NONE    0u                /* the port's root */
#define QOS_CLASS_MAX     OFP_QOS_QUEUE_MAX /* queues are 1 to this */
#define QOS_CLASS_DEFAULT 0xfffeu           /* the switch's own default class */
#define QOS_CLASS_ROOT    0xffffu           /* the switch's own root class */

#define QOS_DEPTH_MAX     7  /* levels below the root class (TC_HTB_MAXDEPTH is 8) */
#define QOS_BANDS_MAX     16 /* TCQ_PRIO_BANDS, TCQ_ETS_MAX_BANDS */
#define QOS_TX_QUEUES_MAX 4096

/* Property types, bytes of their values (NAME: at most). */
#define OFP_QOS_PROP_ROWS(X)                                                                       \
    X(PARENT, 1, 4)                                                                                \
    X(BURST, 2, 4)                                                                                 \
    X(CBURST, 3, 4)                                                                                \
    X(QUANTUM, 4, 4)                                                                               \
    X(RATE, 5, 8)                                                                                  \
    X(PEAK_RATE, 6, 8)                                                                             \
    X(LIMIT, 7, 4)                                                                                 \
    X(LATENCY_US, 8, 4)                                                                            \
    X(JITTER_US, 9, 4)                                                                             \
    X(LOSS_PPM, 10, 4)                                                                             \
    X(TARGET_US, 11, 4)                                                                            \
    X(INTERVAL_US, 12, 4)                                                                          \
    X(FLOWS, 13, 4)                                                                                \
    X(ECN, 14, 1)                                                                                  \
    X(RED_MAX, 15, 4)                                                                              \
    X(RED_PROBABILITY_PPM, 16, 4)                                                                  \
    X(RED_AVPKT, 17, 4)                                                                            \
    X(RED_BURST, 18, 4)                                                                            \
    X(RED_BANDWIDTH, 19, 8)                                                                        \
    X(RED_ADAPTIVE, 20, 1)                                                                         \
    X(SFQ_DEPTH, 21, 4)                                                                            \
    X(SFQ_DIVISOR, 22, 4)                                                                          \
    X(BANDS, 23, 1)                                                                                \
    X(PRIOMAP, 24, 16)                                                                             \
    X(SERVICE_CURVE, 25, 32)                                                                       \
    X(RATE_SHARE_PPM, 26, 4)                                                                       \
    X(CEIL_SHARE_PPM, 27, 4)                                                                       \
    X(DIFFSERV, 28, 1)                                                                             \
    X(DIRECTION, 29, 1)                                                                            \
    X(WITH_CHILDREN, 30, 1)                                                                        \
    X(OVERHEAD, 31, 4)                                                                             \
    X(MPU, 32, 4)                                                                                  \
    X(LINKLAYER, 33, 1)                                                                            \
    X(FLOW_MODE, 34, 1)                                                                            \
    X(NAT, 35, 1)                                                                                  \
    X(WASH, 36, 1)                                                                                 \
    X(ACK_FILTER, 37, 1)                                                                           \
    X(INGRESS, 38, 1)                                                                              \
    X(SPLIT_GSO, 39, 1)                                                                            \
    X(MEMORY_LIMIT, 40, 4)                                                                         \
    X(FWMARK, 41, 4)                                                                               \
    X(AUTORATE_INGRESS, 42, 1)                                                                     \
    X(MAX_RATE, 43, 8)                                                                             \
    X(CE_THRESHOLD_US, 44, 4)                                                                      \
    X(DROP_BATCH, 45, 4)                                                                           \
    X(OFFLOAD, 46, 1)                                                                              \
    X(DROP_PRECEDENCE, 47, 20)                                                                     \
    X(NAME, 48, 31)                                                                                \
    X(PROMISE, 49, 4)                                                                              \
    X(DELAY_US, 50, 4)                                                                             \
    X(OVERSUBSCRIBE, 51, 1)
#define QOS_ENUM_PROP(name, type, bytes) OFP_QOS_PROP_##name = type,
enum ofp_qos_prop { OFP_QOS_PROP_NONE, OFP_QOS_PROP_ROWS(QOS_ENUM_PROP) OFP_QOS_PROP_END };
#undef QOS_ENUM_PROP

/* Where a parameter's value is kept in struct qos_values.  The first ones have the numbers of
 * their properties; the others are fixed parameters or parts of a longer value. */
enum qos_slot {
    QOS_PARENT = OFP_QOS_PROP_PARENT,
    QOS_BURST = OFP_QOS_PROP_BURST,
    QOS_CBURST = OFP_QOS_PROP_CBURST,
    QOS_QUANTUM = OFP_QOS_PROP_QUANTUM,
    QOS_RATE = OFP_QOS_PROP_RATE,
    QOS_PEAK_RATE = OFP_QOS_PROP_PEAK_RATE,
    QOS_LIMIT = OFP_QOS_PROP_LIMIT,
    QOS_LATENCY = OFP_QOS_PROP_LATENCY_US,
    QOS_JITTER = OFP_QOS_PROP_JITTER_US,
    QOS_LOSS = OFP_QOS_PROP_LOSS_PPM,
    QOS_TARGET = OFP_QOS_PROP_TARGET_US,
    QOS_INTERVAL = OFP_QOS_PROP_INTERVAL_US,
    QOS_FLOWS = OFP_QOS_PROP_FLOWS,
    QOS_ECN = OFP_QOS_PROP_ECN,
    QOS_RED_MAX = OFP_QOS_PROP_RED_MAX,
    QOS_RED_PROBABILITY = OFP_QOS_PROP_RED_PROBABILITY_PPM,
    QOS_RED_AVPKT = OFP_QOS_PROP_RED_AVPKT,
    QOS_RED_BURST = OFP_QOS_PROP_RED_BURST,
    QOS_RED_BANDWIDTH = OFP_QOS_PROP_RED_BANDWIDTH,
    QOS_RED_ADAPTIVE = OFP_QOS_PROP_RED_ADAPTIVE,
    QOS_SFQ_DEPTH = OFP_QOS_PROP_SFQ_DEPTH,
    QOS_SFQ_DIVISOR = OFP_QOS_PROP_SFQ_DIVISOR,
    QOS_BANDS = OFP_QOS_PROP_BANDS,
    QOS_RATE_SHARE = OFP_QOS_PROP_RATE_SHARE_PPM,
    QOS_CEIL_SHARE = OFP_QOS_PROP_CEIL_SHARE_PPM,
    QOS_DIFFSERV = OFP_QOS_PROP_DIFFSERV,
    QOS_DIRECTION = OFP_QOS_PROP_DIRECTION,
    QOS_WITH_CHILDREN = OFP_QOS_PROP_WITH_CHILDREN,
    QOS_OVERHEAD = OFP_QOS_PROP_OVERHEAD, /* a 64-bit int32_t: QOS_U_SIGNED */
    QOS_MPU = OFP_QOS_PROP_MPU,
    QOS_LINKLAYER = OFP_QOS_PROP_LINKLAYER,
    QOS_FLOW_MODE = OFP_QOS_PROP_FLOW_MODE,
    QOS_NAT = OFP_QOS_PROP_NAT,
    QOS_WASH = OFP_QOS_PROP_WASH,
    QOS_ACK_FILTER = OFP_QOS_PROP_ACK_FILTER,
    QOS_INGRESS = OFP_QOS_PROP_INGRESS,
    QOS_SPLIT_GSO = OFP_QOS_PROP_SPLIT_GSO,
    QOS_MEMORY_LIMIT = OFP_QOS_PROP_MEMORY_LIMIT,
    QOS_FWMARK = OFP_QOS_PROP_FWMARK,
    QOS_AUTORATE_INGRESS = OFP_QOS_PROP_AUTORATE_INGRESS,
    QOS_MAX_RATE = OFP_QOS_PROP_MAX_RATE,
    QOS_CE_THRESHOLD = OFP_QOS_PROP_CE_THRESHOLD_US,
    QOS_DROP_BATCH = OFP_QOS_PROP_DROP_BATCH,
    QOS_OFFLOAD = OFP_QOS_PROP_OFFLOAD,
    QOS_PROMISE = OFP_QOS_PROP_PROMISE,
    QOS_DELAY = OFP_QOS_PROP_DELAY_US,
    QOS_OVERSUBSCRIBE = OFP_QOS_PROP_OVERSUBSCRIBE,
    QOS_CEIL = OFP_QOS_PROP_END, /* fixed, bit/s */
    QOS_PRIO,                    /* fixed */
    QOS_PERTURB,                 /* fixed, seconds */
    QOS_THRESHOLD,               /* fixed, bytes */
    QOS_DEFAULT,                 /* a class-bearing qdisc's default class: the request's class_id */
    QOS_PRIOMAP,                 /* 2 slots: 16 bytes, the first one in the highest bits */
    QOS_RSC = QOS_PRIOMAP + 2,   /* 3 slots each: m1 bit/s, d us, m2 bit/s */
    QOS_FSC = QOS_RSC + 3,
    QOS_USC = QOS_FSC + 3,
    QOS_PRECEDENCE = QOS_USC + 3,   /* 2 slots for each of 16 (precedence.h) */
    QOS_NAME = QOS_PRECEDENCE + 32, /* 4 slots (name.h) */
    QOS_N_SLOTS = QOS_NAME + 4,
};

/* A set of slots, a bit each. */
struct qos_slots {
    uint64_t word[(QOS_N_SLOTS + 63) / 64];
};

static inline bool
qos_slots_has(const struct qos_slots *s, unsigned slot)
{
    return s->word[slot / 64] >> slot % 64 & 1;
}

static inline void
qos_slots_add(struct qos_slots *s, unsigned slot)
{
    s->word[slot / 64] |= (uint64_t)1 << slot % 64;
}

static inline void
qos_slots_del(struct qos_slots *s, unsigned slot)
{
    s->word[slot / 64] &= ~((uint64_t)1 << slot % 64);
}

static inline unsigned
qos_slots_count(const struct qos_slots *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < QOS_COUNT(s->word); i++)
        n += (unsigned)__builtin_popcountll(s->word[i]);
    return n;
}

/* A set of parameters: `set` has the slots whose values are there; v[] of the others is 0. */
struct qos_values {
    struct qos_slots set;
    uint64_t v[QOS_N_SLOTS];
};

static inline bool
qos_has(const struct qos_values *v, unsigned slot)
{
    return qos_slots_has(&v->set, slot);
}

static inline void
qos_put(struct qos_values *v, unsigned slot, uint64_t value)
{
    qos_slots_add(&v->set, slot);
    v->v[slot] = value;
}

/* Consecutive slots, of a name or a precedence. */
static inline void
qos_put_slots(struct qos_values *v, unsigned slot, const uint64_t *slots, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        qos_put(v, slot + i, slots[i]);
}

static inline void
qos_unset(struct qos_values *v, unsigned slot)
{
    qos_slots_del(&v->set, slot);
    v->v[slot] = 0;
}

/* The value if it is there and not 0, else the default. */
static inline uint64_t
qos_or(const struct qos_values *v, unsigned slot, uint64_t otherwise)
{
    return v->v[slot] ? v->v[slot] : otherwise;
}

/* Sets the value if it is not there. */
static inline void
qos_default(struct qos_values *v, unsigned slot, uint64_t value)
{
    if (!qos_has(v, slot))
        qos_put(v, slot, value);
}

/* The band of a priority, 0 to 15, in a priomap's two slots; and setting it where it was 0. */
static inline unsigned
qos_priomap_get(const uint64_t map[2], unsigned priority)
{
    return (unsigned)(map[priority / 8] >> (56 - priority % 8 * 8) & 0xff);
}

static inline void
qos_priomap_put(uint64_t map[2], unsigned priority, unsigned band)
{
    map[priority / 8] |= (uint64_t)band << (56 - priority % 8 * 8);
}

/* Bytes of a property's value; 0: no such property.  Of NAME: the most. */
unsigned qos_prop_size(unsigned type);
const char *qos_prop_name(unsigned type); /* "RED_MAX" */

#endif
