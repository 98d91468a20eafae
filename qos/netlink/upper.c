/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <qos-netlink/upper.h>

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/neighbour.h>
#include <netlink/socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define ROOM       (1 << 20) /* receive buffer, bytes */
#define EVENTS_MAX 1024      /* handled in one call */

/* What an interface says about those below it. */
struct upper {
    int ifindex;
    int below;     /* it is on top of this one; 0: of none */
    unsigned what; /* QOS_UPPER_: which frames of that one it takes */
    bool enslaved; /* a bridge, a bond ... takes this one's frames */
};

struct qos_uppers {
    struct netlink events, ask;
    qos_upper_fn *fn;
    void *ctx;
    struct upper *v;
    size_t n, room;
};

/* ------------------------------------------------------------------ what a message says */

/* Interfaces whose IFLA_LINK is another end or a tunnel's way out: they take nothing there. */
static bool
takes_nothing(const char *kind)
{
    static const char *const kinds[] = {"veth",      "vxcan", "netkit",  "vxlan",  "gre",
                                        "gretap",    "sit",   "erspan",  "ip6gre", "ip6gretap",
                                        "ip6erspan", "ipip",  "ip6tnl",  "vti",    "vti6",
                                        "xfrm",      "gtp",   "bareudp", "geneve"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(kind, kinds[i]))
            return true;
    return false;
}

/* The text of an attribute in IFLA_LINKINFO. */
static void
kind_of(const struct nlattr *info, int type, char out[32])
{
    const struct nlattr *kind = info ? nla_find(nla_data(info), nla_len(info), type) : NULL;
    *out = '\0';
    if (kind)
        nla_strlcpy(out, kind, 32);
}

static struct upper
read_link(struct nlmsghdr *h)
{
    const struct ifinfomsg *m = nlmsg_data(h);
    const struct nlattr *link = nlmsg_find_attr(h, sizeof *m, IFLA_LINK),
                        *master = nlmsg_find_attr(h, sizeof *m, IFLA_MASTER),
                        *info = nlmsg_find_attr(h, sizeof *m, IFLA_LINKINFO);
    struct upper u = {.ifindex = m->ifi_index};
    char kind[32];
    kind_of(info, IFLA_INFO_KIND, kind);
    if (link && !nlmsg_find_attr(h, sizeof *m, IFLA_LINK_NETNSID) && !takes_nothing(kind) &&
        nla_len(link) >= 4 && (int)nla_get_u32(link) != u.ifindex) {
        u.below = (int)nla_get_u32(link);
        u.what = strcmp(kind, "vlan") ? QOS_UPPER_ANY : QOS_UPPER_VLAN;
    }
    kind_of(info, IFLA_INFO_SLAVE_KIND, kind); /* a VRF's are still the host's own frames */
    u.enslaved = master && nla_len(master) >= 4 && nla_get_u32(master) && strcmp(kind, "vrf");
    return u;
}

/* ------------------------------------------------------------------ what is known */

static struct upper *
find(struct qos_uppers *u, int ifindex)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->v[i].ifindex == ifindex)
            return &u->v[i];
    return NULL;
}

static int
add(struct qos_uppers *u, const struct upper *x)
{
    if (u->n == u->room) {
        size_t room = u->room ? u->room * 2 : 16;
        struct upper *v = realloc(u->v, room * sizeof *v);
        if (!v)
            return -ENOMEM;
        u->v = v;
        u->room = room;
    }
    u->v[u->n++] = *x;
    return 0;
}

/* Replaces what was known of the interface, and says whose uppers that changes. */
static int
note(struct qos_uppers *u, const struct upper *now)
{
    struct upper *at = find(u, now->ifindex), was = {.ifindex = now->ifindex};
    int err = 0;
    if (at) {
        was = *at;
        *at = u->v[--u->n];
    }
    if (now->below || now->enslaved)
        err = add(u, now);
    if (was.enslaved != now->enslaved)
        u->fn(u->ctx, now->ifindex);
    if (was.below && was.below != now->below)
        u->fn(u->ctx, was.below);
    if (now->below && (was.below != now->below || was.what != now->what))
        u->fn(u->ctx, now->below);
    return err;
}

unsigned
qos_uppers_of(const struct qos_uppers *u, int ifindex)
{
    unsigned what = 0;
    for (size_t i = 0; i < u->n; i++) {
        if (u->v[i].below == ifindex)
            what |= u->v[i].what;
        if (u->v[i].ifindex == ifindex && u->v[i].enslaved)
            what |= QOS_UPPER_ANY;
    }
    return what;
}

/* ------------------------------------------------------------------ events */

static void
on_link(void *ctx, struct nl_msg *msg)
{
    struct qos_uppers *u = ctx;
    struct nlmsghdr *h = nlmsg_hdr(msg);
    const struct ifinfomsg *m = nlmsg_data(h);
    struct upper now = {0};
    if (!nlmsg_valid_hdr(h, sizeof *m) || m->ifi_family == AF_BRIDGE)
        return;
    if (h->nlmsg_type == RTM_NEWLINK)
        now = read_link(h);
    else if (h->nlmsg_type == RTM_DELLINK)
        now.ifindex = m->ifi_index;
    if (now.ifindex)
        note(u, &now);
}

static int
on_event(struct nl_msg *msg, void *ctx)
{
    if (nlmsg_get_src(msg)->nl_pid == 0) /* the kernel */
        on_link(ctx, msg);
    return NL_OK;
}

