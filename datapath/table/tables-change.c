/* SPDX-License-Identifier: Apache-2.0 */
/* Adding, changing and removing a flow: at once, or at the end of the open change set. */
#include "tables-inside.h"

#include <shared/rcu.h>

#include <errno.h>
#include <stdlib.h>

/* ------------------------------------------------------------------ counters */

static struct flow_counter
sum_counters(const struct tables *t, const struct flow *f)
{
    struct flow_counter sum = {0};
    for (unsigned i = 0; i < t->n_counters; i++) {
        const struct flow_counter *c = flow_counter_of(f, i);
        sum.packets += counter_read(&c->packets);
        sum.bytes += counter_read(&c->bytes);
    }
    return sum;
}

struct flow_counter
tables_flow_counter(const struct tables *t, const struct flow *f)
{
    struct flow_counter c = sum_counters(t, f);
    c.packets = f->flags & OFPFF_NO_PKT_COUNTS ? UINT64_MAX : c.packets - f->reset_packets;
    c.bytes = f->flags & OFPFF_NO_BYT_COUNTS ? UINT64_MAX : c.bytes - f->reset_bytes;
    return c;
}

static void
reset_counters(const struct tables *t, struct flow *f)
{
    struct flow_counter c = sum_counters(t, f);
    f->reset_packets = c.packets;
    f->reset_bytes = c.bytes;
}

/* ------------------------------------------------------------------ memory */

void
flow_hold(struct flow *f)
{
    f->refs++;
}

static void
reclaim(void *arg)
{
    struct flow *f = arg;
    free(f->program);
    classifier_free_flow(f);
}

void
flow_release(struct flow *f)
{
    if (!--f->refs && f->removed)
        rcu_defer(reclaim, f);
}

/* ------------------------------------------------------------------ the tables' view */

/* To be called before the flow can be found. */
static void
use_mask(struct tables *t, const struct flow_key *mask)
{
    bool more = false;
    for (int i = 0; i < KEY_WORDS; i++) {
        if (!(mask->w[i] & ~t->used.w[i]))
            continue;
        halves_store(&t->used.w[i], t->used.w[i] | mask->w[i]);
        more = true;
    }
    if (more)
        store_release(&t->used_serial, t->used_serial + 1);
}

static void
note_change(struct tables *t, const struct flow *f)
{
    change_log_write(&t->log, f);
    change_log_publish(&t->log);
}

/* A flow gets the program (delta 1) or loses it (-1). */
static void
refers(struct tables *t, struct flow *f, struct program *p, int delta)
{
    t->n_flows += (uint32_t)delta;
    t->bytes += delta > 0 ? program_size(p) : -(uint64_t)program_size(p);
    uint32_t *n_goto = &t->table[f->table_id].n_goto;
    if (p->goto_table != NO_TABLE)
        store_relaxed(n_goto, *n_goto + (uint32_t)delta);
    if (t->ops.groups)
        groups_refer(t->ops.groups, f, p, delta);
    if (t->ops.meters)
        meters_refer(t->ops.meters, f, p, delta);
}

static struct classifier *
classifier_of(struct tables *t, const struct flow *f)
{
    return &t->table[f->table_id].flows;
}

/* Workers may still read the flow. */
static void
take_out(struct tables *t, struct flow *f)
{
    timeouts_forget(t->timeouts, f);
    change_log_write(&t->log, f);
    classifier_remove(classifier_of(t, f), f);
    change_log_publish(&t->log);
    t->untidy = true;
    f->removed = true;
}

static void
set_timing(struct flow *f, const struct flow_timing *timing, uint64_t now)
{
    f->created = now;
    f->idle_timeout = timing->idle_timeout;
    f->hard_timeout = timing->hard_timeout;
    f->flags = timing->flags;
}

/* ------------------------------------------------------------------ adding */

static void
settle_added(void *owner, void *what, void *more, bool done)
{
    struct tables *t = owner;
    struct flow *f = what;
    if (done) {
        change_set_clear(&f->mark, CHANGE_SET_NEW);
        t->revision++;
        change_log_publish(&t->log); /* also for the side that workers have left */
        return;
    }
    flow_hold(f);
    refers(t, f, f->program, -1);
    take_out(t, f);
    flow_release(f);
}

