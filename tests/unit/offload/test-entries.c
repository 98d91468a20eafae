/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread's entries over the real tables, groups and plans, and over a kernel that is plain
 * memory. */
#include "../pipeline/fixture.h"

#include <offload-inside.h>
#include <offload-state.h>
#include <shared/rcu.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ENTRIES 64
#define FRAMES  16
#define SEEDS   12
#define STEPS   1500

/* ------------------------------------------------------------------ what the files ask for */

static uint64_t now_ns;
static struct sw_port sw_port[7];
static struct port_counters counted[7];

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
    return NULL;
}

void
sample_take(struct offload_sample *s)
{
}

/* ------------------------------------------------------------------ a switch */

struct test {
    struct fixture *fixture;
    struct sw sw;
    struct sw_offload f;
    struct offload_memory m;
    struct random random;
    struct random_env env;
    struct frame frames[FRAMES];
    struct flow_key key[FRAMES];
    struct oracle_port before[6];
    uint64_t stayed, made, others;
    char why[256];
};

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
    if (p.fragment || p.malformed)
        key = (struct flow_key){0}; /* workers don't ask for it */
    free(room);
    return key;
}

static void
draw_frame(struct test *t, unsigned i)
{
    uint32_t in_port = i % 5 + 1;
    if (i >= 5 && once_in(&t->random, 2))
        random_sibling(&t->random, &t->frames[i - 5], &t->frames[i]);
    else
        random_frame(&t->random, &t->frames[i]);
    t->key[i] = key_of_frame(&t->frames[i], in_port);
}

static struct test *
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

static void
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

/* ------------------------------------------------------------------ what stays is right */

static void
tell_ports(struct test *t)
{
    for (unsigned i = 0; i < 6; i++) {
        const struct oracle_port *p = &t->fixture->world.port[i];
        if (memcmp(&t->before[i], p, sizeof *p))
            sw_offload_forget_port(&t->sw, p->no);
    }
    memcpy(t->before, t->fixture->world.port, sizeof t->before);
}

static bool
has_key(const struct entry *e, const struct flow_key *key)
{
    uint64_t differs = 0;
    for (int i = 0; i < KEY_WORDS; i++)
        differs |= (e->key.w[i] ^ key->w[i]) & e->mask.w[i];
    return !differs;
}

static bool
same_path(const struct entry *e, const struct offload_plan *p)
{
    bool same = e->n_steps == p->n_steps && e->meter_id == p->meter_id && e->metered == p->metered;
    for (unsigned i = 0; same && i < e->n_steps; i++)
        same = e->table[i] == p->step[i].table && e->step[i].flow == p->step[i].flow &&
               e->step[i].program == p->step[i].program && e->added[i] == p->step[i].added;
    return same;
}

static bool
same_counted(const struct test *t, const struct entry *e, const struct offload_plan *p)
{
    bool same = e->n_runs == p->n_runs && e->n_outs == p->n_outs && e->n_drops == p->n_drops;
    for (unsigned i = 0; same && i < e->n_runs; i++)
        same = e->run[i].id == p->run[i].group && e->run[i].bucket == p->run[i].bucket &&
               e->run[i].added == p->run[i].added &&
               e->run[i].group == groups_find(t->sw.dp.groups, e->run[i].id);
    for (unsigned i = 0; same && i < e->n_outs; i++)
        same = e->out[i].port == p->out[i].port && e->out[i].added == p->out[i].added;
    for (unsigned i = 0; same && i < e->n_drops; i++)
        same = e->drop[i].why == p->drop[i].why;
    return same;
}

/* The entry as the kernel has it. */
static bool
same_ops(const struct test *t, const struct entry *e, const struct offload_plan *p)
{
    const struct offload_entry *k = &t->m.entry[e->id];
    return k->state == OFFLOAD_LIVE && k->n_ops == p->rule.n_ops && k->longest == p->rule.longest &&
           k->super == p->rule.super && k->min_ttl == p->rule.min_ttl &&
           !memcmp(k->op, p->rule.op, k->n_ops * sizeof k->op[0]);
}

static void
check_entry(struct test *t, const struct entry *e)
{
    struct offload_plan p;
    for (unsigned i = 0; i < FRAMES; i++) {
        bool own = !memcmp(&e->asked, &t->key[i], sizeof e->asked);
        if (!own && !has_key(e, &t->key[i]))
            continue;
        enum offload_reason why = offload_plan_make(&t->sw.dp, &t->key[i], &t->f.places, &p);
        if (!own && why == OFFLOAD_WHY_kind) /* the kernel's programs don't look for it */
            continue;
        if (why == OFFLOADED && same_path(e, &p) && same_counted(t, e, &p) && same_ops(t, e, &p)) {
            t->others += !own;
            continue;
        }
        fprintf(stderr, "entry %u: the plan anew (%s) is another one\n", (unsigned)e->id,
                offload_reason_name[why]);
        fail();
    }
    t->stayed++;
}

