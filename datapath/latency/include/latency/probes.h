/* SPDX-License-Identifier: Apache-2.0 */
/* The connections whose round trips are measured (rtt.h): the workers' side, and the samples for the control thread. */
#ifndef LATENCY_PROBES_H
#define LATENCY_PROBES_H

#include <oflib/protocols.h>
#include <packet/packet.h>

/* Samples are measured with the clock that the kernel's programs have, too. */
#include <shared/clock.h>
#define RTT_CLOCK_NS() clock_ns()
/* Workers write places without a lock: what they lose is a sample. */
#define RTT_UNCHECKED __attribute__((no_sanitize_thread))
#define RTT_INLINE    RTT_UNCHECKED inline
#include <latency/rtt.h>

#include <stddef.h>

/* Where they are: in memory of our own, or in maps that the kernel's programs use as well (offload/offload.h).  control
 * NULL: nothing is measured. */
struct probes {
    struct rtt_control *control;
    struct rtt_slot *slot;   /* a power of two of them, at least two */
    struct rtt_sample *ring; /* RTT_RING */
};

/* So many places for connections where the machine has this much memory: 256 to 4,096, at 64 bytes. */
uint32_t probes_slots(uint64_t memory);

/* What so many take, with all that belongs to them. */
uint64_t probes_bytes(uint32_t slots);

/* Sets them up in memory that is zero. */
void probes_begin(struct probes *p, uint32_t slots);
/* Memory of our own.  0 or -ENOMEM. */
int probes_new(struct probes *p, uint32_t slots);
void probes_free(struct probes *p); /* what probes_new made */

void probes_turn(struct probes *p, bool on);

/* Workers: the packet, which probes_want, leaves by the interface, in this queue (0: by none).  in_ifindex: where it
 * came in.  about: the time when its batch began, ns. */
void probes_look(const struct probes *p, const struct packet *pkt, int in_ifindex, int ifindex,
                 uint32_t queue, uint64_t about);

/* Whether probes_look would look at it. */
static inline bool
probes_want(const struct probes *p, const struct packet *pkt)
{
    const struct flow_key *k = &pkt->key;
    uint8_t proto = k->ip_proto;
    return (proto == PROTO_TCP || proto == PROTO_ICMP || proto == PROTO_ICMPV6 ||
            (proto == PROTO_UDP && rtt_is_udp(of_get16(k->tp_src), of_get16(k->tp_dst)))) &&
           p->control && *(volatile uint32_t *)&p->control->on;
}

/* Control thread: calls `each` for the samples since *from, which it moves on; those that were overwritten
 * are left out. */
typedef void probes_fn(void *ctx, const struct rtt_sample *s);
void probes_read(const struct probes *p, uint32_t *from, probes_fn *each, void *ctx);

#endif
