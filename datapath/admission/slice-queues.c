/* SPDX-License-Identifier: Apache-2.0 */
/* What a slice may do to queues (docs/how-to/slices.md): what the request alone shows, and what only the queues can answer:
 * whether its classes stay within the rates of those above them, and whether others' classes would go with one that it
 * deletes. */
#include <admission/slice.h>

/* ------------------------------------------------------------------ the request alone */

int
sw_slice_check_request(const struct slice_request *a, const struct qos_request *r)
{
    static const uint8_t buckets[] = {QOS_BURST, QOS_CBURST};
    const int perm = QOS_ERR(OFPSFC_PERM);
    bool whole = slice_set_has(&a->slice->queues, 0);
    if (!slice_has_port(a->slice, r->port_no))
        return slice_deny_port(a, perm, r->port_no);
    if (whole)
        return 0;
    if (r->sched->classful && r->object_type == OFP_QOS_QDISC)
        return slice_deny(a, perm, "queue 0: the port's tree is not its own");
    if (!slice_set_has(&a->slice->queues, r->class_id))
        return slice_deny(a, perm, "queue %u of port %u", (unsigned)r->class_id,
                          (unsigned)r->port_no);
    if (r->object_type == OFP_QOS_CLASS && r->sched->id != OFP_QOS_SCHED_HTB)
        return slice_deny(a, perm, "queue 0: only HTB holds a class to what its parent has");
    if (r->sched->id == OFP_QOS_SCHED_BPF)
        return slice_deny(a, perm, "queue 0: a BPF qdisc may load a module");
    for (size_t i = 0; r->object_type == OFP_QOS_CLASS && i < sizeof buckets; i++)
        if (qos_has(&r->values, buckets[i]))
            return slice_deny(a, perm, "queue 0: a bucket of any size passes the parent's rate");
    return 0;
}

/* ------------------------------------------------------------------ the queues */

static int
check_budget(struct slice *s, uint32_t id, const struct qos_budget *b, struct qos_error *e)
{
    if (b->given <= b->rate)
        return 0;
    s->refused++;
    return qos_fail(e, QOS_ERR(OFPSFC_PERM),
                    "slice %s lacks a right: %llu bit/s in all below class %u, which has %llu",
                    s->name, (unsigned long long)b->given, (unsigned)id,
                    (unsigned long long)b->rate);
}

struct below {
    const struct slice *s;
    uint32_t foreign; /* 0: none is */
};

static bool
is_own(void *ctx, uint32_t class_id)
{
    struct below *b = ctx;
    b->foreign = slice_set_has(&b->s->queues, class_id) ? 0 : class_id;
    return !b->foreign;
}

/* Deleting a class with all below it deletes others' classes, too. */
int
sw_slice_check_below(struct sw *sw, struct slice *s, const struct qos_request *r,
                     struct qos_error *e)
{
    struct below b = {s, 0};
    if (!s || slice_set_has(&s->queues, 0) || r->object_type != OFP_QOS_CLASS ||
        r->action_type != OFP_QOS_DEL || !r->values.v[QOS_WITH_CHILDREN])
        return 0;
    qos_each_below(sw->qos, r->port_no, r->values.v[QOS_DIRECTION] ? QOS_IN : QOS_OUT, r->class_id,
                   is_own, &b);
    if (!b.foreign)
        return 0;
    s->refused++;
    return qos_fail(e, QOS_ERR(OFPSFC_PERM),
                    "slice %s lacks a right: queue %u of port %u, which is below class %u", s->name,
                    (unsigned)b.foreign, (unsigned)r->port_no, (unsigned)r->class_id);
}

/* HTB lets each class send its rate, whatever those above it have. */
int
sw_slice_check_planned(struct sw *sw, struct slice *s, const struct qos_request *r,
                       struct qos_error *e)
{
    enum qos_direction dir = r->values.v[QOS_DIRECTION] ? QOS_IN : QOS_OUT;
    struct qos_budget own, above;
    if (!s || slice_set_has(&s->queues, 0) || r->object_type != OFP_QOS_CLASS ||
        r->action_type == OFP_QOS_DEL || !qos_budget(sw->qos, r->port_no, dir, r->class_id, &own))
        return 0;
    if (!slice_set_has(&s->below, own.parent_id) && !slice_set_has(&s->queues, own.parent_id)) {
        s->refused++;
        return qos_fail(e, QOS_ERR(OFPSFC_PERM), "slice %s lacks a right: a class below %u",
                        s->name, (unsigned)own.parent_id);
    }
    int err = check_budget(s, r->class_id, &own, e);
    if (!err && qos_budget(sw->qos, r->port_no, dir, own.parent_id, &above))
        err = check_budget(s, own.parent_id, &above, e);
    return err;
}
