/* SPDX-License-Identifier: Apache-2.0 */
/* HFSC, hierarchical fair service curve (tc-hfsc(8)). */
#include "rows.h"

#include <linux/pkt_sched.h>

static const struct qos_field fields[] = {
    {QOS_FIELD("parent", PARENT, CLASS, QOS_CLASS_SET), QOS_PROP(PARENT), .max = QOS_CLASS_MAX,
     .help = "class it hangs below (default 0: the port's root class)"},
    {QOS_FIELD("rt|rsc", RSC, CURVE, QOS_CLASS_SET), QOS_PROP(SERVICE_CURVE), .sub = 1,
     .max = QOS_RATE_MAX, .attr = TCA_HFSC_RSC, .kept = QOS_KEPT_BYTES,
     .help = "real-time curve m1/d/m2: 10mbit/20ms/5mbit, or m2 alone; rt or ls is needed"},
    {QOS_FIELD("ls|fsc", FSC, CURVE, QOS_CLASS_SET), QOS_PROP(SERVICE_CURVE), .sub = 2,
     .max = QOS_RATE_MAX, .attr = TCA_HFSC_FSC, .kept = QOS_KEPT_BYTES,
     .help = "link-sharing curve: its share of what is left"},
    {QOS_FIELD("ul|usc", USC, CURVE, QOS_CLASS_SET), QOS_PROP(SERVICE_CURVE), .sub = 3,
     .max = QOS_RATE_MAX, .attr = TCA_HFSC_USC, .kept = QOS_KEPT_BYTES,
     .help = "upper limit of link sharing (default: the parent's)"},
    QOS_FIELD_NAME,
    QOS_FIELD_PROMISE,
    QOS_FIELD_DELAY,
};

/* The kernel keeps a curve's slopes as bytes/s in 32 bits. */
#define SLOPE_MAX (QOS_U32_MAX * 8)

static const uint64_t *
curve(const struct qos_values *v, unsigned slot)
{
    return qos_has(v, slot) ? &v->v[slot] : NULL;
}

static void
put_linear(struct qos_values *v, unsigned slot, uint64_t rate)
{
    qos_put(v, slot, 0);
    qos_put(v, slot + 1, 0);
    qos_put(v, slot + 2, rate < SLOPE_MAX ? rate : SLOPE_MAX);
}

/* The guaranteed rate is m2 of the real-time curve, else of the link-sharing curve. */
static void
resolve(struct qos_values *v, const struct qos_env *env)
{
    const uint64_t *rt = curve(v, QOS_RSC), *ls = curve(v, QOS_FSC), *ul = curve(v, QOS_USC);
    uint64_t rate = rt ? rt[2] : ls ? ls[2] : 0;
    uint64_t ceil = ul ? ul[2] : env->parent_ceil;
    qos_put(v, QOS_RATE, rate);
    qos_put(v, QOS_CEIL, ceil > rate ? ceil : rate);
}

static int
check_curve(const char *name, const uint64_t *c, struct qos_error *e)
{
    if (!c)
        return 0;
    if (c[0] > SLOPE_MAX || c[2] > SLOPE_MAX)
        return qos_fail(e, QOS_BAD_PARAM, "%s: hfsc's curves rise by at most %llu bit/s", name,
                        (unsigned long long)SLOPE_MAX);
    if ((c[0] && c[0] < QOS_RATE_MIN) || (c[2] && c[2] < QOS_RATE_MIN))
        return qos_fail(e, QOS_BAD_PARAM, "%s: a rate is too low; it must be 0, or 8 bit/s or more",
                        name);
    if (!c[0] && !c[2])
        return qos_fail(e, QOS_BAD_PARAM,
                        "%s: the curve never rises; give m1 or m2, such as %s=5mbit", name, name);
    if (c[0] && !c[1] && c[0] != c[2])
        return qos_fail(e, QOS_BAD_PARAM,
                        "%s: m1 needs a time d above 0, such as 10mbit/20ms/5mbit", name);
    return 0;
}

static int
check(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    const uint64_t *rt = curve(v, QOS_RSC), *ls = curve(v, QOS_FSC), *ul = curve(v, QOS_USC);
    int err;
    if ((err = check_curve("rt", rt, e)) || (err = check_curve("ls", ls, e)) ||
        (err = check_curve("ul", ul, e)))
        return err;
    if (!rt && !ls)
        return qos_fail(e, QOS_BAD_PARAM,
                        "a class needs a service curve: rt (1), ls (2) or both, such as ls=5mbit");
    if (ul && !ls)
        return qos_fail(
            e, QOS_BAD_PARAM,
            "an upper limit (ul) limits link sharing; give ls as well, such as ls=5mbit");
    return 0;
}

static void
own(struct qos_values *config, bool root, uint64_t rate, uint64_t ceil)
{
    put_linear(config, QOS_FSC, rate);
    if (root && ceil <= SLOPE_MAX)
        put_linear(config, QOS_USC, ceil);
}

const struct qos_sched qos_sched_hfsc = {
    .id = OFP_QOS_SCHED_HFSC,
    .classful = true,
    .in_place = true,
    .name = "hfsc",
    .help = "queues with service curves",
    .module = "sch_hfsc",
    .package = "kmod-sched-core",
    QOS_FIELDS(fields),
    .resolve = resolve,
    .check = check,
    .own = own,
};
