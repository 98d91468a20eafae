/* SPDX-License-Identifier: Apache-2.0 */
/* What entries count, and when they come and go. */
#include "entries-fixture.h"

#include <megaflow/megaflow.h>
#include <megaflow/plan.h>

#include <shared/clock.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ------------------------------------------------------------------ a plain flow */

static void
flow_mod(struct test *t, const struct of_flow_mod *m)
{
    struct of_flow_mod *f = fixture_through_codec(t->fixture, OFPT_FLOW_MOD, m);
    assert_int_equal(tables_flow_mod(t->sw.dp.tables, f, now_ns), 0);
}

/* What comes in by port 1 goes to port 2. */
static void
add_flow(struct test *t, uint32_t in_port, uint32_t out_port, uint16_t priority, uint8_t command)
{
    struct of_oxm oxm = {.row = &oxm_rows[OXM_in_port]};
    struct of_action_output out = {.row = OF_ACTION(OUTPUT), .port = out_port};
    void *actions[] = {&out};
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS),
                                     .actions = {.n = 1, .v = actions}};
    void *instructions[] = {&apply};
    struct of_flow_mod m = {.command = command,
                            .priority = priority,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .match = {.n = 1, .v = &oxm},
                            .instructions = {.n = 1, .v = instructions}};
    oxm_set_number(oxm.row, oxm.value, in_port);
    memset(oxm.mask, 0xff, sizeof oxm.mask);
    flow_mod(t, &m);
}

/* A UDP packet that comes in by the port. */
static struct flow_key
plain_key(uint32_t in_port, uint8_t n)
{
    struct flow_key k = {0};
    of_set32(k.in_port, in_port);
    of_set32(k.in_phy_port, in_port);
    k.eth_dst[5] = n;
    of_set16(k.eth_type, 0x0800);
    of_set16(k.vlan_vid, KEY_HAS);
    k.ip_proto = 17;
    k.ip_dst.v4[3] = n;
    return k;
}

static struct entry *
ask_plain(struct test *t, uint32_t in_port)
{
    struct flow_key k = plain_key(in_port, 1);
    uint32_t n = t->f.n_live;
    offload_ask(&t->f, &k, OFFLOAD_AT_PORT);
    return t->f.n_live > n ? t->f.live[n] : NULL;
}

static struct flow *
only_flow(struct test *t, uint32_t in_port)
{
    struct flow_key k = plain_key(in_port, 1);
    return tables_preview(t->sw.dp.tables, 0, &k);
}

static void
hit(struct test *t, const struct entry *e, uint64_t packets, uint64_t bytes)
{
    struct offload_hits *h = &t->m.hits[e->id];
    h->packets += packets;
    h->frames += packets;
    h->bytes += bytes;
    t->m.entry[e->id].used = now_ns;
}

/* ------------------------------------------------------------------ counters */

static void
hits_count_once(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    struct entry *e = ask_plain(t, 1);
    struct flow *f = only_flow(t, 1);
    assert_non_null(e);
    flow_hold(f);
    hit(t, e, 3, 300);
    offload_sync(&t->f);
    offload_sync(&t->f);
    assert_int_equal(tables_flow_counter(t->sw.dp.tables, f).packets, 3);
    assert_int_equal(tables_flow_counter(t->sw.dp.tables, f).bytes, 300);
    assert_int_equal(tables_counter(t->sw.dp.tables, 0).matched, 3);
    assert_int_equal(counted[0].rx_bytes, 300);
    assert_int_equal(counted[1].tx_packets, 3);
    assert_int_equal(f->used, flow_clock(now_ns));
    /* What came since then counts when the flow goes. */
    hit(t, e, 1, 60);
    add_flow(t, 1, 2, 1, OFPFC_DELETE);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 0);
    assert_int_equal(tables_flow_counter(t->sw.dp.tables, f).packets, 4);
    assert_int_equal(counted[1].tx_bytes, 360);
    flow_release(f);
    test_end(t);
}

/* A number that another entry had begins at 0. */
static void
a_number_begins_anew(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    hit(t, ask_plain(t, 1), 5, 500);
    sw_offload_forget_all(&t->sw);
    offload_settle(&t->f);
    struct entry *e = ask_plain(t, 1);
    assert_non_null(e);
    offload_sync(&t->f);
    assert_int_equal(e->read.packets, 0);
    assert_int_equal(counted[0].rx_packets, 5);
    test_end(t);
}