int
flow_add(struct tables *t, struct flow *f, struct program *program,
         const struct flow_timing *timing)
{
    bool noted = change_set_active();
    set_timing(f, timing, t->now);
    f->used = flow_clock(t->now);
    f->program = program;
    if (noted && !change_set_reserve())
        goto no_memory;
    if (timeouts_watch(t->timeouts, f, t->now))
        goto no_memory;
    if (noted)
        change_set_set(&f->mark, CHANGE_SET_NEW);
    use_mask(t, &f->sub->mask);
    if (classifier_insert(classifier_of(t, f), f))
        goto no_memory;
    refers(t, f, program, 1);
    note_change(t, f);
    if (noted)
        change_set_note(settle_added, t, f, NULL);
    else
        t->revision++;
    return 0;

no_memory: /* a worker may have met it */
    timeouts_forget(t->timeouts, f);
    note_change(t, f);
    classifier_drop_place(classifier_of(t, f), f);
    rcu_defer(reclaim, f);
    return -ENOMEM;
}

/* ------------------------------------------------------------------ changing */

static void
settle_changed(void *owner, void *what, void *more, bool done)
{
    struct tables *t = owner;
    struct flow *f = what;
    struct flow_change *c = more;
    if (done) {
        rcu_assign_pointer(f->program, c->now);
        if (c->replaced)
            store_relaxed(&f->used, flow_clock(t->now));
        if (c->reset)
            reset_counters(t, f);
        if (!f->idle_timeout && !f->hard_timeout)
            timeouts_forget(t->timeouts, f);
        t->revision++;
        change_log_publish(&t->log);
    } else {
        refers(t, f, c->now, -1);
        refers(t, f, c->old, 1);
        rcu_assign_pointer(f->program, c->old);
        f->created = c->created;
        f->idle_timeout = c->idle_timeout;
        f->hard_timeout = c->hard_timeout;
        f->flags = c->flags;
        if (c->watched) /* it has a timer, so this can't fail */
            timeouts_watch(t->timeouts, f, t->now);
        else
            timeouts_forget(t->timeouts, f);
    }
    if (c->now != c->old)
        rcu_defer_free(done ? c->old : c->now);
    rcu_defer_free(c);
}

/* The open change set's change of the flow, begun if there is none.  NULL: no memory. */
static struct flow_change *
change_of(struct tables *t, struct flow *f)
{
    struct flow_change *c = flow_changing(f->program);
    if (c)
        return c;
    if (!change_set_reserve() || !(c = calloc(1, sizeof *c)))
        return NULL;
    *c = (struct flow_change){.old = f->program,
                              .now = f->program,
                              .created = f->created,
                              .idle_timeout = f->idle_timeout,
                              .hard_timeout = f->hard_timeout,
                              .flags = f->flags,
                              .watched = f->timer != NULL};
    change_set_set(&c->mark, CHANGE_SET_NEW);
    rcu_assign_pointer(f->program, flow_change_program(c));
    change_set_note(settle_changed, t, f, c);
    return c;
}

/* A flow from before the open change set keeps its program until the set's end. */
static bool
changes_aside(const struct flow *f)
{
    return change_set_active() && !(f->mark & CHANGE_SET_NEW);
}

/* Of a changing flow's programs, workers use only the one from before the set, so others are
 * freed at once. */
static void
set_now(struct tables *t, struct flow *f, struct flow_change *c, struct program *program)
{
    refers(t, f, program, 1);
    refers(t, f, c->now, -1);
    if (c->now != c->old)
        free(c->now);
    c->now = program;
}

static void
set_program(struct tables *t, struct flow *f, struct program *program)
{
    struct program *old = f->program;
    refers(t, f, program, 1);
    rcu_assign_pointer(f->program, program);
    note_change(t, f);
    refers(t, f, old, -1);
    rcu_defer_free(old);
    if (!change_set_active())
        t->revision++;
}

