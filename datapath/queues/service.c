/* SPDX-License-Identifier: Apache-2.0 */
#include "latency-state.h"

#include <queues/service.h>
#include <switch/switch.h>

#include <daemon/log.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS   1000000000u
#define MS_NS       UINT64_C(1000000)
#define MOST_OF     50   /* reading may take this part of the time */
#define FRAME_BYTES 1538 /* one frame, with what surrounds it on the wire */

struct service_port {
    uint32_t port_no;
    uint64_t read_at; /* loop_clock(); 0: what was read is too old to count from */
    struct service_class *v;
    size_t n, room;
    bool full; /* a reading found no memory */
};

struct service {
    struct loop_timer *timer; /* begins the task */
    struct task task;
    bool runs;
    uint64_t until;
    struct service_port *ports;
    size_t n;
};

/* ------------------------------------------------------------------ counting */

/* Prolongs a spell by a step, or ends it. */
static void
follow(struct service_spell *now, const struct service_spell *was, bool goes_on,
       const struct service_spell *step, uint32_t promise)
{
    *now = (struct service_spell){0};
    if (!goes_on)
        return;
    *now = (struct service_spell){.us = was->us + step->us,
                                  .bytes = was->bytes + step->bytes,
                                  .drops = was->drops + step->drops};
    now->told = promise && now->us >= promise * UINT64_C(1000);
}

/* What is told of a promise that is broken for so long, ms; 0: nothing is promised. */
static uint32_t
promise_of(const struct service_class *c, uint8_t kind)
{
    uint32_t ms = c->promise ? c->promise : SERVICE_PROMISE_MS;
    return kind != OFPQPK_DELAY ? c->promise : c->delay.promised ? ms : 0;
}

static bool
is_below(const struct service_class *c, uint64_t sent, uint64_t us)
{
    uint64_t due = (uint64_t)((double)c->rate / 8 * (double)us / 1e6);
    return sent + due / 20 + FRAME_BYTES < due;
}

/* The delay by what waits, where neither the scheduler nor the kernel's clock says anything. */
static void
estimate(struct service_class *now, uint64_t sent, uint64_t us)
{
    double rate = sent && us ? (double)sent * 1e6 / (double)us : (double)now->ceil / 8;
    double wait = now->backlog ? (rate > 0 ? (double)now->backlog / rate * 1e6 : -1) : 0;
    now->delay.us = wait < 0 || wait > 3.6e9 ? LATENCY_NONE : (uint32_t)wait;
}

/* A second is over: was the promise kept in it? */
static void
judge(struct service_class *now, const struct service_spell *was, const struct service_spell *step)
{
    struct service_delay *d = &now->delay;
    uint32_t ms = promise_of(now, OFPQPK_DELAY);
    struct service_spell second = {.us = d->second_us, .bytes = step->bytes};
    d->p90 = latency_percentile(d->second, d->n, 90);
    d->n = 0;
    d->second_us = 0;
    bool broken = d->promised && d->p90 != LATENCY_NONE && d->p90 > d->promised;
    if (d->promised) {
        d->seconds++;
        d->kept += !broken;
    }
    follow(&now->spells[OFPQPK_DELAY], was, broken, &second, ms);
}

/* A scheduler says how long the last packet waited that left: that means nothing once none waits. */
static void
count_delay(struct service_class *now, const struct service_class *was,
            const struct service_spell *step)
{
    const struct service_delay read = now->delay;
    struct service_delay *d = &now->delay;
    *d = was->delay;
    d->promised = read.promised;
    d->us = read.us;
    d->source = read.source;
    if (now->inner)
        return;
    if (!step->bytes && !now->waiting)
        d->us = 0;
    else if (d->source == LATENCY_BACKLOG)
        estimate(now, step->bytes, step->us);
    d->second_us += step->us;
    if (d->us != LATENCY_NONE && d->n < SERVICE_DELAYS)
        d->second[d->n++] = d->us;
    if (d->second_us >= 1000000)
        judge(now, &was->spells[OFPQPK_DELAY], step);
}

