/* SPDX-License-Identifier: Apache-2.0 */
/* Asynchronous messages: a peer that reads gets all of them, one that doesn't is bounded. */
#include "fixture.h"

#define MANY 60000u

static void
notify(struct fixture *f, uint32_t first, uint32_t n)
{
    struct of_flow_removed fr = {.reason = OFPRR_DELETE};
    for (uint32_t i = 0; i < n; i++) {
        fr.cookie = first + i;
        channel_async(f->ch, ASYNC_FLOW_REMOVED, OFPRR_DELETE, OFPT_FLOW_REMOVED, &fr);
    }
}

static void
expect_notified(struct peer *p, uint32_t first, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct of_bytes m = peer_recv(p);
        assert_true(m.n >= 16);
        assert_int_equal(m.p[1], OFPT_FLOW_REMOVED);
        assert_int_equal(of_get64(m.p + 8), first + i);
    }
}

static uint64_t
dropped(const struct fixture *f)
{
    return channel_counters(f->ch)->async_dropped;
}

/* All of them at once, as one delete does. */
static void
none_is_lost(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f), *q = peer_open(f);
    notify(f, 0, MANY);
    assert_true(f->ch->out_total < CONN_OUT_MAX); /* one copy for both */
    expect_notified(p, 0, MANY / 2);
    notify(f, MANY, 10); /* keep their place */
    expect_notified(q, 0, MANY);
    expect_notified(q, MANY, 10);
    expect_notified(p, MANY / 2, MANY / 2);
    expect_notified(p, MANY, 10);
    assert_int_equal(dropped(f), 0);
    peer_expect_nothing(p);
    assert_null(f->ch->async.first);
    peer_free(p);
    peer_free(q);
}

/* What a request causes is sent before the next one is answered. */
static void
before_the_next_answer(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f), *q = peer_open(f);
    f->removes = MANY;
    struct of_flow_mod fm = {.command = OFPFC_DELETE};
    peer_request(p, OFPT_FLOW_MOD, 5, &fm);
    peer_send(p, OFPT_BARRIER_REQUEST, 6, NULL, 0);
    fixture_turns(f, 20);
    peer_send(q, OFPT_BARRIER_REQUEST, 7, NULL, 0); /* others' answers don't wait for p */
    uint32_t before = 0;
    for (; peer_recv(q).p[1] == OFPT_FLOW_REMOVED; before++)
        ;
    assert_true(before < MANY);
    expect_notified(p, 0, MANY);
    peer_expect(p, OFPT_BARRIER_REPLY, 6);
    expect_notified(q, before, MANY - before);
    peer_free(p);
    peer_free(q);
}

/* Its requests go on, what waits for it is bounded, and what is too old is counted. */
static void
deaf_peer(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f), *q = peer_open(f);
    uint32_t notified = 0;
    for (; notified < 4 * MANY; notified += MANY) {
        notify(f, notified, MANY);
        expect_notified(q, notified, MANY);
    }
    peer_send(p, OFPT_FEATURES_REQUEST, 9, NULL, 0);
    fixture_turns(f, 5);
    assert_int_equal(f->handled, 1);
    for (struct conn *c = f->ch->conns; c; c = c->next)
        c->sent_at -= 2 * ASYNC_STUCK_NS;
    fixture_turns(f, 5);
    notify(f, notified, 1);
    assert_true(f->ch->async.size <= ASYNC_STUCK_MAX + 2 * ASYNC_CHUNK);
    assert_in_range(dropped(f), 1, notified);
    uint64_t left = notified + 1 - dropped(f), n = 0;
    for (uint64_t last = 0; last < notified; n++) { /* in order, up to the last one */
        struct of_bytes m = peer_recv(p);
        if (m.p[1] != OFPT_FLOW_REMOVED)
            continue;
        assert_true(!n || of_get64(m.p + 8) > last);
        last = of_get64(m.p + 8);
    }
    assert_true(n == left || n == left + 1); /* the features reply may be one of them */
    expect_notified(q, notified, 1);
    peer_free(p);
    peer_free(q);
}

/* As a bundle's commit does it: nothing is sent before its end, and nothing at all if it fails. */
static void
held(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    channel_hold(f->ch);
    notify(f, 0, MANY);
    fixture_turns(f, 5);
    assert_int_equal(channel_counters(f->ch)->messages_out, 1); /* hello */
    channel_release(f->ch, true);
    expect_notified(p, 0, MANY);
    channel_hold(f->ch);
    notify(f, 0, MANY);
    channel_release(f->ch, false);
    assert_null(f->ch->held.first);
    peer_expect_nothing(p);
    assert_int_equal(dropped(f), 0);
    peer_free(p);
}

/* Gone, or at the end, with much still to be sent. */
static void
gone(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f), *q = peer_open(f);
    notify(f, 0, MANY);
    peer_free(p);
    shutdown(q->fd, SHUT_WR); /* says no more, and reads */
    expect_notified(q, 0, MANY);
    peer_expect_close(q);
    fixture_turns(f, 5);
    assert_null(f->ch->async.first);
    peer_free(q);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(none_is_lost), T(before_the_next_answer), T(deaf_peer), T(held), T(gone),
    };
    return cmocka_run_group_tests_name("channel-async", tests, NULL, NULL);
}
