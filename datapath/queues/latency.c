/* SPDX-License-Identifier: Apache-2.0 */
#include "latency-state.h"

#include <queues/latency.h>
#include <queues/service.h>
#include <switch/switch.h>

#include <daemon/machine-memory.h>

#include <errno.h>
#include <stdlib.h>

/* Between two looks: the ring's 4,096 samples then hold 40,000 a second. */
#define BUSY_NS (NS_PER_S / 10)

/* ------------------------------------------------------------------ samples */

struct reading {
    struct sw *sw;
    uint64_t now;
    /* Of the sample before, as most are of few queues. */
    uint32_t ifindex, queue;
    struct latency_key key;
    bool found;
    bool slow; /* one of the samples */
};

/* The first class on the way out. */
static void
take_class(void *ctx, const struct qos_entry *entry, uint64_t rate, uint64_t ceil)
{
    uint32_t *id = ctx;
    if (!*id && entry->config.object_type == OFP_QOS_CLASS)
        *id = entry->config.class_id;
}

static void
find_queue(struct reading *r, const struct rtt_sample *s)
{
    const struct sw_port *p = sw_ports_by_ifindex(r->sw, (int)s->ifindex);
    r->ifindex = s->ifindex;
    r->queue = s->queue;
    r->found = p != NULL;
    if (!p)
        return;
    r->key = (struct latency_key){.port_no = p->no,
                                  .class_id = s->queue ? port_tx_class(p->port, s->queue) : 0};
    if (!r->key.class_id)
        qos_each_above(r->sw->qos, p->no, QOS_OUT, 0, take_class, &r->key.class_id);
}

static void
take_sample(void *ctx, const struct rtt_sample *s)
{
    struct reading *r = ctx;
    if (s->ifindex != r->ifindex || s->queue != r->queue)
        find_queue(r, s);
    const struct latency_segments more = {.counted = s->tally & 0xffff,
                                          .behind = s->tally >> RTT_BEHIND & 0xff,
                                          .before = s->tally >> RTT_BEFORE};
    if (r->found && more.counted)
        latency_count(r->sw->latency->store, &r->key, &more, r->now);
    if (r->found && s->pair && latency_rtt(r->sw->latency->store, &r->key, s->us, s->pair, r->now))
        r->slow = true;
}

/* Whether there were any.  While round trips are long it is read how long packets wait, so that who asks later learns
 * where; if that fails, the next slow sample tries again. */
static bool
read_samples(struct sw *sw)
{
    struct reading r = {.sw = sw, .now = loop_clock()};
    uint32_t before = sw->latency->read;
    probes_read(&sw->dp.probes, &sw->latency->read, take_sample, &r);
    if (r.slow)
        sw_service_watch(sw);
    return sw->latency->read != before;
}

static void
look(void *ctx)
{
    struct sw *sw = ctx;
    bool some = read_samples(sw);
    loop_timer_set(sw->latency->timer, loop_now(sw->loop) + (some ? BUSY_NS : NS_PER_S));
}

/* ------------------------------------------------------------------ beginning and end */

int
sw_latency_open(struct sw *sw, const struct probes *kernel)
{
    if (sw->opt.no_latency)
        return 0;
    struct sw_latency *l = calloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    sw->latency = l;
    l->store = latency_new();
    l->own = !kernel->control;
    int err = l->store ? loop_timer_new(sw->loop, look, sw, &l->timer) : -ENOMEM;
    sw->dp.probes = *kernel;
    if (!err && l->own)
        err = probes_new(&sw->dp.probes, probes_slots(machine_memory()));
    if (err)
        return err;
    probes_turn(&sw->dp.probes, true);
    loop_timer_set(l->timer, loop_now(sw->loop) + NS_PER_S);
    return 0;
}

void
sw_latency_free(struct sw *sw)
{
    struct sw_latency *l = sw->latency;
    if (!l)
        return;
    probes_turn(&sw->dp.probes, false);
    if (l->own)
        probes_free(&sw->dp.probes);
    if (l->timer)
        loop_timer_free(l->timer);
    latency_free(l->store);
    free(l);
    sw->latency = NULL;
    sw->dp.probes = (struct probes){0};
}

/* ------------------------------------------------------------------ looking at it */

struct latency *
sw_latency(struct sw *sw)
{
    if (!sw->latency)
        return NULL;
    read_samples(sw);
    return sw->latency->store;
}

uint64_t
sw_latency_lost(const struct sw *sw)
{
    return sw->latency ? latency_lost(sw->latency->store) : 0;
}

void
sw_latency_forget(struct sw *sw, uint32_t port_no, enum qos_direction dir, uint32_t class_id)
{
    const struct latency_key k = {port_no, class_id, dir == QOS_IN};
    if (sw->latency)
        latency_forget(sw->latency->store, &k);
}

void
sw_latency_forget_port(struct sw *sw, uint32_t port_no)
{
    if (sw->latency)
        latency_forget_port(sw->latency->store, port_no);
}
