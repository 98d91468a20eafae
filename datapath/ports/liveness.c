/* SPDX-License-Identifier: Apache-2.0 */
#include "liveness.h"

#include <dataplane/worker-stack.h>
#include <megaflow/megaflow.h>
#include <ports/ports.h>

#include <qos-netlink/flags.h>

#include <daemon/log.h>
#include <shared/atomics.h>
#include <shared/thread.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* A port whose interface is watched. */
struct watched {
    int ifindex;
    uint32_t no;
    struct port *port;
    bool gone; /* another interface may have its ifindex by now */
};

struct sw_liveness {
    struct sw *sw;
    pthread_t thread;
    pthread_mutex_t lock; /* for all that follows */
    struct qos_flags_monitor *flags;
    int over;     /* eventfd: ends the thread */
    uint32_t ask; /* the first of so many ports must be asked for: events were lost */
    uint32_t n;
    struct watched port[PORT_MAX + 1];
};

/* ------------------------------------------------------------------ what an event means */

static void
take_flags(struct sw *sw, const struct watched *p, unsigned flags)
{
    bool down = !(flags & IFF_UP), was_up = port_is_up(p->port);
    port_set_link(p->port, down, down || !(flags & IFF_RUNNING));
    if (port_is_up(p->port) == was_up)
        return;
    sw_offload_port_stale(sw, p->no);
    normal_forget(sw->dp.normal, p->no == OFPP_LOCAL ? NORMAL_LOCAL : (uint16_t)p->no);
}

static void
on_flags(void *ctx, int ifindex, unsigned flags, bool gone)
{
    struct sw_liveness *l = ctx;
    if (!ifindex)
        l->ask = l->n;
    for (uint32_t i = 0; i < l->n; i++) {
        struct watched *p = &l->port[i];
        if (p->ifindex != ifindex || p->gone)
            continue;
        p->gone = gone;
        take_flags(l->sw, p, gone ? 0 : flags);
    }
}

/* One answer at a time: all together may be more than the socket's buffer takes. */
static int
read_flags(struct sw_liveness *l)
{
    int err = qos_flags_monitor_read(l->flags);
    while (!err && l->ask) {
        qos_flags_monitor_ask(l->flags, l->port[--l->ask].ifindex);
        err = qos_flags_monitor_read(l->flags);
    }
    return err;
}

static int
sync_flags(struct sw_liveness *l)
{
    pthread_mutex_lock(&l->lock);
    int err = read_flags(l);
    pthread_mutex_unlock(&l->lock);
    return err;
}

/* ------------------------------------------------------------------ the thread */

static void *
watch(void *ctx)
{
    struct sw_liveness *l = ctx;
    struct pollfd p[] = {{.fd = qos_flags_monitor_fd(l->flags), .events = POLLIN},
                         {.fd = l->over, .events = POLLIN}};
    int err = 0;
    while (!err && !(p[1].revents & POLLIN))
        if (poll(p, 2, -1) > 0 && p[0].revents)
            err = sync_flags(l);
    if (err)
        log_error(PORT,
                  "failover follows links late from now on: reading rtnetlink events failed: %s",
                  strerror(-err));
    return NULL;
}

int
sw_liveness_start(struct sw *sw)
{
    struct sw_liveness *l = calloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    l->sw = sw;
    l->over = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int err = l->over < 0 ? -errno : qos_flags_monitor_open(&l->flags, on_flags, l);
    if (!err)
        err = -pthread_mutex_init(&l->lock, NULL);
    if (!err)
        err = thread_begin(&l->thread, WORKER_STACK, watch, l);
    if (!err) {
        sw->liveness = l;
        return 0;
    }
    qos_flags_monitor_close(l->flags);
    if (l->over >= 0)
        close(l->over);
    free(l);
    return err;
}

void
sw_liveness_stop(struct sw *sw)
{
    struct sw_liveness *l = sw->liveness;
    const uint64_t one = 1;
    sw->liveness = NULL;
    if (!l || write(l->over, &one, sizeof one) < 0)
        return;
    pthread_join(l->thread, NULL);
    pthread_mutex_destroy(&l->lock);
    qos_flags_monitor_close(l->flags);
    close(l->over);
    free(l);
}

/* ------------------------------------------------------------------ the control thread's side */

void
sw_liveness_add(struct sw *sw, const struct sw_port *p)
{
    struct sw_liveness *l = sw->liveness;
    pthread_mutex_lock(&l->lock);
    l->port[l->n] = (struct watched){.ifindex = p->link.ifindex, .no = p->no, .port = p->port};
    take_flags(sw, &l->port[l->n++], p->link.flags); /* of before */
    qos_flags_monitor_ask(l->flags, p->link.ifindex);
    read_flags(l);
    pthread_mutex_unlock(&l->lock);
}

void
sw_liveness_del(struct sw *sw, const struct sw_port *p)
{
    struct sw_liveness *l = sw->liveness;
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    for (uint32_t i = 0; i < l->n; i++)
        if (l->port[i].no == p->no)
            l->port[i--] = l->port[--l->n];
    pthread_mutex_unlock(&l->lock);
}

void
sw_liveness_sync(struct sw *sw)
{
    if (sw->liveness)
        sync_flags(sw->liveness);
}
