/* SPDX-License-Identifier: Apache-2.0 */
/* Random tables, groups and packets: a plan's ops make of a packet, and of every other that the rule
 * matches, what the pipeline makes of it; and they count the same.
 *
 *     test-plan-random [first seed [how many [steps]]]
 */
#include "../pipeline/fixture.h"

#include "run-ops.h"

#include <megaflow/plan.h>
#include <packet/headers.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 16
#define FLIPS  24

struct run {
    struct fixture *fixture;
    struct random random;
    struct random_env env;
    struct frame frames[FRAMES];
    struct offload_plan plan;
    uint64_t why_n[OFFLOAD_REASON_N], compared, others, outs, drops, flooded, queued;
    char why[256];
};

static int
meter_place(void *ctx, const struct meter *m)
{
    return 7;
}

static const struct offload_meters meters = {meter_place, NULL};

/* ------------------------------------------------------------------ counters */

struct sums {
    uint64_t flow[CACHE_STEPS][2];
    uint64_t groups[3]; /* runs, bucket runs, bytes of both */
    uint64_t meter[2];
    uint64_t drops[DROP_N];
};

static void
add_counter(uint64_t *packets, uint64_t *bytes, const struct flow_counter *c)
{
    *packets += c->packets;
    *bytes += c->bytes;
}

static void
read_sums(const struct run *u, struct sums *s)
{
    struct fixture *fx = u->fixture;
    const struct group *g;
    uint32_t pos = 0;
    *s = (struct sums){0};
    for (uint32_t i = 0; i < u->plan.n_steps; i++)
        if (u->plan.step[i].flow)
            add_counter(&s->flow[i][0], &s->flow[i][1], flow_counter_of(u->plan.step[i].flow, 0));
    while ((g = groups_each(fx->dp->groups, &pos))) {
        add_counter(&s->groups[0], &s->groups[2], group_counter(g, 0, -1));
        for (uint32_t b = 0; b < g->n_buckets; b++)
            add_counter(&s->groups[1], &s->groups[2], group_counter(g, 0, (int)b));
    }
    struct flow_counter m =
        meters_counter(fx->dp->meters, meters_find(fx->dp->meters, METER_ID), -1);
    add_counter(&s->meter[0], &s->meter[1], &m);
    memcpy(s->drops, fx->drops, sizeof s->drops);
}

/* What a packet of n bytes adds, as the plan says. */
static void
add_planned(const struct offload_plan *p, uint32_t n, struct sums *s)
{
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->step[i].flow) {
            s->flow[i][0]++;
            s->flow[i][1] += n + (uint32_t)p->step[i].added;
        }
    for (uint32_t i = 0; i < p->n_runs; i++) {
        s->groups[p->run[i].bucket >= 0]++;
        s->groups[2] += n + (uint64_t)p->run[i].added;
    }
    if (p->meter_id) {
        s->meter[0]++;
        s->meter[1] += n;
    }
    for (uint32_t i = 0; i < p->n_drops; i++)
        s->drops[p->drop[i].why]++;
}

/* ------------------------------------------------------------------ one packet */

/* As it is on the wire. */
static uint32_t
sent_bytes(const struct fixture_tx *t, uint8_t *to)
{
    memcpy(to, t->data, t->n);
    if (t->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) {
        uint32_t start = t->vnet.csum_start;
        uint16_t csum = (uint16_t)~oracle_sum(0, to + start, t->n - start);
        of_set16(to + start + t->vnet.csum_offset,
                 !csum && t->vnet.csum_offset == UDP_CSUM_AT ? 0xffff : csum);
    }
    return t->n;
}

static bool
same_outs(struct run *u, const struct ran *ran)
{
    const struct port_io *io = u->fixture->io;
    const struct offload_plan *p = &u->plan;
    static uint8_t bytes[FRAME_ROOM + 256];
    if (io->n != ran->n || io->n != p->n_outs) {
        snprintf(u->why, 256, "%u came out, not %u (%u)", io->n, ran->n, p->n_outs);
        return false;
    }
    for (uint32_t i = 0; i < io->n; i++) {
        const struct fixture_tx *t = &io->tx[i];
        const struct ran_out *o = &ran->out[i];
        uint32_t n = sent_bytes(t, bytes), queue = o->priority & 0xffff;
        uint32_t no = o->ifindex - FIXTURE_IFINDEX;
        if (n != o->n || memcmp(bytes, o->data, n) || queue != t->queue ||
            (no == 99 ? OFPP_LOCAL : no) != t->port || t->port != p->out[i].port ||
            queue != p->out[i].queue || n - u->fixture->shown[0].n != (uint32_t)p->out[i].added) {
            snprintf(u->why, 256, "output %u is another (port %u, ifindex %u, queue %u, %u)", i,
                     t->port, o->ifindex, t->queue, queue);
            return false;
        }
    }
    u->outs += io->n;
    return true;
}

