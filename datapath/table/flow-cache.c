/* SPDX-License-Identifier: Apache-2.0 */
#include <table/flow-cache.h>

#include <string.h>

#define WAYS 8

/* Tags are apart from the entries: eight fit in half a cache line and tell which entry to read. */
struct flow_cache {
    uint32_t mask; /* sets - 1 */
    uint32_t ways;
    uint32_t victim;         /* the way to replace in the next full set, round robin */
    uint64_t hits, misses;   /* keys that had an entry, keys that had none */
    uint64_t used;           /* entries that hold a key */
    uint32_t *tag;           /* a key's hash; 0: empty */
    unsigned ahead, n_ahead; /* keys of the last flow_cache_prefetch: the next one, how many */
    const struct flow_key *ahead_key[CACHE_AHEAD]; /* where they were */
    uint32_t ahead_hash[CACHE_AHEAD];
    struct cache_entry entry[];
};

struct flow_cache *
flow_cache_new(uint32_t entries)
{
    uint32_t ways = entries < WAYS ? entries : WAYS;
    struct flow_cache *c = calloc(1, sizeof *c + entries * sizeof c->entry[0]);
    if (!c)
        return NULL;
    c->ways = ways;
    c->mask = entries / ways - 1;
    c->tag = calloc(entries, sizeof *c->tag);
    if (c->tag)
        return c;
    free(c);
    return NULL;
}

void
flow_cache_free(struct flow_cache *c)
{
    if (c)
        free(c->tag);
    free(c);
}

void
flow_cache_clear(struct flow_cache *c)
{
    memset(c->tag, 0, (c->mask + 1) * c->ways * sizeof *c->tag);
    counter_add(&c->used, -c->used);
}

struct flow_cache_counts
flow_cache_counts(const struct flow_cache *c)
{
    return (struct flow_cache_counts){counter_read(&c->hits), counter_read(&c->misses),
                                      counter_read(&c->used)};
}

/* Every bit of either word changes bits all over the result. */
static inline uint64_t
mix2(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
    unsigned __int128 m = (unsigned __int128)a * b;
    return (uint64_t)m ^ (uint64_t)(m >> 64);
#else
    a = (a ^ b >> 32) * UINT64_C(0xff51afd7ed558ccd);
    b = (b ^ a >> 29) * UINT64_C(0xc4ceb9fe1a85ec53);
    return a ^ b ^ b >> 31;
#endif
}

/* One a word of the key, so that equal words in different places differ. */
static const uint64_t salt[KEY_WORDS] = {
    0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53,
    0xd6e8feb86659fd93, 0x9fb21c651e98df25, 0x2545f4914f6cdd1d, 0xbf58476d1ce4e5b9,
    0x94d049bb133111eb, 0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3,
    0x589965cc75374cc3, 0x1d8e4e27c47d124f, 0xeb44accab455d165, 0x853c49e6748fea9b};

static uint32_t
hash_key(const struct flow_key *k)
{
    uint64_t h = 0;
    for (int i = 0; i < KEY_WORDS; i += 2)
        h ^= mix2(k->w[i] ^ salt[i], k->w[i + 1] ^ salt[i + 1]);
    h *= UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(h >> 32) | 1;
}

/* The index of the set's first entry. */
static inline uint32_t
set_of(const struct flow_cache *c, uint32_t hash)
{
    return (hash >> 1 & c->mask) * c->ways;
}

static bool
still_holds(const struct cache_entry *e, struct tables *t)
{
    for (int i = 0; i < e->n; i++)
        if (tables_generation(t, e->table[i]) != e->generation[i])
            return false;
    return e->n;
}

/* Where a new key goes: an empty entry, else that of another key. */
static uint32_t
make_room(struct flow_cache *c, uint32_t set)
{
    for (uint32_t i = 0; i < c->ways; i++)
        if (!c->tag[set + i]) {
            counter_add(&c->used, 1);
            return set + i;
        }
    return set + c->victim++ % c->ways;
}

static struct cache_entry *
get(struct flow_cache *c, struct tables *t, const struct flow_key *key, uint32_t hash)
{
    uint32_t set = set_of(c, hash);
    for (uint32_t i = set; i < set + c->ways; i++) {
        struct cache_entry *e = &c->entry[i];
        if (c->tag[i] != hash || memcmp(&e->key, key, sizeof *key))
            continue;
        if (!still_holds(e, t))
            e->n = 0;
        return e;
    }
    uint32_t at = make_room(c, set);
    struct cache_entry *e = &c->entry[at];
    c->tag[at] = hash;
    e->key = *key;
    e->n = 0;
    return e;
}

/* Prefetched keys come in the same order, but some may be left out.  If the memory of one holds
 * another key by now, the hash is wrong.  That only costs an entry that nobody finds.  0: the key
 * was not prefetched. */
static uint32_t
known_hash(struct flow_cache *c, const struct flow_key *key)
{
    for (unsigned i = c->ahead; i < c->n_ahead; i++)
        if (c->ahead_key[i] == key) {
            c->ahead = i + 1;
            return c->ahead_hash[i];
        }
    return 0;
}

/* Of a key that flow_cache_prefetch has not counted. */
__attribute__((noinline)) static struct cache_entry *
get_counted(struct flow_cache *c, struct tables *t, const struct flow_key *key)
{
    struct cache_entry *e = get(c, t, key, hash_key(key));
    counter_add(e->n ? &c->hits : &c->misses, 1);
    return e;
}

