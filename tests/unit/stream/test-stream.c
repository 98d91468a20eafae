/* SPDX-License-Identifier: Apache-2.0 */
/* Streams and listeners over Unix sockets and TCP: bytes, ends, failures. */
#include "test.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEADLINE_MS 10000

static void
wait_fd(int fd, uint32_t events)
{
    struct pollfd p = {.fd = fd, .events = (short)events};
    assert_int_equal(poll(&p, 1, DEADLINE_MS), 1);
}

static int
open_now(struct stream *s)
{
    int err;
    while ((err = stream_open(s)) == -EAGAIN)
        wait_fd(stream_fd(s), stream_wait_for(s, 0));
    return err;
}

/* A listener, and the address at which it can be reached. */
static struct stream_listener *
listen_at(const char *text, char *reach, size_t n)
{
    struct stream_listener *l;
    struct sockaddr_in a;
    socklen_t len = sizeof a;
    char why[200];
    assert_int_equal(stream_listen(text, NULL, &l, why, sizeof why), 0);
    if (stream_listener_is_local(l)) {
        snprintf(reach, n, "%s", text + 1);
    } else {
        assert_int_equal(getsockname(stream_listener_fd(l), (struct sockaddr *)&a, &len), 0);
        snprintf(reach, n, "tcp:127.0.0.1:%u", ntohs(a.sin_port));
    }
    return l;
}

static struct stream *
connect_to(const char *text)
{
    struct stream_remote r;
    struct stream *s;
    char why[200];
    assert_int_equal(stream_resolve(text, NULL, &r, why, sizeof why), 0);
    assert_int_equal(stream_connect(&r, 0, &s), 0);
    return s;
}

static struct stream *
take(struct stream_listener *l, const char *name)
{
    struct stream *s;
    char peer[STREAM_PEER_MAX];
    wait_fd(stream_listener_fd(l), POLLIN);
    assert_int_equal(stream_accept(l, &s, peer, sizeof peer), 0);
    assert_int_equal(strncmp(peer, name, strlen(name)), 0);
    assert_int_equal(stream_accept(l, &s, peer, sizeof peer), -EAGAIN);
    return s;
}

static void
expect(struct stream *s, const char *bytes)
{
    char got[64];
    wait_fd(stream_fd(s), stream_wait_for(s, POLLIN));
    assert_int_equal(stream_read(s, got, sizeof got), strlen(bytes));
    assert_memory_equal(got, bytes, strlen(bytes));
    assert_int_equal(stream_read(s, got, sizeof got), -EAGAIN);
}

static void
both_ways(const char *text, const char *name)
{
    char reach[160], byte;
    struct stream_listener *l = listen_at(text, reach, sizeof reach);
    struct stream *a = connect_to(reach);
    assert_int_equal(open_now(a), 0);
    struct stream *b = take(l, name);
    assert_int_equal(open_now(b), 0);
    assert_int_equal(stream_read(a, &byte, 1), -EAGAIN);
    assert_int_equal(stream_write(a, "there", 5), 5);
    expect(b, "there");
    assert_int_equal(stream_write(b, "and back", 8), 8);
    expect(a, "and back");
    stream_end(a); /* says no more, but hears */
    wait_fd(stream_fd(b), POLLIN);
    assert_int_equal(stream_read(b, &byte, 1), 0);
    assert_int_equal(stream_write(b, "bye", 3), 3);
    expect(a, "bye");
    stream_close(b);
    wait_fd(stream_fd(a), POLLIN);
    assert_int_equal(stream_read(a, &byte, 1), 0);
    stream_close(a);
    stream_listener_free(l);
}

static void
tcp(void **state)
{
    both_ways("ptcp:0:127.0.0.1", "tcp:127.0.0.1:");
    both_ways("ptcp:0", "tcp:127.0.0.1:");
}

static void
local(void **state)
{
    char dir[] = "/tmp/ofqos-stream-XXXXXX", text[80], name[80];
    assert_non_null(mkdtemp(dir));
    snprintf(text, sizeof text, "punix:%s/s", dir);
    snprintf(name, sizeof name, "unix:%s/s#1", dir);
    both_ways(text, name);
    assert_int_equal(rmdir(dir), 0); /* the socket is gone */
}

/* A peer that does not read: as much as the kernel takes, then -EAGAIN; nothing is lost. */
static void
full(void **state)
{
    static uint8_t block[60000];
    struct stream *a, *b;
    int fd[2];
    size_t sent = 0, got = 0;
    ssize_t n;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(stream_of_fd(fd[0], &a), 0);
    assert_int_equal(stream_of_fd(fd[1], &b), 0);
    while ((n = stream_write(a, block, sizeof block)) > 0)
        sent += (size_t)n;
    assert_int_equal(n, -EAGAIN);
    assert_true(sent > 0);
    assert_int_equal(stream_wait_for(a, POLLOUT), POLLOUT);
    stream_close(a);
    while ((n = stream_read(b, block, sizeof block)) > 0)
        got += (size_t)n;
    assert_int_equal(n, 0);
    assert_int_equal(got, sent);
    stream_close(b);
    stream_close(NULL);
}

/* Writing to one who has gone says so, and raises no signal. */
static void
gone(void **state)
{
    struct stream *a;
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
    assert_int_equal(stream_of_fd(fd[0], &a), 0);
    close(fd[1]);
    assert_int_equal(stream_write(a, "x", 1), -EPIPE);
    assert_string_equal(stream_why(a), strerror(EPIPE));
    stream_close(a);
}

static void
refused(void **state)
{
    char reach[160];
    struct stream_remote r;
    struct stream *s;
    char why[200];
    if (getenv("MESON_EXE_WRAPPER")) {
        puts("skipped: the emulator's SO_ERROR is the number of another processor");
        skip();
    }
    stream_listener_free(listen_at("ptcp:0:127.0.0.1", reach, sizeof reach));
    s = connect_to(reach); /* nobody listens there any more */
    assert_int_equal(open_now(s), -ECONNREFUSED);
    assert_string_equal(stream_why(s), strerror(ECONNREFUSED));
    stream_close(s);
    assert_int_equal(stream_resolve("unix:/no/such/socket", NULL, &r, why, sizeof why), 0);
    assert_int_equal(stream_connect(&r, 0, &s), -ENOENT);
}

static void
bad_listeners(void **state)
{
    static const struct {
        const char *text;
        int err;
    } rows[] = {{"tcp:127.0.0.1:1", -EINVAL},
                {"unix:/tmp/s", -EINVAL},
                {"ptcp:6653:nohost", -EINVAL},
                {"ptcp:6653:192.0.2.1", -EADDRNOTAVAIL},
                {"punix:/no/such/directory/s", -ENOENT}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct stream_listener *l;
        char why[200] = "";
        assert_int_equal(stream_listen(rows[i].text, NULL, &l, why, sizeof why), rows[i].err);
        assert_int_equal(strncmp(why, rows[i].text, strlen(rows[i].text)), 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp),  cmocka_unit_test(local),   cmocka_unit_test(full),
        cmocka_unit_test(gone), cmocka_unit_test(refused), cmocka_unit_test(bad_listeners),
    };
    return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
