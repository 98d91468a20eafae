/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <qos/sched/units.h>
#include <qos/sched/values.h>

#include <string.h>

#define OK(parse, text, want)                                                                      \
    do {                                                                                           \
        uint64_t v = 1;                                                                            \
        assert_int_equal(parse(text, &v, why, sizeof why), 0);                                     \
        assert_int_equal(v, want);                                                                 \
    } while (0)

#define BAD(parse, text)                                                                           \
    do {                                                                                           \
        uint64_t v = 77;                                                                           \
        why[0] = 0;                                                                                \
        assert_true(parse(text, &v, why, sizeof why) < 0);                                         \
        assert_int_equal(v, 77);                                                                   \
        assert_true(why[0]);                                                                       \
    } while (0)

static char why[256];

static int
time_ms(const char *text, uint64_t *v, char *w, size_t n)
{
    return qos_parse_time(text, v, 1000, w, n);
}

static void
rates(void **state)
{
    OK(qos_parse_rate, "6mbit", 6000000);
    OK(qos_parse_rate, "6Mbit", 6000000);
    OK(qos_parse_rate, "1.5mbit", 1500000);
    OK(qos_parse_rate, "100kbps", 800000);
    OK(qos_parse_rate, "100kBps", 800000);
    OK(qos_parse_rate, "1gbit", 1000000000);
    OK(qos_parse_rate, "400gbit", 400000000000);
    OK(qos_parse_rate, "100kibit", 102400);
    OK(qos_parse_rate, "1tbit", 1000000000000);
    OK(qos_parse_rate, "8000", 8000);
    OK(qos_parse_rate, "0", 0);
    OK(qos_parse_rate, "10Mbit/s", 10000000);
    OK(qos_parse_rate, "0.5kbit", 500);
    OK(qos_parse_rate, "18446744073709551615", UINT64_MAX);
    BAD(qos_parse_rate, "");
    BAD(qos_parse_rate, "mbit");
    BAD(qos_parse_rate, "-1mbit");
    BAD(qos_parse_rate, "6 mbit");
    BAD(qos_parse_rate, "6mbyte");
    BAD(qos_parse_rate, "6mbit ");
    BAD(qos_parse_rate, "18446744073709551616");
    BAD(qos_parse_rate, "18446744073710mbit");
    BAD(qos_parse_rate, ".");
}

static void
sizes(void **state)
{
    OK(qos_parse_size, "30kb", 30720);
    OK(qos_parse_size, "2mb", 2097152);
    OK(qos_parse_size, "1500", 1500);
    OK(qos_parse_size, "1500b", 1500);
    OK(qos_parse_size, "16k", 16384);
    OK(qos_parse_size, "8kbit", 1024);
    OK(qos_parse_size, "1.5k", 1536);
    BAD(qos_parse_size, "30kB/s");
    BAD(qos_parse_size, "x");
}

static void
times(void **state)
{
    OK(time_ms, "10", 10000);
    OK(time_ms, "10s", 10000000);
    OK(time_ms, "5ms", 5000);
    OK(time_ms, "100us", 100);
    OK(time_ms, "2.5ms", 2500);
    BAD(time_ms, "5m");
}

static void
shares_and_numbers(void **state)
{
    OK(qos_parse_ppm, "2%", 20000);
    OK(qos_parse_ppm, "0.02", 20000);
    OK(qos_parse_ppm, "100%", 1000000);
    OK(qos_parse_ppm, "0.0001%", 1);
    BAD(qos_parse_ppm, "101%");
    BAD(qos_parse_ppm, "2");
    OK(qos_parse_number, "10", 10);
    OK(qos_parse_number, "0x1f", 31);
    OK(qos_parse_number, "0XFFEF", 0xffef);
    OK(qos_parse_number, "0", 0);
    BAD(qos_parse_number, "0x");
    BAD(qos_parse_number, "1f");
    BAD(qos_parse_number, "0x1g");
    BAD(qos_parse_number, "-1");
    BAD(qos_parse_number, "0x10000000000000000");
}

static void
formats(void **state)
{
    char b[QOS_UNIT_TEXT];
    assert_string_equal(qos_format_rate(6000000, b), "6mbit");
    assert_string_equal(qos_format_rate(1500000, b), "1500kbit");
    assert_string_equal(qos_format_rate(123, b), "123bit");
    assert_string_equal(qos_format_rate(0, b), "0bit");
    assert_string_equal(qos_format_size(30720, b), "30kb");
    assert_string_equal(qos_format_size(1500, b), "1500b");
    assert_string_equal(qos_format_time(5000, b), "5ms");
    assert_string_equal(qos_format_time(1234, b), "1234us");
    assert_string_equal(qos_format_ppm(20000, b), "2%");
    assert_string_equal(qos_format_ppm(125, b), "0.0125%");
    assert_string_equal(qos_format_ppm(1000000, b), "100%");
    assert_string_equal(qos_format_ppm(0, b), "0%");
}

/* What is as tc means it, and perhaps not as its writer does. */
static void
doubts(void **state)
{
    assert_false(qos_rate_doubt("rate", "5mbit", why, sizeof why));
    assert_true(qos_rate_doubt("rate", "5bps", why, sizeof why));
    assert_string_equal(
        why, "rate=5bps is 40bit: bps are bytes per second, as for tc; write 5bit, or 40bit if "
             "you mean that");
    assert_true(qos_rate_doubt("rate", "20", why, sizeof why));
    assert_non_null(strstr(why, "write 20mbit"));
}

/* Any value, formatted and parsed, is itself. */
static void
round_trips(void **state)
{
    char b[QOS_UNIT_TEXT];
    uint64_t v, x = 88172645463325252ull;
    for (unsigned i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        uint64_t n = x >> (x & 63);
        assert_int_equal(qos_parse_rate(qos_format_rate(n, b), &v, why, sizeof why), 0);
        assert_int_equal(v, n);
        assert_int_equal(qos_parse_size(qos_format_size(n, b), &v, why, sizeof why), 0);
        assert_int_equal(v, n);
        assert_int_equal(qos_parse_time(qos_format_time(n, b), &v, 7, why, sizeof why), 0);
        assert_int_equal(v, n);
        assert_int_equal(qos_parse_ppm(qos_format_ppm(n % 1000001, b), &v, why, sizeof why), 0);
        assert_int_equal(v, n % 1000001);
    }
}

/* Each slot by itself, whichever word of the set it is in. */
static void
slots(void **state)
{
    struct qos_values v = {0};
    for (unsigned slot = 1; slot < QOS_N_SLOTS; slot++) {
        qos_put(&v, slot, slot);
        assert_int_equal(qos_slots_count(&v.set), slot);
    }
    for (unsigned gone = 1; gone < QOS_N_SLOTS; gone++) {
        qos_unset(&v, gone);
        for (unsigned slot = 1; slot < QOS_N_SLOTS; slot++) {
            assert_int_equal(qos_has(&v, slot), slot > gone);
            assert_int_equal(v.v[slot], slot > gone ? slot : 0);
        }
    }
    assert_int_equal(qos_slots_count(&v.set), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates),   cmocka_unit_test(sizes),
        cmocka_unit_test(times),   cmocka_unit_test(shares_and_numbers),
        cmocka_unit_test(formats), cmocka_unit_test(round_trips),
        cmocka_unit_test(slots),   cmocka_unit_test(doubts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
