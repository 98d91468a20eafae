/* SPDX-License-Identifier: Apache-2.0 */
/* monitor: what the switch sends by itself, a line each. */
#include <core/ask.h>
#include <core/command.h>
#include <core/say.h>
#include <core/signals.h>
#include <core/view.h>
#include <queues/queues.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* ------------------------------------------------------------------ what is wanted */

enum { PACKET_IN, FLOW_REMOVED, PORT_STATUS, ROLE, QOS, PROMISE, DROPS, DELAY, KINDS };
static const char *const kinds[KINDS] = {"packet-in", "flow-removed", "port-status", "role",
                                         "qos",       "promise",      "drops",       "delay"};

/* Words of KIND[,KIND...]; none: all. */
static enum status
parse_kinds(struct ctx *c, char **words, int n, bool *wanted)
{
    for (int k = 0; k < KINDS; k++)
        wanted[k] = !n;
    for (int i = 0; i < n; i++) {
        for (char *save, *w = strtok_r(words[i], ",", &save); w; w = strtok_r(NULL, ",", &save)) {
            int k = 0;
            while (k < KINDS && strcmp(w, kinds[k]) != 0)
                k++;
            if (k == KINDS)
                return say_usage(c,
                                 "unknown kind '%s': use packet-in, flow-removed, port-status, "
                                 "role, qos, promise, drops or delay",
                                 w);
            wanted[k] = true;
        }
    }
    return DPCTL_OK;
}

/* Makes the switch send what is wanted, whatever the connection's role, and nothing else.  A
 * refusal comes among the messages; c->remote.xid is the last request's xid. */
static enum status
subscribe(struct ctx *c, const bool *wanted)
{
    uint32_t in = wanted[PACKET_IN] ? UINT32_MAX : 0, port = wanted[PORT_STATUS] ? UINT32_MAX : 0;
    uint32_t gone = wanted[FLOW_REMOVED] ? UINT32_MAX : 0;
    struct of_async async = {in, in, port, port, gone, gone};
    uint8_t data[8] = {0};
    uint32_t what = (wanted[QOS] ? OFPMON_QOS : 0u) | (wanted[ROLE] ? OFPMON_ROLES : 0u) |
                    (wanted[PROMISE] ? OFPMON_PROMISES : 0u) | (wanted[DROPS] ? OFPMON_DROPS : 0u) |
                    (wanted[DELAY] ? OFPMON_DELAYS : 0u);
    of_set32(data, what);
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, OFP_EXP_MONITOR, {data, sizeof data}};
    enum status st = ask_send(c, OFPT_SET_ASYNC, &async);
    if (!st && what)
        st = ask_send(c, OFPT_EXPERIMENTER, &m);
    return st;
}

/* A switch of another maker does not report roles and queues: an error only where those were asked
 * for. */
static enum status
report_refusal(struct ctx *c, const struct of_msg *msg, bool all)
{
    enum status st = view_error(c, msg);
    if (!all || msg->xid != c->remote.xid)
        return st;
    fprintf(stderr, "%s: this switch does not report roles and queues\n", c->where);
    return DPCTL_OK;
}

/* ------------------------------------------------------------------ a message, a line */

static void
json_change(struct of_wr *w, const struct of_qos_changed *q, const struct qos_request *r)
{
    struct of_json json = of_json(w), *j = &json;
    of_json_object(j, NULL);
    of_json_text(j, "message", "qos_changed");
    of_json_uint(j, "xid", 0);
    of_json_number(j, "cause", &of_fmt_OFPQC, q->cause);
    of_json_number(j, "port_no", &of_fmt_PORT, q->port_no);
    of_json_uint(j, "objects", q->objects);
    of_json_uint(j, "serial", q->serial);
    if (r) {
        of_json_text(j, "direction", r->values.v[QOS_DIRECTION] ? "in" : "out");
        of_json_text(j, "action", qos_action_name(r->action_type));
        of_json_text(j, "object", qos_object_name(r->object_type));
        of_json_text(j, "sched", r->sched->name);
        of_json_uint(j, "class_id", r->class_id);
        queues_json_config(j, r);
    }
    of_json_end_object(j);
}

static void
print_change(struct of_wr *w, const struct of_qos_changed *q, const struct qos_request *r)
{
    of_printf(w, "qos_changed{cause=");
    of_print_number(w, &of_fmt_OFPQC, q->cause);
    of_printf(w, ", port=");
    of_print_number(w, &of_fmt_PORT, q->port_no);
    of_printf(w, ", objects=%" PRIu32 ", serial=%" PRIu32, q->objects, q->serial);
    if (r) {
        of_printf(w, ", ");
        queues_print_command(w, r);
    }
    of_printf(w, "}");
}

