/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of a switch's ports: one model, owned by the control thread (not thread-safe).
 *
 * A request is checked against the model and changes it; the kernel operations that this takes are
 * planned, each with its undo; the kernel carries them out; then the packet side is notified.  If
 * the kernel refuses, what was done is undone in reverse, and model and kernel are as they were.
 *
 * Decisions of this model:
 *  - A tree made because a class was requested goes away with the port's last queue; one requested
 *    by an HTB qdisc request or by setting the root class stays until it is deleted.  DEL of the
 *    HTB qdisc deletes the whole tree, as tc does; DEL of the root class (class_id 0) does the
 *    same, but is OFPSFC_BUSY while there are queues, unless WITH_CHILDREN.
 *  - SCHED_NONE DEL succeeds on a port that has nothing of ours.
 *  - A class with a classless scheduler can't get children, and a class with children can't get a
 *    scheduler (OFPSFC_BUSY): the kernel would drop the one or refuse the other.
 *  - CHANGE and REPLACE of what is there set fixed parameters and keep properties that are not
 *    given.  A share stays while the fixed rate is 0.
 *  - What the kernel can't change in place (SFQ; a class's parent) is deleted and added again, with
 *    what is below it.
 *  - DIRECTION 1 (what enters by a port) is a second tree, on an interface of its own (struct
 *    qos_shaper), which comes and goes with the tree.  Standard OpenFlow does not see it.
 *  - CEIL_SHARE_PPM is a share of the parent's ceil, RATE_SHARE_PPM of its rate; the root class's
 *    parent is the link, with its speed.
 *  - A port has either a classless scheduler at its root or a tree: OFPSFC_BUSY while there are
 *    queues.
 *
 * Queues of other kinds than HTB; a port's queues are all of one kind (else OFPSFC_BUSY):
 *  - HFSC: as HTB, with service curves for rates.  The port's root class has a link-sharing curve
 *    and an upper limit of the link's speed (10 Gbit/s if unknown; no upper limit above 34.36
 *    Gbit/s, the most that HFSC can count), the default class a link-sharing curve of a twentieth
 *    of it.  A class needs a real-time curve (rsc) or a link-sharing one (fsc), an upper limit
 *    (usc) needs a link-sharing one, a curve must rise, m1 lasts for a d above 0 (else
 *    OFPSFC_BAD_PARAM); a parent needs a link-sharing curve (OFPSFC_BAD_CLASS).  CHANGE sets the
 *    curves it gives; the kernel can't take one away.  For standard OpenFlow the least rate is m2
 *    of the real-time curve (else of the link-sharing one), the most that of the upper limit (else
 *    the parent's).
 *  - DRR: classes take turns.  There is no root class (class_id 0: OFPSFC_BAD_CLASS) and no class
 *    below another (PARENT other than 0: OFPSFC_UNSUPPORTED).  The default class has a quantum of a
 *    full frame.  Least rate 0, most the link's.  DRR drops what selects no class, so a last filter
 *    (the kernel's cls_u32) sends that to the default class.
 *  - The requested default class (the qdisc request's class_id) is in use while it is there and has
 *    no class below it; otherwise it is 0xfffe.
 *  - PRIO and ETS have no class requests (OFPSFC_BAD_SCHED).  As a port's root their bands are
 *    the queues 1 to BANDS (PRIO serves the first one first): set_queue selects them, a classless
 *    scheduler may be below each, OFPMP_QUEUE counts them; a QOS_DUMP lists the scheduler and what
 *    is below the bands, not the bands.  Packets without a queue, or with one that isn't there, go
 *    by the priomap.  Bands that a CHANGE removes take along what is below them.  Below a class
 *    PRIO and ETS are OFPSFC_UNSUPPORTED: nothing could choose a band there.
 *  - CAKE's tins are queues as bands are, where it is the port's root; nothing goes below them.
 */
#ifndef QOS_MODEL_H
#define QOS_MODEL_H

#include <qos/kernel/port.h>
#include <qos/wire/entry.h>

struct qos;

void qos_set_foreign(struct qos *q, enum qos_foreign policy);

/* A classless scheduler for each class without one: queues and default classes of HTB, HFSC and DRR
 * that requests make or set from now on (NULL: the kernel's own FIFO, as at first).  Its values follow what
 * a class promises (DELAY_US); where the kernel hasn't it, or it can't keep a delay that short, such a class
 * gets a bfifo.  It comes when the class's own scheduler or last child goes, and gives way to them.  Dumps don't
 * list it: its drops and marks are in the class's counters.  Adoption takes a scheduler with its values for it.
 * -EOPNOTSUPP: the kernel hasn't it; -ENOMEM. */
int qos_set_leaf(struct qos *q, const struct qos_sched *sched, const struct qos_values *config);

typedef void qos_tree_fn(void *ctx, const struct qos_tree *tree);

/* All ports by number, QOS_OUT before QOS_IN; QOS_IN only where it has something. */
void qos_each_tree(struct qos *q, qos_tree_fn *fn, void *ctx);

/* The port that this interface, or this interface of a shaper, belongs to; 0: none. */
uint32_t qos_port_by_ifindex(struct qos *q, int ifindex);

/* The kernel is borrowed and must outlive *q.  *events is copied; it may be NULL. */
int qos_new(struct qos **q, struct qos_kernel *kernel, const struct qos_events *events);

/* Forgets everything; the kernel's queues stay. */
void qos_free(struct qos *q);

/* Adds a port, and adopts the tree that an earlier daemon left there (a root qdisc htb 1: with
 * 1:ffff and 1:fffe; also a classless root f51:).  -EEXIST, -ENOMEM.  If the interface's queues
 * can't be read, the port is added without any. */
int qos_port_add(struct qos *q, const struct qos_port *port);

/* The interface is gone, and the kernel's queues with it.  The model keeps them: qos_port_back_begin
 * makes them again on the interface that comes in its place.  Until then counters are 0 and
 * requests for the port are OFPSFC_BAD_PORT, except for its clearing.  -ENOENT. */
int qos_port_absent(struct qos *q, uint32_t port_no);

/* The interface's speed or MTU changed: sets a root class that follows the speed, and the shares below
 * it, to the new one.  -ENOENT: nothing is begun. */
int qos_port_update_begin(struct qos *q, const struct qos_port *port);

/* The interface, or another one, is there: makes the queues again.  If the kernel refuses them, or
 * somebody else's scheduler is there already, the model forgets them.  Notifies the packet side of
 * every queue.  Without memory the port keeps its old name.  -ENOENT: nothing is begun. */
int qos_port_back_begin(struct qos *q, const struct qos_port *port);

/* Both go on in parts, as thousands of queues take many transactions over many turns of the loop.
 * After _begin the caller alternates: qos_port_plan
 * plans the next part; if it answers true the caller commits it (qos_commit, or its steps) and
 * passes the result to qos_port_planned; if false, all is done, and qos_port_end answers the first
 * error.  -ENODEV: the interface has gone again; the model keeps the queues.  From _begin to
 * qos_port_end the rules for qos_begin hold. */
bool qos_port_plan(struct qos *q);
void qos_port_planned(struct qos *q, int err, const struct qos_error *e);
int qos_port_end(struct qos *q, struct qos_error *e);

/* Forgets the port; clear_kernel: and removes what we have put on it.  An error (>0): the kernel keeps the
 * queues, and the model the port with them. */
int qos_port_remove(struct qos *q, uint32_t port_no, bool clear_kernel, struct qos_error *e);

/* Somebody else changed the queues of the interface or of its shaper: reads them, counts the
 * differences, and acts by the policy.  -ENOENT; OFPSFC_BUSY: what is there now isn't ours, and
 * can't be repaired. */
int qos_port_sync(struct qos *q, uint32_t port_no, struct qos_error *e);

/* Changes whenever ports or queues change. */
uint64_t qos_stamp(const struct qos *q);

/* Removes from all ports what we have put there, and nothing else.  Tries all; answers the first
 * error. */
int qos_clear_all(struct qos *q, struct qos_error *e);

/* Carries out a request.  0, or an error for the peer (>0; out of memory is OFPSFC_KERNEL). */
int qos_execute(struct qos *q, const struct qos_request *r, struct qos_error *e);

/* Several requests as one.  After qos_begin, qos_execute checks each against the result of those
 * before it and the kernel does nothing; a refused request leaves those before it as they were.
 * qos_commit has the kernel do all at once.  If that is refused, model and kernel are as they were
 * before qos_begin, and *at is the index of the request that caused it.  qos_abort forgets the
 * requests.  Until then only functions of this header that read may be called besides.  A dump
 * meanwhile shows the new model with the counters of what is there. */
void qos_begin(struct qos *q);
int qos_commit(struct qos *q, unsigned *at, struct qos_error *e);
void qos_abort(struct qos *q);

/* qos_commit in steps of up to `most` kernel operations, as one of them may take milliseconds on a
 * port with thousands of queues.  Pass the same *e each time.  AGREED: the kernel has done
 * everything; qos_commit_end makes that final.  REFUSED: everything is as it was before qos_begin,
 * *e and *at as with qos_commit.  qos_commit_revert after AGREED or MORE: the next steps take it
 * back, until REFUSED (*e and *at are left alone).  Until the end the rules for qos_begin hold. */
enum qos_progress qos_commit_step(struct qos *q, size_t most, unsigned *at, struct qos_error *e);
void qos_commit_end(struct qos *q);
void qos_commit_revert(struct qos *q);

/* After the last request: how many kernel operations are planned since qos_begin. */
size_t qos_planned(struct qos *q);

/* false: stop. */
typedef bool qos_entry_fn(void *ctx, const struct qos_entry *entry);

/* Each qdisc and class of a port (or of all: OFPP_ANY), or of one class id (0: the port's root;
 * QOS_ALL_CLASSES): the root first, then by class id, a class before the qdisc below it.  Where a
 * fixed parameter is 0, its default is shown.  OFPSFC_BAD_PORT, OFPSFC_NOT_FOUND (no such queue) or
 * the kernel's error. */
int qos_dump(struct qos *q, uint32_t port_no, uint32_t class_id, qos_entry_fn *fn, void *ctx,
             struct qos_error *e);

/* The same of a whole port without asking the kernel: counters are 0. */
void qos_each_entry(struct qos *q, uint32_t port_no, qos_entry_fn *fn, void *ctx);

/* A class as it is now: cheaper than an entry of a dump. */
struct qos_sample {
    uint32_t port_no, class_id; /* class_id 0: the root class */
    enum qos_direction dir;
    bool lends;       /* the kernel counts lends and borrows */
    bool inner;       /* it has classes below it */
    uint64_t rate;    /* guaranteed, bit/s; 0: nothing is, or it has classes below it */
    uint64_t ceil;    /* bit/s; 0: unknown */
    uint32_t promise; /* PROMISE, ms; 0: none */
    uint32_t delay;   /* DELAY_US; 0: none */
    bool has_delay;   /* the scheduler below it says how long packets wait: */
    uint32_t delay_us;
    struct qos_counters counters;
};

typedef void qos_sample_fn(void *ctx, const struct qos_sample *sample);

/* The classes of a port in both directions, in no order.  Costs one dump of classes alone for each
 * direction.  If a class has a PROMISE or DELAY_US, or `delays` is set, one of qdiscs as well: then drops
 * include those of the scheduler below it, as in qos_dump, and has_delay may be.  Where flows of their own wait (fq_codel),
 * delay_us is the longest of them.  The kernel's error. */
int qos_sample(struct qos *q, uint32_t port_no, bool delays, qos_sample_fn *fn, void *ctx);

/* The tin of this number, from 1, of the CAKE on this class (0: the port's root). */
typedef void qos_tin_fn(void *ctx, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
                        unsigned number, const struct qos_tin *tin);

/* By port and direction; what reading them costs is only spent where there is CAKE.  The kernel's
 * error. */
int qos_each_tin(struct qos *q, qos_tin_fn *fn, void *ctx, struct qos_error *e);

/* How often classes must be read for what they are promised, ms: the least PROMISE, and QOS_DELAY_MS if one has
 * DELAY_US.  0: none is promised anything.  The kernel isn't asked. */
#define QOS_DELAY_MS 100
uint32_t qos_least_promise(const struct qos *q);

/* rate, ceil: of a class, as the kernel has them, bit/s; 0: none, or unknown. */
typedef void qos_way_fn(void *ctx, const struct qos_entry *entry, uint64_t rate, uint64_t ceil);

/* What a packet of this queue passes on its way out: the scheduler below the class that takes it, the
 * class, those above it, the port's root.  class_id 0, or one that isn't there: the class of packets
 * without a queue.  Nothing if the port has no queues.  The kernel isn't asked. */
void qos_each_above(struct qos *q, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
                    qos_way_fn *fn, void *ctx);

/* What a class has, and what those below it were promised of it: the sum of their rates, without the
 * switch's own default class.  class_id 0: the root class.  False: there is no such class. */
struct qos_budget {
    uint32_t parent_id; /* 0: the root class, or none */
    uint64_t rate, given;
};
bool qos_budget(struct qos *q, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
                struct qos_budget *out);

/* Calls fn for the classes below one, at all depths and without the switch's own default class, until it says false.
 * class_id 0: the root class. */
typedef bool qos_below_fn(void *ctx, uint32_t class_id);
void qos_each_below(struct qos *q, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
                    qos_below_fn *fn, void *ctx);

/* A queue as standard OpenFlow sees it. */
struct qos_queue {
    uint32_t port_no;
    uint32_t class_id;
    uint64_t min_rate, max_rate;  /* bit/s: rate and ceil */
    uint64_t created;             /* CLOCK_MONOTONIC, ns: since when counters count; with counters:
                                   * UINT64_MAX while the kernel does not have it */
    struct qos_counters counters; /* if asked for */
};

/* -ENOENT: no such port or queue. */
int qos_queue_get(struct qos *q, uint32_t port_no, uint32_t class_id, bool counters,
                  struct qos_queue *out);

typedef bool qos_queue_fn(void *ctx, const struct qos_queue *queue);

/* A port's queues (without the root and default classes) in order of their ids.  -ENOENT: no such
 * port; other errors are the kernel's, if counters are asked for. */
int qos_queue_each(struct qos *q, uint32_t port_no, bool counters, qos_queue_fn *fn, void *ctx);

/* The class of packets without a queue: see qos_events. */
uint32_t qos_default_class(struct qos *q, uint32_t port_no);

#endif
