/* SPDX-License-Identifier: Apache-2.0 */
/* What is on top of interfaces, in a network namespace of its own. */
#include "test.h"

#include <qos-netlink/upper.h>

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct qos_uppers *uppers;
static int one, changes; /* the interface, and how often fn was called for it */

static bool
can(const char *command)
{
    return !system(command);
}

static void
run(const char *command)
{
    if (!can(command))
        fail_msg("failed: %s", command);
}

static void
changed(void *ctx, int ifindex)
{
    changes += ifindex == one;
}

static void
expect(unsigned what)
{
    changes = 0;
    assert_int_equal(qos_uppers_read(uppers), 0);
    assert_true(changes > 0);
    assert_int_equal(qos_uppers_of(uppers, one), what);
}

/* A peer is no upper, though its IFLA_LINK is the interface. */
static void
peers(void **state)
{
    assert_int_equal(qos_uppers_of(uppers, one), 0);
    changes = 0;
    run("ip link set one mtu 1400");
    assert_int_equal(qos_uppers_read(uppers), 0);
    assert_int_equal(changes, 0);
    assert_int_equal(qos_uppers_of(uppers, one), 0);
}

static void
bridge(void **state)
{
    if (!can("ip link add br0 type bridge 2>/dev/null"))
        skip();
    run("ip link set one master br0");
    expect(QOS_UPPER_ANY);
    assert_int_equal(qos_uppers_of(uppers, (int)if_nametoindex("two")), 0);
    run("ip link set one nomaster");
    expect(0);
    run("ip link set one master br0");
    expect(QOS_UPPER_ANY);
    run("ip link del br0");
    expect(0);
}

static void
vlan(void **state)
{
    if (!can("ip link add link one name v7 type vlan id 7 2>/dev/null"))
        skip();
    expect(QOS_UPPER_VLAN);
    run("ip link add link one name v8 type vlan id 8");
    assert_int_equal(qos_uppers_read(uppers), 0);
    run("ip link del v7");
    expect(QOS_UPPER_VLAN);
    run("ip link del v8");
    expect(0);
}

static void
macvlan(void **state)
{
    if (!can("ip link add link one name mac0 type macvlan 2>/dev/null"))
        skip();
    expect(QOS_UPPER_ANY);
    run("ip link del mac0");
    expect(0);
}

/* A tunnel by the interface takes what is for the host's address. */
static void
tunnel(void **state)
{
    if (!can("ip link add vx type vxlan id 1 dev one dstport 4789 2>/dev/null"))
        skip();
    changes = 0;
    assert_int_equal(qos_uppers_read(uppers), 0);
    assert_int_equal(qos_uppers_of(uppers, one), 0);
    run("ip link del vx");
}

/* ------------------------------------------------------------------ what no event tells */

static int hidden_here, hidden_elsewhere;

static void
note(void *ctx, int ifindex)
{
    hidden_here += ifindex == one;
    hidden_elsewhere += ifindex != one;
}

static int
look(void)
{
    hidden_here = hidden_elsewhere = 0;
    assert_int_equal(qos_uppers_hidden(uppers, note, NULL), 0);
    return hidden_here;
}

static void
packet_sockets(void **state)
{
    int s = socket(AF_PACKET, SOCK_RAW, 0);
    struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_ifindex = one};
    if (s < 0)
        skip();
    assert_int_equal(look(), 0);
    a.sll_protocol = htons(ETH_P_ARP); /* nothing that the kernel's programs handle */
    assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(look(), 0);
    a.sll_protocol = htons(ETH_P_ALL); /* hears everything first */
    assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(look(), 0);
    a.sll_protocol = htons(ETH_P_IPV6);
    assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(look(), 1);
    assert_int_equal(hidden_elsewhere, 0);
    a.sll_ifindex = 0;
    assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof a), 0);
    look();
    assert_int_equal(hidden_elsewhere, 1); /* of all interfaces */
    close(s);
    assert_int_equal(look() + hidden_elsewhere, 0);
}

/* An address beside the interface's own, as a macvlan in another namespace has it. */
static void
accepted_addresses(void **state)
{
    assert_int_equal(look(), 0);
    if (!can("ip link add link one name mac0 type macvlan 2>/dev/null"))
        skip();
    run("ip link set mac0 up");
    assert_int_equal(look(), 1);
    run("ip link del mac0");
    assert_int_equal(look(), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers),
        cmocka_unit_test(bridge),
        cmocka_unit_test(vlan),
        cmocka_unit_test(macvlan),
        cmocka_unit_test(tunnel),
        cmocka_unit_test(packet_sockets),
        cmocka_unit_test(accepted_addresses),
    };
    if (geteuid() != 0 || unshare(CLONE_NEWNET)) {
        printf("skipped: a network namespace of our own needs root\n");
        return 77;
    }
    if (system("ip link add one type veth peer name two 2>/dev/null && ip link set one up && "
               "ip link set two up")) {
        printf("skipped: no veth interfaces here\n");
        return 77;
    }
    one = (int)if_nametoindex("one");
    if (qos_uppers_open(&uppers, changed, NULL))
        return 1;
    int e = cmocka_run_group_tests(tests, NULL, NULL);
    qos_uppers_close(uppers);
    return e;
}
