/* SPDX-License-Identifier: Apache-2.0 */
#include "change-log.h"

#include <classifier/classifier.h>
#include <table/tables.h>

#include <stdlib.h>
#include <string.h>

#define BLOCK_CHANGES 512
#define BLOCK_WORDS   4096

struct masked {
    uint64_t mask, key;
};

/* Nearly no change that a reader looks at concerns its packets, and one word is enough to tell:
 * the one in which the mask has the most bits.  So these words lie together in `tells`. The
 * others are at `rest`: for each change a word with their number and their indices, 4 bits each,
 * then each one's mask and key.  Readers see only what is before the head, and that never
 * changes. */
struct change_block {
    struct change_block *older; /* freed once the block is no longer the newest */
    change_number first;
    uint32_t n, words;
    struct masked tells[BLOCK_CHANGES];
    uint8_t at[BLOCK_CHANGES]; /* its index in the key */
    uint8_t table[BLOCK_CHANGES];
    uint16_t rest[BLOCK_CHANGES]; /* where in `word` */
    uint64_t word[BLOCK_WORDS];
};

void
change_log_free(struct change_log *l)
{
    if (l->blocks)
        free(l->blocks->older);
    free(l->blocks);
    *l = (struct change_log){0};
}

/* A block with room for a change.  NULL: no memory, and readers can't learn of the change. */
static struct change_block *
block_for(struct change_log *l, unsigned words)
{
    struct change_block *b = l->blocks;
    if (b && b->n < BLOCK_CHANGES && b->words + words <= BLOCK_WORDS &&
        b->first + b->n == l->last + 1)
        return b;
    struct change_block *next = malloc(sizeof *next);
    if (!next)
        return NULL;
    next->older = b;
    next->first = l->last + 1;
    next->n = next->words = 0;
    rcu_assign_pointer(l->blocks, next);
    if (b && b->older)
        rcu_defer_free(b->older);
    return next;
}

/* The index of the subtable's word with the most bits; of equal ones the last, as addresses and
 * ports are in the later words. */
static unsigned
telling_word(const struct subtable *s)
{
    unsigned best = 0;
    for (unsigned i = 1; i < s->n_words; i++)
        if (__builtin_popcountll(s->mask_word[i]) >= __builtin_popcountll(s->mask_word[best]))
            best = i;
    return best;
}

static void
write_change(struct change_block *b, const struct flow *f)
{
    const struct subtable *s = f->sub;
    unsigned tells = telling_word(s), n = 0;
    uint64_t *w = b->word + b->words, indices = 0;
    b->table[b->n] = f->table_id;
    b->rest[b->n] = (uint16_t)b->words;
    b->at[b->n] = s->n_words ? s->word[tells] : 0;
    b->tells[b->n] = (struct masked){0, 0}; /* an empty mask: any packet's */
    for (unsigned i = 0; i < s->n_words; i++) {
        struct masked m = {s->mask_word[i], f->key_and_counters[i]};
        if (i == tells) {
            b->tells[b->n] = m;
            continue;
        }
        indices |= (uint64_t)s->word[i] << 4 * n;
        w[1 + 2 * n] = m.mask;
        w[2 + 2 * n++] = m.key;
    }
    w[0] = indices << 4 | n;
    b->words += 1 + 2 * n;
}

void
change_log_write(struct change_log *l, const struct flow *f)
{
    struct change_block *b = block_for(l, 1 + 2 * f->sub->n_words);
    if (b) {
        write_change(b, f);
        store_relaxed(&b->n, b->n + 1);
    }
    store_relaxed(&l->of_table[f->table_id], ++l->last);
}

void
change_log_publish(struct change_log *l)
{
    for (unsigned side = 0; side < 2; side++)
        if (!change_set_active() || side != change_set_now / CHANGE_SET_SIDE)
            store_release(&l->head[side], l->last);
}

change_number
change_log_head(const struct change_log *l)
{
    return load_acquire(&l->head[change_set_side == CHANGE_SET_SIDE]);
}

/* Compares the words beside the telling one. */
static bool
rest_concerns(const struct change_block *b, unsigned i, const struct change_query *q)
{
    const uint64_t *w = &b->word[b->rest[i]];
    uint64_t indices = w[0] >> 4;
    if (!memchr(q->table, b->table[i], q->n_tables))
        return false;
    for (unsigned n = w[0] & 15; n; n--, indices >>= 4, w += 2)
        if ((q->key->w[indices & 15] ^ w[2]) & q->mask->w[indices & 15] & w[1])
            return false;
    return true;
}

/* Of the changes `first` to `last`.  True also if the block lacks some of them. */
static bool
some_concern(const struct change_block *b, change_number first, change_number last,
             const struct change_query *q)
{
    if (!b || first - b->first > last - b->first || last - b->first >= load_relaxed(&b->n))
        return true; /* LCOV_EXCL_LINE: luck: two workers at one moment */
    unsigned end = (unsigned)(last - b->first) + 1;
    for (unsigned i = (unsigned)(first - b->first); i < end; i++) {
        unsigned at = b->at[i];
        uint64_t differs = (q->key->w[at] ^ b->tells[i].key) & q->mask->w[at] & b->tells[i].mask;
        if (__builtin_expect(!differs, 0) && rest_concerns(b, i, q))
            return true;
    }
    return false;
}

/* None of the tables has changed after `from`.  One that has, but not up to the reader's head, counts too. */
static bool
are_untouched(const struct change_log *l, change_number from, const struct change_query *q)
{
    for (unsigned i = 0; i < q->n_tables; i++)
        if ((signed long)(load_relaxed(&l->of_table[q->table[i]]) - from) > 0)
            return false;
    return true;
}

static bool
begins_in(const struct change_block *b, change_number i)
{
    return i - b->first < BLOCK_CHANGES;
}

bool
change_log_concerns(const struct change_log *l, change_number from, change_number to,
                    const struct change_query *q)
{
    const struct change_block *b = rcu_dereference(l->blocks);
    if (to == from || are_untouched(l, from, q))
        return false;
    if (to - from > CHANGES_TOLD || !b)
        return true;
    if (begins_in(b, from + 1))
        return some_concern(b, from + 1, to, q);
    if (!begins_in(b, to))
        return some_concern(b->older, from + 1, to, q); /* LCOV_EXCL_LINE: luck: two at once */
    return some_concern(b->older, from + 1, b->first - 1, q) || some_concern(b, b->first, to, q);
}

int
change_log_tells(const struct change_log *l, change_number from, struct change_tells *to,
                 unsigned n)
{
    change_number count = l->last - from;
    if (count > n || count > CHANGES_TOLD)
        return -1;
    for (change_number i = 0; i < count; i++) {
        const struct change_block *b = l->blocks;
        if (b && !begins_in(b, from + 1 + i))
            b = b->older;
        if (!b || from + 1 + i - b->first >= b->n)
            return -1;
        change_number k = from + 1 + i - b->first;
        to[i] = (struct change_tells){b->tells[k].key, b->tells[k].mask, b->at[k]};
    }
    return (int)count;
}
