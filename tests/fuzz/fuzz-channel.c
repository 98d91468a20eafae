/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's bytes, in pieces, to a channel whose handler answers all it can: never crashes,
 * never keeps anything once the connection is gone.
 *
 * The first byte: bit 0: a proper hello goes in front; bit 1: the peer reads nothing; bits 2 to 7:
 * the bytes are sent in pieces of so many times 17 (0: all at once). */
#include "structure.h"

#include "../../datapath/control/conn-life.h"
#include <control/bundle.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define INPUT_MAX 60000 /* a socket takes that much without being read */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const struct fuzz_format fuzz_format = FUZZ_OPENFLOW(1);

static bool
add_port(struct conn_dump *d, void *ctx)
{
    uint32_t *n = ctx;
    struct of_port port = {.port_no = *n};
    conn_dump_add(d, &of_list_ports, &port);
    return ++*n < 2000;
}

/* Flows that are encoded already, more than a message holds. */
static void
put_flows(struct of_wr *w)
{
    static struct of_wr flows;
    struct of_flow_stats flow = {0};
    void *v = &flow;
    const struct of_list one = {.n = 1, .v = &v};
    if (!flows.len) {
        flows = of_wr_grow(1 << 20);
        while (flows.len <= OF_MSG_MAX)
            of_encode_list(&flows, &of_list_flow_stats, &one);
    }
    *w = of_wr_grow(1 << 20);
    of_wr_bytes(w, flows.buf, flows.len);
}

static bool
sees_element(void *ctx, struct of_bytes element)
{
    return ++*(uint32_t *)ctx % 3;
}

static int
answer_flows(struct conn *c, const struct of_msg *m)
{
    struct of_wr w;
    struct dump_shared *s;
    uint32_t *n = calloc(1, sizeof *n);
    put_flows(&w);
    if (m->xid & 2) {
        free(n);
        return conn_dump_encoded(c, m, &w, conn_dump_len16);
    }
    int err = n ? dump_shared_new(c->ch, &w, conn_dump_len16, &s) : -ENOMEM;
    if (err) {
        free(n);
        return err;
    }
    err = conn_dump_shared(c, m, s, sees_element, free, n);
    dump_shared_put(s);
    return err;
}

static int
answer_multipart(struct conn *c, const struct of_msg *m)
{
    uint32_t *n = m->xid % 2 ? NULL : calloc(1, sizeof *n);
    if (n)
        return conn_dump(c, m, add_port, free, n);
    if (m->mp->type == OFPMP_FLOW)
        return answer_flows(c, m);
    return conn_reply(c, OFPT_MULTIPART_REPLY, m, NULL);
}

static struct bundle_room bundles;

/* Bundles with a flow-mod that deletes fail; those with a group-mod are refused with an error of
 * their own. */
static int
check(void *ctx, struct conn *c, const struct of_msg *m)
{
    if (m->type == OFPT_GROUP_MOD)
        return conn_error(c, m, OF_BAD_REQUEST(EPERM)) ? -ENOMEM : BUNDLE_ANSWERED;
    return m->type == OFPT_METER_MOD ? OF_BAD_REQUEST(EPERM) : 0;
}

static enum bundle_outcome
commit(void *ctx, struct bundle *b)
{
    struct bundle_pos pos = {0};
    struct of_bytes raw;
    struct channel *ch = bundle_request(b)->conn->ch;
    bool good = true;
    channel_hold(ch);
    while (bundle_next(b, &pos, &raw)) {
        struct of_msg m;
        struct of_port_status status = {.reason = OFPPR_MODIFY};
        if (of_decode(raw, &bundles.arena, &m))
            abort(); /* it has been decoded before */
        channel_async(ch, ASYNC_PORT_STATUS, OFPPR_MODIFY, OFPT_PORT_STATUS, &status);
        good &= m.type != OFPT_FLOW_MOD || raw.p[25] != OFPFC_DELETE;
    }
    channel_release(ch, good);
    return good ? BUNDLE_DONE : BUNDLE_FAILED;
}

/* Less is refused than a switch refuses, so that more code is reached. */
static enum access
access_of(void *ctx, struct of_bytes frame)
{
    switch (frame.p[1]) {
    case OFPT_FLOW_MOD: return ACCESS_WRITE;
    case OFPT_MULTIPART_REQUEST: return ACCESS_WRITE_BODY;
    case OFPT_PACKET_IN: return ACCESS_NONE;
    default: return ACCESS_READ;
    }
}

