/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ------------------------------------------------------------------ the toy switch */

struct port_dump {
    struct fixture *fixture;
    uint32_t at, n;
};

static bool
port_step(struct conn_dump *d, void *ctx)
{
    struct port_dump *p = ctx;
    for (uint32_t i = 0; i < p->fixture->step_size && p->at < p->n; i++) {
        struct of_port port = {.port_no = ++p->at, .name = "toy"};
        conn_dump_add(d, &of_list_ports, &port);
    }
    return p->at < p->n;
}

static bool
bytes_step(struct conn_dump *d, void *ctx)
{
    static uint8_t entry[1000];
    struct port_dump *p = ctx;
    of_set32(entry, ++p->at);
    conn_dump_add_bytes(d, (struct of_bytes){entry, sizeof entry});
    return p->at < p->n;
}

static void
dump_done(void *ctx)
{
    struct port_dump *p = ctx;
    p->fixture->done++;
    free(p);
}

static int
toy_dump(struct fixture *f, struct conn *c, const struct of_msg *m, conn_dump_step step, uint32_t n)
{
    struct port_dump *p = calloc(1, sizeof *p);
    assert_non_null(p);
    *p = (struct port_dump){.fixture = f, .n = n};
    return conn_dump(c, m, step, dump_done, p);
}

static int
toy_multipart(struct fixture *f, struct conn *c, const struct of_msg *m)
{
    const struct of_mp_experimenter *e = m->body;
    const struct of_mp_table_features *t = m->body;
    struct of_mp_desc desc = {.mfr_desc = "toy"};
    switch (m->mp->type) {
    case OFPMP_PORT_DESC: return toy_dump(f, c, m, port_step, f->n_ports);
    case OFPMP_EXPERIMENTER:
        f->body_bytes = e->data.n;
        return toy_dump(f, c, m, bytes_step, f->n_ports);
    case OFPMP_TABLE_FEATURES: f->tables = t->tables.n; return toy_dump(f, c, m, port_step, 0);
    default: return conn_reply(c, OFPT_MULTIPART_REPLY, m, &desc);
    }
}

static int
toy_role(struct fixture *f, struct conn *c, const struct of_msg *m)
{
    const struct of_role *q = m->body;
    int err = conn_set_role(c, q->role, q->generation_id);
    if (err)
        return err;
    struct of_role reply = {.role = conn_state(c)->role};
    conn_generation(c, &reply.generation_id);
    return conn_reply(c, OFPT_ROLE_REPLY, m, &reply);
}

static int
toy_handle(void *ctx, struct conn *c, const struct of_msg *m)
{
    struct fixture *f = ctx;
    struct of_features_reply features = {.datapath_id = 1};
    f->handled++;
    switch (m->type) {
    case OFPT_FEATURES_REQUEST: return conn_reply(c, OFPT_FEATURES_REPLY, m, &features);
    case OFPT_BARRIER_REQUEST: return conn_reply(c, OFPT_BARRIER_REPLY, m, NULL);
    case OFPT_MULTIPART_REQUEST: return toy_multipart(f, c, m);
    case OFPT_ROLE_REQUEST: return toy_role(f, c, m);
    case OFPT_SET_ASYNC: conn_state(c)->async = *(const struct of_async *)m->body; return 0;
    case OFPT_FLOW_MOD:
        f->flow_mods++;
        for (struct of_flow_removed fr = {.cookie = 0}; fr.cookie < f->removes; fr.cookie++)
            channel_async(f->ch, ASYNC_FLOW_REMOVED, OFPRR_DELETE, OFPT_FLOW_REMOVED, &fr);
        return 0;
    case OFPT_METER_MOD: deferred_begin(&f->deferred, c, m); return 0;
    case OFPT_TABLE_MOD: return OF_TABLE_MOD_FAILED(BAD_TABLE);
    case OFPT_GET_CONFIG_REQUEST: return -EIO;
    default: return 0;
    }
}

