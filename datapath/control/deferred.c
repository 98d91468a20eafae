/* SPDX-License-Identifier: Apache-2.0 */
#include <control/deferred.h>

#include "conn.h"

void
deferred_begin(struct deferred *d, struct conn *c, const struct of_msg *m)
{
    d->conn = c;
    d->n = m->raw.n < sizeof d->bytes ? m->raw.n : sizeof d->bytes;
    memcpy(d->bytes, m->raw.p, d->n);
    if (c)
        c->deferred = d;
}

struct of_msg
deferred_message(const struct deferred *d)
{
    return (struct of_msg){.version = d->bytes[0],
                           .type = d->bytes[1],
                           .xid = of_get32(d->bytes + 4),
                           .raw = {d->bytes, d->n}};
}

const char *
deferred_peer(const struct deferred *d)
{
    return d->conn ? d->conn->peer : "a peer that has gone";
}

void
deferred_error(const struct deferred *d, int err)
{
    struct of_msg m = deferred_message(d);
    struct conn *c = d->conn;
    if (!err || !c || c->fail)
        return;
    conn_error(c, &m, err > 0 ? err : conn_error_of(c, &m, err));
}

void
deferred_end(struct deferred *d)
{
    struct conn *c = d->conn;
    d->conn = NULL;
    if (!c)
        return;
    c->deferred = NULL;
    c->held = false; /* nothing need have been unlocked */
    conn_flush_later(c);
}
