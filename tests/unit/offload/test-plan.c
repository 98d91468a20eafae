/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel is told to do, action by action. */
#include "plan-fixture.h"

#include <packet/headers.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

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
    assert_op(1, OFFLOAD_OUTPUT, FIXTURE_IFINDEX + 3, FIXTURE_QUEUE(5));
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
    flow(0, "", "apply:nw_ttl=1,nw_dec,output=2");
    assert_refused(udp(), ttl);
}

/* ------------------------------------------------------------------ kinds of packets */

static void
test_kinds(void **state)
{
    struct flow_key k = udp();
    flow(0, "", "apply:output=2");
    assert_planned(key_of(TYPE_ARP, 0, UNTAGGED));
    assert_planned(key_of(TYPE_MPLS, 0, UNTAGGED));
    assert_planned(key_of(TYPE_PBB, 0, UNTAGGED));
    of_set16(k.vlan_vid, 0); /* the IP header is cut off */
    assert_refused(k, kind);
    k = key_of(0x88cc, 0, UNTAGGED);
    of_set16(k.vlan_vid, 0);
    assert_planned(k);
    of_set16(k.eth_type, TYPE_OLD_SVLAN);
    assert_refused(k, kind);
    of_set16(k.eth_type, ETH_NO_TYPE);
    assert_refused(k, kind);
}

/* Entries are for fragments or for others, whatever flows look at. */
static void
test_fragments(void **state)
{
    struct flow_key k = udp();
    flow(0, "eth_type=0x800,ip_proto=17,udp_dst=8", "apply:output=2");
    table_miss(0, "apply:output=3");
    assert_planned(k);
    assert_output(0, 2);
    assert_int_equal(mask_of().fragment, 0xff);
    k.fragment = 1;
    assert_planned(k);
    assert_output(0, 2);
    of_set16(k.vlan_vid, KEY_HAS_L3); /* not the first one: it has no ports */
    assert_planned(k);
    assert_output(0, 3);
    fx->dp->frag = OFPC_FRAG_DROP;
    assert_refused(k, kind);
    assert_planned(udp());
}

static void
test_edits_of_arp(void **state)
{
    struct flow_key k = key_of(TYPE_ARP, 0, UNTAGGED);
    flow(0, "eth_type=0x806",
         "apply:set_field=arp_op:2,set_field=arp_sha:02:00:00:00:00:09,output=2");
    assert_planned(k);
    assert_op(0, OFFLOAD_SET_ARP, OXM_arp_op | 2 << 8 | ARP_OP_AT << 16, be16(2));
    assert_op(1, OFFLOAD_SET_ARP, OXM_arp_sha | 6 << 8 | ARP_SHA_AT << 16,
              bytes("\2\0\0\0\0\11", 6));
    assert_int_equal(plan.rule.n_ops, 3);
    of_set16(k.vlan_vid, 0); /* not of Ethernet and IPv4 */
    assert_planned(k);
    flow(0, "eth_type=0x86dd,ip_proto=58,icmpv6_type=135",
         "apply:set_field=ipv6_nd_target:fd00::1,output=2");
    k = key_of(TYPE_IPV6, PROTO_ICMPV6, UNTAGGED);
    k.tp_src[0] = ND_SOLICIT;
    k.has_nd = KEY_HAS_ND_TARGET;
    assert_refused(k, set_field);
}

/* Fields in the first bytes of a header. */
static void
test_heads(void **state)
{
    flow(0, "eth_type=0x8847", "apply:set_field=mpls_label:5,set_field=mpls_tc:3,output=2");
    flow(0, "eth_type=0x86dd", "apply:set_field=ipv6_flabel:0x12345,output=2");
    flow(0, "eth_type=0x88e7", "apply:set_field=pbb_isid:7,output=2");
    assert_planned(key_of(TYPE_MPLS, 0, UNTAGGED));
    assert_op(0, OFFLOAD_SET_HEAD, OXM_mpls_label,
              (uint64_t)be32(0xfffff000) << 32 | be32(5 << 12));
    assert_op(1, OFFLOAD_SET_HEAD, OXM_mpls_tc, (uint64_t)be32(0xe00) << 32 | be32(3 << 9));
    assert_planned(key_of(TYPE_IPV6, PROTO_UDP, UNTAGGED));
    assert_op(0, OFFLOAD_SET_HEAD, OXM_ipv6_flabel, (uint64_t)be32(0xfffff) << 32 | be32(0x12345));
    assert_planned(key_of(TYPE_PBB, 0, UNTAGGED));
    assert_op(0, OFFLOAD_SET_HEAD, OXM_pbb_isid, (uint64_t)be32(0xffffff) << 32 | be32(7));
}

