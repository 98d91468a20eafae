/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces, addresses and routes of one network namespace, by rtnetlink: beside filter.c the only file here that sees
 * libnl. */
#ifndef CNI_LINK_H
#define CNI_LINK_H

#include "result.h"

struct links;

struct link_there {
    int ifindex;
    char name[IFNAMSIZ], alias[CNI_ALIAS_MAX + 1]; /* alias "": none */
    uint8_t mac[6];
    unsigned mtu;
    bool is_veth;
    int peer; /* of a veth: the other end's index, where that is; else 0 */
};

/* CNI_NETNS, which must not be the namespace of this process. */
int link_open_netns(struct cni *c, int *fd);

/* Of the namespace `netns`, -1: of this process's. */
int link_open(struct cni *c, int netns, struct links **out);
void link_close(struct links *l);
struct nl_sock *link_socket(struct links *l); /* for filter.c */

/* 1: there is such an interface; 0: none; -1. */
int link_find(struct cni *c, struct links *l, const char *name, struct link_there *out);

int link_find_index(struct cni *c, struct links *l, int ifindex, struct link_there *out);

/* Calls fn for each interface. */
int link_each(struct cni *c, struct links *l, void (*fn)(void *ctx, const struct link_there *it),
              void *ctx);

/* A veth pair whose host end keeps off the host's own stack, which would else answer beside the switch: no ARP,
 * no IPv6, no IPv4 from sources behind it.  The other end is in `netns` from the beginning.  mtu 0: the kernel's. */
struct link_pair {
    const char *host, *alias, *inside;
    unsigned mtu;
};
int link_add_pair(struct cni *c, struct links *l, const struct link_pair *pair, int netns);

/* Also where it is gone already. */
int link_del(struct cni *c, struct links *l, int ifindex);

int link_set_up(struct cni *c, struct links *l, const struct link_there *it);

/* Addresses and routes for the container's end, whose namespace `netns` is. */
int link_configure(struct cni *c, struct links *l, int netns, const struct link_there *it,
                   const struct result *r);

/* `shared`: it may be there already. */
int link_add_address(struct cni *c, struct links *l, const struct link_there *it,
                     const struct address *a, bool shared);

/* 1: it is there; 0: not; -1. */
int link_has_address(struct cni *c, struct links *l, const struct link_there *it,
                     const struct address *a);
int link_has_route(struct cni *c, struct links *l, const struct link_there *it,
                   const struct result *r, const struct result_route *route);

/* Lets this machine forward packets of that family. */
int link_forward(struct cni *c, int family);

#endif
