/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: opening, flags, queues, shapers, receiving, counters. */
#include "backend.h"

#include <oflib/openflow.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In order of preference. */
static const struct port_backend *const backends[] = {&port_backend_packet, &port_backend_pcap,
                                                      &port_backend_tap, &port_backend_file,
                                                      &port_backend_queues_only};
#define N_BACKENDS (sizeof backends / sizeof *backends)

static uint32_t last_uid;

int
port_global_init(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r))
        return -errno;
    struct rlimit want = {.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    if (r.rlim_cur >= want.rlim_cur || !setrlimit(RLIMIT_NOFILE, &want))
        return 0;
    want = (struct rlimit){r.rlim_max, r.rlim_max}; /* not privileged to raise the hard limit */
    return setrlimit(RLIMIT_NOFILE, &want) ? -errno : 0;
}

/* ------------------------------------------------------------------ opening and closing */

static void
port_free(struct port *p)
{
    for (unsigned i = 0; p->worker && i < p->n_workers; ++i)
        for (unsigned page = 0; page < QUEUE_PAGES; ++page) {
            struct txq **q = p->worker[i].page[page];
            for (unsigned k = 0; q && k < QUEUE_PAGE; ++k)
                free(q[k]);
            free(q);
        }
    port_rings_reserve(p, 0);
    port_rings_count(p, 0);
    free(p->queue_super);
    free(p->queue_priority);
    free(p->worker);
    free(p);
}

static struct port *
port_new(const struct port_config *c)
{
    struct port *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->config = *c;
    p->config.name[IFNAMSIZ - 1] = 0;
    p->n_workers = c->n_workers ? c->n_workers : 1;
    p->uid = fetch_add(&last_uid, 1) + 1;
    p->worker = aligned_alloc(64, p->n_workers * sizeof *p->worker);
    if (!p->worker) {
        port_free(p);
        return NULL;
    }
    memset(p->worker, 0, p->n_workers * sizeof *p->worker);
    for (unsigned i = 0; i < p->n_workers; ++i) {
        p->worker[i].tx_fd = -1;
        p->worker[i].plain = (struct txq){.port = p, .head = IO_NONE, .tail = IO_NONE};
    }
    return p;
}

/* EPERM doesn't tell which of the two capabilities is missing. */
static const char *
missing_capabilities(void)
{
    static const char *const names[] = {"", "CAP_NET_ADMIN is", "CAP_NET_RAW is",
                                        "CAP_NET_ADMIN and CAP_NET_RAW are"};
    struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct has[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_capget, &h, has))
        return names[0];
    bool admin = has[0].effective & 1u << CAP_NET_ADMIN, raw = has[0].effective & 1u << CAP_NET_RAW;
    return names[(admin ? 0 : 1) + (raw ? 0 : 2)];
}

static void
explain(const char *name, int err, const char *what, char *why, size_t why_len)
{
    const char *missing = err == -EPERM || err == -EACCES ? missing_capabilities() : "";
    if (why && why_len)
        snprintf(why, why_len, "interface %s: %s%s%s%s", name, what, *missing ? ": " : "", missing,
                 *missing ? " missing; start the switch as root, or once: setcap "
                            "cap_net_admin,cap_net_raw+ep PROGRAM"
                          : "");
}

