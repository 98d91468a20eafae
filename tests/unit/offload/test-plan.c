/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel is told to do, action by action, and why some packets are not told it. */
#include "../pipeline/fixture.h"

#include <oflib/text.h>
#include <packet/headers.h>
#include <switch/offload-plan.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct fixture *fx;
static struct of_arena arena;
static struct offload_plan plan;
static const struct meter *asked; /* for a place */
static int place;

static int
setup(void **state)
{
    fx = fixture_of_tables(0, CACHE_STEPS + 1);
    of_arena_init(&arena, 1 << 20);
    place = 3;
    asked = NULL;
    return fx ? 0 : -1;
}

static int
teardown(void **state)
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

/* One flow in the table; instructions are separated by blanks. */
static void
flow(uint8_t table, const char *match, const char *instructions)
{
    struct of_parse p = {.arena = &arena};
    struct of_flow_mod m = {.command = OFPFC_ADD,
                            .table_id = table,
                            .priority = 5,
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

/* Buckets in words, as dpctl has them. */
static void
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

static void
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

enum { UNTAGGED = 0, TAGGED = OFPVID_PRESENT | 7 };

/* 02:..:02 <- 02:..:01, from 10.0.0.1:7 to 10.0.0.2:8, or of IPv6 */
static struct flow_key
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

static struct flow_key
udp(void)
{
    return key_of(TYPE_IPV4, PROTO_UDP, UNTAGGED);
}

static enum offload_reason
plan_of(const struct flow_key *k)
{
    static const struct offload_meters meters = {on_place, NULL};
    return offload_plan_make(fx->dp, k, &meters, &plan);
}

static void
assert_planned(struct flow_key k)
{
    enum offload_reason why = plan_of(&k);
    if (why != OFFLOADED)
        fail_msg("refused: %s", offload_reason_text[why]);
}

#define assert_refused(key, name)                                                                  \
    do {                                                                                           \
        struct flow_key k_ = key;                                                                  \
        assert_string_equal(offload_reason_name[plan_of(&k_)], #name);                             \
    } while (0)

static void
assert_op(unsigned i, uint32_t kind, uint32_t arg, uint64_t value)
{
    assert_true(i < plan.rule.n_ops);
    assert_int_equal(plan.rule.op[i].kind, kind);
    assert_int_equal(plan.rule.op[i].arg, arg);
    assert_int_equal(plan.rule.op[i].value, value);
}

static void
assert_output(unsigned i, uint32_t port)
{
    assert_op(i, OFFLOAD_OUTPUT, FIXTURE_IFINDEX + port, 0);
}

/* The bits of the rule's mask as a key's. */
static struct flow_key
mask_of(void)
{
#define WORD_OF_KEY(i, w) (w),
    static const uint8_t words[OFFLOAD_WORDS] = {OFFLOAD_WORD_ROWS(WORD_OF_KEY)};
    struct flow_key m = {0};
    for (int i = 0; i < OFFLOAD_WORDS; i++)
        m.w[words[i]] = plan.rule.mask[i];
    return m;
}

static uint64_t
bytes(const void *p, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, p, n);
    return v;
}

/* An address or a port as it is in memory. */
static uint32_t
be32(uint32_t v)
{
    uint32_t word;
    of_set32((uint8_t *)&word, v);
    return word;
}

static uint32_t
be16(uint16_t v)
{
    uint32_t word = 0;
    of_set16((uint8_t *)&word, v);
    return word;
}

/* ------------------------------------------------------------------ outputs */

static void
test_output(void **state)
{
    flow(0, "in_port=1", "apply:output=2,queue=5,output=3");
    fx->ports[1].mtu = 1500;
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 2);
    assert_output(0, 2);
    assert_op(1, OFFLOAD_OUTPUT, FIXTURE_IFINDEX + 3, 0x10005);
    assert_int_equal(plan.n_outs, 2);
    assert_int_equal(plan.out[1].port, 3);
    assert_int_equal(plan.out[1].queue, 5);
    assert_int_equal(plan.n_drops, 0);
    assert_int_equal(plan.rule.longest, 1514);
    assert_int_equal(plan.rule.super, OFFLOAD_MAX_FRAME);
    assert_int_equal(plan.n_steps, 1);
    assert_non_null(plan.step[0].flow);
    assert_int_equal(plan.rule.key[0], bytes(&(uint32_t){FIXTURE_IFINDEX + 1}, 4));
    assert_false(plan.any_port || plan.any_group);
    assert_int_equal(mask_of().ip_proto, 0);
    assert_int_equal(bytes(mask_of().eth_type, 2), 0);
}

/* A queue that does not exist sends as the port without a queue, and is counted. */
static void
test_queues(void **state)
{
    flow(0, "", "apply:queue=5,output=2");
    fx->ports[1].most_queue = 4;
    fx->ports[1].super = 3000;
    assert_planned(udp());
    assert_output(0, 2);
    assert_int_equal(plan.out[0].queue, 0);
    assert_true(plan.out[0].no_queue);
    assert_int_equal(plan.rule.super, 3000);
}

/* 802.1Q tags may be on top of the MTU; what is pushed takes from it. */
static void
test_lengths(void **state)
{
    flow(0, "vlan_vid=none", "apply:push_vlan=0x88a8,output=2");
    flow(0, "vlan_vid=7", "apply:output=2");
    fx->ports[1].mtu = 1500;
    fx->ports[1].super = 3000;
    assert_planned(udp());
    assert_int_equal(plan.rule.longest, 1510);
    assert_int_equal(plan.rule.super, 2996);
    assert_planned(key_of(TYPE_IPV4, PROTO_UDP, TAGGED));
    assert_int_equal(plan.rule.longest, 1518);
    assert_int_equal(plan.rule.super, 3000);
    flow(1, "", "apply:pop_vlan,push_vlan=0x8100,set_field=vlan_vid:9,output=2");
    flow(0, "vlan_vid=7", "goto:1");
    assert_planned(key_of(TYPE_IPV4, PROTO_UDP, TAGGED));
    assert_int_equal(plan.rule.longest, 1518);
    assert_int_equal(plan.out[0].added, 0);
}

static void
test_flood(void **state)
{
    flow(0, "", "apply:output=all");
    assert_refused(((void)(fx->ports[5].not_kernel = true), udp()), port_kind);
    fx->ports[5].not_kernel = false;
    fx->world.port[2].config = OFPPC_NO_FWD;
    fx->world.port[3].link_down = true;
    assert_planned(udp());
    assert_true(plan.any_port);
    assert_int_equal(plan.rule.n_ops, 3); /* 2, 5, LOCAL */
    assert_output(0, 2);
    assert_output(1, 5);
    assert_output(2, 99);
    assert_int_equal(plan.n_drops, 1);
    assert_int_equal(plan.drop[0].why, DROP_port_down);
    assert_int_equal(plan.drop[0].port, 4);
}

static void
test_in_port(void **state)
{
    flow(0, "", "apply:output=1,output=in_port");
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 1);
    assert_output(0, 1);
    assert_int_equal(plan.drop[0].why, DROP_in_port);
}

