/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <shared/rcu.h>
#include <table/flow-cache.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_RING (8u << 20)

/* ------------------------------------------------------------------ the port side (port.h) */

static const struct oracle_port *
world_port(const struct port *p)
{
    return oracle_port(p->world, p->no);
}

uint32_t
port_no(const struct port *p)
{
    return p->no;
}

uint32_t
port_config_bits(const struct port *p)
{
    return world_port(p)->config;
}

uint8_t
port_inside(const struct port *p)
{
    return 0;
}

bool
port_is_up(const struct port *p)
{
    return oracle_port_up(world_port(p));
}

int
port_tx(struct port *p, struct port_io *w, struct packet *pkt)
{
    if (!port_is_up(p) || port_config_bits(p) & OFPPC_NO_FWD)
        return EDIT_DROP(port_down);
    if (w->n == FIXTURE_TX)
        abort();
    w->tx[w->n++] = (struct fixture_tx){
        .port = p->no, .queue = pkt->queue, .n = pkt->len, .data = pkt->data, .vnet = pkt->vnet};
    pkt->shared = true;
    return 0;
}

int
port_tx_refusal(const struct port *p, const struct packet *pkt)
{
    return !port_is_up(p) || port_config_bits(p) & OFPPC_NO_FWD ? EDIT_DROP(port_down) : 0;
}

uint32_t
port_tx_queue(const struct port *p, uint32_t queue)
{
    return p->most_queue && queue > p->most_queue ? 0 : queue;
}

uint32_t
port_tx_class(const struct port *p, uint32_t queue)
{
    return port_tx_queue(p, queue);
}

int
port_ifindex(const struct port *p)
{
    int first = p->half ? p->first_ifindex : FIXTURE_IFINDEX;
    return first + (int)(p->no == OFPP_LOCAL ? 99 : p->no);
}

bool
port_kernel_output(const struct port *p, uint32_t queue, struct port_kernel_output *out)
{
    uint32_t to = port_tx_queue(p, queue);
    *out = (struct port_kernel_output){.ifindex = port_ifindex(p),
                                       .queue = to,
                                       .priority = to ? 0x10000 | to : 0,
                                       .longest = p->mtu ? p->mtu + 14 : UINT32_MAX,
                                       .super = p->super ? p->super : UINT32_MAX};
    return !p->not_kernel && (p->half || (port_is_up(p) && !(port_config_bits(p) & OFPPC_NO_FWD)));
}

bool
port_receives(const struct port *p)
{
    return true; /* a test gives packets to the pipeline itself */
}

const struct port_shaper *
port_shaper(const struct port *p)
{
    static struct port to, from;
    static const struct port_shaper s = {&to, &from};
    to = from = *p;
    to.half = from.half = true;
    to.first_ifindex = FIXTURE_TO;
    from.first_ifindex = FIXTURE_FROM;
    return p->shaped ? &s : NULL;
}

bool
port_in_kernel(const struct port *p)
{
    return !p->not_kernel;
}

void
port_count_packet_in_dropped(struct port *p, const struct port_io *w)
{
    abort(); /* the ring takes what a batch can make */
}

/* ------------------------------------------------------------------ the switch's side */

static bool
port_ok(void *ctx, uint32_t no)
{
    return no && no != OFPP_ANY;
}

static bool
port_exists(void *ctx, uint32_t no)
{
    const struct fixture *fx = ctx;
    return oracle_port(&fx->world, no) != NULL;
}

static bool
group_ok(void *ctx, uint32_t id)
{
    const struct fixture *fx = ctx;
    return groups_find(fx->dp->groups, id) != NULL;
}

static bool
meter_ok(void *ctx, uint32_t id)
{
    return id == METER_ID;
}

static void
on_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
}

static int
take_none(void *ctx, const struct meter *mt, uint64_t *full_at[METER_SHARED_BANDS])
{
    return -1;
}

