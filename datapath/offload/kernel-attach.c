/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the programs on interfaces: the filter on the port's sockets, the other one at tc's ingress. */
#include "kernel-inside.h"

#include <shared/atomics.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST (1u << 3) /* BPF_F_BEFORE, and before nobody in particular */

/* Ours among the filters of clsact.  The handle tells whoever takes over from a killed switch whether
 * clsact is ours as well, to be removed at the end. */
#define TC_HANDLE   0xf105
#define TC_MADE     0xf106
#define TC_PRIORITY 0x1000 /* unless others come before that */
#define TC_LAST     0xc000 /* if the place in front of them is taken, or there is none */

/* ------------------------------------------------------------------ tc */

bool
offload_is_filter(const struct tc_filter *f)
{
    return !strcmp(f->kind, "bpf") && (f->handle == TC_HANDLE || f->handle == TC_MADE);
}

/* Ours, and the first one of others; preferences, 0: there is none. */
struct found {
    uint32_t ours, handle, others;
};

static void
note_filter(void *ctx, const struct tc_filter *f)
{
    struct found *found = ctx;
    if (offload_is_filter(f))
        *found = (struct found){f->pref, f->handle, found->others};
    else if (!found->others || f->pref < found->others)
        found->others = f->pref;
}

static struct found
find_filters(int ifindex)
{
    struct found found = {0};
    tc_filters_each(ifindex, note_filter, &found);
    return found;
}

/* Ours or a predecessor's.  True: one of us had made clsact. */
static bool
remove_filters(int ifindex)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
    bool made = false;
    for (struct found f; (f = find_filters(ifindex)).ours;) {
        LIBBPF_OPTS(bpf_tc_opts, opts, .handle = f.handle, .priority = f.ours);
        made |= f.handle == TC_MADE;
        if (bpf_tc_detach(&hook, &opts))
            break;
    }
    return made;
}

/* Also clsact if one of us made it and nobody else uses it. */
static void
remove_clsact(int ifindex, bool made)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
                .attach_point = (enum bpf_tc_attach_point)(BPF_TC_INGRESS | BPF_TC_EGRESS));
    made |= remove_filters(ifindex);
    if (made && !tc_filters_there(ifindex))
        bpf_tc_hook_destroy(&hook);
}

/* Where a predecessor's is, the kernel exchanges the program at once. */
static int
attach_filter_at(struct offload *o, int ifindex, uint32_t pref, uint32_t handle)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
    LIBBPF_OPTS(bpf_tc_opts, opts, .handle = handle, .priority = pref,
                .prog_fd = o->programs->ingress_fd, .flags = BPF_TC_F_REPLACE);
    return bpf_tc_attach(&hook, &opts);
}

static int
attach_clsact(struct offload *o, int ifindex)
{
    struct offload_attached *a = offload_attached_at(o, ifindex);
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
    int err = bpf_tc_hook_create(&hook);
    if (err && err != -EEXIST)
        return err;
    struct found left = find_filters(ifindex);
    a->made_clsact = !err || left.handle == TC_MADE;
    uint32_t others = left.others, handle = a->made_clsact ? TC_MADE : TC_HANDLE,
             pref = !others || others > TC_PRIORITY ? TC_PRIORITY
                    : others > 1                    ? others - 1
                                                    : 1;
    if (left.ours && (!others || left.ours < others))
        return attach_filter_at(o, ifindex, left.ours, left.handle);
    remove_filters(ifindex);
    err = attach_filter_at(o, ifindex, pref, handle);
    if (err) /* another kind of filter has the place */
        err = attach_filter_at(o, ifindex, TC_LAST, handle);
    if (err)
        remove_clsact(ifindex, a->made_clsact);
    return err;
}

static void
detach_tc(struct offload *o, int ifindex)
{
    struct offload_attached *a = offload_attached_at(o, ifindex);
    if (a->link >= 0) {
        close(a->link);
        a->link = -1;
        return;
    }
    remove_clsact(ifindex, a->made_clsact);
}