static void
assert_dropped(enum drop_reason why, uint32_t port)
{
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 0);
    assert_int_equal(plan.n_drops, 1);
    assert_int_equal(plan.drop[0].why, why);
    assert_int_equal(plan.drop[0].port, port);
}

static void
test_drops(void **state)
{
    assert_dropped(DROP_no_match, OFPP_ANY);
    assert_int_equal(plan.n_steps, 1);
    assert_null(plan.step[0].flow);
    flow(0, "", "apply:set_field=eth_dst:02:00:00:00:00:09,nw_dec");
    assert_dropped(DROP_no_action, OFPP_ANY);
    assert_int_equal(plan.rule.min_ttl, 2);
    flow(0, "", "apply:output=9");
    assert_dropped(DROP_no_port, 9);
    flow(0, "", "apply:output=2");
    fx->world.port[1].link_down = true;
    assert_dropped(DROP_port_down, 2);
    fx->world.port[1] = (struct oracle_port){.no = 2, .config = OFPPC_NO_FWD};
    assert_dropped(DROP_port_down, 2);
    flow(0, "", "apply:output=2 goto:3");
    fx->world.port[1].config = 0;
    assert_planned(udp());
    assert_output(0, 2);
    assert_int_equal(plan.drop[0].why, DROP_no_match);
}

