/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all requests (requests.h): that they are complete, and what is an exception to the rule. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rows.h"

#include <admission/request.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct number {
    const char *name;
    uint16_t message, multipart;
    uint32_t experimenter, exp_type;
};

#define MESSAGE(type, name)              {#name, type, 0, 0, 0},
#define MULTIPART(type, name)            {#name, OFPT_MULTIPART_REQUEST, type, 0, 0},
#define EXPERIMENTER(id, exp_type, name) {#name, OFPT_EXPERIMENTER, 0, id, exp_type},
#define EXPERIMENTER_MULTIPART(id, exp_type, name)                                                 \
    {#name, OFPT_MULTIPART_REQUEST, OFPMP_EXPERIMENTER, id, exp_type},

static const struct number numbers[] = {MESSAGES(MESSAGE) MULTIPARTS(MULTIPART) EXPERIMENTERS(
    EXPERIMENTER) EXPERIMENTER_MULTIPARTS(EXPERIMENTER_MULTIPART)};
#define N (sizeof numbers / sizeof numbers[0])

/* A frame of zeros with these numbers. */
static struct of_bytes
frame_of(const struct number *n)
{
    static uint8_t p[64];
    memset(p, 0, sizeof p);
    p[0] = OFP_VERSION;
    p[1] = (uint8_t)n->message;
    of_set16(p + 2, sizeof p);
    of_set16(p + 8, n->multipart);
    if (n->message == OFPT_EXPERIMENTER || n->multipart == OFPMP_EXPERIMENTER) {
        uint8_t *at = n->message == OFPT_EXPERIMENTER ? p + 8 : p + 16;
        of_set32(at, n->experimenter);
        of_set32(at + 4, n->exp_type);
    }
    return (struct of_bytes){p, sizeof p};
}

static const struct request *
row_of(const struct number *n)
{
    return request_find(frame_of(n));
}

/* Whether the name is one of those in the list, with a space before and after each. */
static bool
is_one_of(const char *list, const char *name)
{
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    return strstr(list, word);
}

static void
each_is_found_and_complete(void **state)
{
#define SAME(row)                      assert_ptr_equal(request_find(frame_of(&numbers[i++])), row);
#define SAME_NUMBER(number, name)      SAME(&request_##name)
#define SAME_NUMBERS(id, number, name) SAME(&request_##name)
    size_t i = 0;
    MESSAGES(SAME_NUMBER)
    MULTIPARTS(SAME_NUMBER)
    EXPERIMENTERS(SAME_NUMBERS)
    EXPERIMENTER_MULTIPARTS(SAME_NUMBERS)
    assert_int_equal(i, N);
    for (i = 0; i < N; i++) {
        const struct request *r = row_of(&numbers[i]);
        assert_int_not_equal(r->access, ACCESS_NONE);
        assert_int_not_equal(!r->run, !r->run_data);
        assert_true(r->least <= r->most);
        assert_true(!r->run_data || numbers[i].message == OFPT_EXPERIMENTER);
    }
}

static void
whoever_changes_something_waits(void **state)
{
    const char *others = " packet_out relay log_set capture bundle_add bundle_control ";
    for (size_t i = 0; i < N; i++) {
        const struct request *r = row_of(&numbers[i]);
        if (r->access == ACCESS_READ || is_one_of(others, numbers[i].name))
            continue;
        if (!(r->needs & QUEUES))
            fail_msg("%s", numbers[i].name);
    }
}

static void
a_slave_may_only_read(void **state)
{
    const char *reads = " features get_config barrier queue_get_config role get_async set_async "
                        "monitor ";
    for (size_t i = 0; i < N; i++) {
        enum access access = row_of(&numbers[i])->access, right = ACCESS_WRITE;
        if (is_one_of(reads, numbers[i].name) || numbers[i].message == OFPT_MULTIPART_REQUEST)
            right = ACCESS_READ;
        if (numbers[i].multipart == OFPMP_TABLE_FEATURES)
            right = ACCESS_WRITE_BODY;
        if (access != right)
            fail_msg("%s", numbers[i].name);
    }
}

static void
what_is_open_to_slices(void **state)
{
    const char *open =
        " features get_config packet_out flow_mod group_mod port_mod table_mod barrier "
        "queue_get_config role get_async set_async meter_mod qos desc flow_stats "
        "aggregate table_stats port_stats queue_stats group_stats group_desc "
        "group_features meter_stats meter_config meter_features table_features "
        "port_desc bundle_add bundle_control monitor qos_dump qos_ports service tins qos_latency "
        "round_trips histograms retransmissions ";
    for (size_t i = 0; i < N; i++)
        if (!row_of(&numbers[i])->slice == is_one_of(open, numbers[i].name))
            fail_msg("%s", numbers[i].name);
}

static void
what_a_bundle_may_hold(void **state)
{
    static const char *const held[] = {[BUNDLE_TABLES] = " flow_mod group_mod meter_mod ",
                                       [BUNDLE_PORTS] = " port_mod ",
                                       [BUNDLE_QUEUES] = " qos "};
    for (size_t i = 0; i < N; i++) {
        enum bundle_part part = BUNDLE_NOT;
        for (size_t k = BUNDLE_TABLES; k < sizeof held / sizeof held[0]; k++)
            if (is_one_of(held[k], numbers[i].name))
                part = (enum bundle_part)k;
        const struct request *r = row_of(&numbers[i]);
        if (r->bundle != part || !r->in_change_set == (part == BUNDLE_TABLES))
            fail_msg("%s", numbers[i].name);
    }
}

static void
what_is_in_no_list(void **state)
{
    static const struct number unknown[] = {
        {"", OFPT_EXPERIMENTER, 0, 1, 1},
        {"", OFPT_EXPERIMENTER, 0, OFP_QOS_EXPERIMENTER, 99},
        {"", OFPT_EXPERIMENTER, 0, OFP_ONF_EXPERIMENTER, 1},
        {"", OFPT_EXPERIMENTER, 0, OFP_OPENFLOW_EXPERIMENTER, 2},
        {"", OFPT_MULTIPART_REQUEST, OFPMP_EXPERIMENTER, 0, OFPMP_FLOW},
        {"", OFPT_MULTIPART_REQUEST, OFPMP_EXPERIMENTER, OFP_QOS_EXPERIMENTER, 99},
        {"", OFPT_MULTIPART_REQUEST, 99, 0, 0},
    };
    static const int errors[] = {
        OF_BAD_REQUEST(BAD_EXPERIMENTER), OF_BAD_REQUEST(BAD_EXP_TYPE),
        OF_BAD_REQUEST(BAD_EXP_TYPE),     OF_BAD_REQUEST(BAD_EXP_TYPE),
        OF_BAD_REQUEST(BAD_EXPERIMENTER), OF_BAD_REQUEST(BAD_EXP_TYPE),
        OF_BAD_REQUEST(BAD_MULTIPART),
    };
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        const struct request *r = row_of(&unknown[i]);
        assert_int_equal(r->run(NULL, NULL, NULL), errors[i]);
        assert_int_equal(r->access, ACCESS_READ);
        assert_int_equal(r->needs | r->bundle, 0);
        if (unknown[i].experimenter == OFP_QOS_EXPERIMENTER)
            assert_null(r->slice); /* it may mean something some day */
    }
    for (uint16_t type = 0; type < 256; type++)
        if (!of_msg_row((uint8_t)type))
            assert_null(row_of(&(struct number){"", type, 0, 0, 0}));
}

/* The header alone decides nothing about memory behind it. */
static void
short_frames(void **state)
{
    for (size_t i = 0; i < N; i++)
        for (size_t n = OFP_HEADER_LEN; n < 24; n++) {
            struct of_bytes all = frame_of(&numbers[i]);
            uint8_t *p = malloc(n);
            memcpy(p, all.p, n);
            assert_non_null(request_find((struct of_bytes){p, n}));
            free(p);
        }
}

int
main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_found_and_complete),
        cmocka_unit_test(whoever_changes_something_waits),
        cmocka_unit_test(a_slave_may_only_read),
        cmocka_unit_test(what_is_open_to_slices),
        cmocka_unit_test(what_a_bundle_may_hold),
        cmocka_unit_test(what_is_in_no_list),
        cmocka_unit_test(short_frames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
