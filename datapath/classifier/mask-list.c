/* SPDX-License-Identifier: Apache-2.0 */
/* The list of subtables that lookups go through, in blocks of up to 64.
 *
 * Readers see a block as it is for as long as they look at it: a change copies the blocks that it
 * touches, and the list of blocks.  A new subtable is published at once, or at the end of the open
 * change set; empty ones leave the list at the end of a turn.
 */
#include "mask-filter.h"

#include <shared/rcu.h>

#include <errno.h>
#include <string.h>

#define FILLED 48 /* subtables in a block that is made of many, so that it has room for more */
#define SPARSE 32 /* neighbours that have no more together become one */

static uint64_t listed;

uint64_t
classifier_listed(void)
{
    return listed;
}

/* ------------------------------------------------------------------ blocks */

static struct mask_block *
new_block(unsigned n)
{
    struct mask_block *b = malloc(sizeof *b + n * sizeof b->v[0]);
    if (b)
        *b = (struct mask_block){.n = n};
    return b;
}

static void
free_block(struct mask_block *b)
{
    if (b)
        free(b->filter);
    free(b);
}

/* n subtables of `b`, and `s` at the place `at` among them if it isn't NULL.  NULL: no memory. */
static struct mask_block *
block_part(const struct mask_block *b, unsigned from, unsigned n, struct subtable *s, unsigned at)
{
    struct mask_block *part = new_block(n + (s != NULL));
    if (!part)
        return NULL;
    memcpy(part->v, b->v + from, n * sizeof part->v[0]);
    if (!s) {
        part->filter = mask_filter_part(b->filter, from, n);
        return part;
    }
    memmove(part->v + at + 1, part->v + at, (n - at) * sizeof part->v[0]);
    part->v[at] = (struct subtable_bound){s, s->max_priority};
    if (part->n & (part->n - 1)) {
        part->filter = mask_filter_part(b->filter, from, n);
        if (part->filter)
            mask_filter_insert(part->filter, at, s);
    } else {
        part->filter = mask_filter_new(part); /* other nibbles may be better by now */
    }
    return part;
}

static struct mask_block *
block_without(const struct mask_block *b, unsigned at)
{
    struct mask_block *w = block_part(b, 0, b->n, NULL, 0);
    if (!w)
        return NULL;
    w->n--;
    memmove(w->v + at, w->v + at + 1, (w->n - at) * sizeof w->v[0]);
    if (w->filter)
        mask_filter_remove(w->filter, at);
    return w;
}

static unsigned
place_in(const struct mask_block *b, const struct subtable *s)
{
    unsigned at = 0;
    while (at < b->n && b->v[at].sub != s)
        at++;
    return at;
}

/* ------------------------------------------------------------------ publishing */

static struct mask_list *
new_list(uint32_t n)
{
    struct mask_list *l = malloc(sizeof *l + n * sizeof l->block[0]);
    if (l)
        l->n = n;
    return l;
}

/* Tells the subtables which block they are in. */
static void
settle(struct mask_block *b)
{
    listed += b->n;
    for (unsigned i = 0; i < b->n; i++) {
        b->v[i].sub->block = b;
        b->v[i].sub->bound = b->v[i].max_priority;
    }
}

static void
publish(struct classifier *c, struct mask_list *l)
{
    l->masks = 0;
    for (uint32_t i = 0; i < l->n; i++)
        l->masks += l->block[i]->n;
    rcu_assign_pointer(c->subs, l);
}

/* Frees the block after a list without it was published: later or, if there is no memory to
 * defer that, at once after a grace period. */
static void
retire(struct mask_block *b)
{
    if (b->filter)
        rcu_defer_free(b->filter);
    rcu_defer_free(b);
}

/* Puts n_v blocks in the place of n old ones.  Takes them over: it frees them if there is no memory,
 * or one of them is NULL. */
