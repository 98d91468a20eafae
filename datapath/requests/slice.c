/* SPDX-License-Identifier: Apache-2.0 */
/* Rights of slices: a row for each message, multipart request and experimenter message.  One without
 * a row is beyond every slice, so a new message stays closed until somebody opens it here. */
#include "slice.h"

#include "qos-request.h"
#include "requests.h"

#include <punt/packet-in.h>
#include <requests/flows.h>

#include <daemon/log.h>
#include <oflib/fmt.h>

#include <stdio.h>

struct asking {
    struct sw *sw;
    const struct slice *s;
    const struct of_msg *m;
    struct qos_error *e;
};

/* 0 or the error to answer with; the sentence is in a->e. */
typedef int right_fn(const struct asking *a);

enum { ASKS, CHANGES };

struct right {
    right_fn *check; /* NULL: refused */
    uint8_t changes; /* refused if the slice may only ask */
    int err;         /* of this kind of request */
};

#define refuse(a, err, ...) qos_fail((a)->e, err, __VA_ARGS__)

static int
refuse_port(const struct asking *a, int err, uint32_t no)
{
    return refuse(a, err, "port %u", (unsigned)no);
}

static int
anybody(const struct asking *a)
{
    return 0;
}

/* ------------------------------------------------------------------ messages */

static int
may_flow_mod(const struct asking *a)
{
    const struct of_flow_mod *q = a->m->body;
    const struct buffered *b;
    char why[SLICE_WHY];
    int err = slice_check_flow_mod(a->s, q, why);
    if (err)
        return refuse(a, err, "%s", why);
    bool buffer = q->buffer_id != OFP_NO_BUFFER && q->command <= OFPFC_MODIFY_STRICT;
    if (buffer && !sw_buffers_find(a->sw->buffers, q->buffer_id, &b) &&
        !slice_has_port(a->s, b->in_port))
        return refuse(a, OF_FLOW_MOD_FAILED(EPERM), "a packet of port %u", (unsigned)b->in_port);
    return 0;
}

static int
may_packet_out(const struct asking *a)
{
    const struct of_packet_out *q = a->m->body;
    const struct buffered *b;
    char why[SLICE_WHY];
    bool none = q->in_port == OFPP_CONTROLLER || q->in_port == OFPP_ANY || !q->in_port;
    if (!none && !slice_has_port(a->s, q->in_port))
        return refuse_port(a, OF_BAD_REQUEST(EPERM), q->in_port);
    if (q->buffer_id != OFP_NO_BUFFER && !sw_buffers_find(a->sw->buffers, q->buffer_id, &b) &&
        !slice_has_port(a->s, b->in_port))
        return refuse(a, OF_BAD_REQUEST(EPERM), "a packet of port %u", (unsigned)b->in_port);
    int err = slice_check_actions(a->s, &q->actions, !none, true, why);
    return err ? refuse(a, err, "%s", why) : 0;
}

static int
may_group_mod(const struct asking *a)
{
    char why[SLICE_WHY];
    int err = slice_check_group_mod(a->s, a->m->body, why);
    return err ? refuse(a, err, "%s", why) : 0;
}

static int
may_meter_mod(const struct asking *a)
{
    uint32_t id = ((const struct of_meter_mod *)a->m->body)->meter_id;
    return slice_has_meter(a->s, id) ? 0
                                     : refuse(a, OF_BAD_REQUEST(EPERM), "meter %u", (unsigned)id);
}

static int
may_port_mod(const struct asking *a)
{
    uint32_t no = ((const struct of_port_mod *)a->m->body)->port_no;
    return slice_has_port(a->s, no) ? 0 : refuse_port(a, OF_PORT_MOD_FAILED(EPERM), no);
}

static int
may_table_mod(const struct asking *a)
{
    uint8_t id = ((const struct of_table_mod *)a->m->body)->table_id;
    return slice_set_has(&a->s->tables, id) ? 0
                                            : refuse(a, OF_TABLE_MOD_FAILED(EPERM), "table %u", id);
}

static int
may_queue_config(const struct asking *a)
{
    uint32_t no = ((const struct of_queue_get_config_request *)a->m->body)->port;
    return no == OFPP_ANY || slice_has_port(a->s, no)
               ? 0
               : refuse_port(a, OF_QUEUE_OP_FAILED(EPERM), no);
}

