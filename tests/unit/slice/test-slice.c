/* SPDX-License-Identifier: Apache-2.0 */
/* What lies within a slice: sets, keys, whose it is, and each action and instruction there is. */
#include <slice/slice.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct slice *
make(const char *const *keys)
{
    struct slice *s = slice_new("red");
    char why[256];
    for (; *keys; keys += 2)
        assert_int_equal(slice_set_key(s, keys[0], keys[1], why, sizeof why), 0);
    return s;
}

static const char *const red[] = {"ports",  "1-2,local", "tables",     "3",         "shared-tables",
                                  "0",      "queues",    "10-19",      "groups",    "7",
                                  "meters", "8",         "connection", "ptcp:6653", "metadata",
                                  "0xff00", NULL};

static void
test_sets(void **state)
{
    struct slice *s = make(red);
    assert_true(slice_has_port(s, 1) && slice_has_port(s, 2) && slice_has_port(s, OFPP_LOCAL));
    assert_false(slice_has_port(s, 0) || slice_has_port(s, 3) || slice_has_port(s, OFPP_ALL));
    assert_true(slice_has_queue(s, 2, 19));
    assert_false(slice_has_queue(s, 2, 20) || slice_has_queue(s, 3, 10) ||
                 slice_has_queue(s, 1, 0));
    assert_true(slice_has_table(s, 0) && slice_has_table(s, 3));
    assert_false(slice_has_table(s, 1) || slice_has_table(s, OFPTT_ALL));
    assert_true(slice_has_port(NULL, 3) && slice_has_queue(NULL, 3, 0) && slice_has_group(NULL, 1));
    slice_put(s);
}

static void
test_keys_refused(void **state)
{
    static const char *const bad[][2] = {
        {"ports", ""},
        {"ports", "0"},
        {"ports", "2-1"},
        {"ports", "1,"},
        {"ports", "65536"},
        {"ports", "4294967297"},
        {"ports", "-1"},
        {"ports", "1-"},
        {"ports", "1 2x"},
        {"ports", "0x1"},
        {"tables", "255"},
        {"tables", "local"},
        {"queues", "65520"},
        {"groups", "4294967041"},
        {"meters", "0"},
        {"may", "anything"},
        {"common-name", ""},
        {"metadata", "ff"},
        {"metadata", "-1"},
        {"metadata", ""},
        {"metadata", "0x1ffffffffffffffff"},
        {"metadata", "1,2"},
        {"ports", "99999999999999999999999"},
    };
    char why[256], many[600];
    struct slice *s = slice_new("red");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        *why = '\0';
        assert_int_equal(slice_set_key(s, bad[i][0], bad[i][1], why, sizeof why), -EINVAL);
        assert_true(*why);
    }
    memset(many, '1', sizeof many - 1);
    many[sizeof many - 1] = '\0';
    assert_int_equal(slice_set_key(s, "ports", many, why, sizeof why), -EINVAL);
    for (int i = 0; i < SLICE_RANGES_MAX; i++)
        slice_set_key(s, "meters", "5", why, sizeof why);
    assert_int_equal(slice_set_key(s, "meters", "5", why, sizeof why), -EINVAL);
    slice_put(s);
}

static struct slice nobody;

static struct slice *
whose(const struct slices *all, const char *target, const char *common_name)
{
    struct slice_peer peer = {target, !strncmp(target, "ptls:", 5), common_name};
    struct slice *s;
    return slices_find(all, &peer, &s) ? s : &nobody;
}

static void
test_whose(void **state)
{
    char why[256];
    struct slices all = {.n = 3, .v = {slice_new("others"), slice_new("named"), slice_new("both")}};
    slice_set_key(all.v[0], "connection", "ptls:1", why, sizeof why);
    slice_set_key(all.v[1], "common-name", "a", why, sizeof why);
    slice_set_key(all.v[2], "common-name", "b", why, sizeof why);
    slice_set_key(all.v[2], "connection", "ptls:2", why, sizeof why);
    assert_ptr_equal(whose(&all, "ptls:1", "a"), all.v[1]);
    assert_ptr_equal(whose(&all, "ptls:9", "a"), all.v[1]);
    assert_ptr_equal(whose(&all, "ptls:1", NULL), all.v[0]);
    assert_ptr_equal(whose(&all, "ptls:1", "z"), all.v[0]);
    assert_ptr_equal(whose(&all, "ptls:1", "b"), all.v[0]);
    assert_ptr_equal(whose(&all, "ptls:2", "b"), all.v[2]);
    assert_ptr_equal(whose(&all, "ptls:9", NULL), &nobody);
    assert_ptr_equal(whose(&all, "ptls:9", "b"), &nobody);
    assert_null(whose(&all, "punix:", NULL)); /* no certificates, so no names */
    slices_clear(&all);
}