static void
check_all(struct test *t)
{
    for (uint32_t i = 0; i < t->f.n_live; i++) {
        assert_int_equal(t->f.live[i]->at, i);
        check_entry(t, t->f.live[i]);
    }
    assert_int_equal(offload_counts(t->f.o).entries, t->f.n_live);
    assert_int_equal(t->f.n_gone, 0);
}

static void
ask(struct test *t, unsigned i)
{
    static const struct flow_key none;
    now_ns += 20000000000; /* no pause lasts that long, and requests are few */
    if (memcmp(&t->key[i], &none, sizeof none))
        offload_ask(&t->f, &t->key[i]);
}

static void
random_run(uint64_t seed, uint64_t *stayed, uint64_t *others, uint64_t *made)
{
    struct test *t = test_begin(seed);
    for (unsigned i = 0; i < 60; i++)
        assert_true(fixture_change(t->fixture, &t->env, t->why));
    tell_ports(t);
    for (unsigned i = 0; i < STEPS; i++) {
        if (once_in(&t->random, 3)) {
            assert_true(fixture_change(t->fixture, &t->env, t->why));
            tell_ports(t);
        }
        if (once_in(&t->random, 100))
            draw_frame(t, random_below(&t->random, FRAMES));
        ask(t, random_below(&t->random, FRAMES));
        offload_settle(&t->f);
        check_all(t);
    }
    *stayed += t->stayed;
    *others += t->others;
    *made += t->f.counts.inserted;
    test_end(t);
}

/* An entry that no change concerned still is what a plan anew says, for each packet that it matches. */
static void
what_stays_is_right(void **state)
{
    uint64_t stayed = 0, others = 0, made = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        random_run(seed, &stayed, &others, &made);
    print_message("%llu entries made; looked at %llu, and %llu packets of others\n",
                  (unsigned long long)made, (unsigned long long)stayed, (unsigned long long)others);
    assert_true(made > 100 && stayed > 10 * made && others > 100);
}

/* ------------------------------------------------------------------ a plain flow */

/* What comes in by port 1 goes to port 2. */
static void
add_flow(struct test *t, uint32_t in_port, uint32_t out_port, uint16_t priority, uint8_t command)
{
    struct of_oxm oxm = {.row = &oxm_rows[OXM_in_port]};
    struct of_action_output out = {.row = OF_ACTION(OUTPUT), .port = out_port};
    void *actions[] = {&out};
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS),
                                     .actions = {.n = 1, .v = actions}};
    void *instructions[] = {&apply};
    struct of_flow_mod m = {.command = command,
                            .priority = priority,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .match = {.n = 1, .v = &oxm},
                            .instructions = {.n = 1, .v = instructions}};
    oxm_set_number(oxm.row, oxm.value, in_port);
    memset(oxm.mask, 0xff, sizeof oxm.mask);
    struct of_flow_mod *f = fixture_through_codec(t->fixture, OFPT_FLOW_MOD, &m);
    assert_int_equal(tables_flow_mod(t->sw.dp.tables, f, now_ns), 0);
}

/* A UDP packet that comes in by the port. */
static struct flow_key
plain_key(uint32_t in_port, uint8_t n)
{
    struct flow_key k = {0};
    of_set32(k.in_port, in_port);
    of_set32(k.in_phy_port, in_port);
    k.eth_dst[5] = n;
    of_set16(k.eth_type, 0x0800);
    of_set16(k.vlan_vid, KEY_HAS);
    k.ip_proto = 17;
    k.ip_dst.v4[3] = n;
    return k;
}

static struct entry *
ask_plain(struct test *t, uint32_t in_port)
{
    struct flow_key k = plain_key(in_port, 1);
    uint32_t n = t->f.n_live;
    offload_ask(&t->f, &k);
    return t->f.n_live > n ? t->f.live[n] : NULL;
}

static struct flow *
only_flow(struct test *t, uint32_t in_port)
{
    struct flow_key k = plain_key(in_port, 1);
    return tables_preview(t->sw.dp.tables, 0, &k);
}

static void
hit(struct test *t, const struct entry *e, uint64_t packets, uint64_t bytes)
{
    struct offload_hits *h = &t->m.hits[e->id];
    h->packets += packets;
    h->frames += packets;
    h->bytes += bytes;
    t->m.entry[e->id].used = now_ns;
}

/* ------------------------------------------------------------------ counters */