int
qos_uppers_read_again(struct qos_uppers *u)
{
    const struct ifinfomsg any = {.ifi_family = AF_UNSPEC};
    struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETLINK, NLM_F_DUMP);
    if (msg && nlmsg_append(msg, (void *)(uintptr_t)&any, sizeof any, NLMSG_ALIGNTO)) {
        nlmsg_free(msg);
        msg = NULL;
    }
    u->n = 0;
    int err = netlink_call(&u->ask, msg, on_link, u, NULL);
    u->fn(u->ctx, 0);
    return err;
}

int
qos_uppers_read(struct qos_uppers *u)
{
    int err = 0;
    for (unsigned i = 0; !err && i < EVENTS_MAX; i++)
        err = nl_recvmsgs_default(u->events.sk);
    switch (-err) {
    case 0:
    case NLE_AGAIN: return 0;
    case NLE_NOMEM: /* events were lost */
    case NLE_MSG_TRUNC: return 1;
    default: return netlink_error(err); /* LCOV_EXCL_LINE: libnl answers no other here */
    }
}

static int
subscribe(struct qos_uppers *u)
{
    struct nl_sock *sk = u->events.sk;
    const int fd = nl_socket_get_fd(sk), room = ROOM;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room))
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    nl_socket_disable_seq_check(sk);
    int err = nl_socket_modify_cb(sk, NL_CB_VALID, NL_CB_CUSTOM, on_event, u);
    err = err ? err : nl_socket_set_nonblocking(sk);
    err = err ? err : nl_socket_add_memberships(sk, RTNLGRP_LINK, 0);
    return netlink_error(err);
}

int
qos_uppers_open(struct qos_uppers **out, qos_upper_fn *fn, void *ctx)
{
    struct qos_uppers *u = calloc(1, sizeof *u);
    if (!u)
        return -ENOMEM;
    u->fn = fn;
    u->ctx = ctx;
    int err = netlink_open(&u->events);
    err = err ? err : netlink_open(&u->ask);
    err = err ? err : subscribe(u);
    err = err ? err : qos_uppers_read_again(u);
    if (err) {
        qos_uppers_close(u);
        return err;
    }
    *out = u;
    return 0;
}

void
qos_uppers_close(struct qos_uppers *u)
{
    if (!u)
        return;
    netlink_close(&u->events);
    netlink_close(&u->ask);
    free(u->v);
    free(u);
}

int
qos_uppers_fd(const struct qos_uppers *u)
{
    return nl_socket_get_fd(u->events.sk);
}

/* ------------------------------------------------------------------ what no event tells */

struct hidden {
    qos_upper_fn *fn;
    void *ctx;
};

/* An address that the interface accepts beside its own.  Not one of a tunnel's entries, which name a
 * destination. */
static void
on_neighbour(void *ctx, struct nl_msg *msg)
{
    const struct hidden *x = ctx;
    struct nlmsghdr *h = nlmsg_hdr(msg);
    const struct ndmsg *m = nlmsg_data(h);
    static const uint8_t zero[ETH_ALEN];
    if (h->nlmsg_type != RTM_NEWNEIGH || !nlmsg_valid_hdr(h, sizeof *m) ||
        !(m->ndm_flags & NTF_SELF) || !(m->ndm_state & NUD_PERMANENT) ||
        nlmsg_find_attr(h, sizeof *m, NDA_DST))
        return;
    const struct nlattr *mac = nlmsg_find_attr(h, sizeof *m, NDA_LLADDR);
    if (mac && nla_len(mac) == ETH_ALEN && !(*(const uint8_t *)nla_data(mac) & 1) &&
        memcmp(nla_data(mac), zero, sizeof zero))
        x->fn(x->ctx, m->ndm_ifindex);
}

static int
each_accepted_address(struct qos_uppers *u, struct hidden *x)
{
    const struct ndmsg any = {.ndm_family = AF_BRIDGE};
    struct nl_msg *msg = nlmsg_alloc_simple(RTM_GETNEIGH, NLM_F_DUMP);
    if (msg && nlmsg_append(msg, (void *)(uintptr_t)&any, sizeof any, NLMSG_ALIGNTO)) {
        nlmsg_free(msg);
        msg = NULL;
    }
    return netlink_call(&u->ask, msg, on_neighbour, x, NULL);
}

/* Those of all protocols hear frames before everybody else. */
static bool
is_of_interest(unsigned protocol)
{
    switch (protocol) {
    case ETH_P_IP:
    case ETH_P_IPV6:
    case ETH_P_MPLS_UC:
    case ETH_P_MPLS_MC:
    case ETH_P_8021Q:
    case ETH_P_8021AD:
    case 0x88e7: /* PBB */ return true;
    default: return false;
    }
}

static int
each_packet_socket(const struct hidden *x)
{
    char line[256];
    unsigned protocol;
    int ifindex;
    FILE *f = fopen("/proc/net/packet", "re");
    if (!f)
        return -errno;                  /* LCOV_EXCL_LINE: a kernel without packet sockets */
    while (fgets(line, sizeof line, f)) /* address, references, type, protocol, interface */
        if (sscanf(line, "%*s %*u %*u %x %d", &protocol, &ifindex) == 2 && is_of_interest(protocol))
            x->fn(x->ctx, ifindex);
    fclose(f);
    return 0;
}

int
qos_uppers_hidden(struct qos_uppers *u, qos_upper_fn *fn, void *ctx)
{
    struct hidden x = {fn, ctx};
    int err = each_packet_socket(&x);
    int failed = each_accepted_address(u, &x);
    return failed ? failed : err;
}
