/* SPDX-License-Identifier: Apache-2.0 */
#include <loop/loop.h>

#include <shared/atomics.h>
#include <shared/clock.h>

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_A_TURN 64
#define NS_PER_MS     1000000u

struct loop_io {
    struct loop *loop;
    struct loop_io *next_dead;
    int fd;
    uint32_t events;
    bool dead; /* deleted, but this turn's events may still name it */
    loop_io_cb cb;
    void *ctx;
};

struct loop_timer {
    struct loop *loop;
    uint64_t at;
    uint64_t seq;  /* of two timers for the same time, the one set first runs first */
    uint32_t slot; /* in the heap; NOT_SET: not armed */
    loop_timer_cb cb;
    void *ctx;
};

#define NOT_SET UINT32_MAX

struct loop {
    int epoll_fd;
    int stop_fd; /* eventfd: wakes a waiting loop */
    bool stop;
    pthread_mutex_t
        mutex; /* of the next two: tickets of the loop's lock, which is for who has the number `entered` */
    uint64_t asked, entered;
    pthread_cond_t left;
    bool waits;   /* the loop, for events; under its lock */
    bool turning; /* the loop, callbacks; likewise */
    uint64_t now;
    uint64_t seq;
    struct loop_timer **heap; /* armed timers, the earliest first */
    uint32_t n_armed;
    uint32_t n_timers; /* that exist: the heap has room for all */
    uint32_t heap_cap;
    struct loop_io *dead;
    void (*idle)(void *ctx);
    void *idle_ctx;
};

uint64_t
loop_clock(void)
{
    return clock_ns();
}

int
loop_new(struct loop **out)
{
    struct loop *l = calloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    pthread_mutex_init(&l->mutex, NULL);
    pthread_cond_init(&l->left, NULL);
    l->asked = 1; /* this thread holds the lock */
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event ev = {.events = EPOLLIN};
    if (l->epoll_fd < 0 || l->stop_fd < 0 ||
        epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, l->stop_fd, &ev)) {
        int err = -errno;
        loop_free(l);
        return err;
    }
    l->now = loop_clock();
    *out = l;
    return 0;
}

static void
free_dead(struct loop *l)
{
    while (l->dead) {
        struct loop_io *io = l->dead;
        l->dead = io->next_dead;
        free(io);
    }
}

void
loop_free(struct loop *l)
{
    if (!l)
        return;
    free_dead(l);
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    if (l->stop_fd >= 0)
        close(l->stop_fd);
    pthread_cond_destroy(&l->left);
    pthread_mutex_destroy(&l->mutex);
    free(l->heap);
    free(l);
}

uint64_t
loop_now(const struct loop *l)
{
    return l->now;
}

void
loop_set_idle(struct loop *l, void (*cb)(void *ctx), void *ctx)
{
    l->idle = cb;
    l->idle_ctx = ctx;
}

static void
wake(struct loop *l)
{
    const uint64_t one = 1;
    int saved = errno;
    /* A full eventfd wakes the loop as well. */
    if (write(l->stop_fd, &one, sizeof one) < 0)
        errno = 0;
    errno = saved;
}

void
loop_stop(struct loop *l)
{
    store_release(&l->stop, true);
    wake(l);
}

/* ------------------------------------------------------------------ the lock */

void
loop_enter(struct loop *l)
{
    pthread_mutex_lock(&l->mutex);
    uint64_t mine = l->asked++;
    while (l->entered != mine)
        pthread_cond_wait(&l->left, &l->mutex);
    pthread_mutex_unlock(&l->mutex);
    l->now = loop_clock();
}

static void
pass_on(struct loop *l)
{
    pthread_mutex_lock(&l->mutex);
    l->entered++;
    pthread_cond_broadcast(&l->left);
    pthread_mutex_unlock(&l->mutex);
}

/* It is another thread if the loop waits: what it has done is completed by a turn (timers, the end of a turn). */
void
loop_leave(struct loop *l)
{
    if (l->waits)
        wake(l);
    pass_on(l);
}

/* ------------------------------------------------------------------ descriptors */

int
loop_io_add(struct loop *l, int fd, uint32_t events, loop_io_cb cb, void *ctx, struct loop_io **out)
{
    struct loop_io *io = malloc(sizeof *io);
    if (!io)
        return -ENOMEM;
    *io = (struct loop_io){.loop = l, .fd = fd, .events = events, .cb = cb, .ctx = ctx};
    struct epoll_event ev = {.events = events, .data.ptr = io};
    if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev)) {
        int err = -errno;
        free(io);
        return err;
    }
    *out = io;
    return 0;
}

void
loop_io_set(struct loop_io *io, uint32_t events)
{
    if (io->events == events)
        return;
    struct epoll_event ev = {.events = events, .data.ptr = io};
    io->events = events;
    epoll_ctl(io->loop->epoll_fd, EPOLL_CTL_MOD, io->fd, &ev);
}

