/* SPDX-License-Identifier: Apache-2.0 */
#include <table/normal.h>

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

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learn_move_forget),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
