/* SPDX-License-Identifier: Apache-2.0 */
/* What was dropped, refused and lost, by reason (docs/extensions.md, COUNTERS): every packet that
 * went nowhere and every message that came to nothing is in one of these. */
#include "switch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct counters {
    struct of_wr out; /* encoded entries */
    size_t at;
};

static void
put(struct counters *d, const char *room, const char *name, uint64_t value)
{
    char text[64];
    int n = snprintf(text, sizeof text, "%s%s", room, name);
    size_t start = d->out.len;
    of_wr16(&d->out, (uint16_t)(16 + (n + 8) / 8 * 8));
    of_wr_add(&d->out, 6);
    of_wr64(&d->out, value);
    of_wr_bytes(&d->out, text, (size_t)n + 1);
    of_wr_align(&d->out, start, 8);
}

static void
put_drops(struct counters *d, const struct sw *sw)
{
#define DROP_NAME(name, text) #name,
    static const char *const names[] = {DROP_ROWS(DROP_NAME)};
    for (int i = 0; i < DROP_N; i++) {
        uint64_t sum = 0;
        for (unsigned w = 0; w < sw->dp.n_workers; w++)
            sum += __atomic_load_n(&sw->dp.workers[w]->drops[i], __ATOMIC_RELAXED);
        put(d, "drop.", names[i], sum);
    }
    put(d, "packet_out.", "lost", sw->packet_outs_lost);
    put(d, "fail.", "standalone", sw->standalone_times);
}

static void
put_channel(struct counters *d, const struct sw *sw)
{
    const struct channel_counters *c = channel_counters(sw->channel);
#define PUT_CHANNEL(name) put(d, "channel.", #name, c->name);
    CHANNEL_COUNTERS(PUT_CHANNEL)
    for (unsigned i = 0; i < CHANNEL_ERROR_TYPES; i++) {
        char name[32];
        snprintf(name, sizeof name, "errors_out.type_%u", i);
        if (c->errors_out_by_type[i])
            put(d, "channel.", name, c->errors_out_by_type[i]);
    }
}

static void
put_ports(struct counters *d, const struct sw *sw)
{
    uint32_t no = 0;
    for (const struct sw_port *p; (p = ports_next(sw, no)); no = p->no) {
        struct port_counters n;
        char room[32];
        if (!p->port)
            continue;
        port_read_counters(p->port, &n);
        snprintf(room, sizeof room, "port.%s.", p->name);
        put(d, room, "rx_dropped", n.rx_dropped);
        put(d, room, "tx_dropped", n.tx_dropped);
        put(d, room, "tx_no_queue", n.tx_no_queue);
        put(d, room, "rx_no_queue", n.rx_no_queue);
        put(d, room, "queue_sockets", n.queue_sockets);
    }
}

static bool
step(struct dump *to, void *ctx)
{
    struct counters *d = ctx;
    while (d->at < d->out.len) {
        const uint8_t *p = d->out.buf + d->at;
        dump_add_bytes(to, (struct of_bytes){p, of_get16(p)});
        d->at += of_get16(p);
    }
    return false;
}

static void
done(void *ctx)
{
    struct counters *d = ctx;
    of_wr_free(&d->out);
    free(d);
}

int
handle_counters(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct counters *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->out = of_wr_grow(16u << 20);
    put_drops(d, sw);
    put_channel(d, sw);
    put_ports(d, sw);
    return conn_dump(c, m, step, done, d);
}