/* A label in front of IP takes its TTL, one in front of another label what that has. */
static void
test_push_label(void **state)
{
    flow(0, "",
         "apply:nw_dec,push_mpls=0x8847,set_field=mpls_label:5,mpls_dec,output=2,"
         "push_mpls=0x8848,push_vlan=0x8100,output=3");
    assert_planned(udp());
    assert_op(0, OFFLOAD_DEC_TTL, 0, 0);
    assert_op(1, OFFLOAD_PUSH_MPLS, TYPE_MPLS, TYPE_IPV4);
    assert_op(3, OFFLOAD_DEC_MPLS_TTL, 0, 0);
    assert_output(4, 2);
    assert_op(5, OFFLOAD_PUSH_MPLS, TYPE_MPLS_MC, TYPE_MPLS);
    assert_op(6, OFFLOAD_PUSH_VLAN, 0x8100, 0);
    assert_int_equal(plan.rule.min_ttl, 3);
    assert_true(plan.rule.labels);
    assert_int_equal(plan.rule.super, OFFLOAD_MAX_FRAME);
    assert_int_equal(plan.out[0].added, 4);
    assert_int_equal(plan.out[1].added, 12);
    assert_int_equal(of_get16(mask_of().eth_type), UINT16_MAX);
    assert_int_equal(of_get16(mask_of().vlan_vid), OFPVID_PRESENT | KEY_HAS_L3);
    group(OFPGT_INDIRECT, 1, "set_field=ipv4_dst:10.0.0.9,push_mpls=0x8847,output=2");
    flow(0, "", "apply:push_mpls=0x8847,group=1"); /* there is no address any more */
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 3);
    flow(0, "", "apply:push_mpls=0x8847,mpls_dec,output=2");
    assert_refused(key_of(TYPE_ARP, 0, UNTAGGED), ttl); /* it has none, so the label has 0 */
    flow(0, "", "apply:push_mpls=0x8847,nw_dec,output=2");
    assert_refused(udp(), action);
}

/* What is behind a label that is popped, the key doesn't tell. */
static void
test_pop_label(void **state)
{
    static const char *const behind[] = {
        "apply:pop_mpls=0x800,nw_dec,output=2",
        "apply:pop_mpls=0x800,set_field=ipv4_dst:10.0.0.9,output=2",
        "apply:pop_mpls=0x8847,mpls_dec,output=2", "apply:pop_mpls=0x8847,pop_mpls=0x800,output=2",
        "apply:pop_mpls=0x8100,output=2"};
    for (unsigned i = 0; i < sizeof behind / sizeof *behind; i++) {
        flow(0, "eth_type=0x8847", behind[i]);
        assert_refused(key_of(TYPE_MPLS, 0, UNTAGGED), unknown_key);
    }
    group(OFPGT_INDIRECT, 1, "pop_mpls=0x800,output=2");
    flow(0, "eth_type=0x8847", "apply:mpls_ttl=9,group=1");
    assert_planned(key_of(TYPE_MPLS, 0, UNTAGGED));
    assert_op(0, OFFLOAD_SET_MPLS_TTL, 9, 0);
    assert_op(1, OFFLOAD_POP_MPLS, TYPE_IPV4, 0);
    assert_int_equal(plan.out[0].added, -4);
    assert_int_equal(plan.rule.super, OFFLOAD_MAX_FRAME);
    assert_false(plan.rule.labels);
    flow(0, "eth_type=0x800", "apply:group=1");
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 1);
}

/* A label comes in front of tags, which are then behind it; a pop leaves them where they are. */
static void
test_labels_and_tags(void **state)
{
    struct flow_key tagged = key_of(TYPE_IPV4, PROTO_UDP, TAGGED);
    fx->ports[1].mtu = 1500;
    flow(0, "eth_type=0x800", "apply:push_vlan=0x88a8,push_mpls=0x8847,pop_vlan,mpls_dec,output=2");
    assert_planned(tagged);
    assert_op(1, OFFLOAD_PUSH_MPLS, TYPE_MPLS, TYPE_IPV4);
    assert_int_equal(plan.rule.n_ops, 4); /* there is no tag to pop */
    assert_int_equal(plan.rule.longest, 1506);
    assert_int_equal(plan.rule.super, 0);
    flow(0, "eth_type=0x800",
         "apply:push_mpls=0x8847,push_vlan=0x8100,set_field=vlan_vid:7,output=2");
    assert_planned(tagged);
    assert_int_equal(plan.rule.longest, 1510);
    flow(0, "eth_type=0x8847", "apply:pop_mpls=0x800,set_field=vlan_vid:9,output=2");
    assert_planned(key_of(TYPE_MPLS, 0, TAGGED));
    assert_op(1, OFFLOAD_SET_VLAN, 0xfff, 9);
    assert_int_equal(plan.rule.longest, 1522);
    flow(0, "eth_type=0x8847",
         "apply:push_vlan=0x8100,push_vlan=0x8100,push_vlan=0x8100,pop_mpls=0x800,output=2");
    assert_refused(key_of(TYPE_MPLS, 0, UNTAGGED), ops);
}

