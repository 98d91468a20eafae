/* SPDX-License-Identifier: Apache-2.0 */
#include <group/meters.h>

#include <flow/refs.h>
#include <shared/rcu.h>

#include <errno.h>
#include <string.h>

#define TICKS_PER_SEC (UINT64_C(16) * 1000000000)
/* Where the controller names no burst: 190 ms.  A TCP connection whose packets are dropped waits for 200 ms
 * (Linux's shortest retransmission timeout), and what a full bucket can't take in meanwhile is lost to
 * it.  200 ms would be 2 % of ten seconds at the rate. */
#define DEFAULT_DEPTH (TICKS_PER_SEC / 1000 * 190)
#define DEPTH_MAX     (UINT64_C(1) << 62)
#define SLICES        16 /* workers may hold this part of a burst */
#define ALL_FLAGS     (OFPMF_KBPS | OFPMF_PKTPS | OFPMF_BURST | OFPMF_STATS)

struct meters {
    struct idmap map;
    struct refs refs;
    unsigned n_workers;
    const struct meter_sharing *sharing; /* NULL: none */
    uint32_t most;
};

static void free_meter(void *arg);
static void inherit(void *meter, void *old);

struct meters *
meters_new(unsigned n_workers)
{
    struct meters *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->n_workers = n_workers;
    static const struct idmap_ops map_ops = {free_meter, NULL, inherit};
    idmap_init(&m->map, &map_ops, m);
    refs_init(&m->refs);
    m->most = limits_default(UINT64_MAX).meters;
    return m;
}

void
meters_limit(struct meters *m, const struct limits *l)
{
    m->most = l->meters;
}

void
meters_share(struct meters *m, const struct meter_sharing *sharing)
{
    m->sharing = sharing;
}

uint32_t
meters_most(const struct meters *m)
{
    return m->most;
}

static void
free_meter(void *arg)
{
    struct meter *mt = arg;
    if (mt->kernel_place >= 0)
        mt->sharing->leave(mt->sharing->ctx, mt->kernel_place);
    if (mt->owns_total)
        free(mt->total);
    free(mt->counters);
    free(mt);
}

void
meters_free(struct meters *m)
{
    idmap_free(&m->map);
    refs_free(&m->refs);
    free(m);
}

struct meter *
meters_find(const struct meters *m, uint32_t id)
{
    return idmap_find(&m->map, id);
}

unsigned long
meters_changes(const struct meters *m)
{
    return m->map.changes;
}

uint32_t
meters_count(const struct meters *m)
{
    return idmap_count(&m->map);
}

struct meter *
meters_each(const struct meters *m, uint32_t *pos)
{
    return idmap_each(&m->map, pos);
}

void
meters_refer(struct meters *m, struct flow *f, struct program *p, int delta)
{
    if (p->meter_id)
        refs_flow(&m->refs, p->meter_id, f, program_uses(p), delta);
}

uint32_t
meters_refs(const struct meters *m, uint32_t id)
{
    const struct id_refs *r = refs_find(&m->refs, id);
    return r ? r->flows : 0;
}

static struct flow_counter *
counter(const struct meter *mt, unsigned worker, int band)
{
    return band < 0 ? &mt->total[worker * mt->total_stride]
                    : &mt->counters[worker * mt->stride + (uint32_t)band];
}

/* What the worker has taken from the band's bucket and not spent, 1/16 ns.  Beside its counters,
 * which it writes anyway; nobody else reads it. */
static uint64_t *
credit_of(const struct meter *mt, unsigned worker, uint32_t band)
{
    return &mt->counters[worker * mt->stride + mt->n_bands + band].packets;
}

struct flow_counter
meters_counter(const struct meters *m, const struct meter *mt, int band)
{
    struct flow_counter sum = {0};
    for (unsigned w = 0; w < flow_counters_slots(m->n_workers, m->sharing); w++) {
        const struct flow_counter *c = counter(mt, w, band);
        sum.packets += counter_read(&c->packets);
        sum.bytes += counter_read(&c->bytes);
    }
    return sum;
}

