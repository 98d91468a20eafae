/* SPDX-License-Identifier: Apache-2.0 */
#include "watchdog.h"

#include <ports/ports.h>

#include <daemon/log.h>
#include <daemon/notify.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICKS_A_LIMIT 3 /* one may come late */
#define STATUS_NS     UINT64_C(5000000000)

struct watchdog {
    struct sw *sw;
    struct loop_timer *timer;
    uint64_t every; /* ns */
    bool watched;   /* the manager wants WATCHDOG=1 */
    bool asked;     /* the workers were woken, and `rounds` is what they had then */
    char status[128];
    unsigned rounds[]; /* of each worker */
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

/* Whether every worker has finished a round since it was woken at the last tick.  Wakes them again:
 * a worker without packets sleeps. */
static bool
workers_are_alive(struct watchdog *w)
{
    bool alive = true;
    for (unsigned i = 0; i < w->sw->dp.n_workers; i++) {
        struct worker *worker = w->sw->dp.workers[i];
        unsigned rounds = load_relaxed(&worker->rounds);
        if (w->asked && rounds == w->rounds[i]) {
            log_error(SWITCH,
                      "packet worker %u hangs: it has finished no round for %u ms; the service "
                      "manager's watchdog restarts the switch if this goes on",
                      i, (unsigned)(w->every / 1000000));
            alive = false;
        }
        w->rounds[i] = rounds;
        worker_wake(worker);
    }
    w->asked = true;
    return alive;
}

static void
tick(void *ctx)
{
    struct watchdog *w = ctx;
    if (w->watched && workers_are_alive(w))
        notify_send("WATCHDOG=1");
    tell_status(w);
    loop_timer_set(w->timer, loop_now(w->sw->loop) + w->every);
}

int
watchdog_start(struct sw *sw, struct watchdog **out)
{
    *out = NULL;
    if (!notify_wanted())
        return 0;
    struct watchdog *w = calloc(1, sizeof *w + sw->dp.n_workers * sizeof w->rounds[0]);
    if (!w)
        return -ENOMEM;
    uint64_t limit = notify_watchdog_ns();
    w->sw = sw;
    w->watched = limit > 0;
    w->every = limit ? limit / TICKS_A_LIMIT : STATUS_NS;
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
