/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder's own promises: lengths worked out, limits, nothing left behind on refusal. */
#include "test.h"

#include <errno.h>

/* What was written is exactly this. */
static void
assert_hex(const struct of_wr *w, const char *hex)
{
    uint8_t want[4096];
    long n = hex_bytes(hex, want, sizeof want);
    assert_false(w->overflow);
    assert_int_equal(w->len, n);
    assert_memory_equal(w->buf, want, (size_t)n);
}

static struct of_action_output
output(uint32_t port)
{
    return (struct of_action_output){.row = OF_ACTION(OUTPUT), .port = port};
}

static void
empty_body(void **state)
{
    uint8_t buf[64];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    assert_int_equal(of_encode_body(&w, OFPT_BARRIER_REPLY, 7, NULL), 0);
    assert_hex(&w, "04 15 0008 00000007");
}

static void
appends(void **state)
{
    uint8_t buf[64];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    struct of_switch_config c = {.flags = 1, .miss_send_len = 128};
    assert_int_equal(of_encode_body(&w, OFPT_BARRIER_REPLY, 7, NULL), 0);
    assert_int_equal(of_encode_body(&w, OFPT_GET_CONFIG_REPLY, 8, &c), 0);
    assert_hex(&w, "04150008 00000007 0408000c 00000008 0001 0080");
}

/* Lengths of match, instruction, action, set_field's padding: none is given. */
static void
lengths_inside(void **state)
{
    uint8_t buf[256];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    struct of_oxm in_port = {.row = &oxm_rows[OXM_in_port], .value = {0, 0, 0, 1}};
    struct of_action_set_field set = {
        .row = OF_ACTION(SET_FIELD),
        .field = {.row = &oxm_rows[OXM_eth_dst], .value = {2, 0, 0, 0, 0, 1}}};
    struct of_action_output out = output(2);
    void *actions[] = {&set, &out};
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS), .actions = {2, actions, {0}}};
    void *instructions[] = {&apply};
    struct of_flow_mod fm = {.match = {1, &in_port}, .instructions = {1, instructions, {0}}};
    assert_int_equal(of_encode_body(&w, OFPT_FLOW_MOD, 1, &fm), 0);
    assert_hex(&w, "04 0e 0068 00000001"
                   "0000000000000000 0000000000000000 00 00 0000 0000 0000 00000000 00000000"
                   "00000000 0000 0000"
                   "0001 000c 80000004 00000001 00000000"
                   "0004 0028 00000000"
                   "0019 0010 80000606 020000000001 0000"
                   "0000 0010 00000002 0000 000000000000");
}

/* A list may be given as the bytes it was received as. */
static void
list_by_its_bytes(void **state)
{
    uint8_t buf[64];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    static const uint8_t action[] = {0, 0x15, 0, 8, 0, 0, 0, 5}, data[] = {0xaa, 0xbb};
    struct of_packet_out po = {.buffer_id = 1,
                               .in_port = 2,
                               .actions = {.raw = {action, sizeof action}},
                               .data = {data, sizeof data}};
    assert_int_equal(of_encode_body(&w, OFPT_PACKET_OUT, 1, &po), 0);
    assert_hex(&w, "04 0d 0022 00000001 00000001 00000002 0008 000000000000"
                   "0015 0008 00000005 aabb");
}

static void
multipart(void **state)
{
    uint8_t buf[64];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    struct of_mp_aggregate agg = {.packet_count = 1, .byte_count = 2, .flow_count = 3};
    assert_int_equal(of_encode_multipart(&w, OFPT_MULTIPART_REQUEST, 1, OFPMP_DESC, 0, NULL), 0);
    assert_hex(&w, "04 12 0010 00000001 0000 0000 00000000");
    w.len = 0;
    assert_int_equal(
        of_encode_multipart(&w, OFPT_MULTIPART_REPLY, 1, OFPMP_AGGREGATE, OFPMPF_REPLY_MORE, &agg),
        0);
    assert_hex(&w, "04 13 0028 00000001 0002 0001 00000000"
                   "0000000000000001 0000000000000002 00000003 00000000");
}

static void
strings(void **state)
{
    uint8_t buf[128];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    struct of_port p = {.port_no = 1};
    memset(p.name, 'x', sizeof p.name); /* no room for its NUL: the last one goes */
    assert_int_equal(of_encode_struct(&w, &of_row_port, &p), 0);
    assert_int_equal(w.len, 64);
    assert_memory_equal(buf + 16, "xxxxxxxxxxxxxxx\0", 16);
}

