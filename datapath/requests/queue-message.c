/* SPDX-License-Identifier: Apache-2.0 */
/* The queue messages of BOFUSS (ofsoftswitch13): a queue with OpenFlow's rate properties, in
 * thousandths of the port's speed (7.2.2).  They become requests for HTB classes: the rate is a
 * share of the port's root class, the ceiling all of it unless MAX_RATE is given. */
#include "qos-request.h"

#define ARENA_MAX  ((size_t)4 * OF_MSG_MAX)
#define PPM        1000 /* of a thousandth */
#define LEAST_RATE 1    /* HTB needs a rate above 0 */

/* As in the properties; OFPQ_MIN_RATE_UNCFG: not given. */
struct rates {
    uint16_t min, max;
};

static int
read_rates(const struct of_packet_queue *q, struct rates *out, struct qos_error *e)
{
    *out = (struct rates){OFPQ_MIN_RATE_UNCFG, OFPQ_MAX_RATE_UNCFG};
    for (uint32_t i = 0; i < q->properties.n; i++) {
        const struct of_queue_prop_rate *p = OF_AT(&q->properties, i, struct of_queue_prop_rate);
        if (p->row->type == OFPQT_EXPERIMENTER)
            return qos_fail(
                e, QOS_ERR(OFPSFC_BAD_PROPERTY),
                "a queue has the properties MIN_RATE and MAX_RATE; experimenter properties "
                "are not supported");
        *(p->row->type == OFPQT_MIN_RATE ? &out->min : &out->max) = p->rate;
    }
    return 0;
}

static int
put_rates(const struct rates *rates, struct qos_values *v, struct qos_error *e)
{
    unsigned min = rates->min > OFP_QUEUE_RATE_MAX || !rates->min ? LEAST_RATE : rates->min;
    unsigned max = rates->max > OFP_QUEUE_RATE_MAX ? OFP_QUEUE_RATE_MAX : rates->max;
    if (max < min)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PARAM),
                        "MAX_RATE, %u thousandths of the port's speed, is below MIN_RATE, "
                        "%u",
                        max, min);
    qos_put(v, QOS_RATE, 0);
    qos_put(v, QOS_CEIL, 0);
    qos_put(v, QOS_PRIO, 0);
    qos_put(v, QOS_RATE_SHARE, min * PPM);
    qos_put(v, QOS_CEIL_SHARE, max * PPM);
    return 0;
}

static int
translate(uint32_t exp_type, const struct of_queue_command *m, struct qos_request *r,
          struct qos_error *e)
{
    const struct of_packet_queue *q =
        m->queues.n ? OF_AT(&m->queues, 0, struct of_packet_queue) : NULL;
    struct qos_request new = {.sched = qos_sched_by_id(OFP_QOS_SCHED_HTB),
                              .object_type = OFP_QOS_CLASS,
                              .action_type =
                                  exp_type == OFP_EXT_QUEUE_MODIFY ? OFP_QOS_REPLACE : OFP_QOS_DEL,
                              .port_no = m->port};
    struct rates rates;
    if (m->queues.n != 1)
        return QOS_ERR_BAD_LEN;
    if (m->port == OFPP_ANY)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_PORT),
                        "a queue belongs to one port: name it instead of OFPP_ANY");
    if (q->queue_id < 1 || q->queue_id > QOS_CLASS_MAX)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_CLASS), "a queue's number is 1 to %u", QOS_CLASS_MAX);
    new.class_id = q->queue_id;
    int err = read_rates(q, &rates, e);
    if (!err && exp_type == OFP_EXT_QUEUE_MODIFY)
        err = put_rates(&rates, &new.values, e);
    if (!err)
        *r = new;
    return err;
}

int
sw_queue_message_decode(uint32_t exp_type, struct of_bytes data, struct qos_request *r,
                        struct qos_error *e)
{
    struct of_arena arena;
    void *body;
    of_arena_init(&arena, ARENA_MAX);
    int err = of_decode_struct(data, &of_row_queue_command, &arena, &body);
    if (!err)
        err = translate(exp_type, body, r, e);
    of_arena_free(&arena);
    return err;
}
