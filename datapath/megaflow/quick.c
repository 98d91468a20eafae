/* SPDX-License-Identifier: Apache-2.0 */
/* Rules out entries that changes of flows can't concern.  One word of a change's match rules out
 * nearly all entries (table/change-log.h).  So this word of all entries is stored side by side: a
 * change takes 30 us for 16,384 entries, and 1,700 us if each is looked at.  A word's column is
 * made when a change first asks for it. */
#include "state.h"

#include <stdlib.h>
#include <string.h>

struct offload_known {
    uint64_t key, mask;
};

/* Stores what the entry's packets have in common in all tables that they meet. */
static void
put(struct offload_known **column, unsigned first, unsigned end, const struct entry *e)
{
    const struct known_path path = entry_path(e);
    struct flow_key key = e->key, mask = e->mask;
    tables_path_keeps(&path, &key, &mask);
    for (unsigned i = first; i < end; i++)
        if (column[i])
            column[i][e->at] = (struct offload_known){key.w[i], mask.w[i]};
}

void
offload_quick_put(struct sw_offload *f, const struct entry *e)
{
    put(f->column, 0, KEY_WORDS, e);
}

void
offload_quick_move(struct sw_offload *f, uint32_t to, uint32_t from)
{
    for (unsigned i = 0; i < KEY_WORDS; i++)
        if (f->column[i])
            f->column[i][to] = f->column[i][from];
}

static bool
have_column(struct sw_offload *f, unsigned at)
{
    if (f->column[at])
        return true;
    f->column[at] = malloc(f->most * sizeof *f->column[at]);
    if (!f->column[at])
        return false;
    for (uint32_t i = 0; i < f->n_live; i++)
        put(f->column, at, at + 1, f->live[i]);
    return true;
}

/* Sets the bits of entries that the change may concern. */
static void
look(struct sw_offload *f, const struct change_tells *c)
{
    const struct offload_known *column = f->column[c->at];
    for (uint32_t i = 0; i < f->n_live; i += 64) {
        uint32_t n = f->n_live - i < 64 ? f->n_live - i : 64;
        uint64_t bits = 0;
        for (uint32_t k = 0; k < n; k++) {
            const struct offload_known *e = &column[i + k];
            bits |= (uint64_t) !((e->key ^ c->key) & e->mask & c->mask) << k;
        }
        f->maybe[i / 64] |= bits;
    }
}

bool
offload_quick_look(struct sw_offload *f)
{
    struct change_tells change[CHANGES_TOLD];
    int n = tables_change_tells(f->sw->dp.tables, f->tables, change, CHANGES_TOLD);
    if (!f->maybe)
        f->maybe = malloc((f->most + 63) / 64 * sizeof *f->maybe);
    if (n < 0 || !f->maybe)
        return false;
    memset(f->maybe, 0, (f->n_live + 63) / 64 * sizeof *f->maybe);
    for (int i = 0; i < n; i++) {
        if (!have_column(f, change[i].at))
            return false;
        look(f, &change[i]);
    }
    return true;
}

void
offload_quick_free(struct sw_offload *f)
{
    for (unsigned i = 0; i < KEY_WORDS; i++)
        free(f->column[i]);
    free(f->maybe);
}
