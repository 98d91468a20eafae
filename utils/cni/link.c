/* SPDX-License-Identifier: Apache-2.0 */
#include "link.h"

#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <netlink/route/route.h>

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_addr.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct links {
    struct nl_sock *nl;
};

__attribute__((format(printf, 3, 4))) static int
refused(struct cni *c, int err, const char *fmt, ...)
{
    char what[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    return err == -NLE_NOMEM ? cni_no_memory(c)
                             : cni_fail(c, CNI_KERNEL_REFUSED, "%s: %s", what, nl_geterror(err));
}

static bool
is_gone(int err)
{
    return err == -NLE_OBJ_NOTFOUND || err == -NLE_NODEV;
}

/* ------------------------------------------------------------------------- namespaces */

static bool
is_ours(int fd)
{
    struct stat here, there;
    return !stat("/proc/self/ns/net", &here) && !fstat(fd, &there) && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

int
link_open_netns(struct cni *c, int *fd)
{
    *fd = open(c->netns, O_RDONLY | O_CLOEXEC);
    if (*fd < 0)
        return cni_fail(c, CNI_BAD_ENVIRONMENT, "CNI_NETNS: %.300s: %s", c->netns, strerror(errno));
    bool is_netns = ioctl(*fd, NS_GET_NSTYPE) == CLONE_NEWNET;
    if (is_netns && !is_ours(*fd))
        return 0;
    close(*fd);
    return cni_fail(c, CNI_BAD_ENVIRONMENT, "CNI_NETNS: %.300s is %s", c->netns,
                    is_netns ? "the namespace that this program runs in, not a container's"
                             : "no network namespace");
}

/* What is opened between netns_enter and netns_leave belongs to the namespace.  Nothing may go on in the wrong one. */
static int
netns_enter(struct cni *c, int netns, int *home)
{
    *home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (*home >= 0 && !setns(netns, CLONE_NEWNET))
        return 0;
    int err = errno;
    if (*home >= 0)
        close(*home);
    return cni_fail(c, CNI_KERNEL_REFUSED, "entering CNI_NETNS: %s", strerror(err));
}

static void
netns_leave(int home)
{
    if (setns(home, CLONE_NEWNET))
        abort();
    close(home);
}

int
link_open(struct cni *c, int netns, struct links **out)
{
    int home = -1;
    struct links *l = calloc(1, sizeof *l);
    if (!l || !(l->nl = nl_socket_alloc())) {
        free(l);
        return cni_no_memory(c);
    }
    if (netns >= 0 && netns_enter(c, netns, &home)) {
        link_close(l);
        return -1;
    }
    int err = nl_connect(l->nl, NETLINK_ROUTE);
    if (netns >= 0)
        netns_leave(home);
    if (err) {
        link_close(l);
        return refused(c, err, "opening rtnetlink");
    }
    *out = l;
    return 0;
}

void
link_close(struct links *l)
{
    if (!l)
        return;
    nl_socket_free(l->nl);
    free(l);
}

struct nl_sock *
link_socket(struct links *l)
{
    return l->nl;
}

/* ------------------------------------------------------------------------- sysctl */

/* `optional`: a kernel without IPv6 has none. */
static int
sysctl_set(struct cni *c, const char *path, const char *value, bool optional)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 && optional && errno == ENOENT)
        return 0;
    ssize_t n = fd < 0 ? -1 : write(fd, value, strlen(value));
    int err = errno;
    if (fd >= 0)
        close(fd);
    return n < 0
               ? cni_fail(c, CNI_KERNEL_REFUSED, "writing %s to %s: %s", value, path, strerror(err))
               : 0;
}

static int
sysctl_of(struct cni *c, int family, const char *name, const char *key, const char *value)
{
    char path[100];
    snprintf(path, sizeof path, "/proc/sys/net/ipv%d/conf/%.15s/%s", family == AF_INET6 ? 6 : 4,
             name, key);
    return sysctl_set(c, path, value, family == AF_INET6);
}

int
link_forward(struct cni *c, int family)
{
    return family == AF_INET6 ? sysctl_set(c, "/proc/sys/net/ipv6/conf/all/forwarding", "1", true)
                              : sysctl_set(c, "/proc/sys/net/ipv4/ip_forward", "1", false);
}

