/* SPDX-License-Identifier: Apache-2.0 */
#include "real-kernel.h"

#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

struct qos_kernel *kernel;
struct qos_link *links;
struct qos_link_info link1;

int
make_link(const char *name, const char *kind)
{
    struct nl_sock *sk = nl_socket_alloc();
    struct ifinfomsg info = {.ifi_family = AF_UNSPEC};
    struct nl_msg *msg = nlmsg_alloc_simple(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    nl_connect(sk, NETLINK_ROUTE);
    nlmsg_append(msg, &info, sizeof info, NLMSG_ALIGNTO);
    nla_put_string(msg, IFLA_IFNAME, name);
    nla_put_u32(msg, IFLA_TXQLEN, 500);
    struct nlattr *nest = nla_nest_start(msg, IFLA_LINKINFO);
    nla_put_string(msg, IFLA_INFO_KIND, kind);
    nla_nest_end(msg, nest);
    int e = nl_send_sync(sk, msg);
    nl_socket_free(sk);
    return e;
}

int
setup(void **state)
{
    struct qos_port port;
    assert_int_equal(qos_netlink_new(&kernel), 0);
    assert_int_equal(qos_new(&qos, kernel, NULL), 0);
    assert_int_equal(qos_link_get_by_name(links, "d1", &link1), 0);
    port = (struct qos_port){1, link1.ifindex, "d1", link1.mtu, link1.txqueuelen, 1000000000,
                             1, false};
    assert_int_equal(qos_port_add(qos, &port), 0);
    return 0;
}

int
teardown(void **state)
{
    assert_int_equal(qos_clear_all(qos, &err), 0);
    qos_free(qos);
    qos_netlink_free(kernel);
    return 0;
}

int
real_kernel_begin(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNET)) {
        printf("skipped: a network namespace of our own needs root\n");
        return 77;
    }
    if (make_link("d1", "dummy") < 0 && make_link("d1", "veth") < 0 && make_link("d1", "ifb") < 0) {
        printf("skipped: this kernel makes neither dummy nor veth nor ifb interfaces\n");
        return 77;
    }
    return qos_link_open(&links) ? 1 : 0;
}