/* ------------------------------------------------------------------ edits */

static void
test_set_fields(void **state)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 9};
    flow(0, "eth_type=0x800,ip_proto=17",
         "apply:set_field=eth_dst:02:00:00:00:00:09,set_field=eth_src:02:00:00:00:00:09,"
         "set_field=ip_dscp:46,set_field=ip_ecn:1,set_field=ipv4_src:10.0.0.9,"
         "set_field=ipv4_dst:10.0.0.8,set_field=udp_src:99,set_field=udp_dst:98,nw_ttl=64,"
         "nw_dec,output=2");
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 11);
    assert_op(0, OFFLOAD_SET_ETH_DST, 0, bytes(mac, 6));
    assert_op(1, OFFLOAD_SET_ETH_SRC, 0, bytes(mac, 6));
    assert_op(2, OFFLOAD_SET_TOS, 0xfc, 46 << 2);
    assert_op(3, OFFLOAD_SET_TOS, 3, 1);
    assert_op(4, OFFLOAD_SET_IPV4_SRC, be32(0x0a000009), 0);
    assert_op(5, OFFLOAD_SET_IPV4_DST, be32(0x0a000008), 0);
    assert_op(6, OFFLOAD_SET_TP_SRC, be16(99), 0);
    assert_op(7, OFFLOAD_SET_TP_DST, be16(98), 0);
    assert_op(8, OFFLOAD_SET_TTL, 64, 0);
    assert_op(9, OFFLOAD_DEC_TTL, 0, 0);
    assert_int_equal(plan.rule.min_ttl, 0);
    assert_int_equal(mask_of().ip_proto, 0xff);
    assert_int_equal(of_get16(mask_of().vlan_vid), KEY_HAS | OFPVID_PRESENT); /* length */
}

static void
test_ipv6(void **state)
{
    uint8_t to[16] = {0xfd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    flow(0, "eth_type=0x86dd",
         "apply:set_field=ipv6_dst:fd01:203:405:607:809:a0b:c0d:e0f,nw_dec,nw_dec,output=2");
    assert_planned(key_of(TYPE_IPV6, PROTO_TCP, UNTAGGED));
    assert_op(0, OFFLOAD_SET_IPV6, 2, bytes(to, 8));
    assert_op(1, OFFLOAD_SET_IPV6, 3, bytes(to + 8, 8));
    assert_int_equal(plan.rule.min_ttl, 3);
}

/* A bucket's actions are not checked against a match: what the packet lacks isn't set, and that it
 * lacks it matters. */
static void
test_lacking(void **state)
{
    group(OFPGT_INDIRECT, 1,
          "set_field=tcp_dst:9,set_field=vlan_vid:9,set_field=arp_op:1,set_field=mpls_tc:1,"
          "set_field=sctp_src:9,output=2");
    flow(0, "", "apply:group=1");
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 1);
    assert_int_equal(mask_of().ip_proto, 0xff);
    assert_int_equal(of_get16(mask_of().vlan_vid), OFPVID_PRESENT);
    assert_planned(key_of(TYPE_IPV4, PROTO_TCP, TAGGED));
    assert_int_equal(plan.rule.n_ops, 3);
    assert_int_equal(of_get16(mask_of().vlan_vid), OFPVID_PRESENT | KEY_HAS);
    assert_refused(key_of(TYPE_IPV4, PROTO_SCTP, UNTAGGED), set_field);
}

