/* SPDX-License-Identifier: Apache-2.0 */
/* Entries, masks and meters in the memory that the programs read.  One writer, the control thread. */
#include "offload-inside.h"

#include <packet/key-hash.h>
#include <shared/atomics.h>
#include <shared/clock.h>

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPIN_NS       1000000              /* how long a program may take before RCU is asked */
#define MEMORY_MOST   (UINT64_C(64) << 20) /* of the default's entries */
#define ENTRIES_LEAST 256

/* ------------------------------------------------------------------ beginning and end */

uint32_t
offload_sets_for(uint32_t entries)
{
    return entries >= OFFLOAD_WAYS ? entries * 2 / OFFLOAD_WAYS : 1;
}

uint64_t
offload_memory_bytes(uint32_t entries, uint32_t processors)
{
    uint64_t each = sizeof(struct offload_entry) + processors * sizeof(struct offload_hits);
    return entries * each + offload_sets_for(entries) * sizeof(struct offload_set) +
           processors * sizeof(struct offload_cpu) + OFFLOAD_PORTS * sizeof(struct offload_port) +
           OFFLOAD_METERS * sizeof(struct offload_meter);
}

uint32_t
offload_entries_default(uint64_t memory, uint32_t processors)
{
    uint64_t most = memory / 16 < MEMORY_MOST ? memory / 16 : MEMORY_MOST;
    uint32_t n = memory >= UINT64_C(256) << 20 ? 16384 : memory >= UINT64_C(64) << 20 ? 4096 : 1024;
    while (n > ENTRIES_LEAST && offload_memory_bytes(n, processors) > most)
        n /= 2;
    return n;
}

/* The hash is the flow cache's, so that nobody can choose packets that fill a set. */
static void
share_secrets(struct offload_control *c)
{
    key_hash_init();
    c->hash_sum = key_hash_secret.sum;
    memcpy(c->hash_word, key_hash_secret.word, sizeof c->hash_word);
    if (getrandom(&c->magic, sizeof c->magic, 0) < 0)
        c->magic = (uint32_t)getpid();
    c->magic |= 1;
}

struct offload *
offload_table_new(const struct offload_memory *m)
{
    struct offload *o = calloc(1, sizeof *o);
    if (!o)
        return NULL;
    o->m = *m;
    o->place = calloc(m->n_entries, sizeof *o->place);
    o->free = calloc(m->n_entries, sizeof *o->free);
    o->under = calloc(OFFLOAD_PORTS, sizeof *o->under);
    o->held = calloc(OFFLOAD_PORTS, sizeof *o->held);
    if (!o->place || !o->free || !o->under || !o->held) {
        offload_table_free(o);
        return NULL;
    }
    while (o->n_free < m->n_entries) { /* low numbers first: their memory is warm */
        o->free[o->n_free] = m->n_entries - 1 - o->n_free;
        o->n_free++;
    }
    share_secrets(m->control);
    m->control->sets = m->n_sets - 1;
    m->control->entries = m->n_entries;
    return o;
}

void
offload_table_free(struct offload *o)
{
    free(o->held);
    free(o->under);
    free(o->free);
    free(o->place);
    free(o);
}

/* ------------------------------------------------------------------ masks */

static bool
covers(const struct offload_mask *m, const uint64_t *bits)
{
    uint64_t missing = 0;
    for (int i = 0; i < OFFLOAD_WORDS; i++)
        missing |= bits[i] & ~m->bits[i];
    return !missing;
}

/* For programs, which may read either one first: so a mask that comes or goes is at the order's end meanwhile. */
static void
publish_order(struct offload *o, uint32_t n)
{
    struct offload_control *c = o->m.control;
    uint64_t order = 0;
    for (uint32_t i = OFFLOAD_MASKS; i--;)
        order = order << 4 | o->order[i];
    wide_store_release((uint64_t *)&c->order, order);
    store_release(&c->n_masks, n);
}

