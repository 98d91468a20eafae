/* SPDX-License-Identifier: Apache-2.0 */
#include <dataplane/offload-sample.h>

#include <dataplane/dp.h>
#include <packet/key-hash.h>
#include <shared/rcu.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SETS       256 /* of WAYS places: 1,024 kinds */
#define WAYS       4
#define RING_BYTES (128u << 10)
#define TICK(ns)   ((uint32_t)((ns) >> 20)) /* about a millisecond */
#define FIRST_WAIT 10
#define LAST_WAIT  1000
#define RECENT     4000 /* ticks: who came since then keeps its place */
#define SELDOM     16   /* but for one in so many that are new */

/* A kind of packets.  It may be asked for again when `due` has come. */
struct place {
    uint32_t hash;
    uint32_t due;  /* tick */
    uint32_t seen; /* tick in which it came last */
    uint16_t wait; /* ticks; 0: it was not asked for yet */
    bool used;
};

struct offload_sample {
    struct place place[SETS][WAYS];
    struct ring *ring; /* struct offload_request, to the control thread */
    uint32_t tick, victim;
    uint32_t random;
    unsigned round;  /* requests that are left in this round */
    unsigned second; /* and until `refill` */
    uint64_t refill; /* ns */
    struct sample_counts counts;
};

_Static_assert(SETS *WAYS * sizeof(struct place) <= 16 << 10, "it stays in a first-level cache");

struct offload_sample *
sample_new(void)
{
    struct offload_sample *s = calloc(1, sizeof *s);
    if (s && !(s->ring = ring_new(RING_BYTES, 0))) {
        free(s);
        return NULL;
    }
    return s;
}

void
sample_free(struct offload_sample *s)
{
    if (!s)
        return;
    ring_free(s->ring);
    free(s);
}

struct sample_counts
sample_counts(const struct offload_sample *s)
{
    return (struct sample_counts){.asked = counter_read(&s->counts.asked),
                                  .merged = counter_read(&s->counts.merged),
                                  .over = counter_read(&s->counts.over)};
}

/* ------------------------------------------------------------------ asking (worker) */

void
sample_begin(struct offload_sample *s, uint64_t now)
{
    s->tick = TICK(now);
    s->round = SAMPLE_ROUND;
    if (now < s->refill)
        return;
    s->second = SAMPLE_SECOND;
    s->refill = now + UINT64_C(1000000000);
}

static bool
put(struct offload_sample *s, const struct packet *p, bool behind)
{
    struct offload_request *r = NULL;
    if (s->round && s->second)
        r = ring_reserve(s->ring, sizeof *r, 0);
    if (!r) {
        counter_add(&s->counts.over, 1);
        return false;
    }
    *r = (struct offload_request){.key = p->key, .in_port = p->in_port, .behind = behind};
    ring_publish(s->ring);
    s->round--;
    s->second--;
    counter_add(&s->counts.asked, 1);
    return true;
}

/* How well a new kind may have the place. */
static unsigned
vacancy(const struct offload_sample *s, const struct place *at)
{
    return !at->used ? 3 : s->tick - at->seen >= RECENT ? 2 : at->wait ? 1 : 0;
}

/* Where a new kind goes.  If more kinds come in turn than there are places, and each took the place of an older one, none would be
 * there any more when it comes again (10,000 customers of an ISP: hardly one of them got an entry).  So those that wait for their
 * second packet keep their places but for one in SELDOM that are new.  The others have the first place of each set, one after the
 * other: whose second packet comes soon is asked for with it. */
static struct place *
place_for_new(struct offload_sample *s, struct place *set)
{
    struct place *at = &set[0];
    for (unsigned i = 1; i < WAYS; i++)
        if (vacancy(s, &set[i]) > vacancy(s, at))
            at = &set[i];
    if (vacancy(s, at))
        return at;
    s->random = s->random * 1664525u + 1013904223u; /* Numerical Recipes' */
    return s->random >> 16 & (SELDOM - 1) ? at : &set[1 + s->victim++ % (WAYS - 1)];
}

