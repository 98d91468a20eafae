/* SPDX-License-Identifier: Apache-2.0 */
/* CAKE, common applications kept enhanced (tc-cake(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

static const uint8_t diffserv[] = {CAKE_DIFFSERV_BESTEFFORT, CAKE_DIFFSERV_DIFFSERV3,
                                   CAKE_DIFFSERV_DIFFSERV4, CAKE_DIFFSERV_DIFFSERV8};

#define FLAG(n, s, a, h)                                                                           \
    {                                                                                              \
        .names = n, .slot = QOS_##s, .unit = QOS_U_BOOL, .where = QOS_QDISC_SET, QOS_PROP(s),      \
        .max = 1, .attr = (a), .help = h                                                           \
    }

static const struct qos_field fields[] = {
    {QOS_FIELD("bandwidth|rate", RATE, RATE, QOS_QDISC_SET), QOS_PROP(RATE),
     QOS_RANGE(QOS_RATE_MIN, QOS_RATE_MAX), .attr = TCA_CAKE_BASE_RATE64, .attr_bytes = 8,
     .kept = QOS_KEPT_BYTES, .help = "shaped to this rate (default: unlimited)"},
    {QOS_FIELD("memlimit|limit", LIMIT, SIZE, QOS_QDISC_SET), QOS_PROP(LIMIT),
     .rival = QOS_MEMORY_LIMIT, QOS_RANGE(1, QOS_U32_MAX), .help = "the same as memory_limit"},
    {QOS_FIELD("rtt|interval", INTERVAL, USEC, QOS_QDISC_SET), QOS_PROP(INTERVAL_US),
     QOS_RANGE(1, QOS_U32_MAX), .attr = TCA_CAKE_RTT,
     .help = "round-trip time to plan for (default 100 ms)"},
    {QOS_FIELD("diffserv", DIFFSERV, ENUM, QOS_QDISC_SET), QOS_PROP(DIFFSERV), .max = 3,
     .words = "besteffort|diffserv3|diffserv4|diffserv8", .attr = TCA_CAKE_DIFFSERV_MODE,
     .codes = diffserv, .help = "tins by DSCP (default diffserv3)"},
    QOS_FIELDS_LINK(QOS_QDISC_SET, TCA_CAKE_OVERHEAD, TCA_CAKE_MPU, TCA_CAKE_ATM),
    {QOS_FIELD("flow_mode", FLOW_MODE, ENUM, QOS_QDISC_SET), QOS_PROP(FLOW_MODE), .max = 7,
     .words = "flowblind|srchost|dsthost|hosts|flows|dual-srchost|dual-dsthost|triple-isolate",
     .attr = TCA_CAKE_FLOW_MODE, .help = "between whom it is fair (default triple-isolate)"},
    FLAG("nat", NAT, TCA_CAKE_NAT, "look through the kernel's NAT at hosts (default no)"),
    FLAG("wash", WASH, TCA_CAKE_WASH, "clear DSCP when a packet is sent (default no)"),
    {QOS_FIELD("ack_filter", ACK_FILTER, ENUM, QOS_QDISC_SET), QOS_PROP(ACK_FILTER), .max = 2,
     .words = "no|filter|aggressive", .attr = TCA_CAKE_ACK_FILTER,
     .help = "drop TCP ACKs that later ones make needless (default no)"},
    FLAG("ingress", INGRESS, TCA_CAKE_INGRESS,
         "count drops as sent: the bottleneck is before it (default: for direction=in)"),
    FLAG("split_gso", SPLIT_GSO, TCA_CAKE_SPLIT_GSO, "cut super-packets (default yes)"),
    {QOS_FIELD("memory_limit", MEMORY_LIMIT, SIZE, QOS_QDISC_SET), QOS_PROP(MEMORY_LIMIT),
     .rival = QOS_LIMIT, QOS_RANGE(1, QOS_U32_MAX), .attr = TCA_CAKE_MEMORY,
     .help = "memory that waiting packets may take (default: by rate and rtt)"},
    {QOS_FIELD("fwmark", FWMARK, COUNT, QOS_QDISC_SET), QOS_PROP(FWMARK), .max = QOS_U32_MAX,
     .attr = TCA_CAKE_FWMARK,
     .help = "mask of the firewall mark that names the tin (default 0: none does)"},
    FLAG("autorate_ingress", AUTORATE_INGRESS, TCA_CAKE_AUTORATE,
         "the rate follows what arrives (default no)"),
};

static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    qos_default(v, QOS_RATE, 0);
    qos_put(v, QOS_MEMORY_LIMIT, qos_or(v, QOS_MEMORY_LIMIT, v->v[QOS_LIMIT]));
    qos_unset(v, QOS_LIMIT); /* the kernel gets the other */
    qos_default(v, QOS_INTERVAL, 100000);
    qos_default(v, QOS_DIFFSERV, 1);
    /* There is no default: without an overhead the kernel counts whole frames, with one (even 0)
     * from the IP header on. */
    qos_default(v, QOS_MPU, 0);
    qos_default(v, QOS_LINKLAYER, QOS_ETHERNET);
    qos_default(v, QOS_FLOW_MODE, 7);
    qos_default(v, QOS_NAT, 0);
    qos_default(v, QOS_WASH, 0);
    qos_default(v, QOS_ACK_FILTER, 0);
    qos_default(v, QOS_INGRESS, env->entering);
    qos_default(v, QOS_SPLIT_GSO, 1);
    qos_default(v, QOS_FWMARK, 0);
    qos_default(v, QOS_AUTORATE_INGRESS, 0);
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    if (qos_has(given, QOS_LIMIT) && qos_has(given, QOS_MEMORY_LIMIT))
        return qos_fail(e, QOS_BAD_PARAM, "memory_limit and limit are the same; give one of them");
    return 0;
}

const struct qos_sched qos_sched_cake = {
    .id = OFP_QOS_SCHED_CAKE,
    .flat = true,
    .tins = true,
    .in_place = true,
    .name = "cake",
    .help = "shaper, fair between hosts and flows",
    .module = "sch_cake",
    .package = "kmod-sched-cake",
    QOS_FIELDS(fields),
    .resolve = resolve,
    .check = check,
};
