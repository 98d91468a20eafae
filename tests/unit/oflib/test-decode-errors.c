/* SPDX-License-Identifier: Apache-2.0 */
/* Which error answers what: every refusal of the decoder, by OpenFlow 1.3.5's type and code. */
#include "test.h"

#define E(type, code) OF_ERR(OFPET_##type, OFP##code)

#define WHOLE -1 /* `body` is the whole message, its header included */
#define FLOW  -2 /* a flow_mod: `body` its match's TLVs, `more` its instructions */
#define APPLY -3 /* a flow_mod that applies these actions */

static const struct row {
    const char *what;
    int type; /* OFPT_, or one of the above */
    const char *body, *more;
    int err;
} rows[] = {
    /* 7.1, 7.5.1: header, version, type */
    {"no bytes", WHOLE, "", "", E(BAD_REQUEST, BRC_BAD_LEN)},
    {"half a header", WHOLE, "04 02 0008", "", E(BAD_REQUEST, BRC_BAD_LEN)},
    {"version 0", WHOLE, "00 02 0008 00000001", "", E(BAD_REQUEST, BRC_BAD_VERSION)},
    {"version 1", WHOLE, "01 05 0008 00000001", "", E(BAD_REQUEST, BRC_BAD_VERSION)},
    {"version 5", WHOLE, "05 14 0008 00000001", "", E(BAD_REQUEST, BRC_BAD_VERSION)},
    {"version before type", WHOLE, "05 ff 0008 00000001", "", E(BAD_REQUEST, BRC_BAD_VERSION)},
    {"type 31", 31, "", "", E(BAD_REQUEST, BRC_BAD_TYPE)},
    {"type 255", 255, "0000", "", E(BAD_REQUEST, BRC_BAD_TYPE)},
    {"type before length", WHOLE, "04 1f 0010 00000001", "", E(BAD_REQUEST, BRC_BAD_TYPE)},
    {"hello of 1.0", WHOLE, "01 00 0008 00000001", "", 0},
    {"hello of 1.5 with a bitmap", WHOLE, "06 00 0010 00000001 0001 0008 00000072", "", 0},
    {"body of another version's hello", WHOLE, "01 00 000b 00000001 ffffff", "", 0},
    {"hello: element of unknown type", OFPT_HELLO, "0007 0005 ff 000000", "", 0},
    {"hello: element too short", OFPT_HELLO, "0001 0003 00000000", "", E(BAD_REQUEST, BRC_BAD_LEN)},
    {"hello: element too long", OFPT_HELLO, "0001 0010 00000010", "", E(BAD_REQUEST, BRC_BAD_LEN)},
    {"hello: no padding", OFPT_HELLO, "0001 000c 00000010 00000000", "",
     E(BAD_REQUEST, BRC_BAD_LEN)},
    {"error without code", OFPT_ERROR, "0001", "", E(BAD_REQUEST, BRC_BAD_LEN)},
    {"experimenter without type", OFPT_EXPERIMENTER, "00000001", "", E(BAD_REQUEST, BRC_BAD_LEN)},

    /* 7.2.3: the match's frame */
    {"no match", OFPT_FLOW_MOD, FLOW_MOD_FIXED, "", E(BAD_REQUEST, BRC_BAD_LEN)},
    {"half a match header", OFPT_FLOW_MOD, FLOW_MOD_FIXED "0001", "", E(BAD_REQUEST, BRC_BAD_LEN)},
    {"flow_mod too short", OFPT_FLOW_MOD, "00000000", "", E(BAD_REQUEST, BRC_BAD_LEN)},
    {"match of type STANDARD", OFPT_FLOW_MOD, FLOW_MOD_FIXED "0000 0058 00000000", "",
     E(BAD_MATCH, BMC_BAD_TYPE)},
    {"match of type 2", OFPT_FLOW_MOD, FLOW_MOD_FIXED "0002 0004 00000000", "",
     E(BAD_MATCH, BMC_BAD_TYPE)},
    {"match of length 3", OFPT_FLOW_MOD, FLOW_MOD_FIXED "0001 0003 00000000", "",
     E(BAD_MATCH, BMC_BAD_LEN)},
    {"match longer than the message", OFPT_FLOW_MOD, FLOW_MOD_FIXED "0001 0010 00000000", "",
     E(BAD_MATCH, BMC_BAD_LEN)},
    {"match without its padding", OFPT_FLOW_MOD, FLOW_MOD_FIXED "0001 000a 80000a02 0800", "",
     E(BAD_MATCH, BMC_BAD_LEN)},
    {"match's padding isn't looked at", OFPT_FLOW_MOD, FLOW_MOD_FIXED "0001 0004 ffffffff", "", 0},
    {"match of length 65535", OFPT_FLOW_MOD, FLOW_MOD_FIXED "0001 ffff 00000000", "",
     E(BAD_MATCH, BMC_BAD_LEN)},

    /* 7.2.3.2 to 7.2.3.7: fields (each field: test-oxm.c) */
    {"field 40", FLOW, "80005001 00", "", E(BAD_MATCH, BMC_BAD_FIELD)},
    {"field 127", FLOW, "8000fe01 00", "", E(BAD_MATCH, BMC_BAD_FIELD)},
    {"class NXM_1", FLOW, "00010004 00000001", "", E(BAD_MATCH, BMC_BAD_FIELD)},
    {"class EXPERIMENTER", FLOW, "ffff0008 4f4e4600 00000001", "", E(BAD_MATCH, BMC_BAD_FIELD)},
    {"class 0x8001", FLOW, "80010004 00000001", "", E(BAD_MATCH, BMC_BAD_FIELD)},
    {"half a TLV header", FLOW, "8000", "", E(BAD_MATCH, BMC_BAD_LEN)},
    {"TLV past the match", FLOW, "80000004 0000", "", E(BAD_MATCH, BMC_BAD_LEN)},
    {"wrong length of a field", FLOW, "80000002 0001", "", E(BAD_MATCH, BMC_BAD_LEN)},
    {"mask, but a value's length", FLOW, "80000706 ffffffffffff", "", E(BAD_MATCH, BMC_BAD_LEN)},
    {"mask on in_port", FLOW, "80000108 00000001 ffffffff", "", E(BAD_MATCH, BMC_BAD_MASK)},
    {"mask on eth_type", FLOW, "80000b04 0800 ffff", "", E(BAD_MATCH, BMC_BAD_MASK)},
    {"value outside its mask", FLOW, "8000070c 000000000001 000000000000", "",
     E(BAD_MATCH, BMC_BAD_WILDCARDS)},
    {"DSCP of 64", FLOW, "80000a02 0800 80001001 40", "", E(BAD_MATCH, BMC_BAD_VALUE)},
    {"VID without PRESENT", FLOW, "80000c02 0001", "", E(BAD_MATCH, BMC_BAD_VALUE)},
    {"ipv4_src without eth_type", FLOW, "80001604 0a000001", "", E(BAD_MATCH, BMC_BAD_PREREQ)},
    {"eth_type too late", FLOW, "80001604 0a000001 80000a02 0800", "",
     E(BAD_MATCH, BMC_BAD_PREREQ)},
    {"in_port twice", FLOW, "80000004 00000001 80000004 00000001", "", E(BAD_MATCH, BMC_DUP_FIELD)},
    {"eth_dst twice, once masked", FLOW, "80000606 000000000001 8000070c 000000000000 000000000000",
     "", E(BAD_MATCH, BMC_DUP_FIELD)},

    /* 7.2.4: instructions */
    {"instruction 0", FLOW, "", "0000 0008 00000000", E(BAD_INSTRUCTION, BIC_UNKNOWN_INST)},
    {"instruction 7", FLOW, "", "0007 0008 00000000", E(BAD_INSTRUCTION, BIC_UNKNOWN_INST)},
    {"instruction of length 0", FLOW, "", "0001 0000 00000000", E(BAD_INSTRUCTION, BIC_BAD_LEN)},
    {"instruction of length 7", FLOW, "", "0001 0007 00000000", E(BAD_INSTRUCTION, BIC_BAD_LEN)},
    {"instruction of length 12", FLOW, "", "ffff 000c 00000000 00000000",
     E(BAD_INSTRUCTION, BIC_BAD_LEN)},
    {"instruction past the end", FLOW, "", "0001 0010 00000000", E(BAD_INSTRUCTION, BIC_BAD_LEN)},
    {"half an instruction header", FLOW, "", "0001", E(BAD_INSTRUCTION, BIC_BAD_LEN)},
    {"4 bytes after the last instruction", FLOW, "", "0005 0008 00000000 00000000",
     E(BAD_INSTRUCTION, BIC_BAD_LEN)},
    {"experimenter instruction without id", FLOW, "", "ffff 0004 00000000",
     E(BAD_INSTRUCTION, BIC_BAD_LEN)},
    {"experimenter instruction", FLOW, "", "ffff 0008 00000001", 0},

    /* 7.2.5: actions */
    {"action 1", APPLY, "0001 0008 00000000", "", E(BAD_ACTION, BAC_BAD_TYPE)},
    {"action 10", APPLY, "000a 0008 00000000", "", E(BAD_ACTION, BAC_BAD_TYPE)},
    {"action 13", APPLY, "000d 0008 00000000", "", E(BAD_ACTION, BAC_BAD_TYPE)},
    {"action 28", APPLY, "001c 0008 00000000", "", E(BAD_ACTION, BAC_BAD_TYPE)},
    {"action of length 0", APPLY, "0015 0000 00000001", "", E(BAD_ACTION, BAC_BAD_LEN)},
    {"action of length 4", APPLY, "0012 0004", "", E(BAD_ACTION, BAC_BAD_LEN)},
    {"action of length 12", APPLY, "0015 000c 00000001 00000000", "", E(BAD_ACTION, BAC_BAD_LEN)},
    {"action past the end", APPLY, "0000 0010 00000001", "", E(BAD_ACTION, BAC_BAD_LEN)},
    {"half an action header", APPLY, "0000", "", E(BAD_ACTION, BAC_BAD_LEN)},
    {"experimenter action without id", APPLY, "ffff 0004", "", E(BAD_ACTION, BAC_BAD_LEN)},
    {"experimenter action", APPLY, "ffff 0008 00000001", "", 0},
    {"set_field of an unknown field", APPLY, "0019 0010 80005004 00000001 00000000", "",
     E(BAD_ACTION, BAC_BAD_SET_TYPE)},
    {"set_field of another class", APPLY, "0019 0010 00010004 00000001 00000000", "",
     E(BAD_ACTION, BAC_BAD_SET_TYPE)},
    {"set_field in_port", APPLY, "0019 0010 80000004 00000001 00000000", "",
     E(BAD_ACTION, BAC_BAD_SET_TYPE)},
    {"set_field metadata", APPLY, "0019 0010 80000408 00000001 00000000", "",
     E(BAD_ACTION, BAC_BAD_SET_TYPE)},
    {"set_field with a mask", APPLY, "0019 0010 80000d04 1001 1fff 00000000", "",
     E(BAD_ACTION, BAC_BAD_SET_TYPE)},
    {"set_field: TLV past the action", APPLY, "0019 0010 80003410 00000001 00000000", "",
     E(BAD_ACTION, BAC_BAD_SET_LEN)},
    {"set_field: wrong length", APPLY, "0019 0010 80000c04 00001001 00000000", "",
     E(BAD_ACTION, BAC_BAD_SET_LEN)},
    {"set_field: no TLV", APPLY, "0019 0008 00000000", "", E(BAD_ACTION, BAC_BAD_SET_TYPE)},
    {"set_field: VID without PRESENT", APPLY, "0019 0010 80000c02 0001 000000000000", "",
     E(BAD_ACTION, BAC_BAD_SET_ARGUMENT)},
    {"set_field: priority of 8", APPLY, "0019 0010 80000e01 08 00000000000000", "",
     E(BAD_ACTION, BAC_BAD_SET_ARGUMENT)},
    {"set_field: too much padding", APPLY, "0019 0018 80000e01 07 00000000000000 0000000000000000",
     "", E(BAD_ACTION, BAC_BAD_LEN)},
    {"packet_out: actions_len past the end", OFPT_PACKET_OUT, "ffffffff fffffffd 0010 000000000000",
     "", E(BAD_REQUEST, BRC_BAD_LEN)},
    {"packet_out: actions_len cuts an action", OFPT_PACKET_OUT,
     "ffffffff fffffffd 0008 000000000000 0000 0010 00000001 0000 000000000000", "",
     E(BAD_ACTION, BAC_BAD_LEN)},
    {"packet_out: unknown action", OFPT_PACKET_OUT,
     "ffffffff fffffffd 0008 000000000000 0002 0008 00000000", "", E(BAD_ACTION, BAC_BAD_TYPE)},

    /* 7.3.4.2: groups */
    {"bucket of length 8", OFPT_GROUP_MOD, "0000 00 00 00000001 0008 0000 ffffffff", "",
     E(GROUP_MOD_FAILED, GMFC_BAD_BUCKET)},
    {"bucket of length 20", OFPT_GROUP_MOD,
     "0000 00 00 00000001 0014 0000 ffffffff ffffffff 00000000 00000000", "",
     E(GROUP_MOD_FAILED, GMFC_BAD_BUCKET)},
    {"bucket past the end", OFPT_GROUP_MOD,
     "0000 00 00 00000001 0018 0000 ffffffff ffffffff 00000000", "",
     E(GROUP_MOD_FAILED, GMFC_BAD_BUCKET)},
    {"bucket with a bad action", OFPT_GROUP_MOD,
     "0000 00 00 00000001 0018 0000 ffffffff ffffffff 00000000 0003 0008 00000000", "",
     E(BAD_ACTION, BAC_BAD_TYPE)},
    {"bucket with a long action", OFPT_GROUP_MOD,
     "0000 00 00 00000001 0018 0000 ffffffff ffffffff 00000000 0000 0010 00000000", "",
     E(BAD_ACTION, BAC_BAD_LEN)},
    {"group_mod too short", OFPT_GROUP_MOD, "0000 00 00", "", E(BAD_REQUEST, BRC_BAD_LEN)},

    /* 7.3.4.4: meters */
    {"band 3", OFPT_METER_MOD, "0000 0001 00000001 0003 0010 00000001 00000000 00000000", "",
     E(METER_MOD_FAILED, MMFC_BAD_BAND)},
    {"band 0", OFPT_METER_MOD, "0000 0001 00000001 0000 0010 00000001 00000000 00000000", "",
     E(METER_MOD_FAILED, MMFC_BAD_BAND)},
    {"band of length 12", OFPT_METER_MOD, "0000 0001 00000001 0001 000c 00000001 00000000", "",
     E(BAD_REQUEST, BRC_BAD_LEN)},
    {"drop band of length 24", OFPT_METER_MOD,
     "0000 0001 00000001 0001 0018 00000001 00000000 00000000 00000000 00000000", "",
     E(BAD_REQUEST, BRC_BAD_LEN)},
    {"band past the end", OFPT_METER_MOD, "0000 0001 00000001 0001 0018 00000001 00000000 00000000",
     "", E(BAD_REQUEST, BRC_BAD_LEN)},
    {"meter_mod too short", OFPT_METER_MOD, "0000 0001", "", E(BAD_REQUEST, BRC_BAD_LEN)},

    /* 7.3.5: multipart */
    {"multipart 14", OFPT_MULTIPART_REQUEST, "000e 0000 00000000", "",
     E(BAD_REQUEST, BRC_BAD_MULTIPART)},
    {"multipart 0xfffe", OFPT_MULTIPART_REQUEST, "fffe 0000 00000000", "",
     E(BAD_REQUEST, BRC_BAD_MULTIPART)},
    {"half a multipart header", OFPT_MULTIPART_REQUEST, "0000 0000", "",
     E(BAD_REQUEST, BRC_BAD_LEN)},
    {"flow request without match", OFPT_MULTIPART_REQUEST,
     "0001 0000 00000000 ff000000 ffffffff ffffffff 00000000 0000000000000000 0000000000000000", "",
     E(BAD_REQUEST, BRC_BAD_LEN)},
    {"flow request with a bad match", OFPT_MULTIPART_REQUEST,
     "0001 0000 00000000 ff000000 ffffffff ffffffff 00000000 0000000000000000 0000000000000000"
     "0001 0009 80005001 00 00000000000000",
     "", E(BAD_MATCH, BMC_BAD_FIELD)},
    {"experimenter request without type", OFPT_MULTIPART_REQUEST, "ffff 0000 00000000 00000001", "",
     E(BAD_REQUEST, BRC_BAD_LEN)},
};

