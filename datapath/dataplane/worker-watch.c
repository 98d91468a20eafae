/* SPDX-License-Identifier: Apache-2.0 */
#include <dataplane/worker-watch.h>

#include <shared/atomics.h>

#include <oflib/openflow.h>

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define RINGS ((PORT_MAX + 1u) * 2)

enum { WAKE, SET, FIRST }; /* in watch.poll */

int
watch_open(struct watch *w, int wake_fd)
{
    *w = (struct watch){.epoll_fd = epoll_create1(EPOLL_CLOEXEC)};
    if (w->epoll_fd < 0)
        return -errno;
    w->ring = calloc(RINGS, sizeof *w->ring); /* few of its pages are touched */
    if (!w->ring) {
        watch_close(w);
        return -ENOMEM;
    }
    w->poll[WAKE] = (struct pollfd){.fd = wake_fd, .events = POLLIN};
    w->poll[SET] = (struct pollfd){.fd = -1, .events = POLLIN};
    return 0;
}

void
watch_close(struct watch *w)
{
    free(w->ring);
    w->ring = NULL;
    if (w->epoll_fd >= 0)
        close(w->epoll_fd);
    w->epoll_fd = -1;
}

/* ------------------------------------------------------------------ from one state to another */

static void
count_idle(struct watch *w, int n)
{
    w->n_idle += (unsigned)n;
    w->poll[SET].fd = w->n_idle ? w->epoll_fd : -1; /* poll(2) passes over a negative one */
}

/* The ring is then unused, or between two states. */
static void
leave(struct watch *w, unsigned at)
{
    struct watch_ring *r = &w->ring[at];
    if (r->state == WATCH_IS_ACTIVE) {
        unsigned i = 0;
        while (w->active[i] != at)
            i++;
        w->active[i] = w->active[--w->n_active];
        w->poll[FIRST + i] = w->poll[FIRST + w->n_active];
    } else if (r->state == WATCH_IS_IDLE) {
        epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, r->fd, NULL); /* if it is closed, it has left */
        count_idle(w, -1);
    } else if (r->state == WATCH_IS_BLIND) {
        w->n_blind--;
    }
    r->state = WATCH_NONE;
}

static void
blind(struct watch *w, unsigned at)
{
    leave(w, at);
    w->ring[at].state = WATCH_IS_BLIND;
    w->n_blind++;
}

static void
closed(struct watch *w, unsigned at)
{
    blind(w, at);
    counter_add(&w->closed, 1);
}

static void
activate(struct watch *w, unsigned at)
{
    leave(w, at);
    struct watch_ring *r = &w->ring[at];
    w->poll[FIRST + w->n_active] = (struct pollfd){.fd = r->fd, .events = POLLIN};
    w->active[w->n_active++] = (uint16_t)at;
    r->state = WATCH_IS_ACTIVE;
}

static void
rest(struct watch *w, unsigned at)
{
    leave(w, at);
    struct watch_ring *r = &w->ring[at];
    struct epoll_event e = {.events = EPOLLIN, .data.u32 = at};
    if (!epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, r->fd, &e)) {
        r->state = WATCH_IS_IDLE;
        count_idle(w, 1);
    } else if (errno == EBADF) {
        closed(w, at);
    } else {
        blind(w, at);
    }
}

/* After the interface went down, poll and epoll report the error until it is read.  A descriptor
 * that reports one for another reason goes on doing so. */
static void
clear_error(struct watch *w, unsigned at)
{
    int err = 0;
    socklen_t n = sizeof err;
    if (getsockopt(w->ring[at].fd, SOL_SOCKET, SO_ERROR, &err, &n) || !err)
        blind(w, at);
}

/* ------------------------------------------------------------------ when ports change */

static unsigned
place(uint32_t no, bool shaper)
{
    return (no == OFPP_LOCAL ? 0 : no) * 2 + shaper;
}

/* A blind ring gets another chance. */
void
watch_mark(struct watch *w, uint32_t no, bool shaper, struct port *port, int fd)
{
    struct watch_ring *r = &w->ring[place(no, shaper)];
    r->marked =
        r->port == port && r->uid == port_uid(port) && r->fd == fd && r->state != WATCH_IS_BLIND;
}

/* Before any is added: a descriptor that one of them had may be another's now. */
void
watch_sweep(struct watch *w, uint64_t now)
{
    w->tick = WATCH_TICK(now);
    for (unsigned i = 0; i < w->top; i++) {
        if (w->ring[i].state != WATCH_NONE && !w->ring[i].marked)
            leave(w, i);
        w->ring[i].marked = false;
    }
    w->n_ready = 0;
    w->more = false;
}

