/* SPDX-License-Identifier: Apache-2.0 */
/* The commit of a bundle: all of its messages, or none.
 *
 * Flows, groups and meters change within a change set, which packets don't see before its end.  If there are many messages
 * for the tables, it stays open over many turns: a task (task/task.h).  Packets see the old tables until its end; requests
 * that read or change tables wait.
 *
 * If there are QoS requests or port-mods, the commit is a task of the netlink thread:
 * 1. QoS requests are checked and planned together.
 * 2. The tables' part is tried and undone, so that a bundle that can't succeed costs the kernel nothing, and readers see the
 *    tables as they were while
 * 3. the kernel carries out the plan (kernel-plan.h), and then the port-mods.
 * 4. The tables' part is carried out.  If 3 or 4 fails, port-mods and plan are reverted.
 */
#include "flow-mod.h"
#include "qos-request.h"
#include "rows.h"
#include "slice-check.h"

#include <admission/request.h>

#include <ports/ports.h>
#include <queues/kernel-plan.h>
#include <queues/qos-notify.h>
#include <requests/flows.h>
#include <requests/handlers.h>
#include <shared/change-set.h>

#include <daemon/log.h>
#include <oflib/fmt.h>
#include <oflib/plural.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct commit {
    struct task task;
    struct sw *sw;
    struct bundle *bundle;
    struct kernel_plan plan;
    struct of_arena arena; /* of a message */
    struct slice *slice;   /* of the connection; NULL: everything is allowed */
    bool asks_kernel;      /* it has QoS requests or port-mods */
    bool planned;          /* its QoS requests are */
    bool trying;           /* the change set is open */
    struct bundle_pos at;  /* progress */
    enum bundle_outcome outcome;
    bool timeouts, buffers; /* named by flow-mods */
    uint32_t n_ports;
    struct port_before {
        uint32_t no, config;
    } * ports;
};

static enum bundle_part
part_of(struct of_bytes message)
{
    const struct request *r = request_find(message);
    return r ? r->bundle : BUNDLE_NOT;
}

/* NULL: it has gone. */
static struct conn *
conn_of(const struct commit *k)
{
    return bundle_request(k->bundle)->conn;
}

/* Decodes a message again: it was decoded and checked when it was added. */
static int
decode(struct commit *k, struct of_bytes raw, struct of_msg *m)
{
    of_arena_reset(&k->arena);
    return of_decode(raw, &k->arena, m);
}

/* ------------------------------------------------------------------ refusals */

/* Answers the message with its error; one without an OpenFlow code becomes the nearest
 * (conn_error_of). */
static void
answer(struct commit *k, const struct of_msg *m, int err)
{
    struct conn *c = conn_of(k);
    if (err && c)
        conn_error(c, m, err > 0 ? err : conn_error_of(c, m, err));
}

static void
log_refusal(const struct commit *k, const struct of_msg *m, const char *why)
{
    const char *type = of_fmt_name(&of_fmt_OFPT, m->type);
    const struct bundle_own *own = bundle_owner(k->bundle);
    if (own) {
        own->refused(own->ctx, m->xid, why);
        return;
    }
    log_warning_by(BUNDLE, LOG_REQUEST(deferred_peer(bundle_request(k->bundle)), m->xid),
                   "the bundle failed and changed nothing, because of this %s: %s",
                   type ? type : "message", why);
}

static void
refuse_message(struct commit *k, const struct of_msg *m, int err)
{
    const char *code = err > 0 ? of_error_code_name(of_err_type(err), of_err_code(err)) : NULL;
    log_refusal(k, m, err < 0 ? strerror(-err) : code ? code : "an error");
    answer(k, m, err);
}

static void
refuse_qos(struct commit *k, const struct of_msg *m, const struct qos_error *e)
{
    log_refusal(k, m, e->text);
    answer(k, m, conn_of(k) ? sw_qos_refuse(conn_of(k), m, e) : 0);
}

/* ------------------------------------------------------------------ one message */

static int
run_qos(struct commit *k, const struct of_msg *m)
{
    struct qos_request r;
    struct qos_error e = {0};
    if (!sw_qos_decode(m, &r, &e) && !sw_qos_execute(k->sw, k->slice, &r, &e))
        return 0;
    refuse_qos(k, m, &e);
    return BUNDLE_ANSWERED;
}

/* What finish_flow_mods has to do. */
static void
note_flow_mod(struct commit *k, const struct of_flow_mod *q)
{
    k->timeouts |= q->idle_timeout || q->hard_timeout;
    k->buffers |= q->buffer_id != OFP_NO_BUFFER;
}

static int
run_port_mod(struct commit *k, const struct of_port_mod *q)
{
    const struct sw_port *p = sw_ports_find(k->sw, q->port_no);
    if (!(k->n_ports & (k->n_ports - 1))) { /* a power of two, or 0: full */
        void *v = realloc(k->ports, (k->n_ports ? k->n_ports * 2 : 1) * sizeof *k->ports);
        if (!v)
            return -ENOMEM;
        k->ports = v;
    }
    struct port_before before = {q->port_no, p ? p->config : 0};
    int err = sw_ports_mod(k->sw, q);
    if (!err)
        k->ports[k->n_ports++] = before;
    return err;
}