/* 7.3.5.5: table features; each is the property list of one table. */
static const struct {
    const char *what, *props;
    int err;
} props[] = {
    {"none", "", 0},
    {"type 9", "0009 0004 00000000", E(TABLE_FEATURES_FAILED, TFFC_BAD_TYPE)},
    {"type 11", "000b 0004 00000000", E(TABLE_FEATURES_FAILED, TFFC_BAD_TYPE)},
    {"type 16", "0010 0004 00000000", E(TABLE_FEATURES_FAILED, TFFC_BAD_TYPE)},
    {"length 3", "0000 0003 00000000", E(TABLE_FEATURES_FAILED, TFFC_BAD_LEN)},
    {"length past the end", "0000 0010 00000000", E(TABLE_FEATURES_FAILED, TFFC_BAD_LEN)},
    {"half an instruction's id", "0000 0006 0001 0000", E(TABLE_FEATURES_FAILED, TFFC_BAD_LEN)},
    {"instruction's id of length 8", "0000 0008 0001 0008", E(TABLE_FEATURES_FAILED, TFFC_BAD_LEN)},
    {"experimenter's id of length 4", "0004 0008 ffff 0004",
     E(TABLE_FEATURES_FAILED, TFFC_BAD_LEN)},
    {"experimenter's id without id", "0004 0008 ffff 0008", E(TABLE_FEATURES_FAILED, TFFC_BAD_LEN)},
    {"experimenter's id", "0004 000c ffff 0008 4f4e4600 00000000", 0},
    {"half a field", "0008 0006 8000 0000", E(TABLE_FEATURES_FAILED, TFFC_BAD_LEN)},
    {"experimenter's field, 32 bits", "0008 0008 ffff0008", E(TABLE_FEATURES_FAILED, TFFC_BAD_LEN)},
    {"experimenter's without type", "fffe 0008 4f4e4600", E(TABLE_FEATURES_FAILED, TFFC_BAD_LEN)},
};