static void
error_messages(void **state)
{
    uint8_t buf[256], request[100];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    for (size_t i = 0; i < sizeof request; i++)
        request[i] = (uint8_t)i;
    int err = OF_BAD_REQUEST(BAD_LEN);
    assert_int_equal(of_encode_error(&w, 9, err, (struct of_bytes){request, 10}, NULL), 0);
    assert_hex(&w, "04 01 0016 00000009 0001 0006 00010203040506070809");
    w.len = 0;
    assert_int_equal(of_encode_error(&w, 9, err, (struct of_bytes){request, 100}, "ignored"), 0);
    assert_int_equal(w.len, 12 + 64);
    assert_memory_equal(buf + 12, request, 64);
    w.len = 0;
    err = OF_HELLO_FAILED(INCOMPATIBLE);
    assert_int_equal(of_encode_error(&w, 9, err, (struct of_bytes){request, 10}, "no"), 0);
    assert_hex(&w, "04 01 000e 00000009 0000 0000 6e6f");
    w.len = 0;
    assert_int_equal(of_encode_error(&w, 9, err, (struct of_bytes){request, 10}, NULL), 0);
    assert_hex(&w, "04 01 000c 00000009 0000 0000");
}

/* A bundle's error goes out as ONF's experimenter error. */
static void
bundle_error(void **state)
{
    static const uint8_t request[70] = {4, 4};
    uint8_t buf[200];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    int err = OF_BUNDLE_FAILED(MSG_UNSUP);
    assert_int_equal(of_encode_error(&w, 9, err, (struct of_bytes){request, 2}, NULL), 0);
    assert_hex(&w, "04 01 0012 00000009 ffff 0906 4f4e4600 0404");
    w.len = 0;
    assert_int_equal(of_encode_error(&w, 9, err, (struct of_bytes){request, 70}, NULL), 0);
    assert_int_equal(w.len, 16 + 64);
    assert_memory_equal(buf + 16, request, 64);
}

static void
error_values(void **state)
{
    int err = OF_HELLO_FAILED(INCOMPATIBLE);
    assert_true(err > 0);
    assert_int_equal(of_err_type(err), 0);
    assert_int_equal(of_err_code(err), 0);
    err = OF_ERR(OFPET_SCHED_FAILED, 0xffff);
    assert_true(err > 0);
    assert_int_equal(of_err_type(err), 14);
    assert_int_equal(of_err_code(err), 0xffff);
}

/* A message is at most 65,535 bytes, whatever the writer could take. */
static void
too_long(void **state)
{
    static uint8_t data[70000];
    struct of_wr w = of_wr_grow(1 << 20);
    struct of_echo e = {.data = {data, OF_MSG_MAX - 8}};
    of_wr8(&w, 0xaa);
    assert_int_equal(of_encode_body(&w, OFPT_ECHO_REPLY, 1, &e), 0);
    assert_int_equal(w.len, 1 + OF_MSG_MAX);
    assert_int_equal(of_get16(w.buf + 1 + 2), 0xffff);
    w.len = 1;
    e.data.n++;
    assert_int_equal(of_encode_body(&w, OFPT_ECHO_REPLY, 1, &e), -EMSGSIZE);
    assert_int_equal(w.len, 1);
    assert_false(w.overflow);
    assert_int_equal(w.buf[0], 0xaa);
    of_wr_free(&w);
}

static void
too_long_inside(void **state)
{
    enum { N = 4097 }; /* of 16 bytes: 65,552 */
    static void *actions[N];
    struct of_action_output out = output(1);
    for (int i = 0; i < N; i++)
        actions[i] = &out;
    struct of_wr w = of_wr_grow(1 << 20);
    struct of_bucket b = {.actions = {N, actions, {0}}};
    void *buckets[] = {&b};
    struct of_list list = {1, buckets, {0}};
    struct of_packet_out po = {.actions = {N, actions, {0}}};
    assert_int_equal(of_encode_list(&w, &of_list_buckets, &list), -EMSGSIZE);
    assert_int_equal(w.len, 0);
    assert_int_equal(of_encode_struct(&w, &of_row_packet_out, &po), -EMSGSIZE);
    assert_int_equal(w.len, 0);
    assert_false(w.overflow);
    of_wr_free(&w);
}