/* Who comes to an address where only some are named, and isn't, has no rights. */
static void
test_nobody(void **state)
{
    char why[256];
    struct slices all = {.n = 2, .v = {slice_new("named"), slice_new("admin")}};
    slice_set_key(all.v[0], "common-name", "K\xc3\xb6ln 1", why, sizeof why);
    slice_set_key(all.v[0], "connection", "ptls:1", why, sizeof why);
    slice_set_key(all.v[1], "common-name", "admin", why, sizeof why);
    slice_set_key(all.v[1], "connection", "ptls:1", why, sizeof why);
    slice_set_key(all.v[1], "may", "all", why, sizeof why);
    assert_ptr_equal(whose(&all, "ptls:1", "K\xc3\xb6ln 1"), all.v[0]);
    assert_ptr_equal(whose(&all, "ptls:1", "admin"), all.v[1]);
    assert_true(all.v[1]->may_all);
    assert_ptr_equal(whose(&all, "ptls:1", "K\xf6ln 1"), &nobody);
    assert_ptr_equal(whose(&all, "ptls:1", NULL), &nobody);
    assert_null(whose(&all, "ptls:2", "stranger"));
    slices_clear(&all);
}

static void
test_names(void **state)
{
    static const char e_acute[] = "\xc3\xa9", *const bad[] = {
                                                  "",         "K\xf6ln",          "\xc3",
                                                  "\xc0\xaf", "\xf5\x80\x80\x80", "\xe2\x82",
                                                  "a\x80"};
    char why[256], longest[2 * 65 + 1] = "";
    struct slice *s = slice_new("red");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(slice_set_key(s, "common-name", bad[i], why, sizeof why), -EINVAL);
    for (unsigned i = 0; i < 65; i++)
        memcpy(longest + 2 * i, e_acute, 3);
    assert_int_equal(slice_set_key(s, "common-name", longest, why, sizeof why), -EINVAL);
    longest[2 * 64] = '\0';
    assert_int_equal(slice_set_key(s, "common-name", longest, why, sizeof why), 0);
    slice_put(s);
}

/* ------------------------------------------------------------------ actions and instructions */

static int
check_one(const struct slice *s, void *action, bool own, bool packet_out)
{
    char why[SLICE_WHY];
    void *v[] = {action};
    struct of_list l = {.n = 1, .v = v};
    return slice_check_actions(s, &l, own, packet_out, why);
}

static int
output(const struct slice *s, uint32_t port, bool own, bool packet_out)
{
    struct of_action_output a = {.row = OF_ACTION(OUTPUT), .port = port};
    return check_one(s, &a, own, packet_out);
}

static void
test_outputs(void **state)
{
    const int refused = OF_BAD_ACTION(EPERM);
    struct slice *s = make(red);
    static const uint32_t never[] = {0, 3, OFPP_NORMAL, OFPP_FLOOD, OFPP_ALL, OFPP_ANY, OFPP_MAX};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
        for (int k = 0; k < 4; k++)
            assert_int_equal(output(s, never[i], k & 1, k & 2), refused);
    assert_int_equal(output(s, 1, false, false), 0);
    assert_int_equal(output(s, OFPP_LOCAL, false, false), 0);
    assert_int_equal(output(s, OFPP_CONTROLLER, false, false), 0);
    assert_int_equal(output(s, OFPP_IN_PORT, true, false), 0);
    assert_int_equal(output(s, OFPP_IN_PORT, false, false), refused);
    assert_int_equal(output(s, OFPP_TABLE, true, true), 0);
    assert_int_equal(output(s, OFPP_TABLE, true, false), refused);
    assert_int_equal(output(s, OFPP_TABLE, false, true), refused);
    slice_put(s);
}

/* Every row of the codec's: those that name something are within or not, the others are edits, and an
 * experimenter's is refused.  A row that is new is refused until this test says what it is. */