static struct compile_env
compile_env(struct fixture *fx)
{
    return (struct compile_env){
        .sw = fx, .port_ok = port_ok, .group_ok = group_ok, .meter_ok = meter_ok};
}

static void
make_meter(struct fixture *fx)
{
    struct of_band_drop band = {
        .row = of_tag_row(&of_list_bands, OFPMBT_DROP), .rate = UINT32_MAX, .burst_size = 1u << 20};
    void *v[] = {&band};
    struct of_meter_mod m = {.command = OFPMC_ADD,
                             .flags = OFPMF_KBPS | OFPMF_BURST,
                             .meter_id = METER_ID,
                             .bands = {.n = 1, .v = v}};
    if (meters_mod(fx->dp->meters, &m, 0))
        abort();
}

static void
make_ports(struct fixture *fx)
{
    struct port_list *l = calloc(1, sizeof *l + ORACLE_PORTS * sizeof l->v[0]);
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t no = i < 5 ? i + 1 : OFPP_LOCAL;
        fx->world.port[i].no = no;
        fx->ports[i] = (struct port){.world = &fx->world, .no = no};
        l->v[l->n++] = &fx->ports[i];
        if (no == OFPP_LOCAL)
            fx->dp->local = &fx->ports[i];
        else
            fx->dp->by_number[no] = &fx->ports[i];
    }
    fx->dp->ports = l;
}

struct fixture *
fixture_of_tables(uint32_t cache_entries, unsigned n_tables)
{
    struct fixture *fx = calloc(1, sizeof *fx);
    fx->dp = calloc(1, sizeof *fx->dp);
    fx->io = calloc(1, sizeof *fx->io);
    static const struct meter_sharing no_places = {.take = take_none};
    struct groups_ops gops = {.env = compile_env(fx), .port_exists = port_exists, .kernel = true};
    fx->world.now = UINT64_C(1000000000000);
    fx->oracle.world = &fx->world;
    of_arena_init(&fx->arena, 256u << 20);
    fx->pool = packet_pool_new(64u << 20);
    fx->dp->n_workers = 1;
    fx->dp->groups = groups_new(1, &gops);
    fx->dp->meters = meters_new(1);
    struct tables_ops tops = {.env = compile_env(fx),
                              .groups = fx->dp->groups,
                              .meters = fx->dp->meters,
                              .removed = on_removed,
                              .ctx = fx,
                              .kernel = true};
    meters_share(fx->dp->meters, &no_places);
    fx->dp->normal = normal_new();
    fx->dp->tables = tables_new(n_tables, 1, &tops);
    fx->worker = (struct worker){.dp = fx->dp,
                                 .io = fx->io,
                                 .drops = fx->drops,
                                 .drop_log = &fx->drop_log,
                                 .packet_ins = ring_new(IN_RING, 0)};
    worker_set_clock(&fx->worker, fx->world.now);
    if (cache_entries)
        fx->worker.cache = flow_cache_new(cache_entries);
    make_meter(fx);
    make_ports(fx);
    return fx;
}

struct fixture *
fixture_new(uint32_t cache_entries)
{
    return fixture_of_tables(cache_entries, FIXTURE_TABLES);
}

static void
forget_batch(struct fixture *fx)
{
    for (uint32_t i = 0; i < fx->n_rooms; i++)
        free(fx->rooms[i]);
    fx->n_rooms = 0;
    fx->io->n = 0;
    packet_pool_reset(fx->pool);
    oracle_log_clear(&fx->got);
    oracle_log_clear(&fx->oracle.log);
}

void
fixture_free(struct fixture *fx)
{
    forget_batch(fx);
    rcu_wait();
    tables_free(fx->dp->tables);
    groups_free(fx->dp->groups);
    meters_free(fx->dp->meters);
    normal_free(fx->dp->normal);
    rcu_wait();
    flow_cache_free(fx->worker.cache);
    ring_free(fx->worker.packet_ins);
    packet_pool_free(fx->pool);
    oracle_free(&fx->oracle);
    free(fx->got.v);
    of_arena_free(&fx->arena);
    free(fx->dp->ports);
    free(fx->dp);
    free(fx->io);
    free(fx);
}