/* Every size of buffer that is too small. */
static void
writer_full(void **state)
{
    uint8_t buf[128];
    struct of_action_output out = output(2);
    void *actions[] = {&out};
    struct of_packet_out po = {.actions = {1, actions, {0}}};
    size_t need = 8 + 16 + 16;
    for (size_t cap = 0; cap <= need; cap++) {
        struct of_wr w = of_wr_fixed(buf, cap);
        int err = of_encode_body(&w, OFPT_PACKET_OUT, 1, &po);
        assert_int_equal(err, cap < need ? -EMSGSIZE : 0);
        assert_int_equal(w.len, cap < need ? 0 : need);
        assert_false(w.overflow);
    }
}

static void
parts(void **state)
{
    uint8_t raw[64], buf[64];
    struct of_wr r = of_wr_fixed(raw, sizeof raw), w = of_wr_fixed(buf, sizeof buf);
    struct of_arena arena;
    struct of_list list;
    void *body;
    of_arena_init(&arena, ARENA_MAX);
    put_hex(&r, "0001 0010 000003e8 00000064 00000000 0002 0010 000003e8 00000064 01 000000");
    assert_int_equal(of_decode_list((struct of_bytes){raw, r.len}, &of_list_bands, &arena, &list),
                     0);
    assert_int_equal(list.n, 2);
    assert_int_equal(OF_AT(&list, 0, struct of_band_drop)->rate, 1000);
    assert_int_equal(OF_AT(&list, 1, struct of_band_dscp_remark)->prec_level, 1);
    assert_string_equal(OF_AT(&list, 1, struct of_tagged)->row->name, "dscp_remark");
    assert_int_equal(of_encode_list(&w, &of_list_bands, &list), 0);
    assert_int_equal(w.len, r.len);
    assert_memory_equal(buf, raw, r.len);
    assert_err(of_decode_list((struct of_bytes){raw, r.len - 1}, &of_list_bands, &arena, &list),
               BAD_REQUEST, OFPBRC_BAD_LEN);
    r.len = 0;
    put_hex(&r, "00000003 00000000 0000000000000005");
    assert_int_equal(of_decode_struct((struct of_bytes){raw, 16}, &of_row_role, &arena, &body), 0);
    assert_int_equal(((struct of_role *)body)->role, OFPCR_ROLE_SLAVE);
    assert_true(((struct of_role *)body)->generation_id == 5);
    assert_err(of_decode_struct((struct of_bytes){raw, 15}, &of_row_role, &arena, &body),
               BAD_REQUEST, OFPBRC_BAD_LEN);
    of_arena_free(&arena);
}

/* Rows are found by their numbers, and by no others. */
static void
lookups(void **state)
{
    for (int t = 0; t < 256; t++) {
        const struct of_msg_row *row = of_msg_row((uint8_t)t);
        assert_int_equal(row != NULL, t <= 30);
        if (row)
            assert_int_equal(row->type, t);
    }
    for (int t = 0; t < 0x10000; t++)
        assert_int_equal(of_mp_row((uint16_t)t) != NULL, t <= 13 || t == 0xffff);
    for (int t = 0; t < 0x10000; t++)
        assert_int_equal(of_tag_row(&of_list_actions, (uint16_t)t) != NULL,
                         t == 0 || t == 11 || t == 12 || (t >= 15 && t <= 27) || t == 0xffff);
}

/* The wire sizes of the specification's structures, fixed parts only. */
static void
wire_sizes(void **state)
{
    static const struct {
        const struct of_struct_row *row;
        int size;
    } sizes[] = {
        {&of_row_port, 64},         {&of_row_packet_queue, 16},   {&of_row_bucket, 16},
        {&of_row_flow_stats, 48},   {&of_row_table_stats, 24},    {&of_row_port_stats, 112},
        {&of_row_queue_stats, 40},  {&of_row_group_stats, 40},    {&of_row_group_desc, 8},
        {&of_row_meter_stats, 40},  {&of_row_meter_config, 8},    {&of_row_bucket_counter, 16},
        {&of_row_band_counter, 16}, {&of_row_table_features, 64}, {&of_row_mp_desc, 1056},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].row->wire != sizes[i].size)
            fail_msg("%s: %d", sizes[i].row->name, sizes[i].row->wire);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_body),      cmocka_unit_test(appends),
        cmocka_unit_test(lengths_inside),  cmocka_unit_test(list_by_its_bytes),
        cmocka_unit_test(multipart),       cmocka_unit_test(strings),
        cmocka_unit_test(error_messages),  cmocka_unit_test(error_values),
        cmocka_unit_test(bundle_error),    cmocka_unit_test(too_long),
        cmocka_unit_test(too_long_inside), cmocka_unit_test(writer_full),
        cmocka_unit_test(parts),           cmocka_unit_test(lookups),
        cmocka_unit_test(wire_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
