/* SPDX-License-Identifier: Apache-2.0 */
/* What a scheduler (queueing discipline) is: a row, and a row for each of its parameters (field.h).
 *
 * One more scheduler is a row in QOS_SCHED_ROWS, a file in qos/sched/ and that file's name in its
 * meson.build.  The kernel's options follow from the fields' `attr`; a scheduler whose options are
 * a structure has a fill of its own in qos/netlink/ as well. */
#ifndef QOS_SCHED_H
#define QOS_SCHED_H

#include <qos/sched/field.h>
#include <qos/sched/name.h>

/* Name, sched_type on the wire, and the row's name: qos_sched_NAME. */
#define QOS_SCHED_ROWS(X)                                                                          \
    X(NONE, 0, none)                                                                               \
    X(HTB, 1, htb)                                                                                 \
    X(PFIFO, 2, pfifo)                                                                             \
    X(BFIFO, 3, bfifo)                                                                             \
    X(SFQ, 4, sfq)                                                                                 \
    X(RED, 5, red)                                                                                 \
    X(TBF, 6, tbf)                                                                                 \
    X(PRIO, 7, prio)                                                                               \
    X(CODEL, 8, codel)                                                                             \
    X(FQ_CODEL, 9, fq_codel)                                                                       \
    X(FQ, 10, fq)                                                                                  \
    X(PIE, 11, pie)                                                                                \
    X(CAKE, 12, cake)                                                                              \
    X(HFSC, 13, hfsc)                                                                              \
    X(DRR, 14, drr)                                                                                \
    X(NETEM, 15, netem)                                                                            \
    X(ETS, 16, ets)                                                                                \
    X(FQ_PIE, 17, fq_pie)                                                                          \
    X(DUALPI2, 18, dualpi2)                                                                        \
    X(CHOKE, 19, choke)                                                                            \
    X(GRED, 20, gred)                                                                              \
    X(MQ, 21, mq)                                                                                  \
    X(MQPRIO, 22, mqprio)                                                                          \
    X(ETF, 23, etf)                                                                                \
    X(TAPRIO, 24, taprio)                                                                          \
    X(CBS, 25, cbs)                                                                                \
    X(BPF, 26, bpf)

#define QOS_ENUM_SCHED(name, id, row) OFP_QOS_SCHED_##name = id,
enum ofp_qos_sched { QOS_SCHED_ROWS(QOS_ENUM_SCHED) OFP_QOS_SCHED_END };
#undef QOS_ENUM_SCHED

/* What defaults depend on. */
struct qos_env {
    uint32_t mtu;
    uint32_t txqueuelen;
    uint64_t speed;       /* of the link, bit/s; 0: unknown */
    uint64_t parent_rate; /* bit/s; 0: there is no parent class */
    uint64_t parent_ceil;
    uint32_t tx_queues; /* of the interface; 0: unknown */
    bool entering;      /* the queues are of what enters by the port */
    bool offload;       /* the tree is in the interface's hardware */
    uint32_t delay; /* promised in the class above, us, for the switch's own scheduler; 0: none */
    /* The parent class's link layer, as values. */
    uint64_t parent_overhead, parent_mpu, parent_linklayer;
};

