/* SPDX-License-Identifier: Apache-2.0 */
/* Inside qos/model/: the model and the plan. */
#ifndef QOS_MODEL_INSIDE_H
#define QOS_MODEL_INSIDE_H

#include <qos/model/model.h>

/* Values without the slots that aren't set: a port may have 61423 classes. */
struct packed {
    uint64_t set;
    uint64_t v[];
};

/* A class and the classless scheduler below it, if any. */
struct klass {
    uint32_t id;
    uint8_t depth; /* the root's is 0 */
    bool follows;  /* root and default class: values are the switch's own choice */
    bool told;     /* the packet side knows it as a queue */
    struct klass *parent, *child, *next, *prev; /* children form a list */
    uint64_t created;                           /* CLOCK_MONOTONIC, ns */
    uint64_t rate, ceil;                        /* as the kernel has them, bit/s */
    struct packed *config;                      /* as asked for */
    const struct qos_sched *leaf;
    struct packed *leaf_config;
    bool leaf_second; /* it has the second of its two handles */
    uint32_t mark;    /* scratch of dump.c and adopt.c */
};

/* One direction of a port. */
struct model_port {
    struct model_port *next;
    enum qos_direction dir;
    struct qos_port info; /* of QOS_IN: ifindex and name are the shaper's `tx` */
    char *name;
    struct model_port *out;   /* of QOS_IN: the other direction */
    struct qos_shaper shaper; /* of QOS_IN: tx_ifindex 0 while there is none */
    bool shaper_told;
    const struct qos_sched *sched; /* of the port's root: class-bearing (the tree) or not; NULL */
    struct packed *config;         /* of a classless one */
    uint32_t place;                /* where its root is: QOS_PARENT_ROOT, or below a class of
                                    * somebody else's (place.c) */
    bool second;                   /* a classless root has the second of its two handles */
    bool away;                     /* without an interface: the model is all there is */
    bool keep;                     /* the tree was asked for: it stays without queues */
    bool planned;                  /* its root is another than the kernel's until the commit */
    uint32_t default_id;           /* asked for; 0: the switch's own */
    uint32_t told_default;         /* what the packet side knows, */
    uint64_t told_most;            /* and that this has such a limit */
    struct klass *root, *dflt;     /* bands have no default class */
    struct klass **pages[256];     /* queues: by the high and the low byte of their ids */
    uint32_t n_queues;
    struct qos_foreign_counts foreign;
};

/* ------------------------------------------------------------------ plan.c */

/* When an operation is carried out (order.c): after those that undo brings back whole, as nothing that
 * comes after it is likely to be refused. */
enum plan_rank { PLAN_FIRST, PLAN_LATE, PLAN_LAST, PLAN_RANKS };

/* Operations in order; each has a list of operations that undo it, and the request it is for.
 * Also what classes' effective rates become at the end of the request. */
struct plan {
    struct qos_op *ops, *undo;
    struct step {
        size_t undo_at, n_undo; /* its undo list (n_undo: when all is planned) */
        unsigned request;
        uint8_t rank; /* enum plan_rank */
    } * steps;
    size_t n, cap, cap_steps, n_undo, cap_undo;
    struct new_rate {
        struct model_port *p;
        struct klass *c;
        uint64_t rate, ceil;
    } * rates;
    size_t n_rates, cap_rates;
    unsigned request;
    bool nomem;
    struct run {        /* how far the kernel has been told */
        uint8_t *state; /* of each operation (enum qos_op_state); NULL: not begun */
        size_t at;      /* the operations before this one were tried, or are still to be undone */
        size_t undone;  /* of the undo list of the last of these */
        bool undoing;
        int err;
    } run;
};

/* ---------------------------------------------------------------- journal.c */

struct change;

/* What is being done: the kernel will be told `plan`; the model has been changed already. */
struct txn {
    bool open;
    bool many;                        /* of several requests (qos_begin) */
    const struct model_port *follows; /* its link's speed, that was this; or NULL */
    uint64_t old_speed;
    struct plan plan;
    struct change *v;
    size_t n, cap;
};

/* catch-up.c: a port follows its interface, one transaction after another. */
struct catch_up {
    uint32_t port_no;
    const struct stage *at, *end;
    bool open;   /* the stage's transaction: the kernel is to be told */
    bool failed; /* this direction has not got its queues back */
    struct qos_port now;
    struct follows {
        uint32_t mtu, txqueuelen;
        uint64_t speed;
    } was[2]; /* of each direction */
    int err;  /* the first */
    struct qos_error e;
};

struct qos {
    struct qos_kernel *kernel;
    struct qos_events events;
    struct model_port *ports; /* by number; of one, QOS_OUT before QOS_IN */
    enum qos_foreign policy;
    struct txn txn;
    struct catch_up catch_up;
};