/* ------------------------------------------------------------------ to both */

bool
fixture_flow_mod(struct fixture *fx, const struct of_flow_mod *fm, char *why)
{
    if (fm->command == OFPFC_ADD && !(fm->flags & OFPFF_CHECK_OVERLAP) &&
        oracle_ambiguous(&fx->oracle, fm))
        return true; /* undefined (5.3) */
    int err = tables_flow_mod(fx->dp->tables, fm, fx->world.now);
    fx->flow_mods++;
    fx->refused += err != 0;
    rcu_turn();
    if (err && of_err_type(err) == OFPET_BAD_ACTION)
        return true; /* what is refused when compiling is tested elsewhere */
    int expected = oracle_flow_mod(&fx->oracle, fm);
    if (err != expected)
        snprintf(why, 256, "flow-mod: error %x, not %x", (unsigned)err, (unsigned)expected);
    return err == expected;
}

bool
fixture_group_mod(struct fixture *fx, const struct of_group_mod *gm, char *why)
{
    int err = tables_group_mod(fx->dp->tables, gm, UINT32_MAX, fx->world.now);
    rcu_turn();
    if (err && of_err_type(err) == OFPET_BAD_ACTION)
        return true;
    int expected = oracle_group_mod(&fx->oracle, gm);
    if (err != expected)
        snprintf(why, 256, "group-mod: error %x, not %x", (unsigned)err, (unsigned)expected);
    return err == expected;
}

/* The frame as a packet in a room of its own, with not a byte more than need be. */
static void
take_in(struct fixture *fx, const struct frame *f, uint32_t in_port, struct packet *p)
{
    uint8_t *room = malloc(PACKET_HEADROOM + (size_t)f->n);
    fx->shown[fx->n_rooms] = *f;
    fx->rooms[fx->n_rooms++] = room;
    *p = (struct packet){.data = room + PACKET_HEADROOM,
                         .len = f->n,
                         .wire_len = f->n,
                         .headroom = PACKET_HEADROOM,
                         .pool = fx->pool};
    memcpy(p->data, f->data, f->n);
    if (f->csum_start) {
        p->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
        p->vnet.csum_start = f->csum_start;
        p->vnet.csum_offset = f->csum_offset;
        of_set16(p->data + f->csum_start + f->csum_offset, f->csum_field);
    }
    packet_parse(p, in_port);
    fx->packets++;
}

/* Asks what would become of the packet: nothing is to be seen of that afterwards. */
static bool
ask(struct fixture *fx, struct packet *p, struct preview *o, char *why)
{
    struct packet before = *p;
    uint64_t drops[DROP_N];
    uint8_t *bytes = malloc(p->len);
    uint32_t n = fx->io->n;
    fx->worker.to_tell = false; /* of packet-ins */
    memcpy(bytes, p->data, p->len);
    memcpy(drops, fx->drops, sizeof drops);
    *o = pipeline_preview(&fx->worker, p);
    fx->asked++;
    bool same = !memcmp(&before, p, sizeof before) && !memcmp(bytes, p->data, p->len) &&
                !memcmp(drops, fx->drops, sizeof drops) && n == fx->io->n && !fx->worker.to_tell;
    free(bytes);
    if (!same)
        snprintf(why, 256, "asking what would become of a packet has left a trace");
    return same;
}

/* Was the preview right?  (One that goes may come to nothing: a group without a live bucket, a port
 * that it came from.) */
