/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <qos/tree/found.h>

#include <errno.h>
#include <stdlib.h>

/* Is the tree 1: one like ours: has it the classes that are the switch's own? */
static int
like_ours(struct qos *q, const struct model_port *p, const struct qos_object *tree, bool *like,
          struct qos_error *e)
{
    struct found classes = {0};
    unsigned own = 0;
    int err = q->kernel->ops->each_class(q->kernel, p->info.ifindex, QOS_HANDLE_TREE, qos_found_add,
                                         &classes, e);
    for (size_t i = 0; i < classes.n; i++)
        own += classes.v[i].handle == (QOS_HANDLE_TREE | QOS_CLASS_ROOT) ||
               classes.v[i].handle == (QOS_HANDLE_TREE | QOS_CLASS_DEFAULT);
    *like = tree->sched && own == (tree->sched->flat ? 1 : 2);
    free(classes.v);
    return !err && classes.nomem ? -ENOMEM : err;
}

/* The class of these qdiscs that our root is, or was, below. */
static int
place_below(struct qos *q, struct model_port *p, const struct found *qdiscs, struct qos_error *e)
{
    uint32_t place = QOS_PARENT_ROOT;
    int err = 0;
    for (size_t i = 0; i < qdiscs->n && !err; i++) {
        const struct qos_object *o = &qdiscs->v[i];
        bool tins = o->handle == QOS_HANDLE_TREE && o->sched && o->sched->tins && o->estimator;
        bool classless = o->handle == QOS_HANDLE_ROOT || o->handle == QOS_HANDLE_ROOT_2 || tins;
        bool like = classless || o->parent == p->place;
        bool below = o->parent != QOS_PARENT_ROOT && o->parent >> 16 != QOS_HANDLE_TREE >> 16;
        if (o->handle >> 16 == p->place >> 16 && place == QOS_PARENT_ROOT)
            place = p->place;
        if (!below || (o->handle != QOS_HANDLE_TREE && !classless))
            continue;
        if (!like)
            err = like_ours(q, p, o, &like, e);
        if (like)
            place = o->parent;
    }
    if (!err)
        p->place = place;
    return err;
}

int
qos_place_find(struct qos *q, struct model_port *p, struct qos_error *e)
{
    struct qos_object root;
    struct found qdiscs = {0};
    if (!p->info.ifindex || p->band)
        return 0;
    int err = q->kernel->ops->root(q->kernel, p->info.ifindex, QOS_PARENT_ROOT, &root, e);
    if (err)
        return err;
    p->other_root = root.handle && !qos_handle_is_root(root.handle);
    if (!p->other_root) {
        p->place = QOS_PARENT_ROOT;
        return 0;
    }
    err = q->kernel->ops->each_qdisc(q->kernel, p->info.ifindex, qos_found_add, &qdiscs, e);
    if (!err)
        err = qdiscs.nomem ? -ENOMEM : place_below(q, p, &qdiscs, e);
    free(qdiscs.v);
    p->other_root = err || p->place == QOS_PARENT_ROOT; /* an interrupted dump: also */
    return err;
}
