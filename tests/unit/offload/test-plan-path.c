/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel is told of a way through tables, groups and meters, and why some packets are not told
 * it. */
#include "plan-fixture.h"

#include <packet/headers.h>
#include <shared/clock.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

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
    assert_op(3, OFFLOAD_OUTPUT, FIXTURE_IFINDEX + 3, FIXTURE_QUEUE(1));
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
    assert_op(2, OFFLOAD_OUTPUT, FIXTURE_IFINDEX + 3, FIXTURE_QUEUE(3));
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
    flow(0, "", "apply:output=local");
    fx->ports[5].not_kernel = true;
    assert_refused(udp(), port_kind);
}

static void
learn(uint8_t station, uint16_t vid, uint16_t port)
{
    normal_learn(fx->dp->normal, (const uint8_t[]){2, 0, 0, 0, 0, station}, vid, port,
                 (uint32_t)(clock_ns() / NS_PER_S));
}

/* To where a station was learnt, while it is the source's port that the packet came by. */
static void
test_normal(void **state)
{
    struct flow_key k = udp();
    flow(0, "", "apply:output=normal");
    assert_refused(udp(), normal);
    learn(1, 0, 1);
    assert_refused(udp(), normal);
    learn(2, 0, 3);
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 1);
    assert_output(0, 3);
    assert_int_equal(plan.stations.in, 1);
    assert_int_equal(plan.stations.to, 3);
    assert_int_equal(bytes(mask_of().eth_src, 6), 0xffffffffffff);
    assert_int_equal(bytes(mask_of().eth_dst, 6), 0xffffffffffff);
    assert_int_equal(of_get16(mask_of().vlan_vid) & 0x1fff, 0x1fff);
    assert_refused(key_of(TYPE_IPV4, PROTO_UDP, TAGGED), normal); /* another VLAN */
    learn(2, 0, 1);
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 0);
    assert_int_equal(plan.drop[0].why, DROP_in_port);
    learn(1, 0, 2); /* it has moved */
    assert_refused(udp(), normal);
    learn(1, 0, 1);
    k.eth_dst[0] = 1;
    assert_planned(k);
    assert_int_equal(plan.stations.to, 0);
    assert_true(plan.any_port && plan.n_outs > 1);
    k.eth_src[0] = 1;
    assert_refused(k, normal);
    flow(0, "", "apply:output=normal,output=normal");
    assert_refused(udp(), normal);
}

static struct vlans vlan_10 = {.untagged = 10}, vlan_20 = {.untagged = 20},
                    trunk_10 = {.tagged = {1 << 10}};

static void
set_vlans(struct vlans *one, struct vlans *two, struct vlans *three, struct vlans *four)
{
    struct vlans **v = fx->dp->vlans;
    v[1] = one, v[2] = two, v[3] = three, v[4] = four;
}

/* The tag that the output's port wants. */
static void
test_vlans(void **state)
{
    flow(0, "", "apply:output=normal");
    set_vlans(&vlan_10, &vlan_20, &trunk_10, &vlan_10);
    learn(1, 10, 1);
    learn(2, 10, 3);
    assert_planned(udp());
    assert_int_equal(plan.stations.vid, 10);
    assert_int_equal(plan.rule.n_ops, 3);
    assert_op(0, OFFLOAD_PUSH_VLAN, TYPE_VLAN, 0);
    assert_op(1, OFFLOAD_SET_VLAN, 0x0fff, 10);
    assert_output(2, 3);
    learn(2, 10, 4);
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 1);
    assert_output(0, 4);
    assert_planned(key_of(TYPE_IPV4, PROTO_UDP, TAGGED));
    assert_int_equal(plan.rule.n_ops, 0);
    assert_int_equal(plan.drop[0].why, DROP_vlan);
    flow(0, "", "apply:output=normal,output=2"); /* which sees nothing of the edits */
    assert_planned(udp());
    learn(2, 10, 3);
    assert_refused(udp(), group_edits);
    set_vlans(NULL, NULL, NULL, NULL);
}

