/* SPDX-License-Identifier: Apache-2.0 */
/* What a scheduler (queueing discipline) is: a row, and a row for each of its parameters.
 *
 * Decoding, encoding, checking of ranges, dpctl's grammar, help and JSON are generic over these
 * rows.  What is special about a scheduler is in qos/sched-NAME.c (defaults, checks that look at
 * several parameters) and in qos/netlink/ (how the kernel is told).
 */
#ifndef QOS_SCHED_H
#define QOS_SCHED_H

#include <qos/sched/error.h>

#include <stdbool.h>
#include <stdint.h>

/* sched_type on the wire. */
/* clang-format off */
#define OFP_QOS_SCHED_ROWS(X) \
    X(NONE, 0)     \
    X(HTB, 1)      \
    X(PFIFO, 2)    \
    X(BFIFO, 3)    \
    X(SFQ, 4)      \
    X(RED, 5)      \
    X(TBF, 6)      \
    X(PRIO, 7)     \
    X(CODEL, 8)    \
    X(FQ_CODEL, 9) \
    X(FQ, 10)      \
    X(PIE, 11)     \
    X(CAKE, 12)    \
    X(HFSC, 13)    \
    X(DRR, 14)     \
    X(NETEM, 15)   \
    X(ETS, 16)
/* clang-format on */
#define QOS_ENUM_SCHED(name, id) OFP_QOS_SCHED_##name = id,
enum ofp_qos_sched { OFP_QOS_SCHED_ROWS(QOS_ENUM_SCHED) };
#undef QOS_ENUM_SCHED

enum ofp_qos_object { OFP_QOS_QDISC = 0, OFP_QOS_CLASS = 1 };

enum ofp_qos_action { OFP_QOS_ADD = 0, OFP_QOS_DEL = 1, OFP_QOS_CHANGE = 2, OFP_QOS_REPLACE = 3 };

/* Class ids (docs/qos-extension.md, "Queues and classes"). */
#define QOS_COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define QOS_DEPTH_MAX     7 /* levels below the root class (TC_HTB_MAXDEPTH is 8) */
#define QOS_BANDS_MAX     16
#define QOS_SPEED_DEFAULT 10000000000ull /* bit/s, of a link that tells none */

#define QOS_CLASS_NONE    0u                /* the port's root */
#define QOS_CLASS_MAX     OFP_QOS_QUEUE_MAX /* queues are 1 to this */
#define QOS_CLASS_DEFAULT 0xfffeu           /* the switch's own default class */
#define QOS_CLASS_ROOT    0xffffu           /* the switch's own root class */

/* Property types, bytes of their values. */
/* clang-format off */
#define OFP_QOS_PROP_ROWS(X) \
    X(PARENT, 1, 4)               \
    X(BURST, 2, 4)                \
    X(CBURST, 3, 4)               \
    X(QUANTUM, 4, 4)              \
    X(RATE, 5, 8)                 \
    X(PEAK_RATE, 6, 8)            \
    X(LIMIT, 7, 4)                \
    X(LATENCY_US, 8, 4)           \
    X(JITTER_US, 9, 4)            \
    X(LOSS_PPM, 10, 4)            \
    X(TARGET_US, 11, 4)           \
    X(INTERVAL_US, 12, 4)         \
    X(FLOWS, 13, 4)               \
    X(ECN, 14, 1)                 \
    X(RED_MAX, 15, 4)             \
    X(RED_PROBABILITY_PPM, 16, 4) \
    X(RED_AVPKT, 17, 4)           \
    X(RED_BURST, 18, 4)           \
    X(RED_BANDWIDTH, 19, 8)       \
    X(RED_ADAPTIVE, 20, 1)        \
    X(SFQ_DEPTH, 21, 4)           \
    X(SFQ_DIVISOR, 22, 4)         \
    X(BANDS, 23, 1)               \
    X(PRIOMAP, 24, 16)            \
    X(SERVICE_CURVE, 25, 32)      \
    X(RATE_SHARE_PPM, 26, 4)      \
    X(CEIL_SHARE_PPM, 27, 4)      \
    X(DIFFSERV, 28, 1)            \
    X(DIRECTION, 29, 1)           \
    X(WITH_CHILDREN, 30, 1)
