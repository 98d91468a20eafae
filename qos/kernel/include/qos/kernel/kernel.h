/* SPDX-License-Identifier: Apache-2.0 */
/* What the model asks of the kernel's traffic control.  qos/netlink/ does it by rtnetlink, tests by
 * a fake.
 *
 * Handles are the kernel's: major in the upper 16 bits, minor in the lower ones, host byte order.
 *
 * How a port's tree looks (docs/reference/qos-extension.md, "Queues and classes"):
 *
 *    qdisc htb 1: root            class 1:ffff (root), 1:fffe (default) and 1:q below it.  Its own
 *                                 default class is always 1:fffe: a filter selects another one, as
 *                                 for drr.
 *    qdisc hfsc 1: root           the same
 *    qdisc drr 1: root            class 1:fffe (default) and 1:q; drr has neither a root class nor
 *                                 a class below another.  A filter (u32, preference 65534) takes
 *                                 what selects no class, which drr would drop, to the default.
 *    qdisc prio, ets 1: root      its bands are 1:1, 1:2, ...  A filter (as above) that matches
 *                                 nothing marks it as ours.
 *    qdisc below class 1:q        handle (q + 0xf): -- 10: and up, so never 1: (the tree); or
 *                                 (q + 0xf) | 8000: if it replaced one with the first handle.  For
 *                                 queues from 7ff0 on, and for f44, whose first one is mq's, the
 *                                 kernel chooses it (8001: and up, in turn, so it may be another
 *                                 queue's second one).  That below 1:fffe has
 *                                 7fff: or 8000:.  It is changed and deleted by its parent, whatever
 *                                 its handle.  The kernel's own fifo of a class has no handle.
 *    qdisc mq, mqprio, taprio     handle f53:, which marks it as ours; its transmit queues are
 *    root                         f53:1, f53:2, ...  What isn't of the switch below one (the kernel
 *                                 needs something there) is reported without a handle.
 *    qdisc htb, hfsc below f53:t  handle (t + 1): from 2: to f:, with root and default class as
 *                                 above.  Its major is also that of its queues' skb->priority, by
 *                                 which a filter leads packets to the transmit queue t.  It is made
 *                                 and deleted as part of the qdisc's operation; a CHANGE makes it
 *                                 anew.
 *    qdisc cake 1: root           its tins are 1 to their number, so that a packet's priority names
 *                                 one.  A rate estimator marks it as ours.
 *    another classless root       handle f51:, or f52: if it replaced one with f51:; a rate
 *    estimator
 *                                 marks it as ours
 *
 * "Root" is the interface's, or below a class of somebody else's (struct model_port's `place`).
 */
#ifndef QOS_KERNEL_H
#define QOS_KERNEL_H

#include <qos/wire/entry.h>

#define QOS_HANDLE_TREE      0x00010000u
#define QOS_HANDLE_ROOT      0x0f510000u /* a classless scheduler that is the port's root, */
#define QOS_HANDLE_ROOT_2    0x0f520000u /* or that took the place of one */
#define QOS_HANDLE_TX_QUEUES 0x0f530000u
#define QOS_PARENT_ROOT      0xffffffffu /* TC_H_ROOT */
/* Of the tree below a transmit queue, 1 to QOS_TREES_MAX; 0: of the tree that is the port's root. */
#define QOS_HANDLE_BAND(band) (((band) + 1u) << 16)
#define QOS_TREES_MAX         14u
#define QOS_LEAF_HANDLE(q)                                                                         \
    (((q) + 0xfu) << 16 == QOS_HANDLE_TX_QUEUES ? 0                                                \
     : (q) < 0x7ff0u                            ? ((q) + 0xfu) << 16                               \
     : (q) == QOS_CLASS_DEFAULT                 ? 0x7fff0000u                                      \
                                                : 0)
#define QOS_LEAF_HANDLE_2(q)                                                                       \
    ((q) < 0x7ff0u ? ((q) + 0x800fu) << 16 : (q) == QOS_CLASS_DEFAULT ? 0x80000000u : 0)