/* Outputs that take the packet as it came are first, the others share the edit. */
static void
test_flooding_a_vlan(void **state)
{
    struct flow_key k = udp();
    flow(0, "", "apply:output=normal");
    set_vlans(&vlan_10, &vlan_20, &trunk_10, &vlan_10);
    learn(1, 10, 1);
    k.eth_dst[0] = 1;
    assert_planned(k);
    assert_output(0, 4);
    assert_op(1, OFFLOAD_PUSH_VLAN, TYPE_VLAN, 0);
    assert_op(2, OFFLOAD_SET_VLAN, 0x0fff, 10);
    assert_output(3, 3);
    assert_output(4, 5);
    for (uint32_t i = 0; i < plan.n_outs; i++)
        assert_int_not_equal(plan.out[i].port, 2);
    set_vlans(NULL, NULL, NULL, NULL);
}

static void
test_reserved(void **state)
{
    static const uint8_t lldp[6] = {0x01, 0x80, 0xc2, 0, 0, 0x0e};
    struct flow_key k = udp();
    flow(0, "", "apply:output=normal");
    learn(1, 0, 1);
    memcpy(k.eth_dst, lldp, sizeof lldp);
    assert_planned(k);
    assert_int_equal(plan.drop[0].why, DROP_reserved);
    assert_int_equal(bytes(mask_of().eth_dst, 6), 0xffffffffffff);
    fx->dp->group_fwd = 1 << 14;
    assert_planned(k);
    assert_int_equal(plan.n_drops, 0);
    k.eth_dst[5] = 0x0d;
    assert_planned(k);
    assert_int_equal(plan.drop[0].why, DROP_reserved);
    k.eth_dst[5] = 0x10;
    assert_planned(k);
    assert_int_equal(plan.n_drops, 0);
}

/* What actions have set is what is looked for. */
static void
test_normal_after_edits(void **state)
{
    flow(0, "", "apply:set_field=eth_dst:02:00:00:00:00:09,output=normal");
    learn(1, 0, 1);
    learn(9, 0, 4);
    assert_planned(udp());
    assert_output(1, 4);
    assert_int_equal(plan.stations.dst[5], 9);
    assert_int_equal(bytes(mask_of().eth_dst, 6), 0);
}

static void
test_coming_in(void **state)
{
    struct flow_key k = udp();
    flow(0, "", "apply:output=2");
    of_set32(k.in_port, 77);
    assert_refused(k, in_port);
}

#define QUEUE_IN(queue) OFFLOAD_QUEUE_IN, FIXTURE_TO + 1, FIXTURE_QUEUE(queue)

/* The port has queues for what enters.  At the port an entry is about the queue alone; behind it, about all that
 * the flow says. */
static void
test_queue_in(void **state)
{
    struct flow_key k = udp();
    flow(0, "", "apply:queue=5,set_field=eth_dst:02:00:00:00:00:09,queue=6,output=3");
    fx->ports[0].shaped = true;
    assert_planned(k);
    assert_true(plan.queue_in);
    assert_false(plan.no_queue_in);
    assert_int_equal(plan.rule.n_ops, 1);
    assert_op(0, QUEUE_IN(5));
    assert_int_equal((uint32_t)plan.rule.key[0], FIXTURE_IFINDEX + 1);
    assert_false(offload_rule_edits(&plan.rule));
    assert_int_equal(plan_at(&k, OFFLOAD_BEHIND_QUEUES), OFFLOADED);
    assert_false(plan.queue_in);
    assert_int_equal(plan.rule.n_ops, 2);
    assert_op(1, OFFLOAD_OUTPUT, FIXTURE_IFINDEX + 3, FIXTURE_QUEUE(6));
    assert_int_equal((uint32_t)plan.rule.key[0], FIXTURE_FROM + 1);
    assert_int_equal(plan.rule.came_by, FIXTURE_IFINDEX + 1);
    fx->ports[0].most_queue = 4;
    assert_planned(k);
    assert_op(0, OFFLOAD_QUEUE_IN, FIXTURE_TO + 1, 0);
    assert_true(plan.no_queue_in);
    fx->ports[0].most_queue = 0;
    fx->ports[0].shaped = false;
    assert_int_equal(plan_at(&k, OFFLOAD_BEHIND_QUEUES), OFFLOAD_WHY_in_port);
}

