/* SPDX-License-Identifier: Apache-2.0 */
#include <core/remote.h>

#include <core/local.h>

#include <oflib/text.h>
#include <stream/address.h>

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

__attribute__((format(printf, 3, 4))) static int
fail(struct remote *r, int err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, ap);
    va_end(ap);
    return err;
}

int64_t
remote_now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Waits until the stream is ready for these events. */
static int
wait_for(struct remote *r, uint32_t events, int64_t until)
{
    struct pollfd pfd = {.fd = stream_fd(r->stream),
                         .events = (short)stream_wait_for(r->stream, events)};
    int n;
    do {
        struct timespec left = {0, 0};
        int64_t ms = until < 0 ? 0 : until - remote_now_ms();
        if (ms > 0)
            left = (struct timespec){ms / 1000, ms % 1000 * 1000000};
        n = ppoll(&pfd, 1, until < 0 ? NULL : &left, r->sigmask);
    } while (n < 0 && errno == EINTR && !r->sigmask);
    if (n < 0)
        return fail(r, -errno, "poll: %s", strerror(errno));
    return n ? 0 : fail(r, -ETIMEDOUT, "no answer within the time set by --timeout");
}

/* --------------------------------------------------------------- connecting */

/* Says who may use the socket. */
static int
not_allowed(struct remote *r, const char *path)
{
    struct stat st;
    if (stat(path, &st))
        return fail(r, -EACCES, "%s: you may not enter its directory: run dpctl with sudo", path);
    const struct passwd *user = getpwuid(st.st_uid);
    const struct group *group = getgrgid(st.st_gid);
    const char *group_name = group ? group->gr_name : "?";
    return fail(r, -EACCES,
                "%s: not allowed: the socket is for user %s and group %s (mode %03o): "
                "run dpctl with sudo, or %s%s",
                path, user ? user->pw_name : "?", group_name, (unsigned)(st.st_mode & 0777),
                st.st_gid ? "as a member of group "
                          : "give the socket to a group of yours, with "
                            "ofdatapath --socket-group=GROUP",
                st.st_gid ? group_name : "");
}

static int
cannot_local(struct remote *r, const char *path, int err)
{
    struct stat st;
    bool there = !stat(path, &st);
    if (err == -EACCES || err == -EPERM)
        return not_allowed(r, path);
    if (there && !S_ISSOCK(st.st_mode))
        return fail(r, err, "%s: %s is there, not a switch's socket", path,
                    S_ISDIR(st.st_mode)   ? "a directory"
                    : S_ISREG(st.st_mode) ? "a file"
                                          : "a device");
    char names[128];
    if (!there && !strcmp(path, stream_default_socket) && local_switches(names, sizeof names) > 1)
        return fail(r, err, "several switches run here: %s; name one, such as: dpctl %.*s features",
                    names, (int)strcspn(names, ","), names);
    if (err == -ENOENT || err == -ECONNREFUSED)
        return fail(r, err,
                    "no switch listens at %s: is ofdatapath running, and started with "
                    "punix:%s?",
                    path, strcmp(path, stream_default_socket) ? path : "");
    return fail(r, err, "%s: %s", path, strerror(-err));
}

static int
cannot(struct remote *r, const struct stream_address *to, int err, const char *why)
{
    if (to->local)
        return cannot_local(r, to->host, err);
    return fail(r, err, "%s port %s: %s%s", to->host, to->port, why,
                err == -ECONNREFUSED ? to->tls ? " (no switch listens there: start it with ptls:)"
                                               : " (no switch listens there: start it with ptcp:)"
                                     : "");
}

static int
try_address(struct remote *r, const struct stream_remote *to, unsigned i)
{
    int64_t until = remote_now_ms() + r->timeout_ms;
    int err = stream_connect(to, i, &r->stream), waited = 0;
    if (err)
        return cannot(r, &to->name, err, strerror(-err));
    while ((err = stream_open(r->stream)) == -EAGAIN && !waited)
        waited = wait_for(r, POLLOUT, until);
    if (!err)
        return 0;
    cannot(r, &to->name, err, waited ? strerror(-waited) : stream_why(r->stream));
    remote_close(r);
    return waited ? waited : err;
}

/* A path without "unix:" is a Unix socket's. */
static int
connect_to(struct remote *r, const char *address)
{
    struct stream_remote to;
    char text[300];
    bool whole = stream_is_address(address);
    if (whole || !local_switch(address, text, sizeof text))
        snprintf(text, sizeof text, "%s%s", whole ? "" : "unix:", address);
    int err = stream_resolve(text, r->tls, &to, r->why, sizeof r->why);
    if (err)
        return err;
    for (unsigned i = 0; i < to.n; i++)
        if (!(err = try_address(r, &to, i)))
            break;
    return err;
}

