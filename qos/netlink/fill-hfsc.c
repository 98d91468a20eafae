/* SPDX-License-Identifier: Apache-2.0 */
/* HFSC's and DRR's classes, and HFSC's qdisc. */
#include "fill.h"

#include <linux/pkt_sched.h>
#include <string.h>

static int
fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct tc_hfsc_qopt opt = {.defcls = (uint16_t)v->v[QOS_DEFAULT]};
    return nla_put(msg, TCA_OPTIONS, sizeof opt, &opt);
}

static void
read_options(struct nlattr *options, struct qos_values *v)
{
    struct tc_hfsc_qopt opt;
    if (nla_len(options) < (int)sizeof opt)
        return;
    memcpy(&opt, nla_data(options), sizeof opt);
    qos_put(v, QOS_DEFAULT, opt.defcls);
}

/* bit/s and microseconds on our side; bytes/s and microseconds on the kernel's. */
static const struct {
    uint8_t slot, attr;
} curves[] = {
    {QOS_RSC, TCA_HFSC_RSC},
    {QOS_FSC, TCA_HFSC_FSC},
    {QOS_USC, TCA_HFSC_USC},
};
#define N_CURVES (sizeof curves / sizeof curves[0])

static int
fill_one(struct nl_msg *msg, const struct qos_values *v)
{
    struct nlattr *nest = nla_nest_start(msg, TCA_OPTIONS);
    int err = nest ? 0 : -1;
    for (unsigned i = 0; !err && i < N_CURVES; i++) {
        const uint64_t *c = &v->v[curves[i].slot];
        struct tc_service_curve curve = {
            .m1 = (uint32_t)(c[0] / 8), .d = (uint32_t)c[1], .m2 = (uint32_t)(c[2] / 8)};
        if (qos_has(v, curves[i].slot))
            err = nla_put(msg, curves[i].attr, sizeof curve, &curve);
    }
    if (!err)
        nla_nest_end(msg, nest);
    return err;
}

static void
read_one(struct nlattr *options, struct qos_values *v)
{
    for (unsigned i = 0; i < N_CURVES; i++) {
        struct nlattr *a = nla_find(nla_data(options), nla_len(options), curves[i].attr);
        struct tc_service_curve curve = {0};
        if (a && nla_len(a) >= (int)sizeof curve)
            memcpy(&curve, nla_data(a), sizeof curve);
        qos_put(v, curves[i].slot, (uint64_t)curve.m1 * 8);
        qos_put(v, curves[i].slot + 1u, curve.d);
        qos_put(v, curves[i].slot + 2u, (uint64_t)curve.m2 * 8);
    }
}

static int
drr_fill_one(struct nl_msg *msg, const struct qos_values *v)
{
    struct nlattr *nest = nla_nest_start(msg, TCA_OPTIONS);
    if (!nest || nla_put_u32(msg, TCA_DRR_QUANTUM, (uint32_t)v->v[QOS_QUANTUM]))
        return -1;
    nla_nest_end(msg, nest);
    return 0;
}

static void
drr_read_one(struct nlattr *options, struct qos_values *v)
{
    struct nlattr *a = nla_find(nla_data(options), nla_len(options), TCA_DRR_QUANTUM);
    if (a && nla_len(a) >= 4)
        qos_put(v, QOS_QUANTUM, nla_get_u32(a));
}

/* DRR's qdisc has no options. */
static int
drr_fill(struct nl_msg *msg, const struct qos_values *v)
{
    return 0;
}

static void
drr_read(struct nlattr *options, struct qos_values *v)
{
}

const struct filler fill_hfsc = {fill, read_options};
const struct filler fill_hfsc_class = {fill_one, read_one};
const struct filler fill_drr = {drr_fill, drr_read};
const struct filler fill_drr_class = {drr_fill_one, drr_read_one};
