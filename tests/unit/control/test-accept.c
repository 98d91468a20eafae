/* SPDX-License-Identifier: Apache-2.0 */
/* Who is admitted: places before and after hello, and peers that wait for a descriptor. */
#include "fixture.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define HALF_OPEN 64 /* see datapath/control/accept.c */

/* From 127.0.0.HOST. */
static struct peer *
peer_from(struct fixture *f, unsigned host, int port)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000000 | host)}};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (void *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (void *)&to, sizeof to), 0);
    return peer_of_fd(f, fd);
}

static void
says_hello(struct peer *p)
{
    peer_send(p, OFPT_HELLO, 1, NULL, 0);
    peer_expect(p, OFPT_HELLO, 0);
}

static int
listen_on(struct fixture *f)
{
    char target[40], why[200];
    int port = fixture_free_port(AF_INET);
    snprintf(target, sizeof target, "ptcp:%d:127.0.0.1", port);
    assert_int_equal(channel_add(f->ch, target, why, sizeof why), 0);
    return port;
}

/* Peers that never say hello take no place from one that does: the oldest of the origin that has most goes. */
static void
silent_peers(void **state)
{
    struct fixture *f = *state;
    struct peer *silent[HALF_OPEN];
    int port = listen_on(f);
    silent[0] = peer_new(f); /* the oldest, but of an origin that has one */
    for (unsigned i = 1; i < HALF_OPEN; i++) {
        silent[i] = peer_from(f, 2, port);
        fixture_turns(f, 0);
    }
    fixture_turns(f, 10);
    assert_int_equal(f->ch->n_half_open, HALF_OPEN);
    struct peer *honest = peer_from(f, 3, port);
    says_hello(honest);
    peer_expect_nothing(honest);
    peer_expect(silent[1], OFPT_HELLO, 0);
    peer_expect_close(silent[1]);
    says_hello(silent[0]);
    says_hello(silent[2]);
    assert_int_equal(f->ch->n_half_open, HALF_OPEN - 3);
    for (unsigned i = 0; i < HALF_OPEN; i++)
        peer_free(silent[i]);
    peer_free(honest);
    fixture_turns(f, 10);
    assert_int_equal(f->ch->n_half_open, 0);
    assert_null(f->ch->origins);
}

/* All places are taken: who has most loses its youngest to a newcomer, but never to one that would have as many. */
static void
no_more_places(void **state)
{
    struct fixture *f = *state;
    struct peer *most[3], *second, *local[2];
    int port = listen_on(f);
    f->ch->opt.max_conns = 4; /* none is kept for local peers: 4 / CHANNEL_SPARE_PART */
    for (unsigned i = 0; i < 3; i++) {
        most[i] = peer_from(f, 2, port);
        says_hello(most[i]);
    }
    local[0] = peer_open(f);
    second = peer_from(f, 3, port);
    says_hello(second);
    peer_expect_close(most[2]);
    struct peer *refused = peer_from(f, 3, port); /* would have two, as 127.0.0.2 has */
    peer_expect_close(refused);
    local[1] = peer_new(f);
    peer_expect_close(local[1]);
    peer_expect_nothing(most[0]);
    peer_expect_nothing(most[1]);
    peer_expect_nothing(second);
    peer_expect_nothing(local[0]);
    struct channel_counters n = f->ch->counters;
    assert_int_equal(n.refused, 2);
    assert_int_equal(n.accepted, 5);
    for (unsigned i = 0; i < 3; i++)
        peer_free(most[i]);
    peer_free(second);
    peer_free(refused);
    peer_free(local[0]);
    peer_free(local[1]);
}

/* Without descriptors peers wait, and come in when there are some. */
static void
no_descriptors(void **state)
{
    struct fixture *f = *state;
    struct rlimit was, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, f->socket);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    none = (struct rlimit){.rlim_cur = (rlim_t)fd + 1, .rlim_max = was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    fixture_turns(f, 10);
    assert_int_equal(f->ch->n_accepted, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    struct peer *p = peer_of_fd(f, fd);
    says_hello(p);
    assert_int_equal(f->ch->n_accepted, 1);
    peer_free(p);
}

static void
no_longer_listening(void **state)
{
    struct fixture *f = *state;
    char target[120];
    struct peer *p = peer_open(f);
    snprintf(target, sizeof target, "punix:%s", f->socket);
    assert_false(channel_unlisten(f->ch, "punix:/elsewhere"));
    assert_true(channel_unlisten(f->ch, target));
    assert_false(channel_unlisten(f->ch, target));
    assert_int_not_equal(access(f->socket, F_OK), 0);
    peer_expect_nothing(p); /* who is there stays */
    peer_free(p);
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        TEST(silent_peers),
        TEST(no_more_places),
        TEST(no_descriptors),
        TEST(no_longer_listening),
    };
    return cmocka_run_group_tests_name("channel-accept", tests, NULL, NULL);
}