/* ------------------------------------------------------------------------- interfaces */

static struct link_there
there(struct rtnl_link *link)
{
    struct link_there it = {.ifindex = rtnl_link_get_ifindex(link), .mtu = rtnl_link_get_mtu(link)};
    const char *alias = rtnl_link_get_ifalias(link), *kind = rtnl_link_get_type(link);
    const char *name = rtnl_link_get_name(link);
    const struct nl_addr *mac = rtnl_link_get_addr(link);
    snprintf(it.name, sizeof it.name, "%s", name ? name : "");
    snprintf(it.alias, sizeof it.alias, "%s", alias ? alias : "");
    it.is_veth = kind && !strcmp(kind, "veth");
    it.peer = it.is_veth ? rtnl_link_get_link(link) : 0;
    if (mac && nl_addr_get_len(mac) == sizeof it.mac)
        memcpy(it.mac, nl_addr_get_binary_addr(mac), sizeof it.mac);
    return it;
}

/* name NULL: by its index. */
static int
find(struct cni *c, struct links *l, int ifindex, const char *name, struct link_there *out)
{
    struct rtnl_link *link;
    int err = rtnl_link_get_kernel(l->nl, ifindex, name, &link);
    if (is_gone(err))
        return 0;
    if (err)
        return refused(c, err, "looking for interface %s", name ? name : "of a number");
    *out = there(link);
    rtnl_link_put(link);
    return 1;
}

int
link_find(struct cni *c, struct links *l, const char *name, struct link_there *out)
{
    return find(c, l, 0, name, out);
}

int
link_find_index(struct cni *c, struct links *l, int ifindex, struct link_there *out)
{
    return find(c, l, ifindex, NULL, out);
}

int
link_each(struct cni *c, struct links *l, void (*fn)(void *ctx, const struct link_there *it),
          void *ctx)
{
    struct nl_cache *all;
    int err = rtnl_link_alloc_cache(l->nl, AF_UNSPEC, &all);
    if (err)
        return refused(c, err, "listing interfaces");
    for (struct nl_object *o = nl_cache_get_first(all); o; o = nl_cache_get_next(o)) {
        struct link_there it = there((struct rtnl_link *)o);
        fn(ctx, &it);
    }
    nl_cache_free(all);
    return 0;
}

static int
add_pair(struct links *l, const struct link_pair *pair, int netns)
{
    struct rtnl_link *host = rtnl_link_veth_alloc();
    if (!host)
        return -NLE_NOMEM;
    struct rtnl_link *inside = rtnl_link_veth_get_peer(host);
    rtnl_link_set_name(host, pair->host);
    rtnl_link_set_name(inside, pair->inside);
    rtnl_link_set_ns_fd(inside, netns);
    if (pair->mtu) {
        rtnl_link_set_mtu(host, pair->mtu);
        rtnl_link_set_mtu(inside, pair->mtu);
    }
    int err = rtnl_link_add(l->nl, host, NLM_F_CREATE | NLM_F_EXCL);
    rtnl_link_put(inside);
    rtnl_link_put(host);
    return err;
}

/* Flags, and the alias unless it is NULL, which RTM_NEWLINK does not take with a new interface. */
static int
change(struct links *l, const char *name, unsigned flags, const char *alias)
{
    struct rtnl_link *link = rtnl_link_alloc(), *as = rtnl_link_alloc();
    int err = -NLE_NOMEM;
    if (link && as) {
        rtnl_link_set_name(link, name);
        rtnl_link_set_name(as, name);
        rtnl_link_set_flags(as, flags);
        if (alias)
            rtnl_link_set_ifalias(as, alias);
        err = rtnl_link_change(l->nl, link, as, 0);
    }
    rtnl_link_put(link);
    rtnl_link_put(as);
    return err;
}

int
link_add_pair(struct cni *c, struct links *l, const struct link_pair *pair, int netns)
{
    int err = add_pair(l, pair, netns);
    if (err)
        return refused(
            c, err,
            "making the pair %s here and %s in the container (is there an interface of that name?)",
            pair->host, pair->inside);
    err = change(l, pair->host, IFF_NOARP, pair->alias);
    if (err)
        return refused(c, err, "setting alias and flags of %s", pair->host);
    return sysctl_of(c, AF_INET6, pair->host, "disable_ipv6", "1") ||
                   sysctl_of(c, AF_INET, pair->host, "rp_filter", "1")
               ? -1
               : 0;
}

