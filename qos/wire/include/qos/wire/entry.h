/* SPDX-License-Identifier: Apache-2.0 */
/* What a switch reports of its queues: entries of the QOS_DUMP and QOS_PORTS replies
 * (docs/reference/qos-extension.md, "Asking"; docs/reference/extensions.md). */
#ifndef QOS_WIRE_ENTRY_H
#define QOS_WIRE_ENTRY_H

#include <qos/wire/request.h>

struct qos_counters {
    uint64_t bytes, packets, drops, overlimits, requeues, marked;
    uint32_t backlog_bytes, backlog_packets;
    uint32_t lends, borrows; /* HTB's, as the kernel counts: they wrap.  Not in an entry's bytes */
};

#define QOS_ALL_CLASSES 0xffffffffu /* in place of a class id: the port's root and all classes */

/* An entry of a QOS_DUMP: one qdisc or class. */
struct qos_entry {
    struct qos_request config; /* sched, object_type, port_no, class_id (0: the port's root),
                                  values; action_type is ADD */
    uint32_t parent_id;        /* class id of the parent, 0: none (or the root) */
    struct qos_counters counters;
};

/* decode takes one entry off the reader. */
void qos_entry_encode(struct of_wr *w, const struct qos_entry *entry);
int qos_entry_decode(struct qos_entry *entry, struct of_rd *rd, struct qos_error *e);

/* Objects (qdiscs, classes) that somebody else added, changed or removed; that were repaired. */
struct qos_foreign_counts {
    uint64_t changed, repaired;
    bool differs; /* kernel and model, at the last comparison */
    bool root;    /* another program's root qdisc is where ours would be */
};

/* An entry of QOS_PORTS: one direction of a port. */
struct qos_tree {
    uint32_t port_no;
    enum qos_direction dir;
    const struct qos_sched *sched; /* at the root; NULL: nothing of ours */
    bool kept;                     /* was requested itself: stays without queues */
    bool absent;                   /* its interface is not there */
    uint32_t default_id;           /* as requested; 0: the switch's own */
    uint32_t n_queues;
    struct qos_foreign_counts foreign;
};

/* QOS_TREE_LEN bytes. */
#define QOS_TREE_LEN 32
void qos_tree_encode(struct of_wr *w, const struct qos_tree *tree);
void qos_tree_decode(struct qos_tree *tree, const uint8_t *p);

#endif
