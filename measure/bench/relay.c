/* SPDX-License-Identifier: Apache-2.0 */
/* Relays between two interfaces by packet I/O alone: no tables, no parsing worth speaking of.  It
 * shows what the backend itself can reach.
 *
 *     relay [-w WAY] [-s SLOT_BYTES] [-r RING_BYTES] [-q QUEUES] [-b BATCH] [-p SPIN_US] IF1 IF2
 *     relay -g SECONDS [-f FLOWS] [-R RATE] IF
 *                                (sends 64-byte frames, 60 without FCS, of FLOWS microflows in
 *                                 turn, 1 if not said, 0: each a new one; as fast as it can, or
 *                                 RATE a second)
 */
#include "clock.h"
#include "generate.h"
#include <port/port.h>
#include <shared/atomics.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t stop;

static void
on_signal(int number)
{
    stop = number;
}

/* One batch from one port to the other. */
static unsigned
relay(struct port *from, struct port *to, struct port_io *w, unsigned batch, uint32_t queues)
{
    static struct packet pkt[PORT_BATCH];
    static uint32_t turn;
    unsigned n = port_rx(from, w, pkt, batch);
    for (unsigned i = 0; i < n; ++i) {
        if (queues)
            pkt[i].queue = 1 + turn++ % queues;
        int drop = port_tx(to, w, &pkt[i]);
        if (drop > 0)
            counter_add(&port_io_drops(w)[drop - 1], 1);
    }
    port_io_flush(w);
    port_rx_done(from, w);
    return n;
}

static void
run(struct port *p[2], struct port_io *w, unsigned batch, uint32_t queues, uint64_t spin_ns)
{
    struct pollfd fds[2] = {{.fd = port_rx_fd(p[0], 0), .events = POLLIN},
                            {.fd = port_rx_fd(p[1], 0), .events = POLLIN}};
    uint64_t idle_since = 0;
    while (!stop) {
        unsigned n = relay(p[0], p[1], w, batch, queues);
        n += relay(p[1], p[0], w, batch, queues);
        if (n) {
            idle_since = 0;
            continue;
        }
        uint64_t now = spin_ns ? now_ns() : 0;
        if (!idle_since)
            idle_since = now;
        if (!spin_ns || now - idle_since > spin_ns) {
            poll(fds, 2, 1000);
            idle_since = 0;
        }
    }
}

/* Batches of 64, or what is due every so often that half a batch is: at most every 200 us, and each
 * millisecond at least.  Waking up costs the processor that is to be left to the switch. */
static void
generate(struct port *p, struct port_io *w, double seconds, struct generator *g, double rate)
{
    uint64_t start = now_ns(), end = start + (uint64_t)(seconds * 1e9), sent = 0;
    double half = rate > 0 ? PORT_BATCH / 2 * 1e9 / rate : 0;
    struct timespec pause = {.tv_nsec = half < 200000 ? 200000 : half > 1e6 ? 1000000 : (long)half};
    for (uint64_t now = start; !stop && now < end; now = now_ns()) {
        uint64_t due = sent + PORT_BATCH;
        if (rate > 0)
            due = (uint64_t)((double)(now - start) * 1e-9 * rate);
        unsigned n = due - sent < PORT_BATCH ? (unsigned)(due - sent) : PORT_BATCH;
        for (unsigned i = 0; i < n; ++i) {
            struct packet pkt = {.data = (uint8_t *)(uintptr_t)generator_next(g),
                                 .len = GENERATED_LEN};
            port_tx(p, w, &pkt);
        }
        port_io_flush(w);
        sent += n;
        if (n < PORT_BATCH)
            nanosleep(&pause, NULL);
    }
}

static void
report(const struct port *p)
{
    struct port_counters c;
    port_read_counters(p, &c);
    fprintf(stderr,
            "%s: rx %llu packets %llu bytes %llu dropped; tx %llu packets %llu bytes %llu dropped, "
            "%llu no queue, %llu sockets\n",
            port_name(p), (unsigned long long)c.rx_packets, (unsigned long long)c.rx_bytes,
            (unsigned long long)c.rx_dropped, (unsigned long long)c.tx_packets,
            (unsigned long long)c.tx_bytes, (unsigned long long)c.tx_dropped,
            (unsigned long long)c.tx_no_queue, (unsigned long long)c.queue_sockets);
}

struct options {
    struct port_config port;
    unsigned batch;
    uint32_t queues;
    uint64_t spin_ns;
    double generate, rate;
    uint32_t flows;
};

static bool
options(int argc, char **argv, struct options *o)
{
    int opt;
    while ((opt = getopt(argc, argv, "w:s:r:q:b:p:g:f:R:")) != -1)
        switch (opt) {
        case 'w': o->port.backend = optarg; break;
        case 's': o->port.slot_bytes = strtoul(optarg, NULL, 0); break;
        case 'r': o->port.ring_bytes = strtoul(optarg, NULL, 0); break;
        case 'q': o->queues = (uint32_t)strtoul(optarg, NULL, 0); break;
        case 'b': o->batch = (unsigned)strtoul(optarg, NULL, 0); break;
        case 'p': o->spin_ns = 1000 * strtoul(optarg, NULL, 0); break;
        case 'g': o->generate = strtod(optarg, NULL); break;
        case 'f': o->flows = (uint32_t)strtoul(optarg, NULL, 0); break;
        case 'R': o->rate = strtod(optarg, NULL); break;
        default: return false;
        }
    return argc - optind == (o->generate > 0 ? 1 : 2);
}

int
main(int argc, char **argv)
{
    struct options o = {.port.n_workers = 1, .batch = PORT_BATCH, .flows = 1};
    struct port *p[2] = {NULL, NULL};
    struct generator g = {0};
    char why[200] = "";
    if (!options(argc, argv, &o)) {
        fprintf(stderr, "usage: %s [options] IF1 IF2 | -g SECONDS IF\n", argv[0]);
        return 2;
    }
    if (o.generate > 0 && generator_init(&g, o.flows))
        return 1;
    port_global_init();
    struct port_io *w = port_io_new(0, 1 << 22);
    for (int i = 0; i < argc - optind; ++i) {
        o.port.port_no = (uint32_t)i + 1;
        snprintf(o.port.name, sizeof o.port.name, "%s", argv[optind + i]);
        if (!w || port_open(&o.port, &p[i], why, sizeof why)) {
            fprintf(stderr, "%s: %s\n", o.port.name, why);
            return 1;
        }
        for (uint32_t q = 1; q <= o.queues; ++q)
            port_queue_set(p[i], q, PORT_PRIORITY(q), 0);
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    puts("ready");
    fflush(stdout);
    if (o.generate > 0)
        generate(p[0], w, o.generate, &g, o.rate);
    else
        run(p, w, o.batch, o.queues, o.spin_ns);
    for (unsigned i = 0; i < 2 && p[i]; ++i) {
        report(p[i]);
        port_close(p[i]);
    }
    for (unsigned i = 0; i < DROP_N; ++i)
        if (port_io_drops(w)[i])
            fprintf(stderr, "dropped, reason %u: %llu\n", i,
                    (unsigned long long)port_io_drops(w)[i]);
    generator_free(&g);
    port_io_free(w);
    port_global_exit();
    return 0;
}