static void
test_vlan(void **state)
{
    flow(0, "",
         "apply:push_vlan=0x8100,set_field=vlan_vid:9,output=2,set_field=vlan_pcp:3,pop_vlan,"
         "set_field=vlan_vid:5,output=3");
    assert_planned(key_of(TYPE_IPV4, PROTO_UDP, TAGGED));
    assert_op(0, OFFLOAD_PUSH_VLAN, 0x8100, 0);
    assert_op(1, OFFLOAD_SET_VLAN, 0xfff, 9);
    assert_output(2, 2);
    assert_op(3, OFFLOAD_SET_VLAN, 0xe000, 3 << 13);
    assert_op(4, OFFLOAD_POP_VLAN, 0, 0);
    assert_op(5, OFFLOAD_SET_VLAN, 0xfff, 5); /* the tag that it came with */
    assert_int_equal(plan.out[0].added, 4);
    assert_int_equal(plan.out[1].added, 0);
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 6);
    assert_output(5, 3);
}

static void
test_behind_a_pop(void **state)
{
    flow(0, "", "apply:pop_vlan,output=2");
    assert_planned(key_of(TYPE_IPV4, PROTO_UDP, TAGGED));
    assert_op(0, OFFLOAD_POP_VLAN, 0, 0);
    assert_int_equal(plan.out[0].added, -4);
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 1);
    assert_int_equal(of_get16(mask_of().vlan_vid), OFPVID_PRESENT);
    flow(0, "", "apply:pop_vlan,pop_vlan,output=2");
    assert_refused(key_of(TYPE_IPV4, PROTO_UDP, TAGGED), unknown_key);
    flow(0, "", "apply:pop_vlan goto:1");
    assert_refused(key_of(TYPE_IPV4, PROTO_UDP, TAGGED), unknown_key);
}

/* MPLS, PBB: taking off what is not there is nothing; a TTL is copied only between IP headers. */
static void
test_other_actions(void **state)
{
    flow(0, "", "write:ttl_in,ttl_out,pop_pbb,mpls_dec,mpls_ttl=3,output=2");
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 1);
    assert_int_equal(mask_of().ip_proto, 0xff);
    assert_refused(key_of(TYPE_IPV4, PROTO_IPIP, UNTAGGED), action);
    flow(0, "", "apply:push_mpls=0x8847,output=2");
    assert_refused(udp(), action);
    flow(0, "", "apply:nw_ttl=1,nw_dec,output=2");
    assert_refused(udp(), ttl);
}

/* ------------------------------------------------------------------ tables */

static void
test_tables(void **state)
{
    flow(0, "eth_type=0x800,ip_proto=17",
         "apply:set_field=udp_dst:80,push_vlan=0x8100 write:output=2,queue=1 goto:2");
    flow(2, "eth_type=0x800,ip_proto=17,udp_dst=80", "write:output=3,nw_dec goto:3");
    flow(3, "eth_type=0x800,ipv4_dst=10.0.0.0/24", "goto:4");
    flow(4, "", "");
    assert_planned(udp());
    assert_int_equal(plan.n_steps, 4);
    assert_int_equal(plan.step[1].table, 2);
    assert_int_equal(plan.step[0].added, 0);
    assert_int_equal(plan.step[3].added, 4);
    assert_int_equal(plan.rule.n_ops, 4);
    assert_op(2, OFFLOAD_DEC_TTL, 0, 0);
    assert_op(3, OFFLOAD_OUTPUT, FIXTURE_IFINDEX + 3, 0x10001);
    assert_int_equal(bytes(mask_of().tp_dst, 2), 0); /* it was set */
    assert_int_equal(of_get32(mask_of().ip_dst.v4), 0xffffff00);
    flow(4, "", "clear");
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 0);
    assert_int_equal(plan.drop[0].why, DROP_no_action);
}

/* ------------------------------------------------------------------ groups */

