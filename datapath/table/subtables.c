/* SPDX-License-Identifier: Apache-2.0 */
/* The subtables of a classifier, and the list of them that lookups go through.
 *
 * Publishing a list costs a copy of it.  A new subtable is published at once, or at the end of the
 * open change set; empty ones leave the list at the end of a turn.
 */
#include "classifier-inside.h"

#include <shared/rcu.h>

#include <errno.h>
#include <string.h>
#include <sys/random.h>

uint64_t subtables_seed;

static uint64_t listed;

uint64_t
classifier_listed(void)
{
    return listed;
}

static uint32_t
flow_hash(const void *f)
{
    return ((const struct flow *)f)->hash;
}

static uint32_t
mask_hash(const struct flow_key *mask)
{
    uint64_t h = subtables_seed;
    for (int i = 0; i < KEY_WORDS; i++)
        h = key_mix(h, mask->w[i]);
    return key_fold(h);
}

static uint32_t
subtable_hash(const void *s)
{
    return mask_hash(&((const struct subtable *)s)->mask);
}

/* ------------------------------------------------------------------ beginning and end */

static void end_of_change_set(void *owner);

void
subtables_init(struct classifier *c)
{
    ptr_hash_init(&c->by_mask, subtable_hash);
    c->at_end = (struct change_set_last){.fn = end_of_change_set, .owner = c};
    if (!subtables_seed && getrandom(&subtables_seed, sizeof subtables_seed, GRND_NONBLOCK) < 0)
        subtables_seed = (uint64_t)(uintptr_t)c;
}

static void
free_subtable(void *arg)
{
    struct subtable *s = arg;
    ptr_hash_free(&s->heads);
    free(s->prios);
    free(s);
}

void
subtables_free(struct classifier *c)
{
    uint32_t pos = 0;
    for (struct subtable *s; (s = ptr_hash_each(&c->by_mask, &pos));)
        free_subtable(s);
    free(c->subs);
    free(c->spare);
    ptr_hash_free(&c->by_mask);
}

struct subtable *
subtables_find(struct classifier *c, const struct flow_key *mask)
{
    if (c->last && !memcmp(&c->last->mask, mask, sizeof *mask))
        return c->last;
    uint32_t hash = mask_hash(mask), pos = hash;
    for (struct subtable *s;
         c->by_mask.slots && (s = ptr_hash_probe(c->by_mask.slots, hash, &pos));)
        if (!memcmp(&s->mask, mask, sizeof *mask))
            return c->last = s;
    return NULL;
}

struct subtable *
subtables_new(struct classifier *c, const struct flow_key *mask)
{
    struct subtable *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->mask = *mask;
    for (int i = 0; i < KEY_WORDS; i++) {
        if (!mask->w[i])
            continue;
        s->mask_word[s->n_words] = mask->w[i];
        s->word[s->n_words++] = (uint8_t)i;
    }
    ptr_hash_init(&s->heads, flow_hash);
    if (ptr_hash_insert(&c->by_mask, mask_hash(mask), s)) {
        free(s);
        return NULL;
    }
    return s;
}

static void
drop(struct classifier *c, struct subtable *s)
{
    ptr_hash_remove(&c->by_mask, mask_hash(&s->mask), s);
    if (c->last == s)
        c->last = NULL;
    rcu_defer(free_subtable, s);
}

void
subtables_drop_empty(struct classifier *c, struct subtable *s)
{
    if (!s->n_flows && !s->listed)
        drop(c, s);
}

struct subtable *
subtables_each(const struct classifier *c, struct subtables_pos *pos)
{
    if (c->stale)
        return ptr_hash_each(&c->by_mask, &pos->at);
    if (!pos->at)
        pos->list = c->subs; /* stays in memory if another one is published meanwhile */
    return pos->list && pos->at < pos->list->n ? pos->list->v[pos->at++].sub : NULL;
}

/* ------------------------------------------------------------------ the list */

static struct subtable_list *
new_list(uint32_t room)
{
    return malloc(sizeof(struct subtable_list) + room * sizeof(struct subtable_bound));
}

static void
publish(struct classifier *c, struct subtable_list *l)
{
    struct subtable_list *old = c->subs;
    listed += l->n;
    rcu_assign_pointer(c->subs, l);
    if (old)
        rcu_defer_free(old);
}

/* Inserts one subtable, or moves it to where its bound belongs now. */
static int
publish_one(struct classifier *c, struct subtable *s)
{
    const struct subtable_list *old = c->subs;
    uint32_t n = old ? old->n : 0, k = 0;
    struct subtable_bound b = {s, s->max_priority};
    struct subtable_list *l = new_list(n + 1);
    bool placed = false;
    if (!l)
        return -ENOMEM;
    for (uint32_t i = 0; i < n; i++) {
        if (old->v[i].sub == s)
            continue;
        if (!placed && old->v[i].max_priority < b.max_priority) {
            l->v[k++] = b;
            placed = true;
        }
        l->v[k++] = old->v[i];
    }
    if (!placed)
        l->v[k++] = b;
    l->n = k;
    s->listed = true;
    publish(c, l);
    return 0;
}

static int
by_bound(const void *a, const void *b)
{
    const struct subtable_bound *x = a, *y = b;
    return (x->max_priority < y->max_priority) - (x->max_priority > y->max_priority);
}

/* Rebuilds the list into `l`, which has room. */
static void
publish_all(struct classifier *c, struct subtable_list *l)
{
    uint32_t pos = 0;
    l->n = 0;
    for (struct subtable *s; (s = ptr_hash_each(&c->by_mask, &pos));) {
        s->listed = s->n_flows > 0;
        if (s->listed)
            l->v[l->n++] = (struct subtable_bound){s, s->max_priority};
        else
            drop(c, s);
    }
    qsort(l->v, l->n, sizeof l->v[0], by_bound);
    publish(c, l);
    c->untidy = false;
}

/* The end of a change set can't fail, so the memory is allocated now. */
static int
publish_later(struct classifier *c)
{
    if (c->spare_room < c->by_mask.used) {
        struct subtable_list *l = new_list(c->by_mask.used * 2);
        if (!l)
            return -ENOMEM;
        free(c->spare);
        c->spare = l;
        c->spare_room = c->by_mask.used * 2;
    }
    c->stale = true;
    change_set_at_end(&c->at_end);
    return 0;
}

static void
end_of_change_set(void *owner)
{
    struct classifier *c = owner;
    struct subtable_list *l = c->spare;
    c->stale = false;
    c->spare = NULL;
    c->spare_room = 0;
    publish_all(c, l);
}

int
subtables_publish(struct classifier *c, struct subtable *s)
{
    return change_set_active() ? publish_later(c) : publish_one(c, s);
}

void
classifier_tidy(struct classifier *c)
{
    struct subtable_list *l = c->untidy && !c->stale ? new_list(c->by_mask.used) : NULL;
    if (l) /* without memory the list stays, longer than need be */
        publish_all(c, l);
}
