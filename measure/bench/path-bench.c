/* SPDX-License-Identifier: Apache-2.0 */
/* A packet's way through the switch without the kernel around it: parsing, lookup, actions.  Ports
 * are counters.
 *
 *   path-bench                          all cases, CPU time a packet
 *   path-bench CASE PACKETS [THREADS]   one (for callgrind: the difference between two numbers of
 *                                       packets is what packets cost); or by several workers
 */
#include "generate.h"
#include <dataplane/dp.h>
#include <shared/rcu.h>
#include <table/flow-cache.h>

#include <oflib/text.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CACHE       16384
#define MANY        10000 /* microflows */
#define MAX_THREADS 8
#define TABLES      64

/* ------------------------------------------------------------------ the port side (port.h) */

struct port {
    uint32_t no;
};

struct port_io {
    uint64_t sent;
};

static struct port ports[2] = {{1}, {2}};

int
port_ifindex(const struct port *p)
{
    return (int)port_no(p);
}

uint32_t
port_no(const struct port *p)
{
    return p->no;
}

uint32_t
port_config_bits(const struct port *p)
{
    return 0;
}

bool
port_is_up(const struct port *p)
{
    return true;
}

void
port_count_packet_in_dropped(struct port *p, const struct port_io *w)
{
}

int
port_tx(struct port *p, struct port_io *w, struct packet *pkt)
{
    w->sent++;
    pkt->shared = true;
    return 0;
}

/* ------------------------------------------------------------------ the switch */

static bool
any_id(void *sw, uint32_t id)
{
    return true;
}

static void
no_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t at)
{
}

static struct dp *
new_dp(unsigned workers)
{
    struct dp *dp = calloc(1, sizeof *dp);
    struct port_list *l = calloc(1, sizeof *l + 2 * sizeof l->v[0]);
    struct compile_env env = {.port_ok = any_id, .group_ok = any_id, .meter_ok = any_id};
    struct groups_ops gops = {.env = env, .port_exists = any_id};
    struct tables_ops tops = {.env = env, .removed = no_removed};
    if (!dp || !l)
        abort();
    dp->n_workers = workers;
    dp->groups = groups_new(workers, &gops);
    dp->meters = meters_new(workers);
    dp->normal = normal_new();
    dp->tables = tables_new(TABLES, workers, &tops);
    for (uint32_t i = 0; i < 2; i++)
        l->v[l->n++] = dp->by_number[i + 1] = &ports[i];
    dp->ports = l;
    return dp;
}

static void
must(const struct of_parse *p, int err)
{
    if (!err)
        return;
    fprintf(stderr, "path-bench: error %d %s\n", err, p->why);
    exit(1);
}

static void
flow_mod(struct dp *dp, uint8_t command, uint8_t table, uint16_t priority, const char *match,
         const char *what)
{
    static struct of_arena arena;
    static bool ready;
    if (!ready)
        of_arena_init(&arena, 1 << 20);
    ready = true;
    of_arena_reset(&arena);
    struct of_parse p = {.arena = &arena};
    struct of_flow_mod fm = {.command = command,
                             .table_id = table,
                             .priority = priority,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY};
    char words[200];
    snprintf(words, sizeof words, "%s", what);
    must(&p, of_parse_match(&p, match, &fm.match));
    for (char *save, *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save))
        must(&p, of_parse_instruction(&p, w, &fm.instructions));
    must(&p, tables_flow_mod(dp->tables, &fm, 1));
}

static void
add_flow(struct dp *dp, uint8_t table, uint16_t priority, const char *match, const char *what)
{
    flow_mod(dp, OFPFC_ADD, table, priority, match, what);
}

/* ------------------------------------------------------------------ cases */

static void
add_group(struct dp *dp)
{
    struct of_arena arena;
    of_arena_init(&arena, 1 << 20);
    struct of_parse p = {.arena = &arena};
    char weight[] = "weight=1", output[] = "output=2";
    char *words[16];
    for (int i = 0; i < 16; i += 2) {
        words[i] = weight;
        words[i + 1] = output;
    }
    struct of_group_mod gm = {.command = OFPGC_ADD, .type = OFPGT_SELECT, .group_id = 1};
    must(&p, of_parse_buckets(&p, words, 16, &gm.buckets));
    must(&p, groups_mod(dp->groups, &gm, 1));
    of_arena_free(&arena);
}

static void
add_meter(struct dp *dp)
{
    struct of_arena arena;
    of_arena_init(&arena, 1 << 16);
    struct of_parse p = {.arena = &arena};
    struct of_meter_mod mm = {.command = OFPMC_ADD, .flags = OFPMF_KBPS, .meter_id = 1};
    must(&p, of_parse_band(&p, "drop:rate=4000000000,burst=1000", &mm.bands));
    must(&p, meters_mod(dp->meters, &mm, 1));
    of_arena_free(&arena);
}