/* ------------------------------------------------------------------ queues */

/* Checks what the request alone shows; sw_slice_check_planned checks the rest. */
static int
check_request(const struct asking *a, const struct qos_request *r)
{
    static const uint8_t buckets[] = {QOS_BURST, QOS_CBURST};
    const int perm = QOS_ERR(OFPSFC_PERM);
    bool whole = slice_set_has(&a->s->queues, 0);
    if (!slice_has_port(a->s, r->port_no))
        return refuse_port(a, perm, r->port_no);
    if (whole)
        return 0;
    if (r->sched->classful && r->object_type == OFP_QOS_QDISC)
        return refuse(a, perm, "queue 0: the port's tree is not its own");
    if (!slice_set_has(&a->s->queues, r->class_id))
        return refuse(a, perm, "queue %u of port %u", (unsigned)r->class_id, (unsigned)r->port_no);
    if (r->object_type == OFP_QOS_CLASS && r->sched->id != OFP_QOS_SCHED_HTB)
        return refuse(a, perm, "queue 0: only HTB holds a class to what its parent has");
    if (r->sched->id == OFP_QOS_SCHED_BPF)
        return refuse(a, perm, "queue 0: a BPF qdisc may load a module");
    for (size_t i = 0; r->object_type == OFP_QOS_CLASS && i < sizeof buckets; i++)
        if (qos_has(&r->values, buckets[i]))
            return refuse(a, perm, "queue 0: a bucket of any size passes the parent's rate");
    return 0;
}

static int
may_qos(const struct asking *a)
{
    struct qos_request r;
    struct qos_error e = {0};
    /* A request that doesn't decode gets its error from the handler. */
    return sw_qos_decode(a->m, &r, &e) ? 0 : check_request(a, &r);
}

/* ------------------------------------------------------------------ experimenter messages */

static int
may_monitor(const struct asking *a)
{
    const struct of_experimenter *q = a->m->body;
    return q->data.n >= 4 && of_get32(q->data.p) & OFPMON_ROLES
               ? refuse(a, QOS_ERR(OFPSFC_PERM), "the roles of others")
               : 0;
}

#define PERM QOS_ERR(OFPSFC_PERM)
static const struct right own_messages[] = {
    [OFP_QOS_EXP_REQUEST] = {may_qos, CHANGES, PERM},
    [OFP_EXP_MONITOR] = {may_monitor, ASKS, PERM},
};

static int check_right(const struct asking *a, const struct right *rows, size_t n, uint32_t type,
                       int err);

#define ROWS(rows) rows, sizeof(rows) / sizeof(rows)[0]

static int
may_experimenter(const struct asking *a)
{
    const struct of_experimenter *q = a->m->body;
    switch (q->experimenter) {
    case OFP_ONF_EXPERIMENTER: return 0; /* bundles: their messages are checked one by one */
    case OFP_OPENFLOW_EXPERIMENTER:
        return a->s->asks_only ? refuse(a, PERM, "changing anything") : may_qos(a);
    case OFP_QOS_EXPERIMENTER: return check_right(a, ROWS(own_messages), q->exp_type, PERM);
    default: return 0; /* unknown to the switch, which says so */
    }
}

/* ------------------------------------------------------------------ multipart requests */

static int
may_flow_stats(const struct asking *a)
{
    uint8_t id = ((const struct of_mp_flow_request *)a->m->body)->table_id;
    return id == OFPTT_ALL || slice_has_table(a->s, id)
               ? 0
               : refuse(a, OF_BAD_REQUEST(EPERM), "table %u", id);
}

static int
may_port_stats(const struct asking *a)
{
    uint32_t no = ((const struct of_mp_port_request *)a->m->body)->port_no;
    return no == OFPP_ANY || slice_has_port(a->s, no) ? 0
                                                      : refuse_port(a, OF_BAD_REQUEST(EPERM), no);
}

static int
may_queue_stats(const struct asking *a)
{
    const struct of_mp_queue_request *q = a->m->body;
    if (q->port_no != OFPP_ANY && !slice_has_port(a->s, q->port_no))
        return refuse_port(a, OF_QUEUE_OP_FAILED(EPERM), q->port_no);
    if (q->queue_id != OFPQ_ALL && !slice_set_has(&a->s->queues, q->queue_id))
        return refuse(a, OF_QUEUE_OP_FAILED(EPERM), "queue %u", (unsigned)q->queue_id);
    return 0;
}

