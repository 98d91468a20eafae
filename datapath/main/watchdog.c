/* SPDX-License-Identifier: Apache-2.0 */
#include "watchdog.h"

#include <megaflow/wire.h>
#include <ports/ports.h>

#include <daemon/log.h>
#include <daemon/notify.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICKS_A_LIMIT 3 /* one may come late */
#define STATUS_NS     UINT64_C(5000000000)
#define WIRES_NS      UINT64_C(250000000)  /* sw_wires_serve */
#define SILENT_NS     UINT64_C(1000000000) /* of a worker, and ports with a wire go by it */

struct watchdog {
    struct sw *sw;
    struct loop_timer *timer;
    uint64_t every; /* ns */
    uint64_t
        limit; /* a worker silent for so long hangs: the manager hears nothing; 0: none watches */
    bool ready;
    char status[128];
    struct seen {
        unsigned rounds; /* that it had finished */
        bool asked;      /* it was woken then */
        bool said;       /* the log says that it hangs */
        uint64_t since;  /* when it had no more than that */
    } seen[];            /* of each worker */
};

static void
tell_status(struct watchdog *w)
{
    struct channel_controllers controllers = channel_controllers(w->sw->channel);
    unsigned ports = 0, up = 0;
    uint32_t no = 0;
    char text[sizeof w->status];
    for (const struct sw_port *p; (p = sw_ports_next(w->sw, no)); no = p->no) {
        ports++;
        up += !sw_port_is_down(p);
    }
    int n = snprintf(text, sizeof text, "%u of %u ports up", up, ports);
    if (controllers.targets)
        snprintf(text + n, sizeof text - (size_t)n, ", %u of %u controllers connected",
                 controllers.connected, controllers.targets);
    if (!strcmp(text, w->status))
        return;
    memcpy(w->status, text, sizeof text);
    notify_send("STATUS=%s", text);
}

static void
say_hangs(const struct watchdog *w, struct seen *seen, unsigned i, uint64_t silent)
{
    if (silent < (w->limit ? w->limit : SILENT_NS) || seen->said)
        return;
    seen->said = true;
    log_error(SWITCH, "packet worker %u hangs: it has finished no round for %u ms%s", i,
              (unsigned)(silent / 1000000),
              w->limit ? "; the service manager's watchdog restarts the switch if this goes on"
                       : "");
}

/* For how many ns one of the workers has finished no round, although it was woken.  Wakes them again: a worker
 * without packets sleeps. */
static uint64_t
longest_silence(struct watchdog *w, uint64_t now)
{
    uint64_t longest = 0;
    for (unsigned i = 0; i < w->sw->dp.n_workers; i++) {
        struct worker *worker = w->sw->dp.workers[i];
        struct seen *seen = &w->seen[i];
        unsigned rounds = load_relaxed(&worker->rounds);
        if (!seen->asked || rounds != seen->rounds)
            *seen = (struct seen){.rounds = rounds, .asked = true, .since = now};
        uint64_t silent = now - seen->since;
        longest = silent > longest ? silent : longest;
        say_hangs(w, seen, i, silent);
        worker_wake(worker);
    }
    return longest;
}

static void
tick(void *ctx)
{
    struct watchdog *w = ctx;
    uint64_t now = loop_clock(), silence = longest_silence(w, now);
    if (w->limit && silence < w->limit)
        notify_send("WATCHDOG=1");
    if (w->ready && silence < SILENT_NS)
        sw_wires_serve(w->sw, now);
    if (notify_wanted())
        tell_status(w);
    loop_timer_set(w->timer, loop_now(w->sw->loop) + w->every);
}

void
watchdog_ready(struct watchdog *w)
{
    if (!w)
        return;
    w->ready = true;
    tick(w);
}

int
watchdog_start(struct sw *sw, struct watchdog **out)
{
    *out = NULL;
    if (!notify_wanted() && !sw->opt.n_wires)
        return 0;
    struct watchdog *w = calloc(1, sizeof *w + sw->dp.n_workers * sizeof w->seen[0]);
    if (!w)
        return -ENOMEM;
    w->sw = sw;
    w->limit = notify_watchdog_ns() / TICKS_A_LIMIT;
    w->every = w->limit ? w->limit : STATUS_NS;
    if (sw->opt.n_wires && w->every > WIRES_NS)
        w->every = WIRES_NS;
    int err = loop_timer_new(sw->loop, tick, w, &w->timer);
    if (err) {
        free(w);
        return err;
    }
    tick(w);
    *out = w;
    return 0;
}

void
watchdog_stop(struct watchdog *w)
{
    if (!w)
        return;
    loop_timer_free(w->timer);
    free(w);
}
