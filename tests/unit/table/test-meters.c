/* SPDX-License-Identifier: Apache-2.0 */
/* Meters: what passes over time, with the test's own clock. */
#include <group/meters.h>
#include <shared/rcu.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define SEC UINT64_C(1000000000)

static int
drop_meter(struct meters *m, uint16_t command, uint32_t id, uint16_t flags, uint32_t rate,
           uint32_t burst)
{
    struct of_band_drop b = {
        .row = of_tag_row(&of_list_bands, OFPMBT_DROP), .rate = rate, .burst_size = burst};
    void *v[] = {&b};
    struct of_meter_mod req = {
        .command = command, .flags = flags, .meter_id = id, .bands = {.n = 1, .v = v}};
    return meters_mod(m, &req, 0);
}

/* Bytes per second that pass when packets of `len` bytes come for ten seconds, to the workers in turn;
 * the bucket is full at first. */
static double
passed(struct meter *mt, unsigned workers, uint32_t len, double offered_bps)
{
    uint8_t bytes[2048] = {0};
    struct packet p = {.data = bytes, .len = len, .wire_len = len};
    double step = len * 8 * 1e9 / offered_bps, now = (double)(100 * SEC), end = now + 10e9;
    uint64_t sum = 0;
    for (unsigned i = 0; now < end; now += step, i++)
        if (!meter_run(mt, i % workers, &p, (uint64_t)now))
            sum += len;
    return (double)sum / 10;
}

static void
rates(unsigned workers)
{
    static const uint32_t mbits[] = {1, 10, 100, 1000};
    static const uint32_t lens[] = {60, 590, 1514};
    struct meters *m = meters_new(workers);
    size_t n = workers > 1 ? 3 : sizeof mbits / sizeof mbits[0]; /* the highest takes long */
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < sizeof lens / sizeof lens[0]; j++) {
            assert_int_equal(drop_meter(m, OFPMC_ADD, 1, OFPMF_KBPS, mbits[i] * 1000, 0), 0);
            double want = mbits[i] * 1e6 / 8,
                   got = passed(meters_find(m, 1), workers, lens[j], mbits[i] * 2e6);
            assert_true(got > want * 0.999 && got < want * 1.0205);
            assert_int_equal(drop_meter(m, OFPMC_DELETE, 1, 0, 1, 0), 0);
        }
    rcu_wait();
    meters_free(m);
}

static void
test_rates(void **state)
{
    rates(1);
    rates(2);
    rates(7);
}

/* What passes at one moment is the burst and at most one packet more, however it comes to the
 * workers, and after any time what the rate gave meanwhile. */
static void
test_bursts_of_workers(void **state)
{
    enum { WORKERS = 3, LEN = 100, BURST = 1000 }; /* kbit: 1,250 packets */
    uint8_t bytes[LEN] = {0};
    struct packet p = {.data = bytes, .len = LEN, .wire_len = LEN};
    struct meters *m = meters_new(WORKERS);
    assert_int_equal(drop_meter(m, OFPMC_ADD, 1, OFPMF_KBPS | OFPMF_BURST, 8000, BURST), 0);
    struct meter *mt = meters_find(m, 1);
    uint64_t now = 100 * SEC;
    unsigned sum = 0;
    for (unsigned i = 0; i < 3000; i++)
        sum += !meter_run(mt, i * i % 7 % WORKERS, &p, now);
    assert_in_range(sum, 1250 * 15 / 16, 1251);
    for (unsigned round = 0; round < 100; round++) { /* 10 ms are 100 packets */
        now += SEC / 100;
        for (unsigned i = 0; i < 300; i++)
            sum += !meter_run(mt, (round + i / 100) % WORKERS, &p, now);
        assert_in_range(sum, 1250 * 15 / 16 + (round + 1) * 100, 1251 + (round + 1) * 100);
    }
    /* All workers hold something: the next burst is no longer for it. */
    unsigned before = sum;
    now += 100 * SEC;
    for (unsigned i = 0; i < 6000; i++)
        sum += !meter_run(mt, i / 2000, &p, now);
    assert_in_range(sum - before, 1250 * 15 / 16, 1251);
    meters_free(m);
}

/* A burst in 1/16 ns: exact for any burst and rate, and at most nine years. */
static void
test_bursts(void **state)
{
    static const struct {
        uint32_t burst, rate;
        uint64_t depth;
    } rows[] = {
        {1152921504, 1000000000, UINT64_C(18446744064)},
        {1152921505, 1000000000, UINT64_C(18446744080)},
        {4000000000, 4000000000, 16 * SEC},
        {UINT32_MAX, UINT32_MAX, 16 * SEC},
        {UINT32_MAX, 1000, UINT64_C(68719476720000000)},
        {3, 4000000000, 12},
        {UINT32_MAX, 1, UINT64_C(1) << 62},
    };
    struct meters *m = meters_new(1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(
            drop_meter(m, OFPMC_ADD, 1, OFPMF_KBPS | OFPMF_BURST, rows[i].rate, rows[i].burst), 0);
        assert_true(meters_find(m, 1)->bands[0].depth == rows[i].depth);
        assert_int_equal(drop_meter(m, OFPMC_DELETE, 1, 0, 1, 0), 0);
    }
    rcu_wait();
    meters_free(m);
}