/* The port has queues for what enters: two entries of the same packets, of which each counts its part. */
static void
two_entries_count_once(void **state)
{
    struct test *t = test_begin(1);
    struct flow_key k = plain_key(1, 1);
    t->fixture->ports[0].shaped = true;
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    struct flow *f = only_flow(t, 1);
    struct entry *at = ask_plain(t, 1);
    assert_non_null(at);
    assert_true(at->queue_in);
    offload_ask(&t->f, &k, OFFLOAD_BEHIND_QUEUES);
    assert_int_equal(t->f.n_live, 2);
    struct entry *behind = t->f.live[1];
    assert_false(behind->queue_in);
    assert_true(at->sign != behind->sign);
    hit(t, at, 5, 500);
    offload_sync(&t->f);
    assert_int_equal(counted[0].rx_packets, 5);
    assert_int_equal(tables_flow_counter(t->sw.dp.tables, f).packets, 0);
    hit(t, behind, 3, 300);
    offload_sync(&t->f);
    assert_int_equal(counted[0].rx_packets, 5);
    assert_int_equal(counted[1].tx_packets, 3);
    assert_int_equal(tables_flow_counter(t->sw.dp.tables, f).packets, 3);
    assert_int_equal(tables_counter(t->sw.dp.tables, 0).matched, 3);
    /* Both go with the flow, and with their port. */
    sw_offload_forget_port(&t->sw, 1);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 0);
    t->fixture->ports[0].shaped = false;
    test_end(t);
}

/* A refusal at one place says nothing about the other. */
static void
places_are_refused_apart(void **state)
{
    struct test *t = test_begin(1);
    struct flow_key k = plain_key(1, 1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    offload_ask(&t->f, &k, OFFLOAD_BEHIND_QUEUES); /* there are none */
    assert_int_equal(t->f.counts.refused[OFFLOAD_WHY_in_port], 1);
    offload_ask(&t->f, &k, OFFLOAD_BEHIND_QUEUES);
    assert_int_equal(t->f.counts.asked, 1);
    assert_non_null(ask_plain(t, 1));
    test_end(t);
}

/* ------------------------------------------------------------------ changes */

static void
a_change_takes_only_its_own(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    add_flow(t, 3, 4, 1, OFPFC_ADD);
    ask_plain(t, 1);
    ask_plain(t, 3);
    assert_int_equal(t->f.n_live, 2);
    add_flow(t, 1, 5, 2, OFPFC_ADD);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 1);
    assert_int_equal(t->f.live[0]->in_port, 3);
    sw_offload_forget_port(&t->sw, 5);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 1);
    sw_offload_forget_port(&t->sw, 4);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 0);
    test_end(t);
}

/* A flow of table 1 that matches the address which a flow of table 0 sets. */
static void
modify_behind_a_meter(struct test *t, uint32_t out_port, uint8_t command)
{
    struct of_oxm oxm = {.row = &oxm_rows[OXM_eth_dst], .value = {2, 0, 0, 0, 0, 9}};
    struct of_action_output out = {.row = OF_ACTION(OUTPUT), .port = out_port};
    void *actions[] = {&out};
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS),
                                     .actions = {.n = 1, .v = actions}};
    void *instructions[] = {&apply};
    struct of_flow_mod m = {.command = command,
                            .table_id = 1,
                            .priority = 1,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .match = {.n = 1, .v = &oxm},
                            .instructions = {.n = 1, .v = instructions}};
    memset(oxm.mask, 0xff, sizeof oxm.mask);
    flow_mod(t, &m);
}

static void
a_change_behind_a_meter_and_an_edit(void **state)
{
    struct test *t = test_begin(1);
    struct of_action_set_field set = {
        .row = OF_ACTION(SET_FIELD),
        .field = {.row = &oxm_rows[OXM_eth_dst], .value = {2, 0, 0, 0, 0, 9}}};
    void *actions[] = {&set};
    struct of_instr_meter meter = {.row = OF_INSTR(METER), .meter_id = METER_ID};
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS),
                                     .actions = {.n = 1, .v = actions}};
    struct of_instr_goto_table next = {.row = OF_INSTR(GOTO_TABLE), .table_id = 1};
    void *instructions[] = {&meter, &apply, &next};
    struct of_oxm was = {.row = set.field.row, .value = {0, 0, 0, 0, 0, 1}};
    struct of_flow_mod m = {.command = OFPFC_ADD,
                            .priority = 1,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .match = {.n = 1, .v = &was},
                            .instructions = {.n = 3, .v = instructions}};
    memset(set.field.mask, 0xff, sizeof set.field.mask);
    memset(was.mask, 0xff, sizeof was.mask);
    flow_mod(t, &m);
    modify_behind_a_meter(t, 2, OFPFC_ADD);
    assert_non_null(ask_plain(t, 1));
    modify_behind_a_meter(t, 3, OFPFC_MODIFY_STRICT);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 0);
    test_end(t);
}

