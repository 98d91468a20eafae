/* SPDX-License-Identifier: Apache-2.0 */
/* What threads share: the ring, and tables that workers read while they change.  tests/run builds
 * it with the thread sanitizer too. */
#include <packet/drop-log.h>
#include <shared/atomics.h>
#include <shared/rcu.h>
#include <shared/ring.h>
#include <table/flow-cache.h>
#include <table/tables.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RECORDS 200000
#define CHANGES 20000

/* ------------------------------------------------------------------ the ring */

static bool
put(struct ring *ring, uint32_t source)
{
    bool room =
        ring_fair(ring, 56, source) && ring_reserve(ring, 56, source); /* 64 with its head */
    if (room)
        ring_publish(ring);
    return room;
}

static unsigned
flood(struct ring *ring, uint32_t source)
{
    unsigned n = 0;
    while (put(ring, source))
        n++;
    return n;
}

/* A ring for 64 records: one source gets half of it, the next half of the rest, and so on. */
static void
test_ring_shares(void **state)
{
    struct ring *ring = ring_new(4096, 8);
    uint32_t n;
    for (unsigned round = 0; round < 3; round++) { /* also across the ring's end */
        unsigned left = 64;
        assert_int_equal(flood(ring, 0), 32);
        for (uint32_t s = 1; s < 5; s++)
            assert_true(put(ring, s)); /* the next source gets room */
        left -= 32 + 4;
        assert_int_equal(flood(ring, 7), left / 2);
        left -= left / 2;
        assert_false(put(ring, 0));
        for (unsigned i = 0; i < 20; i++) { /* source 0 has 20 fewer, so it may add some */
            assert_non_null(ring_peek(ring, &n));
            ring_release(ring);
        }
        left += 20;
        assert_int_equal(flood(ring, 0), (left - 12) / 2);
        while (ring_peek(ring, &n))
            ring_release(ring);
        assert_true(ring_empty(ring));
    }
    ring_free(ring);
}

static void *
produce(void *arg)
{
    struct ring *ring = arg;
    for (uint32_t i = 0; i < RECORDS; i++) {
        uint32_t n = 4 + i * 7 % 300;
        uint8_t *p;
        while (!ring_fair(ring, n, i % 3) || !(p = ring_reserve(ring, n, i % 3)))
            sched_yield();
        memcpy(p, &i, 4);
        memset(p + 4, (int)(i & 0xff), n - 4);
        ring_publish(ring);
    }
    return NULL;
}

static void
test_ring(void **state)
{
    struct ring *ring = ring_new(4096, 3);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, produce, ring), 0);
    for (uint32_t i = 0; i < RECORDS; i++) {
        uint32_t n, got;
        uint8_t *p;
        while (!(p = ring_peek(ring, &n)))
            sched_yield();
        memcpy(&got, p, 4);
        assert_int_equal(got, i);
        assert_int_equal(n, 4 + i * 7 % 300);
        for (uint32_t k = 4; k < n; k++)
            assert_int_equal(p[k], i & 0xff);
        ring_release(ring);
    }
    pthread_join(t, NULL);
    assert_true(ring_empty(ring));
    ring_free(ring);
}

/* ------------------------------------------------------------------ samples of drops */

#define DROPS 40000

/* Each sample's members all tell its number. */
static void *
drop_packets(void *arg)
{
    struct drop_log *log = arg;
    uint8_t data[DROP_SAMPLE_BYTES];
    for (uint32_t i = 1; i <= DROPS; i++) {
        struct packet_at at = {.cookie = i, .in_port = i, .out_port = i, .queue = i};
        memset(data, (int)(i & 0xff), sizeof data);
        log->now += DROP_SAMPLE_NS;
        drop_log_note(log, DROP_meter, &at,
                      &(struct packet_frame){data, 1 + i % sizeof data, 1, NULL});
    }
    return NULL;
}

static void
check_sample(const struct drop_sample *s)
{
    assert_int_equal(s->at.cookie, s->at.in_port);
    assert_int_equal(s->at.queue, s->at.in_port);
    assert_int_equal(s->time, (uint64_t)s->at.in_port * DROP_SAMPLE_NS);
    assert_int_equal(s->n, 1 + s->at.in_port % DROP_SAMPLE_BYTES);
    for (uint32_t k = 0; k < s->n; k++)
        assert_int_equal(s->data[k], s->at.in_port & 0xff);
}

static void
test_drops(void **state)
{
    struct drop_log *log = calloc(1, sizeof *log);
    struct drop_sample s;
    pthread_t t;
    unsigned seen = 0;
    assert_int_equal(pthread_create(&t, NULL, drop_packets, log), 0);
    for (uint32_t last = 0; last < DROPS;)
        for (unsigned i = 0; i < DROP_SAMPLES; i++)
            if (drop_log_read(log, DROP_meter, i, &s)) {
                check_sample(&s);
                last = s.at.in_port > last ? s.at.in_port : last;
                seen++;
            }
    pthread_join(t, NULL);
    assert_true(seen);
    for (unsigned i = 0; i < DROP_SAMPLES; i++) {
        assert_true(drop_log_read(log, DROP_meter, i, &s));
        assert_true(s.at.in_port > DROPS - DROP_SAMPLES);
        assert_false(drop_log_read(log, DROP_ttl, i, &s));
    }
    free(log);
}

