/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of a prefix (qos/profile/hosts.h). */
#include "test.h"

#include <oflib/text.h>
#include <qos/profile/hosts.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void
fits(const char *text, unsigned each, uint32_t n, const char *first, const char *last)
{
    struct qos_hosts h = {0};
    char why[256], host[QOS_HOSTS_TEXT];
    if (qos_hosts_parse(&h, text, each, why, sizeof why))
        fail_msg("%s: %s", text, why);
    assert_int_equal(h.n, n);
    assert_string_equal(qos_hosts_print(&h, 0, host), first);
    assert_string_equal(qos_hosts_print(&h, n - 1, host), last);
}

static void
refused(const char *text, unsigned each, const char *says)
{
    struct qos_hosts h = {.n = 77};
    char why[256] = "";
    assert_int_equal(qos_hosts_parse(&h, text, each, why, sizeof why), -EINVAL);
    assert_int_equal(h.n, 77);
    if (!strstr(why, says))
        fail_msg("%s: %s", text, why);
}

static void
prefixes(void **state)
{
    fits("10.0.0.0/24", 0, 254, "10.0.0.1", "10.0.0.254");
    fits("10.0.0.0/20", 0, 4094, "10.0.0.1", "10.0.15.254");
    fits("10.0.0.4/31", 0, 2, "10.0.0.4", "10.0.0.5");
    fits("10.0.0.4", 0, 1, "10.0.0.4", "10.0.0.4");
    fits("0.0.0.0/0", 8, 256, "0.0.0.0/8", "255.0.0.0/8");
    fits("10.0.0.0/22", 26, 16, "10.0.0.0/26", "10.0.3.192/26");
    fits("2001:db8::/116", 0, 4096, "2001:db8::", "2001:db8::fff");
    fits("2001:db8::/52", 64, 4096, "2001:db8::/64", "2001:db8:0:fff::/64");
    fits("fd00::1", 0, 1, "fd00::1", "fd00::1");
}

static void
what_is_none(void **state)
{
    refused("", 0, "no network");
    refused("10.0.0", 0, "no network");
    refused("10.0.0.0/33", 0, "no network");
    refused("10.0.0.0/-1", 0, "no network");
    refused("10.0.0.0/", 0, "no network");
    refused("2001:db8::/129", 0, "no network");
    refused("10.0.0.3/24", 0, "write prefix=10.0.0.0/24");
    refused("2001:db8::1/64", 0, "write prefix=2001:db8::/64");
    refused("10.0.0.0/19", 0, "/20 or longer");
    refused("2001:db8::/64", 0, "each=64");
    refused("0.0.0.0/0", 0, "2^32");
    refused("10.0.0.0/24", 33, "32 bits");
    refused("10.0.0.0/24", 16, "24 to 32");
}

/* Each host is found by the match that its flow has, and by no other's. */
static void
found_again(void **state)
{
    static const struct {
        const char *prefix, *field;
        unsigned each;
        bool source;
    } all[] = {{"10.0.0.0/20", "eth_type=0x800,ipv4_dst", 0, false},
               {"10.0.0.0/22", "eth_type=0x800,ipv4_src", 26, true},
               {"2001:db8::/116", "eth_type=0x86dd,ipv6_dst", 0, false},
               {"2001:db8::/52", "eth_type=0x86dd,ipv6_src", 64, true}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
        struct of_arena arena;
        struct of_parse p = {.arena = &arena};
        struct qos_hosts h = {.source = all[k].source}, other;
        char why[256], host[QOS_HOSTS_TEXT], text[160];
        uint32_t at;
        of_arena_init(&arena, 64 << 20);
        assert_int_equal(qos_hosts_parse(&h, all[k].prefix, all[k].each, why, sizeof why), 0);
        other = h;
        other.source = !h.source;
        for (uint32_t i = 0; i < h.n; i++) {
            struct of_match m;
            snprintf(text, sizeof text, "%s=%s", all[k].field, qos_hosts_print(&h, i, host));
            assert_int_equal(of_parse_match(&p, text, &m), 0);
            assert_true(qos_hosts_find(&h, &m, &at));
            assert_int_equal(at, i);
            assert_false(qos_hosts_find(&other, &m, &at));
        }
        of_arena_free(&arena);
    }
}

static void
others_are_not_found(void **state)
{
    static const char *const matches[] = {"eth_type=0x800,ipv4_dst=10.0.0.0",
                                          "eth_type=0x800,ipv4_dst=10.0.0.255",
                                          "eth_type=0x800,ipv4_dst=10.0.1.7",
                                          "eth_type=0x800,ipv4_dst=10.0.0.0/24",
                                          "eth_type=0x800,ipv4_dst=10.0.0.5/255.255.255.253",
                                          "eth_type=0x800",
                                          ""};
    struct of_arena arena;
    struct of_parse p = {.arena = &arena};
    struct qos_hosts h = {0};
    of_arena_init(&arena, 1 << 20);
    char why[256];
    uint32_t at;
    assert_int_equal(qos_hosts_parse(&h, "10.0.0.0/24", 0, why, sizeof why), 0);
    for (size_t i = 0; i < sizeof matches / sizeof matches[0]; i++) {
        struct of_match m;
        assert_int_equal(of_parse_match(&p, matches[i], &m), 0);
        if (qos_hosts_find(&h, &m, &at))
            fail_msg("%s", matches[i]);
    }
    of_arena_free(&arena);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes),
        cmocka_unit_test(what_is_none),
        cmocka_unit_test(found_again),
        cmocka_unit_test(others_are_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