struct cache_entry *
flow_cache_get(struct flow_cache *c, struct tables *t, const struct flow_key *key)
{
    uint32_t hash = known_hash(c, key);
    return hash ? get(c, t, key, hash) : get_counted(c, t, key);
}

/* ------------------------------------------------------------------ prefetching */

static inline void
fetch(const void *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        __builtin_prefetch((const uint8_t *)p + i);
}

static const struct cache_entry *
probable_entry(const struct flow_cache *c, uint32_t hash)
{
    uint32_t set = set_of(c, hash);
    for (uint32_t i = set; i < set + c->ways; i++)
        if (c->tag[i] == hash)
            return &c->entry[i];
    return NULL;
}

static void
fetch_flows(const struct cache_entry *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->flow[i])
            fetch(&e->flow[i]->priority, 2 * 64);
}

static void
fetch_programs(const struct cache_entry *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->flow[i])
            fetch(flow_program(e->flow[i]), sizeof(struct program) + 16);
}

/* A key that has no entry, on its way through the tables. */
struct walk {
    uint8_t key;          /* its index */
    uint8_t table;        /* the next one */
    bool whole;           /* all steps that may be remembered are in `e` */
    struct cache_entry e; /* without the key */
};

/* Goes on to the next table.  False: there is none, or the key there isn't known. */
static bool
go_on(struct walk *w, const struct flow *f)
{
    const struct program *p = f ? flow_program(f) : NULL;
    w->whole =
        !p || p->goto_table == NO_TABLE || p->key_effect == KEY_UNKNOWN || w->e.n == CACHE_STEPS;
    if (w->whole || p->key_effect != KEY_KEPT)
        return false;
    w->table = p->goto_table;
    return true;
}

/* Looks up all keys that are at the first one's table.  Fills `rest` with those of other tables and
 * those that go on, and returns how many they are. */
static unsigned
step_together(struct tables *t, struct walk *const list[], unsigned n,
              const struct flow_key *const keys[], struct walk *rest[])
{
    uint8_t table = list[0]->table;
    struct walk *mine[CACHE_AHEAD];
    const struct flow_key *key[CACHE_AHEAD];
    struct flow *found[CACHE_AHEAD];
    unsigned m = 0, left = 0;
    for (unsigned i = 0; i < n; i++) {
        if (list[i]->table != table) {
            rest[left++] = list[i];
            continue;
        }
        key[m] = keys[list[i]->key];
        mine[m++] = list[i];
    }
    const struct flow_table *ft = tables_get(t, table);
    uint32_t generation = tables_generation(t, table);
    if (!ft)
        return left;
    classifier_lookup_batch(&ft->flows, key, m, found);
    for (unsigned i = 0; i < m; i++) {
        flow_cache_step(&mine[i]->e, table, generation, found[i]);
        if (found[i])
            fetch(flow_program(found[i]), sizeof(struct program) + 16);
    }
    for (unsigned i = 0; i < m; i++)
        if (go_on(mine[i], found[i]))
            rest[left++] = mine[i];
    return left;
}

static void
walk_tables(struct flow_cache *c, struct tables *t, const struct flow_key *const keys[],
            const uint32_t *hash, struct walk *walk, unsigned n)
{
    struct walk *a[CACHE_AHEAD], *b[CACHE_AHEAD], **list = a, **rest = b;
    for (unsigned i = 0; i < n; i++)
        list[i] = &walk[i];
    for (unsigned left = n; left;) {
        left = step_together(t, list, left, keys, rest);
        struct walk **other = list;
        list = rest;
        rest = other;
    }
    for (unsigned i = 0; i < n; i++) {
        if (!walk[i].whole)
            continue;
        struct cache_entry *e = get(c, t, keys[walk[i].key], hash[walk[i].key]);
        if (e->n)
            continue; /* the batch has the key twice */
        memcpy(e->table, walk[i].e.table, sizeof e->table);
        memcpy(e->generation, walk[i].e.generation, sizeof e->generation);
        memcpy(e->flow, walk[i].e.flow, sizeof e->flow);
        e->n = walk[i].e.n;
    }
}

void
flow_cache_prefetch(struct flow_cache *c, struct tables *t, const struct flow_key *const keys[],
                    unsigned n)
{
    const struct cache_entry *e[CACHE_AHEAD];
    struct walk walk[CACHE_AHEAD];
    uint32_t *hash = c->ahead_hash;
    unsigned missing = 0;
    c->ahead = 0;
    c->n_ahead = n;
    for (unsigned i = 0; i < n; i++) {
        c->ahead_key[i] = keys[i];
        hash[i] = hash_key(keys[i]);
        fetch(&c->tag[set_of(c, hash[i])], 1);
    }
    for (unsigned i = 0; i < n; i++) {
        e[i] = probable_entry(c, hash[i]);
        fetch(e[i], e[i] ? sizeof *e[i] : 0);
    }
    for (unsigned i = 0; i < n; i++) {
        if (e[i] && !still_holds(e[i], t)) /* its flows may be gone */
            e[i] = NULL;
        if (e[i]) {
            fetch_flows(e[i]);
            continue;
        }
        struct walk *w = &walk[missing++];
        w->key = (uint8_t)i;
        w->table = 0;
        w->whole = false;
        w->e.n = 0;
    }
    for (unsigned i = 0; i < n; i++)
        if (e[i])
            fetch_programs(e[i]);
    counter_add(&c->hits, n - missing);
    if (!missing)
        return;
    counter_add(&c->misses, missing);
    walk_tables(c, t, keys, hash, walk, missing);
}