static void
test_burst_without_its_flag(void **state)
{
    struct meters *m = meters_new(1);
    assert_int_equal(drop_meter(m, OFPMC_ADD, 1, OFPMF_KBPS, 1000, 0), 0);
    assert_int_equal(drop_meter(m, OFPMC_ADD, 2, OFPMF_KBPS, 1000, 77), 0);
    const struct band *none = &meters_find(m, 1)->bands[0], *some = &meters_find(m, 2)->bands[0];
    assert_int_equal(some->burst, 77);
    assert_true(some->depth == none->depth);
    /* Longer than most of a retransmission timeout, shorter than 2 % of ten seconds. */
    assert_in_range(none->depth, 16 * SEC * 185 / 1000, 16 * SEC * 195 / 1000);
    rcu_wait();
    meters_free(m);
}

static void
test_packets_per_second(void **state)
{
    struct meters *m = meters_new(1);
    assert_int_equal(drop_meter(m, OFPMC_ADD, 5, OFPMF_PKTPS | OFPMF_BURST, 1000, 10), 0);
    double got = passed(meters_find(m, 5), 1, 100, 100 * 8 * 5000) / 100;
    assert_true(got > 999 && got < 1003);
    struct flow_counter in = meters_counter(m, meters_find(m, 5), -1),
                        over = meters_counter(m, meters_find(m, 5), 0);
    assert_in_range(in.packets, 49990, 50010);
    assert_in_range(over.packets, 39950, 40010);
    meters_free(m);
}

static void
test_refused(void **state)
{
    struct meters *m = meters_new(1);
    assert_int_equal(drop_meter(m, OFPMC_ADD, 0, OFPMF_KBPS, 1, 0),
                     OF_METER_MOD_FAILED(INVALID_METER));
    assert_int_equal(drop_meter(m, OFPMC_ADD, OFPM_ALL, OFPMF_KBPS, 1, 0),
                     OF_METER_MOD_FAILED(INVALID_METER));
    assert_int_equal(drop_meter(m, OFPMC_ADD, 1, OFPMF_KBPS, 0, 0), OF_METER_MOD_FAILED(BAD_RATE));
    assert_int_equal(drop_meter(m, OFPMC_ADD, 1, OFPMF_KBPS | OFPMF_BURST, 1, 0),
                     OF_METER_MOD_FAILED(BAD_BURST));
    assert_int_equal(drop_meter(m, OFPMC_ADD, 1, OFPMF_KBPS | OFPMF_PKTPS, 1, 0),
                     OF_METER_MOD_FAILED(BAD_FLAGS));
    assert_int_equal(drop_meter(m, OFPMC_MODIFY, 1, OFPMF_KBPS, 1, 0),
                     OF_METER_MOD_FAILED(UNKNOWN_METER));
    assert_int_equal(drop_meter(m, 9, 1, OFPMF_KBPS, 1, 0), OF_METER_MOD_FAILED(BAD_COMMAND));
    assert_int_equal(drop_meter(m, OFPMC_ADD, 1, OFPMF_KBPS, 1, 0), 0);
    assert_int_equal(drop_meter(m, OFPMC_ADD, 1, OFPMF_KBPS, 1, 0),
                     OF_METER_MOD_FAILED(METER_EXISTS));
    assert_int_equal(drop_meter(m, OFPMC_DELETE, 2, 0, 1, 0), 0);
    meters_free(m);
}

static void
test_bands_refused(void **state)
{
    struct of_band_dscp_remark remark = {
        .row = of_tag_row(&of_list_bands, OFPMBT_DSCP_REMARK), .rate = 1, .prec_level = 2};
    struct of_tagged other = {.row = of_tag_row(&of_list_bands, OFPMBT_EXPERIMENTER)};
    void *v[] = {&remark, &other};
    struct of_meter_mod req = {
        .command = OFPMC_ADD, .flags = OFPMF_KBPS, .meter_id = 1, .bands = {.n = 2, .v = v}};
    struct meters *m = meters_new(1);
    assert_int_equal(meters_mod(m, &req, 0), OF_METER_MOD_FAILED(BAD_BAND));
    req.bands.n = 1;
    remark.prec_level = 3;
    assert_int_equal(meters_mod(m, &req, 0), OF_METER_MOD_FAILED(BAD_BAND_VALUE));
    remark.prec_level = 2;
    assert_int_equal(meters_count(m), 0);
    assert_int_equal(meters_mod(m, &req, 0), 0);
    assert_int_equal(meters_count(m), 1);
    meters_free(m);
}