static void
test_every_action(void **state)
{
    struct slice *s = make(red);
    for (size_t i = 0; i < of_list_actions.n_tags; i++) {
        const struct of_tag_row *row = &of_list_actions.tags[i];
        union {
            const struct of_tag_row *row;
            struct of_action_set_queue queue;
            struct of_action_group group;
            struct of_action_output output;
            char room[512];
        } a = {.room = {0}};
        a.row = row;
        int err = check_one(s, &a, true, true);
        bool named = row->type == OFPAT_OUTPUT || row->type == OFPAT_SET_QUEUE ||
                     row->type == OFPAT_GROUP || row->type == OFPAT_EXPERIMENTER;
        assert_int_equal(err, named ? OF_BAD_ACTION(EPERM) : 0);
        a.queue.queue_id = 10;
        if (row->type == OFPAT_SET_QUEUE)
            assert_int_equal(check_one(s, &a, true, true), 0);
        a.group.group_id = 7;
        if (row->type == OFPAT_GROUP)
            assert_int_equal(check_one(s, &a, true, true), 0);
    }
    static const uint8_t there[8] = {0, 0, 0, OFP_ACT_IF_THERE}, other[8] = {0, 0, 0, 99};
    struct of_action_experimenter exp = {.row = OF_ACTION(EXPERIMENTER),
                                         .experimenter = OFP_QOS_EXPERIMENTER,
                                         .data = {there, sizeof there}};
    assert_int_equal(check_one(s, &exp, true, true), 0);
    exp.experimenter++;
    assert_int_equal(check_one(s, &exp, true, true), OF_BAD_ACTION(EPERM));
    exp.experimenter--;
    exp.data.p = other;
    assert_int_equal(check_one(s, &exp, true, true), OF_BAD_ACTION(EPERM));
    struct of_tag_row unknown = {.type = 99, .name = "new"};
    struct of_tagged new = {&unknown};
    assert_int_equal(check_one(s, &new, true, true), OF_BAD_ACTION(EPERM));
    slice_put(s);
}

static int
flow_mod(const struct slice *s, uint8_t table, struct of_match match, void *instruction)
{
    char why[SLICE_WHY];
    void *v[] = {instruction};
    struct of_flow_mod q = {
        .table_id = table, .match = match, .instructions = {.n = instruction ? 1 : 0, .v = v}};
    return slice_check_flow_mod(s, &q, why);
}

static void
test_every_instruction(void **state)
{
    struct slice *s = make(red);
    for (size_t i = 0; i < of_list_instructions.n_tags; i++) {
        const struct of_tag_row *row = &of_list_instructions.tags[i];
        union {
            const struct of_tag_row *row;
            struct of_instr_goto_table table;
            struct of_instr_meter meter;
            struct of_instr_write_metadata metadata;
            char room[512];
        } a = {.room = {0}};
        a.row = row;
        if (row->type == OFPIT_GOTO_TABLE)
            a.table.table_id = 5;
        if (row->type == OFPIT_WRITE_METADATA)
            a.metadata.metadata_mask = 0x1ff00;
        bool beyond = row->type == OFPIT_GOTO_TABLE || row->type == OFPIT_METER ||
                      row->type == OFPIT_EXPERIMENTER || row->type == OFPIT_WRITE_METADATA;
        assert_int_equal(flow_mod(s, 3, (struct of_match){0}, &a),
                         beyond ? OF_BAD_INSTRUCTION(EPERM) : 0);
        if (row->type == OFPIT_GOTO_TABLE)
            a.table.table_id = 3;
        if (row->type == OFPIT_METER)
            a.meter.meter_id = 8;
        if (row->type == OFPIT_WRITE_METADATA)
            a.metadata.metadata_mask = 0xff00;
        if (row->type != OFPIT_EXPERIMENTER)
            assert_int_equal(flow_mod(s, 3, (struct of_match){0}, &a), 0);
    }
    slice_put(s);
}

static void
test_flows(void **state)
{
    struct slice *s = make(red);
    struct of_arena arena;
    struct of_match all = {0}, in_port;
    static const uint8_t one[] = {0x80, 0, 0, 4, 0, 0, 0, 1}, three[] = {0x80, 0, 0, 4, 0, 0, 0, 3};
    of_arena_init(&arena, 1 << 16);
    assert_int_equal(flow_mod(s, 3, all, NULL), 0);
    assert_int_equal(flow_mod(s, 0, all, NULL), OF_FLOW_MOD_FAILED(EPERM));
    assert_int_equal(flow_mod(s, 1, all, NULL), OF_FLOW_MOD_FAILED(EPERM));
    assert_int_equal(flow_mod(s, OFPTT_ALL, all, NULL), OF_FLOW_MOD_FAILED(EPERM));
    assert_int_equal(of_match_decode_tlvs((struct of_bytes){one, sizeof one}, &arena, &in_port), 0);
    assert_int_equal(flow_mod(s, 0, in_port, NULL), 0);
    assert_int_equal(flow_mod(s, 1, in_port, NULL), OF_FLOW_MOD_FAILED(EPERM));
    in_port.v->has_mask = true;
    in_port.v->mask[3] = 0xfe;
    assert_int_equal(flow_mod(s, 0, in_port, NULL), OF_FLOW_MOD_FAILED(EPERM));
    assert_int_equal(of_match_decode_tlvs((struct of_bytes){three, sizeof three}, &arena, &in_port),
                     0);
    assert_int_equal(flow_mod(s, 0, in_port, NULL), OF_FLOW_MOD_FAILED(EPERM));
    of_arena_free(&arena);
    slice_put(s);
}