static void
test_all(void **state)
{
    group(OFPGT_ALL, 1, "output=2 queue=3,output=3 set_field=eth_dst:02:00:00:00:00:09,output=4");
    flow(0, "", "apply:push_vlan=0x8100,group=1");
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 5);
    assert_op(2, OFFLOAD_OUTPUT, FIXTURE_IFINDEX + 3, 0x10003);
    assert_output(4, 4);
    assert_int_equal(plan.n_runs, 4);
    assert_int_equal(plan.run[0].bucket, -1);
    assert_int_equal(plan.run[3].bucket, 2);
    assert_int_equal(plan.run[3].added, 4);
    flow(0, "", "apply:group=1,set_field=eth_src:02:00:00:00:00:07");
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 4);
    flow(0, "", "apply:group=1,output=5");
    assert_refused(udp(), group_edits);
}

/* Edits that nobody sees don't spoil what follows. */
static void
test_unseen_edits(void **state)
{
    group(OFPGT_ALL, 1, "output=2 set_field=eth_dst:02:00:00:00:00:09");
    group(OFPGT_INDIRECT, 2, "group=any group=1");
    flow(0, "", "apply:group=2,output=4");
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 2);
    assert_int_equal(plan.n_runs, 5);
}

static void
test_select(void **state)
{
    unsigned n[3] = {0};
    group(OFPGT_SELECT, 1, "weight=1 output=2 weight=1 output=3");
    flow(0, "", "apply:group=1");
    for (uint16_t i = 0; i < 64; i++) {
        struct flow_key k = udp();
        of_set16(k.tp_src, i);
        assert_planned(k);
        assert_true(plan.any_port);
        assert_int_equal(of_get16(mask_of().tp_src), 0xffff);
        n[plan.out[0].port - 2]++;
    }
    assert_true(n[0] > 8 && n[1] > 8);
    fx->world.port[1].link_down = true;
    for (uint16_t i = 0; i < 64; i++) {
        struct flow_key k = udp();
        of_set16(k.tp_src, i);
        assert_planned(k);
        assert_output(0, 3);
    }
    flow(0, "", "apply:pop_vlan,group=1");
    assert_refused(key_of(TYPE_IPV4, PROTO_UDP, TAGGED), unknown_key);
}

/* Bits that select groups' hash is said not to depend on make no difference to it. */
static void
test_hash_bits(void **state)
{
    static const uint8_t protos[] = {PROTO_TCP, PROTO_ICMP, PROTO_ICMPV6, PROTO_GRE};
    for (unsigned i = 0; i < 8; i++) {
        struct flow_key k = key_of(i & 1 ? TYPE_IPV4 : TYPE_IPV6, protos[i / 2], TAGGED), bits;
        struct packet p, q;
        if (protos[i / 2] == PROTO_GRE)
            of_set16(k.vlan_vid, of_get16(k.vlan_vid) & (uint16_t)~KEY_HAS_L4);
        packet_of_key(&k, &p);
        packet_flow_hash_bits(&p, &bits);
        for (unsigned bit = 0; bit < 64 * KEY_WORDS; bit++) {
            struct flow_key other = k;
            if (bits.w[bit / 64] >> bit % 64 & 1)
                continue;
            other.w[bit / 64] ^= UINT64_C(1) << bit % 64;
            packet_of_key(&other, &q);
            assert_int_equal(packet_flow_hash(&q), packet_flow_hash(&p));
        }
    }
}

static void
test_failover(void **state)
{
    group(OFPGT_INDIRECT, 7, "output=4");
    group(OFPGT_FF, 1, "port=2 output=2 port=3 group=7");
    flow(0, "", "apply:group=1");
    assert_planned(udp());
    assert_output(0, 2);
    assert_true(plan.any_port && plan.any_group);
    fx->world.port[1].link_down = true;
    assert_planned(udp());
    assert_output(0, 4);
    assert_int_equal(plan.n_runs, 4);
    fx->world.port[2].link_down = true;
    assert_planned(udp());
    assert_int_equal(plan.drop[0].why, DROP_group);
    assert_int_equal(plan.drop[0].group, 1);
}

