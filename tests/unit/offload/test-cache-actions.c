/* SPDX-License-Identifier: Apache-2.0 */
/* What an entry does with its packets, as OpenFlow's actions. */
#include <oflib/text.h>
#include <packet/headers.h>
#include <stats-cache.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct sw_port ports[2];

struct sw_port *
sw_ports_by_ifindex(const struct sw *sw, int ifindex)
{
    return ifindex == 7 || ifindex == 8 ? &ports[ifindex - 7] : NULL;
}

static void
check(uint8_t proto, const struct offload_op *op, uint32_t n, const char *wanted)
{
    char text[1024];
    struct sw_offload_view v = {.op = op, .n_ops = n, .key.ip_proto = proto};
    struct cache_actions a;
    struct of_wr w = of_wr_fixed((uint8_t *)text, sizeof text - 1);
    cache_actions(NULL, &v, &a);
    const struct of_list list = {.n = a.n, .v = a.list};
    of_print_list(&w, &of_list_actions, &list);
    text[w.len] = '\0';
    assert_string_equal(text, wanted);
}

#define CHECK(proto, wanted, ...)                                                                  \
    do {                                                                                           \
        const struct offload_op op[] = {__VA_ARGS__};                                              \
        check(proto, op, sizeof op / sizeof op[0], wanted);                                        \
    } while (0)

/* An output's value. */
#define QUEUE(q) ((uint64_t)(q) << 32 | 0x10000 | (q))

static uint64_t
memory(const char *bytes, size_t n)
{
    uint64_t v = 0;
    memcpy(&v, bytes, n);
    return v;
}

static uint32_t
memory32(const char *bytes, size_t n)
{
    uint32_t v = 0;
    memcpy(&v, bytes, n);
    return v;
}

static void
test_outputs(void **state)
{
    CHECK(17, "queue=10,output=1,output=2,queue=0,output=2", {OFFLOAD_METER, 3, 0},
          {OFFLOAD_OUTPUT, 7, QUEUE(10)}, {OFFLOAD_OUTPUT, 8, QUEUE(10)}, {OFFLOAD_OUTPUT, 8, 0});
    CHECK(17, "output=any", {OFFLOAD_OUTPUT, 9, 0}); /* an interface that is no port any more */
    check(17, NULL, 0, "");
}

static void
test_edits(void **state)
{
    CHECK(17, "set_field=eth_dst:02:00:00:00:00:09,set_field=eth_src:02:00:00:00:00:08",
          {OFFLOAD_SET_ETH_DST, 0, memory("\2\0\0\0\0\11", 6)},
          {OFFLOAD_SET_ETH_SRC, 0, memory("\2\0\0\0\0\10", 6)});
    CHECK(17, "pop_vlan,push_vlan=0x8100,set_field=vlan_vid:5,set_field=vlan_pcp:3",
          {OFFLOAD_POP_VLAN, 0, 0}, {OFFLOAD_PUSH_VLAN, 0x8100, 0}, {OFFLOAD_SET_VLAN, 0xfff, 5},
          {OFFLOAD_SET_VLAN, 0xe000, 3 << 13});
    CHECK(17, "set_field=ip_dscp:46,set_field=ip_ecn:1,nw_ttl=9,nw_dec",
          {OFFLOAD_SET_TOS, 0xfc, 46 << 2}, {OFFLOAD_SET_TOS, 3, 1}, {OFFLOAD_SET_TTL, 9, 0},
          {OFFLOAD_DEC_TTL, 0, 0});
    CHECK(6, "set_field=ipv4_src:10.0.0.1,set_field=ipv4_dst:10.0.0.2",
          {OFFLOAD_SET_IPV4_SRC, memory32("\12\0\0\1", 4), 0},
          {OFFLOAD_SET_IPV4_DST, memory32("\12\0\0\2", 4), 0});
    CHECK(6, "set_field=tcp_src:80,set_field=tcp_dst:443",
          {OFFLOAD_SET_TP_SRC, memory32("\0\120", 2), 0},
          {OFFLOAD_SET_TP_DST, memory32("\1\273", 2), 0});
    CHECK(17, "set_field=udp_dst:443", {OFFLOAD_SET_TP_DST, memory32("\1\273", 2), 0});
    CHECK(0, "set_field=mpls_tc:3,set_field=ipv6_flabel:0x12345,set_field=arp_spa:10.0.0.1",
          {OFFLOAD_SET_HEAD, OXM_mpls_tc, memory("\0\0\6\0\0\0\16\0", 8)},
          {OFFLOAD_SET_HEAD, OXM_ipv6_flabel, memory("\0\1\43\105\0\17\377\377", 8)},
          {OFFLOAD_SET_ARP, OXM_arp_spa | 4 << 8 | 14 << 16, memory("\12\0\0\1", 4)});
    CHECK(0, "push_mpls=0x8847,mpls_ttl=9,mpls_dec,pop_mpls=0x800",
          {OFFLOAD_PUSH_MPLS, TYPE_MPLS, TYPE_IPV4}, {OFFLOAD_SET_MPLS_TTL, 9, 0},
          {OFFLOAD_DEC_MPLS_TTL, 0, 0}, {OFFLOAD_POP_MPLS, TYPE_IPV4, 0});
    CHECK(0, "push_pbb=0x88e7,pop_pbb", {OFFLOAD_PUSH_PBB, TYPE_PBB, TYPE_IPV4},
          {OFFLOAD_POP_PBB, 0, 0});
}

static void
test_ipv6(void **state)
{
    CHECK(6, "set_field=ipv6_src:2001:db8::1,set_field=ipv6_dst:2001:db8::2",
          {OFFLOAD_SET_IPV6, 0, memory("\40\1\15\270\0\0\0\0", 8)},
          {OFFLOAD_SET_IPV6, 1, memory("\0\0\0\0\0\0\0\1", 8)},
          {OFFLOAD_SET_IPV6, 2, memory("\40\1\15\270\0\0\0\0", 8)},
          {OFFLOAD_SET_IPV6, 3, memory("\0\0\0\0\0\0\0\2", 8)});
    CHECK(6, "", {OFFLOAD_SET_IPV6, 1, 0}); /* half of an address alone is none */
}

/* An entry's ops become no more actions than there is room for. */
static void
test_most(void **state)
{
    struct offload_op op[OFFLOAD_OPS];
    struct cache_actions a;
    struct sw_offload_view v = {.op = op, .n_ops = OFFLOAD_OPS};
    for (uint32_t i = 0; i < OFFLOAD_OPS; i++)
        op[i] = (struct offload_op){OFFLOAD_OUTPUT, 7, QUEUE(1 + i)};
    cache_actions(NULL, &v, &a);
    assert_int_equal(a.n, CACHE_ACTIONS_MAX);
    assert_true(cache_sends_to(&v, 7));
    assert_false(cache_sends_to(&v, 8));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_outputs), cmocka_unit_test(test_edits),
                                       cmocka_unit_test(test_ipv6), cmocka_unit_test(test_most)};
    for (uint32_t i = 0; i < 2; i++)
        ports[i] = (struct sw_port){.no = i + 1};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