int
port_open(const struct port_config *c, struct port **out, char *why, size_t why_len)
{
    bool known = false;
    int err = 0;
    char what[160] = "";
    struct port *p = port_new(c);
    if (!p)
        return backend_error(why, why_len, ENOMEM, "opening a port");
    for (unsigned i = 0; i < N_BACKENDS; ++i) {
        if (c->backend ? strcmp(c->backend, backends[i]->name) : backends[i]->only_by_name)
            continue;
        known = true;
        p->backend = backends[i];
        p->config.grows = c->grows && p->backend->filtered && !c->no_rx;
        if (p->backend->ring && !p->config.ring_bytes && !p->config.no_rx) {
            p->config.ring_bytes = (size_t)port_rings_share();
            p->config.grows &= !port_rings_given();
        }
        if (p->config.grows)
            port_rings_reserve(p, p->config.ring_bytes);
        err = p->backend->open(p, what, sizeof what);
        if (!err || err == -ENODEV || err == -EPERM ||
            err == -EPROTONOSUPPORT) /* whatever the backend */
            break;
    }
    if (!known)
        err = backend_error(what, sizeof what, EINVAL, "no such backend: packet, pcap or tap");
    if (err) {
        explain(p->config.name, err, what, why, why_len);
        port_free(p);
        return err;
    }
    p->config.backend = p->backend->name;
    p->config.ifindex = (int)if_nametoindex(p->config.name);
    *out = p;
    return 0;
}

void
port_close(struct port *p)
{
    if (!p)
        return;
    port_shaper_close(port_shaper_take(p));
    p->backend->close(p);
    port_free(p);
}

uint32_t
port_no(const struct port *p)
{
    return p->config.port_no;
}

uint32_t
port_uid(const struct port *p)
{
    return p->uid;
}

const char *
port_name(const struct port *p)
{
    return p->config.name;
}

uint8_t
port_inside(const struct port *p)
{
    return p->config.inside;
}

int
port_ifindex(const struct port *p)
{
    return p->config.ifindex;
}

/* ------------------------------------------------------------------ flags and queues */

/* Two threads change bits, each others. */
static void
change_flags(struct port *p, uint32_t bits, uint32_t to)
{
    uint32_t was = load_relaxed(&p->flags);
    while (!compare_store(&p->flags, &was, (was & ~bits) | (to & bits)))
        ;
}

void
port_set_config(struct port *p, uint32_t ofppc_config)
{
    const struct port_shaper *s = port_shaper(p);
    change_flags(p, ~PORT_LIVENESS & ~PORT_OURS, ofppc_config);
    if (s) /* nobody watches its links */
        port_set_flags(s->from, ofppc_config, false);
}

void
port_set_link(struct port *p, bool down, bool link_down)
{
    change_flags(p, PORT_LIVENESS,
                 (down ? OFPPC_PORT_DOWN : 0u) | (link_down ? PORT_LINK_DOWN : 0));
}

void
port_set_flags(struct port *p, uint32_t ofppc_config, bool link_down)
{
    port_set_link(p, ofppc_config & OFPPC_PORT_DOWN, link_down);
    port_set_config(p, ofppc_config);
}

uint32_t
port_config_bits(const struct port *p)
{
    return load_relaxed(&p->flags) & ~PORT_OURS;
}

void
port_watch(struct port *p, bool on)
{
    change_flags(p, PORT_WATCHED, on ? PORT_WATCHED : 0);
}

bool
port_is_up(const struct port *p)
{
    uint32_t f = load_relaxed(&p->flags);
    return !(f & PORT_LIVENESS);
}

void
port_set_mtu(struct port *p, uint32_t mtu)
{
    store_relaxed(&p->mtu, mtu);
}

static int
set_priority(struct port *p, uint32_t queue_id, uint32_t priority)
{
    uint32_t *all = p->queue_priority;
    if (priority == PORT_PRIORITY(queue_id))
        priority = 0;
    if (!all && !priority)
        return 0;
    if (!all) {
        all = calloc(OFP_QOS_QUEUE_MAX + 1, sizeof *all);
        if (!all)
            return -ENOMEM;
        store_release(&p->queue_priority, all);
    }
    store_relaxed(&all[queue_id], priority);
    return 0;
}