static int
decode_row(const struct row *row)
{
    uint8_t buf[1024], actions[512];
    struct of_wr w = of_wr_fixed(buf, sizeof buf), a = of_wr_fixed(actions, sizeof actions);
    switch (row->type) {
    case WHOLE:
        put_hex(&w, row->body);
        uint8_t *copy = test_malloc(w.len ? w.len : 1);
        memcpy(copy, buf, w.len);
        return decode_bytes((struct of_bytes){copy, w.len});
    case FLOW: put_flow_mod(&w, row->body, row->more); break;
    case APPLY:
        put_flow_mod(&w, "", "");
        put_hex(&a, row->body);
        of_wr16(&w, OFPIT_APPLY_ACTIONS);
        of_wr16(&w, (uint16_t)((8 + a.len + 7) / 8 * 8));
        of_wr32(&w, 0);
        of_wr_bytes(&w, actions, a.len);
        of_wr_align(&w, 0, 8);
        break;
    default: put_header(&w, (uint8_t)row->type); put_hex(&w, row->body);
    }
    return decode_bytes(finish(&w));
}

static void
expect(const char *what, int got, int want)
{
    if (got != want)
        fail_msg("%s: %#x (type %u code %u), not %#x (type %u code %u)", what, (unsigned)got,
                 of_err_type(got), of_err_code(got), (unsigned)want, of_err_type(want),
                 of_err_code(want));
}

