/* SPDX-License-Identifier: Apache-2.0 */
#include "rig.h"

#include <shared/rcu.h>
#include <table/flow-cache.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IN_RING (8u << 20)

/* ------------------------------------------------------------------ the port side (port.h) */

static const struct slow_port *
world_port(const struct port *p)
{
    return slow_port(p->world, p->no);
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

bool
port_is_up(const struct port *p)
{
    return slow_port_up(world_port(p));
}

int
port_tx(struct port *p, struct worker_io *w, struct packet *pkt)
{
    if (!port_is_up(p) || port_config_bits(p) & OFPPC_NO_FWD)
        return EDIT_DROP(port_down);
    if (w->n == RIG_TX)
        abort();
    w->tx[w->n++] = (struct rig_tx){
        .port = p->no, .queue = pkt->queue, .n = pkt->len, .data = pkt->data, .vnet = pkt->vnet};
    pkt->shared = true;
    return 0;
}

void
port_count_packet_in_dropped(struct port *p, const struct worker_io *w)
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
    const struct rig *r = ctx;
    return slow_port(&r->world, no) != NULL;
}

static bool
group_ok(void *ctx, uint32_t id)
{
    const struct rig *r = ctx;
    return groups_find(r->dp->groups, id) != NULL;
}

static bool
meter_ok(void *ctx, uint32_t id)
{
    return id == METER_ID;
}

static void
on_refers(void *ctx, struct flow *f, struct program *p, int delta)
{
    struct rig *r = ctx;
    groups_refer(r->dp->groups, f, p, delta);
    meters_refer(r->dp->meters, f, p, delta);
}

static void
on_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t now)
{
}

static int
on_group_deleted(void *ctx, struct flow *f)
{
    struct rig *r = ctx;
    return tables_remove(r->dp->tables, f, OFPRR_GROUP_DELETE, r->world.now);
}

static int
on_meter_deleted(void *ctx, struct flow *f)
{
    return 0;
}

static struct compile_env
compile_env(struct rig *r)
{
    return (struct compile_env){
        .sw = r, .port_ok = port_ok, .group_ok = group_ok, .meter_ok = meter_ok};
}

static void
make_meter(struct rig *r)
{
    struct of_band_drop band = {
        .row = of_tag_row(&of_list_bands, OFPMBT_DROP), .rate = UINT32_MAX, .burst_size = 1u << 20};
    void *v[] = {&band};
    struct of_meter_mod m = {.command = OFPMC_ADD,
                             .flags = OFPMF_KBPS | OFPMF_BURST,
                             .meter_id = METER_ID,
                             .bands = {.n = 1, .v = v}};
    if (meters_mod(r->dp->meters, &m, 0))
        abort();
}

static void
make_ports(struct rig *r)
{
    struct port_list *l = calloc(1, sizeof *l + SLOW_PORTS * sizeof l->v[0]);
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t no = i < 5 ? i + 1 : OFPP_LOCAL;
        r->world.port[i].no = no;
        r->ports[i] = (struct port){&r->world, no};
        l->v[l->n++] = &r->ports[i];
        if (no == OFPP_LOCAL)
            r->dp->local = &r->ports[i];
        else
            r->dp->by_number[no] = &r->ports[i];
    }
    r->dp->ports = l;
}

struct rig *
rig_new(uint32_t cache_entries)
{
    struct rig *r = calloc(1, sizeof *r);
    r->dp = calloc(1, sizeof *r->dp);
    r->io = calloc(1, sizeof *r->io);
    struct groups_ops gops = {
        .env = compile_env(r), .port_exists = port_exists, .remove_user = on_group_deleted};
    struct tables_ops tops = {
        .env = compile_env(r), .removed = on_removed, .refers = on_refers, .ctx = r};
    r->world.now = UINT64_C(1000000000000);
    r->slow.world = &r->world;
    of_arena_init(&r->arena, 256u << 20);
    r->pool = packet_pool_new(64u << 20);
    r->dp->n_workers = 1;
    r->dp->groups = groups_new(1, &gops);
    r->dp->meters = meters_new(1, on_meter_deleted, r);
    r->dp->normal = normal_new();
    r->dp->tables = tables_new(RIG_TABLES, 1, &tops);
    r->worker = (struct worker){.dp = r->dp,
                                .io = r->io,
                                .drops = r->drops,
                                .now = r->world.now,
                                .packet_ins = ring_new(IN_RING, 0)};
    if (cache_entries)
        r->worker.cache = flow_cache_new(cache_entries);
    make_meter(r);
    make_ports(r);
    return r;
}

static void
forget_batch(struct rig *r)
{
    for (uint32_t i = 0; i < r->n_rooms; i++)
        free(r->rooms[i]);
    r->n_rooms = 0;
    r->io->n = 0;
    packet_pool_reset(r->pool);
    slow_log_clear(&r->got);
    slow_log_clear(&r->slow.log);
}

