/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of classic BPF at the switch's queues, by rtnetlink. */
#ifndef CNI_FILTER_H
#define CNI_FILTER_H

#include "link.h"

struct bpf_insn; /* libpcap's, which is the kernel's struct sock_filter */

struct filter {
    const char *name;
    unsigned preference; /* the least first */
    uint32_t queue;      /* whose class gets the packets */
    unsigned n;
    const struct bpf_insn *program;
};

/* name: of the interface that has the queues. */
int filter_add(struct cni *c, struct links *l, const char *name, const struct filter *f);
/* 1: the same is there; 0: none, or another one; -1. */
int filter_is_there(struct cni *c, struct links *l, const char *name, const struct filter *f);

#endif
