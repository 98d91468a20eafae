/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the programs on interfaces: the filter on the port's sockets, the other one at tc's ingress. */
#include "kernel-inside.h"
#include "tc-filters.h"

#include <shared/atomics.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Linux 6.6; the headers of Debian 12 are older. */
#define TCX_INGRESS 46

/* Ours among the filters of clsact.  The handle tells whoever takes over from a killed switch whether
 * clsact is ours as well, to be removed at the end. */
#define TC_HANDLE   0xf105
#define TC_MADE     0xf106
#define TC_PRIORITY 0xc000

static struct offload_port *
place_of(const struct offload *o, int ifindex)
{
    return &o->m.port[(uint32_t)ifindex % OFFLOAD_PORTS];
}

static struct offload_attached *
attached(const struct offload *o, int ifindex)
{
    return &o->programs->at[(uint32_t)ifindex % OFFLOAD_PORTS];
}

/* ------------------------------------------------------------------ tc */

static bool
has_filter(int ifindex, uint32_t handle)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
    LIBBPF_OPTS(bpf_tc_opts, opts, .handle = handle, .priority = TC_PRIORITY);
    return !bpf_tc_query(&hook, &opts);
}

static void
remove_filter(int ifindex, uint32_t handle)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
    LIBBPF_OPTS(bpf_tc_opts, opts, .handle = handle, .priority = TC_PRIORITY);
    bpf_tc_detach(&hook, &opts);
}

/* Ours or a killed predecessor's, and clsact if one of us made it and nobody else uses it. */
static void
remove_clsact(int ifindex, bool made)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
                .attach_point = (enum bpf_tc_attach_point)(BPF_TC_INGRESS | BPF_TC_EGRESS));
    made |= has_filter(ifindex, TC_MADE);
    remove_filter(ifindex, TC_MADE);
    remove_filter(ifindex, TC_HANDLE);
    if (made && !tc_filters_there(ifindex))
        bpf_tc_hook_destroy(&hook);
}

static int
attach_clsact(struct offload *o, int ifindex)
{
    struct offload_attached *a = attached(o, ifindex);
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex, .attach_point = BPF_TC_INGRESS);
    int err = bpf_tc_hook_create(&hook);
    if (err && err != -EEXIST)
        return err;
    a->made_clsact = !err || has_filter(ifindex, TC_MADE);
    LIBBPF_OPTS(bpf_tc_opts, opts, .handle = a->made_clsact ? TC_MADE : TC_HANDLE,
                .priority = TC_PRIORITY, .prog_fd = o->programs->ingress_fd,
                .flags = BPF_TC_F_REPLACE);
    err = bpf_tc_attach(&hook, &opts);
    if (err)
        remove_clsact(ifindex, a->made_clsact);
    return err;
}

static void
detach_tc(struct offload *o, int ifindex)
{
    struct offload_attached *a = attached(o, ifindex);
    if (a->link >= 0) {
        close(a->link);
        a->link = -1;
        return;
    }
    remove_clsact(ifindex, a->made_clsact);
}

static bool
is_attached(const struct offload *o, int ifindex)
{
    const struct offload_attached *a = attached(o, ifindex);
    if (a->link >= 0) {
        struct {
            uint32_t type, id, prog_id, zero, ifindex, attach_type;
            uint64_t rest[8];
        } info = {0};
        uint32_t len = sizeof info;
        return !bpf_obj_get_info_by_fd(a->link, &info, &len) && info.ifindex == (uint32_t)ifindex;
    }
    return has_filter(ifindex, a->made_clsact ? TC_MADE : TC_HANDLE);
}

/* Is there a program that was left on an interface with this place?  True: it is on this
 * interface, so it can be used again. */
static bool
take_what_was_left(struct offload *o, int ifindex)
{
    struct offload_attached *a = attached(o, ifindex);
    int left = a->left;
    a->left = 0;
    if (left && left == ifindex && is_attached(o, ifindex))
        return true;
    if (left)
        detach_tc(o, left);
    return false;
}

static int
attach_tc(struct offload *o, int ifindex)
{
    struct offload_attached *a = attached(o, ifindex);
    if (take_what_was_left(o, ifindex))
        return 0;
    *a = (struct offload_attached){.link = -1};
    if (o->programs->clsact_only)
        return attach_clsact(o, ifindex);
    remove_clsact(ifindex, false); /* a killed predecessor's */
    a->link =
        bpf_link_create(o->programs->ingress_fd, ifindex, (enum bpf_attach_type)TCX_INGRESS, NULL);
    return a->link >= 0 ? 0 : attach_clsact(o, ifindex);
}

