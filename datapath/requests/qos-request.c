/* SPDX-License-Identifier: Apache-2.0 */
/* QoS requests (docs/reference/qos-extension.md), in all kinds of messages, and OFP_QOS_EXP_DUMP. */
#include "qos-request.h"

#include "queue-reply.h"
#include <admission/request.h>

#include <queues/kernel-plan.h>
#include <queues/qos-notify.h>
#include <queues/service.h>

#include <daemon/log.h>

#include <qos/sched/delay.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The message that a request came in: the extension's own, an experimenter message (or multipart request), or a queue
 * message of BOFUSS. */
enum envelope { NATIVE, EXPERIMENTER, QUEUE_MESSAGE };

static enum envelope
envelope_of(const struct of_msg *m)
{
    if (m->type == OFPT_QOS_QUEUEING_DISCIPLINE)
        return NATIVE;
    return m->type == OFPT_EXPERIMENTER && of_get32(m->raw.p + 8) == OFP_OPENFLOW_EXPERIMENTER
               ? QUEUE_MESSAGE
               : EXPERIMENTER;
}

/* OFPET_QUEUE_OP_FAILED has only three codes. */
static uint16_t
queue_code(uint16_t code)
{
    switch (code) {
    case OFPSFC_BAD_PORT: return OFPQOFC_BAD_PORT;
    case OFPSFC_BAD_CLASS:
    case OFPSFC_NOT_FOUND: return OFPQOFC_BAD_QUEUE;
    default: return OFPQOFC_EPERM;
    }
}

int
sw_qos_refuse(struct conn *c, const struct of_msg *m, const struct qos_error *e)
{
    static const uint16_t types[] = {[NATIVE] = OFPET_SCHED_FAILED,
                                     [EXPERIMENTER] = OFPET_EXPERIMENTER,
                                     [QUEUE_MESSAGE] = OFPET_QUEUE_OP_FAILED};
    int err = e->err > 0 ? e->err : QOS_ERR(OFPSFC_KERNEL);
    if (of_err_type(err) != OFPET_SCHED_FAILED)
        return err;
    struct of_wr w = of_wr_grow(4096);
    enum envelope env = envelope_of(m);
    uint16_t code = of_err_code(err);
    if (env == EXPERIMENTER)
        of_wr32(&w, OFP_QOS_EXPERIMENTER);
    qos_error_data(&w, m->raw.p, m->raw.n, e);
    int r = w.overflow
                ? -ENOMEM
                : conn_error_data(c, m, types[env], env == QUEUE_MESSAGE ? queue_code(code) : code,
                                  (struct of_bytes){w.buf, w.len});
    of_wr_free(&w);
    return r;
}

int
sw_qos_execute(struct sw *sw, struct slice *s, const struct qos_request *r, struct qos_error *e)
{
    char why[256];
    if (sw->opt.no_slicing)
        return qos_fail(
            e, QOS_ERR(OFPSFC_PERM),
            "the switch was started with --no-slicing, so it never changes traffic control; "
            "start it without (Mininet: --switch user,dpopts=)");
    if ((e->err = sw_slice_check_below(sw, s, r, e)) || (e->err = qos_execute(sw->qos, r, e)) ||
        (e->err = sw_slice_check_planned(sw, s, r, e)))
        return e->err;
    if (r->values.v[QOS_PROMISE] || r->values.v[QOS_DELAY])
        sw_service_promised(sw);
    if (*qos_delay_doubt(&r->values, 0, why, sizeof why))
        log_notice(QOS, "port %u, class %u: %s", (unsigned)r->port_no, (unsigned)r->class_id, why);
    return 0;
}

int
sw_qos_decode(const struct of_msg *m, struct qos_request *r, struct qos_error *e)
{
    enum envelope env = envelope_of(m);
    const struct of_experimenter *q = m->body;
    if (env == QUEUE_MESSAGE)
        return e->err = sw_queue_message_decode(q->exp_type, q->data, r, e);
    struct of_bytes content = env == NATIVE ? ((const struct of_qos *)m->body)->content : q->data;
    return e->err = qos_request_decode(r, content.p, content.n, e);
}

static int
refuse_logged(struct conn *c, const struct of_msg *m, const struct qos_error *e)
{
    if (e->errnum)
        log_warning_by(QOS, LOG_REQUEST(conn_peer(c), m->xid),
                       "the kernel refuses a queue request: %s", e->text);
    else if (of_err_type(e->err) == OFPET_SCHED_FAILED) /* others: control/conn-request.c */
        log_info_by(QOS, LOG_REQUEST(conn_peer(c), m->xid), "refused: %s", e->text);
    return sw_qos_refuse(c, m, e);
}

