/* SPDX-License-Identifier: Apache-2.0 */
#include "queue-reply.h"
#include <admission/slice.h>

#include <requests/handlers.h>

#include <errno.h>
#include <stdlib.h>

#define ROOM (64u << 20)

/* ------------------------------------------------------------------ elements */

static size_t
stats_len(struct of_bytes left)
{
    return of_row_queue_stats.wire;
}

static size_t
config_len(struct of_bytes left)
{
    return of_get16(left.p + 8);
}

/* Where an element has the numbers of its port and queue. */
static const struct kind {
    conn_dump_next next;
    uint8_t port, queue;
} kinds[QUEUE_REPLIES] = {
    [QUEUE_REPLY_STATS] = {stats_len, 0, 4},
    [QUEUE_REPLY_CONFIG] = {config_len, 4, 0},
    [QUEUE_REPLY_ENTRIES] = {conn_dump_len16, 4, 8},
};

struct peer {
    const struct kind *kind;
    struct slice *slice;
};

static bool
peer_sees(void *ctx, struct of_bytes element)
{
    const struct peer *p = ctx;
    return slice_has_queue(p->slice, of_get32(element.p + p->kind->port),
                           of_get32(element.p + p->kind->queue));
}

static void
peer_done(void *ctx)
{
    struct peer *p = ctx;
    slice_put(p->slice);
    free(p);
}

/* ------------------------------------------------------------------ what was read */

static bool
is_fresh(const struct sw *sw, const struct queue_reply *r, const struct queue_question *q)
{
    return r->bytes && r->port == q->port && r->queue == q->queue &&
           r->stamp == qos_stamp(sw->qos) && loop_clock() < r->until;
}

static void
forget(struct queue_reply *r)
{
    dump_shared_put(r->bytes);
    r->bytes = NULL;
}

static int
read_now(struct sw *sw, struct queue_reply *r, const struct queue_question *q, struct qos_error *e)
{
    uint64_t begun = sw_reading_clock();
    struct of_wr w = of_wr_grow(ROOM);
    forget(r);
    int err = q->read(sw, q, &w, e);
    if (err) {
        of_wr_free(&w);
        return err;
    }
    r->port = q->port;
    r->queue = q->queue;
    r->stamp = qos_stamp(sw->qos);
    r->until = sw_read_counts_until(begun);
    err = dump_shared_new(sw->channel, &w, kinds[q->kind].next, &r->bytes);
    if (!err)
        loop_timer_set(sw->queue_reply_timer, r->until);
    return err;
}

int
sw_queue_reply(struct sw *sw, struct conn *c, const struct of_msg *m,
               const struct queue_question *q, struct qos_error *e)
{
    struct queue_reply *r = &sw->queue_reply[q->kind];
    int err = is_fresh(sw, r, q) ? 0 : read_now(sw, r, q, e);
    struct slice *slice = sw_slice_of(c);
    if (err || !slice)
        return err ? err : conn_dump_shared(c, m, r->bytes, NULL, NULL, NULL);
    struct peer *p = malloc(sizeof *p);
    if (!p)
        return -ENOMEM;
    *p = (struct peer){&kinds[q->kind], slice_hold(slice)};
    return conn_dump_shared(c, m, r->bytes, peer_sees, peer_done, p);
}

/* ------------------------------------------------------------------ beginning and end */

/* Frees a reply that is too old to be given again. */
static void
forget_old(void *ctx)
{
    struct sw *sw = ctx;
    for (int i = 0; i < QUEUE_REPLIES; i++) {
        struct queue_reply *r = &sw->queue_reply[i];
        if (r->bytes && loop_now(sw->loop) < r->until)
            loop_timer_set(sw->queue_reply_timer, r->until);
        else
            forget(r);
    }
}

int
sw_queue_replies_init(struct sw *sw)
{
    return loop_timer_new(sw->loop, forget_old, sw, &sw->queue_reply_timer);
}

void
sw_queue_replies_free(struct sw *sw)
{
    for (int i = 0; i < QUEUE_REPLIES; i++)
        forget(&sw->queue_reply[i]);
    loop_timer_free(sw->queue_reply_timer);
}
