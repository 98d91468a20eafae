/* SPDX-License-Identifier: Apache-2.0 */
/* Which buckets need a copy of the packet.  The packets have no pool, so an edit of a copy drops them
 * (DROP_no_memory), and an edit of the packet itself does not. */
#include "setup.h"

#include <oflib/text.h>

#include <stdio.h>
#include <string.h>

#define LEN 60

static uint8_t room[PACKET_HEADROOM + LEN];

static void
add_flow(uint8_t table, const char *instructions)
{
    struct of_parse p = {.arena = &fx->arena};
    struct of_flow_mod m = {.command = OFPFC_ADD,
                            .table_id = table,
                            .priority = 5,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY};
    char words[200];
    snprintf(words, sizeof words, "%s", instructions);
    for (char *save, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
        assert_int_equal(of_parse_instruction(&p, w, &m.instructions), 0);
    assert_int_equal(tables_flow_mod(fx->dp->tables, &m, 1), 0);
}

/* Every bucket edits the packet before `action`. */
static void
add_group(uint32_t id, enum ofp_group_type type, unsigned buckets, const char *action)
{
    struct of_parse p = {.arena = &fx->arena};
    struct of_group_mod m = {.command = OFPGC_ADD, .type = type, .group_id = id};
    char actions[80], first[20], *words[4];
    int n = 0;
    snprintf(actions, sizeof actions, "set_field=eth_dst:02:00:00:00:00:07,%s", action);
    snprintf(first, sizeof first, "%s",
             type == OFPGT_FF       ? "watch_port=2"
             : type == OFPGT_SELECT ? "weight=1"
                                    : "weight=0");
    for (unsigned i = 0; i < buckets; i++) {
        words[n++] = first;
        words[n++] = actions;
    }
    assert_int_equal(of_parse_buckets(&p, words, n, &m.buckets), 0);
    assert_int_equal(groups_mod(fx->dp->groups, &m, 1), 0);
}

/* How many edits of a copy the packet met. */
static uint64_t
copies(void)
{
    static const uint8_t head[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5};
    struct packet p = {
        .data = room + PACKET_HEADROOM, .len = LEN, .wire_len = LEN, .headroom = PACKET_HEADROOM};
    uint64_t before = fx->drops[DROP_no_memory];
    memcpy(p.data, head, sizeof head);
    packet_parse(&p, 1);
    pipeline_packet(&fx->worker, &p);
    return fx->drops[DROP_no_memory] - before;
}

static void
test_last_action(void **state)
{
    add_group(1, OFPGT_SELECT, 2, "output=2");
    add_flow(0, "apply:group=1");
    assert_int_equal(copies(), 0);
    add_flow(0, "apply:group=1,output=3");
    assert_int_equal(copies(), 1);
}

static void
test_types(void **state)
{
    add_group(1, OFPGT_INDIRECT, 1, "output=2");
    add_group(2, OFPGT_FF, 2, "output=2");
    add_flow(0, "apply:group=1");
    assert_int_equal(copies(), 0);
    add_flow(0, "apply:group=2");
    assert_int_equal(copies(), 0);
    /* The second bucket needs no copy of the packet, but the first has the same bytes. */
    add_group(3, OFPGT_ALL, 1, "output=2");
    add_flow(0, "apply:group=3");
    assert_int_equal(copies(), 0);
    add_group(4, OFPGT_ALL, 2, "output=2");
    add_flow(0, "apply:group=4");
    assert_int_equal(copies(), 2);
}

static void
test_action_set(void **state)
{
    add_group(1, OFPGT_SELECT, 1, "output=2");
    add_flow(0, "write:group=1 goto:1");
    add_flow(1, "");
    assert_int_equal(copies(), 0);
    add_flow(0, "apply:group=1 goto:1"); /* another table looks at the packet */
    assert_int_equal(copies(), 1);
    add_flow(0, "apply:group=1 write:output=3"); /* so does the action set */
    assert_int_equal(copies(), 1);
    add_flow(0, "write:output=3 goto:1");
    add_flow(1, "apply:group=1");
    assert_int_equal(copies(), 1);
    add_flow(1, "apply:group=1 clear");
    assert_int_equal(copies(), 0);
}

static void
test_nested(void **state)
{
    add_group(1, OFPGT_SELECT, 1, "output=2");
    add_group(2, OFPGT_SELECT, 1, "group=1");
    add_flow(0, "apply:group=2");
    assert_int_equal(copies(), 0);
    add_flow(0, "apply:group=2,output=3");
    assert_int_equal(copies(), 1); /* of the outer bucket, whose first edit ends it */
}

int
main(void)
{
    const struct CMUnitTest tests[] = {TEST(last_action), TEST(types), TEST(action_set),
                                       TEST(nested)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
