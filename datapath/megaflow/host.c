/* SPDX-License-Identifier: Apache-2.0 */
/* What the host may want of a port's frames, so that it gets them even if the kernel's programs handle
 * them: whatever is on top of the port, as rtnetlink's events tell, and what no event tells, looked for
 * once a second in the netlink thread. */
#include "state.h"

#include <daemon/log.h>
#include <qos-netlink/upper.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

struct offload_host {
    struct sw_offload *f;
    struct qos_uppers *uppers;
    struct loop_io *io;
    struct task task;
    uint64_t hidden[OFFLOAD_PORTS / 64]; /* by ifindex modulo OFFLOAD_PORTS: as of the last look */
    bool any_hidden;                     /* of all interfaces */
    bool lost;                           /* events were: all is to be read again */
};

static bool
is_hidden(const struct offload_host *h, int ifindex)
{
    unsigned bit = (unsigned)ifindex % OFFLOAD_PORTS;
    return h->any_hidden || h->hidden[bit / 64] >> bit % 64 & 1;
}

/* OFFLOAD_HOST_ */
static uint32_t
wanted(const struct offload_host *h, const struct sw_port *p)
{
    unsigned above = qos_uppers_of(h->uppers, p->link.ifindex);
    uint32_t what = above & QOS_UPPER_VLAN ? OFFLOAD_HOST_TAGGED : 0;
    if (above & QOS_UPPER_ANY || is_hidden(h, p->link.ifindex) || !h->io)
        what |= OFFLOAD_HOST_ALL;
    return what;
}

bool
offload_host_wants(const struct sw_offload *f, const struct sw_port *p, const struct packet *frame)
{
    uint32_t what = wanted(f->host, p);
    bool tagged = of_get16(frame->key.vlan_vid) & OFPVID_PRESENT;
    return frame->key.eth_dst[0] & 1 ||
           !memcmp(frame->key.eth_dst, p->link.mac, sizeof p->link.mac) ||
           what & OFFLOAD_HOST_ALL || (what & OFFLOAD_HOST_TAGGED && tagged);
}

void
offload_host_port(struct sw_offload *f, const struct sw_port *p)
{
    offload_port_host(f->o, p->link.ifindex, wanted(f->host, p));
}

static void
look_at_ports(struct sw_offload *f, int ifindex)
{
    uint32_t no = 0;
    for (const struct sw_port *p; (p = sw_ports_next(f->sw, no)); no = p->no)
        if (p->port && (!ifindex || p->link.ifindex == ifindex))
            offload_host_port(f, p);
}

static void
changed(void *ctx, int ifindex)
{
    const struct offload_host *h = ctx;
    if (h->uppers) /* not while it is opened */
        look_at_ports(h->f, ifindex);
}

static void
note_hidden(void *ctx, int ifindex)
{
    struct offload_host *h = ctx;
    unsigned bit = (unsigned)ifindex % OFFLOAD_PORTS;
    h->any_hidden |= !ifindex;
    h->hidden[bit / 64] |= UINT64_C(1) << bit % 64;
}

static enum task_progress
look(void *ctx, uint64_t deadline)
{
    struct offload_host *h = ctx, now = {.any_hidden = false};
    if (h->lost)
        h->lost = qos_uppers_read_again(h->uppers) != 0;
    now.any_hidden = h->lost;
    if (qos_uppers_hidden(h->uppers, note_hidden,
                          &now)) { /* not all is known: nothing is forgotten */
        now.any_hidden |= h->any_hidden;
        for (unsigned i = 0; i < OFFLOAD_PORTS / 64; i++)
            now.hidden[i] |= h->hidden[i];
    }
    memcpy(h->hidden, now.hidden, sizeof h->hidden);
    h->any_hidden = now.any_hidden;
    look_at_ports(h->f, 0);
    return TASK_OVER;
}

void
offload_host_look(struct sw_offload *f)
{
    static const struct task_kind kind = {.blocks = true, .run = look};
    task_queue(f->sw->tasks, &f->host->task, &kind, f->host);
}

static void
ready(void *ctx, uint32_t events)
{
    struct offload_host *h = ctx;
    int err = qos_uppers_read(h->uppers);
    if (!err)
        return;
    if (err > 0) { /* until all is read again, the host gets all frames */
        h->lost = h->any_hidden = true;
        look_at_ports(h->f, 0);
        offload_host_look(h->f);
        return;
    }
    log_error(
        PORT,
        "reading rtnetlink events failed: %s; from now on the host gets all frames of all ports",
        strerror(-err));
    loop_io_del(h->io);
    h->io = NULL;
    look_at_ports(h->f, 0);
}

int
offload_host_open(struct sw_offload *f)
{
    struct offload_host *h = f->host = calloc(1, sizeof *h);
    if (!h)
        return -ENOMEM;
    h->f = f;
    int err = qos_uppers_open(&h->uppers, changed, h);
    return err ? err
               : loop_io_add(f->sw->loop, qos_uppers_fd(h->uppers), EPOLLIN, ready, h, &h->io);
}

void
offload_host_close(struct sw_offload *f)
{
    struct offload_host *h = f->host;
    if (h && h->io)
        loop_io_del(h->io);
    if (h)
        qos_uppers_close(h->uppers);
    free(h);
}