int
port_queue_set(struct port *p, uint32_t queue_id, uint32_t priority, uint64_t most)
{
    if (queue_id > OFP_QOS_QUEUE_MAX)
        return -ERANGE;
    uint32_t *super = p->queue_super;
    if (set_priority(p, queue_id, priority))
        return -ENOMEM;
    if (!super) {
        super = calloc(OFP_QOS_QUEUE_MAX + 1, sizeof *super); /* few of its pages are touched */
        if (!super)
            return -ENOMEM;
        super[0] = UINT32_MAX;
        store_release(&p->queue_super, super);
    }
    uint64_t bytes = most / 8000 * PORT_SUPER_MS;
    store_relaxed(&super[queue_id], !most || bytes > UINT32_MAX ? UINT32_MAX
                                    : bytes                     ? (uint32_t)bytes
                                                                : 1);
    return 0;
}

void
port_queue_del(struct port *p, uint32_t queue_id)
{
    uint32_t *super = p->queue_super;
    if (super && queue_id && queue_id <= OFP_QOS_QUEUE_MAX)
        store_relaxed(&super[queue_id], 0);
}

/* ------------------------------------------------------------------ shaping what enters */

static void
switch_on(const char *family, const char *name, const char *setting)
{
    char path[80];
    snprintf(path, sizeof path, "/proc/sys/net/%s/conf/%s/%s", family, name, setting);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t ignored = write(fd, "1", 1);
    (void)ignored;
    close(fd);
}

#define SHAPER_MTU 65535 /* as the interfaces are made */

/* The host's own IPv6 must not send through it: the port would receive that.  A kernel without IPv6
 * has no such file.  Broadcasts of IPv4 the host has heard at the port already: as the interface has no
 * address, the filter drops all but those from 0.0.0.0. */
static void
make_silent(const char *name)
{
    switch_on("ipv6", name, "disable_ipv6");
    switch_on("ipv4", name, "rp_filter");
}

static int
open_half(struct port *p, const char *name, bool no_rx, struct port **out, char *why,
          size_t why_len)
{
    struct port_config c = {.port_no = p->config.port_no,
                            .backend = port_backend_packet.name, /* the only backend with queues */
                            .n_workers = p->config.n_workers,
                            .slot_bytes = p->config.slot_bytes,
                            .fanout = p->config.fanout && !no_rx,
                            .inside = p->config.inside,
                            .no_rx = no_rx,
                            .no_tx = !no_rx};
    snprintf(c.name, sizeof c.name, "%s", name);
    make_silent(name);
    return port_open(&c, out, why, why_len);
}

int
port_shaper_open(struct port *p, const char *to, const char *from, char *why, size_t why_len)
{
    struct port_shaper *s = calloc(1, sizeof *s);
    if (!s)
        return backend_error(why, why_len, ENOMEM, "opening a shaper");
    int err = open_half(p, to, true, &s->to, why, why_len);
    if (!err)
        err = open_half(p, from, false, &s->from, why, why_len);
    if (err) {
        port_shaper_close(s);
        return err;
    }
    uint32_t f = load_relaxed(&p->flags);
    port_set_flags(s->from, f, f & PORT_LINK_DOWN);
    port_set_mtu(s->to, SHAPER_MTU);
    store_release(&p->shaper, s);
    return 0;
}

struct port_shaper *
port_shaper_take(struct port *p)
{
    return fetch_store(&p->shaper, NULL);
}

void
port_shaper_close(struct port_shaper *s)
{
    if (!s)
        return;
    port_close(s->to);
    port_close(s->from);
    free(s);
}

const struct port_shaper *
port_shaper(const struct port *p)
{
    return load_acquire(&p->shaper);
}

/* ------------------------------------------------------------------ receiving */

bool
port_receives(const struct port *p)
{
    uint32_t f = load_relaxed(&p->flags);
    return !(f & (OFPPC_PORT_DOWN | OFPPC_NO_RECV));
}

