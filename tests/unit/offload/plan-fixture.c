/* SPDX-License-Identifier: Apache-2.0 */
#include "plan-fixture.h"

#include <oflib/text.h>
#include <packet/headers.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct fixture *fx;
struct offload_plan plan;
const struct meter *asked;
int place;
static struct of_arena arena;

int
plan_setup(void **state)
{
    fx = fixture_of_tables(0, CACHE_STEPS + 1);
    of_arena_init(&arena, 1 << 20);
    place = 3;
    asked = NULL;
    return fx ? 0 : -1;
}

int
plan_teardown(void **state)
{
    fixture_free(fx);
    of_arena_free(&arena);
    return 0;
}

static int
on_place(void *ctx, const struct meter *m)
{
    asked = m;
    return place;
}

/* ------------------------------------------------------------------ the switch */

static void
flow_of(uint8_t table, uint16_t priority, const char *match, const char *instructions)
{
    struct of_parse p = {.arena = &arena};
    struct of_flow_mod m = {.command = OFPFC_ADD,
                            .table_id = table,
                            .priority = priority,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY};
    char text[256], *rest = text;
    snprintf(text, sizeof text, "%s", instructions);
    assert_int_equal(of_parse_match(&p, match, &m.match), 0);
    for (char *word; (word = strsep(&rest, " "));)
        if (*word && of_parse_instruction(&p, word, &m.instructions))
            fail_msg("%s: %s", word, p.why);
    assert_int_equal(tables_flow_mod(fx->dp->tables, &m, 1), 0);
}

void
flow(uint8_t table, const char *match, const char *instructions)
{
    flow_of(table, 5, match, instructions);
}

void
table_miss(uint8_t table, const char *instructions)
{
    flow_of(table, 0, "", instructions);
}

void
group(uint8_t type, uint32_t id, const char *buckets)
{
    struct of_parse p = {.arena = &arena};
    struct of_group_mod m = {.command = OFPGC_ADD, .type = type, .group_id = id};
    char text[256], *rest = text, *words[16], *word;
    int n = 0;
    snprintf(text, sizeof text, "%s", buckets);
    while ((word = strsep(&rest, " ")))
        words[n++] = word;
    if (of_parse_buckets(&p, words, n, &m.buckets))
        fail_msg("%s", p.why);
    assert_int_equal(groups_mod(fx->dp->groups, &m, 1), 0);
}

void
change_meter(const char *bands)
{
    struct of_parse p = {.arena = &arena};
    struct of_meter_mod m = {
        .command = OFPMC_MODIFY, .flags = OFPMF_KBPS | OFPMF_BURST, .meter_id = METER_ID};
    char text[256], *rest = text, *word;
    snprintf(text, sizeof text, "%s", bands);
    while ((word = strsep(&rest, " ")))
        if (of_parse_band(&p, word, &m.bands))
            fail_msg("%s", p.why);
    assert_int_equal(meters_mod(fx->dp->meters, &m, 1), 0);
}

/* ------------------------------------------------------------------ packets */

struct flow_key
key_of(uint16_t type, uint8_t proto, uint16_t vid)
{
    struct flow_key k = {
        .ip_proto = proto, .eth_dst = {2, 0, 0, 0, 0, 2}, .eth_src = {2, 0, 0, 0, 0, 1}};
    of_set32(k.in_port, 1);
    of_set32(k.in_phy_port, 1);
    of_set16(k.eth_type, type);
    of_set16(k.vlan_vid, vid | KEY_HAS);
    k.vlan_pcp = vid ? 5 : 0;
    of_set32(k.ip_src.v4, 0x0a000001);
    of_set32(k.ip_dst.v4, 0x0a000002);
    of_set16(k.tp_src, 7);
    of_set16(k.tp_dst, 8);
    return k;
}

struct flow_key
udp(void)
{
    return key_of(TYPE_IPV4, PROTO_UDP, UNTAGGED);
}

enum offload_reason
plan_of(const struct flow_key *k)
{
    return plan_at(k, OFFLOAD_AT_PORT);
}

enum offload_reason
plan_at(const struct flow_key *k, enum offload_stage stage)
{
    static const struct offload_meters meters = {on_place, NULL};
    return offload_plan_make(fx->dp, k, stage, &meters, &plan);
}

void
assert_planned(struct flow_key k)
{
    enum offload_reason why = plan_of(&k);
    if (why != OFFLOADED)
        fail_msg("refused: %s", offload_reason_text[why]);
}

void
assert_op(unsigned i, uint32_t kind, uint32_t arg, uint64_t value)
{
    assert_true(i < plan.rule.n_ops);
    assert_int_equal(plan.rule.op[i].kind, kind);
    assert_int_equal(plan.rule.op[i].arg, arg);
    assert_int_equal(plan.rule.op[i].value, value);
}

void
assert_output(unsigned i, uint32_t port)
{
    assert_op(i, OFFLOAD_OUTPUT, FIXTURE_IFINDEX + port, 0);
}

struct flow_key
mask_of(void)
{
#define WORD_OF_KEY(i, w) (w),
    static const uint8_t words[OFFLOAD_WORDS] = {OFFLOAD_WORD_ROWS(WORD_OF_KEY)};
    struct flow_key m = {0};
    for (int i = 0; i < OFFLOAD_WORDS; i++)
        m.w[words[i]] = plan.rule.mask[i];
    return m;
}

uint64_t
bytes(const void *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}
