/* SPDX-License-Identifier: Apache-2.0 */
#include <normal/normal.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void
address(uint8_t mac[6], uint32_t i)
{
    for (int b = 0; b < 6; b++)
        mac[b] = (uint8_t)(b < 2 ? 2 : i >> (8 * (5 - b)));
}

static void
test_learn_move_forget(void **state)
{
    struct normal *n = normal_new();
    uint8_t mac[6];
    address(mac, 77);
    assert_int_equal(normal_find(n, mac, 0, 100), 0);
    normal_learn(n, mac, 0, 3, 100);
    assert_int_equal(normal_find(n, mac, 0, 100), 3);
    assert_int_equal(normal_find(n, mac, 5, 100), 0); /* another VLAN is another domain */
    normal_learn(n, mac, 0, 9, 150);                  /* it moved */
    assert_int_equal(normal_find(n, mac, 0, 150), 9);
    normal_learn(n, mac, 0, NORMAL_LOCAL, 160);
    assert_int_equal(normal_find(n, mac, 0, 160), NORMAL_LOCAL);
    assert_int_equal(normal_find(n, mac, 0, 160 + 290), NORMAL_LOCAL);
    assert_int_equal(normal_find(n, mac, 0, 160 + 320), 0);
    normal_free(n);
}

/* Many addresses: never a wrong port, and few are forgotten while there is room. */
static void
test_many(void **state)
{
    struct normal *n = normal_new();
    uint8_t mac[6];
    unsigned known = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        address(mac, i);
        normal_learn(n, mac, i % 7, (uint16_t)(i % 4000 + 1), 1000);
    }
    for (uint32_t i = 0; i < 20000; i++) {
        address(mac, i);
        uint16_t port = normal_find(n, mac, i % 7, 1001);
        assert_true(!port || port == i % 4000 + 1);
        known += port != 0;
    }
    assert_in_range(known, 19700, 20000);
    normal_free(n);
}

/* Each of these addresses once had the same place in the table, whatever the switch. */
static void
test_nobody_knows_the_places(void **state)
{
    static const uint32_t same_place[] = {1,     11614, 12659, 16373, 26288, 32145,
                                          35002, 50501, 81240, 85766, 94363, 99554};
    struct normal *n = normal_new();
    uint8_t mac[6], victim[6];
    address(victim, same_place[0]);
    normal_learn(n, victim, 0, 1, 100);
    for (uint16_t i = 1; i < sizeof same_place / sizeof *same_place; i++) {
        address(mac, same_place[i]);
        normal_learn(n, mac, 0, (uint16_t)(i + 1), 100);
    }
    assert_int_equal(normal_find(n, victim, 0, 100), 1);
    normal_free(n);
}

#define STATIONS 500
#define FLOOD    400000

static void
learn_stations(struct normal *n, uint16_t port, uint32_t now)
{
    uint8_t mac[6];
    for (uint32_t i = 0; i < STATIONS; i++) {
        address(mac, port * 0x1000000u + i);
        normal_learn(n, mac, 0, port, now);
    }
}

static unsigned
stations_known(const struct normal *n, uint16_t port, uint32_t now)
{
    uint8_t mac[6];
    unsigned known = 0;
    for (uint32_t i = 0; i < STATIONS; i++) {
        address(mac, port * 0x1000000u + i);
        known += normal_find(n, mac, 0, now) == port;
    }
    return known;
}

static void
flood(struct normal *n, uint16_t port, uint32_t now)
{
    uint8_t mac[6];
    for (uint32_t i = 0; i < FLOOD; i++) {
        address(mac, 0xf0000000u + i);
        normal_learn(n, mac, 0, port, now);
    }
}

/* Far more addresses than there is room for, all by port 9. */
static void
test_a_flood_displaces_its_own(void **state)
{
    struct normal *n = normal_new();
    learn_stations(n, 1, 1000);
    learn_stations(n, 2, 1000);
    flood(n, 9, 1050);
    assert_int_equal(stations_known(n, 1, 1100), STATIONS);
    assert_int_equal(stations_known(n, 2, 1100), STATIONS);
    learn_stations(n, 3, 1100); /* those that come later find room */
    assert_int_equal(stations_known(n, 3, 1100), STATIONS);
    flood(n, 9, 1100);
    assert_int_equal(stations_known(n, 3, 1100), STATIONS);
    normal_free(n);
}

static void
test_forget_a_port(void **state)
{
    struct normal *n = normal_new();
    learn_stations(n, 1, 1000);
    learn_stations(n, NORMAL_LOCAL, 1000);
    normal_forget(n, 1);
    assert_int_equal(stations_known(n, 1, 1000), 0);
    assert_int_equal(stations_known(n, NORMAL_LOCAL, 1000), STATIONS);
    normal_free(n);
}

/* What was forgotten does not come back when the few bits of its age begin anew. */
static void
test_no_age_begins_anew(void **state)
{
    struct normal *n = normal_new();
    learn_stations(n, 1, 1000);
    for (uint32_t now = 1000; now < 3000; now++) {
        if (now % NORMAL_SWEEP_S == 0)
            normal_sweep(n, now);
        assert_int_equal(stations_known(n, 1, now), now < 1300 - 16   ? STATIONS
                                                    : now > 1300 + 16 ? 0
                                                                      : stations_known(n, 1, now));
    }
    normal_free(n);
}

/* Another worker's clock may be behind by a round, and find entries from its future. */
static void
test_clocks_differ(void **state)
{
    struct normal *n = normal_new();
    for (uint32_t now = 1000; now < 1100; now++) {
        learn_stations(n, 1, now);
        assert_int_equal(stations_known(n, 1, now - 1), STATIONS);
        normal_sweep(n, now - 1);
        assert_int_equal(stations_known(n, 1, now), STATIONS);
    }
    normal_free(n);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learn_move_forget),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_nobody_knows_the_places),
        cmocka_unit_test(test_a_flood_displaces_its_own),
        cmocka_unit_test(test_forget_a_port),
        cmocka_unit_test(test_no_age_begins_anew),
        cmocka_unit_test(test_clocks_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
