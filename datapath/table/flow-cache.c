/* SPDX-License-Identifier: Apache-2.0 */
#include "flow-cache-inside.h"
#include "path-changes.h"

#include <stdlib.h>
#include <string.h>

#define SIGN_WAYS    8
#define CHANCES      8  /* warm entries that the hand passes by, at most, before it takes one */
#define SPARSE       16 /* see worth_remembering */
#define DIRECT_MASKS 2  /* of one table: to look there costs less than a cache */

/* ------------------------------------------------------------------ beginning and end */

/* Zeroed memory at the beginning of a cache line.  What nobody has written to is not resident. */
static void *
lines_new(size_t n, size_t size, void **room)
{
    *room = calloc(n * size + 64, 1);
    return (void *)(((uintptr_t)*room + 63) / 64 * 64);
}

struct flow_cache *
flow_cache_new(uint32_t entries)
{
    static const struct flow_key none;
    uint32_t signs = entries * 2 < SIGN_WAYS ? SIGN_WAYS : entries * 2;
    struct flow_cache *c = aligned_alloc(64, (sizeof *c + 63) / 64 * 64);
    if (!c)
        return NULL;
    memset(c, 0, sizeof *c);
    c->entries = entries;
    c->sign_sets = signs / SIGN_WAYS - 1;
    c->entry = lines_new(entries, sizeof *c->entry, &c->room);
    c->sign = lines_new(signs, sizeof *c->sign, &c->sign_room);
    cache_masks_reset(c, &none);
    if (!c->room || !c->sign_room) { /* LCOV_EXCL_START: no memory */
        flow_cache_free(c);
        return NULL;
    } /* LCOV_EXCL_STOP */
    return c;
}

void
flow_cache_free(struct flow_cache *c)
{
    if (!c)
        return;
    free(c->sign_room);
    free(c->room);
    free(c);
}

struct flow_cache_counts
flow_cache_counts(const struct flow_cache *c)
{
    return (struct flow_cache_counts){
        counter_read(&c->counts.hits),     counter_read(&c->counts.misses),
        counter_read(&c->counts.bypassed), counter_read(&c->counts.withdrawn),
        counter_read(&c->counts.used),     counter_read(&c->counts.masks)};
}

/* To be called when a flow's mask has a bit that no flow's mask had before: the exact mask, by
 * which packets find their entries, changes. */
static void
begin_anew(struct flow_cache *c, const struct tables *t, unsigned serial)
{
    struct flow_key all;
    for (int i = 0; i < KEY_WORDS; i++)
        all.w[i] = halves_load(&t->used.w[i]);
    for (uint32_t i = 0; i < c->entries && c->counts.used; i++)
        c->entry[i].n = 0;
    memset(c->sign, 0, (size_t)(c->sign_sets + 1) * SIGN_WAYS * sizeof *c->sign);
    counter_add(&c->counts.used, -c->counts.used);
    cache_masks_reset(c, &all);
    c->used_serial = serial;
}

/* ------------------------------------------------------------------ signs */

static inline struct cache_sign *
signs_of(const struct flow_cache *c, uint32_t hash)
{
    return &c->sign[(hash >> 1 & c->sign_sets) * SIGN_WAYS];
}

static void
put_sign(struct flow_cache *c, uint32_t hash, const struct cache_entry *e)
{
    struct cache_sign *s = signs_of(c, hash);
    unsigned to = SIGN_WAYS;
    for (unsigned i = 0; i < SIGN_WAYS; i++)
        if (s[i].hash == hash || (!s[i].hash && to == SIGN_WAYS))
            to = i;
    if (to == SIGN_WAYS)
        to = c->sign_victim++ % SIGN_WAYS;
    s[to] = (struct cache_sign){hash, (uint32_t)(e - c->entry)};
}

/* The entry that a hash may lead to. */
static inline struct cache_entry *
follow_sign(const struct flow_cache *c, uint32_t hash)
{
    const struct cache_sign *s = signs_of(c, hash);
    for (unsigned i = 0; i < SIGN_WAYS; i++)
        if (s[i].hash == hash)
            return &c->entry[s[i].entry];
    return NULL;
}

/* ------------------------------------------------------------------ entries */

static inline bool
is_live(const struct flow_cache *c, const struct cache_entry *e)
{
    return e->n && e->mask_id == c->mask[e->mask].id;
}

static void
give_back(struct flow_cache *c, struct cache_entry *e)
{
    if (is_live(c, e)) {
        c->mask[e->mask].used--;
        counter_add(&c->counts.used, -UINT64_C(1));
    }
    e->n = 0;
}

/* Whether no change since the entry's stamp concerns its packets in any of its tables.  Up to there,
 * its flows are still in memory. */
static bool
is_unchanged(const struct flow_cache *c, const struct tables *t, const struct cache_entry *e,
             change_number head)
{
    const struct cache_mask *m = &c->mask[e->mask];
    struct rekeyed now = {.known = m->all};
    for (unsigned i = 0; i < m->n_words; i++)
        now.key.w[m->word[i]] = e->word[i];
    const struct known_path path = {e->table, e->step, e->n, e->rekeys};
    return path_is_unchanged(&t->log, &path, &now, e->stamp, head);
}

