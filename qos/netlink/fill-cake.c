/* SPDX-License-Identifier: Apache-2.0 */
/* CAKE's options are attributes, except "no overhead". */
#include "fill.h"

#include <linux/netlink.h>
#include <linux/pkt_sched.h>

/* RAW alone would leave the overhead's bytes, which the kernel would go on adding. */
static int
fill_no_overhead(struct nl_msg *msg)
{
    return nla_put_u32(msg, TCA_CAKE_OVERHEAD, 0) || nla_put_u32(msg, TCA_CAKE_RAW, 0);
}

static int
fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct qos_values given = *v;
    const struct qos_sched *cake = qos_sched_by_id(OFP_QOS_SCHED_CAKE);
    /* A kernel without conntrack refuses any NAT attribute; a new CAKE has no NAT anyway. */
    if (!v->v[QOS_NAT] && nlmsg_hdr(msg)->nlmsg_flags & NLM_F_CREATE)
        qos_unset(&given, QOS_NAT);
    return netlink_fill_fields(msg, cake, OFP_QOS_QDISC, &given) ||
           (!qos_has(v, QOS_OVERHEAD) && fill_no_overhead(msg));
}

static void
read_options(struct nlattr *options, struct qos_values *v)
{
    netlink_read_fields(options, qos_sched_by_id(OFP_QOS_SCHED_CAKE), OFP_QOS_QDISC, v);
    if (nla_find(nla_data(options), nla_len(options), TCA_CAKE_RAW))
        qos_unset(v, QOS_OVERHEAD);
    if (v->v[QOS_AUTORATE_INGRESS]) /* it is not the rate that was given */
        qos_unset(v, QOS_RATE);
}

const struct filler netlink_fill_cake = {fill, read_options, true};
