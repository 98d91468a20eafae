/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: probes, what came back, what the class sent, the law, the change. */
#include "autorate-inside.h"

#include <autorate/autorate.h>

#include <core/say.h>
#include <core/signals.h>
#include <queues/queues.h>

#include <errno.h>

#define SECOND    1000000
#define LINE_US   SECOND
#define REOPEN_US SECOND
#define ALONE_US  SECOND /* without a round trip, after which reflectors are probed, too */
#define IDLE_PART 8 /* of the rate: a class that sends less may have no connection to measure */

static int64_t
now_us(void)
{
    return signals_clock_us(CLOCK_MONOTONIC);
}

/* --------------------------------------------------------------------- the connection */

/* Handles a failed request: if the connection failed it is opened again, else the switch
 * refused. */
static enum status
failed(struct autorate *a, const char *said)
{
    struct remote *r = &a->c->remote;
    if (!*r->why) {
        a->refused = true;
        return say_failed(a->c, "%s", said);
    }
    a->lost = true;
    remote_close(r);
    return autorate_event(a, "lost", r->why);
}

/* Calls a function that asks the switch, or changes something there. */
static enum status
ask(struct autorate *a, enum status (*what)(struct autorate *a))
{
    char said[CTX_SAID] = "";
    *a->c->remote.why = '\0';
    a->c->said = said;
    enum status st = what(a);
    a->c->said = NULL;
    of_arena_reset(&a->c->arena);
    return st ? failed(a, said) : DPCTL_OK;
}

static enum status
reopen(struct autorate *a)
{
    if (remote_reopen(&a->c->remote))
        return DPCTL_OK; /* the next time, then */
    a->lost = false;
    a->passive.after = 0; /* another process may count anew */
    enum status st = ask(a, autorate_find);
    a->at = 0;
    return st || a->lost ? st : autorate_event(a, "found", "the switch is there again");
}

/* ----------------------------------------------------------------------------- a turn */

static enum status
measure(struct autorate *a)
{
    uint64_t bytes;
    enum status st = autorate_sent(a, &bytes);
    int64_t now = now_us();
    if (st)
        return st;
    int64_t took = a->at ? now - a->at : 0;
    uint64_t more = bytes > a->bytes ? bytes - a->bytes : 0; /* a class made anew counts from 0 */
    a->sent = took > 0 ? more * 8 * SECOND / (uint64_t)took : 0;
    a->line_sent += more;
    a->line_took += took;
    a->bytes = bytes;
    a->at = now;
    return DPCTL_OK;
}

static enum status
apply_law(struct autorate *a)
{
    return autorate_apply(a, a->law.rate, false);
}

static enum status
apply_safe(struct autorate *a)
{
    return autorate_apply(a, a->safe, true);
}

/* Goes to the safe rate: when nothing was measured for long, it is unknown what the link carries. */
static enum status
without_answers(struct autorate *a)
{
    if (a->silent)
        return DPCTL_OK;
    a->silent = true;
    enum status st = ask(a, apply_safe);
    if (st || a->lost)
        return st;
    autorate_begin(&a->law, &a->bounds);
    a->law.rate = a->safe;
    return autorate_event(a, "silent",
                          !a->passive.on ? "no reflector answers"
                          : a->probes.n
                              ? "there is no round trip of what passes, and no reflector answers"
                              : "there is no round trip of what passes");
}

static bool
needs_probes(const struct autorate *a)
{
    return !a->passive.on || now_us() - a->passive.heard_at >= ALONE_US;
}

/* The delay of this turn, and since when nothing was measured. */
static int64_t
look(struct autorate *a)
{
    struct passive *p = &a->passive;
    bool idle = a->sent < a->rate / IDLE_PART;
    a->answering = a->pairs = 0;
    a->delay = p->on ? passive_delay(p, &a->pairs, &a->baseline) : -1;
    if (!a->pairs && needs_probes(a))
        a->delay = probes_delay(&a->probes, now_us(), &a->answering, &a->baseline);
    if (p->on && idle && !a->pairs && !a->answering)
        p->heard_at = now_us(); /* nothing passes, and nothing is delayed */
    if (p->on && idle && a->delay < 0)
        a->delay = 0;
    if (a->delay > a->line_delay)
        a->line_delay = a->delay;
    return p->on ? p->heard_at : a->began;
}

