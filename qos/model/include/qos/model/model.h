/* SPDX-License-Identifier: Apache-2.0 */
/* The queues of a switch's ports: one model, owned by the control thread (not thread-safe).
 *
 * A request is checked against the model, which it changes, and planned as kernel operations each with
 * its undo; the kernel is told; then the packet side.  Where the kernel refuses, what was done is
 * undone in reverse, and model and kernel are as they were.
 *
 * Decisions of this model:
 *  - A tree made because a class was asked for goes away with the port's last queue; one asked
 *    for by an HTB qdisc request or by setting the root class stays until it is deleted.  DEL of
 *    the HTB qdisc deletes the whole tree, as tc does; DEL of the root class (class_id 0) does the
 *    same, but is OFPSFC_BUSY while there are queues, unless WITH_CHILDREN.
 *  - SCHED_NONE DEL on a port that has nothing of ours is fine.
 *  - A class with a classless scheduler can't get children, and a class with children can't get a
 *    scheduler (OFPSFC_BUSY): the kernel would throw away the one or refuse the other.
 *  - CHANGE and REPLACE of what is there: fixed parameters are set, properties that aren't given
 *    stay as they are.  A share stays while the fixed rate is 0.
 *  - What is not changeable in place (SFQ; a class's parent) is deleted and added anew, what hangs
 *    below included.
 *  - DIRECTION 1 (what enters by a port): a second tree, on an interface of its own (struct
 *    qos_shaper), which is made and removed with the tree.  Standard OpenFlow isn't told of it.
 *  - CEIL_SHARE_PPM is a share of the parent's ceil, RATE_SHARE_PPM of its rate; the root class's
 *    parent is the link, with its speed.
 *  - A classless scheduler as the port's root and a tree exclude each other: OFPSFC_BUSY while
 *    there are queues.
 *
 * Queues of other kinds than HTB; a port's queues are all of one kind (else OFPSFC_BUSY):
 *  - HFSC: as HTB, with service curves for rates.  The port's root class has a link-sharing curve
 *    and an upper limit of the link's speed (10 Gbit/s where unknown; no upper limit above 34.36
 *    Gbit/s, the most that HFSC can count), the default class a link-sharing curve of a twentieth
 *    of it.  A class needs a real-time curve (rsc) or a link-sharing one (fsc), an upper limit (usc)
 *    needs a link-sharing one, a curve must rise, m1 lasts for a d above 0 (else
 *    OFPSFC_BAD_PARAM); a parent needs a link-sharing curve (OFPSFC_BAD_CLASS).  CHANGE sets the
 *    curves it gives; the kernel can't take one away.
 *    Standard OpenFlow is told m2 of the real-time curve (else of the link-sharing one) as the
 *    least rate, of the upper limit (else the parent's) as the most.
 *  - DRR: classes take turns.  There is no root class (class_id 0: OFPSFC_BAD_CLASS) and no class
 *    below another (PARENT other than 0: OFPSFC_UNSUPPORTED).  The default class has a quantum of
 *    a full frame.  Least rate 0, most the link's.  Needs the kernel's cls_u32: DRR drops what
 *    selects no class, so a filter after all others leads it to the default class.
 *  - The default class that was asked for (the qdisc request's class_id) takes over when it is
 *    there and has no class below it; till then, and after, it is 0xfffe.
 *  - PRIO and ETS have no class requests (OFPSFC_BAD_SCHED).  As a port's root their bands are
 *    the queues 1 to BANDS (PRIO serves the first one first): set_queue selects them, a classless
 *    scheduler may be set below each, OFPMP_QUEUE counts them; a QOS_DUMP lists the scheduler and
 *    what is below the bands, not the bands.  Packets without a queue, or with one that isn't
 *    there, go by the priomap.  Bands that a CHANGE takes away take along what is below them.  Below
 *    a class they are OFPSFC_UNSUPPORTED: nothing could choose a band there.
 */
#ifndef QOS_MODEL_H
#define QOS_MODEL_H

#include <qos/model/kernel.h>
#include <qos/wire/entry.h>

struct qos;

struct qos_port {
    uint32_t port_no;
    int ifindex;
    const char *name; /* copied */
    uint32_t mtu;
    uint32_t txqueuelen;
    uint64_t speed; /* bit/s; 0: unknown */
};

