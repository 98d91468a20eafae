/* SPDX-License-Identifier: Apache-2.0 */
/* The loop, and peers that connect to it. */
#include "relay.h"

#include <daemon/log.h>

#include <errno.h>
#include <string.h>
#include <time.h>

#define PAUSE_MS 200 /* before accepting again */

static int64_t
now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* Without a pause poll() would come back at once. */
static void
starve(struct relay *r, int err, int64_t now)
{
    if (!r->starved)
        log_warning(DAEMON, "peers have to wait: %s", strerror(-err));
    r->starved = true;
    r->accept_at = now + PAUSE_MS;
}

/* Beyond ACCEPTED_MAX peers wait in the kernel. */
static void
accept_peers(struct relay *r, struct stream_listener *l, int64_t now)
{
    while (r->n_accepted < ACCEPTED_MAX) {
        char name[STREAM_PEER_MAX];
        struct stream *peer;
        int err = stream_accept(l, &peer, name, sizeof name);
        if (err == -EMFILE || err == -ENFILE || err == -ENOBUFS || err == -ENOMEM)
            starve(r, err, now);
        if (err)
            return;
        r->starved = false;
        if (session_new(r, peer, name, NULL, NULL, now))
            r->n_accepted++;
    }
}

static void
prepare(struct relay *r, int signals, int64_t now)
{
    r->n_fds = 0;
    r->wake = INT64_MAX;
    relay_wait_fd(r, signals, POLLIN);
    for (unsigned i = 0; i < r->n_listeners; i++)
        relay_wait_fd(r, stream_listener_fd(r->listeners[i]),
                      r->n_accepted < ACCEPTED_MAX && now >= r->accept_at ? POLLIN : 0);
    if (now < r->accept_at && r->accept_at < r->wake)
        r->wake = r->accept_at;
    manage_wait(r, now);
    targets_wait(r, now);
    sessions_wait(r, now);
}

static int
timeout_ms(const struct relay *r, int64_t now)
{
    if (r->wake == INT64_MAX)
        return -1;
    int64_t left = r->wake - now;
    return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

void
relay_loop(struct relay *r, struct daemon *d, int signals)
{
    for (;;) {
        int64_t now = now_ms();
        prepare(r, signals, now);
        int n = poll(r->fds, r->n_fds, timeout_ms(r, now));
        if (n < 0 && errno != EINTR) {
            log_error(DAEMON, "poll: %s", strerror(errno));
            return;
        }
        if (n < 0)
            continue;
        if (relay_woken(r, 0) && daemon_is_over(d, signals))
            return;
        now = now_ms();
        sessions_run(r, now);
        targets_run(r, now);
        for (unsigned i = 0; i < r->n_listeners; i++)
            if (relay_woken(r, 1 + i))
                accept_peers(r, r->listeners[i], now);
        manage_run(r, now); /* last: it reports what the others have come to */
    }
}

void
relay_free(struct relay *r)
{
    while (r->sessions)
        session_free(r, r->sessions);
    manage_close(r);
    targets_free(r);
    for (unsigned i = 0; i < r->n_listeners; i++)
        stream_listener_free(r->listeners[i]);
    stream_tls_free(r->tls);
}