void
meters_kernel_count(const struct meters *m, const struct meter *mt, int band, uint64_t packets,
                    uint64_t bytes)
{
    flow_counter_add(counter(mt, m->n_workers, band), packets, bytes);
}

/* ------------------------------------------------------------------ meter-mod */

/* How long the rate takes to refill the burst, 1/16 ns, at most nine years. */
static uint64_t
burst_ticks(uint32_t burst, uint32_t rate)
{
    const uint32_t quarter = TICKS_PER_SEC / 4;
    uint64_t quarters = (uint64_t)burst * quarter, whole = quarters / rate;
    return whole > DEPTH_MAX / 4 ? DEPTH_MAX : whole * 4 + quarters % rate * 4 / rate;
}

/* Both kinds of bands have the same first three members. */
static int
build_band(struct meter *mt, const struct of_tagged *t, unsigned workers, struct band *b)
{
    if (t->row->type == OFPMBT_EXPERIMENTER)
        return OF_METER_MOD_FAILED(BAD_BAND);
    const struct of_band_drop *d = (const struct of_band_drop *)t;
    b->type = t->row->type;
    b->rate = d->rate;
    b->burst = d->burst_size; /* reported as given; without OFPMF_BURST not used */
    if (b->type == OFPMBT_DSCP_REMARK)
        b->prec_level = ((const struct of_band_dscp_remark *)t)->prec_level;
    if (!b->rate)
        return OF_METER_MOD_FAILED(BAD_RATE);
    if (mt->flags & OFPMF_BURST && !b->burst)
        return OF_METER_MOD_FAILED(BAD_BURST);
    if (b->type == OFPMBT_DSCP_REMARK && b->prec_level > 2)
        return OF_METER_MOD_FAILED(BAD_BAND_VALUE);
    b->depth = mt->flags & OFPMF_BURST ? burst_ticks(b->burst, b->rate) : DEFAULT_DEPTH;
    /* The bucket's debt may be a slice deeper, too. */
    b->slice = workers > 1 ? b->depth / SLICES / (workers + 1) : 0;
    b->room = b->depth - b->slice * (workers + 1);
    return 0;
}

static int
check(const struct of_meter_mod *r)
{
    if (!r->meter_id || r->meter_id > OFPM_MAX) /* virtual meters are optional; here are none */
        return OF_METER_MOD_FAILED(INVALID_METER);
    if (r->flags & ~ALL_FLAGS || (r->flags & OFPMF_KBPS && r->flags & OFPMF_PKTPS))
        return OF_METER_MOD_FAILED(BAD_FLAGS);
    return r->bands.n > METER_MAX_BANDS ? OF_METER_MOD_FAILED(OUT_OF_BANDS) : 0;
}

/* A modify clears the bands' counts, but not the meter's (6.5).  Workers count into the meter that is
 * replaced until the next grace period, so both count into the same memory. */
static bool
make_counters(const struct meters *m, struct meter *mt, const struct meter *old)
{
    mt->counters = flow_counters_new(mt->n_bands ? mt->n_bands * 2 : 1, m->n_workers, m->sharing);
    mt->total = old ? old->total : flow_counters_new(1, m->n_workers, m->sharing);
    mt->owns_total = !old;
    return mt->counters && mt->total;
}

/* A replaced meter's buckets stay its own: workers and the kernel never see half of a change. */
static void
place_buckets(const struct meters *m, struct meter *mt)
{
    uint64_t *shared[METER_SHARED_BANDS];
    bool all = m->sharing && mt->n_bands && mt->n_bands <= METER_SHARED_BANDS;
    for (uint32_t i = 0; i < mt->n_bands; i++)
        all &= mt->bands[i].type == OFPMBT_DROP;
    mt->sharing = m->sharing;
    mt->kernel_place = all ? m->sharing->take(m->sharing->ctx, mt, shared) : -1;
    for (uint32_t i = 0; i < mt->n_bands; i++)
        mt->bands[i].full_at = mt->kernel_place < 0 ? &mt->bands[i].own : shared[i];
}

