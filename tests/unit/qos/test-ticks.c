/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's time for bytes at a rate, to bytes and back, at the edges of 64-bit arithmetic. */
#include "fill.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* ticks * 64 ns * (bits_per_s / 8), rounded down and up; worked out with integers of any size. */
static const struct {
    uint32_t ticks;
    uint64_t bits_per_s, down, up;
} rows[] = {
    {0u, 0, 0, 0},
    {0u, UINT64_MAX, 0, 0},
    {1u, 0, 0, 0},
    {1u, 7, 0, 0},
    {1u, 8, 0, 1},
    {UINT32_MAX, 0, 0, 0},
    {UINT32_MAX, 8, 274, 275},
    {1u, 124999992, 0, 1},
    {1u, 125000000, 1, 1},
    {1u, 125000008, 1, 2},
    {2u, 62500000, 1, 1},
    {15625000u, 8, 1, 1},
    {15624999u, 8, 0, 1},
    {15625001u, 8, 1, 2},
    {UINT32_MAX, 124999992, 4294967020, 4294967021},
    {UINT32_MAX, 125000000, 4294967295, 4294967295},
    {23438u, 1000000000, 187504, 187504},
    {1200000u, 10000000, 96000, 96000},
    {97656u, 400000000000, 312499200, 312499200},
    {UINT32_MAX, 1000000000000, 34359738360000, 34359738360000},
    {UINT32_MAX, 72057594037927936, 2475880077994299797, 2475880077994299798},
    {UINT32_MAX, 288230376151711744, 9903520311977199189u, 9903520311977199190u},
    {UINT32_MAX, 576460752303423480, UINT64_MAX, UINT64_MAX},
    {UINT32_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
    {134217728u, UINT64_MAX, UINT64_MAX, UINT64_MAX},
    {125000000u, UINT64_MAX, 18446744073709551608u, 18446744073709551608u},
    {124999999u, UINT64_MAX, 18446743926135599018u, 18446743926135599019u},
    {2675342405u, 24660787353, 527808401147, 527808401148},
    {3415330359u, 7569179904107247, 206809999353841324, 206809999353841325},
    {1999834075u, 2787324501, 44593492041, 44593492042},
    {3869338171u, 121553981, 3762667513, 3762667514},
    {1596840319u, 277617531056384, 3546486934816549, 3546486934816550},
    {1635342798u, 10339202195193479, 135265118775803477, 135265118775803478},
};

static void
test_read(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_true(netlink_read_ticks(rows[i].ticks, rows[i].bits_per_s, false) == rows[i].down);
        assert_true(netlink_read_ticks(rows[i].ticks, rows[i].bits_per_s, true) == rows[i].up);
    }
}

/* What is written is read again, but for what a tick (64 ns) is at that rate. */
static void
test_and_back(void **state)
{
    for (uint64_t rate = 8000; rate <= UINT64_C(1000000000000); rate *= 10)
        for (uint64_t bytes = 1; bytes <= UINT32_MAX; bytes *= 3) {
            uint32_t ticks = netlink_fill_ticks(bytes, rate);
            uint64_t back = netlink_read_ticks(ticks, rate, false);
            uint64_t a_tick = rate / 8 / 15625000 + 1;
            assert_true(ticks == UINT32_MAX || (back >= bytes && back <= bytes + a_tick));
        }
    assert_int_equal(netlink_fill_ticks(1, 7), UINT32_MAX);
    assert_int_equal(netlink_fill_ticks(UINT32_MAX, 8), UINT32_MAX);
}

/* A packet on the link, and back: at least as many bytes as were given fill the same cells. */
static void
test_link(void **state)
{
    struct qos_values v = {0};
    assert_int_equal(netlink_link_size(&v, 64), 64);
    qos_put(&v, QOS_OVERHEAD, 44);
    qos_put(&v, QOS_MPU, 128);
    assert_int_equal(netlink_link_size(&v, 64), 128);
    assert_int_equal(netlink_link_size(&v, 85), 129);
    assert_int_equal(netlink_link_room(&v, 129), 85);
    assert_int_equal(netlink_link_room(&v, 43), 0);
    qos_put(&v, QOS_LINKLAYER, QOS_ATM);
    assert_int_equal(netlink_link_size(&v, 0), 3 * 53);
    for (uint64_t bytes = 100; bytes < 2000; bytes++) {
        uint64_t size = netlink_link_size(&v, bytes), room = netlink_link_room(&v, size);
        assert_int_equal(size, (bytes + 44 + 47) / 48 * 53);
        assert_true(room >= bytes && room < bytes + 48);
        assert_int_equal(netlink_link_size(&v, room), size);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_link),
        cmocka_unit_test(test_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