static enum bundle_part
part_of(struct of_bytes message)
{
    switch (message.p[1]) {
    case OFPT_FLOW_MOD:
    case OFPT_GROUP_MOD:
    case OFPT_METER_MOD: return BUNDLE_TABLES;
    case OFPT_PORT_MOD: return BUNDLE_PORTS;
    case OFPT_QOS_QUEUEING_DISCIPLINE: return BUNDLE_QUEUES;
    default: return BUNDLE_NOT;
    }
}

static int
answer(void *ctx, struct conn *c, const struct of_msg *m)
{
    static const struct of_features_reply features;
    switch (m->type) {
    case OFPT_MULTIPART_REQUEST: return answer_multipart(c, m);
    case OFPT_ROLE_REQUEST: {
        const struct of_role *q = m->body;
        int err = conn_set_role(c, q->role, q->generation_id);
        return err ? err : conn_reply(c, OFPT_ROLE_REPLY, m, q);
    }
    case OFPT_SET_ASYNC: conn_state(c)->async = *(const struct of_async *)m->body; return 0;
    case OFPT_FEATURES_REQUEST: return conn_reply(c, OFPT_FEATURES_REPLY, m, &features);
    case OFPT_BARRIER_REQUEST: return conn_reply(c, OFPT_BARRIER_REPLY, m, NULL);
    case OFPT_QOS_QUEUEING_DISCIPLINE:
        return conn_error_data(c, m, OFPET_SCHED_FAILED, OFPSFC_KERNEL, m->raw);
    case OFPT_EXPERIMENTER:
        if (((const struct of_experimenter *)m->body)->experimenter == OFP_ONF_EXPERIMENTER)
            return bundle_handle(&bundles, c, m);
        return OF_BAD_REQUEST(BAD_EXPERIMENTER);
    case OFPT_METER_MOD: return -ENOMEM;
    default: return m->xid % 3 ? 0 : OF_BAD_REQUEST(EPERM);
    }
}

static void
connected(void *ctx, struct conn *c)
{
    *(int *)ctx += 1;
}

static void
disconnected(void *ctx, struct conn *c)
{
    *(int *)ctx -= 1;
    bundle_forget(c);
}

static void
drain(int fd)
{
    static uint8_t buf[1 << 16];
    while (recv(fd, buf, sizeof buf, MSG_DONTWAIT) > 0)
        continue;
}

static void
play(struct loop *loop, struct channel *ch, int fd, uint8_t mode, struct of_bytes in)
{
    static const uint8_t hello[] = {4, 0, 0, 8, 0, 0, 0, 0};
    struct of_packet_in pin = {.data = in};
    size_t piece = mode >> 2 ? (mode >> 2) * 17u : in.n;
    if (mode & 1 && send(fd, hello, sizeof hello, MSG_DONTWAIT) < 0)
        abort();
    for (size_t at = 0; at < in.n; at += piece) {
        size_t n = in.n - at < piece ? in.n - at : piece;
        if (send(fd, in.p + at, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            break;
        loop_turn(loop, 0);
        channel_async(ch, ASYNC_PACKET_IN, OFPR_ACTION, OFPT_PACKET_IN, &pin);
        channel_packet_in(ch, 1 + (uint32_t)at % 3, &pin);
        channel_packet_ins_send(ch);
        if (!(mode & 2))
            drain(fd);
    }
    for (int i = 0; i < 8; i++) {
        loop_turn(loop, 0);
        if (!(mode & 2))
            drain(fd);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct channel_ops ops = {.handle = answer,
                                           .connected = connected,
                                           .disconnected = disconnected,
                                           .access = access_of};
    static const struct bundle_ops bundle_ops = {.part = part_of, .check = check, .commit = commit};
    static struct loop *loop;
    static struct channel *ch;
    static int open;
    struct stream *s;
    struct conn *c;
    int fd[2];
    if (!size || size > INPUT_MAX)
        return 0;
    if (!loop && (loop_new(&loop) || channel_new(&ch, loop, &ops, &open)))
        abort();
    if (!bundles.loop)
        bundle_room_init(&bundles, loop, &bundle_ops, NULL);
    ch->roles.has_generation = false;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
        abort();
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    if (stream_of_fd(fd[0], &s) || conn_new(ch, s, "fuzz", &c))
        abort();
    play(loop, ch, fd[1], data[0], (struct of_bytes){data + 1, size - 1});
    close(fd[1]);
    for (int i = 0; i < 1000 && ch->conns; i++)
        loop_turn(loop, 0);
    if (ch->conns || open || ch->out_total || ch->parts_total || ch->flush || bundles.bytes)
        abort();
    return 0;
}
