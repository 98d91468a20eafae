/* SPDX-License-Identifier: Apache-2.0 */
/* A packet worker: reads its ports in batches, runs the pipeline, sends, sleeps when idle. */
#include <switch/dp.h>
#include <switch/worker-stack.h>
#include <table/flow-cache.h>

#include <packet/headers.h>
#include <shared/rcu.h>

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

_Static_assert(PORT_BATCH <= CACHE_AHEAD, "a batch is prefetched at once");

#define RING_BYTES   (4u << 20)
#define POOL_BYTES   (64u << 20)
#define IDLE_ROUNDS  8  /* empty rounds over all ports before it sleeps */
#define UNWATCHED_MS 10 /* the longest sleep if the kernel refuses to watch a port */

static uint64_t
now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void
kick(int fd)
{
    uint64_t one = 1;
    ssize_t ignored = write(fd, &one, sizeof one); /* full: it is awake anyway */
    (void)ignored;
}

void
worker_wake(struct worker *w)
{
    kick(w->wake_fd);
}

/* Called once a round, after the last packet-in: woken earlier, control might sleep again before
 * that one. */
static void
tell_control(struct worker *w)
{
    if (w->to_tell)
        kick(w->control_fd);
    w->to_tell = false;
}

bool
worker_packet_out(struct worker *w, struct program *program, uint32_t in_port, const uint8_t *data,
                  uint32_t len)
{
    struct packet_out_job *job = ring_reserve(w->jobs, (uint32_t)sizeof *job + len, 0);
    if (!job)
        return false;
    *job = (struct packet_out_job){.program = program, .in_port = in_port, .len = len};
    if (len)
        memcpy(job->data, data, len);
    ring_publish(w->jobs);
    worker_wake(w);
    return true;
}

static void
run_job(struct worker *w, struct packet_out_job *job)
{
    struct packet_pool *pool = port_io_pool(w->io);
    uint8_t *room = packet_pool_alloc(pool, PACKET_HEADROOM + (size_t)job->len);
    if (room) {
        struct packet p = {.data = room + PACKET_HEADROOM,
                           .len = job->len,
                           .wire_len = job->len,
                           .headroom = PACKET_HEADROOM,
                           .pool = pool};
        memcpy(p.data, job->data, job->len);
        packet_parse(&p, job->in_port);
        pipeline_packet_out(w, &p, job->program);
    } else {
        struct packet lost = {.data = job->data, .len = job->len, .in_port = job->in_port};
        worker_drop_early(w, DROP_no_memory, &lost);
    }
    free(job->program);
}

/* Sends packet-outs of the control thread, at most a batch. */
static unsigned
run_jobs(struct worker *w)
{
    unsigned n = 0;
    uint32_t bytes;
    for (struct packet_out_job *job; n < PORT_BATCH && (job = ring_peek(w->jobs, &bytes)); n++) {
        run_job(w, job);
        ring_release(w->jobs);
    }
    return n;
}

/* For fewer packets prefetching costs more than it saves. */
#define WORTH_PREPARING 4

static void
prepare(struct worker *w, const struct packet *batch, unsigned n)
{
    const struct flow_key *keys[PORT_BATCH];
    if (!w->cache || n < WORTH_PREPARING || w->standalone)
        return;
    for (unsigned i = 0; i < n; i++)
        keys[i] = &batch[i].key;
    flow_cache_prefetch(w->cache, w->dp->tables, keys, n);
}

/* Sends the packet unchanged to the kernel's queues for what enters by the port.  A packet that
 * will not leave the switch takes no place in them. */
static void
shape(struct worker *w, const struct port_shaper *shaper, struct packet *p)
{
    struct preview o = pipeline_preview(w, p);
    if (!o.goes) {
        pipeline_packet(w, p);
        return;
    }
    p->queue = o.queue;
    int drop = port_tx(shaper->to, w->io, p);
    if (drop > 0)
        worker_drop_early(w, (enum drop_reason)(drop - 1), p);
}

/* Handles what the port, or its shaper, has received.  shaper: where packets go first, or NULL. */
static unsigned
run_port(struct worker *w, struct port *port, const struct port_shaper *shaper)
{
    struct packet batch[PORT_BATCH];
    unsigned got = port_rx(port, w->io, batch, PORT_BATCH);
    if (w->capture)
        capture_received(w, port, batch, got);
    unsigned n = packet_coalesce(batch, got);
    prepare(w, batch, n);
    for (unsigned i = 0; i < n; i++) {
        if (batch[i].len < ETH_HEADER)
            worker_drop_early(w, DROP_malformed, &batch[i]);
        else if (shaper)
            shape(w, shaper, &batch[i]);
        else
            pipeline_packet(w, &batch[i]);
    }
    if (got) {
        port_io_flush(w->io);
        port_rx_done(port, w->io);
    }
    return got;
}

/* Whether the port is this worker's. */
static bool
is_mine(const struct worker *w, const struct port *port)
{
    return port_no(port) % w->dp->n_workers == w->id;
}

/* Whether the worker reads the port.  With fanout all do; but one alone reads a shaper. */
static bool
reads(const struct worker *w, const struct port *port)
{
    return is_mine(w, port) || port_fans_out(port);
}

static unsigned
run_round(struct worker *w)
{
    const struct port_list *l = rcu_dereference(w->dp->ports);
    unsigned n = run_jobs(w);
    if (n)
        port_io_flush(w->io);
    for (uint32_t i = 0; l && i < l->n; i++) {
        if (!reads(w, l->v[i]))
            continue;
        const struct port_shaper *shaper = port_shaper(l->v[i]);
        n += run_port(w, l->v[i], shaper);
        if (shaper && is_mine(w, l->v[i]))
            n += run_port(w, shaper->from, NULL);
    }
    packet_pool_reset(port_io_pool(w->io));
    if (n) {
        counter_add(&w->packets, n);
        counter_add(&w->batches, 1);
    }
    store_relaxed(&w->rounds, w->rounds + 1);
    tell_control(w);
    return n;
}

