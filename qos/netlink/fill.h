/* SPDX-License-Identifier: Apache-2.0 */
/* TCA_OPTIONS of each scheduler, written and read (linux/pkt_sched.h).
 *
 * A scheduler whose options are plain attributes needs nothing here: its field rows say which
 * (qos/sched/field.h).  One whose options are a structure has a filler of its own. */
#ifndef QOS_NETLINK_FILL_H
#define QOS_NETLINK_FILL_H

#include "call.h"

#include <qos/kernel/kernel.h>

/* Appends TCA_OPTIONS of a qdisc (OFP_QOS_QDISC) or class.  -EMSGSIZE. */
int netlink_fill(struct nl_msg *msg, const struct qos_sched *sched, unsigned object,
                 const struct qos_values *v);

/* How many changes must follow the message of a qdisc (0 for nearly all); TCA_OPTIONS of each. */
unsigned netlink_steps(const struct qos_sched *sched, const struct qos_values *v);
int netlink_fill_step(struct nl_msg *msg, const struct qos_sched *sched, const struct qos_values *v,
                      unsigned step);

/* Reads what the kernel reports of them; `options` is the attribute TCA_OPTIONS itself. */
void netlink_read(struct nlattr *options, const struct qos_sched *sched, unsigned object,
                  struct qos_values *v);

/* Is the value that the kernel has the one that it was given, as exactly as it keeps it? */
bool netlink_same_value(const struct qos_sched *sched, unsigned slot,
                        const struct qos_values *given, const struct qos_values *has);

/* Packets marked, from the scheduler's own statistics. */
void netlink_read_stats(struct nlattr *xstats, struct qos_object *o);

/* Has the qdisc (OFP_QOS_QDISC) or class an attribute in its field rows? */
bool netlink_has_fields(const struct qos_sched *sched, unsigned object);

/* The attributes of the field rows alone, inside TCA_OPTIONS.  0, or another number if the message is
 * full. */
int netlink_fill_fields(struct nl_msg *msg, const struct qos_sched *sched, unsigned object,
                        const struct qos_values *v);
void netlink_read_fields(struct nlattr *options, const struct qos_sched *sched, unsigned object,
                         struct qos_values *v);

/* The fill of one scheduler.  `fill` answers 0, or another number if the message is full. */
struct filler {
    int (*fill)(struct nl_msg *msg, const struct qos_values *v);
    void (*read)(struct nlattr *options, struct qos_values *v);
    bool nested; /* `fill` appends attributes inside TCA_OPTIONS, not the attribute itself */
};

/* The first `size` bytes of an attribute inside TCA_OPTIONS; false: it isn't there, or shorter. */
bool netlink_read_attr(const struct nlattr *options, int attr, void *to, int size);

/* Of a scheduler whose options one message can't hold: how many changes follow it, and the options
 * of each, inside TCA_OPTIONS. */
struct stepper {
    unsigned (*count)(const struct qos_values *v);
    int (*fill)(struct nl_msg *msg, const struct qos_values *v, unsigned step);
};
extern const struct stepper netlink_steps_gred;

/* Scheduler, its qdisc or class, and the filler's name: netlink_fill_NAME. */
#define NETLINK_FILL_ROWS(X)                                                                       \
    X(HTB, QDISC, htb)                                                                             \
    X(HTB, CLASS, htb_class)                                                                       \
    X(PFIFO, QDISC, fifo)                                                                          \
    X(BFIFO, QDISC, fifo)                                                                          \
    X(SFQ, QDISC, sfq)                                                                             \
    X(RED, QDISC, red)                                                                             \
    X(TBF, QDISC, tbf)                                                                             \
    X(PRIO, QDISC, prio)                                                                           \
    X(CAKE, QDISC, cake)                                                                           \
    X(HFSC, QDISC, hfsc)                                                                           \
    X(NETEM, QDISC, netem)                                                                         \
    X(ETS, QDISC, ets)                                                                             \
    X(CHOKE, QDISC, choke)                                                                         \
    X(GRED, QDISC, gred)                                                                           \
    X(MQPRIO, QDISC, mqprio)                                                                       \
    X(ETF, QDISC, etf)                                                                             \
    X(TAPRIO, QDISC, taprio)                                                                       \
    X(CBS, QDISC, cbs)

#define NETLINK_EXTERN_FILL(sched, object, name) extern const struct filler netlink_fill_##name;
NETLINK_FILL_ROWS(NETLINK_EXTERN_FILL)
#undef NETLINK_EXTERN_FILL

/* A priomap in the kernel's form, and back. */
void netlink_fill_priomap(uint8_t map[16], const struct qos_values *v);
void netlink_read_priomap(struct qos_values *v, const uint8_t map[16]);

/* Where a root qdisc's QOS_DEFAULT is kept (<qos/kernel/kernel.h>). */
enum default_place {
    DEFAULT_OPTION, /* among its options */
    DEFAULT_FILTER, /* in a filter that takes all packets to it */
    DEFAULT_MARK,   /* in a filter that matches no packet */
    DEFAULT_OVER,   /* among its options for good; a filter overrides it */
};
enum default_place netlink_default_place(const struct qos_sched *sched);

/* A rate in bit/s as a tc_ratespec: bytes/s, UINT32_MAX where 64 bits are needed; with the link
 * layer among the values. */
struct tc_ratespec;
void netlink_fill_rate(struct tc_ratespec *to, uint64_t bits_per_s, const struct qos_values *v);

/* The link layer in a tc_ratespec. */
void netlink_read_link(const struct tc_ratespec *rate, struct qos_values *v);

/* Bytes that a packet of this size is on the link, and the largest packet that so many bytes of the
 * link hold; of the link layer among the values. */
uint64_t netlink_link_size(const struct qos_values *v, uint64_t bytes);
uint64_t netlink_link_room(const struct qos_values *v, uint64_t bytes);

/* The 64-bit attribute of a rate that does not fit a tc_ratespec; and reading both. */
int netlink_fill_rate64(struct nl_msg *msg, int attr, uint64_t bits_per_s);
uint64_t netlink_read_rate(const struct tc_ratespec *rate, const struct nlattr *options,
                           int rate64);

/* Bytes at a rate (bit/s) as the kernel's time, ticks of 64 ns, rounded up; and back.  `cut`: the
 * kernel computed the ticks, and rounds down.  Beyond 64 bits: UINT64_MAX. */
uint32_t netlink_fill_ticks(uint64_t bytes, uint64_t bits_per_s);
uint64_t netlink_read_ticks(uint32_t ticks, uint64_t bits_per_s, bool cut);

/* A probability in 2^-32 as parts per million, at least 1. */
uint32_t netlink_read_red_ppm(uint32_t max_p);

/* CoDel keeps units of 1,024 ns and rounds down in both directions: the smallest number of
 * microseconds that gives the same unit. */
uint64_t netlink_read_codel_time(uint64_t us);

#endif