static void
wire(struct dp *dp, uint32_t n)
{
    add_flow(dp, 0, 1, "in_port=1", "apply:output=2");
}

static void
nat(struct dp *dp, uint32_t n)
{
    add_flow(dp, 0, 1, "in_port=1,eth_type=0x800,ip_proto=17",
             "apply:set_field=ipv4_dst:192.0.2.1,set_field=udp_dst:53,dec_nw_ttl,output=2");
}

static void
vlan(struct dp *dp, uint32_t n)
{
    add_flow(dp, 0, 1, "in_port=1", "apply:push_vlan=0x8100,set_field=vlan_vid:7,output=2");
}

static void
group(struct dp *dp, uint32_t n)
{
    add_group(dp);
    add_flow(dp, 0, 1, "in_port=1", "apply:group=1");
}

static void
meter(struct dp *dp, uint32_t n)
{
    add_meter(dp);
    add_flow(dp, 0, 1, "in_port=1", "meter:1 apply:output=2");
}

/* As measure/bench/flowload.py's: nine masks in three tables, and what takes the rest. */
static void
mixed(struct dp *dp, uint32_t n)
{
    uint32_t numbers = n < 200000 ? 1 << 16 : GENERATED_DISTINCT, chance = 1;
    char m[200];
    for (uint32_t k = 0; k < n; k++) {
        chance = chance * 1664525 + 1013904223;
        uint32_t i = (chance >> 8) % numbers, lo = i & 0xffff, to = i * 40503 & 0xffff;
        uint32_t src = 1024 + i % 64000, dst = 2000 + (i >> 16);
#define UDP "eth_type=0x800,ip_proto=17,"
#define FLOW(table, prio, what, ...)                                                               \
    snprintf(m, sizeof m, __VA_ARGS__);                                                            \
    add_flow(dp, table, prio, m, what);                                                            \
    break
        /* clang-format off */
        switch (k % 9) {
        case 0: FLOW(0, 100, "goto:1", UDP "in_port=1,ipv4_src=10.1.%u.%u,udp_src=%u,udp_dst=%u",
                     lo >> 8, lo & 255, src, dst);
        case 1: FLOW(0, 99, "goto:1", UDP "ipv4_src=10.1.%u.%u,ipv4_dst=10.2.%u.%u,udp_dst=%u",
                     lo >> 8, lo & 255, to >> 8, to & 255, dst);
        case 2: FLOW(0, 98, "goto:1", UDP "eth_src=02:00:00:00:00:01,ipv4_src=10.1.%u.%u/30,"
                     "udp_dst=%u", lo >> 8, lo & 252, dst);
        case 3: FLOW(0, 97, "goto:1", UDP "in_port=1,udp_src=%u,udp_dst=%u", src, dst);
        case 4: FLOW(1, 100, "goto:2", "eth_type=0x800,ipv4_src=10.1.%u.%u,ipv4_dst=10.2.%u.%u",
                     lo >> 8, lo & 255, to >> 8, to & 255);
        case 5: FLOW(1, 99, "goto:2", UDP "ipv4_dst=10.2.%u.%u,udp_dst=%u", to >> 8, to & 255,
                     dst);
        case 6: FLOW(1, 98, "goto:2", "eth_type=0x800,ipv4_dst=10.2.%u.0/24", to >> 8);
        case 7: FLOW(2, 100, "apply:output=2", UDP "udp_src=%u,udp_dst=%u", src, dst);
        case 8: FLOW(2, 99, "apply:output=2", UDP "ipv4_src=10.1.%u.0/24,udp_src=%u,udp_dst=%u",
                     lo >> 8, src, dst);
        }
/* clang-format on */
#undef FLOW
        if (k % 1000 == 0)
            rcu_turn();
    }
    add_flow(dp, 0, 2, "in_port=1", "goto:1");
    add_flow(dp, 1, 1, "", "goto:2");
    add_flow(dp, 2, 1, "", "apply:output=2");
}

/* The n-th flow-mod of flows that no packet meets, with masks that `mixed` has too. */
static void
unrelated(struct dp *dp, uint64_t n)
{
    uint8_t command = n / 64 % 2 ? OFPFC_DELETE_STRICT : OFPFC_ADD;
    unsigned i = (unsigned)(n % 64);
    char m[200];
    snprintf(m, sizeof m, UDP "in_port=1,udp_src=%u,udp_dst=9", i);
    flow_mod(dp, command, 0, 97, m, "goto:1");
    snprintf(m, sizeof m, UDP "ipv4_dst=10.99.0.%u,udp_dst=9", i);
    flow_mod(dp, command, 1, 99, m, "goto:2");
    snprintf(m, sizeof m, UDP "ipv4_src=10.99.%u.0/24,udp_src=9,udp_dst=9", i);
    flow_mod(dp, command, 2, 99, m, "apply:output=2");
    rcu_turn();
}

