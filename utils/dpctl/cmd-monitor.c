/* SPDX-License-Identifier: Apache-2.0 */
/* monitor and ping. */
#include "qos-cmd.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void
on_signal(int number)
{
    interrupted = 1;
}

/* ------------------------------------------------------------------ what is to be told */

enum { PACKET_IN, FLOW_REMOVED, PORT_STATUS, ROLE, QOS, KINDS };
static const char *const kinds[KINDS] = {"packet-in", "flow-removed", "port-status", "role", "qos"};

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
                return bad_args(c,
                                "%s is unknown: packet-in, flow-removed, port-status, role and "
                                "qos are right",
                                w);
            wanted[k] = true;
        }
    }
    return DPCTL_OK;
}

/* Has the switch send this connection what is wanted, whatever its role; and nothing else.  What the
 * switch says of that comes among the messages; c->remote.xid is the last request's. */
static enum status
subscribe(struct ctx *c, const bool *wanted)
{
    uint32_t in = wanted[PACKET_IN] ? UINT32_MAX : 0, port = wanted[PORT_STATUS] ? UINT32_MAX : 0;
    uint32_t gone = wanted[FLOW_REMOVED] ? UINT32_MAX : 0;
    struct of_async async = {in, in, port, port, gone, gone};
    uint8_t data[8] = {0};
    of_set32(data, (wanted[QOS] ? OFPMON_QOS : 0u) | (wanted[ROLE] ? OFPMON_ROLES : 0u));
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, OFP_EXP_MONITOR, {data, sizeof data}};
    enum status st = send_body(c, OFPT_SET_ASYNC, &async);
    if (!st && (wanted[QOS] || wanted[ROLE]))
        st = send_body(c, OFPT_EXPERIMENTER, &m);
    return st;
}

/* Another maker's switch tells of no roles and queues: the end only where those were asked for. */
static enum status
refused(struct ctx *c, const struct of_msg *msg, bool all)
{
    enum status st = report_error(c, msg);
    if (!all || msg->xid != c->remote.xid)
        return st;
    fprintf(stderr, "%s: roles and queues will not be told of\n", c->where);
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
        json_qos_config(j, r);
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
        print_qos_command(w, r);
    }
    of_printf(w, "}");
}

/* What changed is shown as the request that would do it.  False: it can't be read. */
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

/* An experimenter's message that has a row becomes one by that name.  True: it is in `w` already. */
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
        fprintf(stderr, "%s: a message of type %u can't be understood (%s)\n", c->where, raw.p[1],
                code ? code : "no memory");
        return DPCTL_OK;
    }
    if (msg.type == OFPT_ERROR) {
        of_wr_free(&w);
        return refused(c, &msg, all);
    }
    if (msg.type == OFPT_EXPERIMENTER && show_experimenter(c, &w, &msg, &row))
        return put_line(c, &w);
    if (c->json)
        of_json_msg(&w, &msg);
    else
        of_print_msg(&w, &msg);
    return put_line(c, &w);
}

/* ------------------------------------------------------------------ the command */

/* Signals are let through only while waiting, so that none comes between the look at
 * `interrupted` and the wait. */
static bool
signal_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return interrupted || sigismember(&pending, SIGINT) || sigismember(&pending, SIGTERM);
}

static enum status
watch(struct ctx *c, int64_t until, bool all)
{
    struct of_bytes raw;
    enum status st = DPCTL_OK;
    while (!st && !signal_pending()) {
        int err = remote_recv(&c->remote, until, &raw);
        if (err == -ETIMEDOUT)
            break;
        if (err == -EINTR)
            continue;
        st = err ? failed(c, "%s", c->remote.why) : show_line(c, raw, all);
        of_arena_reset(&c->arena);
    }
    return st;
}

static enum status
monitor(struct ctx *c, char **words, int n)
{
    struct sigaction sa = {.sa_handler = on_signal};
    int64_t until = c->timeout_s >= 0 ? remote_now_ms() + (int64_t)c->timeout_s * 1000 : -1;
    sigset_t signals, before;
    bool wanted[KINDS];
    enum status st = parse_kinds(c, words, n, wanted);
    st = st ? st : subscribe(c, wanted);
    if (st)
        return st;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &before);
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    c->remote.sigmask = &before;
    st = watch(c, until, !n);
    c->remote.sigmask = NULL;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return st;
}

static int64_t
now_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void
print_echo(struct of_wr *w, bool json, uint64_t seq, size_t bytes, int64_t rtt_us)
{
    struct of_json j = of_json(w);
    if (!json) {
        of_printf(w, "echo %" PRIu64 ": %zu bytes, %" PRId64 " us", seq, bytes, rtt_us);
        return;
    }
    of_json_object(&j, NULL);
    of_json_uint(&j, "seq", seq);
    of_json_uint(&j, "bytes", bytes);
    of_json_uint(&j, "rtt_us", (uint64_t)rtt_us);
    of_json_end_object(&j);
}

static enum status
ping(struct ctx *c, char **words, int n)
{
    uint8_t data[56] = {0};
    uint64_t count = 1;
    if (n > 1 || (n && of_parse_number(&c->parse, "count", words[0], &of_fmt_DEC, 31, &count)))
        return n > 1 ? bad_args(c, "one number at most") : bad_parse(c, -EINVAL);
    for (uint64_t i = 0; i < count; i++) {
        struct of_echo echo = {{data, sizeof data}};
        struct of_msg reply;
        struct of_wr w = of_wr_grow(1024);
        of_set64(data, i);
        int64_t start = now_us();
        enum status st = transact(c, OFPT_ECHO_REQUEST, &echo, &reply);
        int64_t rtt = now_us() - start;
        if (st)
            return st;
        const struct of_echo *back = reply.body;
        if (reply.type != OFPT_ECHO_REPLY || back->data.n != sizeof data ||
            memcmp(back->data.p, data, sizeof data))
            return failed(c, "the echo came back changed");
        print_echo(&w, c->json, i, sizeof data, rtt);
        st = put_line(c, &w);
        if (st)
            return st;
        of_arena_reset(&c->arena);
        if (i + 1 < count)
            usleep(200000);
    }
    return DPCTL_OK;
}

static const char monitor_help[] =
    "  packet-in        packets for the controllers\n"
    "  flow-removed     flows that have expired or were deleted\n"
    "  port-status      ports that have come, gone or changed\n"
    "  role             controllers that have become master, slave or equal\n"
    "  qos              queues that were changed: by a request, by somebody else's tc, with their\n"
    "                   interface; shown as the command that would do it\n"
    "Without a KIND, all of them.  A line for each; with --json each is an object.";

const struct command monitor_commands[] = {
    {"ping", NULL, "[COUNT]", "echo requests and their round trip times", ping, NULL},
    {"monitor", NULL, "[KIND[,KIND...]]",
     "prints what the switch tells of, until SIGINT (^C) or for --timeout seconds", monitor,
     MORE(.text = monitor_help)},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