static void
mask_comes(struct offload *o, unsigned place)
{
    uint32_t n = o->m.control->n_masks;
    o->order[n] = (uint8_t)place;
    publish_order(o, n + 1);
}

static void
mask_goes(struct offload *o, unsigned place)
{
    uint32_t last = o->m.control->n_masks - 1, i = 0;
    while (o->order[i] != place)
        i++;
    memmove(&o->order[i], &o->order[i + 1], last - i);
    o->order[last] = (uint8_t)place;
    publish_order(o, last);
}

void
offload_order_masks(struct offload *o, const uint64_t hits[OFFLOAD_MASKS])
{
    uint32_t n = o->m.control->n_masks;
    bool moved = false;
    for (uint32_t i = 1; i < n; i++) {
        uint8_t place = o->order[i];
        uint32_t to = i;
        for (; to && hits[o->order[to - 1]] < hits[place]; to--)
            o->order[to] = o->order[to - 1];
        o->order[to] = place;
        moved |= to != i;
    }
    if (moved)
        publish_order(o, n);
}

/* The mask of these bits; where no place from `from` to `to` is free, one with more.  -1: there is none. */
static int
find_mask(struct offload_control *c, const uint64_t *bits, int from, int to)
{
    int free = -1, wider = -1;
    for (int i = OFFLOAD_MASKS - 1; i >= 0; i--) {
        struct offload_mask *m = &c->mask[i];
        if (!m->used && i >= from && i < to)
            free = i;
        else if (m->used && !memcmp(m->bits, bits, sizeof m->bits))
            return i;
        else if (m->used && covers(m, bits))
            wider = i;
    }
    if (free < 0)
        return wider;
    memcpy(c->mask[free].bits, bits, sizeof c->mask[free].bits);
    return free;
}

/* Whole bytes, and ports and addresses whole. */
static void
coarsen(const uint64_t *bits, uint64_t *out)
{
    static const struct {
        uint8_t word, at, n;
    } fields[] = {{1, 0, 6}, {1, 6, 2}, {2, 0, 4}, {3, 4, 2}, {3, 6, 2},
                  {6, 0, 8}, {7, 0, 8}, {8, 0, 8}, {9, 0, 8}};
    const uint8_t *b = (const uint8_t *)bits;
    uint8_t *o = (uint8_t *)out;
    for (unsigned i = 0; i < OFFLOAD_WORDS * 8; i++)
        o[i] = b[i] ? 0xff : 0;
    for (unsigned i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        uint8_t *f = o + fields[i].word * 8 + fields[i].at, any = 0;
        for (unsigned k = 0; k < fields[i].n; k++)
            any |= f[k];
        memset(f, any, fields[i].n);
    }
}

/* The mask for a rule that depends on these bits.  Rules that differ in many prefixes would take all places and leave
 * none for others, so some are kept for masks of whole fields, of which there are few.  -1: there is none. */
static int
mask_for(struct offload_control *c, const uint64_t *bits)
{
    uint64_t whole[OFFLOAD_WORDS];
    int found = find_mask(c, bits, 0, OFFLOAD_MASKS - OFFLOAD_COARSE);
    if (found >= 0)
        return found;
    coarsen(bits, whole);
    return find_mask(c, whole, OFFLOAD_MASKS - OFFLOAD_COARSE, OFFLOAD_MASKS);
}

/* The place of the port that an entry's packets come in by. */
static uint32_t
place_of(const uint64_t *key)
{
    uint32_t ifindex;
    memcpy(&ifindex, key, sizeof ifindex);
    return ifindex % OFFLOAD_PORTS;
}

static void
use_mask(struct offload *o, const uint64_t *key, unsigned i, int delta)
{
    struct offload_control *c = o->m.control;
    uint32_t place = place_of(key), was = o->under[place][i];
    o->under[place][i] = was + (uint32_t)delta;
    o->held[place] = (uint8_t)(o->held[place] + (o->under[place][i] != 0) - (was != 0));
    store_release(&c->mask[i].used, c->mask[i].used + (uint32_t)delta);
    if (delta > 0 && c->mask[i].used == 1)
        mask_comes(o, i);
    else if (!c->mask[i].used)
        mask_goes(o, i);
}