static void
test_too_many_runs(void **state)
{
    group(OFPGT_ALL, 3, "output=2 output=3 output=4 output=5");
    group(OFPGT_ALL, 2, "group=any group=3 group=any group=3");
    group(OFPGT_ALL, 1, "group=any group=2 group=any group=2");
    flow(0, "", "apply:group=2");
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 8);
    flow(0, "", "apply:group=1,output=2");
    assert_refused(udp(), ops);
    flow(0, "",
         "apply:output=9,output=9,output=9,output=9,output=9,output=9,output=9,output=9,output=9,"
         "output=9,output=9,output=9,output=9,output=9,output=9,output=9,output=9,output=9");
    assert_planned(udp());
    assert_int_equal(plan.n_drops, 18);
    flow(0, "",
         "apply:output=9,output=9,output=9,output=9,output=9,output=9,output=9,output=9,output=9,"
         "output=9,output=9,output=9,output=9,output=9,output=9,output=9,output=9 goto:1");
    flow(1, "",
         "apply:output=9,output=9,output=9,output=9,output=9,output=9,output=9,output=9,output=9,"
         "output=9,output=9,output=9,output=9,output=9,output=9,output=9,output=9");
    assert_refused(udp(), runs);
}

/* ------------------------------------------------------------------ meters */

static void
test_meter(void **state)
{
    flow(0, "", "apply:nw_dec goto:1");
    flow(1, "", "meter:1 goto:2");
    flow(2, "", "apply:output=2");
    assert_planned(udp());
    assert_true(plan.rule.meter);
    assert_int_equal(plan.rule.n_ops, 3);
    assert_op(0, OFFLOAD_METER, 3, 0);
    assert_op(1, OFFLOAD_DEC_TTL, 0, 0);
    assert_int_equal(plan.meter_id, METER_ID);
    assert_int_equal(plan.metered, 2);
    assert_ptr_equal(asked, meters_find(fx->dp->meters, METER_ID));
    flow(2, "", "");
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 1); /* and drop */
    place = -1;
    assert_refused(udp(), meter);
}

static void
test_other_meters(void **state)
{
    flow(0, "", "meter:1 apply:output=2 goto:1");
    assert_planned(udp());
    change_meter("drop:rate=1,burst=1 drop:rate=2,burst=1 drop:rate=3,burst=1");
    assert_refused(udp(), meter);
    change_meter("dscp_remark:rate=1,burst=1,prec_level=1");
    assert_refused(udp(), meter);
    change_meter("drop:rate=1,burst=1 drop:rate=2,burst=1");
    assert_planned(udp());
    flow(1, "", "meter:1");
    assert_refused(udp(), meter);
    flow(0, "", "apply:output=2 goto:1");
    assert_refused(udp(), meter);
    flow(0, "", "apply:push_vlan=0x8100 goto:1");
    assert_refused(udp(), meter);
    flow(0, "", "goto:1");
    assert_planned(udp());
}

/* ------------------------------------------------------------------ refusals */

static void
test_outputs_elsewhere(void **state)
{
    flow(0, "", "apply:output=2,output=controller");
    assert_refused(udp(), controller);
    flow(0, "", "apply:output=normal");
    assert_refused(udp(), normal);
    flow(0, "", "apply:output=local");
    fx->ports[5].not_kernel = true;
    assert_refused(udp(), port_kind);
}

static void
test_coming_in(void **state)
{
    struct flow_key k = udp();
    flow(0, "", "apply:output=2");
    of_set32(k.in_port, 77);
    assert_refused(k, in_port);
    fx->ports[0].shaped = true;
    assert_refused(udp(), shaped);
    fx->ports[0].shaped = false;
    fx->dp->standalone = true;
    assert_refused(udp(), standalone);
}