static int
build_meter(const struct meters *m, const struct of_meter_mod *r, uint64_t now,
            const struct meter *old, struct meter **out)
{
    int err = check(r);
    if (err)
        return err;
    struct meter *mt = calloc(1, sizeof *mt + r->bands.n * sizeof mt->bands[0]);
    if (!mt)
        return -ENOMEM;
    mt->id = r->meter_id;
    mt->flags = r->flags;
    mt->n_bands = r->bands.n;
    mt->created = now;
    mt->kernel_place = -1;
    for (uint32_t i = 0; i < r->bands.n && !err; i++)
        err = build_band(mt, OF_AT(&r->bands, i, struct of_tagged), m->n_workers, &mt->bands[i]);
    mt->stride = flow_counters_apart(mt->n_bands * 2, m->n_workers);
    mt->total_stride = flow_counters_apart(1, m->n_workers);
    if (!err && !make_counters(m, mt, old))
        err = -ENOMEM;
    if (err) {
        free_meter(mt);
        return err;
    }
    place_buckets(m, mt);
    *out = mt;
    return 0;
}

static int
add_meter(struct meters *m, const struct of_meter_mod *r, uint64_t now)
{
    struct meter *mt;
    if (meters_find(m, r->meter_id))
        return OF_METER_MOD_FAILED(METER_EXISTS);
    if (idmap_count(&m->map) >= m->most)
        return OF_METER_MOD_FAILED(OUT_OF_METERS);
    int err = build_meter(m, r, now, NULL, &mt);
    if (!err && (err = idmap_add(&m->map, mt)))
        free_meter(mt);
    return err;
}

static void
inherit(void *meter, void *old)
{
    struct meter *from = old, *to = meter;
    to->owns_total = from->owns_total;
    from->owns_total = false;
}

static int
modify_meter(struct meters *m, const struct of_meter_mod *r, uint64_t now)
{
    struct meter *mt, *old = meters_find(m, r->meter_id);
    if (!old)
        return OF_METER_MOD_FAILED(UNKNOWN_METER);
    int err = build_meter(m, r, now, old, &mt);
    if (err)
        return err;
    mt->created = old->created;
    if ((err = idmap_replace(&m->map, old, mt)))
        free_meter(mt);
    return err;
}

int
meters_remove_users(const struct meters *m, uint32_t id, uint32_t most,
                    int (*remove)(void *ctx, struct flow *f), void *ctx)
{
    uint32_t pos = 0;
    int err = 0;
    if (id != OFPM_ALL)
        return refs_remove_users(&m->refs, id, &most, remove, ctx);
    for (const struct meter *mt; !err && (mt = meters_each(m, &pos));)
        err = refs_remove_users(&m->refs, mt->id, &most, remove, ctx);
    return err;
}

static int
delete_meters(struct meters *m, const struct of_meter_mod *r)
{
    if (r->meter_id == OFPM_ALL) {
        uint32_t pos = 0;
        int err = 0;
        for (struct meter *mt; !err && (mt = meters_each(m, &pos));)
            err = idmap_drop(&m->map, mt);
        return err;
    }
    struct meter *mt = meters_find(m, r->meter_id);
    return mt ? idmap_drop(&m->map, mt) : 0; /* deleting an unknown meter is no error (6.5) */
}

int
meters_mod(struct meters *m, const struct of_meter_mod *r, uint64_t now)
{
    int err;
    switch (r->command) {
    case OFPMC_ADD: err = add_meter(m, r, now); break;
    case OFPMC_MODIFY: err = modify_meter(m, r, now); break;
    case OFPMC_DELETE: err = delete_meters(m, r); break;
    default: return OF_METER_MOD_FAILED(BAD_COMMAND);
    }
    return err == -ENOMEM ? OF_METER_MOD_FAILED(OUT_OF_METERS) : err;
}