static void
table_of_errors(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect(rows[i].what, decode_row(&rows[i]), rows[i].err);
}

static void
put_table_features(struct of_wr *w, size_t length)
{
    size_t start = w->len;
    of_wr16(w, (uint16_t)length);
    of_wr_add(w, 62);
    assert_int_equal(w->len - start, 64);
}

static void
table_features(void **state)
{
    for (size_t i = 0; i < sizeof props / sizeof props[0]; i++) {
        uint8_t buf[512];
        struct of_wr w = of_wr_fixed(buf, sizeof buf);
        put_header(&w, OFPT_MULTIPART_REQUEST);
        put_hex(&w, "000c 0000 00000000");
        put_table_features(&w, 0);
        put_hex(&w, props[i].props);
        of_wr_patch16(&w, 16, (uint16_t)(w.len - 16));
        expect(props[i].what, decode_bytes(finish(&w)), props[i].err);
    }
    static const size_t bad[] = {0, 8, 63, 65, 72, 65535};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint8_t buf[512];
        struct of_wr w = of_wr_fixed(buf, sizeof buf);
        put_header(&w, OFPT_MULTIPART_REQUEST);
        put_hex(&w, "000c 0000 00000000");
        put_table_features(&w, bad[i]);
        expect("length of a table", decode_bytes(finish(&w)),
               E(TABLE_FEATURES_FAILED, TFFC_BAD_LEN));
    }
}

