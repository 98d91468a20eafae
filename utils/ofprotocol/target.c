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
    int err = stream_resolve(text, r->tls, &t->remote, why, why_len);
    if (err)
        return err;
    t->text = text;
    r->n_targets++;
    return 0;
}

/* Another address of its name at once; after the last one a pause. */
void
target_lost(struct relay *r, struct target *t, const char *why, int64_t now)
{
    bool spoken = t->session && t->session->spoken;
    t->session = NULL;
    t->next = now;
    if (!spoken && ++t->address < t->remote.n)
        return;
    t->address = 0;
    if (spoken || !t->told)
        log_line(LOG_WARN, "%s: %s", t->text, why);
    t->told = true;
    if (spoken || !t->backoff_ms)
        t->backoff_ms = BACKOFF_MS;
    else
        t->backoff_ms *= 2;
    if (t->backoff_ms > r->backoff_max_ms)
        t->backoff_ms = r->backoff_max_ms;
    t->next += t->backoff_ms;
}

void
targets_wait(struct relay *r, int64_t now)
{
    for (unsigned i = 0; r->manage.up && i < r->n_targets; i++)
        if (!r->targets[i].session)
            relay_wait_until(r, r->targets[i].next);
}

void
targets_run(struct relay *r, int64_t now)
{
    for (unsigned i = 0; r->manage.up && i < r->n_targets; i++) {
        struct target *t = &r->targets[i];
        struct stream *s;
        if (t->session || t->next > now)
            continue;
        int err = stream_connect(&t->remote, t->address, &s);
        if (!err && !(t->session = session_new(r, s, t->text, t, now)))
            err = -ENOMEM;
        if (err)
            target_lost(r, t, strerror(-err), now);
    }
}