static void
captures_take_all(void **state)
{
    struct capture_set set = {0};
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    ask_plain(t, 1);
    t->sw.dp.capture = &set;
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 0);
    assert_int_equal(t->m.control->on, 0);
    assert_null(ask_plain(t, 1));
    t->sw.dp.capture = NULL;
    offload_settle(&t->f);
    assert_int_equal(t->m.control->on, 1);
    assert_non_null(ask_plain(t, 1));
    test_end(t);
}

/* Each time that a change takes an entry soon after it was made it waits twice as long. */
static void
an_entry_that_goes_at_once_waits(void **state)
{
    struct test *t = test_begin(1);
    uint64_t ms = 1000000, wait = 10;
    for (int i = 0; i < 10; i++) {
        add_flow(t, 1, i % 2 ? 3 : 2, 1, OFPFC_ADD);
        assert_non_null(ask_plain(t, 1));
        add_flow(t, 1, 4, 1, OFPFC_ADD);
        offload_settle(&t->f);
        assert_int_equal(t->f.n_live, 0);
        now_ns += wait * ms - 1;
        assert_null(ask_plain(t, 1));
        now_ns += 1;
        wait = wait * 2 < 1000 ? wait * 2 : 1000;
    }
    assert_true(t->f.counts.refused[SW_OFFLOAD_changes] > 0);
    now_ns += 60 * 1000 * ms;
    assert_non_null(ask_plain(t, 1));
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    offload_settle(&t->f);
    now_ns += 10 * ms; /* it begins anew */
    assert_non_null(ask_plain(t, 1));
    test_end(t);
}

/* ------------------------------------------------------------------ bounds */

static void
many_changes_take_all(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    ask_plain(t, 1);
    for (unsigned i = 0; i < 20; i++) {
        add_flow(t, 3, 4, 1, OFPFC_ADD);
        sw_offload_relieve(&t->sw);
    }
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 1);
    t->f.compared = 2000000; /* as after many entries and changes in this turn */
    add_flow(t, 3, 4, 1, OFPFC_ADD);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 0);
    assert_int_equal(t->f.counts.all, 1);
    test_end(t);
}

static void
requests_are_bounded(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    for (unsigned i = 0; i < 5000; i++) {
        struct flow_key k = plain_key(1, (uint8_t)i);
        of_set16(k.tp_src, (uint16_t)i);
        offload_ask(&t->f, &k, OFFLOAD_AT_PORT);
    }
    assert_true(t->f.counts.asked <= 1024);
    assert_int_equal(t->f.counts.refused[SW_OFFLOAD_busy], 5000 - t->f.counts.asked);
    test_end(t);
}

/* Old entries make room. */
static void
a_full_table_ages(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    assert_non_null(ask_plain(t, 1));
    t->f.most = 1;
    add_flow(t, 3, 4, 1, OFPFC_ADD);
    assert_null(ask_plain(t, 3));
    assert_int_equal(t->f.counts.refused[SW_OFFLOAD_full], 1);
    now_ns += 2000000000;
    offload_age(&t->f, now_ns);
    assert_int_equal(t->f.n_live, 0);
    assert_non_null(ask_plain(t, 3));
    test_end(t);
}

/* ------------------------------------------------------------------ segments that workers merge */

static struct entry *
ask_tcp(struct test *t)
{
    struct flow_key k = plain_key(1, 1);
    k.ip_proto = 6;
    now_ns += 1;
    offload_ask(&t->f, &k, OFFLOAD_AT_PORT);
    return t->f.n_live ? t->f.live[0] : NULL;
}

/* A tick later. */
static void
judge(struct test *t)
{
    now_ns += OFFLOAD_TICK_NS;
    offload_judge(&t->f);
}

static void
hit_segments(struct test *t, const struct entry *e, uint64_t n)
{
    hit(t, e, n, n * 1500);
    t->m.hits[e->id].segments += n;
}

/* Many segments are for the workers, if the output's card cuts what they join, and until there are few. */
static void
many_segments_are_joined(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    struct entry *e = ask_tcp(t);
    assert_non_null(e);
    hit_segments(t, e, 6000); /* the card does not cut */
    judge(t);
    sw_port[1].link.cuts_tcp = true;
    hit_segments(t, e, 1900); /* not so many */
    judge(t);
    hit(t, e, 100000, 100000 * 1500); /* not TCP, or small */
    judge(t);
    hit_segments(t, e, 6000);
    t->m.hits[e->id].packets += 7000; /* more in super-packets */
    judge(t);
    assert_false(offload_joins(t->f.o, e->id));
    hit(t, e, 100000, 100000 * 64);
    hit_segments(t, e, 2100);
    judge(t);
    assert_true(offload_joins(t->f.o, e->id));
    t->m.entry[e->id].joined += 1000;
    judge(t);
    assert_true(offload_joins(t->f.o, e->id));
    assert_ptr_equal(ask_tcp(t), e);
    assert_int_equal(t->f.counts.refused[SW_OFFLOAD_merged], 1);
    t->m.entry[e->id].joined += 999;
    judge(t);
    assert_false(offload_joins(t->f.o, e->id));
    assert_int_equal(t->f.n_live, 1);
    sw_port[1].link.cuts_tcp = false;
    test_end(t);
}