void
rig_free(struct rig *r)
{
    forget_batch(r);
    rcu_wait();
    tables_free(r->dp->tables);
    groups_free(r->dp->groups);
    meters_free(r->dp->meters);
    normal_free(r->dp->normal);
    rcu_wait();
    flow_cache_free(r->worker.cache);
    ring_free(r->worker.packet_ins);
    packet_pool_free(r->pool);
    slow_free(&r->slow);
    free(r->got.v);
    of_arena_free(&r->arena);
    free(r->dp->ports);
    free(r->dp);
    free(r->io);
    free(r);
}

/* ------------------------------------------------------------------ to both */

bool
rig_flow_mod(struct rig *r, const struct of_flow_mod *fm, char *why)
{
    if (fm->command == OFPFC_ADD && !(fm->flags & OFPFF_CHECK_OVERLAP) &&
        slow_ambiguous(&r->slow, fm))
        return true; /* undefined (5.3) */
    int err = tables_flow_mod(r->dp->tables, fm, r->world.now);
    r->flow_mods++;
    r->refused += err != 0;
    rcu_turn();
    if (err && of_err_type(err) == OFPET_BAD_ACTION)
        return true; /* what is refused when compiling is tested elsewhere */
    int expected = slow_flow_mod(&r->slow, fm);
    if (err != expected)
        snprintf(why, 256, "flow-mod: error %x, not %x", (unsigned)err, (unsigned)expected);
    return err == expected;
}

bool
rig_group_mod(struct rig *r, const struct of_group_mod *gm, char *why)
{
    int err = groups_mod(r->dp->groups, gm, r->world.now);
    rcu_turn();
    if (err && of_err_type(err) == OFPET_BAD_ACTION)
        return true;
    int expected = slow_group_mod(&r->slow, gm);
    if (err != expected)
        snprintf(why, 256, "group-mod: error %x, not %x", (unsigned)err, (unsigned)expected);
    return err == expected;
}

/* The frame as a packet in a room of its own, with not a byte more than need be. */
static void
take_in(struct rig *r, const struct frame *f, uint32_t in_port, struct packet *p)
{
    uint8_t *room = malloc(PACKET_HEADROOM + (size_t)f->n);
    r->shown[r->n_rooms] = *f;
    r->rooms[r->n_rooms++] = room;
    *p = (struct packet){.data = room + PACKET_HEADROOM,
                         .len = f->n,
                         .wire_len = f->n,
                         .headroom = PACKET_HEADROOM,
                         .pool = r->pool};
    memcpy(p->data, f->data, f->n);
    if (f->csum_start) {
        p->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
        p->vnet.csum_start = f->csum_start;
        p->vnet.csum_offset = f->csum_offset;
        of_set16(p->data + f->csum_start + f->csum_offset, f->csum_field);
    }
    packet_parse(p, in_port);
    r->packets++;
}

/* Asks what would become of the packet: nothing is to be seen of that afterwards. */
static bool
ask(struct rig *r, struct packet *p, struct outlook *o, char *why)
{
    struct packet before = *p;
    uint64_t drops[DROP_N];
    uint8_t *bytes = malloc(p->len);
    uint32_t n = r->io->n;
    r->worker.to_tell = false; /* of packet-ins */
    memcpy(bytes, p->data, p->len);
    memcpy(drops, r->drops, sizeof drops);
    *o = pipeline_outlook(&r->worker, p);
    r->asked++;
    bool same = !memcmp(&before, p, sizeof before) && !memcmp(bytes, p->data, p->len) &&
                !memcmp(drops, r->drops, sizeof drops) && n == r->io->n && !r->worker.to_tell;
    free(bytes);
    if (!same)
        snprintf(why, 256, "asking what would become of a packet has left a trace");
    return same;
}

/* Was the outlook right?  (One that goes may come to nothing: a group without a live bucket, a port
 * that it came from.) */
static bool
check_outlook(struct rig *r, const struct outlook *o, bool out, char *why)
{
    r->in_vain += o->goes && !out;
    r->with_queue += o->has_queue;
    if (out && !o->goes)
        snprintf(why, 256, "the packet came out, and was not meant to");
    else if (o->has_queue != r->slow.met_queue || (o->has_queue && o->queue != r->slow.first_queue))
        snprintf(why, 256, "first queue: %d %u, not %d %u", o->has_queue, o->queue,
                 r->slow.met_queue, r->slow.first_queue);
    else
        return true;
    return false;
}

bool
rig_receive(struct rig *r, const struct frame *f, uint32_t in_port, char *why)
{
    struct packet p;
    struct outlook o;
    take_in(r, f, in_port, &p);
    bool asks = r->packets & 1;
    const struct flow_key *key = &p.key;
    if (r->worker.cache && r->packets & 2) /* as for a batch; the others find their way alone */
        flow_cache_prefetch(r->worker.cache, r->dp->tables, &key, 1);
    if (asks && !ask(r, &p, &o, why))
        return false;
    uint32_t n = r->io->n, logged = r->slow.log.n;
    pipeline_packet(&r->worker, &p);
    slow_receive(&r->slow, f->data, f->n, in_port);
    return !asks || check_outlook(r, &o, r->io->n > n || r->slow.log.n > logged, why);
}