/* n tables that each change the packet (measure/bench/flowload.py's chain). */
static void
chain(struct dp *dp, uint32_t n)
{
    char what[200];
    for (uint32_t k = 0; k < n; k++) {
        snprintf(what, sizeof what,
                 "apply:set_field=ipv4_src:10.9.0.%u,set_field=udp_src:%u,set_field=ip_dscp:%u "
                 "goto:%u",
                 k, k + 1, k % 64, k + 1);
        add_flow(dp, (uint8_t)k, 1, "in_port=1,eth_type=0x800,ip_proto=17", what);
    }
    add_flow(dp, (uint8_t)n, 1, "in_port=1", "apply:output=2");
}

/* n masks that no packet has (measure/bench/flowload.py's adversarial). */
static void
masks(struct dp *dp, uint32_t n)
{
    char m[200];
    for (uint32_t k = 0; k < n; k++) {
        uint32_t s = 1 + k % 32, d = 1 + k / 32 % 32;
        uint32_t src = (0x0a010000 ^ 1u << (32 - (s < 16 ? s : 16))) & ~0u << (32 - s);
        uint32_t dst = (0x0a020000 ^ 1u << (32 - (d < 16 ? d : 16))) & ~0u << (32 - d);
        snprintf(m, sizeof m, UDP "ipv4_src=%u.%u.%u.%u/%u,ipv4_dst=%u.%u.%u.%u/%u", src >> 24,
                 src >> 16 & 255, src >> 8 & 255, src & 255, s, dst >> 24, dst >> 16 & 255,
                 dst >> 8 & 255, dst & 255, d);
        add_flow(dp, 0, (uint16_t)(100 + k), m, "apply:output=1");
    }
    wire(dp, 1);
}

/* n masks of 20 flows in each of three tables: pairs of networks in 10.1/16 and 10.2/16, the
 * narrower one first. */
static void
networks(struct dp *dp, uint32_t n)
{
    static const char *const what[] = {"goto:1", "goto:2", "apply:output=2"};
    uint32_t chance = 1;
    char m[200];
    for (uint8_t table = 0; table < 3; table++) {
        for (uint32_t k = 0; k < n * 20; k++) {
            uint32_t s = 25 - k % n / 8, d = 32 - table - k % 8;
            chance = chance * 1664525 + 1013904223;
            uint32_t src = (0x0a010000 | chance >> 16) & ~0u << (32 - s);
            uint32_t dst = (0x0a020000 | (chance & 0xffff)) & ~0u << (32 - d);
            snprintf(m, sizeof m, "eth_type=0x800,ipv4_src=%u.%u.%u.%u/%u,ipv4_dst=%u.%u.%u.%u/%u",
                     src >> 24, src >> 16 & 255, src >> 8 & 255, src & 255, s, dst >> 24,
                     dst >> 16 & 255, dst >> 8 & 255, dst & 255, d);
            add_flow(dp, table, (uint16_t)(s + d), m, what[table]);
        }
        add_flow(dp, table, 1, "", what[table]);
    }
}

static const struct bench_case {
    const char *name;
    void (*flows)(struct dp *dp, uint32_t n); /* NULL: only parse */
    uint32_t n;
    uint32_t microflows; /* 0: each packet a new one */
    bool no_cache;
    uint32_t mods_every; /* packets between flow-mods, whose own time doesn't count */
} cases[] = {
    {"parse", NULL, 0, 1, false, 0},
    {"output", wire, 1, 1, false, 0},
    {"output-nocache", wire, 1, 1, true, 0},
    {"output-new", wire, 1, 0, false, 0},
    {"nat", nat, 1, 1, false, 0},
    {"push-vlan", vlan, 1, 1, false, 0},
    {"group", group, 1, MANY, false, 0},
    {"meter", meter, 1, 1, false, 0},
    {"mixed1k", mixed, 1000, MANY, false, 0},
    {"mixed100k", mixed, 100000, MANY, false, 0},
    {"mixed1k-new", mixed, 1000, 0, false, 0},
    {"mixed100k-new", mixed, 100000, 0, false, 0},
    {"mixed1m-new", mixed, 1000000, 0, false, 0},
    {"mixed1k-mods", mixed, 1000, MANY, false, 100},
    {"chain60-nocache", chain, 60, MANY, true, 0},
    {"masks16-new", masks, 16, 0, false, 0},
    {"masks1024-new", masks, 1024, 0, false, 0},
    {"masks1024-nocache", masks, 1024, 0, true, 0},
    {"masks64x3", networks, 64, MANY, false, 0},
    {"masks64x3-new", networks, 64, 0, false, 0},
};

/* ------------------------------------------------------------------ measuring */

