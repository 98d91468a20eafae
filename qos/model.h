/* SPDX-License-Identifier: Apache-2.0 */
/* Inside qos/: the model and the plan. */
#ifndef QOS_MODEL_H
#define QOS_MODEL_H

#include <qos/qos.h>

#define QOS_DEPTH_MAX 7 /* levels below the root class (TC_HTB_MAXDEPTH is 8) */
#define QOS_SPEED_DEFAULT 10000000000ull

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
    struct klass *parent, *child, *next, *prev; /* children form a list */
    uint64_t created;                           /* CLOCK_MONOTONIC, ns */
    uint64_t rate, ceil;                        /* as the kernel has them, bit/s */
    struct packed *config;                      /* as asked for */
    const struct qos_sched *leaf;
    struct packed *leaf_config;
    uint32_t mark; /* scratch of dump.c and adopt.c */
};

struct port {
    struct port *next;
    struct qos_port info;
    char *name;
    const struct qos_sched *sched; /* of the port's root: class-bearing (the tree) or not; NULL */
    struct packed *config;         /* of a classless one */
    bool away;                     /* without an interface: the model is all there is */
    bool keep;                     /* the tree was asked for: it stays without queues */
    uint32_t default_id;           /* asked for; 0: the switch's own */
    struct klass *root, *dflt; /* bands have no default class */
    struct klass **pages[256]; /* queues: by the high and the low byte of their ids */
    uint32_t n_queues;
};

struct qos {
    struct qos_kernel *kernel;
    struct qos_events events;
    struct port *ports;
};

/* Has it classes: of a tree, or bands? */
static inline bool
port_has_tree(const struct port *p)
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

struct packed *packed_new(const struct qos_values *v); /* NULL: no memory */
void packed_get(const struct packed *p, struct qos_values *v); /* p may be NULL: nothing set */

struct port *port_find(struct qos *q, uint32_t port_no);

/* A class of its own, with this configuration; NULL: no memory. */
struct klass *klass_new(uint32_t id, const struct qos_values *config);
void klass_free(struct klass *c);

/* A queue by id, or the root or default class; NULL. */
struct klass *klass_find(const struct port *p, uint32_t id);

/* Room for this id, so that klass_attach cannot fail.  -ENOMEM. */
int klass_reserve(struct port *p, uint32_t id);
/* Into the tree (parent NULL: the root class). */
void klass_attach(struct port *p, struct klass *c, struct klass *parent);
/* Out of the tree (it has no children) and freed. */
void klass_remove(struct port *p, struct klass *c);
/* All of them, the root scheduler and its settings. */
void port_reset(struct port *p);

/* Queues in order of id: the first above `after` (0 to begin); NULL at the end. */
struct klass *klass_next(const struct port *p, uint32_t after);

/* What resolving depends on below this class (NULL: at the port's root). */
struct qos_env port_env(const struct port *p, const struct klass *parent);

/* Where packets without a queue go. */
uint32_t port_default(const struct port *p);

/* Tells the packet side. */
void tell_queue(struct qos *q, const struct port *p, uint32_t id, bool present);
void tell_default(struct qos *q, const struct port *p);
/* That all queues and the tree are gone; before they are freed. */
void tell_all_gone(struct qos *q, struct port *p);

/* ----------------------------------------------------------------- plan.c */

/* Operations in order; each has a list of operations that undo it.  Also what classes' effective
 * rates become on success. */
struct plan {
    struct qos_op *ops, *undo;
    size_t n, cap, n_undo, cap_undo;
    size_t *undo_at; /* of each op: where its undo list begins */
    size_t cap_at;
    struct {
        struct klass *c;
        uint64_t rate, ceil;
    } *rates;
    size_t n_rates, cap_rates;
    bool nomem;
};

void plan_free(struct plan *plan);

/* Appends an operation; appends to the undo list of the last one. */
void plan_do(struct plan *plan, const struct qos_op *op);
void plan_undo(struct plan *plan, const struct qos_op *op);
void plan_rate(struct plan *plan, struct klass *c, uint64_t rate, uint64_t ceil);

/* Carries it out; where that fails, undoes what was done, last first.  Frees the plan; on success
 * the effective rates are committed. */
