/* SPDX-License-Identifier: Apache-2.0 */
/* A packet worker: reads its ports in batches, runs the pipeline, sends, sleeps when idle. */
#include <dataplane/dp.h>
#include <dataplane/worker-stack.h>
#include <table/flow-cache.h>

#include <packet/headers.h>
#include <shared/clock.h>
#include <shared/rcu.h>
#include <shared/thread.h>

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

_Static_assert(PORT_BATCH <= CACHE_AHEAD, "a batch is prefetched at once");

#define RING_BYTES    (4u << 20)
#define POOL_BYTES    (64u << 20)
#define ROUND_BATCHES 4 /* of one ring in a round */
#define SEGMENT_LEAST 512
#define OUTS_BATCH    8 /* while ports have packets: it has no cached path, so each is dearer */

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

void
worker_wake_all(struct dp *dp)
{
    fetch_add(&dp->watch_serial, 1);
    for (unsigned i = 0; i < dp->n_workers; i++)
        if (dp->workers[i])
            worker_wake(dp->workers[i]);
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
                  uint32_t len, uint32_t number)
{
    struct packet_out_job *job = ring_reserve(w->jobs, (uint32_t)sizeof *job + len, 0);
    if (!job)
        return false;
    *job = (struct packet_out_job){
        .program = program, .in_port = in_port, .number = number, .len = len};
    if (len)
        memcpy(job->data, data, len);
    ring_publish(w->jobs);
    w->outs_put++;
    worker_wake(w);
    return true;
}

bool
worker_has_room(const struct worker *w, uint32_t len, unsigned most, unsigned dear)
{
    uint32_t waiting = w->outs_put - load_acquire(&w->outs_sent);
    unsigned limit = load_relaxed(&w->outs_dear) ? dear : most;
    return waiting < limit &&
           ring_reserve(w->jobs, (uint32_t)sizeof(struct packet_out_job) + len, 0);
}