/* clang-format on */
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
    QOS_CEIL = OFP_QOS_PROP_END, /* fixed, bit/s */
    QOS_PRIO,                    /* fixed */
    QOS_PERTURB,                 /* fixed, seconds */
    QOS_THRESHOLD,               /* fixed, bytes */
    QOS_DEFAULT,                 /* a class-bearing qdisc's default class: the request's class_id */
    QOS_PRIOMAP,                 /* 2 slots: 16 bytes, the first one in the highest bits */
    QOS_RSC = QOS_PRIOMAP + 2,   /* 3 slots each: m1 bit/s, d us, m2 bit/s */
    QOS_FSC = QOS_RSC + 3,
    QOS_USC = QOS_FSC + 3,
    QOS_N_SLOTS = QOS_USC + 3,
};

/* A set of parameters.  A bit in `set` says that the value is there; v[] of others is 0. */
struct qos_values {
    uint64_t set;
    uint64_t v[QOS_N_SLOTS];
};

static inline bool
qos_has(const struct qos_values *v, unsigned slot)
{
    return v->set >> slot & 1;
}

static inline void
qos_put(struct qos_values *v, unsigned slot, uint64_t value)
{
    v->set |= (uint64_t)1 << slot;
    v->v[slot] = value;
}

static inline void
qos_unset(struct qos_values *v, unsigned slot)
{
    v->set &= ~((uint64_t)1 << slot);
    v->v[slot] = 0;
}

/* The value where it is there and not 0, else the default. */
static inline uint64_t
qos_or(const struct qos_values *v, unsigned slot, uint64_t otherwise)
{
    return v->v[slot] ? v->v[slot] : otherwise;
}

/* What isn't there gets its default. */
static inline void
qos_default(struct qos_values *v, unsigned slot, uint64_t value)
{
    if (!qos_has(v, slot))
        qos_put(v, slot, value);
}

/* How a value is written for people. */
enum qos_unit {
    QOS_U_COUNT,
    QOS_U_PACKETS,
    QOS_U_RATE,  /* bit/s */
    QOS_U_SIZE,  /* bytes */
    QOS_U_SEC,   /* whole seconds */
    QOS_U_USEC,  /* microseconds; a bare number is microseconds */
    QOS_U_PPM,   /* parts per million: "2%" or "0.02" */
    QOS_U_SHARE, /* parts per million of the parent's: "30%" */
    QOS_U_BOOL,
    QOS_U_CLASS,   /* a class id */
    QOS_U_ENUM,    /* one of the row's words */
    QOS_U_PRIOMAP, /* 16 numbers, "1:2:2:..." */
    QOS_U_CURVE,   /* "m1/d/m2", e.g. "10mbit/20ms/5mbit" */
};

/* Where a field may be given. */
#define QOS_ON_QDISC 0x1u
#define QOS_ON_CLASS 0x2u
#define QOS_ON_SET   0x4u /* ADD, CHANGE, REPLACE */
#define QOS_ON_DEL   0x8u
#define QOS_NEEDED   0x10u /* dpctl: must be given on ADD */
#define QOS_LEAVES   0x20u /* the kernel takes it only while the class has none below it */

struct qos_field {
    const char *names; /* "threshold|min": the first one is printed */
    uint8_t slot;
    uint8_t unit;      /* enum qos_unit */
    uint8_t where;     /* QOS_ON_ */
    uint8_t fixed;     /* bytes as a fixed parameter, 0: is none */
    uint8_t pad;       /* zero bytes after the fixed parameter */
    uint8_t prop;      /* property type, 0: is none.  With `fixed`: may take a zero's place */
    uint8_t rival;     /* slot that a new value (not 0) of this one ends, 0: none */
    uint8_t sub;       /* SERVICE_CURVE: `which` */
    uint64_t min, max; /* of the value; a fixed 0 always is allowed where min is 0 */
    const char *words; /* QOS_U_ENUM: "besteffort|diffserv3|...", in the order of the values */
    const char *help;  /* "largest queue (default: ...)" */
};