static int
may_group_stats(const struct asking *a)
{
    uint32_t id = ((const struct of_mp_group_request *)a->m->body)->group_id;
    return id == OFPG_ALL || slice_has_group(a->s, id)
               ? 0
               : refuse(a, OF_BAD_REQUEST(EPERM), "group %u", (unsigned)id);
}

static int
may_meter_stats(const struct asking *a)
{
    uint32_t id = ((const struct of_mp_meter_request *)a->m->body)->meter_id;
    return id == OFPM_ALL || slice_has_meter(a->s, id)
               ? 0
               : refuse(a, OF_BAD_REQUEST(EPERM), "meter %u", (unsigned)id);
}

static int
may_table_features(const struct asking *a)
{
    return ((const struct of_mp_table_features *)a->m->body)->tables.n
               ? refuse(a, OF_TABLE_FEATURES_FAILED(EPERM), "the pipeline")
               : 0;
}

static int
may_qos_dump(const struct asking *a)
{
    const struct of_mp_experimenter *q = a->m->body;
    uint32_t no = q->data.n >= 8 ? of_get32(q->data.p) : OFPP_ANY;
    uint32_t id = q->data.n >= 8 ? of_get32(q->data.p + 4) : QOS_ALL_CLASSES;
    if (no != OFPP_ANY && !slice_has_port(a->s, no))
        return refuse_port(a, PERM, no);
    if (id != QOS_ALL_CLASSES && !slice_set_has(&a->s->queues, id))
        return refuse(a, PERM, "queue %u", (unsigned)id);
    return 0;
}

static const struct right own_multiparts[] = {
    [OFP_QOS_EXP_DUMP] = {may_qos_dump, ASKS, PERM},
    [OFP_EXP_QOS_PORTS] = {anybody, ASKS, PERM},
    [OFP_EXP_SERVICE] = {anybody, ASKS, PERM},
    [OFP_EXP_TINS] = {anybody, ASKS, PERM},
};

static int
may_mp_experimenter(const struct asking *a)
{
    const struct of_mp_experimenter *q = a->m->body;
    if (q->experimenter != OFP_QOS_EXPERIMENTER)
        return 0; /* unknown to the switch, which says so */
    return check_right(a, ROWS(own_multiparts), q->exp_type, PERM);
}

/* Replies about many objects include the slice's own only (each handler leaves out the others). */
static const struct right multiparts[] = {
    [OFPMP_DESC] = {anybody, ASKS, 0},
    [OFPMP_FLOW] = {may_flow_stats, ASKS, 0},
    [OFPMP_AGGREGATE] = {may_flow_stats, ASKS, 0},
    [OFPMP_TABLE] = {anybody, ASKS, 0},
    [OFPMP_PORT_STATS] = {may_port_stats, ASKS, 0},
    [OFPMP_QUEUE] = {may_queue_stats, ASKS, 0},
    [OFPMP_GROUP] = {may_group_stats, ASKS, 0},
    [OFPMP_GROUP_DESC] = {anybody, ASKS, 0},
    [OFPMP_GROUP_FEATURES] = {anybody, ASKS, 0},
    [OFPMP_METER] = {may_meter_stats, ASKS, 0},
    [OFPMP_METER_CONFIG] = {may_meter_stats, ASKS, 0},
    [OFPMP_METER_FEATURES] = {anybody, ASKS, 0},
    [OFPMP_TABLE_FEATURES] = {may_table_features, ASKS, 0},
    [OFPMP_PORT_DESC] = {anybody, ASKS, 0},
};

static int
may_multipart(const struct asking *a)
{
    uint16_t type = a->m->mp->type;
    if (type == OFPMP_EXPERIMENTER)
        return may_mp_experimenter(a);
    return check_right(a, ROWS(multiparts), type, OF_BAD_REQUEST(EPERM));
}

/* ------------------------------------------------------------------ all of them */

