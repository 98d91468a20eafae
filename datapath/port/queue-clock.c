/* SPDX-License-Identifier: Apache-2.0 */
/* How long packets wait in a queue, by the kernel's clock (SO_TIMESTAMPING, Documentation/networking/timestamping.rst).
 *
 * One packet of a queue in 10 ms, and one of a worker in a millisecond, asks the kernel for two stamps: when it comes to
 * the queueing discipline (SCHED) and when the driver gets it (SND).  Both come to the error queue of the socket that sent
 * it, which is read when the queue's next packet is due for one; the stamps say nothing about that moment, so it does not
 * matter how late that is.  The packet carries its wish as ancillary data, so others cost nothing.
 *
 * While one is under way the next one asks 100 ms later.  So what was read last stands until another one is out, for as
 * long whatever its flow: where flows take turns, each has the share of the readings that it has of the packets. */
#include "backend.h"

#include <shared/clock.h>

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <string.h>

#define QUEUE_NS     (10 * UINT64_C(1000000))
#define WORKER_NS    UINT64_C(1000000)
#define READ_AT_ONCE 8

static bool on;

void
port_queue_clocks(bool run)
{
    store_relaxed(&on, run);
}

/* Stamps come, but only of packets that ask for them; without the packet's bytes. */
void
queue_clock_open(int fd)
{
    const uint32_t flags =
        SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_OPT_TSONLY;
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof flags); /* else none ever comes */
}

static uint64_t
ns_of(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec;
}

/* ------------------------------------------------------------------ stamps */

struct stamp {
    bool sent; /* SND; else SCHED */
    uint32_t id;
    uint64_t ns;
};

static void
forget(struct queue_clock *c, unsigned i)
{
    c->n--;
    memmove(c->under_way + i, c->under_way + i + 1, (c->n - i) * sizeof *c->under_way);
}

static void
take_sent(struct queue_clock *c, const struct stamp *s)
{
    unsigned i = 0;
    while (i < c->n && c->under_way[i].id != s->id)
        i++;
    if (i == c->n)
        return;
    uint32_t us = (uint32_t)(s->ns / 1000) - c->under_way[i].us;
    forget(c, i);
    if (i < c->overtaken)
        c->overtaken--;
    else
        c->overtaken = (uint8_t)i;
    if (us > INT32_MAX) /* the clock was set back */
        return;
    uint32_t now = (uint32_t)(clock_ns_of(CLOCK_MONOTONIC_COARSE) / 1000000);
    store_relaxed(&c->last, (uint64_t)now << 32 | us);
}

static void
take(struct queue_clock *c, const struct stamp *s)
{
    if (s->sent)
        take_sent(c, s);
    else if (c->n < QUEUE_CLOCK_UNDER_WAY)
        c->under_way[c->n++] = (struct queue_stamp){.id = s->id, .us = (uint32_t)(s->ns / 1000)};
}

/* False: there is no more. */
static bool
read_one(int fd, struct stamp *s)
{
    union {
        struct cmsghdr head;
        uint8_t room[256];
    } c;
    struct msghdr m = {.msg_control = &c, .msg_controllen = sizeof c};
    if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
        return false;
    *s = (struct stamp){0};
    for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
        struct sock_extended_err e;
        struct timespec t;
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SO_TIMESTAMPING) {
            memcpy(&t, CMSG_DATA(h), sizeof t);
            s->ns = ns_of(&t);
        } else if (h->cmsg_level == SOL_PACKET && h->cmsg_len >= CMSG_LEN(sizeof e)) {
            memcpy(&e, CMSG_DATA(h), sizeof e);
            s->id = e.ee_data;
            s->sent = e.ee_info == SCM_TSTAMP_SND;
        }
    }
    return true;
}

void
queue_clock_forget(struct queue_clock *c, int fd)
{
    struct stamp s;
    for (unsigned i = 0; i < IO_SOCKETS && read_one(fd, &s); i++)
        ;
    c->n = c->overtaken = 0;
}

/* ------------------------------------------------------------------ samples */

static void
make_room(struct queue_clock *c, uint64_t now)
{
    if (c->n < QUEUE_CLOCK_UNDER_WAY)
        c->full_until = now + QUEUE_CLOCK_LOST_NS;
    else if (c->overtaken) {
        forget(c, 0);
        c->overtaken--;
    } else if (now > c->full_until)
        c->n = 0; /* the queue has dropped all of them */
}

bool
queue_clock_due(struct port_io *w, struct queue_clock *c, int fd)
{
    struct stamp s;
    if (!load_relaxed(&on))
        return false;
    uint64_t now = clock_ns_of(CLOCK_MONOTONIC_COARSE);
    if (now < c->next || now < w->clock_next)
        return false;
    c->next = now + QUEUE_NS;
    w->clock_next = now + WORKER_NS;
    for (unsigned i = 0; i < READ_AT_ONCE && read_one(fd, &s); i++)
        if (s.ns)
            take(c, &s);
    if (c->dropped && c->n > c->overtaken)
        c->n--;
    c->dropped = false;
    if (c->n > c->overtaken && now < c->asked + QUEUE_CLOCK_APART_NS)
        return false;
    make_room(c, now);
    if (c->n == QUEUE_CLOCK_UNDER_WAY)
        return false;
    c->asked = now;
    return true;
}

void
queue_clock_ask(struct mmsghdr *m, union tx_control *room)
{
    const uint32_t flags = SOF_TIMESTAMPING_TX_SCHED | SOF_TIMESTAMPING_TX_SOFTWARE;
    m->msg_hdr.msg_control = room;
    m->msg_hdr.msg_controllen = sizeof *room;
    room->head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof flags), .cmsg_level = SOL_SOCKET, .cmsg_type = SO_TIMESTAMPING};
    memcpy(CMSG_DATA(&room->head), &flags, sizeof flags);
}

/* ------------------------------------------------------------------ for the control thread */

bool
port_queue_waited(const struct port *p, uint32_t queue, uint32_t *us)
{
    uint32_t now = (uint32_t)(clock_ns_of(CLOCK_MONOTONIC_COARSE) / 1000000), best = UINT32_MAX;
    if (!queue || queue > OFP_QOS_QUEUE_MAX)
        return false;
    for (unsigned i = 0; i < p->n_workers; i++) {
        struct txq **page = load_acquire(&p->worker[i].page[queue / QUEUE_PAGE]);
        const struct txq *q = page ? load_acquire(&page[queue % QUEUE_PAGE]) : NULL;
        uint64_t last = q ? load_relaxed(&q->clock.last) : 0;
        uint32_t age = now - (uint32_t)(last >> 32), waited = (uint32_t)last;
        if (!last || age >= PORT_WAITED_MS + waited / 1000 || age >= best)
            continue;
        best = age;
        *us = waited;
    }
    return best != UINT32_MAX;
}