/* A path, rather than a word with a slash in it. */
static bool
is_path(const char *text)
{
    return *text == '/' || !strncmp(text, "./", 2) || !strncmp(text, "../", 3);
}

bool
remote_is_address(const char *text)
{
    return stream_is_address(text) || is_path(text) || (strchr(text, '/') && !strchr(text, '='));
}

bool
remote_may_be_address(const char *text, bool needed)
{
    struct stat st;
    if (stream_is_address(text))
        return true;
    return !stat(text, &st) ? S_ISSOCK(st.st_mode) : needed && is_path(text);
}

const char *
remote_usual(void)
{
    static char only[300];
    char names[256];
    struct stat st;
    if (stat(stream_default_socket, &st) && local_switches(names, sizeof names) == 1 &&
        local_switch(names, only, sizeof only))
        return only;
    return "unix:";
}

/* ---------------------------------------------------------------- messages */

int
remote_send(struct remote *r, const uint8_t *p, size_t n)
{
    int64_t until = remote_now_ms() + r->timeout_ms;
    while (n) {
        ssize_t sent = stream_write(r->stream, p, n);
        if (sent >= 0) {
            p += sent;
            n -= (size_t)sent;
        } else if (sent == -EAGAIN) {
            int err = wait_for(r, POLLOUT, until);
            if (err)
                return err;
        } else {
            return fail(r, (int)sent, "sending: %s", stream_why(r->stream));
        }
    }
    return 0;
}

/* Reads more bytes into the buffer, which has room. */
static int
read_more(struct remote *r, int64_t until)
{
    for (;;) {
        ssize_t n = stream_read(r->stream, r->buf + r->have, sizeof r->buf - r->have);
        if (n > 0) {
            r->have += (size_t)n;
            return 0;
        }
        if (n == 0)
            return fail(r, -ECONNRESET, "the switch closed the connection");
        if (n != -EAGAIN)
            return fail(r, (int)n, "receiving: %s", stream_why(r->stream));
        int err = wait_for(r, POLLIN, until);
        if (err)
            return err;
    }
}

static int
recv_frame(struct remote *r, int64_t until, struct of_bytes *msg)
{
    memmove(r->buf, r->buf + r->taken, r->have - r->taken);
    r->have -= r->taken;
    r->taken = 0;
    for (;;) {
        int len = of_frame_len(r->buf, r->have);
        if (len < 0)
            return fail(r, -EBADMSG, "the peer sent something that is not an OpenFlow message");
        if (len && r->have >= (size_t)len) {
            r->taken = (size_t)len;
            *msg = (struct of_bytes){r->buf, (size_t)len};
            return 0;
        }
        int err = read_more(r, until);
        if (err)
            return err;
    }
}

static int
send_echo(struct remote *r, uint8_t type, uint32_t xid, struct of_bytes data)
{
    struct of_echo echo = {data};
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    int err = of_encode_body(&w, type, xid, &echo);
    if (!err)
        err = remote_send(r, w.buf, w.len);
    of_wr_free(&w);
    return err;
}

static int
answer_echo(struct remote *r, struct of_bytes request)
{
    struct of_bytes data = {request.p + OFP_HEADER_LEN, request.n - OFP_HEADER_LEN};
    return send_echo(r, OFPT_ECHO_REPLY, of_get32(request.p + 4), data);
}

/* HELLO_FAILED belongs to no request, and is the last message; its data is a sentence (7.4.4). */
static bool
is_refusal(struct of_bytes msg)
{
    return msg.p[1] == OFPT_ERROR && msg.n >= OFP_HEADER_LEN + 4 &&
           of_get16(msg.p + OFP_HEADER_LEN) == OFPET_HELLO_FAILED;
}

static int
refused(struct remote *r, struct of_bytes msg)
{
    char text[200];
    struct of_wr w = of_wr_fixed((uint8_t *)text, sizeof text - 1);
    of_print_text(&w, (const char *)msg.p + OFP_HEADER_LEN + 4, msg.n - OFP_HEADER_LEN - 4);
    text[w.len] = '\0';
    return fail(r, -EPERM, "the switch refuses this connection: %s", text);
}