static const struct right messages[] = {
    [OFPT_EXPERIMENTER] = {may_experimenter, ASKS, 0},
    [OFPT_FEATURES_REQUEST] = {anybody, ASKS, 0},
    [OFPT_GET_CONFIG_REQUEST] = {anybody, ASKS, 0},
    [OFPT_SET_CONFIG] = {NULL, CHANGES, OF_SWITCH_CONFIG_FAILED(EPERM)},
    [OFPT_PACKET_OUT] = {may_packet_out, CHANGES, OF_BAD_REQUEST(EPERM)},
    [OFPT_FLOW_MOD] = {may_flow_mod, CHANGES, OF_FLOW_MOD_FAILED(EPERM)},
    [OFPT_GROUP_MOD] = {may_group_mod, CHANGES, OF_GROUP_MOD_FAILED(EPERM)},
    [OFPT_PORT_MOD] = {may_port_mod, CHANGES, OF_PORT_MOD_FAILED(EPERM)},
    [OFPT_TABLE_MOD] = {may_table_mod, CHANGES, OF_TABLE_MOD_FAILED(EPERM)},
    [OFPT_MULTIPART_REQUEST] = {may_multipart, ASKS, 0},
    [OFPT_BARRIER_REQUEST] = {anybody, ASKS, 0},
    [OFPT_QUEUE_GET_CONFIG_REQUEST] = {may_queue_config, ASKS, 0},
    [OFPT_ROLE_REQUEST] = {anybody, ASKS, 0}, /* among the slice's own connections */
    [OFPT_GET_ASYNC_REQUEST] = {anybody, ASKS, 0},
    [OFPT_SET_ASYNC] = {anybody, ASKS, 0},
    [OFPT_METER_MOD] = {may_meter_mod, CHANGES, OF_BAD_REQUEST(EPERM)},
    [OFPT_QOS_QUEUEING_DISCIPLINE] = {may_qos, CHANGES, PERM},
};

static int
check_right(const struct asking *a, const struct right *rows, size_t n, uint32_t type, int err)
{
    const struct right *r = type < n ? &rows[type] : NULL;
    if (!r || !r->check)
        return refuse(a, r && r->err ? r->err : err, "this request, which is for no slice");
    if (r->changes == CHANGES && a->s->asks_only)
        return refuse(a, r->err, "changing anything");
    return r->check(a);
}

static void
explain(struct slice *s, struct conn *c, const struct of_msg *m, struct qos_error *e)
{
    char right[sizeof e->text];
    const char *type = of_fmt_name(&of_fmt_OFPT, m->type);
    snprintf(right, sizeof right, "%s", e->text);
    snprintf(e->text, sizeof e->text, "slice %s lacks a right: %.200s", s->name, right);
    s->refused++;
    log_info_by(CONN, LOG_REQUEST(c ? conn_peer(c) : "a peer that has gone", m->xid),
                "refused %s: %s", type ? type : "a message", e->text);
}

int
sw_slice_check_for(struct sw *sw, struct slice *s, struct conn *c, const struct of_msg *m,
                   struct qos_error *e)
{
    struct asking a = {sw, s, m, e};
    sw_bind_queues(sw, s);
    if (!s)
        return 0;
    int err = check_right(&a, ROWS(messages), m->type, OF_BAD_REQUEST(EPERM));
    if (err)
        explain(s, c, m, e);
    return err;
}

int
sw_slice_check(struct sw *sw, struct conn *c, const struct of_msg *m, struct qos_error *e)
{
    return sw_slice_check_for(sw, sw_slice_of(c), c, m, e);
}

int
sw_slice_refuse(struct conn *c, const struct of_msg *m, const struct qos_error *e)
{
    bool ours = m->type == OFPT_MULTIPART_REQUEST || m->type == OFPT_EXPERIMENTER ||
                m->type == OFPT_QOS_QUEUEING_DISCIPLINE;
    enum envelope env =
        !ours || m->type == OFPT_MULTIPART_REQUEST ? EXPERIMENTER : sw_qos_envelope(m);
    return sw_qos_refuse(c, m, env, e);
}

/* ------------------------------------------------------------------ what it sees */

bool
sw_slice_sees_flow(const struct sw *sw, const struct slice *s, const struct flow *f)
{
    struct of_oxm oxms[OXM_N];
    struct of_flow_stats described;
    if (!s || slice_set_has(&s->tables, f->table_id))
        return true;
    if (!slice_set_has(&s->shared, f->table_id))
        return false;
    sw_flow_describe(sw, f, oxms, &described);
    return slice_has_flow(s, f->table_id, &described.match);
}