/* Whether the entry is right as of `head`. */
static bool
holds(struct flow_cache *c, const struct tables *t, struct cache_entry *e, change_number head)
{
    if (e->stamp == head)
        return true;
    if (!is_unchanged(c, t, e, head)) {
        give_back(c, e);
        counter_add(&c->counts.withdrawn, 1);
        return false;
    }
    e->stamp = head;
    return true;
}

/* The hand goes round.  An entry that was met since the hand last passed it gets another round. */
static struct cache_entry *
new_entry(struct flow_cache *c)
{
    for (unsigned chances = CHANCES;; chances--) {
        struct cache_entry *e = &c->entry[c->hand++ & (c->entries - 1)];
        if (chances && e->warm && is_live(c, e)) {
            e->warm = false;
            continue;
        }
        give_back(c, e);
        return e;
    }
}

/* Differs for each mask, so that a hash under one is not taken for one under another. */
static inline uint32_t
mask_hash(const struct cache_mask *m, const struct flow_key *key)
{
    return (cache_mask_hash(m, key) + (uint32_t)m->id * UINT32_C(0x9e3779b1)) | 1;
}

/* The entry of packets like this one under the mask. */
static struct cache_entry *
find_entry(struct flow_cache *c, const struct cache_mask *m, const struct flow_key *key,
           uint32_t hash)
{
    struct cache_entry *e = follow_sign(c, hash);
    return e && cache_entry_has(e, m, key) ? e : NULL;
}

/* own: the key's hash under the exact mask. */
static uint32_t
hash_under(const struct flow_cache *c, const struct cache_mask *m, const struct flow_key *key,
           uint32_t own)
{
    return m == &c->mask[EXACT] ? own : mask_hash(m, key);
}

/* Remembers what a walk has found, if it can be remembered.  own: as above. */
static void
remember(struct flow_cache *c, const struct flow_key *key, uint32_t own, const struct cache_walk *w,
         change_number head)
{
    const struct flow_path *path = w->path;
    int place = path->n ? cache_masks_for(c, &w->wc) : -1;
    if (place < 0)
        return;
    struct cache_mask *m = &c->mask[place];
    uint32_t hash = hash_under(c, m, key, own);
    struct cache_entry *e = find_entry(c, m, key, hash); /* if the batch has such a packet twice */
    if (!e) {
        e = new_entry(c);
        m->used++;
        counter_add(&c->counts.used, 1);
    }
    e->stamp = head;
    e->mask_id = m->id;
    e->mask = (uint8_t)place;
    e->warm = false;
    e->n = path->n;
    e->rekeys = 0;
    for (unsigned i = 0; i < path->n; i++) {
        e->table[i] = path->table[i];
        e->step[i] = path->step[i];
        e->rekeys |= (uint8_t)(path_step_rekeys(&path->step[i]) << i);
    }
    for (unsigned i = 0; i < m->n_words; i++)
        e->word[i] = key->w[m->word[i]] & m->bits[i];
    put_sign(c, hash, e);
    if (hash != own)
        put_sign(c, own, e);
}

/* If packets hardly ever meet an entry, most new entries would be useless, so only some are
 * made.  Packets that do come again are still remembered soon. */
static bool
worth_remembering(struct flow_cache *c, unsigned n)
{
    c->new += n;
    if (c->new >= 2 * c->entries) {
        c->sparse = c->met < c->new / 4;
        c->met = c->new = 0;
    }
    return !c->sparse || c->batches++ % SPARSE == 0;
}

/* ------------------------------------------------------------------ finding paths */

/* Keys that are looked for together.  `path` of those that are found is set. */
struct search {
    struct flow_cache *c;
    struct tables *t;
    change_number head;
    const struct flow_key *const *key;
    struct flow_path *path;
    uint32_t hash[CACHE_AHEAD];
    uint8_t open[CACHE_AHEAD]; /* indices of keys that are not found yet */
    unsigned n_open;
};

static inline void
take_path(struct flow_path *path, struct cache_entry *e)
{
    if (!e->warm)
        e->warm = true;
    path->n = e->n;
    for (unsigned i = 0; i < e->n; i++) {
        path->table[i] = e->table[i];
        path->step[i] = e->step[i];
        if (!e->step[i].flow)
            continue;
        cache_fetch_flow(e->step[i].flow);
        cache_fetch_program(e->step[i].program);
    }
}

static void
search_signs(struct search *s, unsigned n)
{
    struct flow_cache *c = s->c;
    struct cache_entry *e[CACHE_AHEAD];
    for (unsigned i = 0; i < n; i++) {
        s->hash[i] = cache_mask_hash(&c->mask[EXACT], s->key[i]);
        __builtin_prefetch(signs_of(c, s->hash[i]));
    }
    for (unsigned i = 0; i < n; i++) {
        e[i] = follow_sign(c, s->hash[i]);
        cache_fetch(e[i], 2 * 64);
    }
    for (unsigned i = 0; i < n; i++) {
        if (e[i] && cache_entry_has(e[i], &c->mask[e[i]->mask], s->key[i]) &&
            holds(c, s->t, e[i], s->head))
            take_path(&s->path[i], e[i]);
        else
            s->open[s->n_open++] = (uint8_t)i;
    }
}