void
loop_io_del(struct loop_io *io)
{
    if (!io)
        return;
    epoll_ctl(io->loop->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL);
    io->dead = true;
    io->next_dead = io->loop->dead;
    io->loop->dead = io;
}

/* ------------------------------------------------------------------ timers */

static bool
earlier(const struct loop_timer *a, const struct loop_timer *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void
put(struct loop *l, uint32_t slot, struct loop_timer *t)
{
    l->heap[slot] = t;
    t->slot = slot;
}

/* Puts t, which is at `slot`, where it belongs in the heap. */
static void
settle(struct loop *l, uint32_t slot, struct loop_timer *t)
{
    while (slot && earlier(t, l->heap[(slot - 1) / 2])) {
        put(l, slot, l->heap[(slot - 1) / 2]);
        slot = (slot - 1) / 2;
    }
    for (;;) {
        uint32_t child = slot * 2 + 1;
        if (child + 1 < l->n_armed && earlier(l->heap[child + 1], l->heap[child]))
            child++;
        if (child >= l->n_armed || !earlier(l->heap[child], t))
            break;
        put(l, slot, l->heap[child]);
        slot = child;
    }
    put(l, slot, t);
}

int
loop_timer_new(struct loop *l, loop_timer_cb cb, void *ctx, struct loop_timer **out)
{
    if (l->n_timers == l->heap_cap) {
        uint32_t cap = l->heap_cap ? l->heap_cap * 2 : 16;
        struct loop_timer **heap = realloc(l->heap, cap * sizeof(struct loop_timer *));
        if (!heap)
            return -ENOMEM;
        l->heap = heap;
        l->heap_cap = cap;
    }
    struct loop_timer *t = malloc(sizeof *t);
    if (!t)
        return -ENOMEM;
    *t = (struct loop_timer){.loop = l, .slot = NOT_SET, .cb = cb, .ctx = ctx};
    l->n_timers++;
    *out = t;
    return 0;
}

void
loop_timer_set(struct loop_timer *t, uint64_t at_ns)
{
    struct loop *l = t->loop;
    t->at = at_ns > l->now ? at_ns : l->now;
    t->seq = l->seq++;
    settle(l, t->slot != NOT_SET ? t->slot : l->n_armed++, t);
}

void
loop_timer_cancel(struct loop_timer *t)
{
    struct loop *l = t->loop;
    uint32_t slot = t->slot;
    if (slot == NOT_SET)
        return;
    t->slot = NOT_SET;
    struct loop_timer *last = l->heap[--l->n_armed];
    if (last != t)
        settle(l, slot, last);
}

void
loop_timer_free(struct loop_timer *t)
{
    if (!t)
        return;
    loop_timer_cancel(t);
    t->loop->n_timers--;
    free(t);
}

/* A timer that sets itself again at once waits for the next turn. */
static void
run_timers(struct loop *l)
{
    const uint64_t end = l->seq;
    while (l->n_armed && l->heap[0]->at <= l->now && l->heap[0]->seq < end) {
        struct loop_timer *t = l->heap[0];
        loop_timer_cancel(t);
        t->cb(t->ctx);
    }
}

/* ------------------------------------------------------------------ turning */

/* Until the next timer, rounded up to milliseconds. */
static int
wait_ms(const struct loop *l, int max_ms)
{
    if (!l->n_armed)
        return max_ms;
    uint64_t at = l->heap[0]->at, now = loop_clock();
    uint64_t ms = at > now ? (at - now + NS_PER_MS - 1) / NS_PER_MS : 0;
    if (ms > INT_MAX)
        ms = INT_MAX;
    return max_ms >= 0 && (int)ms > max_ms ? max_ms : (int)ms;
}

int
loop_turn(struct loop *l, int max_ms)
{
    struct epoll_event ev[EVENTS_A_TURN];
    int ms = wait_ms(l, max_ms);
    l->waits = true;
    pass_on(l);
    int n = epoll_wait(l->epoll_fd, ev, EVENTS_A_TURN, ms), err = n < 0 ? -errno : 0;
    loop_enter(l);
    l->waits = false;
    if (err && err != -EINTR)
        return err;
    l->turning = true;
    for (int i = 0; i < n; i++) {
        struct loop_io *io = ev[i].data.ptr;
        uint64_t count;
        if (io && !io->dead)
            io->cb(io->ctx, ev[i].events);
        else if (!io && read(l->stop_fd, &count, sizeof count) < 0)
            continue; /* only the flag matters, not the eventfd's count */
    }
    run_timers(l);
    if (l->idle)
        l->idle(l->idle_ctx);
    free_dead(l);
    l->turning = false;
    return 0;
}

bool
loop_is_turning(const struct loop *l)
{
    return l->turning;
}

int
loop_run(struct loop *l)
{
    int err = 0;
    while (!err && !fetch_store(&l->stop, false))
        err = loop_turn(l, -1);
    return err;
}