/* An epoll set costs a kernel callback per packet even while the worker is busy.  poll() costs only
 * before a sleep, but then per descriptor.  So the first ports are polled, the others are in a set.
 */
static void
watch_fd(struct worker *w, int fd)
{
    struct epoll_event e = {.events = EPOLLIN};
    if (fd < 0)
        return;
    if (w->n_watch < WORKER_WATCHES - 1) {
        w->watch[w->n_watch++] = (struct pollfd){.fd = fd, .events = POLLIN};
        return;
    }
    if (w->epoll_fd < 0)
        w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (w->epoll_fd < 0 || epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &e))
        w->unwatched = true;
}

static void
watch_anew(struct worker *w, const struct port_list *l)
{
    if (w->epoll_fd >= 0)
        close(w->epoll_fd);
    w->epoll_fd = -1;
    w->unwatched = false;
    w->n_watch = 0;
    watch_fd(w, w->wake_fd);
    for (uint32_t i = 0; l && i < l->n; i++) {
        if (!reads(w, l->v[i]))
            continue;
        const struct port_shaper *shaper = port_shaper(l->v[i]);
        watch_fd(w, port_rx_fd(l->v[i], w->id));
        if (shaper && is_mine(w, l->v[i]))
            watch_fd(w, port_rx_fd(shaper->from, w->id));
    }
    if (w->epoll_fd >= 0)
        w->watch[w->n_watch++] = (struct pollfd){.fd = w->epoll_fd, .events = POLLIN};
}

/* poll() returns at once while it is given a closed descriptor, so leave that out.  The port that
 * had it is read every UNWATCHED_MS, until the ports change. */
static void
leave_closed(struct worker *w)
{
    for (unsigned i = 0; i < w->n_watch; i++)
        if (w->watch[i].revents & POLLNVAL) {
            w->watch[i].fd = -1;
            w->unwatched = true;
            counter_add(&w->closed_descriptors, 1);
        }
}

/* Sleeps until a port or the control thread has work; offline for RCU meanwhile. */
static void
sleep_until_work(struct worker *w)
{
    unsigned serial = load_acquire(&w->dp->watch_serial);
    if (!w->n_watch || serial != w->watched) {
        w->watched = serial;
        watch_anew(w, rcu_dereference(w->dp->ports));
    }
    rcu_reader_offline();
    int n = poll(w->watch, w->n_watch, w->unwatched ? UNWATCHED_MS : -1);
    urcu_qsbr_thread_online();
    counter_add(&w->wakeups, 1);
    if (n > 0 && serial == load_acquire(&w->dp->watch_serial))
        leave_closed(w);
    if (w->watch[0].revents) {
        uint64_t v;
        ssize_t ignored = read(w->wake_fd, &v, sizeof v);
        (void)ignored;
    }
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    urcu_qsbr_register_thread();
    for (unsigned idle = 0; !load_relaxed(&w->stop);) {
        w->now = w->drop_log->now = now_ns();
        w->standalone = load_relaxed(&w->dp->standalone);
        if (rcu_dereference(w->dp->capture) || w->capture)
            capture_begin_round(w);
        if (change_set_enter() && w->cache)
            flow_cache_clear(w->cache);
        idle = run_round(w) ? 0 : idle + 1;
        rcu_reader_quiescent();
        if (idle > IDLE_ROUNDS) {
            sleep_until_work(w);
            idle = 0;
        }
    }
    urcu_qsbr_unregister_thread();
    return NULL;
}

static void
free_worker(struct worker *w)
{
    if (w->io)
        port_io_free(w->io);
    flow_cache_free(w->cache);
    ring_free(w->packet_ins);
    ring_free(w->captured);
    ring_free(w->jobs);
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    if (w->epoll_fd >= 0)
        close(w->epoll_fd);
    free(w);
}

int
worker_start(struct dp *dp, unsigned id, int control_fd, struct worker **out)
{
    struct worker *w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->id = id;
    w->dp = dp;
    w->control_fd = control_fd;
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->epoll_fd = -1;
    w->io = port_io_new(id, POOL_BYTES);
    w->cache = dp->cache_entries ? flow_cache_new(dp->cache_entries) : NULL;
    w->packet_ins = ring_new(RING_BYTES, PORT_MAX + 1);
    w->jobs = ring_new(RING_BYTES, 0);
    int err = w->wake_fd >= 0 && w->io && w->packet_ins && w->jobs ? 0 : -ENOMEM;
    if (!err) {
        w->drops = port_io_drops(w->io);
        w->drop_log = port_io_drop_log(w->io);
        err = worker_stack_run(&w->thread, worker_main, w);
    }
    if (err)
        free_worker(w);
    else
        *out = w;
    return err;
}

uint64_t
worker_cpu_ns(const struct worker *w)
{
    struct timespec t;
    clockid_t clock;
    if (pthread_getcpuclockid(w->thread, &clock) || clock_gettime(clock, &t))
        return 0;
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

void
worker_stop(struct worker *w)
{
    store_relaxed(&w->stop, true);
    worker_wake(w);
    pthread_join(w->thread, NULL);
    uint32_t n;
    for (struct packet_out_job *job; (job = ring_peek(w->jobs, &n)); ring_release(w->jobs))
        free(job->program);
    free_worker(w);
}