/* A switch's requests, and what they take. */
static enum access
toy_access(void *ctx, struct of_bytes frame)
{
    switch (frame.p[1]) {
    case OFPT_FEATURES_REQUEST:
    case OFPT_GET_CONFIG_REQUEST:
    case OFPT_BARRIER_REQUEST:
    case OFPT_QUEUE_GET_CONFIG_REQUEST:
    case OFPT_ROLE_REQUEST:
    case OFPT_GET_ASYNC_REQUEST:
    case OFPT_SET_ASYNC: return ACCESS_READ;
    case OFPT_MULTIPART_REQUEST:
        return frame.n >= 10 && of_get16(frame.p + 8) == OFPMP_TABLE_FEATURES ? ACCESS_WRITE_BODY
                                                                              : ACCESS_READ;
    case OFPT_EXPERIMENTER:
    case OFPT_SET_CONFIG:
    case OFPT_PACKET_OUT:
    case OFPT_FLOW_MOD:
    case OFPT_GROUP_MOD:
    case OFPT_PORT_MOD:
    case OFPT_TABLE_MOD:
    case OFPT_METER_MOD:
    case OFPT_QOS_QUEUEING_DISCIPLINE: return ACCESS_WRITE;
    default: return ACCESS_NONE;
    }
}

static bool
toy_blocks(void *ctx, struct of_bytes frame)
{
    struct fixture *f = ctx;
    return f->asks_kernel &&
           (frame.p[1] == OFPT_GET_CONFIG_REQUEST || frame.p[1] == OFPT_MULTIPART_REQUEST);
}

static int
toy_later(void *ctx, struct of_bytes frame, struct deferred_copy *r)
{
    ((struct fixture *)ctx)->copy = r;
    return 0;
}

static void
toy_connected(void *ctx, struct conn *c)
{
    ((struct fixture *)ctx)->connected++;
}

static void
toy_disconnected(void *ctx, struct conn *c)
{
    ((struct fixture *)ctx)->disconnected++;
}

/* ------------------------------------------------------------------ the fixture */