static void
hits_count_once(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    struct entry *e = ask_plain(t, 1);
    struct flow *f = only_flow(t, 1);
    assert_non_null(e);
    flow_hold(f);
    hit(t, e, 3, 300);
    offload_sync(&t->f);
    offload_sync(&t->f);
    assert_int_equal(tables_flow_counter(t->sw.dp.tables, f).packets, 3);
    assert_int_equal(tables_flow_counter(t->sw.dp.tables, f).bytes, 300);
    assert_int_equal(tables_counter(t->sw.dp.tables, 0).matched, 3);
    assert_int_equal(counted[0].rx_bytes, 300);
    assert_int_equal(counted[1].tx_packets, 3);
    assert_int_equal(f->used, flow_clock(now_ns));
    /* What came since then counts when the flow goes. */
    hit(t, e, 1, 60);
    add_flow(t, 1, 2, 1, OFPFC_DELETE);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 0);
    assert_int_equal(tables_flow_counter(t->sw.dp.tables, f).packets, 4);
    assert_int_equal(counted[1].tx_bytes, 360);
    flow_release(f);
    test_end(t);
}

/* A number that another entry had begins at 0. */
static void
a_number_begins_anew(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    hit(t, ask_plain(t, 1), 5, 500);
    sw_offload_forget_all(&t->sw);
    offload_settle(&t->f);
    struct entry *e = ask_plain(t, 1);
    assert_non_null(e);
    offload_sync(&t->f);
    assert_int_equal(e->read.packets, 0);
    assert_int_equal(counted[0].rx_packets, 5);
    test_end(t);
}

/* ------------------------------------------------------------------ changes */

static void
a_change_takes_only_its_own(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    add_flow(t, 3, 4, 1, OFPFC_ADD);
    ask_plain(t, 1);
    ask_plain(t, 3);
    assert_int_equal(t->f.n_live, 2);
    add_flow(t, 1, 5, 2, OFPFC_ADD);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 1);
    assert_int_equal(t->f.live[0]->in_port, 3);
    sw_offload_forget_port(&t->sw, 5);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 1);
    sw_offload_forget_port(&t->sw, 4);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 0);
    test_end(t);
}

static void
captures_take_all(void **state)
{
    struct capture_set set = {0};
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    ask_plain(t, 1);
    t->sw.dp.capture = &set;
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 0);
    assert_int_equal(t->m.control->on, 0);
    assert_null(ask_plain(t, 1));
    t->sw.dp.capture = NULL;
    offload_settle(&t->f);
    assert_int_equal(t->m.control->on, 1);
    assert_non_null(ask_plain(t, 1));
    test_end(t);
}

/* Each time that a change takes an entry soon after it was made it waits twice as long. */
static void
an_entry_that_goes_at_once_waits(void **state)
{
    struct test *t = test_begin(1);
    uint64_t ms = 1000000, wait = 10;
    for (int i = 0; i < 10; i++) {
        add_flow(t, 1, i % 2 ? 3 : 2, 1, OFPFC_ADD);
        assert_non_null(ask_plain(t, 1));
        add_flow(t, 1, 4, 1, OFPFC_ADD);
        offload_settle(&t->f);
        assert_int_equal(t->f.n_live, 0);
        now_ns += wait * ms - 1;
        assert_null(ask_plain(t, 1));
        now_ns += 1;
        wait = wait * 2 < 1000 ? wait * 2 : 1000;
    }
    assert_true(t->f.counts.refused[SW_OFFLOAD_changes] > 0);
    now_ns += 60 * 1000 * ms;
    assert_non_null(ask_plain(t, 1));
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    offload_settle(&t->f);
    now_ns += 10 * ms; /* it begins anew */
    assert_non_null(ask_plain(t, 1));
    test_end(t);
}

/* ------------------------------------------------------------------ bounds */

static void
many_changes_take_all(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    ask_plain(t, 1);
    for (unsigned i = 0; i < 20; i++) {
        add_flow(t, 3, 4, 1, OFPFC_ADD);
        sw_offload_relieve(&t->sw);
    }
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 1);
    t->f.compared = 2000000; /* as after many entries and changes in this turn */
    add_flow(t, 3, 4, 1, OFPFC_ADD);
    offload_settle(&t->f);
    assert_int_equal(t->f.n_live, 0);
    assert_int_equal(t->f.counts.all, 1);
    test_end(t);
}

static void
requests_are_bounded(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    for (unsigned i = 0; i < 5000; i++) {
        struct flow_key k = plain_key(1, (uint8_t)i);
        of_set16(k.tp_src, (uint16_t)i);
        offload_ask(&t->f, &k);
    }
    assert_true(t->f.counts.asked <= 1024);
    assert_int_equal(t->f.counts.refused[SW_OFFLOAD_busy], 5000 - t->f.counts.asked);
    test_end(t);
}