/* What the packet side wants to know; each may be NULL.  Called after a commit. */
struct qos_events {
    /* The class is a queue, and gets so many bit/s at most; or it no longer is: it has gone, or others
     * are below it now. */
    void (*queue)(void *ctx, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
                  bool present, uint64_t most);
    /* Packets without a queue, or with one that doesn't exist, belong to this class: a queue, or
     * 0xfffe; 0: the port has no tree.  most: what they get, bit/s; 0: no limit is known. */
    void (*default_class)(void *ctx, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
                          uint64_t most);
    /* What enters by the port goes through these interfaces from now on; its queues are told of
     * next.  NULL: no longer; the interfaces are removed after the call returns. */
    void (*shaper)(void *ctx, uint32_t port_no, const struct qos_shaper *s);
    void *ctx;
};

/* What to do when somebody else (tc by hand) changes what the switch has put on a port. */
enum qos_foreign {
    QOS_FOREIGN_ADOPT,  /* it becomes what there is */
    QOS_FOREIGN_REPORT, /* it is counted; requests go on from what was asked for */
    QOS_FOREIGN_REPAIR, /* the kernel is told again what was asked for */
};

void qos_set_foreign(struct qos *q, enum qos_foreign policy);

typedef void qos_tree_fn(void *ctx, const struct qos_tree *tree);

/* All ports; of one, what leaves first, what enters only where there is something. */
void qos_each_tree(struct qos *q, qos_tree_fn *fn, void *ctx);

/* The port whose interface, or whose shaper's, this is; 0: none. */
uint32_t qos_port_by_ifindex(struct qos *q, int ifindex);

/* The kernel is borrowed and must outlive *q.  *events is copied; it may be NULL. */
int qos_new(struct qos **q, struct qos_kernel *kernel, const struct qos_events *events);

/* Forgets everything; the kernel's queues stay. */
void qos_free(struct qos *q);

/* Adds a port, and adopts the tree which an earlier daemon left there (a root qdisc htb 1: with
 * 1:ffff and 1:fffe; also a classless root f51:).  -EEXIST, -ENOMEM.  An interface whose queues
 * can't be read is added as one without. */
int qos_port_add(struct qos *q, const struct qos_port *port);

/* Speed, MTU, name or ifindex changed: a root class that follows the speed is programmed anew, with
 * the shares below it.  -ENOENT. */
int qos_port_update(struct qos *q, const struct qos_port *port, struct qos_error *e);

/* The interface went away, and the kernel's queues with it.  The model keeps them: qos_port_back
 * makes them anew on the interface that comes in its place.  Until then counters are 0 and requests
 * for the port are OFPSFC_BAD_PORT, but for its clearing.  -ENOENT. */
int qos_port_away(struct qos *q, uint32_t port_no);

/* The interface, or another one, is there: with the queues as they were.  Where the kernel refuses
 * them, or somebody else's scheduler is there already, they are forgotten.  Tells the packet side
 * of every queue.  -ENOENT. */
int qos_port_back(struct qos *q, const struct qos_port *port, struct qos_error *e);

/* The same two for a port with thousands of queues, which are many transactions' and many turns' work.
 * After _begin (-ENOENT, -ENOMEM: nothing is begun) the caller alternates: qos_port_plan plans what comes
 * next; where it is true the caller commits it (qos_commit, or its steps) and says by qos_port_planned
 * how that ended; where it is false all is done, and qos_port_end tells the first error.  -ENODEV: the
 * interface has gone again; the model keeps the queues.  From _begin to qos_port_end the rules for
 * qos_begin hold. */
int qos_port_update_begin(struct qos *q, const struct qos_port *port);
int qos_port_back_begin(struct qos *q, const struct qos_port *port);
bool qos_port_plan(struct qos *q);
void qos_port_planned(struct qos *q, int err, const struct qos_error *e);
int qos_port_end(struct qos *q, struct qos_error *e);

/* Forgets the port; clear_kernel: and removes what we have put on it. */
void qos_port_remove(struct qos *q, uint32_t port_no, bool clear_kernel);