static bool
check_preview(struct fixture *fx, const struct preview *o, bool out, char *why)
{
    fx->in_vain += o->goes && !out;
    fx->with_queue += o->has_queue;
    if (out && !o->goes)
        snprintf(why, 256, "the packet came out, and was not meant to");
    else if (o->has_queue != fx->oracle.met_queue ||
             (o->has_queue && o->queue != fx->oracle.first_queue))
        snprintf(why, 256, "first queue: %d %u, not %d %u", o->has_queue, o->queue,
                 fx->oracle.met_queue, fx->oracle.first_queue);
    else
        return true;
    return false;
}

bool
fixture_receive(struct fixture *fx, const struct frame *f, uint32_t in_port, char *why)
{
    struct packet p;
    struct preview o = {0};
    take_in(fx, f, in_port, &p);
    bool asks = fx->packets & 1, traces = fx->packets % 4 == 2;
    struct traced t;
    uint64_t drops[DROP_N];
    const struct flow_key *key = &p.key;
    if (fx->worker.cache && fx->packets & 2) /* as for a batch; the others find their way alone */
        flow_cache_ahead(fx->worker.cache, fx->dp->tables, &key, 1);
    if (asks && !ask(fx, &p, &o, why))
        return false;
    if (traces && !fixture_trace(fx, f, in_port, &t, why))
        return false;
    uint32_t n = fx->io->n, logged = fx->oracle.log.n;
    memcpy(drops, fx->drops, sizeof drops);
    pipeline_packet(&fx->worker, &p);
    if (fx->worker.cache)
        flow_cache_end(fx->worker.cache);
    oracle_receive(&fx->oracle, f->data, f->n, in_port);
    bool same = !traces || fixture_check_trace(fx, &t, logged, drops, why);
    if (traces)
        fixture_traced_free(&t);
    if (!same)
        return false;
    return !asks || check_preview(fx, &o, fx->io->n > n || fx->oracle.log.n > logged, why);
}

struct preview
fixture_preview(struct fixture *fx, const struct frame *f, uint32_t in_port)
{
    struct packet p;
    take_in(fx, f, in_port, &p);
    struct preview o = pipeline_preview(&fx->worker, &p);
    free(fx->rooms[--fx->n_rooms]);
    packet_pool_reset(fx->pool);
    fx->packets--;
    return o;
}

bool
fixture_packet_out(struct fixture *fx, const struct of_packet_out *po, char *why)
{
    struct frame f = {.n = (uint32_t)po->data.n};
    struct compile_env env = compile_env(fx);
    struct program *prog = NULL;
    struct packet p;
    env.packet_out = true;
    int err = compile_actions(&env, &po->actions, &prog);
    if (err)
        snprintf(why, 256, "packet-out: error %x", (unsigned)err);
    if (err)
        return false;
    memcpy(f.data, po->data.p, f.n);
    take_in(fx, &f, po->in_port, &p);
    pipeline_packet_out(&fx->worker, &p, prog);
    free(prog);
    oracle_packet_out(&fx->oracle, f.data, f.n, po->in_port, &po->actions);
    return true;
}

void
fixture_pass_time(struct fixture *fx, uint32_t seconds)
{
    fx->world.now += seconds * UINT64_C(1000000000);
    worker_set_clock(&fx->worker, fx->world.now);
    tables_expire(fx->dp->tables, fx->world.now, UINT32_MAX);
    rcu_turn();
    oracle_expire(&fx->oracle);
}

/* ------------------------------------------------------------------ what came out */

