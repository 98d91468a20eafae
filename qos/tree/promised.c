/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/promised.h>

#include <qos/sched/units.h>
#include <qos/tree/journal.h>

/* A share with two decimals of a percent may have been rounded up by half of the last one. */
#define ROUNDED_PPM 50

/* Is it the link itself: as the switch chose it, or all of it? */
static bool
is_link(const struct qos_class *c)
{
    uint64_t v;
    return c->follows ||
           (!c->parent && qos_packed_find(c->config, QOS_CEIL_SHARE, &v) && v == 1000000);
}

static bool
is_over(const struct model_port *p, const struct qos_class *c)
{
    uint64_t v, rounded = 0;
    if (!qos_sched_slot(p->sched, QOS_OVERSUBSCRIBE) || c->promised <= c->ceil || is_link(c) ||
        qos_packed_find(c->config, QOS_OVERSUBSCRIBE, &v))
        return false;
    for (const struct qos_class *k = c->child; k; k = k->next)
        if (qos_packed_find(k->config, QOS_RATE_SHARE, &v))
            rounded += c->rate / 1000000 * ROUNDED_PPM;
    return c->promised - c->ceil > rounded;
}

static int
refuse(const struct model_port *p, const struct qos_class *c, struct qos_error *e)
{
    char sum[QOS_UNIT_TEXT], ceil[QOS_UNIT_TEXT];
    unsigned id = (unsigned)qos_shown_id(p, c->id);
    return qos_fail(
        e, QOS_ERR(OFPSFC_BAD_PARAM),
        "the guarantees below class %u would come to %s, above its ceil of %s: lower them, or give "
        "class %u oversubscribe=yes",
        id, qos_format_rate(c->promised, sum), qos_format_rate(c->ceil, ceil), id);
}

int
qos_promised_check(const struct qos *q, unsigned *at, struct qos_error *e)
{
    if (!q->txn.asked)
        return 0;
    for (size_t i = q->txn.n; i--;) {
        const struct model_port *p;
        unsigned request;
        const struct qos_class *c = qos_journal_rated(q, i, &p, &request);
        const struct qos_class *over = c && c->parent && is_over(p, c->parent) ? c->parent
                                       : c && is_over(p, c)                    ? c
                                                                               : NULL;
        if (over && at)
            *at = request;
        if (over)
            return refuse(p, over, e);
    }
    return 0;
}

static int
adopt(struct qos *q, struct model_port *p, struct qos_class *c)
{
    struct qos_values config;
    if (!c || !is_over(p, c))
        return 0;
    qos_packed_get(c->config, &config);
    qos_put(&config, QOS_OVERSUBSCRIBE, 1);
    return qos_journal_configure(q, p, c, &config, false);
}

int
qos_promised_adopt(struct qos *q, struct model_port *p)
{
    int err = adopt(q, p, p->root);
    for (struct qos_class *c = qos_class_next(p, 0); c && !err; c = qos_class_next(p, c->id))
        err = adopt(q, p, c);
    return err;
}
