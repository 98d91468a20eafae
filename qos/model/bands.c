/* SPDX-License-Identifier: Apache-2.0 */
#include "bands.h"

#include "journal.h"

#include <errno.h>

int
qos_bands_set(struct qos *q, struct model_port *p, unsigned n)
{
    static const struct qos_values nothing;
    struct qos_class *c;
    int err = 0;
    if (!p->root)
        err = qos_journal_attach(q, p, qos_class_new(QOS_CLASS_ROOT, &nothing), NULL);
    if (!err) {
        p->root->follows = true;
        p->root->ceil = p->info.speed;
    }
    while (!err && (c = qos_class_next(p, n)))
        err = qos_journal_detach(q, p, c);
    for (unsigned id = 1; !err && id <= n; id++) {
        if (qos_class_find(p, id))
            continue;
        err = qos_journal_attach(q, p, qos_class_new(id, &nothing), p->root);
        if (!err)
            qos_class_find(p, id)->ceil = p->root->ceil;
    }
    return err;
}
