/* SPDX-License-Identifier: Apache-2.0 */
#include "filter.h"

#include <netlink/attr.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/rtnetlink.h>
#include <string.h>

#define TREE 0x00010000u /* of an HTB of the switch; a class's minor number is its queue's */
#define KIND "bpf"

static struct tcmsg
head_of(int ifindex, const struct filter *f)
{
    return (struct tcmsg){.tcm_ifindex = ifindex,
                          .tcm_parent = TREE,
                          .tcm_info = TC_H_MAKE(f->preference << 16, htons(ETH_P_ALL))};
}

/* 1: it is there. */
static int
find(struct cni *c, struct links *l, const char *name, struct link_there *it)
{
    int found = link_find(c, l, name, it);
    return found ? found
                 : cni_fail(c, CNI_DIFFERS, "interface %s, which has the port's queues, is gone",
                            name);
}

static int
refused(struct cni *c, int err, const char *what, const char *name, const struct filter *f)
{
    return err == -NLE_NOMEM
               ? cni_no_memory(c)
               : cni_fail(c, CNI_KERNEL_REFUSED, "%s the filter of group %s at %s: %s", what,
                          f->name, name, nl_geterror(err));
}

static struct nl_msg *
message(int type, int flags, const struct tcmsg *head)
{
    struct nl_msg *msg = nlmsg_alloc_simple(type, flags);
    if (!msg || !nlmsg_append(msg, (void *)(uintptr_t)head, sizeof *head, NLMSG_ALIGNTO))
        return msg;
    nlmsg_free(msg);
    return NULL;
}

int
filter_add(struct cni *c, struct links *l, const char *name, const struct filter *f)
{
    struct link_there it;
    struct nlattr *options = NULL;
    if (find(c, l, name, &it) < 0)
        return -1;
    const struct tcmsg head = head_of(it.ifindex, f);
    struct nl_msg *msg = message(RTM_NEWTFILTER, NLM_F_CREATE | NLM_F_EXCL, &head);
    if (!msg || nla_put_string(msg, TCA_KIND, KIND) ||
        !(options = nla_nest_start(msg, TCA_OPTIONS)) ||
        nla_put_u32(msg, TCA_BPF_CLASSID, TREE | f->queue) ||
        nla_put_u16(msg, TCA_BPF_OPS_LEN, (uint16_t)f->n) ||
        nla_put(msg, TCA_BPF_OPS, (int)(f->n * sizeof(struct sock_filter)), f->program)) {
        nlmsg_free(msg);
        return refused(c, -NLE_NOMEM, "adding", name, f);
    }
    nla_nest_end(msg, options);
    int err = nl_send_sync(link_socket(l), msg);
    return err < 0 ? refused(c, err, "adding", name, f) : 0;
}

struct looked {
    const struct filter *f;
    bool same;
};

static int
on_filter(struct nl_msg *msg, void *ctx)
{
    struct looked *k = ctx;
    const struct tcmsg *tc = nlmsg_data(nlmsg_hdr(msg));
    struct nlattr *attrs[TCA_MAX + 1], *bpf[TCA_BPF_MAX + 1];
    size_t bytes = k->f->n * sizeof(struct sock_filter);
    if (nlmsg_parse(nlmsg_hdr(msg), sizeof *tc, attrs, TCA_MAX, NULL) ||
        tc->tcm_info >> 16 != k->f->preference || !attrs[TCA_KIND] ||
        nla_strcmp(attrs[TCA_KIND], KIND) || !attrs[TCA_OPTIONS] ||
        nla_parse_nested(bpf, TCA_BPF_MAX, attrs[TCA_OPTIONS], NULL) || !bpf[TCA_BPF_CLASSID] ||
        nla_len(bpf[TCA_BPF_CLASSID]) < 4 || !bpf[TCA_BPF_OPS])
        return NL_OK;
    k->same |= nla_get_u32(bpf[TCA_BPF_CLASSID]) == (TREE | k->f->queue) &&
               nla_len(bpf[TCA_BPF_OPS]) == (int)bytes &&
               !memcmp(nla_data(bpf[TCA_BPF_OPS]), k->f->program, bytes);
    return NL_OK;
}

int
filter_is_there(struct cni *c, struct links *l, const char *name, const struct filter *f)
{
    struct link_there it;
    struct looked k = {.f = f};
    if (find(c, l, name, &it) < 0)
        return -1;
    const struct tcmsg head = head_of(it.ifindex, f);
    struct nl_msg *msg = message(RTM_GETTFILTER, NLM_F_DUMP, &head);
    struct nl_cb *usual = nl_socket_get_cb(link_socket(l)), *cb = msg ? nl_cb_clone(usual) : NULL;
    int err = cb ? nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, on_filter, &k) : -NLE_NOMEM;
    err = err ? err : nl_send_auto(link_socket(l), msg);
    err = err < 0 ? err : nl_recvmsgs(link_socket(l), cb);
    nlmsg_free(msg);
    nl_cb_put(cb);
    nl_cb_put(usual);
    return err < 0 ? refused(c, err, "looking for", name, f) : k.same;
}
