/* SPDX-License-Identifier: Apache-2.0 */
/* Deferred requests: what waits behind them, and whom their answers reach. */
#include "fixture.h"

#include <errno.h>

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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