static int
run_message(struct commit *k, const struct of_msg *m)
{
    const struct request *r = request_find(m->raw);
    switch (r->bundle) {
    case BUNDLE_PORTS: return run_port_mod(k, m->body);
    case BUNDLE_QUEUES: return run_qos(k, m);
    default: break;
    }
    if (m->type == OFPT_FLOW_MOD)
        note_flow_mod(k, m->body);
    return r->in_change_set(k->sw, m);
}

/* Checks it again: since it was added, buffer ids may mean other packets, and the slice may have
 * other rights. */
static int
check_right(struct commit *k, const struct of_msg *m)
{
    struct qos_error e = {0};
    if (!sw_slice_check_for(k->sw, k->slice, conn_of(k), m, &e))
        return 0;
    refuse_qos(k, m, &e);
    return BUNDLE_ANSWERED;
}

/* ------------------------------------------------------------------ all of them */

enum progress { REFUSED, ALL, MORE };

/* Runs the messages of a part in order, until one fails or the turn is over. */
static enum progress
run_some(struct commit *k, struct bundle_pos *at, enum bundle_part part, uint64_t until)
{
    struct of_bytes raw;
    struct of_msg m;
    while (bundle_next(k->bundle, at, &raw)) {
        if (part_of(raw) != part)
            continue;
        int err = decode(k, raw, &m);
        if (!err)
            err = check_right(k, &m);
        if (!err)
            err = run_message(k, &m);
        if (err && err != BUNDLE_ANSWERED)
            refuse_message(k, &m, err);
        if (err)
            return REFUSED;
        if (loop_clock() >= until)
            return MORE;
    }
    return ALL;
}

static bool
run_all(struct commit *k, enum bundle_part part)
{
    struct bundle_pos at = {0};
    return run_some(k, &at, part, UINT64_MAX) == ALL;
}

static void
undo_port_mods(struct commit *k)
{
    while (k->n_ports--) {
        const struct port_before *b = &k->ports[k->n_ports];
        const struct sw_port *p = sw_ports_find(k->sw, b->no);
        struct of_port_mod back = {.port_no = b->no, .config = b->config, .mask = UINT32_MAX};
        if (!p)
            continue;
        back.mask = b->config ^ p->config;
        back.config = b->config & back.mask;
        memcpy(back.hw_addr, p->link.mac, sizeof back.hw_addr);
        sw_ports_mod(k->sw, &back);
    }
    k->n_ports = 0;
}

/* The kernel refused an operation of the nth QoS request. */
static void
refuse_nth_qos(struct commit *k, unsigned at, const struct qos_error *e)
{
    struct bundle_pos pos = {0};
    struct of_bytes raw;
    struct of_msg m;
    while (bundle_next(k->bundle, &pos, &raw))
        if (part_of(raw) == BUNDLE_QUEUES && !at-- && !decode(k, raw, &m))
            refuse_qos(k, &m, e);
}

static void
finish_flow_mods(struct commit *k)
{
    struct bundle_pos pos = {0};
    struct of_bytes raw;
    struct of_msg m;
    if (k->timeouts)
        sw_flows_expire(k->sw);
    while (k->buffers && bundle_next(k->bundle, &pos, &raw))
        if (raw.p[1] == OFPT_FLOW_MOD && !decode(k, raw, &m))
            sw_flow_mod_done(k->sw, conn_of(k), m.body);
}

static void
tell_qos(struct commit *k)
{
    struct bundle_pos pos = {0};
    struct of_bytes raw;
    struct of_msg m;
    struct qos_request r;
    struct qos_error e;
    while (bundle_next(k->bundle, &pos, &raw))
        if (part_of(raw) == BUNDLE_QUEUES && !decode(k, raw, &m) && !sw_qos_decode(&m, &r, &e))
            sw_qos_notify_request(k->sw, &r);
}

static void
begin(struct commit *k)
{
    channel_hold(k->sw->channel);
    change_set_begin();
}

static void
settle(struct commit *k, bool done)
{
    channel_release(k->sw->channel, done);
    change_set_end(done);
    if (!done)
        return;
    finish_flow_mods(k);
    tell_qos(k);
    log_info_by(BUNDLE, LOG_PEER(deferred_peer(bundle_request(k->bundle))),
                "committed a bundle of %u message%s", bundle_messages(k->bundle),
                OF_S(bundle_messages(k->bundle)));
}

static void
free_commit(struct commit *k)
{
    of_arena_free(&k->arena);
    slice_put(k->slice);
    free(k->ports);
    free(k);
}

/* ------------------------------------------------------------------ the kernel first */