/* Is there a mask of these bits, or a place for one? */
static bool
has_room(const struct offload_control *c, const uint64_t *bits)
{
    for (int i = 0; i < OFFLOAD_MASKS; i++)
        if (!c->mask[i].used || !memcmp(c->mask[i].bits, bits, sizeof c->mask[i].bits))
            return true;
    return false;
}

/* Of the masks that the port has, the one that others use least, and then the one that it uses least. */
static int
least_used(const struct offload *o, uint32_t place)
{
    const uint32_t *own = o->under[place];
    int best = -1;
    uint32_t best_others = 0;
    for (int i = 0; i < OFFLOAD_MASKS; i++) {
        uint32_t others = o->m.control->mask[i].used - own[i];
        if (!own[i] ||
            (best >= 0 && (others > best_others || (others == best_others && own[i] >= own[best]))))
            continue;
        best = i;
        best_others = others;
    }
    return best;
}

int
offload_mask_due(const struct offload *o, const struct offload_rule *r)
{
    uint32_t most = 0;
    if (has_room(o->m.control, (const uint64_t *)r->mask))
        return -1;
    for (uint32_t i = 1; i < OFFLOAD_PORTS; i++)
        if (o->held[i] > o->held[most])
            most = i;
    return o->held[most] < o->held[place_of((const uint64_t *)r->key)] + 2 ? -1
                                                                           : least_used(o, most);
}

uint32_t
offload_mask_of(const struct offload *o, uint32_t id)
{
    return o->m.entry[id].mask;
}

/* ------------------------------------------------------------------ entries */

/* As hash_under in bpf/lookup.h, which has the same secrets (share_secrets). */
static uint32_t
hash_of(const uint64_t *key)
{
    uint64_t sum = key_hash_begin();
    for (unsigned i = 0; i < OFFLOAD_WORDS; i++)
        sum += key_hash_word(i, key[i]);
    return key_hash_end(sum);
}

static uint64_t *
way_of(const struct offload *o, const struct offload_place *p)
{
    return (uint64_t *)&o->m.set[p->hash & (o->m.n_sets - 1)].way[p->way];
}

static uint64_t
way_to(uint32_t hash, uint32_t id)
{
    return (uint64_t)hash << 32 | (id + 1);
}

/* A free way for the hash; -EEXIST: the entry *has of this mask has the key, -ENOSPC. */
static int
find_way(const struct offload *o, uint32_t hash, unsigned mask, const uint64_t *key, uint32_t *has)
{
    const struct offload_set *s = &o->m.set[hash & (o->m.n_sets - 1)];
    int found = -ENOSPC;
    for (int i = OFFLOAD_WAYS - 1; i >= 0; i--) {
        uint32_t id = (uint32_t)s->way[i];
        const struct offload_entry *e = id ? &o->m.entry[id - 1] : NULL;
        if (!e)
            found = i;
        else if (s->way[i] >> 32 == hash && e->mask == mask &&
                 !memcmp(e->key, key, sizeof e->key)) {
            *has = id - 1;
            return -EEXIST;
        }
    }
    return found;
}

/* Counts the port's entries: its programs look nothing up if there are none. */
static void
count_entry(struct offload *o, const uint64_t *key, int delta)
{
    uint32_t ifindex;
    memcpy(&ifindex, key, sizeof ifindex);
    struct offload_port *p = &o->m.port[place_of(key)];
    if (p->ifindex == ifindex)
        store_release(&p->entries, p->entries + (uint32_t)delta);
}

uint32_t
offload_rule_super(const struct offload *o, const struct offload_rule *r)
{
    return r->labels && !o->m.control->cuts_labels ? 0 : r->super;
}

