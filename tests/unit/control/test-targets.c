/* SPDX-License-Identifier: Apache-2.0 */
/* Listening, connecting, connecting again. */
#include "fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static int
add(struct fixture *f, const char *target)
{
    char why[200] = "";
    int err = channel_add(f->ch, target, why, sizeof why);
    assert_true(!err == !why[0]);
    return err;
}

static void
bad_targets(void **state)
{
    static const char *const bad[] = {
        "",
        "tcp",
        "udp:1.2.3.4",
        "tcp:",
        "tcp::6653",
        "tcp:1.2.3.4:0",
        "tcp:1.2.3.4:65536",
        "tcp:1.2.3.4:x",
        "tcp:1.2.3.4:",
        "tcp:::1",
        "tcp:[::1",
        "tcp:[::1]:6653:1",
        "tcp:1:2:3",
        "ptcp:x",
        "ptcp:65536",
        "ptcp:-1",
        "ptcp:6653:nohost",
        "ptcp:6653:::1",
        "ptcp:123456789",
        "punix:/no/such/directory/s",
        "ptcp:6653:192.0.2.1",
    };
    char path[300] = "punix:";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_true(add(*state, bad[i]) < 0);
    memset(path + 6, 'x', 200);
    assert_int_equal(add(*state, path), -ENAMETOOLONG);
}

static struct peer *
tcp_peer(struct fixture *f, int family, int port)
{
    struct sockaddr_in in = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
                               .sin6_port = htons((uint16_t)port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(family, SOCK_STREAM, 0);
    bool v4 = family == AF_INET;
    if (connect(fd, v4 ? (void *)&in : (void *)&in6, v4 ? sizeof in : sizeof in6)) {
        close(fd);
        return NULL;
    }
    return peer_of_fd(f, fd);
}

static void
tcp_both_families(void **state)
{
    struct fixture *f = *state;
    char target[40];
    int port = fixture_free_port(AF_INET);
    snprintf(target, sizeof target, "ptcp:%d", port);
    assert_int_equal(add(f, target), 0);
    assert_int_equal(add(f, target), -EADDRINUSE);
    for (int i = 0; i < 2; i++) {
        struct peer *p = tcp_peer(f, i ? AF_INET6 : AF_INET, port);
        if (!p && i)
            continue; /* no IPv6 here */
        assert_non_null(p);
        peer_send(p, OFPT_HELLO, 1, NULL, 0);
        peer_expect(p, OFPT_HELLO, 0);
        peer_expect_nothing(p);
        const char *name = conn_peer(channel_next(f->ch, NULL));
        assert_int_equal(strncmp(name, i ? "tcp:[::1]:" : "tcp:127.0.0.1:", i ? 10 : 14), 0);
        peer_free(p);
        fixture_turns(f, 10);
    }
    snprintf(target, sizeof target, "ptcp:%d:127.0.0.1", fixture_free_port(AF_INET));
    assert_int_equal(add(f, target), 0);
}

static void
socket_file(void **state)
{
    struct fixture *f = *state;
    struct stat st;
    char target[140];
    assert_int_equal(stat(f->socket, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    snprintf(target, sizeof target, "punix:%s", f->socket);
    assert_int_equal(add(f, target), -EADDRINUSE); /* a switch answers there */
    char other[120], file[120];
    snprintf(other, sizeof other, "%s/stale", f->dir);
    snprintf(file, sizeof file, "%s/file", f->dir);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, other);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    close(fd);
    snprintf(target, sizeof target, "punix:%s", other);
    assert_int_equal(add(f, target), 0); /* nobody does */
    fclose(fopen(file, "w"));
    snprintf(target, sizeof target, "punix:%s", file);
    assert_int_equal(add(f, target), -EADDRINUSE); /* not a socket at all */
    assert_int_equal(unlink(file), 0);
}

#define MAX_CONNS ((const struct channel_options)CHANNEL_OPTIONS_DEFAULT).max_conns

static void
too_many(void **state)
{
    struct fixture *f = *state;
    struct peer **p = calloc(MAX_CONNS + 2, sizeof *p);
    for (unsigned i = 0; i < MAX_CONNS; i++)
        p[i] = peer_open(f);
    struct peer *late = peer_new(f);
    peer_expect_close(late);
    peer_free(late);
    assert_int_equal(channel_counters(f->ch)->refused, 1);
    assert_int_equal(channel_counters(f->ch)->accepted, MAX_CONNS);
    peer_expect_nothing(p[3]);
    for (unsigned i = 0; i < MAX_CONNS; i++)
        peer_free(p[i]);
    fixture_turns(f, 20);
    late = peer_open(f);
    peer_expect_nothing(late);
    peer_free(late);
    free(p);
}

/* A controller that isn't there yet, comes, goes, comes again. */
static void
connects_again(void **state)
{
    struct fixture *f = *state;
    char target[120];
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s/controller", f->dir);
    snprintf(target, sizeof target, "unix:%s", a.sun_path);
    channel_set_options(f->ch, &(struct channel_options){.backoff_ms = 10, .backoff_max_ms = 80});
    assert_int_equal(add(f, target), 0);
    fixture_turns(f, 300);
    uint64_t tries = channel_counters(f->ch)->connects;
    assert_in_range(tries, 4, 8); /* at 0, 10, 30, 70, 150, 230 ms */
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 5), 0);
    for (unsigned i = 1; i <= 3; i++) {
        fixture_turns(f, 100);
        struct peer *p = peer_of_fd(f, accept(fd, NULL, NULL));
        peer_expect(p, OFPT_HELLO, 0);
        peer_send(p, OFPT_HELLO, 1, NULL, 0);
        peer_expect_nothing(p);
        assert_int_equal(f->connected, i);
        assert_string_equal(conn_peer(channel_next(f->ch, NULL)), target);
        peer_free(p);
    }
    close(fd);
    unlink(a.sun_path);
}

static void
connects_by_tcp(void **state)
{
    struct fixture *f = *state;
    char target[64];
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int on = 1, port = fixture_free_port(AF_INET);
    snprintf(target, sizeof target, "tcp:127.0.0.1:%d", port);
    channel_set_options(f->ch, &(struct channel_options){.backoff_ms = 10, .backoff_max_ms = 20});
    assert_int_equal(add(f, target), 0);
    assert_int_equal(add(f, "tcp:[::1]:9"), 0); /* refused, again and again */
    assert_int_equal(add(f, "tcp:localhost:9"), 0);
    fixture_turns(f, 50);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    a.sin_port = htons((uint16_t)port);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(fd, 5), 0);
    fixture_turns(f, 60);
    struct peer *p = peer_of_fd(f, accept(fd, NULL, NULL));
    peer_expect(p, OFPT_HELLO, 0);
    peer_send(p, OFPT_HELLO, 1, NULL, 0);
    peer_expect_nothing(p);
    peer_free(p);
    close(fd);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(bad_targets), T(tcp_both_families), T(socket_file),
        T(too_many),    T(connects_again),    T(connects_by_tcp),
    };
    return cmocka_run_group_tests_name("channel-targets", tests, NULL, NULL);
}
