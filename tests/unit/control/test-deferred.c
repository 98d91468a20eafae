/* SPDX-License-Identifier: Apache-2.0 */
/* Deferred requests: what waits behind them, and whom their answers reach. */
#include "fixture.h"

#include <errno.h>
#include <sys/socket.h>

static void
defer(struct peer *p, uint32_t xid)
{
    static const uint8_t meter_mod[8];
    peer_send(p, OFPT_METER_MOD, xid, meter_mod, sizeof meter_mod);
    fixture_turns(p->fixture, 5);
    assert_non_null(p->fixture->deferred.conn);
}

static void
end(struct fixture *f)
{
    deferred_end(&f->deferred);
    channel_go_on(f->ch);
}

static void
its_own_requests_wait(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f), *other = peer_open(f);
    defer(p, 7);
    peer_send(p, OFPT_ECHO_REQUEST, 8, "now", 3);
    peer_send(p, OFPT_BARRIER_REQUEST, 9, NULL, 0);
    peer_send(other, OFPT_BARRIER_REQUEST, 10, NULL, 0);
    peer_expect(p, OFPT_ECHO_REPLY, 8);
    peer_expect(other, OFPT_BARRIER_REPLY, 10);
    unsigned handled = f->handled;
    fixture_turns(f, 20);
    assert_int_equal(f->handled, handled);
    deferred_error(&f->deferred, OF_METER_MOD_FAILED(UNKNOWN));
    end(f);
    peer_expect_error(p, 7, OFPET_METER_MOD_FAILED, OFPMMFC_UNKNOWN);
    peer_expect(p, OFPT_BARRIER_REPLY, 9);
    peer_free(p);
    peer_free(other);
}

static void
success_has_no_answer(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    defer(p, 7);
    deferred_error(&f->deferred, 0);
    end(f);
    peer_expect_nothing(p);
    peer_free(p);
}

static void
a_fault_of_the_switch_becomes_the_nearest_error(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    defer(p, 7);
    deferred_error(&f->deferred, -EIO);
    end(f);
    peer_expect_error(p, 7, OFPET_METER_MOD_FAILED, OFPMMFC_UNKNOWN);
    peer_expect_nothing(p);
    peer_free(p);
}

static void
the_connection_may_close_first(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    defer(p, 7);
    peer_free(p);
    fixture_turns(f, 20);
    assert_null(f->deferred.conn);
    assert_string_equal(deferred_peer(&f->deferred), "a peer that has gone");
    assert_int_equal(deferred_message(&f->deferred).xid, 7);
    deferred_error(&f->deferred, OF_METER_MOD_FAILED(UNKNOWN));
    end(f);
}

/* ------------------------------------------------------------------ copies */

static void
defer_copy(struct peer *p, uint8_t type, uint32_t xid)
{
    p->fixture->asks_kernel = true;
    if (type == OFPT_MULTIPART_REQUEST)
        peer_multipart(p, OFPMP_PORT_DESC, 0, xid, NULL, 0);
    else
        peer_send(p, type, xid, NULL, 0);
    while (!p->fixture->copy)
        fixture_turns(p->fixture, 1);
}

static void
run_copy(struct fixture *f)
{
    deferred_copy_run(f->copy);
    deferred_copy_end(f->copy);
    f->copy = NULL;
    channel_go_on(f->ch);
}

static void
a_copy_is_handled_later(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    f->n_ports = 3;
    defer_copy(p, OFPT_MULTIPART_REQUEST, 7);
    peer_send(p, OFPT_BARRIER_REQUEST, 8, NULL, 0);
    peer_send(p, OFPT_ECHO_REQUEST, 9, "overtakes", 9);
    peer_send(p, OFPT_BARRIER_REQUEST, 10, NULL, 0);
    peer_send(p, OFPT_ECHO_REQUEST, 11, "", 0);
    peer_expect(p, OFPT_ECHO_REPLY, 9);
    peer_expect(p, OFPT_ECHO_REPLY, 11);
    assert_int_equal(f->handled, 0);
    run_copy(f);
    peer_expect(p, OFPT_MULTIPART_REPLY, 7);
    peer_expect(p, OFPT_BARRIER_REPLY, 8);
    peer_expect(p, OFPT_BARRIER_REPLY, 10);
    defer_copy(p, OFPT_GET_CONFIG_REQUEST, 12);
    run_copy(f);
    peer_expect_error(p, 12, OFPET_BAD_REQUEST, OFPBRC_EPERM);
    peer_free(p);
}

/* Its handler may be at work: it stays, and is gone behind it. */
static void
the_connection_stays_until_its_copy_is_handled(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    defer_copy(p, OFPT_GET_CONFIG_REQUEST, 7);
    peer_free(p);
    fixture_turns(f, 20);
    assert_int_equal(f->disconnected, 0);
    run_copy(f);
    while (!f->disconnected)
        fixture_turns(f, 1);
}

static void
who_has_ended_writing_is_answered(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    defer_copy(p, OFPT_MULTIPART_REQUEST, 7);
    assert_int_equal(shutdown(p->fd, SHUT_WR), 0);
    fixture_turns(f, 20);
    run_copy(f);
    peer_expect(p, OFPT_MULTIPART_REPLY, 7);
    peer_expect_close(p);
    peer_free(p);
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(its_own_requests_wait, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(success_has_no_answer, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_fault_of_the_switch_becomes_the_nearest_error,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_connection_may_close_first, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_copy_is_handled_later, fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(the_connection_stays_until_its_copy_is_handled,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(who_has_ended_writing_is_answered, fixture_setup,
                                        fixture_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