/* The frame keeps its addresses, which are the customer's as well; its PCP comes from the tag. */
static void
test_push_pbb(void **state)
{
    struct flow_key tagged = key_of(TYPE_IPV4, PROTO_UDP, TAGGED);
    fx->ports[1].mtu = 1500;
    flow(0, "",
         "apply:push_pbb=0x88e7,set_field=pbb_isid:5,set_field=eth_dst:02:00:00:00:00:09,output=2");
    assert_planned(tagged);
    assert_op(0, OFFLOAD_PUSH_PBB, TYPE_PBB, TYPE_IPV4);
    assert_int_equal(plan.rule.longest, 1496);
    assert_int_equal(plan.rule.super, 0);
    assert_int_equal(of_get16(mask_of().eth_type), UINT16_MAX);
    flow(0, "", "apply:push_pbb=0x88e7,push_pbb=0x88e7,output=2");
    assert_planned(udp());
    assert_op(1, OFFLOAD_PUSH_PBB, TYPE_PBB, TYPE_PBB);
    flow(0, "", "apply:push_pbb=0x88e7,push_mpls=0x8847,output=2");
    assert_refused(udp(), action);
    flow(0, "", "apply:push_pbb=0x88e7,pop_pbb,output=2");
    assert_refused(udp(), unknown_key);
    flow(0, "", "apply:push_pbb=0x88e7,nw_dec,output=2");
    assert_refused(udp(), action);
}

/* What the customer's header says, the key doesn't tell, nor whether there is a tag if none is in front. */
static void
test_pop_pbb(void **state)
{
    static const char *const behind[] = {
        "apply:pop_pbb,pop_vlan,output=2", "apply:pop_pbb,nw_dec,output=2",
        "apply:pop_pbb,pop_pbb,output=2", "apply:pop_pbb,push_mpls=0x8847,output=2",
        "apply:pop_pbb,output=normal"};
    for (unsigned i = 0; i < sizeof behind / sizeof *behind; i++) {
        flow(0, "eth_type=0x88e7", behind[i]);
        assert_refused(key_of(TYPE_PBB, 0, UNTAGGED), unknown_key);
    }
    fx->ports[1].mtu = 1500;
    flow(0, "eth_type=0x88e7", "apply:pop_pbb,set_field=eth_src:02:00:00:00:00:09,output=2");
    assert_planned(key_of(TYPE_PBB, 0, UNTAGGED));
    assert_op(0, OFFLOAD_POP_PBB, 0, 0);
    assert_int_equal(plan.rule.longest, 1532);
    flow(0, "eth_type=0x88e7", "apply:pop_pbb,pop_vlan,output=2");
    assert_planned(key_of(TYPE_PBB, 0, TAGGED));
    assert_int_equal(plan.out[0].added, -22);
    flow(0, "", "apply:pop_pbb,output=2"); /* there is none */
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 1);
}

/* Neighbour discovery goes by rules about it that don't ask for its targets. */
static void
test_neighbour_discovery(void **state)
{
    struct flow_key k = key_of(TYPE_IPV6, PROTO_ICMPV6, UNTAGGED);
    k.tp_src[0] = ND_SOLICIT;
    k.tp_src[1] = 0;
    k.has_nd = KEY_HAS_ND_TARGET;
    k.nd_target[15] = 1;
    flow(0, "eth_type=0x86dd,ip_proto=58,icmpv6_type=135", "apply:output=2");
    assert_planned(k);
    assert_output(0, 2);
    flow(1, "eth_type=0x86dd,ip_proto=58,icmpv6_type=135,ipv6_nd_target=fd00::1", "apply:output=3");
    table_miss(1, "apply:output=4");
    flow(0, "eth_type=0x86dd,ip_proto=58,icmpv6_type=135", "goto:1");
    assert_refused(k, mask);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        PLAN_TEST(output),          PLAN_TEST(queues),
        PLAN_TEST(lengths),         PLAN_TEST(flood),
        PLAN_TEST(in_port),         PLAN_TEST(drops),
        PLAN_TEST(set_fields),      PLAN_TEST(ipv6),
        PLAN_TEST(lacking),         PLAN_TEST(vlan),
        PLAN_TEST(behind_a_pop),    PLAN_TEST(other_actions),
        PLAN_TEST(kinds),           PLAN_TEST(fragments),
        PLAN_TEST(edits_of_arp),    PLAN_TEST(heads),
        PLAN_TEST(push_label),      PLAN_TEST(pop_label),
        PLAN_TEST(labels_and_tags), PLAN_TEST(push_pbb),
        PLAN_TEST(pop_pbb),         PLAN_TEST(neighbour_discovery),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