static void
print_request(const void *of, char *out, size_t n)
{
    const struct qos_request *r = of;
    int len = snprintf(out, n, "qos-%s ", r->sched->name); /* as dpctl says it */
    qos_request_print(r, out + len, n - (size_t)len);
}

static void
carried_out(struct sw *sw, const char *peer, uint32_t xid, const struct qos_request *r)
{
    log_info_made(QOS, LOG_REQUEST(peer, xid), "a request", print_request, r);
    sw_qos_notify_request(sw, r);
}

/* A request whose plan takes many turns. */
struct long_request {
    struct sw *sw;
    struct qos_request r;
    struct deferred request;
    struct kernel_plan plan;
};

static bool
long_agreed(void *ctx)
{
    return true;
}

static void
long_over(void *ctx, bool done, unsigned at, const struct qos_error *e)
{
    struct long_request *l = ctx;
    struct of_msg m = deferred_message(&l->request);
    if (done)
        carried_out(l->sw, deferred_peer(&l->request), m.xid, &l->r);
    else if (e && l->request.conn)
        deferred_error(&l->request, refuse_logged(l->request.conn, &m, e));
    deferred_end(&l->request);
    free(l);
}

static int
defer(struct sw *sw, struct conn *c, const struct of_msg *m, const struct qos_request *r)
{
    static const struct kernel_work work = {.agreed = long_agreed, .over = long_over};
    struct long_request *l = malloc(sizeof *l);
    if (!l) {
        qos_abort(sw->qos);
        return -ENOMEM;
    }
    *l = (struct long_request){.sw = sw, .r = *r};
    deferred_begin(&l->request, c, m);
    sw_kernel_plan_begin(sw, &l->plan, &work, l);
    return 0;
}

static int
handle_qos(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct qos_request r;
    struct qos_error e = {0};
    if (sw_qos_decode(m, &r, &e))
        return refuse_logged(c, m, &e);
    qos_begin(sw->qos);
    if (sw_qos_execute(sw, sw_slice_of(c), &r, &e)) {
        qos_abort(sw->qos);
        return refuse_logged(c, m, &e);
    }
    if (sw_kernel_plan_is_long(sw))
        return defer(sw, c, m, &r);
    if ((e.err = qos_commit(sw->qos, NULL, &e)))
        return refuse_logged(c, m, &e);
    carried_out(sw, conn_peer(c), m->xid, &r);
    return 0;
}

static int
may_qos(const struct slice_request *a)
{
    struct qos_request r;
    struct qos_error e = {0};
    /* A request that doesn't decode gets its error from handle_qos. */
    return sw_qos_decode(a->m, &r, &e) ? 0 : sw_slice_check_request(a, &r);
}

const struct request request_qos = {.access = ACCESS_WRITE,
                                    .slice = may_qos,
                                    .denied = SLICE_PERM,
                                    .needs = QUEUES,
                                    .blocks = true,
                                    .bundle = BUNDLE_QUEUES,
                                    .most = ANY_LENGTH,
                                    .run = handle_qos};

/* ------------------------------------------------------------------ QOS_DUMP */

static bool
collect_entry(void *ctx, const struct qos_entry *e)
{
    struct of_wr *w = ctx;
    qos_entry_encode(w, e);
    return !w->overflow;
}

static int
read_entries(struct sw *sw, const struct queue_question *q, struct of_wr *out, struct qos_error *e)
{
    return e->err = qos_dump(sw->qos, q->port, q->queue, collect_entry, out, e);
}

static int
handle_qos_dump(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_mp_experimenter *r = m->body;
    struct queue_question q = {QUEUE_REPLY_ENTRIES, of_get32(r->data.p), of_get32(r->data.p + 4),
                               read_entries};
    struct qos_error e = {0};
    int err = sw_queue_reply(sw, c, m, &q, &e);
    return e.err ? sw_qos_refuse(c, m, &e) : err;
}

int
may_ask_queues(const struct slice_request *a)
{
    const struct of_mp_experimenter *q = a->m->body;
    uint32_t no = q->data.n >= 8 ? of_get32(q->data.p) : OFPP_ANY;
    uint32_t id = q->data.n >= 8 ? of_get32(q->data.p + 4) : QOS_ALL_CLASSES;
    if (no != OFPP_ANY && !slice_has_port(a->slice, no))
        return slice_deny_port(a, SLICE_PERM, no);
    if (id != QOS_ALL_CLASSES && !slice_set_has(&a->slice->queues, id))
        return slice_deny(a, SLICE_PERM, "queue %u", (unsigned)id);
    return 0;
}

const struct request request_qos_dump = {.access = ACCESS_READ,
                                         .slice = may_ask_queues,
                                         .needs = QUEUES,
                                         .blocks = true,
                                         .least = 8,
                                         .most = 8,
                                         .run = handle_qos_dump};