static void
take_tx(struct fixture *fx, const struct fixture_tx *t)
{
    struct oracle_out *o = oracle_log_add(&fx->got, t->data, t->n);
    o->port = t->port;
    o->queue = t->queue;
    if (!(t->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
        return;
    uint32_t start = t->vnet.csum_start, at = start + t->vnet.csum_offset;
    if (at + 2 > t->n)
        abort();
    uint16_t csum = (uint16_t)~oracle_sum(0, o->data + start, t->n - start);
    of_set16(o->data + at, !csum && t->vnet.csum_offset == 6 ? 0xffff : csum);
}

static void
take_packet_ins(struct fixture *fx)
{
    uint32_t n;
    for (const struct packet_in_record *p; (p = ring_peek(fx->worker.packet_ins, &n));
         ring_release(fx->worker.packet_ins)) {
        struct oracle_out *o = oracle_log_add(&fx->got, p->data, p->len);
        o->packet_in = true;
        o->port = p->in_port;
        o->metadata = p->metadata;
        o->tunnel_id = p->tunnel_id;
        o->cookie = p->cookie;
        o->table_id = p->table_id;
        o->reason = p->reason;
        o->max_len = p->max_len;
        fx->packet_ins++;
        if (p->in_phy_port != p->in_port)
            o->queue = UINT32_MAX; /* never right */
    }
}

static void
mix(struct fixture *fx, const void *data, size_t n)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < n; i++)
        fx->digest = (fx->digest ^ p[i]) * UINT64_C(0x100000001b3);
}

static const struct oracle_out *
next_of(const struct oracle_log *l, uint32_t *at, bool packet_in, uint32_t port)
{
    while (*at < l->n) {
        const struct oracle_out *o = &l->v[(*at)++];
        if (o->packet_in == packet_in && (packet_in || o->port == port))
            return o;
    }
    return NULL;
}

static bool
same_out(const struct oracle_out *x, const struct oracle_out *y)
{
    return x->port == y->port && x->queue == y->queue && x->metadata == y->metadata &&
           x->tunnel_id == y->tunnel_id && x->cookie == y->cookie && x->table_id == y->table_id &&
           x->reason == y->reason && x->max_len == y->max_len && x->n == y->n &&
           !memcmp(x->data, y->data, x->n);
}

static void
show_out(const char *what, const struct oracle_out *o)
{
    fprintf(stderr, "%s: ", what);
    if (!o) {
        fprintf(stderr, "nothing\n");
        return;
    }
    if (o->packet_in)
        fprintf(stderr, "packet-in of port %u cookie %llx table %u reason %u max %u meta %llx ",
                o->port, (unsigned long long)o->cookie, o->table_id, o->reason, o->max_len,
                (unsigned long long)o->metadata);
    else
        fprintf(stderr, "port %u queue %u ", o->port, o->queue);
    fprintf(stderr, "%u bytes\n    ", o->n);
    for (uint32_t i = 0; i < o->n; i++)
        fprintf(stderr, "%02x", o->data[i]);
    fprintf(stderr, "\n");
}

/* One port's packets, or the packet-ins, in order. */
static bool
compare_some(const struct fixture *fx, bool packet_in, uint32_t port, char *why)
{
    uint32_t i = 0, j = 0;
    for (;;) {
        const struct oracle_out *x = next_of(&fx->got, &i, packet_in, port);
        const struct oracle_out *y = next_of(&fx->oracle.log, &j, packet_in, port);
        if (!x && !y)
            return true;
        if (x && y && same_out(x, y))
            continue;
        snprintf(why, 256, "what came out");
        show_out("got     ", x);
        show_out("expected", y);
        return false;
    }
}

bool
fixture_compare(struct fixture *fx, char *why)
{
    for (uint32_t i = 0; i < fx->io->n; i++)
        take_tx(fx, &fx->io->tx[i]);
    take_packet_ins(fx);
    fx->outs += fx->got.n;
    for (uint32_t i = 0; i < fx->got.n; i++) {
        mix(fx, fx->got.v[i].data, fx->got.v[i].n);
        mix(fx, &fx->got.v[i].port, sizeof fx->got.v[i].port);
    }
    mix(fx, fx->drops, sizeof fx->drops);
    bool same = compare_some(fx, true, 0, why);
    for (int i = 0; same && i < ORACLE_PORTS; i++)
        same = !fx->world.port[i].no || compare_some(fx, false, fx->world.port[i].no, why);
    if (same)
        forget_batch(fx);
    return same;
}
