/* SPDX-License-Identifier: Apache-2.0 */
#include "fill.h"
#include "filter.h"
#include "message.h"
#include "shaper.h"
#include "steer.h"
#include "struct-ops.h"

#include <qos-netlink/kernel.h>

#include <netlink/socket.h>

#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOPBACK 1 /* its ifindex in every network namespace */

struct kernel {
    struct qos_kernel base;
    struct netlink nl;
};

static struct netlink *
nl_of(struct qos_kernel *k)
{
    return &((struct kernel *)k)->nl;
}

/* ------------------------------------------------------------------- errors */

/* ENOENT also means that the parent is missing; the text differs ("Specified qdisc kind is
 * unknown" or "Specified qdisc not found").  Old kernels have none. */
static bool
is_no_scheduler(const struct netlink_refusal *why)
{
    return why->errnum == ENOENT &&
           (!why->text[0] || strncmp(why->text, "Specified qdisc", 15) == 0);
}

static int
code_of(const struct netlink_refusal *why, bool adding)
{
    static const struct {
        int errnum;
        int code;
    } codes[] = {
        {EPERM, OFPSFC_PERM},
        {EACCES, OFPSFC_PERM},
        {EOPNOTSUPP, OFPSFC_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (codes[i].errnum == why->errnum)
            return codes[i].code;
    }
    return adding && is_no_scheduler(why) ? OFPSFC_UNSUPPORTED : OFPSFC_KERNEL;
}

static int
refused(struct qos_error *e, const struct netlink_refusal *why, bool adding, const char *what)
{
    bool text = why->text[0];
    int err = qos_fail(e, QOS_ERR(code_of(why, adding)), "%s: %s%s%s%s%s", what,
                       strerror(why->errnum), text ? " (" : "", why->text, text ? ")" : "",
                       why->errnum == EPERM ? " (the switch needs CAP_NET_ADMIN)" : "");
    if (e)
        e->errnum = why->errnum;
    return err;
}

/* ---------------------------------------------------------------- operations */

/* Must a filter be set too? */
static bool
has_filter(const struct qos_op *op)
{
    enum default_place place = netlink_default_place(op->sched);
    if (place == DEFAULT_OVER && netlink_op_adds(op) &&
        op->values.v[QOS_DEFAULT] == QOS_CLASS_DEFAULT)
        return false;
    return !netlink_op_is_class(op) && place != DEFAULT_OPTION && op->handle == QOS_HANDLE_TREE &&
           op->kind != QOS_OP_QDISC_DEL && (place != DEFAULT_MARK || netlink_op_adds(op));
}

static int get(struct qos_kernel *k, int type, int ifindex, uint32_t handle, uint32_t parent,
               struct qos_object *out, struct netlink_refusal *why);

/* A default class that is among the qdisc's options needs no filter. */
static int
set_filter(struct qos_kernel *k, const struct qos_op *op, struct netlink_refusal *why)
{
    enum default_place place = netlink_default_place(op->sched);
    struct qos_object qdisc;
    int err = 0;
    if (place == DEFAULT_OVER)
        err = get(k, RTM_GETQDISC, op->ifindex, 0, op->parent, &qdisc, why);
    if (!err && place == DEFAULT_OVER && qdisc.values.v[QOS_DEFAULT] == op->values.v[QOS_DEFAULT])
        return netlink_filter_del(nl_of(k), op->ifindex, op->handle, why);
    return err ? err
               : netlink_filter_set(nl_of(k), op->ifindex, op->handle,
                                    op->handle | (uint32_t)op->values.v[QOS_DEFAULT],
                                    place == DEFAULT_MARK, why);
}

/* DRR is useless without its default class, so a new qdisc is deleted again if the filter fails.
 * Bands do without their mark if the kernel has no such filter. */
static int
apply_filter(struct qos_kernel *k, const struct qos_op *op, struct netlink_refusal *why)
{
    bool mark = netlink_default_place(op->sched) == DEFAULT_MARK;
    int err = set_filter(k, op, why);
    if (!err || mark)
        return 0;
    if (netlink_op_adds(op)) {
        struct qos_op del = *op;
        del.kind = QOS_OP_QDISC_DEL;
        netlink_call(nl_of(k), netlink_op_message(&del), NULL, NULL, NULL);
    }
    return err;
}

static int
op_refused(const struct qos_op *op, const struct netlink_refusal *why, bool filter,
           struct qos_error *e)
{
    char what[96], kind[QOS_NAME_ROOM];
    const char *name = qos_sched_kind(op->sched, &op->values, kind);
    bool hw = op->values.v[QOS_OFFLOAD] && !qos_op_deletes(op);
    snprintf(what, sizeof what, "%s %s %x:%x%s", netlink_op_name(op), name ? name : op->sched->name,
             (unsigned)(op->handle >> 16), (unsigned)(op->handle & 0xffff),
             filter ? " with its filter (cls_u32)" : "");
    int err = refused(e, why, netlink_op_adds(op), what);
    if (!hw || (why->errnum != EINVAL && why->errnum != EOPNOTSUPP))
        return err;
    size_t at = e ? strlen(e->text) : 0;
    if (e)
        snprintf(e->text + at, sizeof e->text - at,
                 "; the interface's hardware has no such scheduler: leave out offload=yes");
    return e ? (e->err = QOS_ERR(OFPSFC_UNSUPPORTED)) : QOS_ERR(OFPSFC_UNSUPPORTED);
}

/* first: the answer to the operation's first message, err: the first refusal.  A message whose
 * answer was lost may have been carried out. */
static uint8_t
state_after(int first, int err)
{
    bool obeyed = !first || first == -ETIMEDOUT || first == -ENOBUFS || first == -EBADMSG;
    return !err ? QOS_OP_DONE : obeyed ? QOS_OP_HALF : QOS_OP_REFUSED;
}

/* The qdisc, then its filter. */
static int
apply_filtered(struct qos_kernel *k, const struct qos_op *op, uint8_t *state, struct qos_error *e)
{
    struct netlink_refusal why = {0};
    int first = 0;
    enum default_place place = netlink_default_place(op->sched);
    if (op->kind != QOS_OP_QDISC_CHANGE || place == DEFAULT_MARK)
        first = netlink_call(nl_of(k), netlink_op_message(op), NULL, NULL, &why);
    int err = first ? first : apply_filter(k, op, &why);
    *state = state_after(first, err);
    return err ? op_refused(op, &why, !first, e) : 0;
}

/* Does the operation remove trees below transmit queues, and so the filters that led packets to
 * them? */
static bool
ends_steering(const struct qos_op *op)
{
    bool root = op->parent == QOS_PARENT_ROOT &&
                (op->kind == QOS_OP_QDISC_REPLACE || op->handle == QOS_HANDLE_TX_QUEUES);
    return !netlink_op_is_class(op) && root && op->kind != QOS_OP_QDISC_ADD &&
           op->kind != QOS_OP_QDISC_CHANGE;
}

static bool
steers(const struct qos_op *op)
{
    return !netlink_op_is_class(op) && (ends_steering(op) || qos_op_is_band_tree(op));
}

static int
steering_refused(const struct netlink_refusal *why, uint32_t band, struct qos_error *e)
{
    char what[160];
    bool lacks = why->errnum == ENOENT || why->errnum == EOPNOTSUPP;
    snprintf(what, sizeof what, "leading packets to transmit queue %u%s", (unsigned)band,
             lacks ? ", which needs Linux 5.19 with cls_basic, em_meta and act_skbedit (OpenWrt: "
                     "package kmod-sched)"
                   : "");
    int err = refused(e, why, false, what);
    return !lacks ? err : e ? (e->err = QOS_ERR(OFPSFC_UNSUPPORTED)) : QOS_ERR(OFPSFC_UNSUPPORTED);
}

/* The filter comes before the qdisc: if the kernel refuses it, nothing has happened yet. */
static int
apply_steering(struct qos_kernel *k, const struct qos_op *op, uint8_t *state, struct qos_error *e)
{
    struct netlink_refusal why = {0};
    uint32_t band = qos_op_is_band_tree(op) ? qos_minor(op->parent) : 0;
    bool del = qos_op_deletes(op), had = false;
    if (band && netlink_op_adds(op))
        netlink_steer_get(nl_of(k), op->ifindex, band, &had, NULL);
    int err = band && !del ? netlink_steer_add(nl_of(k), op->ifindex, band, &why) : 0;
    *state = QOS_OP_REFUSED;
    if (err)
        return steering_refused(&why, band, e);
    if (op->kind != QOS_OP_QDISC_CHANGE)
        err = netlink_call(nl_of(k), netlink_op_message(op), NULL, NULL, &why);
    if (band && (err ? netlink_op_adds(op) && !had : del))
        netlink_steer_del(nl_of(k), op->ifindex, band); /* LCOV_EXCL_LINE: a kernel with mq */
    *state = state_after(err, err);
    return err ? op_refused(op, &why, false, e) : 0;
}

static int
call_steps(struct qos_kernel *k, const struct qos_op *op, int *first, struct netlink_refusal *why)
{
    int err = *first = netlink_call(nl_of(k), netlink_op_message(op), NULL, NULL, why);
    for (unsigned i = 0; !err && i < netlink_op_steps(op); i++)
        err = netlink_call(nl_of(k), netlink_step_message(op, i), NULL, NULL, why);
    return err;
}

/* If a step is refused, those before it are undone.  If the first message of a new qdisc is
 * refused, what is there belongs to somebody else and stays. */
static int
apply_steps(struct qos_kernel *k, const struct qos_op *op, uint8_t *state, struct qos_error *e)
{
    struct netlink_refusal why = {0};
    struct qos_op back = *op;
    struct qos_object old = {0};
    bool adds = netlink_op_adds(op);
    int first, ignored;
    if (!adds)
        get(k, RTM_GETQDISC, op->ifindex, 0, op->parent, &old, NULL);
    int err = call_steps(k, op, &first, &why);
    *state = state_after(first, err);
    if (!err)
        return 0;
    if (adds && !first) {
        back.kind = QOS_OP_QDISC_DEL;
        netlink_call(nl_of(k), netlink_op_message(&back), NULL, NULL, NULL);
    } else if (!adds && old.sched == op->sched) {
        back.values = old.values;
        qos_put(&back.values, QOS_RED_BANDWIDTH, op->values.v[QOS_RED_BANDWIDTH]);
        call_steps(k, &back, &ignored, NULL);
    }
    return op_refused(op, &why, false, e);
}

/* How many operations may go to the kernel at once: it goes on after one that it refuses. */
static size_t
batch_of(const struct qos_op *ops, size_t n)
{
    size_t i = 0;
    while (i < n && !has_filter(&ops[i]) && !netlink_op_steps(&ops[i]) && !steers(&ops[i]) &&
           !(i && qos_op_waits(&ops[i - 1], &ops[i])))
        i++;
    return i;
}

static int
apply_batch(struct qos_kernel *k, const struct qos_op *ops, size_t n, uint8_t *state,
            struct qos_error *e)
{
    struct netlink_refusal why = {.errnum = ENOMEM};
    struct nl_msg **msgs = reallocarray(NULL, n, sizeof *msgs);
    size_t i = 0;
    while (msgs && i < n && (msgs[i] = netlink_op_message(&ops[i])))
        i++;
    if (msgs && i == n) {
        if (!netlink_call_many(nl_of(k), msgs, n, state, &why)) {
            free(msgs);
            return 0;
        }
        for (i = 0; i < n && state[i] == QOS_OP_DONE;)
            i++;
    } else {
        for (size_t m = i; msgs && m--;)
            nlmsg_free(msgs[m]); /* LCOV_EXCL_LINE: no memory */
    }
    free(msgs);
    return op_refused(&ops[i < n ? i : n - 1], &why, false, e);
}

static int
apply(struct qos_kernel *k, const struct qos_op *ops, size_t n, uint8_t *state, struct qos_error *e)
{
    int err = 0;
    for (size_t i = 0, some; i < n && !err; i += some) {
        some = batch_of(ops + i, n - i);
        if (some) {
            err = apply_batch(k, ops + i, some, state + i, e);
        } else {
            some = 1;
            err = (netlink_op_steps(&ops[i]) ? apply_steps
                   : has_filter(&ops[i])     ? apply_filtered
                                             : apply_steering)(k, &ops[i], &state[i], e);
            if (!err && ends_steering(&ops[i]))
                netlink_steer_del(nl_of(k), ops[i].ifindex, 0);
        }
    }
    return err;
}

/* ------------------------------------------------------------------- objects */

static void
read_lending(const struct nlattr *stats, struct qos_counters *n)
{
    struct tc_htb_xstats htb = {0};
    nla_memcpy(&htb, stats, sizeof htb);
    n->lends = htb.lends;
    n->borrows = htb.borrows;
}

static void
read_stats(struct nlattr *stats, struct qos_object *o)
{
    struct nlattr *tb[TCA_STATS_MAX + 1];
    struct qos_counters *n = &o->counters;
    struct gnet_stats_basic basic = {0};
    struct gnet_stats_queue queue = {0};
    if (nla_parse_nested(tb, TCA_STATS_MAX, stats, NULL))
        return;
    if (tb[TCA_STATS_BASIC])
        nla_memcpy(&basic, tb[TCA_STATS_BASIC], sizeof basic);
    if (tb[TCA_STATS_QUEUE])
        nla_memcpy(&queue, tb[TCA_STATS_QUEUE], sizeof queue);
    n->bytes = basic.bytes;
    n->packets = basic.packets;
    if (tb[TCA_STATS_PKT64] && nla_len(tb[TCA_STATS_PKT64]) >= 8)
        n->packets = nla_get_u64(tb[TCA_STATS_PKT64]);
    n->drops = queue.drops;
    n->overlimits = queue.overlimits;
    n->requeues = queue.requeues;
    n->backlog_bytes = queue.backlog;
    n->backlog_packets = queue.qlen;
    if (tb[TCA_STATS_APP] && o->sched)
        netlink_read_stats(tb[TCA_STATS_APP], o);
    if (tb[TCA_STATS_APP] && o->is_class && o->sched && o->sched->id == OFP_QOS_SCHED_HTB)
        read_lending(tb[TCA_STATS_APP], n);
    o->estimator = tb[TCA_STATS_RATE_EST] != NULL;
}

/* false: the message is not about a qdisc or class. */
static bool
read_object(struct nlmsghdr *h, struct qos_object *o, int *ifindex)
{
    struct nlattr *tb[TCA_MAX + 1];
    bool class = h->nlmsg_type == RTM_NEWTCLASS;
    if ((!class && h->nlmsg_type != RTM_NEWQDISC) ||
        nlmsg_parse(h, sizeof(struct tcmsg), tb, TCA_MAX, NULL))
        return false;
    const struct tcmsg *tc = nlmsg_data(h);
    memset(o, 0, sizeof *o);
    o->is_class = class;
    o->handle = tc->tcm_handle;
    o->parent = tc->tcm_parent;
    if (class)
        o->leaf = tc->tcm_info;
    *ifindex = tc->tcm_ifindex;
    if (tb[TCA_KIND])
        nla_strlcpy(o->kind, tb[TCA_KIND], sizeof o->kind);
    netlink_find_sched(o);
    if (tb[TCA_OPTIONS] && o->sched)
        netlink_read(tb[TCA_OPTIONS], o->sched, class ? OFP_QOS_CLASS : OFP_QOS_QDISC, &o->values);
    if (tb[TCA_STATS2])
        read_stats(tb[TCA_STATS2], o);
    if (netlink_is_stand_in(o))
        o->handle = 0; /* LCOV_EXCL_LINE: luck: in the middle of a change */
    return true;
}

struct each {
    int ifindex;
    qos_object_fn *fn;
    void *ctx;
};

static void
on_each(void *ctx, struct nl_msg *msg)
{
    struct each *each = ctx;
    struct qos_object o;
    int ifindex;
    if (read_object(nlmsg_hdr(msg), &o, &ifindex) && ifindex == each->ifindex)
        each->fn(each->ctx, &o);
}

static int
dump(struct qos_kernel *k, int type, int ifindex, uint32_t parent, qos_object_fn *fn, void *ctx,
     struct qos_error *e)
{
    struct each each = {ifindex, fn, ctx};
    struct netlink_refusal why;
    struct nl_msg *msg = netlink_object_message(type, NLM_F_DUMP, ifindex, 0, parent);
    int err = netlink_call(nl_of(k), msg, on_each, &each, &why);
    return err ? refused(e, &why, false, "reading the queues") : 0;
}

static int
each_qdisc(struct qos_kernel *k, int ifindex, qos_object_fn *fn, void *ctx, struct qos_error *e)
{
    return dump(k, RTM_GETQDISC, ifindex, 0, fn, ctx, e);
}

static int
each_class(struct qos_kernel *k, int ifindex, uint32_t qdisc, qos_object_fn *fn, void *ctx,
           struct qos_error *e)
{
    return dump(k, RTM_GETTCLASS, ifindex, qdisc, fn, ctx, e);
}

static void
take(void *ctx, const struct qos_object *o)
{
    struct qos_object *out = ctx;
    *out = *o;
}

/* Kernels before 6.6 answer a GET only if NLM_F_ECHO is set. */
static int
get(struct qos_kernel *k, int type, int ifindex, uint32_t handle, uint32_t parent,
    struct qos_object *out, struct netlink_refusal *why)
{
    struct each each = {ifindex, take, out};
    memset(out, 0, sizeof *out);
    return netlink_call(nl_of(k), netlink_object_message(type, NLM_F_ECHO, ifindex, handle, parent),
                        on_each, &each, why);
}

static int
get_class(struct qos_kernel *k, int ifindex, uint32_t handle, struct qos_object *out,
          struct qos_error *e)
{
    struct netlink_refusal why;
    int err = get(k, RTM_GETTCLASS, ifindex, handle, 0, out, &why);
    return err ? refused(e, &why, false, "reading a class") : 0;
}

static int
get_qdisc(struct qos_kernel *k, int ifindex, uint32_t parent, struct qos_object *out,
          struct qos_error *e)
{
    struct netlink_refusal why;
    int err = get(k, RTM_GETQDISC, ifindex, 0, parent, out, &why);
    return err ? refused(e, &why, false, "reading a qdisc") : 0;
}

/* The kernel answers EINVAL or ENOENT if the root is a built-in one (noqueue). */
static int
root(struct qos_kernel *k, int ifindex, uint32_t parent, struct qos_object *out,
     struct qos_error *e)
{
    struct netlink_refusal why;
    uint32_t class;
    int err = get(k, RTM_GETQDISC, ifindex, 0, parent, out, &why);
    if (!err && out->sched && out->sched->classful && qos_handle_in_tree(out->handle) &&
        out->parent == (QOS_HANDLE_TX_QUEUES | ((out->handle >> 16) - 1)))
        /* LCOV_EXCL_START: tests/netns/test_qos_trees.py in the test kernel, which has mq */
        err = netlink_steer_get(nl_of(k), ifindex, (out->handle >> 16) - 1, &out->steered, &why);
    /* LCOV_EXCL_STOP */
    if (!err && out->sched && out->handle == QOS_HANDLE_TREE &&
        netlink_default_place(out->sched) != DEFAULT_OPTION) {
        err = netlink_filter_get(nl_of(k), ifindex, out->handle, &class, &why);
        if (!err && class)
            qos_put(&out->values, QOS_DEFAULT, class & 0xffff);
        return err ? refused(e, &why, false, "reading the root qdisc's filters") : 0;
    }
    if (!err || err == -EINVAL || err == -ENOENT)
        return 0;
    return refused(e, &why, false, "reading the root qdisc");
}

/* Adds it to the loopback interface with an incomplete size table (TCA_STAB).  The kernel looks up
 * the scheduler first and refuses the table, with EINVAL, only if there is one.  EEXIST: the
 * loopback interface has a qdisc already, so nothing can be said. */
static int
has(struct qos_kernel *k, const struct qos_sched *sched, const struct qos_values *v)
{
    struct netlink_refusal why = {0};
    char buf[QOS_NAME_ROOM];
    const char *kind = qos_sched_kind(sched, v, buf);
    if (sched->id == OFP_QOS_SCHED_NONE)
        return 1;
    if (!kind)
        return netlink_struct_ops(NETLINK_BTF);
    struct nl_msg *msg = netlink_object_message(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, LOOPBACK,
                                                QOS_HANDLE_ROOT, TC_H_ROOT);
    struct nlattr *stab;
    if (!msg || nla_put_string(msg, TCA_KIND, kind) || !(stab = nla_nest_start(msg, TCA_STAB)) ||
        nla_put_u16(msg, TCA_STAB_DATA, 0)) {
        nlmsg_free(msg);
        return -ENOMEM;
    }
    nla_nest_end(msg, stab);
    int err = netlink_call(nl_of(k), msg, NULL, NULL, &why);
    if (err == 0) { /* a kernel without size tables has added it */
        msg = netlink_object_message(RTM_DELQDISC, 0, LOOPBACK, QOS_HANDLE_ROOT, TC_H_ROOT);
        netlink_call(nl_of(k), msg, NULL, NULL, NULL);
        return 1;
    }
    if (is_no_scheduler(&why))
        return 0;
    return err == -EINVAL || err == -EOPNOTSUPP ? 1
                                                : err; /* mq is not for the loopback interface */
}

static bool
same(struct qos_kernel *k, const struct qos_sched *sched, unsigned slot,
     const struct qos_values *given, const struct qos_values *has)
{
    return netlink_same_value(sched, slot, given, has);
}

/* ------------------------------------------------------------------- shapers */

static int
add_shaper(struct qos_kernel *k, int ifindex, bool queues_only, struct qos_shaper *out,
           struct qos_error *e)
{
    static const char *const what[2][2] = {
        {"creating the veth pair for direction=in",
         "creating the veth pair for direction=in, which needs the kernel module veth (OpenWrt: "
         "package kmod-veth)"},
        {"creating the IFB for direction=in of a port of queues only",
         "creating the IFB for direction=in of a port of queues only, which needs the kernel "
         "modules ifb, cls_u32 and act_mirred"}};
    struct netlink_refusal why = {0};
    if (!netlink_shaper_add(nl_of(k), ifindex, queues_only, out, &why))
        return 0;
    bool none = why.errnum == EOPNOTSUPP || why.errnum == ENOENT;
    refused(e, &why, false, what[queues_only][none]);
    return none ? (e->err = QOS_ERR(OFPSFC_UNSUPPORTED)) : e->err;
}

static int
find_shaper(struct qos_kernel *k, int ifindex, bool queues_only, struct qos_shaper *out)
{
    return netlink_shaper_find(nl_of(k), ifindex, queues_only, out);
}

static void
del_shaper(struct qos_kernel *k, const struct qos_shaper *s)
{
    netlink_shaper_del(nl_of(k), s);
}

/* -------------------------------------------------------------------- handle */

void
qos_netlink_free(struct qos_kernel *k)
{
    if (!k)
        return;
    netlink_close(nl_of(k));
    free(k);
}

int
qos_netlink_new(struct qos_kernel **k)
{
    static const struct qos_kernel_ops ops = {.apply = apply,
                                              .root = root,
                                              .each_qdisc = each_qdisc,
                                              .each_class = each_class,
                                              .get_class = get_class,
                                              .get_qdisc = get_qdisc,
                                              .has = has,
                                              .same = same,
                                              .shaper_add = add_shaper,
                                              .shaper_find = find_shaper,
                                              .shaper_del = del_shaper,
                                              .free = qos_netlink_free};
    struct kernel *new = calloc(1, sizeof *new);
    if (!new)
        return -ENOMEM;
    new->base.ops = &ops;
    int err = netlink_open(&new->nl);
    if (err) {
        free(new);
        return err;
    }
    *k = &new->base;
    return 0;
}

uint32_t
qos_netlink_portid(const struct qos_kernel *k)
{
    return nl_socket_get_local_port(((const struct kernel *)k)->nl.sk);
}