static struct place *
find(struct offload_sample *s, uint32_t hash)
{
    struct place *set = s->place[hash % SETS];
    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].hash == hash && set[i].used) {
            set[i].seen = s->tick;
            return &set[i];
        }
    *place_for_new(s, set) = (struct place){.hash = hash, .seen = s->tick, .used = true};
    return NULL;
}

static bool
is_due(const struct offload_sample *s, const struct place *at)
{
    uint32_t left = at->due - s->tick;
    return !at->wait || !left || left > LAST_WAIT;
}

/* A kind that comes again after a long silence begins anew. */
static void
put_off(const struct offload_sample *s, struct place *at)
{
    uint32_t late = s->tick - at->due;
    uint32_t wait = at->wait && late < LAST_WAIT ? at->wait * 2u : FIRST_WAIT;
    at->wait = (uint16_t)(wait > LAST_WAIT ? LAST_WAIT : wait);
    at->due = s->tick + at->wait;
}

/* Returns whether there is a request more. */
static inline bool
look_at(struct offload_sample *s, const struct offload_kinds *k, bool behind,
        const struct packet *p)
{
    struct place *at = find(s, key_hash_words(&p->key, k->word, k->bits, k->n) ^ behind);
    if (__builtin_expect(packet_is_merged(p), 0))
        counter_add(&s->counts.merged, 1); /* the control thread knows what workers serve better */
    if (!at || !is_due(s, at) || !put(s, p, behind))
        return false;
    put_off(s, at);
    return true;
}

bool
sample_batch(struct offload_sample *s, const struct offload_kinds *k, bool behind,
             const struct packet *batch, unsigned n)
{
    bool more = false;
    for (unsigned i = 0; i < n; i++)
        if (!batch[i].malformed)
            more |= look_at(s, k, behind, &batch[i]);
    return more;
}

const struct offload_request *
sample_peek(struct offload_sample *s)
{
    uint32_t n;
    return ring_peek(s->ring, &n);
}

void
sample_take(struct offload_sample *s)
{
    ring_release(s->ring);
}

/* ------------------------------------------------------------------ what kinds are (control thread) */

static void
bits_that_matter(const struct tables *t, const struct flow_key *more, struct flow_key *all)
{
    tables_used(t, all);
    for (int i = 0; more && i < KEY_WORDS; i++)
        all->w[i] |= more->w[i];
    /* No packet has these when it comes in, or its port implies them. */
    memset(all->metadata, 0, sizeof all->metadata);
    memset(all->tunnel_id, 0, sizeof all->tunnel_id);
    memset(all->in_phy_port, 0, sizeof all->in_phy_port);
    memset(all->in_port, 0xff, sizeof all->in_port);
    all->fragment = 0xff; /* entries are for fragments, or for others */
}

static struct offload_kinds *
kinds_new(const struct flow_key *all)
{
    struct offload_kinds *k = calloc(1, sizeof *k);
    if (!k)
        return NULL;
    k->all = *all;
    for (uint8_t i = 0; i < KEY_WORDS; i++)
        if (all->w[i]) {
            k->word[k->n] = i;
            k->bits[k->n++] = all->w[i];
        }
    return k;
}

int
dp_set_kinds(struct dp *dp, bool on, const struct flow_key *more)
{
    struct offload_kinds *old = dp->kinds, *now = NULL;
    struct flow_key all;
    if (on) {
        bits_that_matter(dp->tables, more, &all);
        if (old && !memcmp(&old->all, &all, sizeof all))
            return 0;
        if (!(now = kinds_new(&all)))
            return -ENOMEM;
    }
    rcu_assign_pointer(dp->kinds, now);
    if (old)
        rcu_defer_free(old);
    return 0;
}