static void
test_groups(void **state)
{
    char why[SLICE_WHY];
    struct slice *s = make(red);
    struct of_bucket b = {.watch_port = OFPP_ANY, .watch_group = OFPG_ANY};
    void *v[] = {&b};
    struct of_group_mod q = {.group_id = 7, .buckets = {.n = 1, .v = v}};
    assert_int_equal(slice_check_group_mod(s, &q, why), 0);
    b.watch_port = 3;
    assert_int_equal(slice_check_group_mod(s, &q, why), OF_GROUP_MOD_FAILED(EPERM));
    b.watch_port = 1;
    b.watch_group = 8;
    assert_int_equal(slice_check_group_mod(s, &q, why), OF_GROUP_MOD_FAILED(EPERM));
    b.watch_group = 7;
    assert_int_equal(slice_check_group_mod(s, &q, why), 0);
    q.group_id = OFPG_ALL;
    assert_int_equal(slice_check_group_mod(s, &q, why), OF_GROUP_MOD_FAILED(EPERM));
    slice_put(s);
}

/* ------------------------------------------------------------------ what it sees */

static bool
sees(const struct slice *s, uint8_t type, const void *body)
{
    struct of_arena arena;
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    of_arena_init(&arena, 1 << 20);
    assert_int_equal(of_encode_body(&w, type, 0, body), 0);
    bool seen = slice_sees(s, (struct of_bytes){w.buf, w.len}, &arena);
    assert_true(slice_sees(NULL, (struct of_bytes){w.buf, w.len}, &arena));
    of_wr_free(&w);
    of_arena_free(&arena);
    return seen;
}

static bool
sees_ours(const struct slice *s, uint32_t exp_type, uint8_t *data, size_t n)
{
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, exp_type, {data, n}};
    return sees(s, OFPT_EXPERIMENTER, &m);
}

static void
test_sees(void **state)
{
    struct slice *s = make(red);
    struct of_port_status p = {.port_no = 1};
    struct of_flow_removed f = {.table_id = 3};
    struct of_packet_in in = {.buffer_id = OFP_NO_BUFFER};
    uint8_t data[64] = {0};
    assert_true(sees(s, OFPT_PORT_STATUS, &p));
    p.port_no = 3;
    assert_false(sees(s, OFPT_PORT_STATUS, &p));
    assert_true(sees(s, OFPT_FLOW_REMOVED, &f));
    f.table_id = 0;
    assert_false(sees(s, OFPT_FLOW_REMOVED, &f));
    assert_false(sees(s, OFPT_PACKET_IN, &in)); /* without in_port */
    of_set32(data + 4, 1);
    assert_true(sees_ours(s, OFP_EXP_QOS_CHANGED, data, 16));
    of_set32(data + 28, 10);
    assert_true(sees_ours(s, OFP_EXP_QOS_CHANGED, data, 32));
    of_set32(data + 28, 9);
    assert_false(sees_ours(s, OFP_EXP_QOS_CHANGED, data, 32));
    of_set32(data + 4, 3);
    assert_false(sees_ours(s, OFP_EXP_QOS_CHANGED, data, 16));
    assert_false(sees_ours(s, OFP_EXP_QOS_CHANGED, data, 8));
    of_set32(data, 1);
    of_set32(data + 4, 10);
    assert_true(sees_ours(s, OFP_EXP_QOS_PROMISE, data, 40));
    assert_false(sees_ours(s, OFP_EXP_ROLE_CHANGED, data, 64));
    assert_false(sees_ours(s, OFP_EXP_CAPTURED, data, 64));
    assert_false(sees_ours(s, 99, data, 64));
    slice_put(s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sets),         cmocka_unit_test(test_keys_refused),
        cmocka_unit_test(test_whose),        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_every_action), cmocka_unit_test(test_every_instruction),
        cmocka_unit_test(test_flows),        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_sees),         cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