static inline uint32_t
qos_minor(uint32_t handle)
{
    return handle & 0xffff;
}

/* Is it a qdisc that has classes of ours, or one of these?  (Leaves have handles from 10: on.) */
static inline bool
qos_handle_in_tree(uint32_t handle)
{
    return handle >> 16 >= 1 && handle >> 16 <= QOS_TREES_MAX + 1;
}

enum qos_op_kind {
    QOS_OP_QDISC_ADD,
    QOS_OP_QDISC_CHANGE,
    QOS_OP_QDISC_DEL,
    QOS_OP_QDISC_REPLACE, /* replaces what is there, which stays if it is refused */
    QOS_OP_CLASS_ADD,
    QOS_OP_CLASS_CHANGE,
    QOS_OP_CLASS_DEL,
};

/* A root qdisc 1: has QOS_DEFAULT among its values: the class of packets that select none; or, with
 * bands, 0xfffe, which only marks it as made by the switch.  If the kernel has no option for it, a
 * filter keeps it, which is made, changed and deleted as part of the same operation. */
struct qos_op {
    uint8_t kind; /* enum qos_op_kind */
    int ifindex;
    /* Of the qdisc (minor 0) or class.  0: the qdisc below `parent`; for a new one, the kernel
     * chooses. */
    uint32_t handle;
    uint32_t parent;
    const struct qos_sched *sched;
    struct qos_values values; /* resolved; of a DEL only a `named` scheduler's NAME counts */
};

/* HALF: an error, but the kernel has done a part of it, or its answer was lost.  So undo it. */
enum qos_op_state { QOS_OP_UNTRIED, QOS_OP_DONE, QOS_OP_REFUSED, QOS_OP_HALF };

static inline bool
qos_op_deletes(const struct qos_op *op)
{
    return op->kind == QOS_OP_QDISC_DEL || op->kind == QOS_OP_CLASS_DEL;
}

/* Can a port's root have this handle?  (A qdisc below a class may have a classless root's, too.) */
static inline bool
qos_handle_is_root(uint32_t handle)
{
    return handle == QOS_HANDLE_TREE || handle == QOS_HANDLE_TX_QUEUES ||
           handle == QOS_HANDLE_ROOT || handle == QOS_HANDLE_ROOT_2;
}

/* Is it about a port's root, or the root of a tree? */
static inline bool
qos_op_is_root(const struct qos_op *op)
{
    return qos_handle_is_root(op->handle) ||
           (qos_handle_in_tree(op->handle) && !qos_minor(op->handle));
}

/* About a tree below a transmit queue? */
static inline bool
qos_op_is_band_tree(const struct qos_op *op)
{
    return op->parent >> 16 == QOS_HANDLE_TX_QUEUES >> 16 && op->sched->classful &&
           op->handle == QOS_HANDLE_BAND(qos_minor(op->parent));
}

/* Must `before` have been acknowledged before `op` is tried?  If one is about a root it must, as a
 * root may take other objects along. */
static inline bool
qos_op_waits(const struct qos_op *before, const struct qos_op *op)
{
    return qos_op_is_root(before) || qos_op_is_root(op) ||
           qos_op_deletes(before) != qos_op_deletes(op);
}

/* A tin of CAKE.  The kernel counts packets and bytes as they come, those that it drops later
 * included, and tells the bytes that wait, not the packets. */
struct qos_tin {
    struct qos_counters counters;
    uint64_t rate;              /* above which it gives way to others, bit/s */
    uint32_t delay_us, peak_us; /* how long packets waited: the average, the recent most */
};

/* Something the kernel has. */
struct qos_object {
    bool is_class;
    char kind[16];
    const struct qos_sched *sched; /* NULL: a kind we don't know */
    uint32_t handle;               /* 0: the kernel's default qdisc */
    uint32_t parent;
    uint32_t leaf;            /* of a class: handle of the qdisc below it */
    bool estimator;           /* it has a rate estimator: the switch's mark on a classless root */
    bool steered;             /* of a tree below a transmit queue: the filter is there */
    struct qos_values values; /* as far as they can be read back */
    struct qos_counters counters;
    bool has_delay; /* the scheduler itself says how long packets wait: */
    uint32_t delay_us;
    uint8_t n_tins; /* of a qdisc that has tins */
    struct qos_tin tins[QOS_TINS_MAX];
};

