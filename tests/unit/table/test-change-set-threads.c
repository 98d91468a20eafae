/* SPDX-License-Identifier: Apache-2.0 */
/* Change sets while a worker reads: the flows that a packet matches in two tables are of one set.
 * */
#include <shared/atomics.h>
#include <shared/change-set.h>
#include <shared/rcu.h>
#include <table/flow-cache.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SETS    2000
#define FILLING 20 /* other flows, added between the two tables' */

struct reader {
    struct tables *t;
    bool stop, cached;
    unsigned met, missed, mixed, back;
};

/* What the key meets in table `id`, from the cache's path if that is known. */
static const struct program *
meet(struct reader *r, const struct flow_path *path, uint8_t id, const struct flow_key *key)
{
    if (path && id < path->n)
        return path->step[id].program;
    struct flow *f = tables_lookup(r->t, id, 0, key, 1);
    return f ? flow_program(f) : NULL;
}

static void *
work(void *arg)
{
    struct reader *r = arg;
    struct flow_cache *cache = flow_cache_new(64);
    uint64_t newest = 0;
    urcu_qsbr_register_thread();
    while (!load_relaxed(&r->stop)) {
        change_set_enter();
        for (uint32_t i = 0; i < 16; i++) {
            struct flow_key k = {0};
            of_set32(k.in_port, i % 4 + 1);
            const struct flow_path *path = r->cached ? flow_cache_path(cache, r->t, &k) : NULL;
            const struct program *a = meet(r, path, 0, &k), *b = meet(r, path, 1, &k);
            r->missed += !a || !b;
            if (a && b) {
                r->mixed += a->cookie != b->cookie;
                r->mixed += a->cookie % 4 == 0; /* every set of these is undone */
                r->back += a->cookie < newest;  /* an older set was seen again */
                newest = a->cookie;
            }
            store_relaxed(&r->met, r->met + 1);
        }
        rcu_reader_quiescent();
    }
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

/* port 0: an empty match. */
static void
change(struct tables *t, uint8_t command, uint8_t table, uint32_t port, uint16_t priority,
       uint64_t cookie)
{
    struct of_oxm oxm = {.row = &oxm_rows[OXM_in_port]};
    struct of_flow_mod m = {.command = command,
                            .table_id = table,
                            .priority = priority,
                            .cookie = cookie,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .match = {.n = port ? 1 : 0, .v = &oxm}};
    struct of_instr_goto_table go = {.row = OF_INSTR(GOTO_TABLE), .table_id = 1};
    void *instructions[] = {&go};
    if (!table && command == OFPFC_ADD) /* so that the cache remembers both tables' flows */
        m.instructions = (struct of_list){1, instructions, {0}};
    of_set32(oxm.value, port);
    memset(oxm.mask, 0xff, 4);
    assert_int_equal(tables_flow_mod(t, &m, 1), 0);
}

/* Replaces the flows by ones with this cookie: one for each port or one for all, with another
 * priority each time. */
static void
change_all(struct tables *t, uint64_t n)
{
    uint16_t priority = (uint16_t)(n % 7 + 1);
    for (uint8_t table = 0; table < 2; table++) {
        change(t, OFPFC_DELETE, table, 0, 0, 0);
        if (n % 3 == 2)
            change(t, OFPFC_ADD, table, 0, priority, n);
        for (uint32_t port = 1; n % 3 < 2 && port <= 4; port++)
            change(t, OFPFC_ADD, table, port, priority, n);
        for (uint32_t i = 0; i < FILLING; i++)
            change(t, OFPFC_ADD, table, 100 + i, (uint16_t)(i % 3), n);
    }
}

/* Adds the same flows again, which replaces their programs. */
static void
replace_all(struct tables *t, uint64_t n)
{
    for (uint8_t table = 0; table < 2; table++) {
        for (uint32_t port = 1; port <= 4; port++)
            change(t, OFPFC_ADD, table, port, 8, n);
        for (uint32_t i = 0; i < FILLING; i++)
            change(t, OFPFC_ADD, table, 100 + i, 1, n);
    }
}

static void
run(void (*all)(struct tables *, uint64_t), bool cached)
{
    struct tables_ops ops = {.env = {.port_ok = any, .group_ok = any, .meter_ok = any},
                             .removed = ignore_removed};
    struct reader r = {.t = tables_new(2, 1, &ops), .cached = cached};
    pthread_t thread;
    all(r.t, 1);
    assert_int_equal(pthread_create(&thread, NULL, work, &r), 0);
    while (!load_relaxed(&r.met)) /* the reader has started */
        sched_yield();
    for (uint64_t n = 2; n < SETS; n++) {
        change_set_begin();
        all(r.t, n);
        assert_false(change_set_failed());
        change_set_end(n % 4 != 0); /* every fourth is undone */
        rcu_turn();
    }
    store_relaxed(&r.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(r.mixed, 0);
    assert_int_equal(r.missed, 0);
    assert_int_equal(r.back, 0);
    rcu_wait();
    tables_free(r.t);
}

static void
test_add_and_delete(void **state)
{
    run(change_all, false);
    run(change_all, true);
}

static void
test_replace(void **state)
{
    run(replace_all, false);
    run(replace_all, true);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_add_and_delete),
        cmocka_unit_test(test_replace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