/* Old entries make room. */
static void
a_full_table_ages(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    assert_non_null(ask_plain(t, 1));
    t->f.most = 1;
    add_flow(t, 3, 4, 1, OFPFC_ADD);
    assert_null(ask_plain(t, 3));
    assert_int_equal(t->f.counts.refused[SW_OFFLOAD_full], 1);
    now_ns += 2000000000;
    offload_age(&t->f, now_ns);
    assert_int_equal(t->f.n_live, 0);
    assert_non_null(ask_plain(t, 3));
    test_end(t);
}

/* ------------------------------------------------------------------ segments that workers merge */

static struct entry *
ask_tcp(struct test *t)
{
    struct flow_key k = plain_key(1, 1);
    k.ip_proto = 6;
    now_ns += 1;
    offload_ask(&t->f, &k);
    return t->f.n_live ? t->f.live[0] : NULL;
}

static void
many_full_segments_go_back(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, 2, 1, OFPFC_ADD);
    struct entry *e = ask_tcp(t);
    assert_non_null(e);
    hit(t, e, 1900, 1900 * 1500);
    t->m.hits[e->id].segments += 1900; /* not so many */
    offload_judge(&t->f, now_ns += OFFLOAD_TICK_NS);
    hit(t, e, 100000, 100000 * 64); /* small */
    offload_judge(&t->f, now_ns += OFFLOAD_TICK_NS);
    hit(t, e, 100000, 100000 * 1500); /* super-packets, or not TCP */
    t->m.hits[e->id].segments += 40000;
    offload_judge(&t->f, now_ns += OFFLOAD_TICK_NS);
    assert_int_equal(t->f.n_live, 1);
    hit(t, e, 6000, 6000 * 1500);
    t->m.hits[e->id].segments += 5900;
    offload_judge(&t->f, now_ns += OFFLOAD_TICK_NS);
    assert_int_equal(t->f.n_live, 0);
    assert_int_equal(counted[0].rx_packets, 207900);
    assert_null(ask_tcp(t));
    now_ns += UINT64_C(900000000);
    assert_null(ask_tcp(t));
    now_ns += UINT64_C(200000000);
    assert_non_null(ask_tcp(t));
    test_end(t);
}

/* ------------------------------------------------------------------ OFPP_NORMAL */

static void
learn(struct test *t, uint8_t station, uint16_t port)
{
    normal_learn(t->sw.dp.normal, (const uint8_t[]){0, 0, 0, 0, 0, station}, 0, port,
                 (uint32_t)(clock_ns() / NS_PER_S));
}

static struct entry *
ask_normal(struct test *t)
{
    learn(t, 0, 1);
    learn(t, 1, 2);
    now_ns += 20000000; /* the pause after a change */
    struct entry *e = ask_plain(t, 1);
    assert_non_null(e);
    offload_judge(&t->f, now_ns);
    assert_int_equal(t->f.n_live, 1);
    return e;
}

static void
an_entry_goes_when_a_station_moves(void **state)
{
    struct test *t = test_begin(1);
    add_flow(t, 1, OFPP_NORMAL, 1, OFPFC_ADD);
    ask_normal(t);
    learn(t, 1, 3);
    offload_judge(&t->f, now_ns);
    assert_int_equal(t->f.n_live, 0);
    ask_normal(t);
    learn(t, 0, 3);
    offload_judge(&t->f, now_ns);
    assert_int_equal(t->f.n_live, 0);
    assert_null(ask_plain(t, 1)); /* its port is another */
    test_end(t);
}

/* What the kernel handles is as good as what a worker has seen. */
static void
hits_keep_a_station(void **state)
{
    struct test *t = test_begin(1);
    const uint8_t station[6] = {0};
    uint32_t now = (uint32_t)(clock_ns() / NS_PER_S);
    add_flow(t, 1, OFPP_NORMAL, 1, OFPFC_ADD);
    struct entry *e = ask_normal(t);
    normal_learn(t->sw.dp.normal, station, 0, 1, now - 250);
    hit(t, e, 1, 100);
    offload_judge(&t->f, now_ns);
    assert_int_equal(normal_find(t->sw.dp.normal, station, 0, now + 200), 1);
    normal_learn(t->sw.dp.normal, station, 0, 1, now - 250);
    offload_judge(&t->f, now_ns);
    assert_int_equal(normal_find(t->sw.dp.normal, station, 0, now + 200), 0);
    test_end(t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stays_is_right),
        cmocka_unit_test(hits_count_once),
        cmocka_unit_test(a_number_begins_anew),
        cmocka_unit_test(a_change_takes_only_its_own),
        cmocka_unit_test(captures_take_all),
        cmocka_unit_test(an_entry_that_goes_at_once_waits),
        cmocka_unit_test(many_changes_take_all),
        cmocka_unit_test(requests_are_bounded),
        cmocka_unit_test(a_full_table_ages),
        cmocka_unit_test(many_full_segments_go_back),
        cmocka_unit_test(an_entry_goes_when_a_station_moves),
        cmocka_unit_test(hits_keep_a_station),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
