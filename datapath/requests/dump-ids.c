/* SPDX-License-Identifier: Apache-2.0 */
#include "dump-ids.h"

#include <stdlib.h>

struct id_dump {
    struct sw *sw;
    id_dump_add add;
    uint32_t n, at;
    uint32_t ids[];
};

struct id_dump *
sw_id_dump_new(struct sw *sw, uint32_t max, id_dump_add add)
{
    struct id_dump *d = malloc(sizeof *d + max * sizeof d->ids[0]);
    if (d)
        *d = (struct id_dump){.sw = sw, .add = add};
    return d;
}

void
sw_id_dump_put(struct id_dump *d, uint32_t id)
{
    d->ids[d->n++] = id;
}

static bool
step(struct conn_dump *to, void *ctx)
{
    struct id_dump *d = ctx;
    if (d->at < d->n)
        d->add(d->sw, to, d->ids[d->at++]);
    return d->at < d->n;
}

static int
by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

int
sw_id_dump_send(struct id_dump *d, struct conn *c, const struct of_msg *m)
{
    qsort(d->ids, d->n, sizeof d->ids[0], by_number);
    return conn_dump(c, m, step, free, d);
}