/* The frame matches the plan's rule: do pipeline and plan agree? */
static bool
compare(struct run *u, const struct frame *f, uint32_t in)
{
    static struct ran ran;
    struct sums before, after;
    read_sums(u, &before);
    uint64_t packet_ins = u->fixture->packet_ins;
    if (!fixture_receive(u->fixture, f, in, u->why))
        return false;
    read_sums(u, &after);
    add_planned(&u->plan, f->n, &before);
    run_ops(&u->plan.rule, f->data, f->n, &ran);
    if (!same_outs(u, &ran))
        return false;
    if (memcmp(&before, &after, sizeof before)) {
        snprintf(u->why, 256, "it counts differently");
        return false;
    }
    if (!fixture_compare(u->fixture, u->why))
        return false;
    if (packet_ins != u->fixture->packet_ins) {
        snprintf(u->why, 256, "a controller has got it");
        return false;
    }
    u->compared++;
    u->drops += u->plan.n_drops;
    return true;
}

/* ------------------------------------------------------------------ others that match */

/* Whether the frame finds the plan's entry. */
static bool
finds(const struct run *u, const struct frame *f)
{
    uint64_t key[OFFLOAD_WORDS];
    uint8_t ttl;
    return run_key(f->data, f->n, key, &ttl) && run_matches(&u->plan.rule, key) &&
           ttl >= u->plan.rule.min_ttl && f->n <= u->plan.rule.longest;
}

static void
insert_tag(struct random *c, struct frame *f)
{
    uint16_t tci = (uint16_t)random_below(c, 65536);
    if (f->n + VLAN_TAG > FRAME_ROOM)
        return;
    memmove(f->data + ETH_TYPE_AT + VLAN_TAG, f->data + ETH_TYPE_AT, f->n - ETH_TYPE_AT);
    of_set16(f->data + ETH_TYPE_AT, once_in(c, 2) ? TYPE_VLAN : TYPE_SVLAN);
    of_set16(f->data + ETH_TYPE_AT + 2, tci);
    f->n += VLAN_TAG;
}

