/* SPDX-License-Identifier: Apache-2.0 */
/* Packet-ins on their way to a connection.
 *
 * They wait in a queue for each ingress port.  The ports are served in turn, as the controller's
 * rate (--packet-in-rate) and its reading allow.  When too many wait, the oldest one of the port
 * with the most is dropped: a port that floods takes no other port's place, and what arrives is
 * recent. The output buffer knows no turns, so only AHEAD_MAX bytes are handed on to it at a time.
 */
#include "conn-packet-in.h"

#include "conn-async.h"

#include <control/fair-queue.h>
#include <shared/clock.h>

#include <stdlib.h>

#define WAITING_MAX                                                                                \
    (512u << 10)              /* bytes of one connection, in FAIR_QUEUE_PLACES messages at most */
#define AHEAD_MAX (64u << 10) /* bytes in the output buffer */
#define WAKE_NS   1000000u    /* the timer runs at least so long, so that it finds several tokens */

/* One packet-in, for all the connections that it waits for. */
struct packet_in {
    unsigned refs;
    uint8_t reason; /* OFPR_ */
    size_t n;
    uint8_t bytes[];
};

struct packet_ins {
    struct fair_queue queue;
    struct packet_in *waiting[FAIR_QUEUE_PLACES];
    size_t bytes;      /* of them */
    uint64_t credit;   /* of a main connection: what may be sent, ns times the rate */
    uint64_t refilled; /* loop time, ns */
    bool limited;      /* they wait for credit */
    uint64_t dropped;  /* since none waited */
    size_t ahead;      /* bytes handed on to the output buffer since it was empty of them */
    uint64_t upto;     /* they have been sent when bytes_out has reached this */
};

static void
let_go(struct packet_in *p)
{
    if (!--p->refs)
        free(p);
}

static void
take_out(struct packet_ins *q, int place)
{
    q->bytes -= q->waiting[place]->n;
    let_go(q->waiting[place]);
    q->waiting[place] = NULL;
}

static uint64_t
full_credit(const struct channel *ch)
{
    return ch->opt.packet_in_burst * NS_PER_S;
}

static struct packet_ins *
packet_ins_of(struct conn *c)
{
    struct packet_ins *q = c->packet_ins;
    if (q || !(q = calloc(1, sizeof *q)))
        return q;
    fair_queue_init(&q->queue);
    q->credit = full_credit(c->ch);
    q->refilled = loop_now(c->ch->loop);
    return c->packet_ins = q;
}

void
conn_packet_ins_free(struct conn *c)
{
    struct packet_ins *q = c->packet_ins;
    for (int i; q && (i = fair_queue_pop(&q->queue)) != FAIR_QUEUE_NONE;)
        take_out(q, i);
    free(q);
    c->packet_ins = NULL;
}

/* ------------------------------------------------------------------ tokens */

static void
refill(struct channel *ch, struct packet_ins *q)
{
    uint64_t now = loop_now(ch->loop), full = full_credit(ch), rate = ch->opt.packet_in_rate;
    uint64_t passed = now - q->refilled;
    q->refilled = now;
    if (passed >= (full - q->credit) / rate)
        q->credit = full;
    else
        q->credit += passed * rate;
}

static void
wake_at(struct channel *ch, uint64_t at)
{
    if (ch->packet_in_due && ch->packet_in_due <= at)
        return;
    ch->packet_in_due = at;
    loop_timer_set(ch->packet_in_timer, at);
}

/* True: one more may be sent to the controller.  False: the timer is set for the time when it
 * may. */
static bool
take_token(struct conn *c)
{
    struct channel *ch = c->ch;
    uint64_t rate = ch->opt.packet_in_rate;
    struct packet_ins *q = rate ? packet_ins_of(conn_main(c)) : NULL;
    if (!q)
        return !rate;
    refill(ch, q);
    if (q->credit >= NS_PER_S) {
        q->credit -= NS_PER_S;
        return true;
    }
    uint64_t wait = (NS_PER_S - q->credit) / rate + 1;
    wake_at(ch, loop_now(ch->loop) + (wait < WAKE_NS ? WAKE_NS : wait));
    return false;
}

/* ------------------------------------------------------------------ sending */

/* Has the peer read enough for n bytes more? */
static bool
has_room(struct conn *c, struct packet_ins *q, size_t n)
{
    if (q->ahead >= AHEAD_MAX)
        conn_flush(c);
    if (c->counters.bytes_out >= q->upto)
        q->ahead = 0;
    return q->ahead < AHEAD_MAX && conn_waiting(c) + n <= conn_out_mark(c) / 2;
}

