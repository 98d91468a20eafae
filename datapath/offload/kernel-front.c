/* SPDX-License-Identifier: Apache-2.0 */
/* Who else is at a port's tc ingress.  A program in front of the switch's may take frames of which the filter
 * has said that the kernel handles them: then they are lost.  So the switch's program wants to be the
 * first.  While it can't be, user space gets all frames, and the kernel is tried again after 1 s, 2 s, 4 s
 * and so on, or when somebody else is in front. */
#include "kernel-inside.h"

#include <shared/atomics.h>
#include <shared/clock.h>

#include <bpf/bpf.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PROGRAMS_MAX 16
#define WAIT_MAX     (1024 * NS_PER_S)
#define CALM         (64 * NS_PER_S) /* so long without a loss, and waits begin anew */

struct naming {
    offload_name_fn *name;
    void *ctx;
    bool ours;     /* the switch's own was there already */
    bool in_front; /* only those before it */
};

static void
tell(const struct naming *n, const char *what)
{
    if (!n->in_front || !n->ours)
        n->name(n->ctx, what);
}

static void
name_filter(void *ctx, const struct tc_filter *f)
{
    struct naming *n = ctx;
    char what[128];
    if (offload_is_filter(f))
        n->ours = true;
    if (offload_is_filter(f))
        return;
    snprintf(what, sizeof what, "%s, pref %u, handle 0x%x%s%s", f->kind, (unsigned)f->pref,
             (unsigned)f->handle, *f->name ? ", " : "", f->name);
    tell(n, what);
}

/* The program's name, if the process may ask for it. */
static void
name_program(const struct naming *n, uint32_t id)
{
    struct bpf_prog_info info = {0};
    uint32_t len = sizeof info;
    char what[64];
    int fd = bpf_prog_get_fd_by_id(id);
    if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
        *info.name = '\0';
    if (fd >= 0)
        close(fd);
    snprintf(what, sizeof what, "tcx program %u%s%.16s", (unsigned)id, *info.name ? ", " : "",
             info.name);
    tell(n, what);
}

static void
name_programs(const struct offload *o, int ifindex, struct naming *n)
{
    uint32_t id[PROGRAMS_MAX];
    struct bpf_prog_info ours = {0};
    uint32_t len = sizeof ours;
    LIBBPF_OPTS(bpf_prog_query_opts, opts, .prog_ids = id, .prog_cnt = PROGRAMS_MAX);
    if (bpf_obj_get_info_by_fd(o->programs->ingress_fd, &ours, &len) ||
        bpf_prog_query_opts(ifindex, (enum bpf_attach_type)OFFLOAD_TCX_INGRESS, &opts))
        return;
    for (uint32_t i = 0; i < opts.prog_cnt && i < PROGRAMS_MAX; i++)
        if (id[i] == ours.id)
            n->ours = true;
        else
            name_program(n, id[i]);
}

/* In the order in which they get a frame: tcx comes first. */
static void
each_at_ingress(const struct offload *o, int ifindex, struct naming *n)
{
    name_programs(o, ifindex, n);
    tc_filters_each(ifindex, name_filter, n);
}

void
offload_port_others(const struct offload *o, int ifindex, offload_name_fn *name, void *ctx)
{
    struct naming n = {.name = name, .ctx = ctx};
    if (offload_port_has(o, ifindex))
        each_at_ingress(o, ifindex, &n);
}

/* ------------------------------------------------------------------ those in front */

static void
add_name(void *ctx, const char *what)
{
    char *all = ctx;
    size_t n = strlen(all);
    snprintf(all + n, OFFLOAD_WHO_LEN - n, "%s%s", n ? "; " : "", what);
}

static void
find_front(const struct offload *o, int ifindex, char front[OFFLOAD_WHO_LEN])
{
    struct naming n = {.name = add_name, .ctx = front, .in_front = true};
    *front = '\0';
    each_at_ingress(o, ifindex, &n);
}

/* A frame was lost.  The first time the program goes to the front, if it isn't there, and is tried at once. */
static void
step_back(struct offload *o, int ifindex, uint64_t now, offload_front_fn *lost, void *ctx)
{
    struct offload_attached *a = offload_attached_at(o, ifindex);
    char was[OFFLOAD_WHO_LEN];
    bool first = !a->wait;
    a->wait = first ? NS_PER_S : a->wait < WAIT_MAX ? a->wait * 2 : WAIT_MAX;
    a->until = now + a->wait;
    find_front(o, ifindex, was);
    snprintf(a->front, sizeof a->front, "%s", was);
    if (*was && !offload_attach_again(o, ifindex))
        find_front(o, ifindex, a->front);
    if (first && *was && !*a->front)
        a->until = now;
    snprintf(a->why, sizeof a->why,
             "%.100s took frames before the switch's program at tc's ingress",
             *was ? was : "something");
    lost(ctx, ifindex, a->why, (unsigned)((a->until - now) / NS_PER_S));
}

/* Whether the kernel may handle the port's packets again. */
static bool
may_go_on(const struct offload *o, int ifindex, uint64_t now)
{
    struct offload_attached *a = offload_attached_at(o, ifindex);
    char front[OFFLOAD_WHO_LEN];
    if (now < a->until) {
        find_front(o, ifindex, front);
        if (!strcmp(front, a->front))
            return false;
        a->until = now;
    }
    *a->why = '\0';
    if (a->wait && now - a->until > CALM)
        a->wait = 0;
    return true;
}

/* True: the program was put on the interface again. */
static bool
check(struct offload *o, int ifindex, uint64_t now, offload_front_fn *lost, void *ctx)
{
    struct offload_port *p = offload_port_place(o, ifindex);
    struct offload_attached *a = offload_attached_at(o, ifindex);
    uint64_t unclaimed = counter_read((const uint64_t *)&p->unclaimed);
    bool mend = !offload_is_attached(o, ifindex);
    if (mend) {
        store_release(&p->ready, 0);
        if (offload_attach_again(o, ifindex))
            return false;
    } else if (unclaimed != a->unclaimed) {
        step_back(o, ifindex, now, lost, ctx);
    }
    a->unclaimed = unclaimed;
    store_release(&p->ready, may_go_on(o, ifindex, now));
    return mend;
}

unsigned
offload_check(struct offload *o, uint64_t now, offload_front_fn *lost, void *ctx)
{
    unsigned mended = 0;
    for (uint32_t i = 0; i < OFFLOAD_PORTS; i++)
        if (o->m.port[i].ifindex)
            mended += check(o, (int)o->m.port[i].ifindex, now, lost, ctx);
    return mended;
}

const char *
offload_port_waits(const struct offload *o, int ifindex)
{
    const struct offload_attached *a = offload_attached_at(o, ifindex);
    return offload_port_has(o, ifindex) && *a->why ? a->why : NULL;
}