static void
test_kinds(void **state)
{
    struct flow_key k = key_of(TYPE_IPV6, PROTO_ICMPV6, UNTAGGED);
    flow(0, "", "apply:output=2");
    assert_refused(key_of(TYPE_ARP, 0, UNTAGGED), kind);
    assert_planned(key_of(TYPE_MPLS, 0, UNTAGGED));
    assert_planned(key_of(TYPE_PBB, 0, UNTAGGED));
    k.has_nd = KEY_HAS_ND_TARGET;
    assert_refused(k, kind);
    k = key_of(TYPE_IPV6, PROTO_UDP, UNTAGGED);
    of_set16(k.ipv6_exthdr, OFPIEH_HOP);
    assert_refused(k, kind);
    k = udp();
    of_set16(k.vlan_vid, 0);
    assert_refused(k, kind);
}

/* Fields that the kernel's packets have 0 in tell nothing, and the rule matches. */
static void
test_mask(void **state)
{
    struct flow_key k = udp();
    flow(0, "metadata=0,tunnel_id=0", "apply:output=2");
    assert_planned(k);
}

/* Labels and tags pass whole; what is behind them is not for the kernel to edit, and an edit of IP is not for
 * them. */
static void
test_labels(void **state)
{
    static const char *const others[] = {"mpls_dec", "pop_mpls=0x800", "nw_dec", "ttl_in",
                                         "set_field=mpls_tc:1"};
    struct flow_key k = key_of(TYPE_MPLS, 0, UNTAGGED), pbb = key_of(TYPE_PBB, 0, UNTAGGED);
    of_set32(k.mpls_label, 5);
    flow(0, "eth_type=0x8847,mpls_label=5", "apply:push_vlan=0x8100,set_field=vlan_vid:9,output=2");
    assert_planned(k);
    assert_int_equal(of_get32(mask_of().mpls_label), 0xfffff);
    flow(0, "eth_type=0x88e7,pbb_isid=0", "apply:set_field=eth_dst:02:00:00:00:00:09,output=2");
    assert_planned(pbb);
    assert_int_equal(mask_of().pbb_isid[2], 0xff);
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        char text[80];
        snprintf(text, sizeof text, "write:%s,output=2", others[i]);
        flow(0, "eth_type=0x8847,mpls_label=5", text);
        assert_int_not_equal(plan_of(&k), OFFLOADED);
    }
    flow(0, "", "write:pop_pbb,output=2");
    pbb.pbb_isid[2] = 1;
    assert_refused(pbb, action);
    assert_planned(udp());
    assert_int_equal(of_get16(mask_of().eth_type), UINT16_MAX);
}

static void
test_long_path(void **state)
{
    for (uint8_t t = 0; t < CACHE_STEPS; t++) {
        char to[16];
        snprintf(to, sizeof to, "goto:%d", t + 1);
        flow(t, "", "apply:output=2");
        assert_planned(udp());
        assert_int_equal(plan.n_steps, t + 1);
        flow(t, "", to);
    }
    flow(CACHE_STEPS, "", "apply:output=2");
    assert_refused(udp(), long_path);
}

static void
test_names(void **state)
{
    for (int i = 0; i < OFFLOAD_REASON_N; i++)
        assert_true(offload_reason_name[i] && offload_reason_text[i]);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(output),        TEST(queues),
        TEST(lengths),       TEST(flood),
        TEST(in_port),       TEST(drops),
        TEST(set_fields),    TEST(ipv6),
        TEST(lacking),       TEST(vlan),
        TEST(behind_a_pop),  TEST(other_actions),
        TEST(tables),        TEST(all),
        TEST(unseen_edits),  TEST(select),
        TEST(hash_bits),     TEST(failover),
        TEST(too_many_runs), TEST(meter),
        TEST(other_meters),  TEST(outputs_elsewhere),
        TEST(coming_in),     TEST(kinds),
        TEST(labels),        TEST(mask),
        TEST(long_path),     TEST(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
