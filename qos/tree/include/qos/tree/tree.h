/* SPDX-License-Identifier: Apache-2.0 */
/* The model's data: ports, their classes, the configuration of both.  No change made here can be
 * taken back: requests change the model through journal.h. */
#ifndef QOS_TREE_TREE_H
#define QOS_TREE_TREE_H

#include <qos/kernel/port.h>

struct qos;

/* Values without the slots that aren't set: a port may have 61423 classes. */
struct packed {
    struct qos_slots set;
    uint64_t v[];
};

/* A class, and the classless scheduler below it, if any. */
struct qos_class {
    uint32_t id;
    uint8_t depth;     /* the root class's is 0 */
    bool follows;      /* root and default class: the switch chose the values itself */
    uint32_t notified; /* the skb->priority of the queue's packets that the packet side knows; 0: no
                        * such queue */
    struct qos_class *parent, *child, *next, *prev; /* children: a list; the lowest id is first */
    uint64_t created;                               /* qos_now_ns: since when the kernel counts */
    uint64_t rate, ceil;                            /* as the kernel has them, bit/s */
    uint64_t promised;                              /* its children's rates (promised.h) */
    struct packed *config;                          /* as requested */
    const struct qos_sched *leaf;
    struct packed *leaf_config;
    bool leaf_second; /* the leaf has the second of its two handles (kernel.h) */
    bool leaf_own;    /* the switch put it there itself (own-leaf.h) */
    uint32_t mark;    /* scratch of dump.c, sample.c, adopt.c, foreign.c */
};

/* One direction of a port; or a tree below a transmit queue of its root, which lives and looks like a
 * port's own tree, but elsewhere (trees.h). */
struct model_port {
    struct model_port *next;
    enum qos_direction dir;
    uint32_t band;        /* the transmit queue that the tree is below, from 1; 0: none */
    struct qos_port info; /* QOS_IN: ifindex and name are the shaper's `tx` */
    char *name;
    struct model_port *out;   /* QOS_IN: the other direction; of a tree: the port */
    struct qos_shaper shaper; /* QOS_IN: tx_ifindex 0 while there is none */
    bool shaper_notified;
    const struct qos_sched *sched; /* the port's root: with classes (a tree) or without; or NULL */
    struct packed *config;         /* of the root; of a tree: NULL, or OFFLOAD */
    uint32_t place;      /* parent of the root: QOS_PARENT_ROOT, a class that somebody else made
                         * (place.h), or the transmit queue */
    bool other_root;     /* another program's root qdisc is there, with no place for ours */
    bool second;         /* a classless root has the second of its two handles */
    bool absent;         /* the interface is gone: only the model is left */
    bool keep;           /* the tree was requested itself: it stays when its last queue goes */
    bool seen;           /* what was there before the switch has been adopted */
    bool planned;        /* until the commit the kernel still has another root */
    uint32_t default_id; /* as requested; 0: the switch's own */
    uint32_t notified_default;     /* what the packet side knows: the default class */
    uint64_t notified_limit;       /* and its limit, bit/s */
    struct qos_class *root, *dflt; /* bands and tins have no default class */
    struct qos_class **pages[256]; /* queues, by the high and the low byte of their ids */
    uint32_t n_queues;
    struct qos_foreign_counts foreign;
};

/* Does it have classes: those of a tree, bands or tins? */
static inline bool
qos_port_has_tree(const struct model_port *p)
{
    return p->root != NULL;
}

/* The handle of a root with classes or bands here; is it this root, or one of its classes? */
static inline uint32_t
qos_tree_handle(const struct model_port *p, const struct qos_sched *root)
{
    return root->tx_queues ? QOS_HANDLE_TX_QUEUES : QOS_HANDLE_BAND(p->band);
}

static inline bool
qos_in_tree(const struct model_port *p, uint32_t handle)
{
    return handle >> 16 == qos_tree_handle(p, p->sched) >> 16;
}

/* The id that requests and answers have for it: a tree's root class is the transmit queue's. */
static inline uint32_t
qos_shown_id(const struct model_port *p, uint32_t id)
{
    return id == QOS_CLASS_ROOT ? p->band : id;
}

/* Is its tree in the interface's hardware? */
bool qos_port_offloads(const struct model_port *p);

/* Is the class an object of the kernel's that requests make?  The root class of a flat scheduler
 * exists in the model only; bands and tins come and go with their
 * qdisc. */
static inline bool
qos_class_is_made(const struct qos_sched *s, uint32_t id)
{
    return !qos_sched_parts(s) && !(s->flat && id == QOS_CLASS_ROOT);
}

/* Classes' marks: the root class 0, the default class 1, queues from 2 on in order of their ids. */
void qos_classes_number(struct model_port *p);

struct packed *qos_packed_new(const struct qos_values *v); /* NULL: no memory */
/* Is the slot set?  Then *v is its value. */
bool qos_packed_find(const struct packed *p, unsigned slot, uint64_t *v);
/* p NULL: no value is set. */
void qos_packed_get(const struct packed *p, struct qos_values *v);

/* NULL: no such port, or (QOS_IN) nothing in that direction. */
struct model_port *qos_port_find(struct qos *q, uint32_t port_no);
struct model_port *qos_port_find_dir(struct qos *q, uint32_t port_no, enum qos_direction dir);
/* OFPSFC_BAD_PORT, and why no queues are found at it. */
int qos_port_missing(uint32_t port_no, struct qos_error *e);

/* The trees below a port's transmit queues, in their order: the first one after `p`, the port or one of
 * its trees; that below this transmit queue; that which has the queue.  NULL: none. */
struct model_port *qos_band_next(const struct model_port *p);
struct model_port *qos_band_find(const struct model_port *p, uint32_t band);
struct model_port *qos_band_with(const struct model_port *p, uint32_t id);

/* The first one, where packets without a queue go; or the port itself. */
const struct model_port *qos_band_plain(const struct model_port *p);

/* Has the class others below it, so that no packet waits in it? */
bool qos_class_is_inner(const struct model_port *p, const struct qos_class *c);

/* Frees all classes and the root's settings: the port then has nothing. */
void qos_port_free_tree(struct model_port *p);

uint64_t qos_now_ns(void); /* CLOCK_MONOTONIC */

/* A class with this configuration, in no tree yet.  NULL: no memory. */
struct qos_class *qos_class_new(uint32_t id, const struct qos_values *config);
void qos_class_free(struct qos_class *c);

/* A queue by id, or the root or default class; NULL. */
struct qos_class *qos_class_find(const struct model_port *p, uint32_t id);

/* The queue with the lowest id above `after` (0: the first); NULL at the end. */
struct qos_class *qos_class_next(const struct model_port *p, uint32_t after);

/* Makes room for this id, so that qos_class_link cannot fail.  -ENOMEM. */
int qos_class_reserve(struct model_port *p, uint32_t id);
/* Into the tree (parent NULL: as the root class); out of it (it must have no children). */
void qos_class_link(struct model_port *p, struct qos_class *c, struct qos_class *parent);
void qos_class_unlink(struct model_port *p, struct qos_class *c);
/* Of a class that may be in a tree. */
void qos_class_set_rates(struct qos_class *c, uint64_t rate, uint64_t ceil);

#endif