void
sw_service_count(struct service_class *now, const struct service_class *was, uint64_t us)
{
    if (!was)
        return;
    now->lended = was->lended + (uint32_t)(now->last_lends - was->last_lends);
    now->borrowed = was->borrowed + (uint32_t)(now->last_borrows - was->last_borrows);
    now->backlogged_us = was->backlogged_us;
    now->below_us = was->below_us;
    if (now->bytes < was->bytes) { /* it was made anew, and counts from 0 */
        now->lended = was->lended + now->last_lends;
        now->borrowed = was->borrowed + now->last_borrows;
        return;
    }
    for (uint8_t i = 0; i < SERVICE_KINDS; i++) {
        now->spells[i] = was->spells[i];
        now->spells[i].told &= promise_of(now, i) != 0;
    }
    if (!us)
        return;
    bool judged = now->waiting && was->waiting && now->rate && now->rate == was->rate;
    struct service_spell step = {.us = us, .bytes = now->bytes - was->bytes};
    if (now->promise && was->promise && now->drops > was->drops)
        step.drops = now->drops - was->drops;
    bool below = judged && is_below(now, step.bytes, us);
    now->backlogged_us += judged ? us : 0;
    now->below_us += below ? us : 0;
    follow(&now->spells[OFPQPK_RATE], &was->spells[OFPQPK_RATE], below, &step, now->promise);
    follow(&now->spells[OFPQPK_DROPS], &was->spells[OFPQPK_DROPS], step.drops, &step, now->promise);
    count_delay(now, was, &step);
}

/* ------------------------------------------------------------------ telling */

static uint64_t
bits_a_second(uint64_t bytes, uint64_t us)
{
    return us ? (uint64_t)((double)bytes * 8e6 / (double)us) : 0;
}

/* Drops are not logged: TCP learns a link's rate by them. */
static void
log_promise(const struct of_qos_promise *p)
{
    bool broken = p->state == OFPQP_BROKEN;
    if (p->kind == OFPQPK_DELAY)
        log_notice(
            QOS,
            "port %u: class %u's promise of %.1f ms of delay is %s: nine tenths waited no longer "
            "than %.1f ms",
            (unsigned)p->port_no, (unsigned)p->class_id, (double)p->rate / 1e3,
            broken ? "broken" : "kept again", (double)p->sent / 1e3);
    else if (p->kind == OFPQPK_RATE)
        log_notice(QOS, "port %u: class %u's promise of %u ms is %s", (unsigned)p->port_no,
                   (unsigned)p->class_id, (unsigned)p->promise_ms,
                   broken ? "broken" : "kept again");
    else
        log_info(QOS, "port %u: class %u %s packets", (unsigned)p->port_no, (unsigned)p->class_id,
                 broken ? "drops" : "no longer drops");
}

static void
tell_promise(struct sw *sw, uint32_t port_no, const struct service_class *now,
             const struct service_class *was, uint8_t kind, uint64_t us)
{
    const struct service_spell *n = &now->spells[kind], *last = n->told ? n : &was->spells[kind];
    static const enum async_kind asyncs[SERVICE_KINDS] = {
        [OFPQPK_RATE] = ASYNC_PROMISE, [OFPQPK_DROPS] = ASYNC_DROPS, [OFPQPK_DELAY] = ASYNC_DELAYS};
    enum async_kind async = asyncs[kind];
    uint32_t promise = promise_of(now, kind);
    if (!promise || n->told == was->spells[kind].told)
        return;
    bool delay = kind == OFPQPK_DELAY;
    struct of_qos_promise body = {
        .port_no = port_no,
        .class_id = now->class_id,
        .direction = now->dir == QOS_IN,
        .state = n->told ? OFPQP_BROKEN : OFPQP_KEPT,
        .kind = kind,
        .promise_ms = promise,
        .rate = delay ? now->delay.promised : now->rate,
        .sent = delay                     ? now->delay.p90
                : n->told                 ? bits_a_second(n->bytes, n->us)
                : now->bytes < was->bytes ? 0
                                          : bits_a_second(now->bytes - was->bytes, us),
        .lasted_us = last->us,
        .dropped = last->drops,
    };
    log_promise(&body);
    if (!channel_wants(sw->channel, async, 0))
        return;
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    of_encode_struct(&w, &of_row_qos_promise, &body);
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, OFP_EXP_QOS_PROMISE, {w.buf, w.len}};
    channel_async(sw->channel, async, 0, OFPT_EXPERIMENTER, &m);
    of_wr_free(&w);
}

/* ------------------------------------------------------------------- reading */

static int
by_place(const void *a, const void *b)
{
    const struct service_class *x = a, *y = b;
    if (x->dir != y->dir)
        return x->dir < y->dir ? -1 : 1;
    return x->class_id < y->class_id ? -1 : x->class_id > y->class_id;
}