bool
offload_is_attached(const struct offload *o, int ifindex)
{
    const struct offload_attached *a = offload_attached_at(o, ifindex);
    if (a->link >= 0) {
        struct {
            uint32_t type, id, prog_id, zero, ifindex, attach_type;
            uint64_t rest[8];
        } info = {0};
        uint32_t len = sizeof info;
        return !bpf_obj_get_info_by_fd(a->link, &info, &len) && info.ifindex == (uint32_t)ifindex;
    }
    return find_filters(ifindex).handle == (a->made_clsact ? TC_MADE : TC_HANDLE);
}

/* Is there a program that was left on an interface with this place?  True: it is on this
 * interface, so it can be used again. */
static bool
take_what_was_left(struct offload *o, int ifindex)
{
    struct offload_attached *a = offload_attached_at(o, ifindex);
    int left = a->left;
    a->left = 0;
    if (left && left == ifindex && offload_is_attached(o, ifindex))
        return true;
    if (left)
        detach_tc(o, left);
    return false;
}

static int
attach_tc(struct offload *o, int ifindex)
{
    struct offload_attached *a = offload_attached_at(o, ifindex);
    LIBBPF_OPTS(bpf_link_create_opts, first, .flags = FIRST);
    if (take_what_was_left(o, ifindex))
        return 0;
    a->link = -1;
    a->made_clsact = false;
    if (o->programs->clsact_only || a->wired)
        return attach_clsact(o, ifindex);
    remove_clsact(ifindex, false); /* a killed predecessor's */
    a->link = bpf_link_create(o->programs->ingress_fd, ifindex,
                              (enum bpf_attach_type)OFFLOAD_TCX_INGRESS, &first);
    return a->link >= 0 ? 0 : attach_clsact(o, ifindex);
}

int
offload_attach_again(struct offload *o, int ifindex)
{
    detach_tc(o, ifindex);
    return attach_tc(o, ifindex);
}

/* ------------------------------------------------------------------ ports */

/* Before Linux 6.8 the memory for a socket's options (net.core.optmem_max, 20 KB) holds one filter, of 2,550 instructions.  One
 * that is there lets everything through, as none does: it is of an earlier time (offload_port_del). */
static int
set_filter(int ring, int filter)
{
    int err = setsockopt(ring, SOL_SOCKET, SO_ATTACH_BPF, &filter, sizeof filter) ? errno : 0;
    if (err == ENOMEM && !setsockopt(ring, SOL_SOCKET, SO_DETACH_BPF, &filter, sizeof filter))
        err = setsockopt(ring, SOL_SOCKET, SO_ATTACH_BPF, &filter, sizeof filter) ? errno : 0;
    return -err;
}

static int
attach_filter(struct offload *o, const int *ring, unsigned n)
{
    int err = 0;
    for (unsigned i = 0; i < n && !err; i++)
        err = set_filter(ring[i], o->programs->filter_fd);
    return err;
}

/* Whoever was in front of another port's program. */
static void
forget_front(struct offload_attached *a)
{
    a->unclaimed = a->wait = a->until = 0;
    *a->front = *a->why = '\0';
}

int
offload_port_add(struct offload *o, int ifindex, const struct offload_port_config *c,
                 const int *ring, unsigned n, char *why, size_t why_len)
{
    struct offload_port *p = offload_port_place(o, ifindex);
    struct offload_attached *a = offload_attached_at(o, ifindex);
    if (ifindex <= 0 || p->ifindex) {
        snprintf(why, why_len, "interface %d has the place of another one", ifindex);
        return -EBUSY;
    }
    *p = (struct offload_port){.ifindex = (uint32_t)ifindex, .inside = c->inside};
    a->wired = c->wire != NULL;
    if (c->wire)
        p->wire = *c->wire;
    forget_front(a);
    int err = attach_tc(o, ifindex);
    if (err) {
        snprintf(why, why_len, "tc: %s", strerror(-err));
        *p = (struct offload_port){0};
        return err;
    }
    err = attach_filter(o, ring, n);
    if (err) {
        snprintf(why, why_len, "SO_ATTACH_BPF: %s", strerror(-err));
        detach_tc(o, ifindex);
        *p = (struct offload_port){0};
        return err;
    }
    store_release(&p->ready, 1);
    return 0;
}