struct qos_kernel;

/* A veth pair in which what enters by an interface waits; the queues are on `tx`.  Of an interface whose packets are left
 * to the kernel (queues_only) it is an IFB, both ends in one: the kernel puts packets in and goes on with them. */
struct qos_shaper {
    int tx_ifindex, rx_ifindex;
    int from; /* of an IFB: the interface */
    char tx_name[16], rx_name[16];
};

/* Called for each object of a dump. */
typedef void qos_object_fn(void *ctx, const struct qos_object *o);

/* All answer 0 or an error and fill in *e: errnum, and the kernel's own words in its text.
 * errno becomes OFPSFC_PERM (EPERM, EACCES), OFPSFC_UNSUPPORTED (no such scheduler or option),
 * else OFPSFC_KERNEL. */
struct qos_kernel_ops {
    /* In order, many at once.  state[i] (QOS_OP_UNTRIED at first) gets the result of each; after a
     * refused one, those up to the next that waits may have been tried all the same.  Answers the
     * first error. */
    int (*apply)(struct qos_kernel *k, const struct qos_op *ops, size_t n, uint8_t *state,
                 struct qos_error *e);
    /* The qdisc at QOS_PARENT_ROOT or below a class; handle 0 where there is none. */
    int (*root)(struct qos_kernel *k, int ifindex, uint32_t parent, struct qos_object *out,
                struct qos_error *e);
    /* The interface's qdiscs; the classes of the qdisc with this handle. */
    int (*each_qdisc)(struct qos_kernel *k, int ifindex, qos_object_fn *fn, void *ctx,
                      struct qos_error *e);
    int (*each_class)(struct qos_kernel *k, int ifindex, uint32_t qdisc, qos_object_fn *fn,
                      void *ctx, struct qos_error *e);
    /* One of them; a qdisc by its parent. */
    int (*get_class)(struct qos_kernel *k, int ifindex, uint32_t handle, struct qos_object *out,
                     struct qos_error *e);
    int (*get_qdisc)(struct qos_kernel *k, int ifindex, uint32_t parent, struct qos_object *out,
                     struct qos_error *e);
    /* Is the value that the kernel has the one that it was given, as exactly as it keeps it?  NULL:
     * it keeps all as they are. */
    bool (*same)(struct qos_kernel *k, const struct qos_sched *sched, unsigned slot,
                 const struct qos_values *given, const struct qos_values *has);
    /* Does the running kernel have this scheduler (v: its values where it is a `named` one, or NULL),
     * or a module with it?  1, 0, -errno: unknown. */
    int (*has)(struct qos_kernel *k, const struct qos_sched *sched, const struct qos_values *v);
    /* A shaper's interfaces: makes them, finds those made before (-ENOENT), removes them. */
    int (*shaper_add)(struct qos_kernel *k, int ifindex, bool queues_only, struct qos_shaper *out,
                      struct qos_error *e);
    int (*shaper_find)(struct qos_kernel *k, int ifindex, bool queues_only, struct qos_shaper *out);
    void (*shaper_del)(struct qos_kernel *k, const struct qos_shaper *s);
    void (*free)(struct qos_kernel *k);
};

struct qos_kernel {
    const struct qos_kernel_ops *ops;
    /* For a log: called for each operation that was tried.  NULL: no log. */
    void (*observe)(void *ctx, const struct qos_op *op, enum qos_op_state state);
    void *observer;
};

/* Changes nothing.  1: the kernel has the scheduler (or can load it), 0: it hasn't, -errno: unknown
 * (-EPERM: without CAP_NET_ADMIN).  Of a `named` one without v: can there be such schedulers? */
static inline int
qos_kernel_has(struct qos_kernel *k, const struct qos_sched *sched, const struct qos_values *v)
{
    return k->ops->has(k, sched, v);
}

#endif
