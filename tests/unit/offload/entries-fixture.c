/* SPDX-License-Identifier: Apache-2.0 */
#include "entries-fixture.h"

#include <megaflow/megaflow.h>
#include <task/task.h>

#include <shared/rcu.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ------------------------------------------------------------------ what the files ask for */

uint64_t now_ns;
uint8_t locked;
struct offload_request requests[4];
unsigned n_requests;
struct port_counters counted[7];
struct sw_port sw_port[7];

uint8_t
tasks_locked(const struct tasks *q)
{
    return locked;
}

uint64_t
loop_now(const struct loop *l)
{
    return now_ns;
}

uint64_t
loop_clock(void)
{
    return now_ns;
}

void
loop_timer_set(struct loop_timer *t, uint64_t at_ns)
{
}

static unsigned
place_of_port(uint32_t no)
{
    return no == OFPP_LOCAL ? 5 : no - 1;
}

struct sw_port *
sw_ports_find(const struct sw *sw, uint32_t no)
{
    return no == OFPP_LOCAL || (no && no < 6) ? &sw_port[place_of_port(no)] : NULL;
}

void
port_count_kernel(struct port *p, const struct port_counters *more)
{
    struct port_counters *c = &counted[place_of_port(p->no)];
    c->rx_packets += more->rx_packets;
    c->rx_bytes += more->rx_bytes;
    c->tx_packets += more->tx_packets;
    c->tx_bytes += more->tx_bytes;
}

int
dp_set_kinds(struct dp *dp, bool on, const struct flow_key *more)
{
    return 0;
}

const struct offload_request *
sample_peek(struct offload_sample *s)
{
    return n_requests ? &requests[n_requests - 1] : NULL;
}

void
sample_take(struct offload_sample *s)
{
    n_requests--;
}

/* ------------------------------------------------------------------ a switch */

static int
any_place(void *ctx, const struct meter *m)
{
    return 3;
}

static void
settle(void *ctx)
{
    struct test *t = ctx;
    offload_settle(&t->f);
}

static void
make_memory(struct offload_memory *m)
{
    uint32_t sets = offload_sets_for(ENTRIES);
    *m = (struct offload_memory){.control = calloc(1, sizeof *m->control),
                                 .set = calloc(sets, sizeof *m->set),
                                 .entry = calloc(ENTRIES, sizeof *m->entry),
                                 .hits = calloc(ENTRIES, sizeof *m->hits),
                                 .cpu = aligned_alloc(128, sizeof *m->cpu),
                                 .port = calloc(OFFLOAD_PORTS, sizeof *m->port),
                                 .meter = calloc(OFFLOAD_METERS, sizeof *m->meter),
                                 .n_entries = ENTRIES,
                                 .n_sets = sets,
                                 .n_cpus = 1};
    memset(m->cpu, 0, sizeof *m->cpu);
}

static void
free_memory(struct offload_memory *m)
{
    free(m->control);
    free(m->set);
    free(m->entry);
    free(m->hits);
    free(m->cpu);
    free(m->port);
    free(m->meter);
}

static struct flow_key
key_of_frame(const struct frame *f, uint32_t in_port)
{
    uint8_t *room = malloc(PACKET_HEADROOM + (size_t)f->n);
    struct packet p = {
        .data = room + PACKET_HEADROOM, .len = f->n, .wire_len = f->n, .headroom = PACKET_HEADROOM};
    memcpy(p.data, f->data, f->n);
    packet_parse(&p, in_port);
    struct flow_key key = p.key;
    if (p.malformed)
        key = (struct flow_key){0}; /* workers don't ask for it */
    free(room);
    return key;
}

void
draw_frame(struct test *t, unsigned i)
{
    uint32_t in_port = i % 5 + 1;
    if (i >= 5 && once_in(&t->random, 2))
        random_sibling(&t->random, &t->frames[i - 5], &t->frames[i]);
    else
        random_frame(&t->random, &t->frames[i]);
    t->key[i] = key_of_frame(&t->frames[i], in_port);
}

struct test *
test_begin(uint64_t seed)
{
    struct test *t = calloc(1, sizeof *t);
    now_ns = UINT64_C(1000000000000);
    memset(counted, 0, sizeof counted);
    t->fixture = fixture_new(0);
    t->random.seed = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
    t->env = (struct random_env){.c = &t->random,
                                 .arena = &t->fixture->arena,
                                 .sw = &t->fixture->oracle,
                                 .frames = t->frames,
                                 .n_frames = FRAMES,
                                 .n_tables = FIXTURE_TABLES};
    make_memory(&t->m);
    t->sw.dp = *t->fixture->dp;
    t->sw.offload = &t->f;
    t->f = (struct sw_offload){.sw = &t->sw,
                               .o = offload_table_new(&t->m),
                               .places = {any_place, NULL},
                               .live = calloc(ENTRIES, sizeof *t->f.live),
                               .gone = calloc(ENTRIES, sizeof *t->f.gone),
                               .most = ENTRIES};
    for (int i = 0; i < 6; i++)
        sw_port[i] = (struct sw_port){.no = i < 5 ? (uint32_t)i + 1 : OFPP_LOCAL,
                                      .port = &t->fixture->ports[i]};
    for (unsigned i = 0; i < FRAMES; i++)
        draw_frame(t, i);
    memcpy(t->before, t->fixture->world.port, sizeof t->before);
    rcu_wait_also(settle, t);
    offload_settle(&t->f);
    assert_true(t->f.on);
    return t;
}

void
test_end(struct test *t)
{
    sw_offload_forget_all(&t->sw);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 0);
    assert_int_equal(offload_counts(t->f.o).entries, 0);
    rcu_wait_also(NULL, NULL);
    offload_table_free(t->f.o);
    offload_quick_free(&t->f);
    free(t->f.live);
    free(t->f.gone);
    free_memory(&t->m);
    fixture_free(t->fixture);
    free(t);
}

void
offload_grow_all(struct sw_offload *f)
{
}
