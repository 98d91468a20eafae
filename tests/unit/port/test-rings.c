/* SPDX-License-Identifier: Apache-2.0 */
/* How ports share the memory of receive rings: never more than the limit, but for the least that a port needs. */
#include "../../../datapath/port/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MB    (UINT64_C(1) << 20)
#define LEAST (MB / 4)
#define PORTS 1000

static struct port ports[PORTS];

/* The next port gets its share. */
static uint64_t
open_one(unsigned i)
{
    uint64_t share = port_rings_share();
    port_rings_count(&ports[i], share);
    return share;
}

static void
close_all(void)
{
    for (unsigned i = 0; i < PORTS; i++)
        port_rings_count(&ports[i], 0);
    assert_int_equal(port_rings_bytes(), 0);
}

static void
test_the_first_share_equally(void **state)
{
    static const unsigned numbers[] = {1, 4, 5, 100, PORTS};
    for (size_t k = 0; k < sizeof numbers / sizeof numbers[0]; k++) {
        unsigned n = numbers[k];
        port_rings_limit_set(64 * MB, n);
        assert_int_equal(port_rings_limit(), 64 * MB);
        uint64_t share = open_one(0);
        for (unsigned i = 1; i < n; i++)
            assert_int_equal(open_one(i), share);
        uint64_t most = 64 * MB > n * LEAST ? 64 * MB : n * LEAST;
        assert_in_range(port_rings_bytes(), n * LEAST, most);
        assert_true(share == LEAST || n * share <= 64 * MB);
        close_all();
    }
}

/* Whoever comes later leaves something to those who come after. */
static void
test_later_ones_get_less_and_less(void **state)
{
    uint64_t last = UINT64_MAX;
    port_rings_limit_set(64 * MB, 0);
    for (unsigned i = 0; i < 200; i++) {
        uint64_t share = open_one(i);
        assert_true(share <= last && share >= LEAST);
        assert_true(share == LEAST || port_rings_bytes() <= 64 * MB);
        last = share;
    }
    assert_int_equal(last, LEAST);
    close_all();
    assert_int_equal(open_one(0), 16 * MB); /* what was given back counts */
    close_all();
}

/* A port that comes alone gets no more than those of the start, those that come together the same. */
static void
test_later_ones_get_no_more_than_the_first(void **state)
{
    port_rings_limit_set(64 * MB, 16);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(open_one(i), 4 * MB);
    for (unsigned i = 8; i < 16; i++)
        port_rings_count(&ports[i], 0);
    assert_int_equal(open_one(8), 4 * MB); /* though there is room for more */
    port_rings_ahead(20);
    uint64_t share = open_one(20);
    for (unsigned i = 1; i < 20; i++)
        assert_int_equal(open_one(20 + i), share);
    port_rings_ahead(0);
    assert_true(share <= 4 * MB && port_rings_bytes() <= 64 * MB);
    close_all();
}

/* What a port's ring may grow to is its own. */
static void
test_room_to_grow_is_taken(void **state)
{
    port_rings_limit_set(64 * MB, 0);
    port_rings_reserve(&ports[0], 16 * MB);
    port_rings_count(&ports[0], 1 * MB);
    assert_int_equal(port_rings_bytes(), 1 * MB);
    assert_int_equal(port_rings_share(), 8 * MB); /* a quarter of what is left, rounded down */
    port_rings_count(&ports[0], 17 * MB);         /* both rings, while it grows */
    assert_int_equal(port_rings_share(), 8 * MB);
    port_rings_count(&ports[0], 16 * MB);
    assert_int_equal(port_rings_share(), 8 * MB);
    port_rings_count(&ports[0], 1 * MB);
    assert_int_equal(port_rings_room(&ports[0]), 16 * MB);
    port_rings_limit_set(10 * MB, 0);
    assert_int_equal(port_rings_room(&ports[0]), 8 * MB);
    port_rings_limit_set(64 * MB, 0);
    port_rings_reserve(&ports[0], 0);
    port_rings_count(&ports[0], 0);
    assert_int_equal(port_rings_share(), 16 * MB);
    close_all();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_share_equally),
        cmocka_unit_test(test_later_ones_get_less_and_less),
        cmocka_unit_test(test_later_ones_get_no_more_than_the_first),
        cmocka_unit_test(test_room_to_grow_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
