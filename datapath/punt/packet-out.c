/* SPDX-License-Identifier: Apache-2.0 */
#include <punt/packet-out.h>
#include <switch/switch.h>

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define WAITING_MOST 256          /* in a worker's ring */
#define WAITING_DEAR 2            /* of those that take long */
#define LENGTH_MOST  (128u << 10) /* a buffered super-packet's, and more */
#define ASK_NS       1000000      /* at least so often, even if no worker reports */

/* Packet-outs of the control thread, by number. */
struct packet_outs {
    uint32_t number; /* of the last one */
    bool waited_for; /* some connection waits for room, or for the end of its own */
    struct loop_timer *timer;
};

int
sw_packet_outs_start(struct sw *sw)
{
    sw->outs = calloc(1, sizeof *sw->outs);
    return sw->outs ? loop_timer_new(sw->loop, sw_packet_outs_go_on, sw, &sw->outs->timer)
                    : -ENOMEM;
}

void
sw_packet_outs_stop(struct sw *sw)
{
    if (sw->outs)
        loop_timer_free(sw->outs->timer);
    free(sw->outs);
    sw->outs = NULL;
}

void
sw_packet_out(struct sw *sw, struct conn *c, struct program *program, uint32_t in_port,
              const uint8_t *data, uint32_t len)
{
    /* The worker that reads the port, so that its packets stay in order. */
    struct worker *w = sw->dp.workers[in_port % sw->dp.n_workers];
    uint32_t number = ++sw->outs->number;
    for (int tries = 0; tries < 1000; tries++) {
        if (worker_packet_out(w, program, in_port, data, len, number)) {
            if (c)
                conn_own(c)->packet_out = (struct conn_packet_out){true, number};
            return;
        }
        struct timespec ms = {.tv_nsec = 1000000};
        nanosleep(&ms, NULL);
    }
    sw->counters.packet_outs_lost++;
    free(program);
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

bool
sw_packet_outs_have_room(struct sw *sw)
{
    for (unsigned i = 0; i < sw->dp.n_workers; i++) {
        if (worker_has_room(sw->dp.workers[i], LENGTH_MOST, WAITING_MOST, WAITING_DEAR))
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
    for (unsigned i = 0; last->waits && i < sw->dp.n_workers; i++) {
        if (worker_has_sent(sw->dp.workers[i], last->number))
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
    if (channel_try_longest(sw->channel))
        wait_for_workers(sw);
}