int
remote_recv(struct remote *r, int64_t until, struct of_bytes *msg)
{
    for (;;) {
        int err = recv_frame(r, until, msg);
        if (!err && msg->p[1] == OFPT_ECHO_REQUEST)
            err = answer_echo(r, *msg);
        else if (!err && is_refusal(*msg))
            return refused(r, *msg);
        else if (!err)
            return 0;
        if (err)
            return err;
    }
}

int
remote_recv_alive(struct remote *r, int64_t *until, struct of_bytes *msg)
{
    for (bool asked = false;;) {
        int64_t ask = *until - r->timeout_ms / 2;
        int err = remote_recv(r, asked ? *until : ask, msg);
        if (!err && msg->p[1] == OFPT_ECHO_REPLY) {
            *until = remote_now_ms() + r->timeout_ms;
            asked = false;
        } else if (err == -ETIMEDOUT && !asked) {
            asked = true;
            if ((err = send_echo(r, OFPT_ECHO_REQUEST, 0, (struct of_bytes){0})))
                return err;
        } else {
            return err;
        }
    }
}

/* The version is 1.3 if the switch's bitmap has 1.3 or, without a bitmap, its version is at
 * least 1.3 (6.3.1). */
static bool
speaks_1_3(struct of_bytes hello)
{
    struct of_rd r = of_rd(hello.p + OFP_HEADER_LEN, hello.n - OFP_HEADER_LEN);
    while (of_rd_left(&r) >= 4) {
        uint16_t type = of_rd16(&r), len = of_rd16(&r);
        if (len < 4)
            break;
        if (type == OFPHET_VERSIONBITMAP && len >= 8 && of_rd_left(&r) >= 4)
            return of_get32(r.p) & OFP_BITMAP_1_3;
        of_rd_copy(&r, NULL, (len + 7u) / 8 * 8 - 4);
    }
    return hello.p[0] >= OFP_VERSION;
}

static int
say_hello(struct remote *r)
{
    static const uint8_t hello[] = {
        OFP_VERSION, OFPT_HELLO,           0, 16, 0, 0, 0, 0,
        0,           OFPHET_VERSIONBITMAP, 0, 8,  0, 0, 0, OFP_BITMAP_1_3};
    struct of_bytes msg;
    int err = remote_send(r, hello, sizeof hello);
    if (!err)
        err = remote_recv(r, remote_now_ms() + r->timeout_ms, &msg);
    if (err && stream_looks_like_tls(r->buf, r->have))
        return fail(r, err, "the switch speaks TLS at this address: write tls:HOST[:PORT]");
    if (err)
        return err;
    if (msg.p[1] != OFPT_HELLO)
        return fail(r, -EPROTO, "the switch sent message type %u instead of a hello", msg.p[1]);
    if (!speaks_1_3(msg))
        return fail(r, -EPROTONOSUPPORT,
                    "the switch does not speak OpenFlow 1.3 (its hello is of "
                    "version 0x%02x)",
                    msg.p[0]);
    return 0;
}

int
remote_open(struct remote *r, const char *address, int timeout_ms)
{
    r->stream = NULL;
    r->address = address;
    r->timeout_ms = timeout_ms;
    r->have = r->taken = 0;
    r->xid = 0;
    r->sigmask = NULL;
    int err = connect_to(r, address);
    if (!err && (err = say_hello(r)))
        remote_close(r);
    return err;
}

int
remote_reopen(struct remote *r)
{
    remote_close(r);
    return remote_open(r, r->address, r->timeout_ms);
}

/* Takes what has come.  -ETIMEDOUT: that is all. */
static int
drain(struct remote *r)
{
    struct of_bytes msg;
    int err = 0;
    while (r->stream && !(err = remote_recv(r, 0, &msg)))
        ;
    return r->stream ? err : -ETIMEDOUT;
}

int
remote_idle(struct remote *r, int64_t ms, const sigset_t *mask, int fd)
{
    int64_t until = remote_now_ms() + ms;
    for (;;) {
        int err = drain(r);
        int64_t left = until - remote_now_ms();
        if (err != -ETIMEDOUT || left <= 0)
            return err != -ETIMEDOUT ? err : 0;
        struct timespec wait = {left / 1000, left % 1000 * 1000000};
        struct pollfd v[] = {{.fd = fd, .events = POLLIN},
                             {.fd = r->stream ? stream_fd(r->stream) : -1, .events = POLLIN}};
        if (r->stream)
            v[1].events = (short)stream_wait_for(r->stream, POLLIN);
        if (ppoll(v, 2, &wait, mask) < 0)
            return -errno;
        if (v[0].revents)
            return 1;
    }
}

void
remote_close(struct remote *r)
{
    stream_close(r->stream);
    r->stream = NULL;
}
