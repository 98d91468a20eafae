/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel operations in order, each with a list of operations that undo it.  Knows classes and ports
 * only as the owners of rates to be set. */
#ifndef QOS_TREE_PLAN_H
#define QOS_TREE_PLAN_H

#include <qos/kernel/port.h>

struct qos_class;
struct model_port;

/* When an operation is carried out (order.h).  What undo restores completely goes first. */
enum plan_rank { PLAN_FIRST, PLAN_LATE, PLAN_LAST, PLAN_RANKS };

struct plan {
    struct qos_op *ops, *undo;
    struct step {
        size_t undo_at, n_undo; /* its undo list (n_undo is set when all is planned) */
        unsigned request;       /* the request it is for */
        uint8_t rank;           /* enum plan_rank */
    } * steps;
    size_t n, cap, cap_steps, n_undo, cap_undo;
    struct new_rate { /* effective rates that classes get at the end of the request */
        struct model_port *p;
        struct qos_class *c;
        uint64_t rate, ceil;
    } * rates;
    size_t n_rates, cap_rates;
    unsigned request;
    bool nomem;
    struct run {        /* how far the kernel is */
        uint8_t *state; /* enum qos_op_state of each operation; NULL: not begun */
        size_t at;      /* the operations before this one were tried, or are still to be undone */
        size_t undone;  /* how much of the last one's undo list is done */
        bool undoing;
        int err;
    } run;
};

void qos_plan_free(struct plan *plan);
void qos_plan_truncate(struct plan *plan, size_t ops, size_t undo);

/* Appends an operation; appends to the undo list of the last one.  Without memory they set
 * plan->nomem. */
void qos_plan_do(struct plan *plan, const struct qos_op *op);
void qos_plan_undo(struct plan *plan, const struct qos_op *op);

/* Overrides the rank that the last operation has by its kind. */
void qos_plan_rank(struct plan *plan, enum plan_rank rank);

void qos_plan_rate(struct plan *plan, struct model_port *p, struct qos_class *c, uint64_t rate,
                   uint64_t ceil);

/* OFPSFC_UNSUPPORTED where the kernel has no such scheduler.  Ask before planning to delete what is
 * there to make room for it. */
int qos_kernel_needs(struct qos_kernel *k, const struct qos_sched *s, const struct qos_values *v,
                     struct qos_error *e);

/* Carries the plan out.  If an operation fails, undoes what was done, last first; *at is then the
 * request it was for. */
int qos_plan_run(struct plan *plan, struct qos_kernel *k, unsigned *at, struct qos_error *e);

/* The same in steps of up to `most` operations; after QOS_COMMIT_REFUSED plan->run.err is why. */
enum qos_progress qos_plan_step(struct plan *plan, struct qos_kernel *k, size_t most, unsigned *at,
                                struct qos_error *e);

/* For each of the plan's first n operations that the kernel has done, and each that undid them. */
typedef void plan_done(void *ctx, const struct qos_op *op);
void qos_plan_each_done(const struct plan *plan, size_t n, plan_done *fn, void *ctx);

/* One operation that nothing will undo, without a plan.  It takes no memory of its own. */
int qos_plan_now(struct qos_kernel *k, const struct qos_op *op, struct qos_error *e);

/* The next steps undo what was done. */
void qos_plan_revert(struct plan *plan);

#endif
