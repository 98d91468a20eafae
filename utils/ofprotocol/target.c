/* SPDX-License-Identifier: Apache-2.0 */
/* Controllers to connect to, again and again. */
#include "relay.h"

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BACKOFF_MS 1000 /* before the second attempt; doubled each time */

int
target_add(struct relay *r, const char *text, char *why, size_t why_len)
{
    if (r->n_targets == TARGETS_MAX) {
        snprintf(why, why_len, "%s: there may be %d controllers", text, TARGETS_MAX);
        return -E2BIG;
    }
    struct target *t = &r->targets[r->n_targets];
    int err = stream_remote_of(text, r->tls, &t->remote, why, why_len);
    if (err)
        return err;
    t->text = text;
    t->is_name = !t->remote.n;
    r->n_targets++;
    return 0;
}

/* The next address of its name is tried at once; after the last one there is a pause. */
static void
target_lost(struct relay *r, struct target *t, const char *why, int64_t now)
{
    bool spoken = t->session && t->session->spoken;
    t->session = NULL;
    t->next = now;
    if (!spoken && ++t->address < t->remote.n)
        return;
    t->address = 0;
    if (spoken || !t->logged)
        log_warning_by(CONN, LOG_PEER(t->text), "%s", why);
    t->logged = true;
    if (spoken || !t->backoff_ms)
        t->backoff_ms = BACKOFF_MS;
    else
        t->backoff_ms *= 2;
    if (t->backoff_ms > r->backoff_max_ms)
        t->backoff_ms = r->backoff_max_ms;
    t->next += t->backoff_ms;
}

/* ------------------------------------------------------------------- names */

/* Before each round of its addresses. */
static void
look_up(struct relay *r, struct target *t, int64_t now)
{
    int err = stream_lookup_begin(&t->remote, &t->lookup);
    if (err)
        target_lost(r, t, strerror(-err), now);
}

/* True: there are addresses to try, old ones if the look-up failed. */
static bool
looked_up(struct relay *r, struct target *t, int64_t now)
{
    char why[320];
    if (!relay_woken(r, t->place))
        return false;
    int err = stream_lookup_end(t->lookup, &t->remote, why, sizeof why);
    t->lookup = NULL;
    if (err && !t->remote.n)
        target_lost(r, t, why, now);
    return t->remote.n;
}

/* ------------------------------------------------------------------ trying */

void
targets_wait(struct relay *r, int64_t now)
{
    for (unsigned i = 0; i < r->n_targets; i++) {
        struct target *t = &r->targets[i];
        if (t->lookup)
            t->place = relay_wait_fd(r, stream_lookup_fd(t->lookup), POLLIN);
        else if (r->manage.up && !t->session)
            relay_wait_until(r, t->next);
    }
}

void
targets_run(struct relay *r, int64_t now)
{
    for (unsigned i = 0; r->manage.up && i < r->n_targets; i++) {
        struct target *t = &r->targets[i];
        struct stream *s;
        bool fresh = t->lookup;
        if (t->session || t->next > now || (fresh && !looked_up(r, t, now)))
            continue;
        if (t->is_name && !t->address && !fresh) {
            look_up(r, t, now);
            continue;
        }
        int err = stream_connect(&t->remote, t->address, &s);
        if (!err && !(t->session = session_new(r, s, t->text, t, target_lost, now)))
            err = -ENOMEM;
        if (err)
            target_lost(r, t, strerror(-err), now);
    }
}

void
targets_free(struct relay *r)
{
    for (unsigned i = 0; i < r->n_targets; i++)
        stream_lookup_end(r->targets[i].lookup, NULL, NULL, 0);
}