int
link_del(struct cni *c, struct links *l, int ifindex)
{
    struct rtnl_link *link = rtnl_link_alloc();
    if (!link)
        return cni_no_memory(c);
    rtnl_link_set_ifindex(link, ifindex);
    int err = rtnl_link_delete(l->nl, link);
    rtnl_link_put(link);
    return err && !is_gone(err) ? refused(c, err, "removing interface %d", ifindex) : 0;
}

int
link_set_up(struct cni *c, struct links *l, const struct link_there *it)
{
    int err = change(l, it->name, IFF_UP, NULL);
    return err ? refused(c, err, "setting %s up", it->name) : 0;
}

/* ------------------------------------------------------------------------- addresses and routes */

static struct nl_addr *
to_nl(const struct address *a)
{
    struct nl_addr *addr = nl_addr_build(a->family, a->bytes, address_len(a));
    if (addr)
        nl_addr_set_prefixlen(addr, (int)a->prefix);
    return addr;
}

static const char *
print(const struct address *a, char text[INET6_ADDRSTRLEN])
{
    return inet_ntop(a->family, a->bytes, text, INET6_ADDRSTRLEN);
}

int
link_add_address(struct cni *c, struct links *l, const struct link_there *it,
                 const struct address *a, bool shared)
{
    char text[INET6_ADDRSTRLEN];
    struct rtnl_addr *addr = rtnl_addr_alloc();
    struct nl_addr *local = to_nl(a);
    int err = -NLE_NOMEM;
    if (addr && local && !(err = rtnl_addr_set_local(addr, local))) {
        rtnl_addr_set_ifindex(addr, it->ifindex);
        if (a->family == AF_INET6) /* the IPAM plugin sees to it that nobody else has it */
            rtnl_addr_set_flags(addr, IFA_F_NODAD);
        err = rtnl_addr_add(l->nl, addr, NLM_F_CREATE | NLM_F_EXCL);
    }
    nl_addr_put(local);
    rtnl_addr_put(addr);
    return err && !(shared && err == -NLE_EXIST)
               ? refused(c, err, "giving %s the address %s/%u", it->name, print(a, text), a->prefix)
               : 0;
}

int
link_has_address(struct cni *c, struct links *l, const struct link_there *it,
                 const struct address *a)
{
    struct nl_cache *all;
    struct nl_addr *wanted = to_nl(a);
    int err = wanted ? rtnl_addr_alloc_cache(l->nl, &all) : -NLE_NOMEM;
    bool found = false;
    if (err) {
        nl_addr_put(wanted);
        return refused(c, err, "listing addresses of %s", it->name);
    }
    for (struct nl_object *o = nl_cache_get_first(all); o && !found; o = nl_cache_get_next(o)) {
        struct rtnl_addr *is = (struct rtnl_addr *)o;
        found = rtnl_addr_get_ifindex(is) == it->ifindex &&
                !nl_addr_cmp(rtnl_addr_get_local(is), wanted);
    }
    nl_cache_free(all);
    nl_addr_put(wanted);
    return found;
}

static int
set_hop(struct rtnl_route *route, int ifindex, struct nl_addr *gateway)
{
    struct rtnl_nexthop *hop = rtnl_route_nh_alloc();
    if (!hop)
        return -NLE_NOMEM;
    rtnl_route_nh_set_ifindex(hop, ifindex);
    if (gateway)
        rtnl_route_nh_set_gateway(hop, gateway);
    rtnl_route_add_nexthop(route, hop);
    return 0;
}

static void
set_numbers(struct rtnl_route *route, const struct result_route *r)
{
    if (r->priority)
        rtnl_route_set_priority(route, r->priority);
    if (r->table)
        rtnl_route_set_table(route, r->table);
    if (r->scope >= 0)
        rtnl_route_set_scope(route, (uint8_t)r->scope);
    if (r->mtu)
        rtnl_route_set_metric(route, RTAX_MTU, r->mtu);
    if (r->advmss)
        rtnl_route_set_metric(route, RTAX_ADVMSS, r->advmss);
}