int plan_run(struct qos *q, struct plan *plan, struct qos_error *e);

/* ----------------------------------------------------------------- ops.c */

struct qos_op op_class(const struct port *p, unsigned kind, const struct qos_sched *sched,
                       uint32_t id, uint32_t parent_id, const struct qos_values *resolved);
/* The qdisc below class `id`, or the classless root (id 0). */
struct qos_op op_leaf(const struct port *p, unsigned kind, uint32_t id,
                      const struct qos_sched *sched, const struct qos_values *resolved);
/* The tree's qdisc, or deleting the port's root whatever it is. */
struct qos_op op_tree(const struct port *p, unsigned kind, const struct qos_sched *sched,
                      uint32_t default_id);
struct qos_op op_root_del(const struct port *p);

/* Resolved values of a class with this configuration below this parent (NULL: of the root). */
void class_values(const struct port *p, const struct klass *parent,
                  const struct qos_sched *sched, const struct qos_values *config,
                  struct qos_values *out);
/* The switch's own choice for the root class; for the default class below a root of this rate. */
void root_config(const struct port *p, const struct qos_sched *sched, struct qos_values *out);
void default_config(const struct qos_sched *sched, uint64_t root_rate, uint64_t root_ceil,
                    struct qos_values *out);

/* A class's configuration, the switch's own choice where it follows. */
void klass_config(const struct port *p, const struct klass *c, struct qos_values *out);

/* As operations, by `put` (plan_do or plan_undo): a class and what hangs below it, top-down; the
 * port's root as it is. */
typedef void plan_put(struct plan *plan, const struct qos_op *op);
void put_class(struct plan *plan, plan_put *put, const struct port *p, const struct klass *c);
void put_classes(struct plan *plan, plan_put *put, const struct port *p, const struct klass *c);
void put_port(struct plan *plan, plan_put *put, const struct port *p);

/* -------------------------------------------------------------- default.c */

/* What port_default() will be when class `gone` and all below it have gone (NULL: none has) and
 * class `id` has come below `parent` (NULL: none has). */
uint32_t default_after(const struct port *p, const struct klass *gone, const struct klass *parent,
                       uint32_t id);
/* The kernel's default class, where it can be changed in place, becomes `after`.  To be called
 * before and after the operations that make classes come and go: `last` tells which it is. */
void plan_default(struct plan *plan, const struct port *p, uint32_t after, bool last);
/* What a tree of this kind is told when this default class was asked for. */
uint32_t default_told(const struct port *p, const struct qos_sched *sched, uint32_t default_id);

/* ---------------------------------------------------------------- bands.c */

#define QOS_BANDS_MAX 16

/* Bands that are about to be there. */
struct new_bands {
    unsigned n; /* 0: it is not about bands */
    struct klass *root, *band[QOS_BANDS_MAX + 1];
    struct klass **page;
};

/* What the port needs for n bands and doesn't have; `fresh`: or won't have.  -ENOMEM. */
int bands_new(const struct port *p, bool fresh, unsigned n, struct new_bands *b);
void bands_free(struct new_bands *b);
/* Puts them into the model, and takes out those above.  Empties *b. */
void bands_commit(struct qos *q, struct port *p, struct new_bands *b);

/* ------------------------------------------------------- tree.c, leaf.c */

/* Is the kernel's root qdisc nobody's?  Else OFPSFC_BUSY. */
int port_root_free(struct qos *q, const struct port *p, struct qos_error *e);

int execute_tree(struct qos *q, struct port *p, const struct qos_request *r, struct qos_error *e);
int execute_class(struct qos *q, struct port *p, const struct qos_request *r, struct qos_error *e);
int execute_leaf(struct qos *q, struct port *p, const struct qos_request *r, struct qos_error *e);

/* The class's configuration becomes this: operations for it and all shares below. */
int plan_class_change(struct plan *plan, struct port *p, struct klass *c,
                      const struct qos_values *config, struct qos_error *e);

/* Removes what we have on these ports (all of q's where p is NULL). */
int clear_ports(struct qos *q, struct port *p, struct qos_error *e);

/* adopt.c: makes the model what the kernel has. */
int port_adopt(struct qos *q, struct port *p, struct qos_error *e);

#endif