/* Messages of one size: anything else is a bad length. */
static void
fixed_sizes(void **state)
{
    static const struct {
        uint8_t type;
        size_t size; /* after the header */
        int mp;      /* OFPMP_, or -1 */
    } sizes[] = {
        {OFPT_FEATURES_REQUEST, 0, -1},
        {OFPT_FEATURES_REPLY, 24, -1},
        {OFPT_GET_CONFIG_REQUEST, 0, -1},
        {OFPT_GET_CONFIG_REPLY, 4, -1},
        {OFPT_SET_CONFIG, 4, -1},
        {OFPT_PORT_STATUS, 72, -1},
        {OFPT_PORT_MOD, 32, -1},
        {OFPT_TABLE_MOD, 8, -1},
        {OFPT_BARRIER_REQUEST, 0, -1},
        {OFPT_BARRIER_REPLY, 0, -1},
        {OFPT_QUEUE_GET_CONFIG_REQUEST, 8, -1},
        {OFPT_ROLE_REQUEST, 16, -1},
        {OFPT_ROLE_REPLY, 16, -1},
        {OFPT_GET_ASYNC_REQUEST, 0, -1},
        {OFPT_GET_ASYNC_REPLY, 24, -1},
        {OFPT_SET_ASYNC, 24, -1},
        {OFPT_MULTIPART_REQUEST, 8, OFPMP_DESC},
        {OFPT_MULTIPART_REQUEST, 8, OFPMP_TABLE},
        {OFPT_MULTIPART_REQUEST, 16, OFPMP_PORT_STATS},
        {OFPT_MULTIPART_REQUEST, 16, OFPMP_QUEUE},
        {OFPT_MULTIPART_REQUEST, 16, OFPMP_GROUP},
        {OFPT_MULTIPART_REQUEST, 8, OFPMP_GROUP_DESC},
        {OFPT_MULTIPART_REQUEST, 8, OFPMP_GROUP_FEATURES},
        {OFPT_MULTIPART_REQUEST, 16, OFPMP_METER},
        {OFPT_MULTIPART_REQUEST, 16, OFPMP_METER_CONFIG},
        {OFPT_MULTIPART_REQUEST, 8, OFPMP_METER_FEATURES},
        {OFPT_MULTIPART_REQUEST, 8, OFPMP_PORT_DESC},
        {OFPT_MULTIPART_REPLY, 8 + 1056, OFPMP_DESC},
        {OFPT_MULTIPART_REPLY, 8 + 24, OFPMP_AGGREGATE},
        {OFPT_MULTIPART_REPLY, 8 + 40, OFPMP_GROUP_FEATURES},
        {OFPT_MULTIPART_REPLY, 8 + 16, OFPMP_METER_FEATURES},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int d = -1; d <= 8; d++) {
            uint8_t buf[2048];
            struct of_wr w = of_wr_fixed(buf, sizeof buf);
            if (d == -1 && sizes[i].size == 0)
                continue;
            put_header(&w, sizes[i].type);
            of_wr_add(&w, sizes[i].size + (size_t)d);
            if (sizes[i].mp >= 0)
                of_wr_patch16(&w, 8, (uint16_t)sizes[i].mp);
            expect("fixed size", decode_bytes(finish(&w)), d ? E(BAD_REQUEST, BRC_BAD_LEN) : 0);
        }
}