static void
test_limit(void **state)
{
    struct meters *m = meters_new(1);
    struct limits l = limits_default(UINT64_MAX);
    l.meters = 2;
    meters_limit(m, &l);
    assert_int_equal(drop_meter(m, OFPMC_ADD, 1, OFPMF_KBPS, 1, 0), 0);
    assert_int_equal(drop_meter(m, OFPMC_ADD, 9, OFPMF_KBPS, 1, 0), 0);
    assert_int_equal(drop_meter(m, OFPMC_ADD, 2, OFPMF_KBPS, 1, 0),
                     OF_METER_MOD_FAILED(OUT_OF_METERS));
    assert_int_equal(drop_meter(m, OFPMC_MODIFY, 9, OFPMF_KBPS, 2, 0), 0);
    assert_int_equal(drop_meter(m, OFPMC_DELETE, 1, 0, 1, 0), 0);
    assert_int_equal(drop_meter(m, OFPMC_ADD, 2, OFPMF_KBPS, 1, 0), 0);
    assert_int_equal(meters_count(m), 2);
    meters_free(m);
}

/* A band that remarks leaves what is no assured-forwarding class as it is. */
static void
test_remark_leaves_others(void **state)
{
    static const uint8_t dscps[] = {0, 8, 11, 40, 46, 48, 63}; /* 46: EF */
    struct of_band_dscp_remark b = {.row = of_tag_row(&of_list_bands, OFPMBT_DSCP_REMARK),
                                    .rate = 1,
                                    .burst_size = 1,
                                    .prec_level = 1};
    void *v[] = {&b};
    struct of_meter_mod req = {.command = OFPMC_ADD,
                               .flags = OFPMF_KBPS | OFPMF_BURST,
                               .meter_id = 1,
                               .bands = {.n = 1, .v = v}};
    uint8_t bytes[1514] = {0};
    static const uint8_t zeros[sizeof bytes];
    struct packet p = {.data = bytes, .len = sizeof bytes, .wire_len = sizeof bytes};
    struct meters *m = meters_new(1);
    assert_int_equal(meters_mod(m, &req, 0), 0);
    struct meter *mt = meters_find(m, 1);
    while (!meters_counter(m, mt, 0).packets)
        assert_int_equal(meter_run(mt, 0, &p, SEC), 0);
    for (size_t i = 0; i < sizeof dscps; i++) {
        p.key.ip_dscp = dscps[i];
        assert_int_equal(meter_run(mt, 0, &p, SEC), 0);
        assert_int_equal(p.key.ip_dscp, dscps[i]);
        assert_memory_equal(bytes, zeros, sizeof bytes);
    }
    assert_int_equal(meters_counter(m, mt, 0).packets, 1 + sizeof dscps);
    meters_free(m);
}

/* AF11 becomes AF12, and AF13 remains: in the packet, and where it is only looked at. */
static void
test_remark(void **state)
{
    struct of_band_dscp_remark b = {.row = of_tag_row(&of_list_bands, OFPMBT_DSCP_REMARK),
                                    .rate = 1,
                                    .burst_size = 1,
                                    .prec_level = 1};
    void *v[] = {&b};
    struct of_meter_mod req = {.command = OFPMC_ADD,
                               .flags = OFPMF_KBPS | OFPMF_BURST,
                               .meter_id = 1,
                               .bands = {.n = 1, .v = v}};
    uint8_t bytes[1514] = {[12] = 8, [14] = 0x45, [15] = 10 << 2, [16] = 5, [17] = 220, [23] = 253};
    struct packet p = {.data = bytes, .len = sizeof bytes, .wire_len = sizeof bytes};
    struct band_look looks[METER_MAX_BANDS];
    struct meters *m = meters_new(1);
    int band;
    assert_int_equal(meters_mod(m, &req, 0), 0);
    struct meter *mt = meters_find(m, 1);
    packet_parse(&p, 1);
    assert_int_equal(p.key.ip_dscp, 10);
    assert_int_equal(meter_look(mt, &p, SEC, looks, &band), 0);
    assert_int_equal(band, -1);
    while (!meters_counter(m, mt, 0).packets)
        assert_int_equal(meter_run(mt, 0, &p, SEC), 0);
    assert_int_equal(bytes[15] >> 2, 12);
    assert_int_equal(meter_look(mt, &p, SEC, looks, &band), 0);
    assert_int_equal(band, 0);
    assert_true(looks[0].exceeded);
    assert_int_equal(meter_run(mt, 0, &p, SEC), 0);
    assert_int_equal(bytes[15] >> 2, 14);
    meters_free(m);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remark_leaves_others),
        cmocka_unit_test(test_remark),
        cmocka_unit_test(test_rates),
        cmocka_unit_test(test_bursts_of_workers),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_burst_without_its_flag),
        cmocka_unit_test(test_packets_per_second),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bands_refused),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