void
watch_add(struct watch *w, uint32_t no, bool shaper, struct port *port, int fd)
{
    unsigned at = place(no, shaper);
    struct watch_ring *r = &w->ring[at];
    if (r->state != WATCH_NONE || fd < 0)
        return;
    *r = (struct watch_ring){
        .port = port, .fd = fd, .uid = port_uid(port), .last = w->tick, .shaper = shaper};
    if (at >= w->top)
        w->top = at + 1;
    if (w->n_active < WATCH_ACTIVE)
        activate(w, at);
    else
        rest(w, at);
}

/* ------------------------------------------------------------------ each round */

/* A ring in the set has something.  If it also had something not long ago it becomes active.
 * Otherwise a packet now and then would cost moving it out of the set and back. */
static void
stir(struct watch *w, unsigned at, uint32_t events)
{
    struct watch_ring *r = &w->ring[at];
    bool lately = w->tick - r->last < WATCH_REST;
    r->last = w->tick;
    if (events & (EPOLLERR | EPOLLHUP))
        clear_error(w, at);
    if (lately && r->state == WATCH_IS_IDLE && w->n_active < WATCH_ACTIVE)
        activate(w, at);
    else
        w->ready[w->n_ready++] = (uint16_t)at;
}

static void
look(struct watch *w, uint64_t now)
{
    struct epoll_event e[WATCH_READY];
    int n = w->n_idle ? epoll_wait(w->epoll_fd, e, WATCH_READY, 0) : 0;
    for (int i = 0; i < n; i++)
        stir(w, e[i].data.u32, e[i].events);
    w->more = n == WATCH_READY;
    w->looked = now;
}

static void
let_rest(struct watch *w)
{
    for (unsigned i = w->n_active; i-- > 0;)
        if (w->tick - w->ring[w->active[i]].last >= WATCH_REST)
            rest(w, w->active[i]);
    w->checked = w->tick;
}

static void
read_blind(struct watch *w)
{
    unsigned i = 0;
    for (; i < w->top && w->n_ready < WATCH_READY; i++) {
        unsigned at = (w->blind_next + i) % w->top;
        if (w->ring[at].state == WATCH_IS_BLIND)
            w->ready[w->n_ready++] = (uint16_t)at;
    }
    w->blind_next = w->top ? (w->blind_next + i) % w->top : 0;
    w->blind_since = w->tick;
}

void
watch_begin(struct watch *w, uint64_t now)
{
    w->tick = WATCH_TICK(now);
    w->n_ready = 0;
    if (w->tick - w->checked >= WATCH_REST)
        let_rest(w);
    if (w->more || now - w->looked >= WATCH_LOOK_NS)
        look(w, now);
    if (w->n_blind && w->tick - w->blind_since >= WATCH_BLIND_MS - 1)
        read_blind(w);
}

/* ------------------------------------------------------------------ sleeping */

static bool
rests(const struct watch *w, unsigned i, uint64_t now)
{
    return !watch_is_alone(w) && share_rests(&w->ring[w->active[i]].share, now);
}

/* poll(2) passes over rings that rest.  Returns when the first of them, or `at`, is due; 0: never. */
static uint64_t
hide_resting(struct watch *w, uint64_t now, uint64_t at)
{
    for (unsigned i = 0; i < w->n_active; i++) {
        if (!rests(w, i, now))
            continue;
        uint64_t until = w->ring[w->active[i]].share.rests_until;
        w->poll[FIRST + i].fd = -1;
        if (!at || until < at)
            at = until;
    }
    return at;
}

static void
show_all(struct watch *w)
{
    for (unsigned i = 0; i < w->n_active; i++)
        w->poll[FIRST + i].fd = w->ring[w->active[i]].fd;
}

static int
wait_ms(const struct watch *w, uint64_t now, uint64_t at)
{
    uint64_t ms = at > now ? (at - now) / 1000000 + 1 : 0;
    if (at && (!w->n_blind || ms < WATCH_BLIND_MS))
        return ms < INT_MAX ? (int)ms : INT_MAX;
    return w->n_blind ? WATCH_BLIND_MS : -1;
}

void
watch_sleep(struct watch *w, uint64_t now, uint64_t wake_at)
{
    bool hides = now < w->rests_until;
    uint64_t at = hides ? hide_resting(w, now, wake_at) : wake_at;
    if (poll(w->poll, FIRST + w->n_active, wait_ms(w, now, at)) < 0)
        for (unsigned i = 0; i < FIRST + w->n_active; i++)
            w->poll[i].revents = 0;
    if (hides)
        show_all(w);
    if (w->poll[WAKE].revents) {
        uint64_t v;
        ssize_t ignored = read(w->poll[WAKE].fd, &v, sizeof v);
        (void)ignored;
    }
}

void
watch_woken(struct watch *w)
{
    if (w->poll[SET].revents)
        w->more = true;
    for (unsigned i = w->n_active; i-- > 0;) {
        short said = w->poll[FIRST + i].revents;
        if (said & POLLNVAL) /* poll(2) returns at once while it is given one */
            closed(w, w->active[i]);
        else if (said & (POLLERR | POLLHUP))
            clear_error(w, w->active[i]);
    }
}