/* One sample a millisecond, of each reason; a watcher sees every packet. */
static void
count_seen(void *ctx, enum drop_reason why, const struct packet_at *at,
           const struct packet_frame *frame)
{
    ++*(unsigned *)ctx;
}

static void
test_drops_are_sampled(void **state)
{
    struct drop_log *log = calloc(1, sizeof *log);
    struct packet_at at = PACKET_AT_NONE;
    struct drop_sample s;
    unsigned seen = 0;
    for (int i = 0; i < 10; i++)
        drop_log_note(log, DROP_ttl, &at, &(struct packet_frame){.segments = 1});
    drop_log_note(log, DROP_meter, &at, &(struct packet_frame){.segments = 1});
    assert_int_equal(log->n[DROP_ttl], 1);
    assert_int_equal(log->n[DROP_meter], 1);
    assert_true(drop_log_read(log, DROP_ttl, 0, &s));
    assert_int_equal(s.n, 0);
    log->seen = count_seen;
    log->ctx = &seen;
    for (int i = 0; i < 10; i++)
        drop_log_note(log, DROP_ttl, &at, &(struct packet_frame){(const uint8_t *)"x", 1, 1, NULL});
    drop_log_note(log, DROP_ttl, &at, &(struct packet_frame){.segments = 1}); /* nothing to see */
    assert_int_equal(seen, 10);
    assert_int_equal(log->n[DROP_ttl], 1);
    free(log);
}

/* ------------------------------------------------------------------ tables under change */

struct reader {
    struct tables *t;
    bool stop;
    unsigned found, missed, wrong;
};

/* Packets of ports 1 to 8.  Port 1's flow is always there; the others are added and deleted.  A
 * lookup must find the flow of its port. */
static void *
read_tables(void *arg)
{
    struct reader *r = arg;
    struct flow_cache *cache = flow_cache_new(64);
    urcu_qsbr_register_thread();
    for (uint32_t i = 0; !load_relaxed(&r->stop); i++) {
        struct flow_key k = {0};
        uint32_t port = i % 8 + 1;
        of_set32(k.in_port, port);
        const struct flow_path *path = flow_cache_path(cache, r->t, &k);
        struct flow *f = path->n ? path->step[0].flow : tables_lookup(r->t, 0, 0, &k, 1);
        if (f) {
            const struct program *p = rcu_dereference(f->program);
            store_relaxed(&r->found, r->found + 1);
            r->wrong += program_apply(p).first->arg != port;
        } else {
            r->missed++;
            r->wrong += port == 1;
        }
        if (i % 16 == 0)
            rcu_reader_quiescent();
    }
    rcu_reader_quiescent();
    urcu_qsbr_unregister_thread();
    flow_cache_free(cache);
    return NULL;
}

static bool
any(void *sw, uint32_t id)
{
    return true;
}

static void
ignore_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
}

static void
change(struct tables *t, uint8_t command, uint32_t port, uint16_t priority)
{
    struct of_oxm oxm = {.row = &oxm_rows[OXM_in_port]};
    struct of_action_output out = {.row = OF_ACTION(OUTPUT), .port = port};
    void *av[] = {&out};
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS), .actions = {.n = 1, .v = av}};
    void *iv[] = {&apply};
    struct of_flow_mod m = {.command = command,
                            .priority = priority,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .match = {.n = 1, .v = &oxm},
                            .instructions = {.n = 1, .v = iv}};
    of_set32(oxm.value, port);
    memset(oxm.mask, 0xff, 4);
    assert_int_equal(tables_flow_mod(t, &m, 1), 0);
}

static void
test_tables(void **state)
{
    struct tables_ops ops = {.env = {.port_ok = any, .group_ok = any, .meter_ok = any},
                             .removed = ignore_removed};
    struct reader r = {.t = tables_new(1, 1, &ops)};
    pthread_t thread;
    change(r.t, OFPFC_ADD, 1, 5);
    assert_int_equal(pthread_create(&thread, NULL, read_tables, &r), 0);
    while (!load_relaxed(&r.found)) /* the reader has started */
        sched_yield();
    for (uint32_t i = 0; i < CHANGES; i++) {
        static const uint8_t commands[] = {OFPFC_ADD, OFPFC_MODIFY_STRICT, OFPFC_DELETE_STRICT};
        change(r.t, commands[i / 7 % 3], i % 7 + 2, (uint16_t)(i % 5));
        if (i % 50 == 0)
            change(r.t, OFPFC_ADD, 1, 5);
        if (i % 10 == 0)
            rcu_turn();
    }
    store_relaxed(&r.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(r.wrong, 0);
    rcu_wait();
    tables_free(r.t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),   cmocka_unit_test(test_ring_shares),
        cmocka_unit_test(test_drops),  cmocka_unit_test(test_drops_are_sampled),
        cmocka_unit_test(test_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