unsigned
port_rx(struct port *p, struct port_io *w, struct packet *out, unsigned max)
{
    if (w->worker >= p->n_workers)
        return 0;
    struct port_worker *pw = &p->worker[w->worker];
    if (max > PORT_BATCH)
        max = PORT_BATCH;
    unsigned n = p->backend->rx(p, pw, w, out, max);
    if (n && !port_receives(p))
        for (; n; --n)
            backend_rx_drop(p, pw, w, DROP_port_down,
                            &(struct packet_frame){out[n - 1].data, out[n - 1].len,
                                                   packet_segments(&out[n - 1]), NULL});
    pw->given += n;
    if (!pw->given) /* dropped frames still occupy the ring */
        p->backend->rx_done(pw, load_acquire(&p->done));
    return n;
}

void
port_rx_done(struct port *p, struct port_io *w)
{
    if (w->worker >= p->n_workers)
        return;
    p->worker[w->worker].given = 0;
    p->backend->rx_done(&p->worker[w->worker], load_acquire(&p->done));
}

bool
port_io_filled(struct port_io *w)
{
    bool filled = w->filled;
    w->filled = false;
    return filled;
}

uint64_t
port_rx_waited(const struct port *p, const struct port_io *w)
{
    if (!p->backend->rx_waited || w->worker >= p->n_workers)
        return 0;
    return p->backend->rx_waited(&p->worker[w->worker]);
}

int
port_rx_fd(const struct port *p, unsigned worker)
{
    return worker < p->n_workers ? p->backend->rx_fd(&p->worker[worker]) : -1;
}

bool
port_rx_moves(const struct port *p, unsigned worker)
{
    return p->backend->rx_moves && worker < p->n_workers &&
           p->backend->rx_moves(&p->worker[worker]);
}

bool
port_fans_out(const struct port *p)
{
    return p->config.fanout && p->backend->fans_out && p->n_workers > 1;
}

/* ------------------------------------------------------------------ counters */

void
port_count_packet_in_dropped(struct port *p, const struct port_io *w)
{
    counter_add(&p->worker[w->worker].packet_in_dropped, 1);
}

void
port_read_counters(const struct port *p, struct port_counters *out)
{
    struct port_counters c = {.queue_sockets = port_queue_sockets(p->uid),
                              .ring_bytes = p->ring_bytes};
    port_read_lost((struct port *)(uintptr_t)p);
    for (unsigned i = 0; i < p->n_workers; ++i) {
        struct port_worker *pw = &p->worker[i];
#define PORT_SUM(name) c.name += counter_read(&pw->name);
        PORT_TRAFFIC(PORT_SUM)
        PORT_COUNTERS(PORT_SUM, PORT_NOT_COUNTED, PORT_NOT_COUNTED)
        c.rx_dropped += pw->rx_lost;
    }
#define PORT_SUM_KERNEL(name) c.name += p->kernel.name;
    PORT_TRAFFIC(PORT_SUM_KERNEL)
    PORT_COUNTERS(PORT_SUM_KERNEL, PORT_NOT_COUNTED, PORT_NOT_COUNTED)
    const struct port_shaper *s = port_shaper(p);
    if (s) {
        struct port_counters n;
        port_shaper_read_counters(s, &n);
        port_counters_add(&c, &n);
        c.queue_sockets += n.queue_sockets;
        c.ring_bytes += n.ring_bytes;
    }
    *out = c;
}

void
port_shaper_read_counters(const struct port_shaper *s, struct port_counters *out)
{
    struct port_counters to, from;
    port_read_counters(s->to, &to);
    port_read_counters(s->from, &from);
    *out = (struct port_counters){.rx_dropped = to.tx_dropped + from.rx_dropped,
                                  .rx_no_queue = to.tx_no_queue,
                                  .queue_sockets = to.queue_sockets,
                                  .ring_bytes = from.ring_bytes};
}

void
port_counters_add(struct port_counters *sum, const struct port_counters *n)
{
#define PORT_ADD(name) sum->name += n->name;
    PORT_TRAFFIC(PORT_ADD)
    PORT_COUNTERS(PORT_ADD, PORT_ADD, PORT_NOT_COUNTED)
}