bool
rig_packet_out(struct rig *r, const struct of_packet_out *po, char *why)
{
    struct frame f = {.n = (uint32_t)po->data.n};
    struct compile_env env = compile_env(r);
    struct program *prog = NULL;
    struct packet p;
    env.packet_out = true;
    int err = compile_actions(&env, &po->actions, &prog);
    if (err)
        snprintf(why, 256, "packet-out: error %x", (unsigned)err);
    if (err)
        return false;
    memcpy(f.data, po->data.p, f.n);
    take_in(r, &f, po->in_port, &p);
    pipeline_packet_out(&r->worker, &p, prog);
    free(prog);
    slow_packet_out(&r->slow, f.data, f.n, po->in_port, &po->actions);
    return true;
}

void
rig_pass_time(struct rig *r, uint32_t seconds)
{
    r->world.now += seconds * UINT64_C(1000000000);
    r->worker.now = r->world.now;
    tables_expire(r->dp->tables, r->world.now);
    rcu_turn();
    slow_expire(&r->slow);
}

/* ------------------------------------------------------------------ what came out */

static void
take_tx(struct rig *r, const struct rig_tx *t)
{
    struct slow_out *o = slow_log_add(&r->got, t->data, t->n);
    o->port = t->port;
    o->queue = t->queue;
    if (!(t->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM))
        return;
    uint32_t start = t->vnet.csum_start, at = start + t->vnet.csum_offset;
    if (at + 2 > t->n)
        abort();
    uint16_t csum = (uint16_t)~slow_sum(0, o->data + start, t->n - start);
    of_set16(o->data + at, !csum && t->vnet.csum_offset == 6 ? 0xffff : csum);
}

static void
take_packet_ins(struct rig *r)
{
    uint32_t n;
    for (const struct packet_in_record *p; (p = ring_peek(r->worker.packet_ins, &n));
         ring_release(r->worker.packet_ins)) {
        struct slow_out *o = slow_log_add(&r->got, p->data, p->len);
        o->packet_in = true;
        o->port = p->in_port;
        o->metadata = p->metadata;
        o->tunnel_id = p->tunnel_id;
        o->cookie = p->cookie;
        o->table_id = p->table_id;
        o->reason = p->reason;
        o->max_len = p->max_len;
        r->packet_ins++;
        if (p->in_phy_port != p->in_port)
            o->queue = UINT32_MAX; /* never right */
    }
}

static void
mix(struct rig *r, const void *data, size_t n)
{
    const uint8_t *p = data;
    for (size_t i = 0; i < n; i++)
        r->digest = (r->digest ^ p[i]) * UINT64_C(0x100000001b3);
}

static const struct slow_out *
next_of(const struct slow_log *l, uint32_t *at, bool packet_in, uint32_t port)
{
    while (*at < l->n) {
        const struct slow_out *o = &l->v[(*at)++];
        if (o->packet_in == packet_in && (packet_in || o->port == port))
            return o;
    }
    return NULL;
}

static bool
same_out(const struct slow_out *x, const struct slow_out *y)
{
    return x->port == y->port && x->queue == y->queue && x->metadata == y->metadata &&
           x->tunnel_id == y->tunnel_id && x->cookie == y->cookie && x->table_id == y->table_id &&
           x->reason == y->reason && x->max_len == y->max_len && x->n == y->n &&
           !memcmp(x->data, y->data, x->n);
}

static void
show_out(const char *what, const struct slow_out *o)
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
compare_some(const struct rig *r, bool packet_in, uint32_t port, char *why)
{
    uint32_t i = 0, j = 0;
    for (;;) {
        const struct slow_out *x = next_of(&r->got, &i, packet_in, port);
        const struct slow_out *y = next_of(&r->slow.log, &j, packet_in, port);
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
rig_compare(struct rig *r, char *why)
{
    for (uint32_t i = 0; i < r->io->n; i++)
        take_tx(r, &r->io->tx[i]);
    take_packet_ins(r);
    r->outs += r->got.n;
    for (uint32_t i = 0; i < r->got.n; i++) {
        mix(r, r->got.v[i].data, r->got.v[i].n);
        mix(r, &r->got.v[i].port, sizeof r->got.v[i].port);
    }
    mix(r, r->drops, sizeof r->drops);
    bool same = compare_some(r, true, 0, why);
    for (int i = 0; same && i < SLOW_PORTS; i++)
        same = !r->world.port[i].no || compare_some(r, false, r->world.port[i].no, why);
    if (same)
        forget_batch(r);
    return same;
}
