/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/bands.h>

#include <qos/tree/journal.h>
#include <qos/tree/values.h>

#include <errno.h>

/* The highest rate that a band gets: the scheduler's own rate, or the link's. */
static uint64_t
most_of(const struct model_port *p)
{
    uint64_t rate;
    return qos_packed_find(p->config, QOS_RATE, &rate) && rate ? rate : p->info.speed;
}

/* Gives the class this limit; makes it if there is none. */
static int
set_class(struct qos *q, struct model_port *p, uint32_t id, struct qos_class *parent)
{
    static const struct qos_values nothing;
    struct qos_class *c = qos_class_find(p, id);
    if (c)
        return c->ceil == most_of(p) ? 0 : qos_journal_set_rates(q, p, c, 0, most_of(p));
    c = qos_class_new(id, &nothing);
    if (c) {
        c->follows = !parent;
        c->ceil = most_of(p);
    }
    return qos_journal_attach(q, p, c, parent);
}

int
qos_bands_set(struct qos *q, struct model_port *p, unsigned n)
{
    struct qos_class *c;
    int err = set_class(q, p, QOS_CLASS_ROOT, NULL);
    while (!err && (c = qos_class_next(p, n)))
        err = qos_journal_detach(q, p, c);
    for (struct model_port *t = qos_band_next(p); t && !err; t = qos_band_next(t))
        err = t->band > n ? qos_journal_clear(q, t) : 0;
    for (unsigned id = 1; !err && id <= n; id++)
        err = set_class(q, p, id, p->root);
    return err;
}

static int
check_tx_queues(const struct model_port *p, const struct qos_sched *sched, unsigned bands,
                struct qos_error *e)
{
    unsigned has = p->info.tx_queues;
    if (p->place != QOS_PARENT_ROOT)
        return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "%s works as the root of an interface only; that of %s is somebody else's",
                        sched->name, p->name);
    if (has < 2)
        return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "%s needs an interface with several transmit queues; %s has one",
                        sched->name, p->name);
    if (bands <= has)
        return 0;
    return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                    "%s has %u transmit queues, too few for %u bands of %s", p->name, has, bands,
                    sched->name);
}

int
qos_bands_check(const struct model_port *p, const struct qos_class *c,
                const struct qos_sched *sched, const struct qos_values *resolved,
                struct qos_error *e)
{
    if (c && p->sched->bare)
        return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "the kernel keeps no scheduler below a band of %s", p->sched->name);
    if (!sched->bands)
        return 0;
    if (c && c->leaf == sched)
        return 0;
    if (c)
        return qos_fail(
            e, QOS_ERR(OFPSFC_UNSUPPORTED),
            "%s works as a port's root (class 0) only; below class %u all packets would be in one "
            "of its bands; give the class queues of its own instead (parent=%u, with prio=)",
            sched->name, c->id, c->id);
    return sched->tx_queues ? check_tx_queues(p, sched, (unsigned)resolved->v[QOS_BANDS], e) : 0;
}