/* ------------------------------------------------------------------ packets (workers) */

/* Takes the cost from the worker's credit or the band's bucket; false: the bucket is in debt, and
 * nothing was taken. */
static bool
take(struct band *b, uint64_t *credit, uint64_t cost, uint64_t now)
{
    if (*credit >= cost) {
        *credit -= cost;
        return true;
    }
    uint64_t full = wide_load(b->full_at), next;
    do {
        uint64_t from = full > now ? full : now;
        if (from > now + b->room)
            return false;
        next = from + (cost - *credit) + b->slice;
    } while (!wide_cas(b->full_at, &full, next));
    *credit = b->slice;
    return true;
}

/* Raises the drop precedence of an assured-forwarding class (RFC 2597); other DSCPs stay. */
static int
remark(struct packet *p, uint8_t levels)
{
    uint8_t dscp = p->key.ip_dscp, class = dscp >> 3, prec = dscp >> 1 & 3;
    if (class < 1 || class > 4 || !prec || dscp & 1)
        return 0;
    prec = prec + levels > 3 ? 3 : (uint8_t)(prec + levels);
    dscp = (uint8_t)(class << 3 | prec << 1);
    return packet_set_field(p, OXM_ip_dscp, &dscp);
}

/* The packet's cost as time of the band's bucket. */
static inline uint64_t
cost_of(const struct meter *m, const struct band *b, struct packet_wire wire)
{
    return m->flags & OFPMF_PKTPS ? wire.packets * TICKS_PER_SEC / b->rate
                                  : wire.bytes * (8 * (TICKS_PER_SEC / 1000)) / b->rate;
}

static inline int
apply_band(const struct meter *m, int i, struct packet *p)
{
    return m->bands[i].type == OFPMBT_DROP ? EDIT_DROP(meter) : remark(p, m->bands[i].prec_level);
}

static inline bool
is_worse(const struct meter *m, unsigned i, int worst)
{
    return worst < 0 || m->bands[i].rate > m->bands[worst].rate;
}

int
meter_look(const struct meter *m, struct packet *p, uint64_t now, struct band_look *bands,
           int *band)
{
    const uint64_t tokens_per = TICKS_PER_SEC / 1000; /* rates are per second, in thousands */
    uint64_t ticks = now * 16;
    *band = -1;
    for (uint32_t i = 0; i < m->n_bands; i++) {
        const struct band *b = &m->bands[i];
        uint64_t full = wide_load(b->full_at), from = full > ticks ? full : ticks;
        uint64_t most = ticks + b->room, left = from > most ? 0 : most - from;
        bands[i] = (struct band_look){.exceeded = from > most,
                                      .tokens = left / tokens_per * b->rate +
                                                left % tokens_per * b->rate / tokens_per,
                                      .wait_ns = from > most ? (from - most) / 16 : 0};
        if (bands[i].exceeded && is_worse(m, i, *band))
            *band = (int)i;
    }
    return *band < 0 ? 0 : apply_band(m, *band, p);
}

int
meter_run(struct meter *m, unsigned worker, struct packet *p, uint64_t now)
{
    struct packet_wire wire = packet_on_wire(p);
    uint64_t ticks = now * 16;
    flow_counter_add(counter(m, worker, -1), wire.packets, wire.bytes);
    int worst = -1;
    for (uint32_t i = 0; i < m->n_bands; i++) {
        struct band *b = &m->bands[i];
        if (!take(b, credit_of(m, worker, i), cost_of(m, b, wire), ticks) && is_worse(m, i, worst))
            worst = (int)i;
    }
    if (worst < 0)
        return 0;
    flow_counter_add(counter(m, worker, worst), wire.packets, wire.bytes);
    return apply_band(m, worst, p);
}