static int
replace(struct classifier *c, unsigned at, unsigned n, struct mask_block *const v[], unsigned n_v)
{
    struct mask_list *old = c->subs;
    uint32_t old_n = old ? old->n : 0;
    struct mask_list *l = new_list(old_n - n + n_v);
    for (unsigned i = 0; i < n_v; i++)
        if (!v[i]) {
            free(l);
            l = NULL;
        }
    if (!l) {
        for (unsigned i = 0; i < n_v; i++)
            free_block(v[i]);
        return -ENOMEM;
    }
    if (old) {
        memcpy(l->block, old->block, at * sizeof l->block[0]);
        memcpy(l->block + at + n_v, old->block + at + n, (old_n - at - n) * sizeof l->block[0]);
    }
    for (unsigned i = 0; i < n_v; i++) {
        l->block[at + i] = v[i];
        settle(v[i]);
    }
    publish(c, l);
    for (unsigned i = 0; i < n; i++)
        retire(old->block[at + i]);
    if (old)
        rcu_defer_free(old);
    return 0;
}

/* ------------------------------------------------------------------ one subtable */

/* Where a subtable belongs: behind all that have its bound or a higher one. */
struct place {
    unsigned block, at;
};

static struct place
place_of(const struct mask_list *l, const struct subtable *s)
{
    struct place p = {0};
    while (p.block + 1 < l->n &&
           l->block[p.block]->v[l->block[p.block]->n - 1].max_priority >= s->max_priority)
        p.block++;
    const struct mask_block *b = l->block[p.block];
    while (p.at < b->n && b->v[p.at].max_priority >= s->max_priority)
        p.at++;
    if (!p.at && p.block && l->block[p.block - 1]->n < MASK_BLOCK)
        p = (struct place){p.block - 1, l->block[p.block - 1]->n};
    return p;
}

static int
put_in(struct classifier *c, struct subtable *s, struct place p)
{
    const struct mask_block *b = c->subs->block[p.block];
    const unsigned half = MASK_BLOCK / 2;
    if (s->block == b) { /* it moves to the front */
        struct mask_block *rest = block_without(b, place_in(b, s)), *v = NULL;
        if (rest)
            v = block_part(rest, 0, rest->n, s, p.at);
        free_block(rest);
        return replace(c, p.block, 1, &v, 1);
    }
    if (b->n < MASK_BLOCK) {
        struct mask_block *v = block_part(b, 0, b->n, s, p.at);
        return replace(c, p.block, 1, &v, 1);
    }
    if (!p.at || p.at == MASK_BLOCK) { /* rising or falling priorities leave full blocks */
        struct mask_block *v = block_part(b, 0, 0, s, 0);
        return replace(c, p.block + (p.at > 0), 0, &v, 1);
    }
    bool second = p.at > half;
    struct mask_block *v[] = {block_part(b, 0, half, second ? NULL : s, p.at),
                              block_part(b, half, half, second ? s : NULL, p.at - half)};
    return replace(c, p.block, 1, v, 2);
}

static struct mask_block *
joined(const struct mask_block *a, const struct mask_block *b)
{
    struct mask_block *j = new_block(a->n + b->n);
    if (!j)
        return NULL;
    memcpy(j->v, a->v, a->n * sizeof j->v[0]);
    memcpy(j->v + a->n, b->v, b->n * sizeof j->v[0]);
    j->filter = mask_filter_new(j);
    return j;
}

/* The subtable has moved away from the block, which may be replaced already.  Without memory it is
 * searched twice until classifier_tidy. */
static void
take_from(struct classifier *c, const struct mask_block *old, const struct subtable *s)
{
    const struct mask_list *l = c->subs;
    unsigned i = 0;
    while (i < l->n && l->block[i] != old)
        i++;
    c->untidy = true;
    struct mask_block *v = i < l->n ? block_without(old, place_in(old, s)) : NULL;
    const struct mask_block *next = v && i + 1 < l->n ? l->block[i + 1] : NULL;
    if (!v)
        return;
    if (!v->n) {
        free_block(v);
        replace(c, i, 1, NULL, 0);
    } else if (next && v->n + next->n <= SPARSE) {
        struct mask_block *both = joined(v, next);
        free_block(v);
        replace(c, i, 2, &both, 1);
    } else {
        replace(c, i, 1, &v, 1);
    }
}