static int
add_route(struct cni *c, struct links *l, const struct link_there *it, const struct result *all,
          const struct result_route *r)
{
    char text[INET6_ADDRSTRLEN], via[INET6_ADDRSTRLEN];
    const struct address gateway = result_gateway(all, r);
    struct rtnl_route *route = rtnl_route_alloc();
    struct nl_addr *dst = to_nl(&r->dst), *hop = gateway.family ? to_nl(&gateway) : NULL;
    int err = -NLE_NOMEM;
    if (route && dst && !(err = rtnl_route_set_dst(route, dst)) &&
        !(err = set_hop(route, it->ifindex, hop))) {
        set_numbers(route, r);
        err = rtnl_route_add(l->nl, route, NLM_F_CREATE | NLM_F_EXCL);
    }
    nl_addr_put(hop);
    nl_addr_put(dst);
    rtnl_route_put(route);
    return err ? refused(c, err, "adding the route to %s/%u via %s", print(&r->dst, text),
                         r->dst.prefix, gateway.family ? print(&gateway, via) : it->name)
               : 0;
}

/* A runtime may have switched IPv6 off for all of the container. */
static int
allow_ipv6(struct cni *c, int netns, const char *name)
{
    int home;
    if (netns_enter(c, netns, &home))
        return -1;
    int err = sysctl_of(c, AF_INET6, name, "disable_ipv6", "0");
    netns_leave(home);
    return err;
}

int
link_configure(struct cni *c, struct links *l, int netns, const struct link_there *it,
               const struct result *r)
{
    bool v6 = false;
    for (unsigned i = 0; i < r->n_ips; i++)
        v6 |= r->ips[i].address.family == AF_INET6;
    if (v6 && allow_ipv6(c, netns, it->name))
        return -1;
    for (unsigned i = 0; i < r->n_ips; i++)
        if (link_add_address(c, l, it, &r->ips[i].address, false))
            return -1;
    if (link_set_up(c, l, it))
        return -1;
    for (unsigned i = 0; i < r->n_routes; i++)
        if (add_route(c, l, it, r, &r->routes[i]))
            return -1;
    return 0;
}

/* ------------------------------------------------------------------------- routes that are there */

static bool
hop_is(struct rtnl_route *is, int ifindex, const struct nl_addr *gateway)
{
    for (int i = 0; i < rtnl_route_get_nnexthops(is); i++) {
        struct rtnl_nexthop *hop = rtnl_route_nexthop_n(is, i);
        struct nl_addr *via = rtnl_route_nh_get_gateway(hop);
        if (rtnl_route_nh_get_ifindex(hop) == ifindex &&
            (gateway ? via && !nl_addr_cmp(via, gateway) : !via))
            return true;
    }
    return false;
}

static bool
goes_to(struct rtnl_route *is, const struct nl_addr *dst)
{
    const struct nl_addr *there_is = rtnl_route_get_dst(is);
    unsigned n = there_is ? nl_addr_get_prefixlen(there_is) : 0;
    return n == nl_addr_get_prefixlen(dst) && (!n || !nl_addr_cmp_prefix(there_is, dst));
}

int
link_has_route(struct cni *c, struct links *l, const struct link_there *it, const struct result *r,
               const struct result_route *route)
{
    const struct address gateway = result_gateway(r, route);
    struct nl_addr *dst = to_nl(&route->dst), *hop = gateway.family ? to_nl(&gateway) : NULL;
    struct nl_cache *all;
    int err = dst ? rtnl_route_alloc_cache(l->nl, route->dst.family, 0, &all) : -NLE_NOMEM;
    bool found = false;
    for (struct nl_object *o = err ? NULL : nl_cache_get_first(all); o && !found;
         o = nl_cache_get_next(o)) {
        struct rtnl_route *is = (struct rtnl_route *)o;
        found = goes_to(is, dst) && hop_is(is, it->ifindex, hop);
    }
    if (!err)
        nl_cache_free(all);
    nl_addr_put(dst);
    nl_addr_put(hop);
    return err ? refused(c, err, "listing routes of %s", it->name) : found;
}