/* What a CHANGE comes to: `now` with what `change` gives; its zeros in fixed parameters are
 * values, rivals of what it gives are ended. */
struct qos_sched;
void qos_values_merge(const struct qos_sched *s, struct qos_values *now,
                      const struct qos_values *change);

/* What defaults depend on. */
struct qos_env {
    uint32_t mtu;
    uint32_t txqueuelen;
    uint64_t speed;       /* of the link, bit/s; 0: unknown */
    uint64_t parent_rate; /* bit/s; 0: there is no parent class */
    uint64_t parent_ceil;
};

struct qos_sched {
    uint8_t id;
    bool classful;    /* has classes that requests make: queues */
    bool flat;        /* has no root class, and no class below another */
    bool bands;       /* as a port's root: has QOS_BANDS classes of itself, queues 1 to that */
    bool in_place;    /* the kernel can change it without deleting it, */
    uint64_t at_add;  /* but for these slots (a bit each), which it takes only when it is added */
    const char *name; /* "htb": also the kernel's name */
    const char *help;
    const char *module;  /* kernel module, "sch_htb" */
    const char *package; /* OpenWrt's package */
    const struct qos_field *fields;
    uint8_t n_fields;
    /* Puts every value that the kernel is told into *v: what is absent or 0 gets its default, also
     * where that is the kernel's own, as a CHANGE that leaves out a value keeps the old one.
     * NULL: nothing has a default.  Of a class: QOS_RATE and QOS_CEIL as well, what it is
     * guaranteed and the most it may get (bit/s; 0: nothing, unknown). */
    void (*resolve)(struct qos_values *v, const struct qos_env *env);
    /* Looks at resolved values together; `given` are those of the request.  NULL: all is right. */
    int (*check)(const struct qos_values *v, const struct qos_values *given, struct qos_error *e);
    /* The configuration of the switch's own root or default class with these rates (bit/s).  NULL:
     * nothing need be given. */
    void (*own)(struct qos_values *config, bool root, uint64_t rate, uint64_t ceil);
};

/* By number, by name ("fq_codel"); NULL where there is none. */
const struct qos_sched *qos_sched_by_id(unsigned id);
const struct qos_sched *qos_sched_by_name(const char *name);

/* All of them, in order of id; i from 0.  NULL past the end. */
const struct qos_sched *qos_sched_at(unsigned i);

/* Its fields, then those that all have (direction, children); i from 0.  NULL past the end. */
const struct qos_field *qos_sched_field(const struct qos_sched *s, unsigned i);

/* The field of this slot, NULL where the scheduler has none. */
const struct qos_field *qos_sched_slot(const struct qos_sched *s, unsigned slot);

/* Does the field take part in a request of this object and action? */
bool qos_field_applies(const struct qos_field *f, unsigned object, unsigned action);

/* Number of slots: 1, 2 (PRIOMAP), 3 (SERVICE_CURVE). */
unsigned qos_field_slots(const struct qos_field *f);

/* Does `name` (n characters) name the field? */
bool qos_field_named(const struct qos_field *f, const char *name, size_t n);

/* The field's first name into buf. */
char *qos_field_name(const struct qos_field *f, char *buf, size_t n);

/* Bytes of a property's value; 0: no such property. */
unsigned qos_prop_size(unsigned type);
const char *qos_prop_name(unsigned type); /* "RED_MAX" */

/* A value as text ("6mbit", "yes") and back.  Parsing answers -EINVAL and says why. */
char *qos_field_format(const struct qos_field *f, const struct qos_values *v, char *buf, size_t n);
int qos_field_parse(const struct qos_field *f, const char *text, struct qos_values *v, char *why,
                    size_t n);

/* Is every value within its field's range?  OFPSFC_BAD_PARAM. */
int qos_field_check(const struct qos_field *f, const struct qos_values *v, struct qos_error *e);

/* What dpctl prints as usage: one line of keys, then one line for each field, "\n" between.
 * Returns what snprintf would. */
int qos_sched_usage(const struct qos_sched *s, char *buf, size_t n);

#endif
