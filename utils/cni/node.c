/* SPDX-License-Identifier: Apache-2.0 */
#include "node.h"

const struct direction directions[DIRECTIONS] = {{QOS_OUT, "ingress"}, {QOS_IN, "egress"}};

const struct cni_rate *
direction_rate(const struct cni_conf *f, const struct direction *d)
{
    return d->dir == QOS_OUT ? &f->in : &f->out;
}

int
node_refused(struct cni *c, const struct node_switch *s, const char *what, const char *name)
{
    return cni_fail(c, CNI_SWITCH_REFUSED, "%s %s: %s", what, name, s->said);
}