/* ------------------------------------------------------------------ others at tc's ingress */

struct naming {
    offload_name_fn *name;
    void *ctx;
};

static void
name_filter(void *ctx, const struct tc_filter *f)
{
    const struct naming *n = ctx;
    char what[128];
    if (!f->ingress || (f->pref == TC_PRIORITY && (f->handle == TC_HANDLE || f->handle == TC_MADE)))
        return;
    snprintf(what, sizeof what, "%s, pref %u, handle 0x%x%s%s", f->kind, (unsigned)f->pref,
             (unsigned)f->handle, *f->name ? ", " : "", f->name);
    n->name(n->ctx, what);
}

static void
name_programs(const struct offload *o, int ifindex, const struct naming *n)
{
    uint32_t id[16];
    struct bpf_prog_info ours = {0};
    uint32_t len = sizeof ours;
    LIBBPF_OPTS(bpf_prog_query_opts, opts, .prog_ids = id, .prog_cnt = sizeof id / sizeof id[0]);
    if (bpf_obj_get_info_by_fd(o->programs->ingress_fd, &ours, &len) ||
        bpf_prog_query_opts(ifindex, (enum bpf_attach_type)TCX_INGRESS, &opts))
        return;
    for (uint32_t i = 0; i < opts.prog_cnt && i < sizeof id / sizeof id[0]; i++) {
        char what[64];
        snprintf(what, sizeof what, "tcx program %u", (unsigned)id[i]);
        if (id[i] != ours.id)
            n->name(n->ctx, what);
    }
}

void
offload_port_others(const struct offload *o, int ifindex, offload_name_fn *name, void *ctx)
{
    struct naming n = {name, ctx};
    if (!offload_port_has(o, ifindex))
        return;
    tc_filters_each(ifindex, name_filter, &n);
    name_programs(o, ifindex, &n);
}

/* ------------------------------------------------------------------ ports */

static int
attach_filter(struct offload *o, const int *ring, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (setsockopt(ring[i], SOL_SOCKET, SO_ATTACH_BPF, &o->programs->filter_fd,
                       sizeof o->programs->filter_fd))
            return -errno;
    return 0;
}

int
offload_port_add(struct offload *o, int ifindex, const int *ring, unsigned n, char *why,
                 size_t why_len)
{
    struct offload_port *p = place_of(o, ifindex);
    if (ifindex <= 0 || p->ifindex) {
        snprintf(why, why_len, "interface %d has the place of another one", ifindex);
        return -EBUSY;
    }
    *p = (struct offload_port){.ifindex = (uint32_t)ifindex};
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

/* The sockets keep their filter: as the port isn't ready it lets everything through. */
void
offload_port_del(struct offload *o, int ifindex, bool later)
{
    struct offload_port *p = place_of(o, ifindex);
    struct offload_attached *a = attached(o, ifindex);
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
    return ifindex > 0 && place_of(o, ifindex)->ifindex == (uint32_t)ifindex;
}

void
offload_port_host(struct offload *o, int ifindex, uint32_t what)
{
    if (offload_port_has(o, ifindex))
        store_relaxed(&place_of(o, ifindex)->host, what);
}

uint64_t *
offload_port_done(struct offload *o, int ifindex)
{
    return (uint64_t *)&place_of(o, ifindex)->done;
}

const uint64_t *
offload_port_passed(const struct offload *o, int ifindex)
{
    return (const uint64_t *)&place_of(o, ifindex)->passed;
}

unsigned
offload_check(struct offload *o)
{
    unsigned mended = 0;
    for (uint32_t i = 0; i < OFFLOAD_PORTS; i++) {
        struct offload_port *p = &o->m.port[i];
        int ifindex = (int)p->ifindex;
        if (!ifindex)
            continue;
        if (!is_attached(o, ifindex)) {
            store_release(&p->ready, 0);
            detach_tc(o, ifindex);
            if (attach_tc(o, ifindex))
                continue;
            mended++;
        }
        store_release(&p->ready, 1);
    }
    return mended;
}