/* The header's length is not that of the bytes given. */
static void
header_length(void **state)
{
    for (uint16_t len = 0; len < 64; len++) {
        uint8_t buf[] = {OFP_VERSION, OFPT_ECHO_REQUEST, 0, 0, 0, 0, 0, 1, 1, 2, 3, 4};
        struct of_arena arena;
        struct of_msg m;
        of_arena_init(&arena, ARENA_MAX);
        of_set16(buf + 2, len);
        expect("header's length", of_decode((struct of_bytes){buf, sizeof buf}, &arena, &m),
               len == sizeof buf ? 0 : E(BAD_REQUEST, BRC_BAD_LEN));
        assert_int_equal(m.xid, 1);
        assert_int_equal(m.type, OFPT_ECHO_REQUEST);
        of_arena_free(&arena);
    }
}

/* Instructions and actions of one size: every other multiple of 8 is refused. */
static void
element_sizes(void **state)
{
    static const struct {
        bool action;
        uint16_t type, size;
    } elems[] = {
        {0, OFPIT_GOTO_TABLE, 8},  {0, OFPIT_WRITE_METADATA, 24}, {0, OFPIT_CLEAR_ACTIONS, 8},
        {0, OFPIT_METER, 8},       {1, OFPAT_OUTPUT, 16},         {1, OFPAT_COPY_TTL_OUT, 8},
        {1, OFPAT_COPY_TTL_IN, 8}, {1, OFPAT_SET_MPLS_TTL, 8},    {1, OFPAT_DEC_MPLS_TTL, 8},
        {1, OFPAT_PUSH_VLAN, 8},   {1, OFPAT_POP_VLAN, 8},        {1, OFPAT_PUSH_MPLS, 8},
        {1, OFPAT_POP_MPLS, 8},    {1, OFPAT_SET_QUEUE, 8},       {1, OFPAT_GROUP, 8},
        {1, OFPAT_SET_NW_TTL, 8},  {1, OFPAT_DEC_NW_TTL, 8},      {1, OFPAT_PUSH_PBB, 8},
        {1, OFPAT_POP_PBB, 8},
    };
    for (size_t i = 0; i < sizeof elems / sizeof elems[0]; i++)
        for (uint16_t size = 8; size <= 40; size += 8) {
            uint8_t buf[256];
            struct of_wr w = of_wr_fixed(buf, sizeof buf);
            put_flow_mod(&w, "", "");
            if (elems[i].action)
                of_wr64(&w, (uint64_t)OFPIT_APPLY_ACTIONS << 48 | (uint64_t)(8u + size) << 32);
            of_wr16(&w, elems[i].type);
            of_wr16(&w, size);
            of_wr_add(&w, size - 4u);
            int bad = E(BAD_INSTRUCTION, BIC_BAD_LEN);
            if (elems[i].action)
                bad = E(BAD_ACTION, BAC_BAD_LEN);
            expect("element", decode_bytes(finish(&w)), size == elems[i].size ? 0 : bad);
        }
}