void
offload_port_rewire(struct offload *o, int ifindex, const struct offload_wire *wire)
{
    struct offload_port *p = offload_port_place(o, ifindex);
    if (!offload_port_has(o, ifindex))
        return;
    store_relaxed(&p->wire.priority, wire->priority);
    store_relaxed(&p->wire.alone, wire->alone);
    store_release(&p->wire.to, wire->to);
}

int
offload_port_move(struct offload *o, int ifindex, const int *ring, unsigned n)
{
    struct offload_port *p = offload_port_place(o, ifindex);
    int fd = o->programs->filter_fd, err = 0;
    if (!offload_port_has(o, ifindex) || !load_relaxed(&p->ready))
        return -EAGAIN;
    store_release(&p->moving, 1);
    for (unsigned i = 0; i < n && !err; i++)
        err = setsockopt(ring[i], SOL_SOCKET, SO_ATTACH_BPF, &fd, sizeof fd) ? -errno : 0;
    return err;
}

void
offload_port_moved(struct offload *o, int ifindex)
{
    if (offload_port_has(o, ifindex))
        store_release(&offload_port_place(o, ifindex)->moving, 0);
}

/* The sockets keep their filter: as the port isn't ready it lets everything through. */
void
offload_port_del(struct offload *o, int ifindex, bool later)
{
    struct offload_port *p = offload_port_place(o, ifindex);
    struct offload_attached *a = offload_attached_at(o, ifindex);
    if (p->ifindex != (uint32_t)ifindex)
        return;
    store_release(&p->ready, 0);
    offload_quiesce(o);
    if (later && a->link >= 0)
        a->left = ifindex;
    else
        detach_tc(o, ifindex);
    *p = (struct offload_port){0};
}

bool
offload_take_off(struct offload *o)
{
    for (uint32_t i = 0; i < OFFLOAD_PORTS; i++) {
        int left = o->programs->at[i].left;
        if (!left)
            continue;
        o->programs->at[i].left = 0;
        detach_tc(o, left);
        return true;
    }
    return false;
}

bool
offload_port_has(const struct offload *o, int ifindex)
{
    return ifindex > 0 && offload_port_place(o, ifindex)->ifindex == (uint32_t)ifindex;
}

void
offload_port_host(struct offload *o, int ifindex, uint32_t what)
{
    if (offload_port_has(o, ifindex))
        store_relaxed(&offload_port_place(o, ifindex)->host, what);
}

uint64_t *
offload_port_done(struct offload *o, int ifindex)
{
    return (uint64_t *)&offload_port_place(o, ifindex)->done;
}

const uint64_t *
offload_port_passed(const struct offload *o, int ifindex)
{
    return (const uint64_t *)&offload_port_place(o, ifindex)->passed;
}

/* ------------------------------------------------------------------ super-packets that no ring takes */

/* The interface is the switch's own, so nobody else has anything there; a filter goes with it. */
static int
attach_segments(struct offload_programs *k, int ifindex)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
    LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = k->again_fd);
    k->again_link =
        bpf_link_create(k->again_fd, ifindex, (enum bpf_attach_type)OFFLOAD_TCX_INGRESS, NULL);
    if (k->again_link >= 0)
        return 0;
    int err = bpf_tc_hook_create(&hook);
    return err ? err : bpf_tc_attach(&hook, &opts);
}

int
offload_cut_by(struct offload *o, int tx_ifindex, int rx_ifindex)
{
    struct offload_programs *k = o->programs;
    store_release(&o->m.control->cut_by, 0);
    if (k->again_link >= 0)
        close(k->again_link);
    k->again_link = -1;
    int err = tx_ifindex ? attach_segments(k, rx_ifindex) : 0;
    if (!err)
        store_release(&o->m.control->cut_by, (uint32_t)tx_ifindex);
    return err;
}
