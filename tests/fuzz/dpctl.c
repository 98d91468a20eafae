/* SPDX-License-Identifier: Apache-2.0 */
/* The world around dpctl: core/remote.h, core/signals.h, core/file.h and top's terminal.h once more, and the few
 * calls of libc that would reach beyond the process (meson.build wraps them).
 *
 * The switch answers each request with the next message of the input or, when that does not fit, with a
 * reply of its own: two ports, a tree of queues, otherwise zeros.  After CALLS_MAX calls it is gone, so that
 * commands that go on for ever end. */
#include "dpctl.h"

#include <core/file.h>
#include <core/local.h>
#include <core/signals.h>
#include <qos/wire/entry.h>
#include <stream/address.h>

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <terminal.h>
#include <unistd.h>

#define CALLS_MAX   200
#define PENDING_MAX 16

int dpctl_main(int argc, char **argv);

static struct {
    const struct fuzz_world *world;
    size_t at;      /* in world->answers */
    size_t key;     /* in world->keys */
    unsigned calls; /* of the switch and the clock */
    int64_t us;     /* the time */
    uint32_t xid;   /* of the last message */
    struct request {
        uint32_t xid, exp_type;
        uint16_t mp;
        uint8_t type;
    } pending[PENDING_MAX]; /* what has no answer yet */
    unsigned n;
} now;

static struct of_arena arena;

/* ------------------------------------------------------------------ time and signals */

void
signals_hold(sigset_t *before)
{
    sigemptyset(before);
}

void
signals_release(const sigset_t *before)
{
}

bool
signals_pending(void)
{
    return ++now.calls > CALLS_MAX;
}

int64_t
signals_clock_us(clockid_t clock)
{
    now.calls++;
    return now.us += 100;
}

int64_t
remote_now_ms(void)
{
    return signals_clock_us(CLOCK_MONOTONIC) / 1000;
}

/* ------------------------------------------------------------------ files, and what leaves the process */

enum status
file_replace(struct ctx *c, const char *path, struct of_bytes content)
{
    return DPCTL_OK;
}

enum status
file_read(struct ctx *c, const char *path, size_t most, struct of_wr *out)
{
    *out = of_wr_grow(most);
    of_wr_bytes(out, now.world->file.p, now.world->file.n);
    return DPCTL_OK;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
FILE *__wrap_freopen(const char *path, const char *mode, FILE *f);
FILE *__wrap_freopen64(const char *path, const char *mode, FILE *f);
unsigned __wrap_alarm(unsigned seconds);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_usleep(useconds_t us);
int __wrap_nanosleep(const struct timespec *ts, struct timespec *left);
int __wrap_isatty(int fd);

/* dpctl's own are closed on exec ("e"); the others are libFuzzer's. */
FILE *
__wrap_fopen(const char *path, const char *mode)
{
    static char none[1];
    if (!strchr(mode, 'e'))
        return __real_fopen(path, mode);
    const struct of_bytes *f = &now.world->file;
    if (*mode == 'r')
        return f->n ? fmemopen((void *)(uintptr_t)f->p, f->n, "r") : fmemopen(none, 1, "r");
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    return fd < 0 ? NULL : fdopen(fd, "w");
}

FILE *
__wrap_fopen64(const char *path, const char *mode)
{
    return __wrap_fopen(path, mode);
}

/* Completion's stderr, which goes on to be heard here. */
FILE *
__wrap_freopen(const char *path, const char *mode, FILE *f)
{
    return f;
}

FILE *
__wrap_freopen64(const char *path, const char *mode, FILE *f)
{
    return f;
}

unsigned
__wrap_alarm(unsigned seconds)
{
    return 0;
}

int
__wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                   struct addrinfo **out)
{
    return EAI_FAIL;
}

int
__wrap_socket(int domain, int type, int protocol)
{
    errno = EPERM;
    return -1;
}

int
__wrap_usleep(useconds_t us)
{
    now.us += us;
    return 0;
}

int
__wrap_nanosleep(const struct timespec *ts, struct timespec *left)
{
    now.us += (int64_t)ts->tv_sec * 1000000 + ts->tv_nsec / 1000;
    return 0;
}