static void
fill_entry(const struct offload *o, struct offload_entry *e, const struct offload_rule *r,
           unsigned mask, const uint64_t *key)
{
    *e = (struct offload_entry){.mask = mask,
                                .n_ops = r->n_ops,
                                .min_ttl = r->min_ttl,
                                .longest = r->longest,
                                .super = offload_rule_super(o, r),
                                .meter = r->meter,
                                .covered = offload_rule_covered(r),
                                .unmeasured = !offload_rule_measured(r),
                                .edits = (offload_rule_edits(r) ? OFFLOAD_EDITS : 0) |
                                         (r->labels ? OFFLOAD_EDITS_LABELS : 0),
                                .ports = r->ports,
                                .came_by = r->came_by,
                                .hold_new = 1};
    memcpy(e->key, key, sizeof e->key);
    memcpy(e->op, r->op, r->n_ops * sizeof r->op[0]);
    store_release(&e->state, OFFLOAD_LIVE);
}

int
offload_insert(struct offload *o, const struct offload_rule *r, uint32_t *id)
{
    struct offload_control *c = o->m.control;
    uint64_t key[OFFLOAD_WORDS];
    int mask = o->n_free ? mask_for(c, (const uint64_t *)r->mask) : -1;
    if (mask < 0)
        return -ENOSPC;
    for (int i = 0; i < OFFLOAD_WORDS; i++)
        key[i] = r->key[i] & c->mask[mask].bits[i];
    uint32_t hash = hash_of(key);
    int way = find_way(o, hash, (unsigned)mask, key, id);
    if (way < 0)
        return way;
    *id = o->free[--o->n_free];
    struct offload_place *p = &o->place[*id];
    p->hash = hash;
    p->way = (uint8_t)way;
    p->was = (struct offload_hits){0};
    p->was = offload_read(o, *id);
    fill_entry(o, &o->m.entry[*id], r, (unsigned)mask, key);
    use_mask(o, key, (unsigned)mask, 1);
    count_entry(o, key, 1);
    wide_store_release(way_of(o, p), way_to(hash, *id));
    return 0;
}

void
offload_withdraw(struct offload *o, uint32_t id)
{
    struct offload_entry *e = &o->m.entry[id];
    if (e->state != OFFLOAD_LIVE)
        return;
    wide_store_release(way_of(o, &o->place[id]), 0);
    store_release(&e->state, 0);
    use_mask(o, (const uint64_t *)e->key, e->mask, -1);
    count_entry(o, (const uint64_t *)e->key, -1);
}

void
offload_release(struct offload *o, uint32_t id)
{
    o->free[o->n_free++] = id;
}

/* ------------------------------------------------------------------ waiting */

static bool
has_left(const struct offload_cpu *c, uint64_t was, uint64_t until)
{
    while (wide_load_acquire((const uint64_t *)&c->inside) == was)
        if (clock_ns() > until)
            return false;
    return true;
}

void
offload_quiesce(struct offload *o)
{
    uint64_t until = 0;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < o->m.n_cpus; i++) {
        const struct offload_cpu *c = &o->m.cpu[i];
        uint64_t was = wide_load_acquire((const uint64_t *)&c->inside);
        if (!(was & 1))
            continue;
        if (!until)
            until = clock_ns() + SPIN_NS;
        if (has_left(c, was, until))
            continue;
        /* That processor's last verdict was not used, or its virtual machine is stopped. */
        syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
        return;
    }
}

/* ------------------------------------------------------------------ counters */