static bool
search_masks_for(struct search *s, unsigned i, const uint32_t *hash)
{
    struct flow_cache *c = s->c;
    for (unsigned k = 0; k < c->n_order; k++) {
        struct cache_mask *m = &c->mask[c->order[k]];
        struct cache_entry *e = find_entry(c, m, s->key[i], hash[k]);
        if (!e || !holds(c, s->t, e, s->head))
            continue;
        m->hits++;
        put_sign(c, s->hash[i], e);
        take_path(&s->path[i], e);
        return true;
    }
    return false;
}

static void
search_masks(struct search *s)
{
    struct flow_cache *c = s->c;
    uint32_t hash[CACHE_AHEAD][CACHE_MASKS];
    unsigned asked = s->n_open, left = 0;
    if (!c->resting) {
        for (unsigned i = 0; i < asked; i++)
            for (unsigned k = 0; k < c->n_order; k++) {
                hash[i][k] = mask_hash(&c->mask[c->order[k]], s->key[s->open[i]]);
                __builtin_prefetch(signs_of(c, hash[i][k]));
            }
        for (unsigned i = 0; i < asked; i++)
            if (!search_masks_for(s, s->open[i], hash[i]))
                s->open[left++] = s->open[i];
        s->n_open = left;
    }
    cache_masks_judge(c, asked, asked - s->n_open);
}

static void
search_tables(struct search *s)
{
    struct flow_cache *c = s->c;
    bool worth = worth_remembering(c, s->n_open);
    for (unsigned i = 0; i < s->n_open; i++) {
        c->walk[i].key = s->key[s->open[i]];
        c->walk[i].path = &s->path[s->open[i]];
    }
    cache_walk(c, s->t, s->n_open, worth);
    for (unsigned i = 0; worth && i < s->n_open; i++)
        remember(c, s->key[s->open[i]], s->hash[s->open[i]], &c->walk[i], s->head);
}

static void
search(struct flow_cache *c, struct tables *t, const struct flow_key *const keys[], unsigned n,
       struct flow_path *path)
{
    struct search s = {.c = c, .t = t, .key = keys, .path = path};
    unsigned serial = load_acquire(&t->used_serial);
    s.head = change_log_head(&t->log);
    if (serial != c->used_serial)
        begin_anew(c, t, serial);
    search_signs(&s, n);
    if (s.n_open)
        search_masks(&s);
    c->met += n - s.n_open;
    counter_add(&c->counts.hits, n - s.n_open);
    counter_add(&c->counts.misses, s.n_open);
    if (s.n_open)
        search_tables(&s);
}

/* ------------------------------------------------------------------ without the cache */

/* One table with one hash or two needs no cache before it. */
static bool
goes_directly(const struct tables *t)
{
    const struct mask_list *l = rcu_dereference(t->table[0].flows.subs);
    return !load_relaxed(&t->table[0].n_goto) && (!l || l->masks <= DIRECT_MASKS);
}

static void
look_directly(struct flow_cache *c, const struct tables *t, const struct flow_key *const keys[],
              unsigned n, struct flow_path *path)
{
    struct flow *found[CACHE_AHEAD];
    classifier_lookup_batch(&t->table[0].flows, keys, n, found, NULL);
    for (unsigned i = 0; i < n; i++) {
        const struct program *p = found[i] ? flow_program(found[i]) : NULL;
        path[i].n = 1;
        path[i].table[0] = 0;
        path[i].step[0] = (struct path_step){found[i], p};
        cache_fetch_program(p);
    }
    counter_add(&c->counts.bypassed, n);
}

/* ------------------------------------------------------------------ what the pipeline calls */

static void
find(struct flow_cache *c, struct tables *t, const struct flow_key *const keys[], unsigned n,
     struct flow_path *path)
{
    if (goes_directly(t))
        look_directly(c, t, keys, n, path);
    else
        search(c, t, keys, n, path);
}

void
flow_cache_ahead(struct flow_cache *c, struct tables *t, const struct flow_key *const keys[],
                 unsigned n)
{
    memcpy(c->ahead, keys, n * sizeof keys[0]);
    c->next = 0;
    c->n_ahead = n;
    find(c, t, keys, n, c->path);
}

void
flow_cache_end(struct flow_cache *c)
{
    c->n_ahead = 0;
}

const struct flow_path *
flow_cache_path(struct flow_cache *c, struct tables *t, const struct flow_key *key)
{
    /* They come in the same order, but some may be left out. */
    for (unsigned i = c->next; i < c->n_ahead; i++)
        if (c->ahead[i] == key) {
            c->next = i + 1;
            return &c->path[i];
        }
    find(c, t, &key, 1, &c->path[CACHE_AHEAD]);
    return &c->path[CACHE_AHEAD];
}