/* Somebody else changed the interface's queues, or its shaper's: reads them, counts what is otherwise
 * than it was told, and does as the policy says.  -ENOENT; OFPSFC_BUSY: what is there now isn't ours,
 * and can't be put right. */
int qos_port_sync(struct qos *q, uint32_t port_no, struct qos_error *e);

/* Removes from all ports what we have put there, and nothing else.  The first error, but all are
 * tried. */
int qos_clear_all(struct qos *q, struct qos_error *e);

/* Carries out a request.  0, or an error for the peer (>0; out of memory is OFPSFC_KERNEL). */
int qos_execute(struct qos *q, const struct qos_request *r, struct qos_error *e);

/* Several requests as one.  Between qos_begin and its end, qos_execute checks each against what
 * there will be and the kernel is told nothing; a request that is refused leaves the ones before it
 * as they were.  qos_commit tells the kernel all at once.  Where that refuses, model and kernel are
 * as they were before qos_begin, and *at is the request (0: the first) whose doing it was.
 * qos_abort forgets the requests.  Between them no other function of this header but for reading
 * may be called.  A dump meanwhile shows counters of what there is and the model of what will be. */
void qos_begin(struct qos *q);
int qos_commit(struct qos *q, unsigned *at, struct qos_error *e);
void qos_abort(struct qos *q);

/* qos_commit in steps of up to `most` kernel operations, as one of them may take milliseconds on a
 * port with thousands of queues.  The same *e is to be given each time.  AGREED: the kernel has done
 * everything; qos_commit_end makes that final.  REFUSED: everything is as it was before qos_begin, *e
 * and *at as with qos_commit.  qos_commit_revert after AGREED or MORE: the steps from now on take it
 * back, until REFUSED (*e and *at are left alone).  Until the end the rules for qos_begin hold. */
enum qos_progress { QOS_COMMIT_MORE, QOS_COMMIT_AGREED, QOS_COMMIT_REFUSED };
enum qos_progress qos_commit_step(struct qos *q, size_t most, unsigned *at, struct qos_error *e);
void qos_commit_end(struct qos *q);
void qos_commit_revert(struct qos *q);

/* How many kernel operations are planned since qos_begin. */
size_t qos_planned(const struct qos *q);

/* false: that's enough. */
typedef bool qos_entry_fn(void *ctx, const struct qos_entry *entry);

/* Each qdisc and class of a port (or of all: OFPP_ANY), or of one class id (0: the port's root;
 * QOS_ALL_CLASSES), the root first, then by class id, a class before the qdisc below it.  A zero
 * in a fixed parameter is shown as what it came to.  OFPSFC_BAD_PORT, OFPSFC_NOT_FOUND (a queue
 * that isn't there) or the kernel's error. */
int qos_dump(struct qos *q, uint32_t port_no, uint32_t class_id, qos_entry_fn *fn, void *ctx,
             struct qos_error *e);

/* The same of a whole port as the model has it: the kernel isn't asked, counters are 0. */
void qos_each_entry(struct qos *q, uint32_t port_no, qos_entry_fn *fn, void *ctx);

/* A queue as standard OpenFlow sees it. */
struct qos_queue {
    uint32_t port_no;
    uint32_t class_id;
    uint64_t min_rate, max_rate;  /* bit/s: rate and ceil */
    uint64_t created;             /* CLOCK_MONOTONIC, ns */
    struct qos_counters counters; /* filled in where counters are asked for */
};

/* -ENOENT: no such port or queue. */
int qos_queue_get(struct qos *q, uint32_t port_no, uint32_t class_id, bool counters,
                  struct qos_queue *out);

typedef bool qos_queue_fn(void *ctx, const struct qos_queue *queue);

/* A port's queues (not the root and default classes) in order of their ids.  -ENOENT: no such
 * port; other errors are the kernel's, when counters were asked for. */
int qos_queue_each(struct qos *q, uint32_t port_no, bool counters, qos_queue_fn *fn, void *ctx);

/* How many queues the port has. */
uint32_t qos_queue_count(struct qos *q, uint32_t port_no);

/* Where packets without a queue go: see qos_events. */
uint32_t qos_default_class(struct qos *q, uint32_t port_no);

#endif