static int
publish_one(struct classifier *c, struct subtable *s)
{
    const struct mask_block *was = s->block;
    if (!c->subs || !c->subs->n) {
        struct mask_block *v = new_block(1);
        if (v)
            v->v[0] = (struct subtable_bound){s, s->max_priority};
        return replace(c, 0, 0, &v, 1);
    }
    struct place p = place_of(c->subs, s);
    bool same = was == c->subs->block[p.block];
    int err = put_in(c, s, p);
    if (!err && was && !same)
        take_from(c, was, s);
    return err;
}

/* ------------------------------------------------------------------ all that is due */

/* What publish_all needs, so that it can't fail. */
struct mask_room {
    uint32_t masks, blocks;
    struct subtable_bound *in;  /* what comes into the list, or to another place in it */
    struct subtable_bound *run; /* what goes into new blocks */
    uint32_t n_in, next_in, n_run;
    struct mask_list *list;
    uint32_t n_block; /* unused ones */
    struct mask_block *block[];
};

static void
free_room(struct mask_room *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; i < r->n_block; i++)
        free(r->block[i]);
    free(r->in);
    free(r->run);
    free(r->list);
    free(r);
}

static struct mask_room *
new_room(const struct classifier *c, uint32_t masks)
{
    /* Between two blocks that stay, there is at most one that isn't full. */
    uint32_t old = c->subs ? c->subs->n : 0, blocks = old + 1 + masks / FILLED;
    struct mask_room *r = calloc(1, sizeof *r + blocks * sizeof r->block[0]);
    if (!r)
        return NULL;
    r->masks = masks;
    r->in = malloc((masks + 1) * sizeof r->in[0]);
    r->run = malloc((masks + 1) * sizeof r->run[0]);
    r->list = new_list(old + blocks);
    while (r->n_block < blocks && (r->block[r->n_block] = new_block(MASK_BLOCK)))
        r->n_block++;
    if (!r->in || !r->run || !r->list || r->n_block < blocks) {
        free_room(r);
        return NULL;
    }
    return r;
}

static int
by_bound(const void *a, const void *b)
{
    const struct subtable_bound *x = a, *y = b;
    return (x->max_priority < y->max_priority) - (x->max_priority > y->max_priority);
}

/* Collects the subtables that aren't where they belong. */
static void
collect(struct classifier *c, struct mask_room *r)
{
    uint32_t pos = 0;
    for (struct subtable *s; (s = ptr_hash_each(&c->by_mask, &pos));) {
        if (s->n_flows && s->block && s->bound == s->max_priority)
            continue;
        s->block = NULL;
        if (s->n_flows)
            r->in[r->n_in++] = (struct subtable_bound){s, s->max_priority};
    }
    qsort(r->in, r->n_in, sizeof r->in[0], by_bound);
}

/* Makes blocks of the run, of about the same size. */
static void
end_run(struct mask_room *r)
{
    uint32_t parts = (r->n_run + FILLED - 1) / FILLED, from = 0;
    for (uint32_t i = 1; i <= parts; i++) {
        struct mask_block *b = r->block[--r->n_block];
        uint32_t to = (uint32_t)((uint64_t)r->n_run * i / parts);
        b->n = to - from;
        memcpy(b->v, r->run + from, b->n * sizeof b->v[0]);
        b->filter = mask_filter_new(b);
        settle(b);
        r->list->block[r->list->n++] = b;
        from = to;
    }
    r->n_run = 0;
}

static void
take_in(struct mask_room *r, uint32_t above)
{
    while (r->next_in < r->n_in && r->in[r->next_in].max_priority > above)
        r->run[r->n_run++] = r->in[r->next_in++];
}

/* The block stays if nothing left it and nothing comes into it. */
static bool
is_right(const struct mask_room *r, const struct mask_block *b)
{
    if (r->next_in < r->n_in && r->in[r->next_in].max_priority > b->v[b->n - 1].max_priority)
        return false;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->v[i].sub->block != b)
            return false;
    return true;
}

