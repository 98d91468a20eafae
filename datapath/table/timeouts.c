/* SPDX-License-Identifier: Apache-2.0 */
#include <table/timeouts.h>

#include <errno.h>
#include <stdlib.h>

#define SLOT_NS ((uint64_t)FLOW_CLOCK_NS)
#define SLOTS   4096 /* 512 s; later timers go round again */

struct flow_timer {
    struct flow_timer *prev, *next;
    struct flow *flow;
};

struct timeouts {
    uint64_t tick; /* the slots before this one are done */
    uint32_t n;
    struct flow_timer slot[SLOTS]; /* list heads */
};

static void
list_init(struct flow_timer *head)
{
    head->prev = head->next = head;
}

struct timeouts *
timeouts_new(void)
{
    struct timeouts *t = calloc(1, sizeof *t);
    for (int i = 0; t && i < SLOTS; i++)
        list_init(&t->slot[i]);
    return t;
}

void
timeouts_free(struct timeouts *t)
{
    free(t);
}

static void
unlink_timer(struct flow_timer *e)
{
    e->prev->next = e->next;
    e->next->prev = e->prev;
}

/* ns; UINT64_MAX: no hard timeout */
static uint64_t
hard_due(const struct flow *f)
{
    return f->hard_timeout ? f->created + f->hard_timeout * UINT64_C(1000000000) : UINT64_MAX;
}

static uint64_t
idle_due(const struct flow *f, uint64_t now)
{
    if (!f->idle_timeout)
        return UINT64_MAX;
    int32_t ago = (int32_t)(flow_clock(now) - load_relaxed(&f->used));
    uint64_t tick = (now + SLOT_NS - 1) / SLOT_NS - (ago > 0 ? (uint32_t)ago : 0);
    return tick * SLOT_NS + f->idle_timeout * UINT64_C(1000000000);
}

static uint64_t
due(const struct flow *f, uint64_t now)
{
    uint64_t hard = hard_due(f), idle = idle_due(f, now);
    return hard < idle ? hard : idle;
}

static void
put(struct timeouts *t, struct flow_timer *e, uint64_t when)
{
    uint64_t tick = (when + SLOT_NS - 1) / SLOT_NS;
    if (tick < t->tick)
        tick = t->tick;
    if (tick - t->tick >= SLOTS)
        tick = t->tick + SLOTS - 1;
    struct flow_timer *head = &t->slot[tick % SLOTS];
    e->next = head;
    e->prev = head->prev;
    e->prev->next = e->next->prev = e;
}

int
timeouts_watch(struct timeouts *t, struct flow *f, uint64_t now)
{
    if (!f->idle_timeout && !f->hard_timeout) {
        timeouts_forget(t, f);
        return 0;
    }
    if (!t->n)
        t->tick = now / SLOT_NS;
    if (f->timer) {
        unlink_timer(f->timer);
    } else {
        if (!(f->timer = malloc(sizeof *f->timer)))
            return -ENOMEM;
        f->timer->flow = f;
        t->n++;
    }
    put(t, f->timer, due(f, now));
    return 0;
}

void
timeouts_forget(struct timeouts *t, struct flow *f)
{
    if (!f->timer)
        return;
    unlink_timer(f->timer);
    free(f->timer);
    f->timer = NULL;
    t->n--;
}

struct flow *
timeouts_next(struct timeouts *t, uint64_t now, uint8_t *reason)
{
    for (; t->n && t->tick * SLOT_NS <= now; t->tick++) {
        struct flow_timer *head = &t->slot[t->tick % SLOTS], *e;
        while ((e = head->next) != head) {
            struct flow *f = e->flow;
            uint64_t when = due(f, now);
            if (when <= now) {
                *reason = hard_due(f) <= now ? OFPRR_HARD_TIMEOUT : OFPRR_IDLE_TIMEOUT;
                timeouts_forget(t, f);
                return f;
            }
            unlink_timer(e);
            /* Never into this slot, or the loop would not end. */
            put(t, e, when > now + SLOT_NS ? when : now + SLOT_NS);
        }
    }
    return NULL;
}

uint64_t
timeouts_due(const struct timeouts *t, uint64_t now)
{
    return t->n ? (t->tick > now / SLOT_NS ? t->tick : now / SLOT_NS + 1) * SLOT_NS : 0;
}