int
flow_modify(struct tables *t, struct flow *f, struct program *program, bool reset_counts)
{
    if (!changes_aside(f)) {
        set_program(t, f, program);
        if (reset_counts)
            reset_counters(t, f);
        return 0;
    }
    struct flow_change *c = change_of(t, f);
    if (!c) {
        free(program);
        return -ENOMEM;
    }
    set_now(t, f, c, program);
    note_change(t, f);
    c->reset |= reset_counts;
    return 0;
}

/* The timer stays until the set's end, as undoing must not need memory. */
static int
watch(struct tables *t, struct flow *f, bool aside)
{
    if (aside && !f->idle_timeout && !f->hard_timeout)
        return 0;
    return timeouts_watch(t->timeouts, f, t->now);
}

int
flow_replace(struct tables *t, struct flow *f, struct program *program,
             const struct flow_timing *timing, bool reset_counts)
{
    bool aside = changes_aside(f);
    uint64_t created = f->created;
    struct flow_timing old = {f->idle_timeout, f->hard_timeout, f->flags};
    struct flow_change *c = aside ? change_of(t, f) : NULL;
    if (aside && !c) {
        free(program);
        return -ENOMEM;
    }
    uint32_t used = f->used;
    set_timing(f, timing, t->now);
    if (c)
        c->replaced = true;
    else
        f->used = flow_clock(t->now);
    if (watch(t, f, aside)) {
        set_timing(f, &old, created);
        if (!c)
            f->used = used; /* LCOV_EXCL_LINE: no memory */
        free(program);
        return -ENOMEM;
    }
    return flow_modify(t, f, program, reset_counts);
}

/* ------------------------------------------------------------------ removing */

/* A removed flow whose flow-removed message is still to be sent. */
struct leaving {
    struct tables *t;
    struct flow *f;
    uint64_t at;
    uint8_t reason;
};

/* After the grace period: no worker counts on the flow any more. */
static void
tell_removed(void *arg)
{
    struct leaving *l = arg;
    struct flow *f = l->f;
    l->t->ops.removed(l->t->ops.ctx, f, l->reason, l->at);
    free(l);
    if (!--f->refs)
        reclaim(f);
}

/* To be called before the flow is taken out: that may defer the freeing of its mask, which the
 * message names.  False: no memory. */
static bool
tell_later(struct tables *t, struct flow *f, uint8_t reason)
{
    struct leaving *l = malloc(sizeof *l);
    if (!l)
        return false;
    *l = (struct leaving){t, f, t->now, reason};
    flow_hold(f);
    rcu_defer(tell_removed, l);
    return true;
}

/* final: workers have stopped using the flow. */
static void
leave(struct tables *t, struct flow *f, uint8_t reason, bool final)
{
    bool tell = f->flags & OFPFF_SEND_FLOW_REM;
    flow_hold(f);
    if (tell && !final)
        tell = !tell_later(t, f, reason);
    take_out(t, f);
    t->revision++;
    if (tell)
        t->ops.removed(t->ops.ctx, f, reason, t->now);
    flow_release(f);
}

static void
settle_removed(void *owner, void *what, void *more, bool done)
{
    struct tables *t = owner;
    struct flow *f = what;
    t->table[f->table_id].n_leaving--;
    if (done) {
        leave(t, f, (uint8_t)(uintptr_t)more, true);
        return;
    }
    change_set_clear(&f->mark, CHANGE_SET_OLD);
    refers(t, f, flow_program(f), 1);
}

int
flow_remove(struct tables *t, struct flow *f, uint8_t reason)
{
    if (!change_set_active()) {
        refers(t, f, f->program, -1);
        leave(t, f, reason, false);
        return 0;
    }
    if (!change_set_reserve())
        return -ENOMEM;
    change_set_set(&f->mark, CHANGE_SET_OLD);
    t->table[f->table_id].n_leaving++;
    refers(t, f, flow_program(f), -1);
    note_change(t, f);
    change_set_note(settle_removed, t, f, (void *)(uintptr_t)reason);
    return 0;
}
