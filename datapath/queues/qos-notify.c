/* SPDX-License-Identifier: Apache-2.0 */
#include <queues/qos-notify.h>
#include <switch/switch.h>

#include <qos/diff/diff.h>

#include <errno.h>
#include <stdlib.h>

static bool
is_wanted(const struct sw *sw)
{
    return channel_wants(sw->channel, ASYNC_QOS, 0);
}

static void
tell(struct sw *sw, enum ofp_qos_cause cause, uint32_t port_no, uint64_t objects,
     struct of_bytes content)
{
    struct of_qos_changed changed = {.cause = (uint8_t)cause,
                                     .port_no = port_no,
                                     .objects = (uint32_t)objects,
                                     .serial = ++sw->qos_changes,
                                     .content = content};
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    of_encode_struct(&w, &of_row_qos_changed, &changed);
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, OFP_EXP_QOS_CHANGED, {w.buf, w.len}};
    channel_async(sw->channel, ASYNC_QOS, 0, OFPT_EXPERIMENTER, &m);
    of_wr_free(&w);
}

static void
tell_request(struct sw *sw, enum ofp_qos_cause cause, const struct qos_request *r)
{
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    qos_request_encode(&w, r);
    tell(sw, cause, r->port_no, 0, (struct of_bytes){w.buf, w.len});
    of_wr_free(&w);
}

void
sw_qos_notify_request(struct sw *sw, const struct qos_request *r)
{
    if (is_wanted(sw))
        tell_request(sw, OFPQC_REQUEST, r);
}

/* ------------------------------------------------------------------ snapshots */

static bool
take_entry(void *ctx, const struct qos_entry *e)
{
    struct queue_snapshot *v = ctx;
    if (v->n == v->cap) {
        size_t cap = v->cap ? v->cap * 2 : 64;
        struct qos_entry *more = reallocarray(v->v, cap, sizeof *more);
        if (!more)
            return false;
        v->v = more;
        v->cap = cap;
    }
    v->v[v->n++] = *e;
    return true;
}

struct queue_snapshot
sw_queue_snapshot(struct sw *sw, uint32_t port_no)
{
    struct queue_snapshot v = {.port_no = port_no, .wanted = is_wanted(sw)};
    if (v.wanted)
        qos_each_entry(sw->qos, port_no, take_entry, &v);
    return v;
}

/* ------------------------------------------------------------------ changes that nobody requested
 */

static bool
tell_step(void *ctx, const struct qos_request *step)
{
    tell_request(ctx, OFPQC_FOREIGN, step);
    return true;
}

/* Reports what changed in one direction of the port, as the requests that would have done it. */
static int
tell_steps(struct sw *sw, const struct queue_snapshot *before, const struct queue_snapshot *now,
           enum qos_direction dir)
{
    const struct sw_port *p = sw_ports_find(sw, before->port_no);
    struct qos_request *want = calloc(now->n + 1, sizeof *want);
    struct qos_diff d = {.port = {.port_no = p->no, .dir = dir, .env = sw_port_env(p)},
                         .now = before->v,
                         .n_now = before->n,
                         .want = want,
                         .fn = tell_step,
                         .ctx = sw};
    struct qos_error e;
    for (size_t i = 0; want && i < now->n; i++) {
        const struct qos_request *r = &now->v[i].config;
        bool in = r->values.v[QOS_DIRECTION];
        if (in == (dir == QOS_IN) && r->class_id != QOS_CLASS_DEFAULT)
            want[d.n_want++] = *r;
    }
    int err = want ? qos_diff(&d, &e) : -ENOMEM;
    free(want);
    return err;
}

void
sw_qos_notify_foreign(struct sw *sw, struct queue_snapshot *before, uint64_t changed,
                      uint64_t repaired)
{
    uint32_t no = before->port_no;
    if (!before->wanted) {
        sw_queue_snapshot_free(before);
        return;
    }
    struct queue_snapshot now = sw_queue_snapshot(sw, no);
    bool adopted = sw->opt.qos_foreign == QOS_FOREIGN_ADOPT;
    if (repaired)
        tell(sw, OFPQC_REPAIRED, no, repaired, (struct of_bytes){0});
    else if (changed && (!adopted || tell_steps(sw, before, &now, QOS_OUT) ||
                         tell_steps(sw, before, &now, QOS_IN)))
        tell(sw, OFPQC_FOREIGN, no, changed, (struct of_bytes){0});
    sw_queue_snapshot_free(&now);
    sw_queue_snapshot_free(before);
}

void
sw_qos_notify_interface(struct sw *sw, struct queue_snapshot *before, bool back)
{
    struct queue_snapshot now = sw_queue_snapshot(sw, before->port_no);
    if (before->n)
        tell(sw, back ? OFPQC_BACK : OFPQC_GONE, before->port_no, back ? now.n : 0,
             (struct of_bytes){0});
    sw_queue_snapshot_free(&now);
    sw_queue_snapshot_free(before);
}

void
sw_queue_snapshot_free(struct queue_snapshot *v)
{
    free(v->v);
    *v = (struct queue_snapshot){0};
}
