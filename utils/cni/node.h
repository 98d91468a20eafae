/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the switch, for port.c and rules.c. */
#ifndef CNI_NODE_H
#define CNI_NODE_H

#include "port.h"

#include <queues/queues.h>

struct node_switch {
    struct ctx c;
    char said[CTX_SAID]; /* why the last request failed */
};

/* A direction of a port, and what Kubernetes calls it. */
struct direction {
    enum qos_direction dir;
    const char *name;
};
#define DIRECTIONS 2
extern const struct direction directions[DIRECTIONS];

const struct cni_rate *direction_rate(const struct cni_conf *f, const struct direction *d);

int node_refused(struct cni *c, const struct node_switch *s, const char *what, const char *name);

#endif
