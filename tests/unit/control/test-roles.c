/* SPDX-License-Identifier: Apache-2.0 */
/* Roles (6.3.5, 7.3.9) and asynchronous configuration (7.3.10). */
#include "fixture.h"

static void
ask(struct peer *p, uint32_t role, uint64_t generation)
{
    peer_request(p, OFPT_ROLE_REQUEST, 42,
                 &(struct of_role){.role = role, .generation_id = generation});
}

static void
expect_role(struct peer *p, uint32_t role, uint64_t generation)
{
    struct of_bytes m = peer_recv(p);
    assert_int_equal(m.p[1], OFPT_ROLE_REPLY);
    assert_int_equal(of_get32(m.p + 8), role);
    assert_true(of_get64(m.p + 16) == generation);
}

static void
masters_and_slaves(void **state)
{
    struct peer *a = peer_open(*state), *b = peer_open(*state);
    ask(a, OFPCR_ROLE_NOCHANGE, 99);
    expect_role(a, OFPCR_ROLE_EQUAL, UINT64_MAX); /* no generation yet */
    ask(a, OFPCR_ROLE_MASTER, 5);
    expect_role(a, OFPCR_ROLE_MASTER, 5);
    ask(b, OFPCR_ROLE_MASTER, 5); /* the same generation will do */
    expect_role(b, OFPCR_ROLE_MASTER, 5);
    ask(a, OFPCR_ROLE_NOCHANGE, 0);
    expect_role(a, OFPCR_ROLE_SLAVE, 5);
    ask(a, OFPCR_ROLE_EQUAL, 0); /* needs none */
    expect_role(a, OFPCR_ROLE_EQUAL, 5);
    ask(a, 4, 9);
    peer_expect_error(a, 42, OFPET_ROLE_REQUEST_FAILED, OFPRRFC_BAD_ROLE);
    ask(b, OFPCR_ROLE_NOCHANGE, 0);
    expect_role(b, OFPCR_ROLE_MASTER, 5);
    peer_free(a);
    peer_free(b);
}

static void
generations(void **state)
{
    static const struct {
        uint64_t id;
        bool stale;
    } row[] = {
        {10, false},
        {9, true},
        {11, false},
        {10, true},
        {11 + (UINT64_C(1) << 63), true},  /* as far as can be: behind */
        {10 + (UINT64_C(1) << 63), false}, /* ahead */
        {10, true},                        /* as far as can be, again */
        {UINT64_MAX - 1, false},
        {1, false}, /* wrapped */
        {UINT64_MAX, true},
    };
    struct peer *p = peer_open(*state);
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        uint32_t role = i % 2 ? OFPCR_ROLE_SLAVE : OFPCR_ROLE_MASTER;
        ask(p, role, row[i].id);
        if (row[i].stale)
            peer_expect_error(p, 42, OFPET_ROLE_REQUEST_FAILED, OFPRRFC_STALE);
        else
            expect_role(p, role, row[i].id);
    }
    peer_free(p);
}