int
__wrap_isatty(int fd)
{
    return now.world->keys != NULL;
}

bool
local_switch(const char *name, char *path, size_t size)
{
    snprintf(path, size, "unix:/run/br0.sock");
    return !strcmp(name, "br0");
}

unsigned
local_switches(char *names, size_t size)
{
    snprintf(names, size, "br0");
    return 1;
}

/* ------------------------------------------------------------------ the terminal */

bool
terminal_is_there(void)
{
    return now.world->keys;
}

void
terminal_hold(struct terminal *t, sigset_t *ending)
{
    sigemptyset(ending);
}

void
terminal_release(struct terminal *t)
{
}

void
terminal_measure(struct terminal *t)
{
    t->rows = 24;
    t->columns = 80;
}

void
terminal_enter(struct terminal *t)
{
    terminal_measure(t);
}

void
terminal_leave(void)
{
}

bool
terminal_resized(struct terminal *t)
{
    return false;
}

static bool
is_typed(void)
{
    return now.world->keys && now.world->keys[now.key];
}

/* U and D: up and down; those beyond have no letter here. */
int
terminal_key(void)
{
    char k = is_typed() ? now.world->keys[now.key++] : 'Q';
    return k == 'U'    ? KEY_UP
           : k == 'D'  ? KEY_DOWN
           : k == 'E'  ? KEY_PAGE_DOWN
           : k == '\n' ? KEY_ENTER
                       : k;
}

/* ------------------------------------------------------------------ the switch's own replies */

static void
put_class(struct of_wr *w, uint32_t id, uint32_t parent, uint64_t rate)
{
    struct qos_entry e = {.config = {.sched = qos_sched_by_id(OFP_QOS_SCHED_HTB),
                                     .object_type = OFP_QOS_CLASS,
                                     .port_no = 1,
                                     .class_id = id},
                          .parent_id = parent};
    qos_put(&e.config.values, QOS_RATE, rate);
    qos_put(&e.config.values, QOS_CEIL, 12500000);
    qos_entry_encode(w, &e);
}

static void
put_experimenter(struct of_wr *w, uint32_t exp_type)
{
    struct qos_tree tree = {
        .port_no = 1, .sched = qos_sched_by_id(OFP_QOS_SCHED_HTB), .n_queues = 3};
    switch (exp_type) {
    case OFP_QOS_EXP_DUMP:
        put_class(w, 0, 0, 12500000);
        put_class(w, 1, 0, 3750000);
        put_class(w, 10, 0, 750000);
        put_class(w, 11, 10, 125000);
        break;
    case OFP_EXP_QOS_PORTS: qos_tree_encode(w, &tree); break;
    case OFP_EXP_KERNEL:
        of_wr_bytes(w,
                    "6.1.0-test\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                    "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
                    64);
        for (unsigned i = 0; i < 64; i++)
            of_wr_bytes(w, (const uint8_t[]){(uint8_t)i, 1, 0, 0}, 4);
        break;
    default: break;
    }
}

static void
encode_multipart(struct of_wr *w, const struct request *q)
{
    static _Alignas(16) uint8_t zeros[1 << 16];
    static struct of_port p[] = {{.port_no = 1, .name = "eth1"}, {.port_no = 2, .name = "eth2"}};
    static void *v[] = {&p[0], &p[1]};
    const struct of_mp_port_desc_reply ports = {.ports = {.n = 2, .v = v}};
    struct of_wr data = of_wr_grow(1 << 14);
    struct of_mp_experimenter exp = {.experimenter = OFP_QOS_EXPERIMENTER, .exp_type = q->exp_type};
    const void *body = zeros;
    if (q->mp == OFPMP_PORT_DESC)
        body = &ports;
    if (q->mp == OFPMP_EXPERIMENTER) {
        put_experimenter(&data, q->exp_type);
        exp.data = (struct of_bytes){data.buf, data.len};
        body = &exp;
    }
    of_encode_multipart(w, OFPT_MULTIPART_REPLY, q->xid, q->mp, 0, body);
    of_wr_free(&data);
}

