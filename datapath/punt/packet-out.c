/* SPDX-License-Identifier: Apache-2.0 */
#include <punt/packet-out.h>
#include <switch/switch.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WAITING_MOST 256          /* in a worker's ring */
#define WAITING_DEAR 2            /* of those that take long */
#define LENGTH_MOST  (128u << 10) /* a buffered super-packet's, and more */
#define ASK_NS       1000000      /* at least so often, even if no worker reports */
#define QUEUED_MOST  256          /* as many as there are buffers */

/* One for which the worker's ring has no room: a flow-mod's buffered packet, of which a bundle may have many. */
struct queued_out {
    struct queued_out *next;
    struct program *program;
    uint32_t in_port, number, len;
    uint8_t data[];
};

/* Packet-outs of the control thread, by number. */
struct packet_outs {
    uint32_t number; /* of the last one */
    bool waited_for; /* some connection waits for room, or for the end of its own */
    struct loop_timer *timer;
    struct queued_out *first, **last; /* these go before all later ones */
    unsigned n_queued;
};

int
sw_packet_outs_start(struct sw *sw)
{
    struct packet_outs *o = sw->outs = calloc(1, sizeof *o);
    if (!o)
        return -ENOMEM;
    o->last = &o->first;
    return loop_timer_new(sw->loop, sw_packet_outs_go_on, sw, &o->timer);
}

/* Frees the first one; its program belongs to somebody else. */
static void
unqueue(struct packet_outs *o)
{
    struct queued_out *q = o->first;
    o->first = q->next;
    if (!o->first)
        o->last = &o->first;
    o->n_queued--;
    free(q);
}

void
sw_packet_outs_stop(struct sw *sw)
{
    struct packet_outs *o = sw->outs;
    if (!o)
        return;
    for (; o->first; unqueue(o))
        free(o->first->program);
    loop_timer_free(o->timer);
    free(o);
    sw->outs = NULL;
}

/* The worker that reads the port, so that its packets stay in order. */
static struct worker *
worker_of(const struct sw *sw, uint32_t in_port)
{
    return sw->dp.workers[in_port % sw->dp.n_workers];
}

/* ------------------------------------------------------------------ waiting */

/* Asks the workers to report when they have sent some.  What they send between the caller's look
 * and this, the timer finds. */
static void
wait_for_workers(struct sw *sw)
{
    if (!sw->outs->waited_for)
        loop_timer_set(sw->outs->timer, loop_now(sw->loop) + ASK_NS);
    sw->outs->waited_for = true;
    for (unsigned i = 0; i < sw->dp.n_workers; i++)
        store_relaxed(&sw->dp.workers[i]->outs_waited_for, true);
}

/* ------------------------------------------------------------------ sending */

static bool
enqueue(struct packet_outs *o, const struct queued_out *out, const uint8_t *data)
{
    struct queued_out *q = o->n_queued < QUEUED_MOST ? malloc(sizeof *q + out->len) : NULL;
    if (!q)
        return false;
    *q = *out;
    if (out->len)
        memcpy(q->data, data, out->len);
    *o->last = q;
    o->last = &q->next;
    o->n_queued++;
    return true;
}

void
sw_packet_out(struct sw *sw, struct conn *c, struct program *program, uint32_t in_port,
              const uint8_t *data, uint32_t len)
{
    struct packet_outs *o = sw->outs;
    const struct queued_out out = {
        .program = program, .in_port = in_port, .number = ++o->number, .len = len};
    bool sent = !o->first &&
                worker_packet_out(worker_of(sw, in_port), program, in_port, data, len, out.number);
    if (!sent && !enqueue(o, &out, data)) {
        sw->counters.packet_outs_lost++;
        free(program);
        return;
    }
    if (c)
        conn_own(c)->packet_out = (struct conn_packet_out){true, out.number};
    if (!sent)
        wait_for_workers(sw);
}

/* Whether all that were queued are in the workers' rings now. */
static bool
send_queued(struct sw *sw)
{
    struct packet_outs *o = sw->outs;
    for (const struct queued_out *q; (q = o->first); unqueue(o))
        if (!worker_packet_out(worker_of(sw, q->in_port), q->program, q->in_port, q->data, q->len,
                               q->number))
            return false;
    return true;
}

bool
sw_packet_outs_have_room(struct sw *sw)
{
    for (unsigned i = 0; i < sw->dp.n_workers; i++) {
        if (!sw->outs->first &&
            worker_has_room(sw->dp.workers[i], LENGTH_MOST, WAITING_MOST, WAITING_DEAR))
            continue;
        wait_for_workers(sw);
        return false;
    }
    return true;
}

bool
sw_packet_outs_are_sent(struct sw *sw, struct conn *c)
{
    struct conn_packet_out *last = &conn_own(c)->packet_out;
    const struct queued_out *q = sw->outs->first;
    bool queued = q && (int32_t)(last->number - q->number) >= 0;
    for (unsigned i = 0; last->waits && i < sw->dp.n_workers; i++) {
        if (!queued && worker_has_sent(sw->dp.workers[i], last->number))
            continue;
        wait_for_workers(sw);
        return false;
    }
    last->waits = false;
    return true;
}

void
sw_packet_outs_go_on(void *ctx)
{
    struct sw *sw = ctx;
    if (!sw->outs->waited_for)
        return;
    sw->outs->waited_for = false;
    loop_timer_cancel(sw->outs->timer);
    if (!send_queued(sw) || channel_try_longest(sw->channel))
        wait_for_workers(sw);
}
