/* SPDX-License-Identifier: Apache-2.0 */
/* TCA_OPTIONS of each scheduler, written and read (linux/pkt_sched.h).
 *
 * A scheduler whose options are plain attributes needs nothing here: its field rows say which
 * (qos/sched/field.h).  One whose options are a structure has a filler of its own. */
#ifndef QOS_NETLINK_FILL_H
#define QOS_NETLINK_FILL_H

#include "call.h"

#include <qos/model/kernel.h>

/* Appends TCA_OPTIONS.  -EMSGSIZE. */
int netlink_fill_qdisc(struct nl_msg *msg, const struct qos_sched *sched,
                       const struct qos_values *v);
int netlink_fill_class(struct nl_msg *msg, const struct qos_sched *sched,
                       const struct qos_values *v);

/* Reads what the kernel reports of them; `options` is the attribute TCA_OPTIONS itself. */
void netlink_read_qdisc(struct nlattr *options, const struct qos_sched *sched,
                        struct qos_values *v);
void netlink_read_class(struct nlattr *options, const struct qos_sched *sched,
                        struct qos_values *v);

/* Is the value that the kernel has the one that it was given, as exactly as it keeps it? */
bool netlink_same_value(const struct qos_sched *sched, unsigned slot,
                        const struct qos_values *given, const struct qos_values *has);

/* Packets marked, from the scheduler's own statistics. */
uint64_t netlink_read_marked(struct nlattr *xstats, const struct qos_sched *sched);

/* The fill of one scheduler.  `fill` answers 0, or another number if the message is full. */
struct filler {
    int (*fill)(struct nl_msg *msg, const struct qos_values *v);
    void (*read)(struct nlattr *options, struct qos_values *v);
};

extern const struct filler netlink_fill_htb, netlink_fill_htb_class, netlink_fill_fifo,
    netlink_fill_sfq, netlink_fill_red, netlink_fill_tbf, netlink_fill_prio, netlink_fill_ets,
    netlink_fill_netem, netlink_fill_hfsc;

/* Where a root qdisc's QOS_DEFAULT is kept (<qos/model/kernel.h>). */
enum default_place {
    DEFAULT_OPTION, /* among its options */
    DEFAULT_FILTER, /* in a filter that takes all packets to it */
    DEFAULT_MARK,   /* in a filter that matches no packet */
    DEFAULT_OVER,   /* among its options for good; a filter overrides it */
};
enum default_place netlink_default_place(const struct qos_sched *sched);

/* A rate in bit/s as a tc_ratespec: bytes/s, UINT32_MAX where 64 bits are needed. */
struct tc_ratespec;
void netlink_fill_rate(struct tc_ratespec *to, uint64_t bits_per_s);

/* The 64-bit attribute of a rate that does not fit a tc_ratespec; and reading both. */
int netlink_fill_rate64(struct nl_msg *msg, int attr, uint64_t bits_per_s);
uint64_t netlink_read_rate(const struct tc_ratespec *rate, struct nlattr *rate64);

/* Bytes at a rate (bit/s) as the kernel's time, ticks of 64 ns, rounded up; and back.  `cut`: the
 * kernel computed the ticks, and rounds down.  Beyond 64 bits: UINT64_MAX. */
uint32_t netlink_fill_ticks(uint64_t bytes, uint64_t bits_per_s);
uint64_t netlink_read_ticks(uint32_t ticks, uint64_t bits_per_s, bool cut);

/* CoDel keeps units of 1,024 ns and rounds down in both directions: the smallest number of
 * microseconds that gives the same unit. */
uint64_t netlink_read_codel_time(uint64_t us);

#endif
