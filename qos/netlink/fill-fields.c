/* SPDX-License-Identifier: Apache-2.0 */
/* The generic fill, by the attributes in the field rows. */
#include "fill.h"

#include <linux/pkt_sched.h>
#include <string.h>

static uint64_t
code_of(const struct qos_field *f, uint64_t value)
{
    if (f->none && !value)
        return f->none;
    if (f->unit == QOS_U_RATE)
        return value / 8;
    return f->codes ? f->codes[value <= f->max ? value : 0] : value;
}

/* Which of the field's words has this number?  false: none has. */
static bool
word_of(const struct qos_field *f, uint64_t code, uint64_t *word)
{
    for (uint64_t i = 0; i <= f->max; i++) {
        if (code == (f->codes ? f->codes[i] : i)) {
            *word = i;
            return true;
        }
    }
    return false;
}

/* false: no value of the field means that. */
static bool
value_of(const struct qos_field *f, uint64_t code, uint64_t *value)
{
    if (f->unit == QOS_U_ENUM)
        return word_of(f, code, value);
    *value = f->none && code == f->none       ? 0
             : f->unit == QOS_U_RATE          ? code * 8
             : f->unit == QOS_U_SIGNED        ? (uint64_t)(int64_t)(int32_t)code
             : f->kept == QOS_KEPT_CODEL_TIME ? netlink_read_codel_time(code)
                                              : code;
    return true;
}

static int
fill_curve(struct nl_msg *msg, const struct qos_field *f, const uint64_t *v)
{
    struct tc_service_curve curve = {
        .m1 = (uint32_t)(v[0] / 8), .d = (uint32_t)v[1], .m2 = (uint32_t)(v[2] / 8)};
    return nla_put(msg, f->attr, sizeof curve, &curve);
}

/* The kernel reports no curve that a class does not have: it is all 0 then. */
static void
read_curve(const struct nlattr *attr, const struct qos_field *f, struct qos_values *v)
{
    struct tc_service_curve curve = {0};
    if (attr && nla_len(attr) >= (int)sizeof curve)
        memcpy(&curve, nla_data(attr), sizeof curve);
    qos_put(v, f->slot, (uint64_t)curve.m1 * 8);
    qos_put(v, f->slot + 1u, curve.d);
    qos_put(v, f->slot + 2u, (uint64_t)curve.m2 * 8);
}

static int
fill_field(struct nl_msg *msg, const struct qos_field *f, const struct qos_values *v)
{
    const uint64_t *value = &v->v[f->slot];
    if (!qos_has(v, f->slot))
        return 0;
    if (f->unit == QOS_U_CURVE)
        return fill_curve(msg, f, value);
    return f->attr_bytes == 8 ? nla_put_u64(msg, f->attr, code_of(f, *value))
                              : nla_put_u32(msg, f->attr, (uint32_t)code_of(f, *value));
}

static void
read_field(const struct nlattr *attr, const struct qos_field *f, struct qos_values *v)
{
    bool wide = f->attr_bytes == 8;
    uint64_t value;
    if (f->unit == QOS_U_CURVE) {
        read_curve(attr, f, v);
    } else if (attr && nla_len(attr) >= (wide ? 8 : 4)) {
        if (value_of(f, wide ? nla_get_u64(attr) : nla_get_u32(attr), &value))
            qos_put(v, f->slot, value);
    } else if (f->none) { /* CoDel doesn't report a threshold that isn't set */
        qos_put(v, f->slot, 0);
    }
}

/* The next field with an attribute of a qdisc (OFP_QOS_QDISC) or class, *i being its index;
 * NULL. */
static const struct qos_field *
next_field(const struct qos_sched *sched, unsigned object, unsigned *i)
{
    const struct qos_field *f;
    while ((f = qos_sched_field(sched, *i)) &&
           !(f->attr && qos_field_applies(f, object, OFP_QOS_ADD)))
        ++*i;
    return f;
}

bool
netlink_has_fields(const struct qos_sched *sched, unsigned object)
{
    unsigned i = 0;
    return next_field(sched, object, &i) != NULL;
}

int
netlink_fill_fields(struct nl_msg *msg, const struct qos_sched *sched, unsigned object,
                    const struct qos_values *v)
{
    const struct qos_field *f;
    int err = 0;
    for (unsigned i = 0; !err && (f = next_field(sched, object, &i)); i++)
        err = fill_field(msg, f, v);
    return err;
}

void
netlink_read_fields(struct nlattr *options, const struct qos_sched *sched, unsigned object,
                    struct qos_values *v)
{
    const struct qos_field *f;
    for (unsigned i = 0; (f = next_field(sched, object, &i)); i++)
        read_field(nla_find(nla_data(options), nla_len(options), f->attr), f, v);
}