bool
worker_has_sent(const struct worker *w, uint32_t number)
{
    bool all = w->outs_put == load_acquire(&w->outs_sent);
    return all || (int32_t)(load_relaxed(&w->outs_last) - number) >= 0;
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
                           .inside = dp_inside(w->dp, job->in_port),
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

/* Charges what a batch of n has taken. */
static void
end_batch(struct worker *w, struct share *share, unsigned n, uint32_t bytes)
{
    uint64_t now = clock_ns(), began = w->began;
    w->began = now;
    if (now - began <= share_slow(bytes))
        return;
    uint64_t cpu = clock_ns_of(CLOCK_THREAD_CPUTIME_ID);
    share_charge(share, n, bytes, share_took(&w->clocks, began, now, cpu), now);
    if (share->rests_until > w->watch.rests_until)
        w->watch.rests_until = share->rests_until;
}

/* Do packet-outs wait for their turn? */
static bool
outs_rest(const struct worker *w)
{
    return w->watch.n_active && share_rests(&w->outs, w->now);
}

/* Sends what a batch became.  Its copies' memory is free again before another port's batch: one that
 * takes all of it takes it from its own packets alone. */
static void
send_batch(struct worker *w)
{
    port_io_flush(w->io);
    packet_pool_reset(port_io_pool(w->io));
}

/* So many packet-outs have left. */
static void
outs_done(struct worker *w, unsigned n, uint32_t last)
{
    send_batch(w);
    end_batch(w, &w->outs, n, 0);
    store_relaxed(&w->outs_dear, share_batch(&w->outs, w->began, PORT_BATCH) < PORT_BATCH);
    store_relaxed(&w->outs_last, last);
    store_release(&w->outs_sent, w->outs_sent + n);
    w->to_tell |= load_relaxed(&w->outs_waited_for) && fetch_store(&w->outs_waited_for, false);
}

/* Sends packet-outs of the control thread, at most a batch. */
static unsigned
run_jobs(struct worker *w)
{
    unsigned n = 0, most = w->watch.n_active ? OUTS_BATCH : PORT_BATCH;
    uint32_t bytes, last = 0;
    most = outs_rest(w) ? 0 : share_batch(&w->outs, w->now, most);
    for (struct packet_out_job *job; n < most && (job = ring_peek(w->jobs, &bytes)); n++) {
        last = job->number;
        run_job(w, job);
        ring_release(w->jobs);
    }
    if (n)
        outs_done(w, n, last);
    return n;
}

static void
prepare(struct worker *w, const struct packet *batch, unsigned n)
{
    const struct flow_key *keys[PORT_BATCH];
    if (!w->cache)
        return;
    for (unsigned i = 0; i < n; i++)
        keys[i] = &batch[i].key;
    flow_cache_ahead(w->cache, w->dp->tables, keys, n);
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

static void
tell_filled(struct worker *w)
{
    store_relaxed(&w->dp->filled, true);
    w->to_tell = true;
}

/* Handles what a port, or its shaper, has received. */
static unsigned
run_port(struct worker *w, const struct watch_ring *r, unsigned most)
{
    struct port *port = r->port;
    const struct port_shaper *shaper = r->shaper ? NULL : port_shaper(port);
    struct packet batch[PORT_BATCH];
    unsigned got = port_rx(port, w->io, batch, most);
    if (w->capture)
        capture_received(w, port, batch, got);
    unsigned n = packet_coalesce(batch, got);
    if (w->kinds && port_in_kernel(port))
        w->to_tell |= sample_batch(w->sample, w->kinds, r->shaper, batch, n);
    if (n)
        prepare(w, batch, n);
    for (unsigned i = 0; i < n; i++) {
        w->round_bytes += batch[i].len;
        if (batch[i].len < ETH_HEADER)
            worker_drop_early(w, DROP_malformed, &batch[i]);
        else if (shaper)
            shape(w, shaper, &batch[i]);
        else
            pipeline_packet(w, &batch[i]);
    }
    if (got) {
        if (w->cache)
            flow_cache_end(w->cache);
        send_batch(w);
        port_rx_done(port, w->io);
        if (port_io_filled(w->io))
            tell_filled(w);
    }
    return got;
}

/* Whether the port is this worker's. */
static bool
is_mine(const struct worker *w, const struct port *port)
{
    return port_no(port) % w->dp->n_workers == w->id;
}

/* Whether the worker reads the port, or a shaper's.  With fanout all do. */
static bool
reads(const struct worker *w, const struct port *port)
{
    return is_mine(w, port) || port_fans_out(port);
}

typedef void (*on_ring)(struct watch *w, uint32_t no, bool shaper, struct port *port, int fd,
                        bool moves);

/* Calls `each` for the rings that the worker reads. */
static void
each_ring(struct worker *w, const struct port_list *l, on_ring each)
{
    for (uint32_t i = 0; l && i < l->n; i++) {
        struct port *port = l->v[i];
        if (reads(w, port))
            each(&w->watch, port_no(port), false, port, port_rx_fd(port, w->id),
                 port_rx_moves(port, w->id));
        const struct port_shaper *shaper = port_shaper(port);
        if (shaper && reads(w, shaper->from))
            each(&w->watch, port_no(port), true, shaper->from, port_rx_fd(shaper->from, w->id),
                 false);
    }
}

/* Whatever is not marked is added anew, and read at once. */
static void
mark(struct watch *w, uint32_t no, bool shaper, struct port *port, int fd, bool moves)
{
    if (!moves)
        watch_mark(w, no, shaper, port, fd);
}

static void
add(struct watch *w, uint32_t no, bool shaper, struct port *port, int fd, bool moves)
{
    watch_add(w, no, shaper, port, fd);
}

/* At the beginning of a round, before a ring is touched: a port that is gone by the list is freed
 * after this thread's next quiescent state. */
static void
follow_ports(struct worker *w)
{
    unsigned serial = load_acquire(&w->dp->watch_serial);
    if (w->watching && serial == w->watched)
        return;
    const struct port_list *l = rcu_dereference(w->dp->ports);
    w->watching = true;
    w->watched = serial;
    each_ring(w, l, mark);
    watch_sweep(&w->watch, w->now);
    each_ring(w, l, add);
}

static void
note_wait(struct worker *w, const struct port *port)
{
    uint64_t waited = port_rx_waited(port, w->io);
    if (waited)
        awake_woken(&w->awake, w->now, waited);
}

static unsigned
read_ring(struct worker *w, struct watch_ring *r)
{
    uint32_t before = w->round_bytes;
    unsigned most = share_batch(&r->share, w->now, PORT_BATCH);
    unsigned got = run_port(w, r, most);
    uint32_t bytes = w->round_bytes - before;
    if (got) {
        r->last = w->watch.tick;
        end_batch(w, &r->share, got, bytes);
    }
    r->bytes += bytes;
    r->full = got == PORT_BATCH && bytes >= PORT_BATCH * SEGMENT_LEAST;
    return got;
}

/* A few super-packets of one ring can become more segments than a batch of the ring that they
 * enter next.  So rings that filled their batch are read again until they have had as many bytes
 * as the ring that had most.  Rings of shorter packets are not: their cost is per packet, so
 * they would get most of the time. */
static unsigned
catch_up(struct worker *w, uint32_t most)
{
    unsigned n = 0;
    struct watch_ring *r;
    for (unsigned i = 0; (r = watch_read(&w->watch, i)); i++)
        for (unsigned k = 1; k < ROUND_BATCHES && r->full && r->bytes < most; k++)
            n += read_ring(w, r);
    return n;
}

static unsigned
run_round(struct worker *w)
{
    w->began = w->now;
    if (share_is_due(&w->clocks, w->now))
        share_mark(&w->clocks, w->now, clock_ns_of(CLOCK_THREAD_CPUTIME_ID));
    unsigned n = run_jobs(w);
    w->round_bytes = 0;
    watch_begin(&w->watch, w->now);
    uint32_t most = 0;
    bool full = false;
    struct watch_ring *r;
    for (unsigned i = 0; (r = watch_read(&w->watch, i)); i++) {
        if (w->awake.slept)
            note_wait(w, r->port);
        r->bytes = 0;
        r->full = false;
        if (share_rests(&r->share, w->now) && !watch_is_alone(&w->watch)) {
            r->last = w->watch.tick; /* or it would go idle, and wake the worker all the time */
            continue;
        }
        n += read_ring(w, r);
        full |= r->full;
        if (r->bytes > most)
            most = r->bytes;
    }
    if (full)
        n += catch_up(w, most);
    if (n) {
        counter_add(&w->packets, n);
        counter_add(&w->batches, 1);
    }
    store_relaxed(&w->rounds, w->rounds + 1);
    tell_control(w);
    return n;
}

/* Sleeps until a port or the control thread has work; offline for RCU meanwhile. */
static void
sleep_until_work(struct worker *w)
{
    rcu_reader_offline();
    watch_sleep(&w->watch, w->now, outs_rest(w) && !ring_empty(w->jobs) ? w->outs.rests_until : 0);
    urcu_qsbr_thread_online();
    counter_add(&w->wakeups, 1);
    share_slept(&w->clocks);
    if (w->watched == load_acquire(&w->dp->watch_serial))
        watch_woken(&w->watch);
}

/* Packets that somebody captures can't be handled in the kernel. */
static void
begin_asking(struct worker *w)
{
    w->kinds = w->capture ? NULL : rcu_dereference(w->dp->kinds);
    if (w->kinds)
        sample_begin(w->sample, w->now);
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    urcu_qsbr_register_thread();
    while (!load_relaxed(&w->stop)) {
        worker_set_clock(w, clock_ns());
        w->standalone = load_relaxed(&w->dp->standalone);
        if (rcu_dereference(w->dp->capture) || w->capture)
            capture_begin_round(w);
        begin_asking(w);
        change_set_enter();
        follow_ports(w);
        unsigned n = run_round(w);
        rcu_reader_quiescent();
        if (n)
            awake_worked(&w->awake, w->now, w->round_bytes);
        else if (awake_stays(&w->awake, w->now))
            caa_cpu_relax();
        else
            sleep_until_work(w);
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
    sample_free(w->sample);
    if (w->wake_fd >= 0)
        close(w->wake_fd);
    watch_close(&w->watch);
    free(w);
}

/* That this process may use. */
static unsigned
processors(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set)) /* more than the set has room for */
        return CPU_SETSIZE;
    return (unsigned)CPU_COUNT(&set);
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
    w->watch.epoll_fd = -1;
    w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int err = w->wake_fd >= 0 ? watch_open(&w->watch, w->wake_fd) : -errno;
    awake_init(&w->awake, dp->busy_poll_us, processors() > dp->n_workers);
    w->io = port_io_new(id, POOL_BYTES);
    w->cache = dp->cache_entries ? flow_cache_new(dp->cache_entries) : NULL;
    w->packet_ins = ring_new(RING_BYTES, PORT_MAX + 1);
    w->jobs = ring_new(RING_BYTES, 0);
    w->sample = sample_new();
    if (!err && !(w->io && w->packet_ins && w->jobs && w->sample))
        err = -ENOMEM;
    if (!err) {
        w->drops = port_io_drops(w->io);
        w->drop_log = port_io_drop_log(w->io);
        err = thread_begin(&w->thread, WORKER_STACK, worker_main, w);
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
    clockid_t clock;
    return pthread_getcpuclockid(w->thread, &clock) ? 0 : clock_ns_of(clock);
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
