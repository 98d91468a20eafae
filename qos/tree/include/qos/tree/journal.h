/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the model, and taking them back.
 *
 * A request changes the model at once and plans the kernel's operations, so that the next request
 * of a bundle is checked against what the one before will have done.  When the kernel has agreed,
 * the packet side is notified and what was replaced is freed; otherwise the changes are taken back,
 * last first. */
#ifndef QOS_TREE_JOURNAL_H
#define QOS_TREE_JOURNAL_H

#include <qos/tree/state.h>

/* A leaf's flags: second handle, the switch's own. */
enum qos_leaf_how { QOS_LEAF_SECOND = 1, QOS_LEAF_OWN = 2 };

/* The same leaf with the other handle, or not. */
static inline unsigned
qos_leaf_again(const struct qos_class *c, bool second)
{
    return (second ? QOS_LEAF_SECOND : 0u) | (c->leaf_own ? QOS_LEAF_OWN : 0u);
}

/* All answer 0 or -ENOMEM, and then have changed nothing. */
int qos_journal_attach(struct qos *q, struct model_port *p, struct qos_class *c,
                       struct qos_class *parent); /* owns c, which may be NULL (-ENOMEM) */
int qos_journal_detach(struct qos *q, struct model_port *p,
                       struct qos_class *c); /* without children */
int qos_journal_detach_all(struct qos *q, struct model_port *p,
                           struct qos_class *c); /* with them */
int qos_journal_move(struct qos *q, struct model_port *p, struct qos_class *c,
                     struct qos_class *parent);
int qos_journal_configure(struct qos *q, struct model_port *p, struct qos_class *c,
                          const struct qos_values *config, bool follows);
int qos_journal_set_leaf(struct qos *q, struct model_port *p, struct qos_class *c,
                         const struct qos_sched *leaf, const struct qos_values *config,
                         unsigned how);
int qos_journal_set_rates(struct qos *q, struct model_port *p, struct qos_class *c, uint64_t rate,
                          uint64_t ceil);
/* The root's settings; config NULL: none. */
int qos_journal_set_root(struct qos *q, struct model_port *p, const struct qos_sched *sched,
                         const struct qos_values *config, uint32_t default_id, bool keep);
int qos_journal_clear(struct qos *q, struct model_port *p); /* everything that it has */
int qos_journal_set_shaper(struct qos *q, struct model_port *p, const struct qos_shaper *s);

void qos_txn_begin(struct qos *q, bool many);

/* A class that change i (from 0) was about, or its former parent. */
struct journal_touch {
    struct model_port *p;
    uint32_t id;
    unsigned request; /* that made the change */
    bool made;        /* the change added the class */
};
/* How many: 0 to 2. */
unsigned qos_journal_touches(const struct qos *q, size_t i, struct journal_touch out[2]);

/* The class, if change i set its values or its place and it is still there; NULL. */
const struct qos_class *qos_journal_rated(const struct qos *q, size_t i,
                                          const struct model_port **p, unsigned *request);

/* Takes back what came after the mark, and forgets what was planned since. */
struct txn_mark {
    size_t changes, ops, undo;
};
struct txn_mark qos_txn_mark(const struct qos *q);
void qos_txn_rollback(struct qos *q, struct txn_mark mark);

/* The end of a request: the effective rates that it planned become the model's. */
int qos_txn_request_done(struct qos *q, struct qos_error *e);

/* Carries out the plan, then notifies the packet side; or takes everything back.  *at (may be
 * NULL): the request that was refused. */
int qos_txn_commit(struct qos *q, unsigned *at, struct qos_error *e);
/* The kernel has done all of it. */
void qos_txn_keep(struct qos *q);
void qos_txn_abort(struct qos *q);

#endif
