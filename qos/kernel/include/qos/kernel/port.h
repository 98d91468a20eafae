/* SPDX-License-Identifier: Apache-2.0 */
/* What the model of the queues knows of a port, and whom it notifies. */
#ifndef QOS_KERNEL_PORT_H
#define QOS_KERNEL_PORT_H

#include <qos/kernel/kernel.h>

struct qos_port {
    uint32_t port_no;
    int ifindex;
    const char *name; /* copied */
    uint32_t mtu;
    uint32_t txqueuelen;
    uint64_t speed;     /* bit/s; 0: unknown */
    uint32_t tx_queues; /* 0: unknown */
    bool queues_only;   /* the kernel forwards its packets */
};

/* What the packet side is notified of, after a commit; each may be NULL. */
struct qos_events {
    /* The class is a queue: its packets have this skb->priority, and super-packets of more than a millisecond at
     * `most` bit/s are cut: the rate that they get at most, or less for a promised delay.
     * priority 0: it is gone.  Else it is (band + 1) << 16 | the class that takes them, the queue
     * itself or one below it; band: the transmit queue that the tree is below, 1 to 14; 0: none. */
    void (*queue)(void *ctx, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
                  uint32_t priority, uint64_t most);
    /* The class of packets without a queue, or with one that doesn't exist: a queue, or 0xfffe; 0:
     * the port has no tree.  most: its limit, bit/s; 0: none is known. */
    void (*default_class)(void *ctx, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
                          uint64_t most);
    /* From now on what enters by the port goes through these interfaces; calls about its queues
     * follow.  NULL: no longer; the interfaces are removed after the call returns. */
    void (*shaper)(void *ctx, uint32_t port_no, const struct qos_shaper *s);
    void *ctx;
};

/* What to do when somebody else (tc by hand) changes what the switch has put on a port. */
enum qos_foreign {
    QOS_FOREIGN_ADOPT,  /* the model takes the change over */
    QOS_FOREIGN_REPORT, /* it is counted; later requests build on what was requested before */
    QOS_FOREIGN_REPAIR, /* the kernel gets again what was requested */
};

/* How far a commit in steps is. */
enum qos_progress { QOS_COMMIT_MORE, QOS_COMMIT_AGREED, QOS_COMMIT_REFUSED };

#endif
