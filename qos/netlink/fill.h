/* SPDX-License-Identifier: Apache-2.0 */
/* Inside qos/netlink/: TCA_OPTIONS of each scheduler, written and read (linux/pkt_sched.h). */
#ifndef QOS_FILL_H
#define QOS_FILL_H

#include "call.h"

#include <qos/model/kernel.h>

/* Appends TCA_OPTIONS.  -EMSGSIZE; -EOPNOTSUPP: we can't write this one. */
int fill_qdisc(struct nl_msg *msg, const struct qos_sched *sched, const struct qos_values *v);
int fill_class(struct nl_msg *msg, const struct qos_sched *sched, const struct qos_values *v);

/* The other way, as far as the kernel tells. */
void read_qdisc(struct nlattr *options, const struct qos_sched *sched, struct qos_values *v);
void read_class(struct nlattr *options, const struct qos_sched *sched, struct qos_values *v);

/* Is what the kernel has what it was told, as exactly as it keeps it? */
bool same_value(const struct qos_sched *sched, unsigned object, unsigned slot,
                const struct qos_values *told, const struct qos_values *has);

/* Packets marked, from the scheduler's own statistics. */
uint64_t read_marked(struct nlattr *xstats, const struct qos_sched *sched);

/* One scheduler's; `options` is the attribute TCA_OPTIONS itself. */
struct filler {
    int (*fill)(struct nl_msg *msg, const struct qos_values *v);
    void (*read)(struct nlattr *options, struct qos_values *v);
};

extern const struct filler fill_htb, fill_htb_class, fill_fifo, fill_sfq, fill_red, fill_tbf,
    fill_prio, fill_netem, fill_ets, fill_hfsc, fill_hfsc_class, fill_drr, fill_drr_class;

/* Where a root qdisc's QOS_DEFAULT is kept (qos/kernel.h): among its options; in a filter that takes all
 * to it; in one that matches nothing; among the options for good, unless there is a filter. */
enum default_place { DEFAULT_OPTION, DEFAULT_FILTER, DEFAULT_MARK, DEFAULT_OVER };
enum default_place default_place(const struct qos_sched *sched);

/* Rates: bit/s to the kernel's bytes/s, as a tc_ratespec (32 bits, full where 64 are needed). */
struct tc_ratespec;
void fill_rate(struct tc_ratespec *to, uint64_t bits_per_s);

/* Bytes at a rate (bit/s) as the kernel's time, 64 ns ticks; rounded up.  And back; `cut`: the
 * kernel made them, and rounds down.  More than 64 bits: UINT64_MAX. */
uint32_t fill_ticks(uint64_t bytes, uint64_t bits_per_s);
uint64_t read_ticks(uint32_t ticks, uint64_t bits_per_s, bool cut);

/* A 64-bit rate attribute where the tc_ratespec's 32 bits are not enough; and reading both. */
int fill_rate64(struct nl_msg *msg, int attr, uint64_t bits_per_s);
uint64_t read_rate(const struct tc_ratespec *rate, struct nlattr *rate64);

#endif