static bool
kernel_agreed(void *ctx)
{
    struct commit *k = ctx;
    bool good = run_all(k, BUNDLE_PORTS);
    begin(k);
    good = good && run_all(k, BUNDLE_TABLES) && !change_set_failed();
    if (good)
        return true;
    settle(k, false);
    undo_port_mods(k);
    return false;
}

static void
over(void *ctx, bool done, unsigned at, const struct qos_error *e)
{
    struct commit *k = ctx;
    if (done)
        settle(k, true);
    else if (e)
        refuse_nth_qos(k, at, e);
    bundle_committed(&k->sw->bundles, k->bundle, done);
    free_commit(k);
}

static const struct kernel_work work = {.agreed = kernel_agreed, .over = over};

/* ------------------------------------------------------------------ commit */

/* All messages for the tables have succeeded (done), or one has failed. */
static enum bundle_outcome
go_on(struct commit *k, bool done)
{
    struct sw *sw = k->sw;
    k->trying = false;
    settle(k, done && !k->asks_kernel);
    if (done && k->asks_kernel) {
        sw_kernel_plan_begin(sw, &k->plan, &work, k);
        return BUNDLE_DEFERRED;
    }
    if (k->asks_kernel)
        qos_abort(sw->qos);
    return done ? BUNDLE_DONE : BUNDLE_FAILED;
}

static enum task_progress
plan(struct commit *k, uint64_t deadline)
{
    enum progress p = run_some(k, &k->at, BUNDLE_QUEUES, deadline);
    if (p == REFUSED) {
        qos_abort(k->sw->qos);
        k->outcome = BUNDLE_FAILED;
        return TASK_OVER;
    }
    k->planned = p == ALL;
    if (k->planned)
        k->at = (struct bundle_pos){0};
    return TASK_MORE;
}

/* A turn's work. */
static enum task_progress
run(void *ctx, uint64_t deadline)
{
    struct commit *k = ctx;
    struct sw *sw = k->sw;
    if (k->asks_kernel && !k->planned)
        return plan(k, deadline);
    if (!k->trying)
        change_set_begin();
    k->trying = true;
    channel_hold(sw->channel);
    enum progress p = run_some(k, &k->at, BUNDLE_TABLES, deadline);
    if (p != MORE) {
        k->outcome = go_on(k, p == ALL && !change_set_failed());
        return TASK_OVER;
    }
    channel_release(sw->channel, true);
    channel_stop_dumps(sw->channel);
    return TASK_MORE;
}

static void
end(void *ctx)
{
    struct commit *k = ctx;
    if (k->outcome == BUNDLE_DEFERRED) /* the kernel's part is another task */
        return;
    bundle_committed(&k->sw->bundles, k->bundle, k->outcome == BUNDLE_DONE);
    free_commit(k);
}

/* Undoes what has been done so far. */
static void
stop(void *ctx)
{
    struct commit *k = ctx;
    if (k->asks_kernel)
        qos_abort(k->sw->qos);
    if (k->trying)
        change_set_end(false);
    bundle_committed(&k->sw->bundles, k->bundle, false);
    free_commit(k);
}

static enum bundle_outcome
commit(void *ctx, struct bundle *b)
{
    static const struct task_kind tables = {.needs = TABLES | QUEUES,
                                            .locks = TABLES | QUEUES,
                                            .run = run,
                                            .end = end,
                                            .stop = stop},
                                  kernel = {.needs = TABLES | QUEUES,
                                            .locks = TABLES | QUEUES,
                                            .blocks = true,
                                            .run = run,
                                            .end = end,
                                            .stop = stop};
    struct sw *sw = ctx;
    struct commit *k = calloc(1, sizeof *k);
    if (!k)
        return BUNDLE_FAILED;
    *k =
        (struct commit){.sw = sw,
                        .bundle = b,
                        .slice = slice_hold(sw_slice_of(bundle_request(b)->conn)),
                        .asks_kernel = bundle_has(b, BUNDLE_QUEUES) || bundle_has(b, BUNDLE_PORTS)};
    of_arena_init(&k->arena, OF_ARENA_MESSAGE);
    if (k->asks_kernel)
        qos_begin(sw->qos);
    if (task_start(sw->tasks, &k->task, k->asks_kernel ? &kernel : &tables, k))
        return BUNDLE_DEFERRED;
    enum bundle_outcome outcome = k->outcome;
    free_commit(k);
    return outcome;
}

static bool
busy(void *ctx)
{
    return tasks_locked(((struct sw *)ctx)->tasks);
}

/* Checks the request's syntax and whether the connection has the right to it. */
static int
check(void *ctx, struct conn *c, const struct of_msg *m)
{
    struct qos_request r;
    struct qos_error e = {0};
    if (!sw_slice_check(ctx, c, m, &e) &&
        (part_of(m->raw) != BUNDLE_QUEUES || !sw_qos_decode(m, &r, &e)))
        return 0;
    int err = sw_qos_refuse(c, m, &e);
    return err ? err : BUNDLE_ANSWERED;
}

const struct bundle_ops sw_bundle_ops = {part_of, check, commit, busy};
