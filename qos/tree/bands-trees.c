/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/tree/bands-trees.h>

#include <qos/tree/shaper.h>

#include <errno.h>
#include <stdlib.h>

struct model_port *
qos_band_get(struct model_port *out, uint32_t band)
{
    struct model_port **at = &out->next;
    while (*at && (*at)->band && (*at)->band < band)
        at = &(*at)->next;
    if (*at && (*at)->band == band)
        return *at;
    struct model_port *t = calloc(1, sizeof *t);
    if (!t || qos_port_set(t, &out->info)) {
        free(t);
        return NULL;
    }
    t->out = out;
    t->band = band;
    t->place = QOS_HANDLE_TX_QUEUES | band;
    t->absent = out->absent;
    t->next = *at;
    *at = t;
    return t;
}

void
qos_bands_follow(struct model_port *out)
{
    for (struct model_port *t = qos_band_next(out); t; t = qos_band_next(t)) {
        qos_port_set(t, &out->info); /* without memory the name stays the old one */
        char *name = t->name;
        t->info = out->info;
        t->info.name = name;
        t->absent = out->absent;
    }
}

void
qos_bands_reap(struct qos *q)
{
    for (struct model_port *p = q->ports, *next; p; p = next) {
        next = p->next;
        if (!p->band || p->sched)
            continue;
        p->out->foreign.changed += p->foreign.changed;
        p->out->foreign.repaired += p->foreign.repaired;
        qos_port_drop(q, p);
    }
}

/* ----------------------------------------------------------------- requests */

/* Can a tree of this kind be below the transmit queue? */
static int
check_band(const struct model_port *out, uint32_t band, const struct qos_sched *sched,
           struct qos_error *e)
{
    const struct qos_class *c = qos_class_find(out, band);
    if (out->sched->bare)
        return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "the kernel keeps no scheduler below a band of %s", out->sched->name);
    if (sched->flat)
        return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "queues of %s can't be below a transmit queue; those of htb and hfsc can",
                        sched->name);
    if (band > QOS_TREES_MAX)
        return qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                        "transmit queues 1 to %u can have queues below them, not %u", QOS_TREES_MAX,
                        band);
    if (c->leaf)
        return qos_fail(e, QOS_ERR(OFPSFC_BUSY), "transmit queue %u has a %s below it", band,
                        c->leaf->name);
    return 0;
}

static bool
is_band(const struct model_port *out, uint32_t id)
{
    return id && id <= out->n_queues;
}

/* Finds or makes the tree, and makes 0 of its root class's id in *r. */
static struct model_port *
band_tree(struct model_port *out, uint32_t band, const struct qos_request *r, int *err,
          struct qos_error *e)
{
    *err = check_band(out, band, r->sched, e);
    struct model_port *t = *err ? NULL : qos_band_get(out, band);
    if (!t && !*err)
        *err = -ENOMEM;
    return t;
}

/* The tree of a class that exists. */
static struct model_port *
known_tree(struct model_port *t, struct qos_request *r, int *err, struct qos_error *e)
{
    uint32_t parent = (uint32_t)r->values.v[QOS_PARENT];
    if (parent == t->band)
        r->values.v[QOS_PARENT] = 0;
    else if (parent && r->action_type != OFP_QOS_ADD && !qos_class_find(t, parent) &&
             (is_band(t->out, parent) || qos_band_with(t->out, parent)))
        *err =
            qos_fail(e, QOS_ERR(OFPSFC_UNSUPPORTED),
                     "class %u is below transmit queue %u, parent %u isn't; delete the class and "
                     "add it there",
                     r->class_id, (unsigned)t->band, parent);
    return *err ? NULL : t;
}

static struct model_port *
tree_of_class(struct model_port *out, struct qos_request *r, int *err, struct qos_error *e)
{
    uint32_t parent = (uint32_t)r->values.v[QOS_PARENT];
    struct model_port *t = qos_band_with(out, r->class_id);
    if (is_band(out, r->class_id)) {
        t = band_tree(out, r->class_id, r, err, e);
        r->class_id = QOS_CLASS_NONE;
        return t;
    }
    if (t)
        return known_tree(t, r, err, e);
    if (r->action_type == OFP_QOS_DEL || r->action_type == OFP_QOS_CHANGE || !r->class_id ||
        out->sched->bare)
        return out;
    if (is_band(out, parent)) {
        r->values.v[QOS_PARENT] = 0;
        return band_tree(out, parent, r, err, e);
    }
    t = qos_band_with(out, parent);
    if (t)
        return t;
    if (parent)
        *err = qos_fail(e, QOS_ERR(OFPSFC_NOT_FOUND), "port %u has no class %u to be the parent",
                        (unsigned)out->info.port_no, parent);
    else
        *err = qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                        "port %u has the root qdisc %s; say below which of its transmit queues the "
                        "class is to be: parent=1 to %u",
                        (unsigned)out->info.port_no, out->sched->name, (unsigned)out->n_queues);
    return NULL;
}

struct model_port *
qos_band_of(struct model_port *out, struct qos_request *r, int *err, struct qos_error *e)
{
    struct model_port *t;
    if (!out->sched || !out->sched->tx_queues)
        return out;
    if (r->object_type == OFP_QOS_CLASS)
        return tree_of_class(out, r, err, e);
    t = r->sched->classful ? NULL : qos_band_with(out, r->class_id);
    return t ? t : out;
}

int
qos_bands_fit(const struct model_port *out, uint32_t bands, struct qos_error *e)
{
    for (uint32_t id = 1; id <= bands; id++) {
        if (qos_band_with(out, id))
            return qos_fail(e, QOS_ERR(OFPSFC_BUSY),
                            "%u is the number of a class; delete it before there are %u bands", id,
                            bands);
    }
    return 0;
}
