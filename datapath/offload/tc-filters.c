/* SPDX-License-Identifier: Apache-2.0 */
#include "tc-filters.h"

#include <errno.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define PATIENCE_S                                                                                 \
    5 /* for an answer, as other requests have: the control thread serves nobody meanwhile */

/* ------------------------------------------------------------------ one message */

/* The attribute's text, cut to what fits. */
static void
take_text(char *to, size_t size, const struct rtattr *a)
{
    snprintf(to, size, "%.*s", (int)RTA_PAYLOAD(a), (const char *)RTA_DATA(a));
}

static void
take_name(struct tc_filter *f, const struct rtattr *options)
{
    int len = (int)RTA_PAYLOAD(options);
    for (const struct rtattr *a = RTA_DATA(options); RTA_OK(a, len); a = RTA_NEXT(a, len))
        if (a->rta_type == TCA_BPF_NAME)
            take_text(f->name, sizeof f->name, a);
}

/* False: not one filter, but the head of those of one preference. */
static bool
take_filter(struct tc_filter *f, const struct nlmsghdr *h)
{
    const struct tcmsg *tc = NLMSG_DATA(h);
    const struct rtattr *options = NULL;
    int len = (int)h->nlmsg_len - (int)NLMSG_LENGTH(sizeof *tc);
    if (len < 0)
        return false;
    *f = (struct tc_filter){.pref = TC_H_MAJ(tc->tcm_info) >> 16, .handle = tc->tcm_handle};
    const struct rtattr *a = (const void *)((const char *)tc + NLMSG_ALIGN(sizeof *tc));
    for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
        if (a->rta_type == TCA_KIND)
            take_text(f->kind, sizeof f->kind, a);
        else if ((a->rta_type & NLA_TYPE_MASK) == TCA_OPTIONS)
            options = a;
    }
    if (options && !strcmp(f->kind, "bpf"))
        take_name(f, options);
    return options != NULL;
}

/* ------------------------------------------------------------------ the dump */

struct dump {
    tc_filter_fn *each;
    void *ctx;
};

/* Returns 1 if there is more to read, 0 at the end, or -errno. */
static int
look(const char *reply, ssize_t len, const struct dump *d)
{
    for (const struct nlmsghdr *h = (const void *)reply; NLMSG_OK(h, (size_t)len);
         h = NLMSG_NEXT(h, len)) {
        struct tc_filter f;
        if (h->nlmsg_type == RTM_NEWTFILTER && take_filter(&f, h))
            d->each(d->ctx, &f);
        if (h->nlmsg_type == NLMSG_DONE)
            return 0;
        if (h->nlmsg_type == NLMSG_ERROR)
            return -EIO;
    }
    return 1;
}

static int
dump(int fd, int ifindex, uint32_t parent, const struct dump *d)
{
    struct {
        struct nlmsghdr head;
        struct tcmsg tc;
    } ask = {.head = {.nlmsg_len = sizeof ask,
                      .nlmsg_type = RTM_GETTFILTER,
                      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
             .tc = {.tcm_ifindex = ifindex, .tcm_parent = parent}};
    if (send(fd, &ask, sizeof ask, 0) < 0)
        return -errno;
    for (;;) { /* to the end: the next dump has the same socket */
        _Alignas(struct nlmsghdr) char reply[32768];
        ssize_t len = recv(fd, reply, sizeof reply, 0);
        int more = len > 0 ? look(reply, len, d) : -EIO;
        if (more <= 0)
            return more;
    }
}

/* Of clsact's ingress, and then of its egress. */
static int
dump_of(int ifindex, bool egress, const struct dump *d)
{
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    int err = dump(fd, ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS), d);
    if (!err && egress)
        err = dump(fd, ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS), d);
    close(fd);
    return err;
}

void
tc_filters_each(int ifindex, tc_filter_fn *each, void *ctx)
{
    dump_of(ifindex, false, &(struct dump){each, ctx});
}

static void
note(void *ctx, const struct tc_filter *f)
{
    *(bool *)ctx = true;
}

bool
tc_filters_there(int ifindex)
{
    bool found = false;
    return dump_of(ifindex, true, &(struct dump){note, &found}) || found;
}