/* Blocks and subtables that only the old list has. */
static void
drop_rest(struct classifier *c, struct mask_list *old)
{
    uint32_t pos = 0;
    for (uint32_t i = 0; old && i < old->n; i++)
        if (old->block[i]->v[0].sub->block != old->block[i])
            retire(old->block[i]);
    for (struct subtable *s; (s = ptr_hash_each(&c->by_mask, &pos));)
        if (!s->n_flows)
            subtables_drop(c, s);
    if (old)
        rcu_defer_free(old);
}

static void
publish_all(struct classifier *c, struct mask_room *r)
{
    struct mask_list *old = c->subs;
    collect(c, r);
    r->list->n = 0;
    for (uint32_t i = 0; old && i < old->n; i++) {
        struct mask_block *b = old->block[i];
        if (is_right(r, b) && (!r->n_run || r->n_run + b->n > SPARSE)) {
            end_run(r);
            r->list->block[r->list->n++] = b;
            continue;
        }
        for (uint32_t k = 0; k < b->n; k++) {
            take_in(r, b->v[k].max_priority);
            if (b->v[k].sub->block == b)
                r->run[r->n_run++] = b->v[k];
        }
    }
    for (; r->next_in < r->n_in; r->next_in++)
        r->run[r->n_run++] = r->in[r->next_in];
    end_run(r);
    publish(c, r->list);
    drop_rest(c, old);
    r->list = NULL;
    free_room(r);
    c->untidy = false;
}

/* The end of a change set can't fail, so the memory is allocated now. */
static int
publish_later(struct classifier *c)
{
    if (!c->spare || c->spare->masks < c->by_mask.used) {
        struct mask_room *r = new_room(c, c->by_mask.used * 2);
        if (!r)
            return -ENOMEM;
        free_room(c->spare);
        c->spare = r;
    }
    c->stale = true;
    change_set_at_end(&c->at_end);
    return 0;
}

static void
end_of_change_set(void *owner)
{
    struct classifier *c = owner;
    struct mask_room *r = c->spare;
    c->stale = false;
    c->spare = NULL;
    publish_all(c, r);
}

int
mask_list_publish(struct classifier *c, struct subtable *s)
{
    return change_set_active() ? publish_later(c) : publish_one(c, s);
}

void
classifier_tidy(struct classifier *c)
{
    struct mask_room *r = c->untidy && !c->stale ? new_room(c, c->by_mask.used) : NULL;
    if (r) /* without memory the list stays, longer than need be */
        publish_all(c, r);
}

void
mask_list_init(struct classifier *c)
{
    c->at_end = (struct change_set_last){.fn = end_of_change_set, .owner = c};
}

void
mask_list_free(struct classifier *c)
{
    for (uint32_t i = 0; c->subs && i < c->subs->n; i++)
        free_block(c->subs->block[i]);
    free(c->subs);
    free_room(c->spare);
}

/* ------------------------------------------------------------------ flows */

static void
renew_filter(struct mask_block *b)
{
    struct mask_filter *old = b->filter;
    rcu_assign_pointer(b->filter, mask_filter_new(b));
    if (old)
        rcu_defer_free(old);
}

static void
count_change(struct mask_block *b)
{
    if (b->filter && ++b->filter->changes && mask_filter_is_worn(b->filter))
        renew_filter(b);
}

void
mask_list_key_comes(struct subtable *s, const struct flow *f)
{
    if (s->is_large)
        return;
    s->is_large = s->heads.used == MASK_FILTER_FLOWS;
    if (!s->block)
        return;
    count_change(s->block); /* may make a new filter, which doesn't know f */
    if (s->block->filter)
        mask_filter_add(s->block->filter, place_in(s->block, s), s, f);
}

void
mask_list_key_went(struct subtable *s)
{
    bool shrank = s->is_large && s->heads.used <= MASK_FILTER_FLOWS / 2;
    if (shrank)
        s->is_large = false;
    if (shrank && s->block)
        renew_filter(s->block);
    else if (!s->is_large && s->block)
        count_change(s->block);
}