struct qos_sched {
    uint8_t id;
    bool classful;  /* has classes that requests make: queues */
    bool flat;      /* has no root class, and no class below another */
    bool bands;     /* as a port's root: has QOS_BANDS classes of itself, queues 1 to that */
    bool tx_queues; /* the bands are the interface's transmit queues */
    bool bare;      /* nothing can be below its bands */
    bool tins;      /* as a port's root: has tins of itself, queues 1, 2, ...; also below a class */
    bool in_place;  /* the kernel can change its values, except those of QOS_AT_ADD */
    bool named;     /* its kind is NAME of its values */
    const char *name; /* "htb": also its kind, the kernel's name */
    const char *help;
    const char *module;  /* kernel module, "sch_htb" */
    const char *package; /* OpenWrt's package */
    const struct qos_field *fields;
    uint8_t n_fields;
    /* Where the scheduler's own statistics (TCA_STATS_APP) count marked packets: the offset of a
     * uint32_t, plus 1.  0: nowhere. */
    uint16_t marked;
    /* Where they say how long the packet waited that left last (us), likewise; flow_delay: in those of its
     * flows, which the kernel shows as classes of it. */
    uint16_t delay, flow_delay;
    /* Fills in every value that the kernel gets.  One that is absent or 0 gets its default, even
     * if that is the kernel's own: a CHANGE that leaves out a value keeps the old one.  NULL:
     * nothing has a default.  For a class: QOS_RATE and QOS_CEIL too, its guaranteed and its
     * largest rate (bit/s; 0: none, unknown). */
    void (*resolve)(struct qos_values *v, const struct qos_env *env);
    /* Checks resolved values together; `given` are those of the request.  NULL: all combinations
     * are valid. */
    int (*check)(const struct qos_values *v, const struct qos_values *given, struct qos_error *e);
    /* The configuration of the switch's own root or default class with these rates (bit/s).  NULL:
     * nothing need be given. */
    void (*own)(struct qos_values *config, bool root, uint64_t rate, uint64_t ceil);
};

#define QOS_TINS_MAX 8

/* Has it queues without class requests (bands or tins), as a port's root? */
static inline bool
qos_sched_parts(const struct qos_sched *s)
{
    return s->bands || s->tins;
}

/* How many, by its resolved values; 0: none. */
unsigned qos_sched_n_parts(const struct qos_sched *s, const struct qos_values *resolved);

/* By number, by name ("fq_codel"); NULL where there is none. */
const struct qos_sched *qos_sched_by_id(unsigned id);
const struct qos_sched *qos_sched_by_name(const char *name);

/* The kernel's name of the scheduler with these values: its name, or what is in buf.  NULL: it is one
 * of `named`, and they have none (or v is NULL). */
const char *qos_sched_kind(const struct qos_sched *s, const struct qos_values *v,
                           char buf[QOS_NAME_ROOM]);

/* Can a BPF program's qdisc have this kind: does it fit, and is it none of the kernel's own? */
bool qos_kind_is_free(const char *kind);

/* All of them, in order of id; i from 0.  NULL past the end. */
const struct qos_sched *qos_sched_at(unsigned i);

/* Its fields, then those that all have (direction, children); i from 0.  NULL past the end. */
const struct qos_field *qos_sched_field(const struct qos_sched *s, unsigned i);

/* The field that the slot belongs to (of a curve: one of three), NULL where the scheduler has none. */
const struct qos_field *qos_sched_slot(const struct qos_sched *s, unsigned slot);

/* Is the slot's field one of QOS_AT_ADD? */
bool qos_sched_at_add(const struct qos_sched *s, unsigned slot);

/* Applies a CHANGE: *now gets what `change` gives, zeros of fixed parameters too; rivals of what it
 * gives end. */
void qos_values_merge(const struct qos_sched *s, struct qos_values *now,
                      const struct qos_values *change);

/* The speed that a link is taken to have: 10 Gbit/s if it reports none. */
uint64_t qos_link_speed(const struct qos_env *env);

/* What a class's configuration means; env->parent_rate and parent_ceil are those of the class above
 * it (root: they are ignored, its parent is the link). */
void qos_resolve_class(const struct qos_sched *s, bool root, const struct qos_values *config,
                       const struct qos_env *env, struct qos_values *out);

/* What a classless scheduler's configuration means. */
void qos_resolve_leaf(const struct qos_sched *s, const struct qos_values *config,
                      const struct qos_env *env, struct qos_values *out);

/* The switch's own choice for its root class (rate and ceil: the link's) or its default class. */
void qos_own_config(const struct qos_sched *s, bool root, uint64_t rate, uint64_t ceil,
                    struct qos_values *out);

/* What dpctl prints as usage: one line of keys, then one line for each field, "\n" between.
 * Returns what snprintf would. */
int qos_sched_usage(const struct qos_sched *s, char *buf, size_t n);

#endif