static void
take_class(void *ctx, const struct qos_sample *s)
{
    struct service_port *p = ctx;
    const struct qos_counters *k = &s->counters;
    if (p->n == p->room) {
        size_t room = p->room ? p->room * 2 : 16;
        struct service_class *v = realloc(p->v, room * sizeof *v);
        if (!v) {
            p->full = true;
            return;
        }
        p->v = v;
        p->room = room;
    }
    p->v[p->n++] = (struct service_class){
        .class_id = s->class_id,
        .dir = s->dir,
        .lends = s->lends,
        .waiting = k->backlog_packets,
        .rate = s->rate,
        .backlog = k->backlog_bytes,
        .ceil = s->ceil,
        .promise = s->promise,
        .inner = s->inner,
        .delay = {.promised = s->delay,
                  .us = s->has_delay ? s->delay_us : LATENCY_NONE,
                  .source = s->has_delay ? LATENCY_SCHEDULER : LATENCY_BACKLOG,
                  .p90 = LATENCY_NONE},
        .bytes = k->bytes,
        .drops = k->drops,
        .last_lends = k->lends,
        .last_borrows = k->borrows,
        .lended = k->lends,
        .borrowed = k->borrows};
}

/* What the kernel's clock says of a class whose scheduler doesn't know how long packets wait: of the last sampled
 * packet, if workers have sent one lately (port/port.h). */
static void
take_clock(struct sw *sw, struct service_port *p)
{
    const struct sw_port *at = sw_ports_find(sw, p->port_no);
    const struct port_shaper *s = at && at->port ? port_shaper(at->port) : NULL;
    for (size_t i = 0; at && at->port && i < p->n; i++) {
        struct service_class *c = &p->v[i];
        const struct port *port = c->dir == QOS_OUT ? at->port : s ? s->to : NULL;
        if (c->delay.source != LATENCY_BACKLOG || c->inner || !port ||
            port_tx_class(port, c->class_id) != c->class_id ||
            !port_queue_waited(port, c->class_id, &c->delay.us))
            continue;
        c->delay.source = LATENCY_CLOCK;
    }
}

static void
keep_delay(struct latency *store, uint32_t port_no, const struct service_class *c, uint64_t now)
{
    const struct latency_key key = {port_no, c->class_id, c->dir == QOS_IN};
    if (!c->inner && c->delay.us != LATENCY_NONE)
        latency_delay(store, &key, c->delay.us, c->delay.source, now);
}

/* Both are in order. */
static void
count_classes(struct sw *sw, struct service_port *now, const struct service_port *was, uint64_t us)
{
    struct latency *store = sw->latency ? sw->latency->store : NULL;
    for (size_t i = 0, k = 0; i < now->n; i++) {
        while (k < was->n && by_place(&was->v[k], &now->v[i]) < 0)
            k++;
        bool same = k < was->n && !by_place(&was->v[k], &now->v[i]) && !was->v[k].gone;
        sw_service_count(&now->v[i], same ? &was->v[k] : NULL, us);
        if (store && same && us)
            keep_delay(store, now->port_no, &now->v[i], now->read_at);
        for (uint8_t kind = 0; same && kind < SERVICE_KINDS; kind++)
            tell_promise(sw, now->port_no, &now->v[i], &was->v[k], kind, us);
    }
}

/* A port that can't be read keeps what was counted. */
static int
read_port(struct sw *sw, struct service_port *p)
{
    struct service_port now = {.port_no = p->port_no, .read_at = loop_clock()};
    int err = qos_sample(sw->qos, p->port_no, sw->latency != NULL, take_class, &now);
    err = err ? err : now.full ? -ENOMEM : 0;
    if (err) {
        free(now.v);
        return err;
    }
    if (now.n)
        qsort(now.v, now.n, sizeof *now.v, by_place);
    take_clock(sw, &now);
    count_classes(sw, &now, p, p->read_at ? (now.read_at - p->read_at) / 1000 : 0);
    free(p->v);
    *p = now;
    return 0;
}

/* Makes room for the ports that there are, and forgets the others. */
static int
follow_ports(struct sw *sw, struct service *s)
{
    uint32_t no = 0;
    size_t n = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        n++;
    struct service_port *v = calloc(n + 1, sizeof *v);
    if (!v)
        return -ENOMEM;
    size_t at = 0, k = 0;
    no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no) {
        while (k < s->n && s->ports[k].port_no < p->no)
            free(s->ports[k++].v);
        if (k < s->n && s->ports[k].port_no == p->no)
            v[at++] = s->ports[k++];
        else
            v[at++].port_no = p->no;
    }
    while (k < s->n)
        free(s->ports[k++].v);
    free(s->ports);
    s->ports = v;
    s->n = at;
    return 0;
}