static void
encode_reply(struct of_wr *w, const struct request *q)
{
    static _Alignas(16) uint8_t zeros[1 << 16];
    static const uint8_t control[8] = {0, 0, 0, 1, 0, 1, 0, 3};
    const struct of_experimenter bundle = {
        OFP_ONF_EXPERIMENTER, OFP_ONF_BUNDLE_CONTROL, {control, sizeof control}};
    if (q->type == OFPT_MULTIPART_REQUEST)
        encode_multipart(w, q);
    else if (q->type == OFPT_EXPERIMENTER)
        of_encode_body(w, OFPT_EXPERIMENTER, q->xid, &bundle);
    else
        of_encode_body(w, q->type + 1, q->xid, of_msg_row(q->type + 1)->body ? zeros : NULL);
}

/* ------------------------------------------------------------------ the connection */

static bool
has_reply(const uint8_t *p, size_t n)
{
    switch (p[1]) {
    case OFPT_EXPERIMENTER:
        return n >= 16 && of_get32(p + 8) == OFP_ONF_EXPERIMENTER &&
               of_get32(p + 12) == OFP_ONF_BUNDLE_CONTROL;
    case OFPT_ECHO_REQUEST:
    case OFPT_FEATURES_REQUEST:
    case OFPT_GET_CONFIG_REQUEST:
    case OFPT_MULTIPART_REQUEST:
    case OFPT_BARRIER_REQUEST:
    case OFPT_QUEUE_GET_CONFIG_REQUEST:
    case OFPT_ROLE_REQUEST:
    case OFPT_GET_ASYNC_REQUEST: return true;
    default: return false;
    }
}

static void
take_request(const uint8_t *p, size_t n)
{
    struct of_msg m;
    int err = of_decode((struct of_bytes){p, n}, &arena, &m);
    of_arena_reset(&arena);
    if (err) {
        fprintf(stderr, "dpctl sent a message of type %u that does not decode: 0x%x\n", p[1],
                (unsigned)err);
        abort();
    }
    now.xid = of_get32(p + 4);
    if (!has_reply(p, n) || now.n == PENDING_MAX)
        return;
    struct request *q = &now.pending[now.n++];
    *q = (struct request){.xid = now.xid, .type = p[1]};
    if (q->type == OFPT_MULTIPART_REQUEST) {
        q->mp = of_get16(p + 8);
        q->exp_type = q->mp == OFPMP_EXPERIMENTER ? of_get32(p + 20) : 0;
    }
}

int
remote_send(struct remote *r, const uint8_t *p, size_t n)
{
    for (size_t at = 0, len; at < n; at += len) {
        int whole = of_frame_len(p + at, n - at);
        len = whole > 0 ? (size_t)whole : 0;
        if (!len || len > n - at)
            abort();
        take_request(p + at, len);
    }
    return 0;
}

static bool
is_async(uint8_t type)
{
    return type == OFPT_PACKET_IN || type == OFPT_FLOW_REMOVED || type == OFPT_PORT_STATUS;
}

static void
answered(void)
{
    if (now.n)
        memmove(now.pending, now.pending + 1, --now.n * sizeof now.pending[0]);
}

/* Whether a message can be the answer to the request.  One with an odd xid is sent in any case: the switch may
 * say anything. */
static bool
fits(const struct request *q, const uint8_t *p, size_t n)
{
    if (of_get32(p + 4) & 1 || p[1] == OFPT_ERROR)
        return true;
    if (p[1] != q->type + (q->type != OFPT_EXPERIMENTER))
        return false;
    if (q->type != OFPT_MULTIPART_REQUEST || n < 16)
        return true;
    return of_get16(p + 8) == q->mp &&
           (q->mp != OFPMP_EXPERIMENTER || (n >= 24 && of_get32(p + 20) == q->exp_type));
}