static enum status
turn(struct autorate *a)
{
    enum status st = a->lost ? reopen(a) : DPCTL_OK;
    st = st || a->lost ? st : ask(a, measure);
    st = st || a->lost || !a->passive.on ? st : ask(a, autorate_listen);
    int64_t heard_at = look(a);
    if (st || a->lost)
        return st;
    if (!a->pairs && !a->answering && a->delay < 0)
        return now_us() - heard_at < PROBE_SILENT ? DPCTL_OK : without_answers(a);
    if (a->silent)
        st = autorate_event(a, "answers",
                            a->pairs       ? "there are round trips"
                            : a->answering ? "a reflector answers"
                                           : "little passes, so nothing waits");
    a->silent = false;
    a->state = autorate_step(
        &a->law, &(struct autorate_turn){.at = a->at, .sent = a->sent, .delay = a->delay});
    return st ? st : ask(a, apply_law);
}

/* --------------------------------------------------------------------------- the loop */

/* Takes answers until then. */
static enum status
wait_until(struct autorate *a, int64_t until)
{
    struct remote *r = &a->c->remote;
    enum status st = DPCTL_OK;
    for (int64_t left; !st && !signals_pending() && (left = until - now_us()) > 0;) {
        int err = remote_idle(r, (left + 999) / 1000, &a->before, a->probes.epoll);
        if (err == 1)
            probes_receive(&a->probes, now_us());
        else if (err < 0 && err != -EINTR)
            st = failed(a, "");
    }
    probes_receive(&a->probes, now_us()); /* answers that came while this process did not run */
    return st;
}

static enum status
loop(struct autorate *a)
{
    enum status st = DPCTL_OK;
    int64_t next = now_us(), line = next + LINE_US;
    a->began = next;
    for (uint64_t lines = 0; !st && !signals_pending() && (!a->count || lines < a->count);) {
        if (needs_probes(a))
            probes_send(&a->probes, now_us());
        next += (int64_t)(a->lost ? REOPEN_US : (int64_t)a->turn_us);
        if (next < now_us())
            next = now_us(); /* it couldn't keep up */
        st = wait_until(a, next);
        if (st || signals_pending())
            break;
        st = turn(a);
        if (!st && now_us() >= line) {
            st = autorate_line(a);
            lines++;
            line = now_us() + LINE_US - (now_us() - line) % LINE_US;
        }
    }
    return st;
}

/* Leaves the class at the safe rate, if the switch can still be reached. */
static enum status
finish(struct autorate *a, enum status st)
{
    if (!st && a->lost)
        return say_failed(a->c, "the switch is gone: the class keeps the rate it had");
    if (a->refused || !a->c->remote.stream)
        return st;
    enum status end = ask(a, apply_safe);
    if (end || a->lost)
        return DPCTL_FAILED;
    end = autorate_event(a, "end", "left at the safe rate");
    return st ? st : end;
}

enum status
autorate_run(struct ctx *c, char **words, int n)
{
    char why[256];
    struct autorate a = {.c = c, .line_delay = -1};
    if (probes_open(&a.probes, why, sizeof why))
        return say_failed(c, "%s", why);
    enum status st = autorate_options(&a, words, n);
    if (!st) {
        autorate_begin(&a.law, &a.bounds);
        passive_begin(&a.passive, now_us());
        st = a.passive.on && !a.probes.n ? queues_needs_latency(c) : DPCTL_OK;
        st = st ? st : autorate_find(&a);
    }
    if (!st) {
        signal(SIGPIPE, SIG_IGN); /* also if the reader goes away the class gets its safe rate */
        signals_hold(&a.before);
        st = finish(&a, loop(&a));
        signals_release(&a.before);
    }
    probes_close(&a.probes);
    return st;
}
