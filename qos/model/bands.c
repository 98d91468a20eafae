/* SPDX-License-Identifier: Apache-2.0 */
/* PRIO and ETS as a port's root: their bands are queues 1, 2, ..., the first one band 0. */
#include "model.h"

#include <errno.h>

int
bands_set(struct qos *q, struct model_port *p, unsigned n)
{
    static const struct qos_values nothing;
    struct klass *c;
    int err = 0;
    if (!p->root)
        err = class_attach(q, p, klass_new(QOS_CLASS_ROOT, &nothing), NULL);
    if (!err) {
        p->root->follows = true;
        p->root->ceil = p->info.speed;
    }
    while (!err && (c = klass_next(p, n)))
        err = class_detach(q, p, c);
    for (unsigned id = 1; !err && id <= n; id++) {
        if (klass_find(p, id))
            continue;
        err = class_attach(q, p, klass_new(id, &nothing), p->root);
        if (!err)
            klass_find(p, id)->ceil = p->root->ceil;
    }
    return err;
}