/* As many TLVs as fit: refused without using up the memory. */
static void
many_fields(void **state)
{
    static uint8_t buf[OF_MSG_MAX];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    put_header(&w, OFPT_FLOW_MOD);
    put_hex(&w, FLOW_MOD_FIXED);
    of_wr32(&w, OFPMT_OXM << 16 | 65004);
    for (int i = 0; i < 65000 / 5; i++) {
        of_wr32(&w, OXM_HEADER(OXM_vlan_pcp, 0, 1));
        of_wr8(&w, 0);
    }
    of_wr_align(&w, 48, 8);
    expect("13,000 fields", decode_bytes(finish(&w)), E(BAD_MATCH, BMC_DUP_FIELD));
}

/* An arena that is too small is our failure, not the peer's. */
static void
out_of_memory(void **state)
{
    uint8_t buf[256];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    put_flow_mod(&w, "80000004 00000001",
                 "0004 0018 00000000 0000 0010 00000001 0000 000000000000");
    of_set16(buf + 2, (uint16_t)w.len);
    bool done = false;
    for (size_t max = 0; max < 4096 && !done; max += 16) {
        struct of_arena arena;
        struct of_msg m;
        of_arena_init(&arena, max);
        int err = of_decode((struct of_bytes){buf, w.len}, &arena, &m);
        assert_true(err == 0 || err == -12 /* ENOMEM */);
        done = !err;
        of_arena_free(&arena);
    }
    assert_true(done);
}

static void
frame_length(void **state)
{
    static const uint8_t h[] = {4, 2, 0, 8, 0, 0, 0, 1};
    static const uint8_t bad[] = {4, 2, 0, 7}, zero[] = {4, 0, 0, 0};
    for (size_t n = 0; n < 4; n++)
        assert_int_equal(of_frame_len(h, n), 0);
    assert_int_equal(of_frame_len(h, 4), 8);
    assert_int_equal(of_frame_len(h, 8), 8);
    assert_true(of_frame_len(bad, 4) < 0);
    assert_true(of_frame_len(zero, 4) < 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_of_errors), cmocka_unit_test(table_features),
        cmocka_unit_test(fixed_sizes),     cmocka_unit_test(header_length),
        cmocka_unit_test(element_sizes),   cmocka_unit_test(many_fields),
        cmocka_unit_test(out_of_memory),   cmocka_unit_test(frame_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