/* The input's next message, in the connection's buffer. */
static bool
given(struct remote *r, struct of_bytes *msg)
{
    const struct of_bytes *all = &now.world->answers;
    int len = now.at < all->n ? of_frame_len(all->p + now.at, all->n - now.at) : 0;
    if (len <= 0 || (size_t)len > all->n - now.at)
        return false;
    const uint8_t *p = all->p + now.at;
    if (now.n && !is_async(p[1]) && !fits(&now.pending[0], p, (size_t)len))
        return false;
    memcpy(r->buf, p, (size_t)len);
    now.at += (size_t)len;
    *msg = (struct of_bytes){r->buf, (size_t)len};
    if (is_async(p[1]))
        return true;
    of_set32(r->buf + 4, now.n ? now.pending[0].xid : now.xid);
    bool more = p[1] == OFPT_MULTIPART_REPLY && len >= 16 && of_get16(p + 10) & OFPMPF_REPLY_MORE;
    if (!more)
        answered();
    return true;
}

static int
gone(struct remote *r, int err)
{
    snprintf(r->why, sizeof r->why, "no answer");
    return err;
}

int
remote_recv(struct remote *r, int64_t until, struct of_bytes *msg)
{
    if (!r->stream || ++now.calls > CALLS_MAX)
        return gone(r, -ECONNRESET);
    if (given(r, msg))
        return 0;
    if (!now.n) {
        now.us = until * 1000 > now.us ? until * 1000 : now.us;
        now.calls += until < 0 ? CALLS_MAX : 0;
        return gone(r, until < 0 ? -EINTR : -ETIMEDOUT);
    }
    struct of_wr w = of_wr_fixed(r->buf, sizeof r->buf);
    encode_reply(&w, &now.pending[0]);
    answered();
    *msg = (struct of_bytes){r->buf, w.len};
    return 0;
}

int
remote_recv_alive(struct remote *r, int64_t *until, struct of_bytes *msg)
{
    return remote_recv(r, *until, msg);
}

int
remote_idle(struct remote *r, int64_t ms, const sigset_t *mask, int fd)
{
    if (++now.calls > CALLS_MAX)
        return gone(r, -ECONNRESET);
    if (fd >= 0 && is_typed()) {
        now.us += 1000;
        return 1;
    }
    now.us += ms * 1000;
    return 0;
}

int
remote_open(struct remote *r, const char *address, int timeout_ms)
{
    static char connected;
    if (++now.calls > CALLS_MAX)
        return gone(r, -ECONNREFUSED);
    r->address = address;
    r->timeout_ms = timeout_ms;
    r->stream = (struct stream *)(void *)&connected;
    r->xid = 0;
    now.n = 0;
    return 0;
}

int
remote_reopen(struct remote *r)
{
    return remote_open(r, r->address, r->timeout_ms);
}

void
remote_close(struct remote *r)
{
    r->stream = NULL;
}

bool
remote_is_address(const char *text)
{
    return stream_is_address(text) || *text == '/';
}

bool
remote_may_be_address(const char *text, bool needed)
{
    return stream_is_address(text) || (needed && *text == '/');
}

const char *
remote_usual(void)
{
    return "unix:";
}

/* ------------------------------------------------------------------ a run */

/* What is said there; the caller empties it by rewind(). */
static FILE *
listen_to(char **text, size_t *n)
{
    FILE *f = open_memstream(text, n);
    if (!f)
        abort();
    return f;
}

void
fuzz_dpctl(char **words, int n, const struct fuzz_world *world)
{
    static FILE *out, *err;
    static char *said, *printed;
    static size_t n_said, n_printed;
    char name[] = "dpctl", *argv[DPCTL_WORDS_MAX + 2] = {name};
    if (!out) {
        out = listen_to(&printed, &n_printed);
        err = listen_to(&said, &n_said);
        of_arena_init(&arena, 64 << 20);
    }
    n = n < DPCTL_WORDS_MAX ? n : DPCTL_WORDS_MAX;
    memcpy(argv + 1, words, (size_t)n * sizeof *words);
    memset(&now, 0, sizeof now);
    now.world = world;
    rewind(out);
    rewind(err);
    optind = 0;  /* begins anew */
#ifdef __GLIBC__ /* elsewhere they are constant, and dpctl is heard */
    FILE *const old_out = stdout, *const old_err = stderr;
    stdout = out;
    stderr = err;
#endif
    int status = dpctl_main(n + 1, argv);
#ifdef __GLIBC__
    stdout = old_out;
    stderr = old_err;
    fflush(err);
    if (status && !n_said)
        abort();
#endif
    of_arena_reset(&arena);
}
