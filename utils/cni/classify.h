/* SPDX-License-Identifier: Apache-2.0 */
/* Into which group's class a packet goes where the kernel forwards and no flow says it: a filter (tc-bpf(8)) for each group at
 * the port's queues, in both directions. */
#ifndef CNI_CLASSIFY_H
#define CNI_CLASSIFY_H

#include "link.h"

#include <stdio.h>

/* The interface that has the queues of what enters by a port of queues only. */
static inline void
classify_in(int ifindex, char name[IFNAMSIZ])
{
    snprintf(name, IFNAMSIZ, "ofqi%d", ifindex);
}

/* Nothing without groups.  `host`: the port's interface, whose queues must be there. */
int classify_set(struct cni *c, struct links *here, const struct link_there *host);
int classify_check(struct cni *c, struct links *here, const struct link_there *host);

#endif
