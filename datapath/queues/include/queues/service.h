/* SPDX-License-Identifier: Apache-2.0 */
/* How the classes of the ports' queues are served: how long packets waited in each, how long it
 * got less than its guaranteed rate meanwhile, and whether it drops packets.
 *
 * A request starts it, or a round trip that queues made longer (latency.c).  From then on the kernel's counters are
 * read once a second, or less often where that takes long: reading takes at most a fiftieth of the control thread's
 * time.  Reading stops SERVICE_KEEP_NS after the last of them; the counts stay.
 *
 * While a class has a PROMISE the counters are read all the time, as often as the shortest promise
 * is long.  When a class's promise is broken, or the class has dropped packets for that long, and
 * when this is over, connections are told (docs/reference/extensions.md, QOS_PROMISE).
 *
 * How long packets wait is read with it: as the scheduler says, else as the kernel's clock says of a packet that a worker
 * sent (port_queue_waited), else what waits by the rate at which it was sent since the last reading (the ceil, if nothing
 * was).  A class with DELAY_US is read each QOS_DELAY_MS, and judged
 * each second: nine tenths of the readings should be within what is promised. */
#ifndef QUEUES_SERVICE_H
#define QUEUES_SERVICE_H

#include <qos/model/model.h>

struct sw;
struct service;

#define SERVICE_KEEP_NS UINT64_C(300000000000)

#define SERVICE_PROMISE_MS 1000 /* where a class with DELAY_US has no PROMISE */
#define SERVICE_KINDS      3    /* OFPQPK_ */
#define SERVICE_DELAYS     16   /* readings of a second that are judged, at most */

/* How long packets wait in a class's queue, as it is judged once a second. */
struct service_delay {
    uint32_t promised; /* DELAY_US; 0: nothing is */
    uint32_t us;       /* at the last reading; LATENCY_NONE: nothing was known */
    uint8_t source;    /* enum latency_source */
    uint8_t n;         /* readings of this second so far: */
    uint32_t second[SERVICE_DELAYS];
    uint64_t second_us;     /* how long it has lasted */
    uint32_t p90;           /* of the last whole one; LATENCY_NONE: there was none yet */
    uint32_t seconds, kept; /* that were judged; of which the promise was kept */
};

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
    bool gone;      /* deleted since */
    uint64_t rate;  /* bit/s; 0: nothing is guaranteed */
    uint64_t bytes; /* sent */
    uint64_t drops; /* of the scheduler below it only where promises are watched */
    uint32_t last_lends, last_borrows; /* the kernel's, which wrap */
    uint64_t lended, borrowed;         /* packets */
    uint64_t backlogged_us, below_us;
    uint32_t backlog; /* bytes that waited at the last reading */
    uint64_t ceil;    /* bit/s; 0: unknown */
    uint32_t promise; /* ms; 0: none */
    bool inner;       /* it has classes below it, and so no packets of its own */
    struct service_delay delay;
    struct service_spell
        spells[SERVICE_KINDS]; /* by OFPQPK_: less than its rate; packets dropped; a
                                                 * longer delay than promised */
};

/* Takes over the counts of `was` (NULL: the class is new), and adds the time since: `us`, 0 if
 * nothing is known about it.  A class counts as backlogged if packets waited at both readings.
 * Its rate is missed if it got less by more than a twentieth and a frame: anything less is within
 * the error of one reading.  Its promise is broken when the rate has been missed for as long as it
 * says without a break. */
void sw_service_count(struct service_class *now, const struct service_class *was, uint64_t us);

/* Starts reading, or goes on: asks the kernel.  -ENOMEM, or the kernel's error. */
int sw_service_ask(struct sw *sw);
/* The same, but it is read soon, and again if that fails. */
void sw_service_watch(struct sw *sw);

/* A class has got a PROMISE: starts reading. */
void sw_service_promised(struct sw *sw);

/* The class is gone: one with its number is another one, of which nothing was counted or reported yet. */
void sw_service_forget(struct sw *sw, uint32_t port_no, enum qos_direction dir, uint32_t class_id);

/* The classes of all ports as last read, in order of port, direction and class. */
typedef void sw_service_fn(void *ctx, uint32_t port_no, const struct service_class *c);
void sw_service_each(const struct sw *sw, sw_service_fn *fn, void *ctx);

void sw_service_free(struct sw *sw);

#endif