/* Has it classes: of a tree, or bands? */
static inline bool
port_has_tree(const struct model_port *p)
{
    return p->root != NULL;
}

/* Of a flat kind the root class is the model's alone; bands are there with their qdisc. */
static inline bool
class_is_made(const struct qos_sched *s, uint32_t id)
{
    return !s->bands && !(s->flat && id == QOS_CLASS_ROOT);
}

/* ---------------------------------------------------------------- model.c */

struct packed *packed_new(const struct qos_values *v);         /* NULL: no memory */
void packed_get(const struct packed *p, struct qos_values *v); /* p may be NULL: nothing set */

/* The port; a direction of it (QOS_IN is there only while it has something). */
struct model_port *port_find(struct qos *q, uint32_t port_no);
struct model_port *port_find_dir(struct qos *q, uint32_t port_no, enum qos_direction dir);

/* A class of its own, with this configuration; NULL: no memory. */
struct klass *klass_new(uint32_t id, const struct qos_values *config);
void klass_free(struct klass *c);

/* A queue by id, or the root or default class; NULL. */
struct klass *klass_find(const struct model_port *p, uint32_t id);

/* Room for this id, so that klass_link cannot fail.  -ENOMEM. */
int klass_reserve(struct model_port *p, uint32_t id);
/* Into the tree (parent NULL: the root class); out of it (it has no children). */
void klass_link(struct model_port *p, struct klass *c, struct klass *parent);
void klass_unlink(struct model_port *p, struct klass *c);
/* Frees all classes and the root's settings; they become those of a port that has nothing. */
void port_free_tree(struct model_port *p);

/* Queues in order of id: the first above `after` (0 to begin); NULL at the end. */
struct klass *klass_next(const struct model_port *p, uint32_t after);

/* What resolving depends on below this class (NULL: at the port's root). */
struct qos_env port_env(const struct model_port *p, const struct klass *parent);

/* Where packets without a queue go. */
uint32_t port_default(const struct model_port *p);

/* Tells the packet side: of a class (of queues alone), of it and all below it, of where packets
 * without a queue go if that is another place or limit than it knows. */
void tell_queue(struct qos *q, const struct model_port *p, struct klass *c, bool present);
void tell_below(struct qos *q, const struct model_port *p, struct klass *c);
void tell_default(struct qos *q, struct model_port *p);
/* That all queues are there (present), or that they and the tree are gone. */
void tell_all(struct qos *q, struct model_port *p, bool present);

/* ---------------------------------------------------------------- journal.c */

/* Every change of the model goes through these, so that it can be taken back; all answer 0 or
 * -ENOMEM, and then have changed nothing.  What they take the place of is freed at the commit. */
int class_attach(struct qos *q, struct model_port *p, struct klass *c,
                 struct klass *parent);                                 /* owns c */
int class_detach(struct qos *q, struct model_port *p, struct klass *c); /* without children */
int class_detach_all(struct qos *q, struct model_port *p,
                     struct klass *c); /* and what is below it */
int class_move(struct qos *q, struct model_port *p, struct klass *c, struct klass *parent);
int class_configure(struct qos *q, struct model_port *p, struct klass *c,
                    const struct qos_values *config, bool follows);
int class_set_leaf(struct qos *q, struct model_port *p, struct klass *c,
                   const struct qos_sched *leaf, const struct qos_values *config, bool second);
int class_set_rates(struct qos *q, struct model_port *p, struct klass *c, uint64_t rate,
                    uint64_t ceil);
/* The root's settings; config NULL: none. */
int port_set_root(struct qos *q, struct model_port *p, const struct qos_sched *sched,
                  const struct qos_values *config, uint32_t default_id, bool keep);
int port_clear(struct qos *q, struct model_port *p); /* everything that it has */
int port_shape(struct qos *q, struct model_port *p, const struct qos_shaper *s); /* a new shaper */

void txn_begin(struct qos *q, bool many);
/* Takes back what came after the mark; forgets what was planned since. */
struct txn_mark {
    size_t changes, ops, undo;
};
struct txn_mark txn_mark(const struct qos *q);
void txn_rollback(struct qos *q, struct txn_mark mark);
/* The end of a request: effective rates that it planned become the model's. */
int txn_request_done(struct qos *q, struct qos_error *e);
/* Tells the kernel, then the packet side; or takes everything back.  *at (may be NULL): the request
 * that was refused. */
int txn_commit(struct qos *q, unsigned *at, struct qos_error *e);
/* The kernel has agreed to all of it: tells the packet side. */
void txn_keep(struct qos *q);
void txn_abort(struct qos *q);

/* ------------------------------------------------------------------ plan.c */

void plan_free(struct plan *plan);
void plan_truncate(struct plan *plan, size_t ops, size_t undo);

