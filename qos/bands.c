/* SPDX-License-Identifier: Apache-2.0 */
/* PRIO and ETS as a port's root: their bands are queues 1, 2, ..., the first one band 0. */
#include "rows.h"
#include "model.h"

#include <errno.h>
#include <stdlib.h>

int
bands_new(const struct port *p, bool fresh, unsigned n, struct new_bands *b)
{
    static const struct qos_values nothing;
    bool ok = true;
    *b = (struct new_bands){.n = n};
    if (fresh || !p->root)
        ok = (b->root = klass_new(QOS_CLASS_ROOT, &nothing)) != NULL;
    if (fresh || !p->pages[0])
        ok = ok && (b->page = calloc(256, sizeof *b->page));
    for (unsigned id = 1; ok && id <= n; id++) {
        if (fresh || !klass_find(p, id))
            ok = (b->band[id] = klass_new(id, &nothing)) != NULL;
    }
    if (!ok)
        bands_free(b);
    return ok ? 0 : -ENOMEM;
}

void
bands_free(struct new_bands *b)
{
    klass_free(b->root);
    for (unsigned id = 1; id <= QOS_BANDS_MAX; id++)
        klass_free(b->band[id]);
    free(b->page);
    *b = (struct new_bands){0};
}

void
bands_commit(struct qos *q, struct port *p, struct new_bands *b)
{
    struct klass *c;
    if (b->page)
        p->pages[0] = b->page;
    if (b->root) {
        b->root->follows = true;
        b->root->ceil = p->info.speed;
        klass_attach(p, b->root, NULL);
    }
    while ((c = klass_next(p, b->n))) {
        tell_queue(q, p, c->id, false);
        klass_remove(p, c);
    }
    for (unsigned id = 1; id <= b->n; id++) {
        if (!b->band[id])
            continue;
        klass_attach(p, b->band[id], p->root);
        b->band[id]->ceil = p->root->ceil;
        tell_queue(q, p, id, true);
    }
    *b = (struct new_bands){0};
}

int
qos_check_priomap(const struct qos_values *v, const struct qos_values *given,
                  struct qos_error *e)
{
    uint64_t bands = v->v[QOS_BANDS];
    for (unsigned i = 0; i < 16 && qos_has(v, QOS_PRIOMAP); i++) {
        if ((v->v[QOS_PRIOMAP + i / 8] >> (56 - i % 8 * 8) & 0xff) >= bands)
            return qos_fail(e, QOS_BAD_PARAM, "the priomap names a band above %u",
                            (unsigned)bands - 1);
    }
    return 0;
}
