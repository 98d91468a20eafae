/* SPDX-License-Identifier: Apache-2.0 */
/* How the classes of the ports' queues are served: how long packets waited in each, how long it
 * got less than its guaranteed rate meanwhile, and whether it drops packets.
 *
 * The first one who asks starts it.  From then on the kernel's counters are read once a second, or
 * less often where that takes long: reading takes at most a fiftieth of the control thread's time.
 * Reading stops SERVICE_KEEP_NS after the last request; the counts stay.
 *
 * While a class has a PROMISE the counters are read all the time, as often as the shortest promise
 * is long.  When a class's promise is broken, or the class has dropped packets for that long, and
 * when this is over, connections are told (docs/extensions.md, QOS_PROMISE). */
#ifndef QUEUES_SERVICE_H
#define QUEUES_SERVICE_H

#include <qos/model/model.h>

struct sw;
struct service;

#define SERVICE_KEEP_NS UINT64_C(300000000000)

/* What goes on in a class at one reading after another, without a break. */
struct service_spell {
    uint64_t us, bytes, drops; /* for how long; sent and dropped (packets) meanwhile */
    bool told;                 /* for as long as the promise says */
};

/* A class, between two readings. */
struct service_class {
    uint32_t class_id;
    enum qos_direction dir;
    bool lends;     /* the kernel counts lending and borrowing (HTB) */
    bool waiting;   /* packets waited at the last reading */
    uint64_t rate;  /* bit/s; 0: nothing is guaranteed */
    uint64_t bytes; /* sent */
    uint64_t drops; /* of the scheduler below it only where promises are watched */
    uint32_t last_lends, last_borrows; /* the kernel's, which wrap */
    uint64_t lended, borrowed;         /* packets */
    uint64_t backlogged_us, below_us;
    uint32_t promise;               /* ms; 0: none */
    struct service_spell spells[2]; /* by OFPQPK_: less than its rate; packets dropped */
};

/* Takes over the counts of `was` (NULL: the class is new), and adds the time since: `us`, 0 if
 * nothing is known about it.  A class counts as backlogged if packets waited at both readings.
 * Its rate is missed if it got less by more than a twentieth and a frame: anything less is within
 * the error of one reading.  Its promise is broken when the rate has been missed for as long as it
 * says without a break. */
void sw_service_count(struct service_class *now, const struct service_class *was, uint64_t us);

/* Starts reading, or goes on.  -ENOMEM, or the kernel's error. */
int sw_service_ask(struct sw *sw);

/* A class has got a PROMISE: starts reading. */
void sw_service_promised(struct sw *sw);

/* The classes of all ports as last read, in order of port, direction and class. */
typedef void sw_service_fn(void *ctx, uint32_t port_no, const struct service_class *c);
void sw_service_each(const struct sw *sw, sw_service_fn *fn, void *ctx);

void sw_service_free(struct sw *sw);

#endif