struct run {
    const struct bench_case *c;
    struct dp *dp;
    unsigned id;
    uint64_t packets, sent;
    double cpu; /* ns */
    pthread_barrier_t *ready;
    pthread_t thread;
};

static double
now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* What worker.c does with a batch, without receiving and sending. */
static void
batch(struct worker *w, struct generator *g, uint8_t (*room)[256], bool only_parse)
{
    struct packet p[PORT_BATCH];
    const struct flow_key *keys[PORT_BATCH];
    for (unsigned i = 0; i < PORT_BATCH; i++) {
        uint8_t *data = room[i] + PACKET_HEADROOM;
        memcpy(data, generator_next(g), GENERATED_LEN);
        p[i] = (struct packet){.data = data,
                               .len = GENERATED_LEN,
                               .wire_len = GENERATED_LEN,
                               .headroom = PACKET_HEADROOM};
        packet_parse(&p[i], 1);
        keys[i] = &p[i].key;
    }
    unsigned n = packet_coalesce(p, PORT_BATCH);
    if (only_parse)
        return;
    if (w->cache)
        flow_cache_ahead(w->cache, w->dp->tables, keys, n);
    for (unsigned i = 0; i < n; i++)
        pipeline_packet(w, &p[i]);
}

static void *
work(void *arg)
{
    struct run *r = arg;
    static __thread uint8_t room[PORT_BATCH][256];
    struct port_io io = {0};
    uint64_t drops[DROP_N] = {0};
    struct drop_log drop_log = {0};
    struct worker w = {.id = r->id, .dp = r->dp, .io = &io, .drops = drops, .drop_log = &drop_log};
    struct generator g;
    if (generator_init(&g, r->c->microflows))
        abort();
    g.next = r->c->microflows ? 0 : r->id * (GENERATED_DISTINCT / MAX_THREADS);
    if (!r->c->no_cache)
        w.cache = flow_cache_new(CACHE);
    urcu_qsbr_register_thread();
    pthread_barrier_wait(r->ready);
    double start = now(CLOCK_THREAD_CPUTIME_ID);
    uint64_t mods = 0;
    for (uint64_t n = 0; n < r->packets; n += PORT_BATCH) {
        if (r->c->mods_every && !r->id && n > 3 * mods * r->c->mods_every) {
            double at = now(CLOCK_THREAD_CPUTIME_ID);
            unrelated(r->dp, mods++);
            start += now(CLOCK_THREAD_CPUTIME_ID) - at;
        }
        worker_set_clock(&w, 1000000000 + n * 1000);
        batch(&w, &g, room, !r->c->flows);
        rcu_reader_quiescent();
    }
    r->cpu = now(CLOCK_THREAD_CPUTIME_ID) - start;
    urcu_qsbr_unregister_thread();
    flow_cache_free(w.cache);
    generator_free(&g);
    r->sent = io.sent;
    return NULL;
}

static void
measure(const struct bench_case *c, uint64_t packets, unsigned threads)
{
    struct run r[MAX_THREADS];
    struct dp *dp = new_dp(threads);
    if (c->flows)
        c->flows(dp, c->n);
    rcu_turn();
    pthread_barrier_t ready;
    pthread_barrier_init(&ready, NULL, threads + 1);
    double cpu = 0;
    uint64_t sent = 0;
    for (unsigned i = 0; i < threads; i++) {
        r[i] = (struct run){.c = c, .dp = dp, .id = i, .packets = packets, .ready = &ready};
        if (pthread_create(&r[i].thread, NULL, work, &r[i]))
            abort();
    }
    pthread_barrier_wait(&ready);
    double start = now(CLOCK_MONOTONIC);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(r[i].thread, NULL);
        sent += r[i].sent;
        cpu += r[i].cpu;
    }
    double took = now(CLOCK_MONOTONIC) - start, all = (double)packets * threads;
    printf("%-16s %u worker%s %7.1f ns of CPU a packet  %6.2f M packets/s  (%.2f sent)\n", c->name,
           threads, threads > 1 ? "s" : " ", cpu / all, all / took * 1e3, (double)sent / all);
    fflush(stdout);
    pthread_barrier_destroy(&ready);
    tables_free(dp->tables);
    groups_free(dp->groups);
    meters_free(dp->meters);
    normal_free(dp->normal);
    rcu_turn();
    free(dp->ports);
    free(dp);
}

int
main(int argc, char **argv)
{
    uint64_t packets = argc > 2 ? strtoull(argv[2], NULL, 10) : 500000;
    unsigned threads = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
    bool found = false;
    if (!threads || threads > MAX_THREADS)
        return 2;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) != 0)
            continue;
        found = true;
        measure(&cases[i], packets, threads);
    }
    if (!found)
        fprintf(stderr, "path-bench: no case %s\n", argv[1]);
    return found ? 0 : 2;
}
