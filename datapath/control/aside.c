/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that answers echo requests while the control thread is in the kernel for long.
 *
 * The control thread holds a lock, `house`, except during calls that may block (between
 * channel_leave and channel_back).  The holder may do what a handler may: read behind what waits
 * in the buffer, and send.  But this thread never closes a connection and never ends a dump, as
 * the control thread may be in the middle of one.
 *
 * The thread looks every TICK_MS while the control thread makes such calls, and sleeps while it
 * makes none. */
#include "aside.h"

#include "conn.h"

#include <shared/atomics.h>

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TICK_MS 100
#define STACK   (256u << 10)

struct aside {
    struct channel *ch;
    pthread_t thread;
    pthread_mutex_t house;
    int wake;        /* eventfd */
    unsigned serial; /* of calls, odd: the control thread is in one */
    bool asleep, over;
};

/* ------------------------------------------------------------------ echo requests */

/* What is in the buffer stays where it is: a handler may be reading it. */
static void
read_behind(struct conn *c)
{
    if (c->in_at == c->in_len)
        c->in_at = c->in_len = 0;
    size_t room = IN_CAP - c->in_len;
    ssize_t n = room && !c->eof ? stream_read(c->stream, c->in + c->in_len, room) : -EAGAIN;
    if (n > 0) {
        COUNT(c, bytes_in, (uint64_t)n);
        c->in_len += (size_t)n;
        conn_flush_later(c); /* nothing else will tell of these bytes */
    } else if (n < 0 && n != -EAGAIN) {
        conn_lose(c, (int)n);
    }
}

/* The request is removed from the buffer, or made an echo reply in place, which is ignored when
 * its turn comes. */
static void
answer(struct conn *c, size_t at, size_t n)
{
    uint8_t *p = c->in + at;
    struct of_echo echo = {.data = {p + OFP_HEADER_LEN, n - OFP_HEADER_LEN}};
    if (conn_send(c, OFPT_ECHO_REPLY, of_get32(p + 4), &echo))
        return;
    p[1] = OFPT_ECHO_REPLY;
    if (at + n < c->in_len)
        return;
    c->in_len = at;
    c->seen = loop_now(c->ch->loop);
    COUNT(c, messages_in, 1);
}

static void
answer_all(struct conn *c)
{
    const uint8_t version = c->door ? OFP10_VERSION : OFP_VERSION;
    for (size_t at = c->in_at; at + OFP_HEADER_LEN <= c->in_len;) {
        const uint8_t *p = c->in + at;
        int n = of_frame_len(p, c->in_len - at);
        if (n < 0 || at + (size_t)n > c->in_len || conn_waiting(c) > CONN_OUT_MAX)
            return;
        if (p[1] == OFPT_ECHO_REQUEST && p[0] == version)
            answer(c, at, (size_t)n);
        at += (size_t)n;
    }
}

/* Ignores errors: the control thread will meet them. */
static void
write_some(struct conn *c)
{
    ssize_t n;
    while (conn_waiting(c) &&
           (n = stream_write(c->stream, c->out.buf + c->out_at, conn_waiting(c))) > 0) {
        c->out_at += (size_t)n;
        COUNT(c, bytes_out, (uint64_t)n);
    }
}

void
channel_answer_echoes(struct channel *ch)
{
    for (struct conn *c = ch->conns; c; c = c->next) {
        if (c->phase != CONN_OPEN || c->mute)
            continue;
        write_some(c);
        if (!c->fail)
            read_behind(c);
        if (!c->fail)
            answer_all(c);
        write_some(c);
    }
}

/* ------------------------------------------------------------------ the thread */

/* Sleeps until woken; at most a tick, unless there is nothing to watch. */
static void
rest(struct aside *a, unsigned last)
{
    struct pollfd p = {.fd = a->wake, .events = POLLIN};
    uint64_t count;
    bool sleeps = !(last & 1);
    if (sleeps) {
        fetch_store(&a->asleep, true);
        sleeps = fetch_add(&a->serial, 0) == last;
    }
    if (poll(&p, 1, sleeps ? -1 : TICK_MS) > 0 && read(a->wake, &count, sizeof count) < 0)
        return; /* nobody needs the number */
    fetch_store(&a->asleep, false);
}

static void *
look_out(void *ctx)
{
    struct aside *a = ctx;
    for (unsigned last = 0, now; !load_acquire(&a->over); last = now) {
        rest(a, last);
        now = fetch_add(&a->serial, 0);
        if (now != last || !(now & 1) || pthread_mutex_trylock(&a->house))
            continue;
        channel_answer_echoes(a->ch);
        pthread_mutex_unlock(&a->house);
    }
    return NULL;
}

static void
wake(struct aside *a)
{
    const uint64_t one = 1;
    if (write(a->wake, &one, sizeof one) < 0)
        return; /* it is awake */
}

/* ------------------------------------------------------------------ the control thread's side */

void
channel_leave(struct channel *ch)
{
    struct aside *a = ch->aside;
    if (!a)
        return;
    fetch_add(&a->serial, 1);
    pthread_mutex_unlock(&a->house);
    if (load_acquire(&a->asleep) && fetch_store(&a->asleep, false))
        wake(a);
}

void
channel_back(struct channel *ch)
{
    struct aside *a = ch->aside;
    if (!a)
        return;
    pthread_mutex_lock(&a->house);
    fetch_add(&a->serial, 1);
}

static int
begin_thread(struct aside *a)
{
    pthread_attr_t attr;
    int err = pthread_attr_init(&attr);
    if (err)
        return -err;
    err = pthread_attr_setstacksize(&attr, STACK > PTHREAD_STACK_MIN ? STACK : PTHREAD_STACK_MIN);
    if (!err)
        err = pthread_create(&a->thread, &attr, look_out, a);
    pthread_attr_destroy(&attr);
    return -err;
}

int
channel_aside_start(struct channel *ch)
{
    struct aside *a = calloc(1, sizeof *a);
    if (!a)
        return -ENOMEM;
    a->ch = ch;
    a->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int err = a->wake < 0 ? -errno : -pthread_mutex_init(&a->house, NULL);
    if (!err) {
        pthread_mutex_lock(&a->house);
        err = begin_thread(a);
    }
    if (!err) {
        ch->aside = a;
        return 0;
    }
    if (a->wake >= 0)
        close(a->wake);
    free(a);
    return err;
}

void
channel_aside_stop(struct channel *ch)
{
    struct aside *a = ch->aside;
    if (!a)
        return;
    ch->aside = NULL;
    store_release(&a->over, true);
    wake(a);
    pthread_join(a->thread, NULL);
    pthread_mutex_unlock(&a->house);
    pthread_mutex_destroy(&a->house);
    close(a->wake);
    free(a);
}