struct offload_hits
offload_read(const struct offload *o, uint32_t id)
{
    const struct offload_hits *was = &o->place[id].was;
    struct offload_hits sum = {0};
    for (uint32_t i = 0; i < o->m.n_cpus; i++) {
        const struct offload_hits *h = &o->m.hits[(size_t)i * o->m.n_entries + id];
        sum.packets += counter_read((const uint64_t *)&h->packets);
        sum.bytes += counter_read((const uint64_t *)&h->bytes);
        sum.dropped += counter_read((const uint64_t *)&h->dropped);
        sum.dropped_bytes += counter_read((const uint64_t *)&h->dropped_bytes);
        sum.frames += counter_read((const uint64_t *)&h->frames);
        sum.segments += counter_read((const uint64_t *)&h->segments);
    }
    sum.packets -= was->packets;
    sum.bytes -= was->bytes;
    sum.dropped -= was->dropped;
    sum.dropped_bytes -= was->dropped_bytes;
    sum.frames -= was->frames;
    sum.segments -= was->segments;
    return sum;
}

uint64_t
offload_used(const struct offload *o, uint32_t id)
{
    return counter_read((const uint64_t *)&o->m.entry[id].used);
}

/* ------------------------------------------------------------------ joining */

void
offload_join(struct offload *o, uint32_t id, bool on)
{
    struct offload_entry *e = &o->m.entry[id];
    if (!on)
        store_release(&e->hold_new, 1);
    store_release(&e->join, on);
}

bool
offload_joins(const struct offload *o, uint32_t id)
{
    return load_relaxed(&o->m.entry[id].join);
}

uint32_t
offload_joined(const struct offload *o, uint32_t id)
{
    return load_relaxed(&o->m.entry[id].joined);
}

static void
add_counts(const struct offload *o, uint32_t processor, struct offload_counts *sum)
{
#define ADD_COUNT(name) sum->name += counter_read((const uint64_t *)&o->m.cpu[processor].name);
    OFFLOAD_COUNTS(ADD_COUNT)
    OFFLOAD_MORE_COUNTS(ADD_COUNT)
}

bool
offload_counts_of(const struct offload *o, uint32_t processor, struct offload_counts *out)
{
    *out = (struct offload_counts){0};
    if (processor >= o->m.n_cpus)
        return false;
    add_counts(o, processor, out);
    return true;
}

struct offload_counts
offload_counts(const struct offload *o)
{
    struct offload_counts sum = {.entries = o->m.n_entries - o->n_free};
    for (uint32_t i = 0; i < o->m.n_cpus; i++)
        add_counts(o, i, &sum);
    for (unsigned i = 0; i < OFFLOAD_MASKS; i++)
        sum.masks += o->m.control->mask[i].used != 0;
    return sum;
}

void
offload_port_stale(struct offload *o, uint32_t no)
{
    fetch_or(&o->m.control->stale, offload_port_bit(no));
}

uint32_t
offload_stale(const struct offload *o)
{
    return load_acquire(&o->m.control->stale);
}

void
offload_settled(struct offload *o, uint32_t bits)
{
    fetch_and(&o->m.control->stale, ~bits);
}

void
offload_turn(struct offload *o, bool on)
{
    store_release(&o->m.control->on, on);
}

void
offload_alive(struct offload *o, uint64_t now)
{
    if (o->linger_ns)
        wide_store_release((uint64_t *)&o->m.control->linger, now + o->linger_ns);
}

void
offload_serve(struct offload *o, uint64_t until)
{
    wide_store_release((uint64_t *)&o->m.control->served, until);
}

struct probes
offload_probes(const struct offload *o)
{
    return o->m.probes;
}

/* ------------------------------------------------------------------ meters */

int
offload_meter_new(struct offload *o)
{
    for (int i = 0; i < OFFLOAD_METERS; i++) {
        uint64_t bit = UINT64_C(1) << i % 64;
        if (o->meters[i / 64] & bit)
            continue;
        o->meters[i / 64] |= bit;
        memset(&o->m.meter[i], 0, sizeof o->m.meter[i]);
        return i;
    }
    return -1;
}

struct offload_meter *
offload_meter(struct offload *o, int place)
{
    return &o->m.meter[place];
}

void
offload_meter_free(struct offload *o, int place)
{
    o->meters[place / 64] &= ~(UINT64_C(1) << place % 64);
}