/* ------------------------------------------------------------------ OFPP_NORMAL */

static void
learn(struct test *t, uint8_t station, uint16_t port)
{
    normal_learn(t->sw.dp.normal, (const uint8_t[]){0, 0, 0, 0, 0, station}, 0, port,
                 (uint32_t)(clock_ns() / NS_PER_S));
}

static struct entry *
ask_normal(struct test *t)
{
    learn(t, 0, 1);
    learn(t, 1, 2);
    now_ns += 20000000; /* the pause after a change */
    struct entry *e = ask_plain(t, 1);
    assert_non_null(e);
    offload_judge(&t->f);
    assert_int_equal(t->f.n_live, 1);
    return e;
}

static void
an_entry_goes_when_a_station_moves(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, OFPP_NORMAL, 1, OFPFC_ADD);
    ask_normal(t);
    learn(t, 1, 3);
    offload_judge(&t->f);
    assert_int_equal(t->f.n_live, 0);
    ask_normal(t);
    learn(t, 0, 3);
    offload_judge(&t->f);
    assert_int_equal(t->f.n_live, 0);
    assert_null(ask_plain(t, 1)); /* its port is another */
    test_end(t);
}

/* What the kernel handles is as good as what a worker has seen. */
static void
hits_keep_a_station(void **state)
{
    struct test *t = test_begin(1);
    const uint8_t station[6] = {0};
    uint32_t now = (uint32_t)(clock_ns() / NS_PER_S);
    add_flow(t, 1, OFPP_NORMAL, 1, OFPFC_ADD);
    struct entry *e = ask_normal(t);
    normal_learn(t->sw.dp.normal, station, 0, 1, now - 250);
    hit(t, e, 1, 100);
    offload_judge(&t->f);
    assert_int_equal(normal_find(t->sw.dp.normal, station, 0, now + 200), 1);
    normal_learn(t->sw.dp.normal, station, 0, 1, now - 250);
    offload_judge(&t->f);
    assert_int_equal(normal_find(t->sw.dp.normal, station, 0, now + 200), 0);
    test_end(t);
}

/* What workers ask for while a task has the tables waits for the end of that, not for packets to come again. */
static void
requests_outlast_a_task(void **state)
{
    struct test *t = test_begin(1);
    struct worker worker = {.dp = &t->sw.dp}, *workers[1] = {&worker};
    t->sw.dp.workers = workers;
    t->sw.dp.n_workers = 1;
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    requests[0] = (struct offload_request){.key = plain_key(1, 1), .in_port = 1};
    n_requests = 1;
    locked = TABLES | QUEUES;
    assert_false(sw_offload_asked(&t->sw));
    sw_offload_end_of_turn(&t->sw);
    assert_int_equal(n_requests, 1);
    assert_int_equal(t->f.n_live, 0);
    locked = QUEUES; /* which takes seconds where there are thousands */
    sw_offload_end_of_turn(&t->sw);
    assert_int_equal(n_requests, 0);
    assert_int_equal(t->f.n_live, 1);
    assert_false(t->f.asked);
    locked = 0;
    t->sw.dp.n_workers = 0;
    test_end(t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hits_count_once),
        cmocka_unit_test(a_number_begins_anew),
        cmocka_unit_test(two_entries_count_once),
        cmocka_unit_test(places_are_refused_apart),
        cmocka_unit_test(a_change_takes_only_its_own),
        cmocka_unit_test(a_change_behind_a_meter_and_an_edit),
        cmocka_unit_test(captures_take_all),
        cmocka_unit_test(an_entry_that_goes_at_once_waits),
        cmocka_unit_test(many_changes_take_all),
        cmocka_unit_test(requests_are_bounded),
        cmocka_unit_test(requests_outlast_a_task),
        cmocka_unit_test(a_full_table_ages),
        cmocka_unit_test(many_segments_are_joined),
        cmocka_unit_test(an_entry_goes_when_a_station_moves),
        cmocka_unit_test(hits_keep_a_station),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
