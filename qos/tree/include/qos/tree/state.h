/* SPDX-License-Identifier: Apache-2.0 */
/* struct qos: the ports, and what is under way. */
#ifndef QOS_TREE_STATE_H
#define QOS_TREE_STATE_H

#include <qos/tree/plan.h>
#include <qos/tree/tree.h>

struct change;
struct stage;

/* A transaction (journal.h).  The model has been changed already; the kernel is to do `plan`. */
struct txn {
    bool open;
    bool many;                        /* several requests (qos_begin) */
    bool asked;                       /* by requests, not by what the kernel has */
    const struct model_port *follows; /* this port's speed changes, from old_speed; or NULL */
    uint64_t old_speed;
    struct plan plan;
    struct change *v;
    size_t n, cap;
    size_t settled; /* changes that own-leaf.c has looked at */
};

/* A port catches up with its interface, one transaction after another (catch-up.c). */
struct catch_up {
    uint32_t port_no;
    const struct stage *at, *end;
    uint32_t band; /* of a stage about trees: the last one that is done */
    bool open;     /* the stage has left its transaction open for the kernel */
    bool failed;   /* this direction did not get its queues back */
    struct qos_port now;
    struct follows {
        uint32_t mtu, txqueuelen;
        uint64_t speed;
    } was[2]; /* by direction */
    int err;  /* the first */
    struct qos_error e;
};

struct qos {
    struct qos_kernel *kernel;
    struct qos_events events;
    struct model_port *ports; /* by number; QOS_OUT, the trees below its transmit queues, QOS_IN */
    enum qos_foreign policy;
    bool leaf_none;               /* nothing is put below classes, whatever they promise */
    const struct qos_sched *leaf; /* below a class that has none; NULL: the kernel's own */
    struct packed *leaf_config;
    struct txn txn;
    struct catch_up catch_up;
    uint64_t stamp; /* qos_stamp */
};

/* Behind a sentence that ends in "already". */
#define QOS_USE_REPLACE ": use REPLACE or CHANGE (dpctl: cmd=replace)"

#endif