/* Appends an operation; appends to the undo list of the last one. */
void plan_do(struct plan *plan, const struct qos_op *op);
void plan_undo(struct plan *plan, const struct qos_op *op);
/* The last one isn't carried out when its kind of operation is. */
void plan_rank(struct plan *plan, enum plan_rank rank);
void plan_rate(struct plan *plan, struct model_port *p, struct klass *c, uint64_t rate,
               uint64_t ceil);

/* What is there must go before this one can come: has the kernel it?  Else OFPSFC_UNSUPPORTED. */
int kernel_needs(struct qos *q, const struct qos_sched *s, struct qos_error *e);

/* Carries it out; where that fails, undoes what was done, last first: *at is the request. */
int plan_run(struct qos *q, unsigned *at, struct qos_error *e);
/* The same in steps of up to `most` operations; where it fails at last, plan->run.err says why. */
enum qos_progress plan_step(struct qos *q, size_t most, unsigned *at, struct qos_error *e);
/* What was done is to be undone by the next steps. */
void plan_revert(struct plan *plan);

/* --------------------------------------------------------------- order.c */

/* By rank where nothing forbids it.  -ENOMEM. */
int plan_order(struct plan *plan);

/* ----------------------------------------------------------------- ops.c */

struct qos_op op_class(const struct model_port *p, unsigned kind, const struct qos_sched *sched,
                       uint32_t id, uint32_t parent_id, const struct qos_values *resolved);
/* Of a classless root that is, or will be, the port's. */
static inline uint32_t
root_handle(const struct model_port *p)
{
    return p->second ? QOS_HANDLE_ROOT_2 : QOS_HANDLE_ROOT;
}

/* The qdisc below class `id`, or the classless root (id 0). */
struct qos_op op_leaf(const struct model_port *p, unsigned kind, uint32_t id,
                      const struct qos_sched *sched, const struct qos_values *resolved);
/* The tree's qdisc, or deleting the port's root whatever it is. */
struct qos_op op_tree(const struct model_port *p, unsigned kind, const struct qos_sched *sched,
                      uint32_t default_id);
struct qos_op op_root_del(const struct model_port *p);

/* Resolved values of a class with this configuration below this parent (NULL: of the root). */
void class_values(const struct model_port *p, const struct klass *parent,
                  const struct qos_sched *sched, const struct qos_values *config,
                  struct qos_values *out);
/* The switch's own choice for the root class; for the default class below a root of this rate. */
void root_config(const struct model_port *p, const struct qos_sched *sched, struct qos_values *out);
void default_config(const struct qos_sched *sched, uint64_t root_rate, uint64_t root_ceil,
                    struct qos_values *out);

/* A class's configuration, the switch's own choice where it follows; and resolved. */
void klass_config(const struct model_port *p, const struct klass *c, struct qos_values *out);
void klass_values(const struct model_port *p, const struct klass *c, struct qos_values *out);

/* A classless scheduler's values, resolved, with this configuration below class c (NULL: as the
 * port's root). */
void leaf_values(const struct model_port *p, const struct klass *c, const struct qos_sched *sched,
                 const struct qos_values *config, struct qos_values *out);
/* Configuration and resolved values of the one that is there. */
void klass_leaf(const struct model_port *p, const struct klass *c, struct qos_values *config,
                struct qos_values *out);

/* As operations, by `put` (plan_do or plan_undo): a class and what hangs below it, top-down; the
 * port's root as it is. */
typedef void plan_put(struct plan *plan, const struct qos_op *op);
void put_class(struct plan *plan, plan_put *put, const struct model_port *p, const struct klass *c);
void put_classes(struct plan *plan, plan_put *put, const struct model_port *p,
                 const struct klass *c);
/* (kind: how its root is added, an enum qos_op_kind) */
void put_port(struct plan *plan, plan_put *put, const struct model_port *p, unsigned kind);

/* -------------------------------------------------------------- default.c */

/* What port_default() will be when class `gone` and all below it have gone (NULL: none has) and
 * class `id` has come below `parent` (NULL: none has). */
uint32_t default_after(const struct model_port *p, const struct klass *gone,
                       const struct klass *parent, uint32_t id);
/* The kernel's default class becomes `after`.  To be called
 * before and after the operations that make classes come and go: `last` tells which it is. */
void plan_default(struct plan *plan, const struct model_port *p, uint32_t after, bool last);
/* From one to another at once. */
void plan_default_to(struct plan *plan, const struct model_port *p, uint32_t before,
                     uint32_t after);
/* What the kernel is told when this default class was asked for; 0: the switch's own. */
uint32_t default_told(const struct model_port *p, uint32_t default_id);

/* ---------------------------------------------------------------- bands.c */

/* The port, whose root they are, has this many: makes those that it lacks and takes out those
 * above.  -ENOMEM. */
int bands_set(struct qos *q, struct model_port *p, unsigned n);