static bool
is_wanted(struct conn *c, const struct packet_in *p)
{
    return conn_is_controller(c) && conn_wants(conn_main(c), ASYNC_PACKET_IN, p->reason);
}

bool
conn_wants_packet_in(const struct conn *c, uint8_t reason)
{
    return conn_wants(c, ASYNC_PACKET_IN, reason);
}

void
conn_packet_ins_run(struct conn *c)
{
    struct packet_ins *q = c->packet_ins;
    for (int i; q && (i = fair_queue_first(&q->queue)) != FAIR_QUEUE_NONE;) {
        const struct packet_in *p = q->waiting[i];
        if (is_wanted(c, p)) { /* still */
            q->limited = false;
            if (!has_room(c, q, p->n))
                return;
            q->limited = !take_token(c);
            if (q->limited)
                return;
            conn_send_bytes(c, (struct of_bytes){p->bytes, p->n});
            q->ahead += p->n;
            q->upto = c->counters.bytes_out + conn_waiting(c);
        }
        fair_queue_pop(&q->queue);
        take_out(q, i);
    }
    if (q && q->dropped) {
        log_notice_by(PACKET, LOG_PEER(c->peer), "no packet-ins are dropped any more; %llu were",
                      (unsigned long long)q->dropped);
        q->dropped = 0;
    }
}

static void
run_all(struct channel *ch)
{
    for (struct conn *c = ch->conns; c; c = c->next)
        conn_packet_ins_run(c);
}

void
channel_packet_ins_due(void *ctx)
{
    struct channel *ch = ctx;
    ch->packet_in_due = 0;
    run_all(ch);
}

void
channel_packet_ins_send(struct channel *ch)
{
    ch->packet_in_batch = 0;
    run_all(ch);
}

/* ------------------------------------------------------------------ waiting */

/* The beginning of dropping is logged here, the end when no packet-in waits any more. */
static void
drop_longest(struct conn *c, struct packet_ins *q)
{
    if (!q->dropped++)
        log_warning_by(PACKET, LOG_PEER(c->peer), "packet-ins are being dropped: %s",
                       q->limited ? "more come than --packet-in-rate allows"
                                  : "it reads them too slowly");
    int place = fair_queue_longest(&q->queue);
    fair_queue_remove(&q->queue, place);
    take_out(q, place);
    if (q->limited)
        COUNT(c, packet_in_limited, 1);
    else
        COUNT(c, packet_in_dropped, 1);
}

static void
enqueue(struct conn *c, uint32_t in_port, struct packet_in *p)
{
    struct packet_ins *q = packet_ins_of(c);
    int place = FAIR_QUEUE_NONE;
    while (q && (q->bytes > WAITING_MAX ||
                 (place = fair_queue_put(&q->queue, in_port)) == FAIR_QUEUE_NONE))
        drop_longest(c, q);
    if (!q) {
        COUNT(c, packet_in_dropped, 1);
        return;
    }
    q->waiting[place] = p;
    q->bytes += p->n;
    p->refs++;
}

/* Which of a controller's connections the packet-ins of a port take; c is its main one. */
static struct conn *
conn_of_port(struct conn *c, uint32_t in_port)
{
    const struct uplink *main = c->uplink;
    struct conn *open[CHANNEL_AUX_MAX];
    unsigned n = 0;
    for (unsigned i = 1; main && i <= main->n_aux; i++)
        if (main[i].conn && conn_is_controller(main[i].conn))
            open[n++] = main[i].conn;
    return n ? open[in_port % n] : c;
}

void
channel_packet_in(struct channel *ch, uint32_t in_port, const struct of_packet_in *body)
{
    struct of_wr *w = &ch->scratch;
    w->len = 0;
    int err = of_encode_body(w, OFPT_PACKET_IN, 0, body);
    struct packet_in *p = err ? NULL : malloc(sizeof *p + w->len);
    if (!p) {
        ch->counters.packet_in_dropped++;
        return;
    }
    *p = (struct packet_in){.refs = 1, .reason = body->reason, .n = w->len};
    memcpy(p->bytes, w->buf, w->len);
    for (struct conn *c = ch->conns; c; c = c->next)
        if (conn_wants(c, ASYNC_PACKET_IN, body->reason) &&
            conn_sees(c, (struct of_bytes){p->bytes, p->n}))
            enqueue(conn_of_port(c, in_port), in_port, p);
    let_go(p);
    if (++ch->packet_in_batch >= FAIR_QUEUE_PLACES / 4) /* before a burst fills the places */
        channel_packet_ins_send(ch);
}