static int
read_all(struct sw *sw)
{
    struct service *s = sw->service;
    uint64_t begun = loop_clock();
    int err = follow_ports(sw, s);
    for (size_t i = 0; i < s->n && !err; i++)
        err = read_port(sw, &s->ports[i]);
    uint64_t now = loop_clock(), rest = (now - begun) * MOST_OF, period = SECOND_NS;
    uint64_t promise = qos_least_promise(sw->qos) * MS_NS;
    period = promise && promise < period ? promise : period;
    loop_timer_set(s->timer, now + (rest > period ? rest : period));
    return err;
}

static enum task_progress
run(void *ctx, uint64_t deadline)
{
    struct sw *sw = ctx;
    struct service *s = sw->service;
    s->runs = loop_now(sw->loop) < s->until || qos_least_promise(sw->qos);
    port_queue_clocks(s->runs && sw->latency);
    if (s->runs)
        read_all(sw);
    return TASK_OVER;
}

static void
on_timer(void *ctx)
{
    static const struct task_kind kind = {
        .needs = QUEUES, .locks = QUEUES, .blocks = true, .run = run};
    struct sw *sw = ctx;
    task_queue(sw->tasks, &sw->service->task, &kind, sw);
}

/* ------------------------------------------------------------------ beginning and end */

static int
make(struct sw *sw)
{
    struct service *s = calloc(1, sizeof *s);
    int err = s ? loop_timer_new(sw->loop, on_timer, sw, &s->timer) : -ENOMEM;
    if (err)
        free(s);
    else
        sw->service = s;
    return err;
}

static void
start(struct sw *sw)
{
    struct service *s = sw->service;
    for (size_t i = 0; i < s->n; i++)
        s->ports[i].read_at = 0;
    s->runs = true;
    port_queue_clocks(sw->latency);
}

/* -> 1: it has been begun; 0: it goes on; -ENOMEM */
static int
keep_reading(struct sw *sw)
{
    int err = sw->service ? 0 : make(sw);
    if (err)
        return err;
    sw->service->until = loop_now(sw->loop) + SERVICE_KEEP_NS;
    if (sw->service->runs)
        return 0;
    start(sw);
    return 1;
}

int
sw_service_ask(struct sw *sw)
{
    int begun = keep_reading(sw);
    return begun > 0 ? read_all(sw) : begun;
}

void
sw_service_watch(struct sw *sw)
{
    if (keep_reading(sw) > 0)
        loop_timer_set(sw->service->timer, 0);
}

void
sw_service_promised(struct sw *sw)
{
    int err = sw->service ? 0 : make(sw);
    if (err)
        log_error(QOS, "promises are not watched: %s", strerror(-err));
    if (err || sw->service->runs)
        return;
    start(sw);
    loop_timer_set(sw->service->timer, loop_clock());
}

void
sw_service_forget(struct sw *sw, uint32_t port_no, enum qos_direction dir, uint32_t class_id)
{
    const struct service *s = sw->service;
    const struct service_class key = {.class_id = class_id, .dir = dir};
    for (size_t i = 0; s && i < s->n; i++) {
        struct service_port *p = &s->ports[i];
        struct service_class *c = p->port_no == port_no && p->n
                                      ? bsearch(&key, p->v, p->n, sizeof *p->v, by_place)
                                      : NULL;
        if (c)
            c->gone = true;
    }
}

void
sw_service_each(const struct sw *sw, sw_service_fn *fn, void *ctx)
{
    const struct service *s = sw->service;
    for (size_t i = 0; s && i < s->n; i++)
        for (size_t k = 0; k < s->ports[i].n; k++)
            if (!s->ports[i].v[k].gone)
                fn(ctx, s->ports[i].port_no, &s->ports[i].v[k]);
}

void
sw_service_free(struct sw *sw)
{
    struct service *s = sw->service;
    if (!s)
        return;
    loop_timer_free(s->timer);
    for (size_t i = 0; i < s->n; i++)
        free(s->ports[i].v);
    free(s->ports);
    free(s);
    sw->service = NULL;
}