/* Shows the change as the request that would make it.  False: it is malformed. */
static bool
show_change(struct ctx *c, struct of_wr *w, const struct of_qos_changed *q)
{
    struct qos_request r;
    struct qos_error e = {0};
    bool some = q->content.n;
    if (some && qos_request_decode(&r, q->content.p, q->content.n, &e))
        return false;
    (c->json ? json_change : print_change)(w, q, some ? &r : NULL);
    return true;
}

/* Gives an experimenter message that has a row that row.  True: it is printed already. */
static bool
show_experimenter(struct ctx *c, struct of_wr *w, struct of_msg *msg, struct of_msg_row *row)
{
    const struct of_experimenter *m = msg->body;
    const struct of_exp_row *x = of_exp_row(m);
    void *body;
    if (!x || of_decode_struct(m->data, x->body, &c->arena, &body))
        return false;
    if (x->body == &of_row_qos_changed && show_change(c, w, body))
        return true;
    *row = (struct of_msg_row){msg->type, x->name, x->body};
    msg->row = row;
    msg->body_row = x->body;
    msg->body = body;
    return false;
}

static enum status
show_line(struct ctx *c, struct of_bytes raw, bool all)
{
    struct of_msg msg;
    struct of_msg_row row;
    struct of_wr w = of_wr_grow(1 << 24);
    int err = of_decode(raw, &c->arena, &msg);
    if (err) {
        const char *code = err > 0 ? of_error_code_name(of_err_type(err), of_err_code(err)) : NULL;
        of_wr_free(&w);
        fprintf(stderr, "%s: a message of type %u is malformed (%s)\n", c->where, raw.p[1],
                code ? code : "no memory");
        return DPCTL_OK;
    }
    if (msg.type == OFPT_ERROR) {
        of_wr_free(&w);
        return report_refusal(c, &msg, all);
    }
    if (msg.type == OFPT_EXPERIMENTER && show_experimenter(c, &w, &msg, &row))
        return view_line(c, &w);
    if (c->json)
        of_json_msg(&w, &msg);
    else
        of_print_msg(&w, &msg);
    return view_line(c, &w);
}

/* ------------------------------------------------------------------ the command */

static enum status
watch(struct ctx *c, int64_t until, bool all)
{
    struct of_bytes raw;
    enum status st = DPCTL_OK;
    while (!st && !signals_pending()) {
        int err = remote_recv(&c->remote, until, &raw);
        if (err == -ETIMEDOUT)
            break;
        if (err == -EINTR)
            continue;
        st = err ? say_failed(c, "%s", c->remote.why) : show_line(c, raw, all);
        of_arena_reset(&c->arena);
    }
    return st;
}

static enum status
monitor(struct ctx *c, const struct command *self, char **words, int n)
{
    int64_t until = c->timeout_s >= 0 ? remote_now_ms() + (int64_t)c->timeout_s * 1000 : -1;
    sigset_t before;
    bool wanted[KINDS];
    enum status st;
    if ((st = parse_kinds(c, words, n, wanted)) || (st = subscribe(c, wanted)))
        return st;
    signals_hold(&before);
    c->remote.sigmask = &before;
    st = watch(c, until, !n);
    c->remote.sigmask = NULL;
    signals_release(&before);
    return st;
}

static const char monitor_help[] =
    "  packet-in        packets for the controllers\n"
    "  flow-removed     flows that expired or were deleted\n"
    "  port-status      ports that were added, removed or changed\n"
    "  role             controllers that became master, slave or equal\n"
    "  qos              queues that were changed: by a request, by another program's tc, with their\n"
    "                   interface; shown as the command that would make the change\n"
    "  promise          classes with promise=TIME that got less than their rate for so long, and that\n"
    "                   get it again\n"
    "  drops            classes with promise=TIME that dropped packets for so long, and no longer do\n"
    "  delay            classes with delay=TIME in which packets wait longer, and no longer do\n"
    "Without a KIND, all of them.  Each is a line; with --json, an object.";

static const struct command rows[] = {
    {.name = "monitor",
     .subject = SUBJECT_WATCH,
     .args = "[KIND[,KIND...]]",
     .help = "prints the switch's notifications, until SIGINT (^C) or for --timeout seconds",
     .text = monitor_help,
     .examples = "monitor\nmonitor port-status,qos",
     .bridge = 2,
     .run = monitor,
     .asks = true},
};

const struct command_table commands_monitor = COMMAND_TABLE(rows);
