/* SPDX-License-Identifier: Apache-2.0 */
/* A flow that can't be added, because memory ends at any place: workers that met it meanwhile may go on
 * with it until their round ends, and forget it then. */
#include <shared/rcu.h>
#include <table/flow-cache.h>

#include <oflib/wire.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../no-memory.h"

#define MASKS 4

FAILS(void *, realloc, (void *p, size_t n), (p, n))

/* ------------------------------------------------------------------ tables */

static struct tables *tables;
static struct flow_cache *cache;
static struct flow_key key;
static const struct flow *met;

static bool
any_id(void *sw, uint32_t id)
{
    return true;
}

static void
ignore_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
}

/* A flow of the metadata under this many upper bits of mask. */
static int
add(unsigned bits, uint16_t priority, uint64_t metadata)
{
    struct of_oxm oxm = {.row = &oxm_rows[OXM_metadata], .has_mask = true};
    struct of_flow_mod m = {.priority = priority,
                            .idle_timeout = 10,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .match = {.n = 1, .v = &oxm}};
    of_set64(oxm.mask, UINT64_MAX << (64 - bits));
    of_set64(oxm.value, metadata & UINT64_MAX << (64 - bits));
    return tables_flow_mod(tables, &m, 1);
}

static void
worker_looks(void)
{
    const struct flow_path *path = flow_cache_path(cache, tables, &key);
    met = path->n ? path->step[0].flow : NULL;
}

static int
set_up(void **state)
{
    static const struct tables_ops ops = {
        .env = {.port_ok = any_id, .group_ok = any_id, .meter_ok = any_id},
        .removed = ignore_removed};
    tables = tables_new(1, 1, &ops);
    cache = flow_cache_new(64);
    of_set64(key.metadata, UINT64_C(0x0123456789abcdef));
    for (unsigned i = 1; i <= MASKS; i++)
        assert_int_equal(add(8 * i, (uint16_t)i, UINT64_MAX), 0);
    rcu_turn();
    return 0;
}

static int
tear_down(void **state)
{
    flow_cache_free(cache);
    tables_free(tables);
    rcu_turn();
    return 0;
}

/* The first flow with this priority and mask, both of which are new, then of a known mask. */
static void
fail_everywhere(unsigned bits, uint16_t priority)
{
    int err, n = 0;
    unsigned seen = 0;
    meanwhile = worker_looks;
    do {
        met = NULL;
        flow_cache_free(cache); /* it knows that there is none */
        cache = flow_cache_new(64);
        left = n++;
        err = add(bits, priority, UINT64_C(0x0123456789abcdef));
        bool failed = left < 0;
        left = -1;
        if (failed && err) {
            seen += met && met->priority == priority && !met->removed;
            rcu_turn();
            worker_looks();
            assert_null(met);
        } else if (failed) { /* it can do without */
            rcu_turn();
            assert_int_equal(add(bits, priority, UINT64_C(0x0123456789abcdef)), 0);
            break;
        }
    } while (err);
    worker_looks();
    assert_non_null(met);
    assert_int_equal(met->priority, priority);
    if (bits <= 8 * MASKS)
        assert_true(seen > 0); /* a worker met one before it was given up */
}

static void
test_new_mask(void **state)
{
    fail_everywhere(60, 100);
}

static void
test_higher_priority(void **state)
{
    fail_everywhere(16, 100);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)
    const struct CMUnitTest tests[] = {TEST(new_mask), TEST(higher_priority)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
