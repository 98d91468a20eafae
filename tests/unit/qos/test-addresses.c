/* SPDX-License-Identifier: Apache-2.0 */
/* On which interfaces the host has addresses, in a network namespace of its own. */
#include "test.h"

#include <qos-netlink/link.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct qos_link *links;

static void
run(const char *command)
{
    if (system(command))
        fail_msg("failed: %s", command);
}

static void
count(void *ctx, int ifindex)
{
    unsigned *n = ctx;
    if (ifindex == (int)if_nametoindex("one"))
        n[0]++;
    else if (ifindex == (int)if_nametoindex("two"))
        n[1]++;
    else
        n[2]++;
}

static void
expect(unsigned a, unsigned b)
{
    unsigned n[3] = {0};
    assert_int_equal(qos_link_addresses(links, count, n), 0);
    assert_int_equal(n[0], a);
    assert_int_equal(n[1], b);
    assert_int_equal(n[2], 0); /* lo is down */
}

static void
addresses(void **state)
{
    expect(0, 0); /* but link-local ones */
    run("ip addr add 192.0.2.1/24 dev one");
    expect(1, 0);
    run("ip addr add 192.0.2.2/24 dev one && ip addr add 169.254.1.1/16 dev two");
    expect(2, 1);
    run("ip addr flush dev one && ip addr del 169.254.1.1/16 dev two");
    expect(0, 0);
}

static void
ipv6_addresses(void **state)
{
    if (access("/proc/sys/net/ipv6", F_OK))
        skip();
    run("ip -6 addr add fe80::1/64 dev one nodad");
    expect(0, 0);
    run("ip -6 addr add 2001:db8::1/64 dev two nodad && ip -6 addr add fd00::1/64 dev one nodad");
    expect(1, 1);
    run("ip addr flush dev one && ip -6 addr del 2001:db8::1/64 dev two");
    expect(0, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),
        cmocka_unit_test(ipv6_addresses),
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
    if (qos_link_open(&links))
        return 1;
    int e = cmocka_run_group_tests(tests, NULL, NULL);
    qos_link_close(links);
    return e;
}