/* A meter is for what comes out of the queues, and so is the limit of the output's MTU. */
static void
test_queue_in_alone(void **state)
{
    flow(0, "", "meter:1 apply:queue=0,queue=6,output=3");
    fx->ports[0].shaped = true;
    fx->ports[0].super = 9000;
    fx->ports[2].mtu = 1500;
    assert_planned(udp());
    assert_int_equal(plan.rule.n_ops, 1);
    assert_op(0, OFFLOAD_QUEUE_IN, FIXTURE_TO + 1, 0);
    assert_false(plan.rule.meter);
    assert_int_equal(plan.rule.super, 9000);
    assert_true(plan.rule.longest > 9000);
    fx->ports[2].mtu = 0;
    fx->ports[0].super = 0;
    fx->ports[0].shaped = false;
}

/* What goes nowhere takes no place in the queues. */
static void
test_queue_in_for_nothing(void **state)
{
    fx->ports[0].shaped = true;
    assert_planned(udp());
    assert_false(plan.queue_in);
    assert_int_equal(plan.n_drops, 1);
    flow(0, "", "apply:queue=5");
    assert_planned(udp());
    assert_false(plan.queue_in);
    assert_int_equal(plan.rule.n_ops, 0);
    fx->ports[0].shaped = false;
}

/* Without programs behind the queues, user space handles both. */
static void
test_queue_in_by_user_space(void **state)
{
    flow(0, "", "apply:output=3");
    fx->ports[0].shaped = fx->ports[0].not_kernel = true;
    assert_refused(udp(), shaped);
    fx->ports[0].shaped = fx->ports[0].not_kernel = false;
}

/* Without a controller, what the tables miss goes by OFPP_NORMAL. */
static void
test_standalone(void **state)
{
    learn(1, 0, 1);
    learn(2, 0, 3);
    fx->dp->standalone = STANDALONE_MISSES;
    assert_planned(udp());
    assert_output(0, 3);
    assert_int_equal(plan.stations.to, 3);
    assert_int_equal(plan.n_drops, 0);
    flow(0, "", "write:output=4 goto:1");
    assert_planned(udp());
    assert_output(0, 4);
    assert_int_equal(plan.n_outs, 1);
    assert_int_equal(plan.stations.in, 0);
    flow(0, "", "apply:output=4 goto:1");
    assert_planned(udp());
    assert_output(1, 3);
    flow(0, "", "goto:1");
    table_miss(1, "apply:output=controller");
    assert_refused(udp(), controller);
    fx->dp->standalone = STANDALONE_LEFT;
    assert_planned(udp());
    assert_output(0, 3);
    table_miss(1, "apply:output=controller,output=4");
    assert_planned(udp());
    assert_output(0, 4);
    assert_int_equal(plan.n_outs, 1);
    fx->dp->standalone = STANDALONE_NO;
    flow(0, "", "goto:2");
    assert_planned(udp());
    assert_int_equal(plan.drop[0].why, DROP_no_match);
}

/* Fields that the kernel's packets have 0 in tell nothing, and the rule matches. */
static void
test_mask(void **state)
{
    struct flow_key k = udp();
    flow(0, "metadata=0,tunnel_id=0", "apply:output=2");
    assert_planned(k);
}

/* Labels and tags pass whole, but for the outermost label; what is behind them is not for the kernel to edit, and an edit of
 * IP is not for them. */
static void
test_labels(void **state)
{
    static const char *const others[] = {"nw_dec", "ttl_in"};
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
    assert_planned(pbb);
    assert_op(0, OFFLOAD_POP_PBB, 0, 0);
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
    const struct CMUnitTest tests[] = {
        PLAN_TEST(tables),
        PLAN_TEST(all),
        PLAN_TEST(unseen_edits),
        PLAN_TEST(select),
        PLAN_TEST(hash_bits),
        PLAN_TEST(failover),
        PLAN_TEST(too_many_runs),
        PLAN_TEST(meter),
        PLAN_TEST(other_meters),
        PLAN_TEST(outputs_elsewhere),
        PLAN_TEST(normal),
        PLAN_TEST(normal_after_edits),
        PLAN_TEST(standalone),
        PLAN_TEST(vlans),
        PLAN_TEST(flooding_a_vlan),
        PLAN_TEST(reserved),
        PLAN_TEST(coming_in),
        PLAN_TEST(queue_in),
        PLAN_TEST(queue_in_alone),
        PLAN_TEST(queue_in_for_nothing),
        PLAN_TEST(queue_in_by_user_space),
        PLAN_TEST(mask),
        PLAN_TEST(labels),
        PLAN_TEST(long_path),
        PLAN_TEST(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