static void
slave_may_only_look(void **state)
{
    static const uint8_t zeros[64];
    static const uint8_t writes[] = {
        OFPT_SET_CONFIG, OFPT_PACKET_OUT, OFPT_FLOW_MOD,  OFPT_GROUP_MOD,
        OFPT_PORT_MOD,   OFPT_TABLE_MOD,  OFPT_METER_MOD, OFPT_QOS_QUEUEING_DISCIPLINE};
    static const uint8_t own_writes[] = {OFP_QOS_EXP_REQUEST, OFP_EXP_PORT_ADD, OFP_EXP_PORT_DEL,
                                         OFP_EXP_SET_DESC, OFP_EXP_RELAY};
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    ask(p, OFPCR_ROLE_SLAVE, 1);
    expect_role(p, OFPCR_ROLE_SLAVE, 1);
    unsigned handled = f->handled;
    for (size_t i = 0; i < sizeof writes; i++) {
        peer_send(p, writes[i], 7, zeros, sizeof zeros);
        peer_expect_error(p, 7, OFPET_BAD_REQUEST, OFPBRC_IS_SLAVE);
    }
    for (size_t i = 0; i < sizeof own_writes; i++) {
        uint8_t ours[8] = {'Q', 'O', 'S', 'F', 0, 0, 0, own_writes[i]};
        peer_send(p, OFPT_EXPERIMENTER, 7, ours, sizeof ours);
        peer_expect_error(p, 7, OFPET_BAD_REQUEST, OFPBRC_IS_SLAVE);
    }
    peer_multipart(p, OFPMP_TABLE_FEATURES, 0, 7, zeros, 64);
    peer_expect_error(p, 7, OFPET_BAD_REQUEST, OFPBRC_IS_SLAVE);
    peer_multipart(p, OFPMP_TABLE_FEATURES, OFPMPF_REQ_MORE, 7, zeros, 64);
    peer_expect_error(p, 7, OFPET_BAD_REQUEST, OFPBRC_IS_SLAVE);
    assert_int_equal(f->handled, handled);
    peer_multipart(p, OFPMP_TABLE_FEATURES, 0, 8, NULL, 0);
    peer_expect(p, OFPT_MULTIPART_REPLY, 8);
    peer_multipart(p, OFPMP_EXPERIMENTER, 0, 9, "QOSF\0\0\0\1", 8);
    peer_expect(p, OFPT_MULTIPART_REPLY, 9);
    peer_expect_nothing(p);
    peer_free(p);
}

static void
tell_all(struct fixture *f, enum async_kind kind, int reasons)
{
    struct of_packet_in pin = {.buffer_id = 0};
    struct of_port_status ps = {.reason = 0};
    struct of_flow_removed fr = {.cookie = 0};
    const void *body[] = {&pin, &ps, &fr};
    uint8_t type[] = {OFPT_PACKET_IN, OFPT_PORT_STATUS, OFPT_FLOW_REMOVED};
    for (int i = 0; i < reasons; i++)
        channel_async(f->ch, kind, (uint8_t)i, type[kind], body[kind]);
}

static void
expect_async(struct peer *p, int packet_in, int port_status, int flow_removed)
{
    fixture_turns(p->fixture, 0);
    tell_all(p->fixture, ASYNC_PACKET_IN, 3);
    tell_all(p->fixture, ASYNC_PORT_STATUS, 3);
    tell_all(p->fixture, ASYNC_FLOW_REMOVED, 4);
    while (packet_in--)
        peer_expect(p, OFPT_PACKET_IN, 0);
    while (port_status--)
        peer_expect(p, OFPT_PORT_STATUS, 0);
    while (flow_removed--)
        peer_expect(p, OFPT_FLOW_REMOVED, 0);
    peer_expect_nothing(p);
}

static void
async(void **state)
{
    struct peer *p = peer_open(*state), *fresh = peer_new(*state);
    peer_expect_nothing(p);
    expect_async(p, 2, 3, 4);
    ask(p, OFPCR_ROLE_SLAVE, 1);
    expect_role(p, OFPCR_ROLE_SLAVE, 1);
    expect_async(p, 0, 3, 0);
    peer_request(p, OFPT_SET_ASYNC, 1, &(struct of_async){4, 7, 0, 1, 8, 0});
    peer_expect_nothing(p);
    expect_async(p, 3, 1, 0);
    ask(p, OFPCR_ROLE_EQUAL, 1);
    expect_role(p, OFPCR_ROLE_EQUAL, 1);
    expect_async(p, 1, 0, 1);
    peer_expect(fresh, OFPT_HELLO, 0); /* and nothing before its own hello */
    peer_send(fresh, OFPT_HELLO, 0, NULL, 0);
    peer_expect_nothing(fresh);
    peer_free(p);
    peer_free(fresh);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(masters_and_slaves),
        T(generations),
        T(slave_may_only_look),
        T(async),
    };
    return cmocka_run_group_tests_name("channel-roles", tests, NULL, NULL);
}