/* ------------------------------------------------------- class-change.c */

/* Whether its scheduler takes what was given and what that comes to. */
int class_check(const struct qos_sched *sched, const struct qos_values *resolved,
                const struct qos_values *given, struct qos_error *e);

/* The class's configuration becomes this: operations for it and all shares below. */
int plan_class_change(struct qos *q, struct model_port *p, struct klass *c,
                      const struct qos_values *config, struct qos_error *e);

/* ------------------------------------------------------- tree.c, leaf.c */

/* Is the kernel's root qdisc nobody's?  Else OFPSFC_BUSY, unless `replace` (not NULL) is to take its
 * place: then *kind is how that is added (an enum qos_op_kind). */
int port_root_free(struct qos *q, const struct model_port *p, const struct qos_sched *replace,
                   unsigned *kind, struct qos_error *e);
/* Is it still the one we put there (or is about to be)? */
bool port_root_ours(struct qos *q, const struct model_port *p);

int execute_tree(struct qos *q, struct model_port *p, const struct qos_request *r,
                 struct qos_error *e);
int execute_class(struct qos *q, struct model_port *p, const struct qos_request *r,
                  struct qos_error *e);
int execute_leaf(struct qos *q, struct model_port *p, const struct qos_request *r,
                 struct qos_error *e);

/* One without classes in the place of another below class c (NULL: at the root): at once, and not at
 * all if it is refused.  Which of its two handles it gets then. */
bool plan_exchange(struct plan *plan, const struct model_port *p, const struct klass *c,
                   const struct qos_sched *sched, const struct qos_values *old,
                   const struct qos_values *now);
/* Can the kernel make a scheduler out of another of its kind? */
bool leaf_changeable(const struct qos_sched *sched, const struct qos_values *from,
                     const struct qos_values *to);

/* Removes what we have on the port. */
int clear_port(struct qos *q, struct model_port *p, bool undo);

/* place.c: looks where the port's root is.  Where the interface's root is somebody else's, and he
 * has put a tree like ours below a class of his (1: with 1:ffff and 1:fffe, as Mininet does), it is
 * the port's; and so is its place from then on, also while nothing is there. */
int port_find_place(struct qos *q, struct model_port *p, struct qos_error *e);

/* adopt.c: makes the model what the kernel has. */
int port_adopt(struct qos *q, struct model_port *p, struct qos_error *e);

/* follow.c: the port gets this MTU and txqueuelen; what they change is planned, and the transaction
 * left open.  After an error there is none, and the port is as it was. */
int plan_mtu(struct qos *q, struct model_port *p, const struct qos_port *now, struct qos_error *e);

/* What somebody else's kernel objects are, read at once. */
struct found {
    struct qos_object *v;
    size_t n, cap;
    bool nomem;
};
/* A qos_object_fn whose context is one of these. */
void found_add(void *ctx, const struct qos_object *o);
/* A tree's classes and the interface's qdiscs.  The caller frees v of both, also after an error. */
int found_tree(struct qos *q, const struct model_port *p, struct found *classes,
               struct found *qdiscs, struct qos_error *e);

/* Likewise, of the classless scheduler below class c (NULL: at the root); false: it is another. */
bool leaf_as_told(struct qos *q, const struct model_port *p, const struct klass *c,
                  const struct qos_object *o);

/* foreign.c: counts what is otherwise in the kernel than in the model, and puts it right where
 * `repair`.  The kernel's error; OFPSFC_BUSY: somebody else has the root. */
int port_compare(struct qos *q, struct model_port *p, bool repair, struct qos_error *e);

/* Has the kernel what it was told?  `inner`: of a class that has classes below it.  What is otherwise
 * is put into *differ (NULL: doesn't matter). */
bool told_same(struct qos *q, const struct qos_sched *s, bool inner, const struct qos_values *told,
               const struct qos_object *o, struct qos_values *differ);

/* ports.c: the QOS_IN direction of a port: made where `make`, else NULL where there is none. */
struct model_port *port_in(struct qos *q, struct model_port *out, bool make);
/* With interfaces to wait in. */
int port_in_shape(struct qos *q, struct model_port *in, struct qos_error *e);
/* Tells the packet side of new shapers; removes those that have nothing to do. */
void shapers_tell(struct qos *q);
void shapers_reap(struct qos *q);
/* The packet side stops using it before it goes. */
void shaper_drop(struct qos *q, struct model_port *in, bool from_kernel);
/* Its interface is this one.  -ENOMEM. */
int port_set(struct model_port *p, const struct qos_port *info);
/* Of the QOS_IN direction what its own interface doesn't tell: mtu, speed. */
void port_follow(struct model_port *in);

/* catch-up.c: the interfaces in which it waits are made anew, with its queues. */
int catch_up_shaper(struct qos *q, struct model_port *in, struct qos_error *e);

#endif
