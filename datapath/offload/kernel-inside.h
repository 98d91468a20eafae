/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernel.c, kernel-attach.c and kernel-front.c. */
#ifndef OFFLOAD_KERNEL_INSIDE_H
#define OFFLOAD_KERNEL_INSIDE_H

#include "offload-inside.h"
#include "tc-filters.h"

struct bpf_object;

#define OFFLOAD_TCX_INGRESS 46 /* Linux 6.6; the headers of Debian 12 are older */
#define OFFLOAD_WHO_LEN     160

/* How a port's program is at tc. */
struct offload_attached {
    int link; /* of tcx, which goes with the process; -1: it is a filter of clsact */
    bool made_clsact;
    bool wired; /* it has a wire, though the other end may be absent */
    int left;   /* the interface that still has the program although it is no port; 0: none */

    /* Somebody in front of the program takes frames (kernel-front.c). */
    uint64_t unclaimed;          /* of the port's verdicts, as of the last look */
    uint64_t wait, until;        /* so long, and until then, user space gets all frames; ns */
    char front[OFFLOAD_WHO_LEN]; /* who that is; empty: nobody is known */
    char why[OFFLOAD_WHO_LEN];   /* the sentence; empty: the port isn't waiting */
};

struct offload_programs {
    struct bpf_object *obj;
    int filter_fd, ingress_fd, again_fd;
    bool clsact_only;                          /* what is attached must survive a kill */
    struct offload_attached at[OFFLOAD_PORTS]; /* by the port's place */
    int again_link; /* of tcx, where segments come back; -1: none, or a filter */
};

static inline struct offload_port *
offload_port_place(const struct offload *o, int ifindex)
{
    return &o->m.port[(uint32_t)ifindex % OFFLOAD_PORTS];
}

static inline struct offload_attached *
offload_attached_at(const struct offload *o, int ifindex)
{
    return &o->programs->at[(uint32_t)ifindex % OFFLOAD_PORTS];
}

/* ------------------------------------------------------------------ kernel-attach.c */

bool offload_is_filter(const struct tc_filter *f); /* ours, at clsact's ingress */
bool offload_is_attached(const struct offload *o, int ifindex);

/* Takes the program off the interface and puts it on it again, in front of all others if the kernel
 * allows that.  -errno: it isn't there any more. */
int offload_attach_again(struct offload *o, int ifindex);

#endif