/* One that differs from another in some bits, or in its tags. */
static void
vary(struct random *c, const struct frame *of, struct frame *f)
{
    *f = *of;
    f->csum_start = 0;
    if (once_in(c, 8))
        insert_tag(c, f);
    if (once_in(c, 8))
        random_sibling(c, of, f);
    for (uint32_t n = random_below(c, 3); n; n--) {
        uint32_t bit = random_below(c, (f->n < 80 ? f->n : 80) * 8);
        f->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static bool
others(struct run *u, const struct frame *f, uint32_t in)
{
    for (int i = 0; i < FLIPS; i++) {
        struct frame other;
        vary(&u->random, f, &other);
        if (!finds(u, &other))
            continue;
        u->others++;
        if (!compare(u, &other, in))
            return false;
    }
    for (int i = 0; i < FRAMES; i++)
        if (finds(u, &u->frames[i]) && !compare(u, &u->frames[i], in))
            return false;
    return true;
}

/* ------------------------------------------------------------------ runs */

static void
parse(const struct frame *f, uint32_t in, struct packet *p)
{
    static uint8_t room[FRAME_ROOM];
    memcpy(room, f->data, f->n);
    *p = (struct packet){.data = room, .len = f->n, .wire_len = f->n};
    packet_parse(p, in);
}

/* The frame matches the rule at a port with queues for what enters: do rule and preview agree? */
static bool
compare_queue(struct run *u, const struct frame *f, uint32_t in)
{
    const struct offload_plan *p = &u->plan;
    const struct offload_op *op = &p->rule.op[0];
    struct preview o = fixture_preview(u->fixture, f, in);
    uint32_t queue = port_tx_queue(&u->fixture->ports[0], o.queue);
    if (o.goes != p->queue_in) {
        snprintf(u->why, 256, "it goes: %d, not %d", o.goes, p->queue_in);
        return false;
    }
    if (o.goes &&
        (p->rule.n_ops != 1 || op->kind != OFFLOAD_QUEUE_IN || op->value >> 32 != queue)) {
        snprintf(u->why, 256, "queue %u, not %u", (unsigned)(op->value >> 32), (unsigned)queue);
        return false;
    }
    u->queued += o.goes;
    return true;
}

/* At the port, and behind its queues. */
static bool
step_queued(struct run *u, const struct frame *f, uint32_t in, const struct flow_key *key)
{
    struct dp *dp = u->fixture->dp;
    if (offload_plan_make(dp, key, OFFLOAD_AT_PORT, &meters, &u->plan) != OFFLOADED) {
        snprintf(u->why, 256, "there is no plan to queue it");
        return false;
    }
    if (!compare_queue(u, f, in))
        return false;
    for (int i = 0; i < FLIPS; i++) {
        struct frame other;
        vary(&u->random, f, &other);
        if (finds(u, &other) && !compare_queue(u, &other, in))
            return false;
    }
    return offload_plan_make(dp, key, OFFLOAD_BEHIND_QUEUES, &meters, &u->plan) == OFFLOADED;
}

static bool
step(struct run *u)
{
    struct random *c = &u->random;
    uint32_t i = random_below(c, FRAMES), no = once_in(c, 4) ? random_below(c, 6) : i % 6;
    uint32_t in = no < 5 ? no + 1 : OFPP_LOCAL;
    uint64_t key[OFFLOAD_WORDS];
    uint8_t ttl;
    struct packet p;
    const struct frame *f = &u->frames[i];
    if (!run_key(f->data, f->n, key, &ttl))
        return true;
    parse(f, in, &p);
    enum offload_reason why =
        offload_plan_make(u->fixture->dp, &p.key, OFFLOAD_AT_PORT, &meters, &u->plan);
    u->why_n[why]++;
    if (why != OFFLOADED || ttl < u->plan.rule.min_ttl)
        return true;
    u->flooded += u->plan.any_port;
    if (!run_matches(&u->plan.rule, key)) {
        snprintf(u->why, 256, "the rule does not match the packet that it is of");
        return false;
    }
    struct port *port = no < 5 ? &u->fixture->ports[no] : NULL;
    if (port && once_in(c, 2)) {
        port->shaped = true;
        bool same = step_queued(u, f, in, &p.key);
        port->shaped = false;
        if (!same)
            return false;
    }
    return compare(u, f, in) && others(u, f, in);
}

static void
make_frame(struct run *u, struct frame *f)
{
    uint64_t key[OFFLOAD_WORDS];
    uint8_t ttl;
    do
        random_frame(&u->random, f);
    while (!run_key(f->data, f->n, key, &ttl) && !once_in(&u->random, 32));
}

static bool
all_steps(struct run *u, uint32_t steps)
{
    struct random *c = &u->random;
    for (int i = 0; i < FRAMES; i++)
        make_frame(u, &u->frames[i]);
    for (uint32_t i = 0; i < 60; i++)
        if (!fixture_change(u->fixture, &u->env, u->why))
            return false;
    for (uint32_t i = 0; i < steps; i++) {
        if (once_in(c, 4) && !fixture_change(u->fixture, &u->env, u->why))
            return false;
        if (once_in(c, 24))
            make_frame(u, &u->frames[random_below(c, FRAMES)]);
        if (!step(u))
            return false;
    }
    return fixture_compare_counters(u->fixture, u->why);
}

static bool
run(uint64_t seed, uint32_t steps, struct run *u)
{
    u->random =
        (struct random){.seed = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15), .plain = seed % 8};
    u->fixture = fixture_new(0);
    u->random.tags = seed % 4 == 3;
    u->random.partial = seed & 1;
    u->env = (struct random_env){.c = &u->random,
                                 .arena = &u->fixture->arena,
                                 .sw = &u->fixture->oracle,
                                 .frames = u->frames,
                                 .n_frames = FRAMES,
                                 .n_tables = FIXTURE_TABLES};
    for (int i = 0; i < ORACLE_PORTS; i++)
        u->fixture->ports[i].not_kernel = u->fixture->ports[i].no == OFPP_LOCAL && seed % 3 == 0;
    bool ok = all_steps(u, steps);
    if (!ok) {
        fixture_show(u->fixture);
        fprintf(stderr, "seed %llu, %u steps: %s\n", (unsigned long long)seed, steps, u->why);
    }
    fixture_free(u->fixture);
    return ok;
}

static uint64_t
argument(char **argv, int argc, int i, uint64_t otherwise)
{
    return argc > i ? strtoull(argv[i], NULL, 0) : otherwise;
}

int
main(int argc, char **argv)
{
    static struct run u;
    uint64_t first = argument(argv, argc, 1, 1), n = argument(argv, argc, 2, 100);
    uint32_t steps = (uint32_t)argument(argv, argc, 3, 200);
    unsigned failed = 0;
    for (uint64_t seed = first; seed < first + n && failed < 5; seed++)
        failed += !run(seed, steps, &u);
    for (int i = 0; i < OFFLOAD_REASON_N; i++)
        printf("%s %llu, ", offload_reason_name[i], (unsigned long long)u.why_n[i]);
    printf(
        "%llu packets compared, %llu of them others, %llu out, %llu dropped, %llu by the state of "
        "ports, %llu into queues; %u failed\n",
        (unsigned long long)u.compared, (unsigned long long)u.others, (unsigned long long)u.outs,
        (unsigned long long)u.drops, (unsigned long long)u.flooded, (unsigned long long)u.queued,
        failed);
    return failed ? 1 : 0;
}
