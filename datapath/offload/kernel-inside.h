/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernel.c and kernel-attach.c. */
#ifndef OFFLOAD_KERNEL_INSIDE_H
#define OFFLOAD_KERNEL_INSIDE_H

#include "offload-inside.h"

struct bpf_object;

/* How a port's program is at tc. */
struct offload_attached {
    int link; /* of tcx, which goes with the process; -1: it is a filter of clsact */
    bool made_clsact;
    int left; /* the interface that still has the program although it is no port; 0: none */
};

struct offload_programs {
    struct bpf_object *obj;
    int filter_fd, ingress_fd;
    bool clsact_only;                          /* what is attached must survive the process */
    struct offload_attached at[OFFLOAD_PORTS]; /* by the port's place */
};

#endif