int
fixture_setup(void **state)
{
    static const struct channel_ops ops = {.handle = toy_handle,
                                           .connected = toy_connected,
                                           .disconnected = toy_disconnected,
                                           .access = toy_access,
                                           .blocks = toy_blocks,
                                           .later = toy_later};
    struct fixture *f = calloc(1, sizeof *f);
    char why[200], target[120];
    assert_non_null(f);
    f->step_size = 10;
    strcpy(f->dir, "/tmp/ofqos-channel-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->socket, sizeof f->socket, "%s/s", f->dir);
    snprintf(target, sizeof target, "punix:%s", f->socket);
    assert_int_equal(loop_new(&f->loop), 0);
    assert_int_equal(channel_new(&f->ch, f->loop, &ops, f), 0);
    assert_int_equal(channel_add(f->ch, target, why, sizeof why), 0);
    *state = f;
    return 0;
}

int
fixture_teardown(void **state)
{
    struct fixture *f = *state;
    channel_free(f->ch);
    loop_free(f->loop);
    assert_int_equal(f->connected, f->disconnected);
    assert_int_equal(rmdir(f->dir), 0); /* the socket is gone */
    free(f);
    return 0;
}

static uint64_t
now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

void
fixture_turns(struct fixture *f, int ms)
{
    uint64_t end = now_ms() + (uint64_t)ms;
    do
        assert_int_equal(loop_turn(f->loop, 1), 0);
    while (now_ms() < end);
}

int
fixture_free_port(int family)
{
    int fd = socket(family, SOCK_STREAM, 0);
    struct sockaddr_storage a = {.ss_family = (sa_family_t)family};
    socklen_t len = sizeof a;
    assert_int_equal(bind(fd, (struct sockaddr *)&a, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    close(fd);
    return ntohs(((struct sockaddr_in *)(void *)&a)->sin_port); /* in the same place for IPv6 */
}

/* ------------------------------------------------------------------ peers */

struct peer *
peer_of_fd(struct fixture *f, int fd)
{
    struct peer *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->fixture = f;
    p->fd = fd;
    return p;
}

struct peer *
peer_new(struct fixture *f)
{
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, f->socket);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    fixture_turns(f, 0);
    return peer_of_fd(f, fd);
}

struct peer *
peer_open(struct fixture *f)
{
    struct peer *p = peer_new(f);
    peer_send(p, OFPT_HELLO, 1, NULL, 0);
    peer_expect(p, OFPT_HELLO, 0);
    return p;
}

void
peer_free(struct peer *p)
{
    close(p->fd);
    fixture_turns(p->fixture, 0);
    free(p);
}

void
peer_send_raw(struct peer *p, const void *bytes, size_t n)
{
    const uint8_t *b = bytes;
    uint64_t end = now_ms() + 5000;
    while (n) {
        ssize_t sent = send(p->fd, b, n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EPIPE)
            return;
        assert_true(sent >= 0 || errno == EAGAIN);
        assert_true(now_ms() < end);
        if (sent > 0) {
            b += sent;
            n -= (size_t)sent;
        }
        fixture_turns(p->fixture, 0);
    }
}

void
peer_send(struct peer *p, uint8_t type, uint32_t xid, const void *body, size_t n)
{
    static uint8_t raw[OF_MSG_MAX];
    raw[0] = OFP_VERSION;
    raw[1] = type;
    of_set16(raw + 2, (uint16_t)(n + 8));
    of_set32(raw + 4, xid);
    if (n)
        memcpy(raw + 8, body, n);
    peer_send_raw(p, raw, n + 8);
}

void
peer_request(struct peer *p, uint8_t type, uint32_t xid, const void *body)
{
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    assert_int_equal(of_encode_body(&w, type, xid, body), 0);
    peer_send_raw(p, w.buf, w.len);
    of_wr_free(&w);
}

void
peer_multipart(struct peer *p, uint16_t type, uint16_t flags, uint32_t xid, const void *body,
               size_t n)
{
    static uint8_t raw[OF_MSG_MAX];
    of_set16(raw, type);
    of_set16(raw + 2, flags);
    memset(raw + 4, 0, 4);
    if (n)
        memcpy(raw + 8, body, n);
    peer_send(p, OFPT_MULTIPART_REQUEST, xid, raw, n + 8);
}

static void
peer_read(struct peer *p)
{
    if (p->at && p->at == p->len)
        p->at = p->len = 0;
    if (p->at > sizeof p->buf / 2) {
        memmove(p->buf, p->buf + p->at, p->len - p->at);
        p->len -= p->at;
        p->at = 0;
    }
    ssize_t n = recv(p->fd, p->buf + p->len, sizeof p->buf - p->len, MSG_DONTWAIT);
    if (n > 0)
        p->len += (size_t)n;
    else if (!n || errno != EAGAIN)
        p->closed = true;
}

struct of_bytes
peer_recv(struct peer *p)
{
    for (uint64_t end = now_ms() + 2000; now_ms() < end;) {
        uint8_t *b = p->buf + p->at;
        size_t n = p->len - p->at;
        int len = of_frame_len(b, n);
        assert_true(len >= 0);
        if (len && n >= (size_t)len) {
            p->at += (size_t)len;
            return (struct of_bytes){b, (size_t)len};
        }
        if (p->closed)
            return (struct of_bytes){NULL, 0};
        peer_read(p);
        fixture_turns(p->fixture, 0);
    }
    fail_msg("no message came");
    return (struct of_bytes){NULL, 0};
}

void
peer_expect(struct peer *p, uint8_t type, uint32_t xid)
{
    struct of_bytes m = peer_recv(p);
    assert_true(m.n);
    assert_int_equal(m.p[0], OFP_VERSION);
    assert_int_equal(m.p[1], type);
    assert_int_equal(of_get32(m.p + 4), xid);
}

void
peer_expect_error(struct peer *p, uint32_t xid, uint16_t type, uint16_t code)
{
    struct of_bytes m = peer_recv(p);
    assert_true(m.n >= 12);
    assert_int_equal(m.p[1], OFPT_ERROR);
    assert_int_equal(of_get32(m.p + 4), xid);
    assert_int_equal(of_get16(m.p + 8), type);
    assert_int_equal(of_get16(m.p + 10), code);
    if (type != OFPET_HELLO_FAILED && m.n > 20) /* the request it answers */
        assert_int_equal(of_get32(m.p + 16), xid);
}

void
peer_expect_close(struct peer *p)
{
    struct of_bytes m = peer_recv(p);
    assert_int_equal(m.n, 0);
}

void
peer_expect_nothing(struct peer *p)
{
    peer_send(p, OFPT_BARRIER_REQUEST, 0xbabe, NULL, 0);
    peer_expect(p, OFPT_BARRIER_REPLY, 0xbabe);
}
