/* SPDX-License-Identifier: Apache-2.0 */
/* Walks keys that the flow cache doesn't know through the tables: all of them together, table by
 * table. */
#include "flow-cache-inside.h"

#include <string.h>

/* Which bits of the key a lookup depended on: not noted, as a worker notes them, as few as the control thread can say. */
enum notes { NO_NOTES, NOTES, FEW_NOTES };

/* Makes the key what it is after the flow's program. */
static void
rekey(struct cache_walk *w, const struct program *p)
{
    if (!w->rekeyed) {
        w->now.key = *w->key;
        w->now.known = (struct flow_key){0};
        w->now.wc = &w->wc;
        w->key = &w->now.key;
        w->rekeyed = true;
    }
    program_rekey(p, &w->now);
}

/* A meter may remark the packet or not, depending on its rate, so its effect is unknown. */
static enum key_effect
effect_of(const struct cache_walk *w, const struct program *p)
{
    return p->meter_id && !w->no_remarks ? KEY_UNKNOWN : (enum key_effect)p->key_effect;
}

/* False: the path ends here, or what follows isn't known. */
static bool
go_on(struct cache_walk *w, const struct program *p)
{
    if (!p || p->goto_table == NO_TABLE || w->path->n == CACHE_STEPS)
        return false;
    enum key_effect effect = effect_of(w, p);
    if (effect == KEY_UNKNOWN)
        return false;
    if (effect == KEY_FOLLOWS)
        rekey(w, p);
    w->table = p->goto_table;
    return true;
}

/* Notes the bits that lookups depended on, except those that an action has set: they say nothing
 * about the packet. */
static void
note_bits(struct cache_walk *w)
{
    if (!w->rekeyed)
        return;
    for (int i = 0; i < KEY_WORDS; i++)
        w->wc.w[i] |= w->step_wc.w[i] & ~w->now.known.w[i];
    w->step_wc = (struct flow_key){0};
}

static void
add_step(struct flow_path *path, uint8_t table, struct flow *f)
{
    const struct program *p = f ? flow_program(f) : NULL;
    path->table[path->n] = table;
    path->step[path->n++] = (struct path_step){f, p};
    cache_fetch_program(p);
}

/* Looks up all keys that are at the first one's table.  Fills `rest` with those of other tables and
 * those that go on, and returns how many they are. */
static unsigned
step_together(struct tables *t, struct cache_walk *const list[], unsigned n, enum notes notes,
              struct cache_walk *rest[])
{
    uint8_t table = list[0]->table;
    struct cache_walk *mine[CACHE_AHEAD];
    const struct flow_key *key[CACHE_AHEAD];
    struct flow_key *wc[CACHE_AHEAD];
    struct flow *found[CACHE_AHEAD];
    unsigned m = 0, left = 0;
    for (unsigned i = 0; i < n; i++) {
        if (list[i]->table != table) {
            rest[left++] = list[i];
            continue;
        }
        key[m] = list[i]->key;
        wc[m] = list[i]->rekeyed ? &list[i]->step_wc : &list[i]->wc;
        mine[m++] = list[i];
    }
    const struct flow_table *ft = tables_get(t, table);
    if (!ft)
        return left; /* LCOV_EXCL_LINE: luck: two workers at one moment */
    classifier_lookup_batch(&ft->flows, key, m, found, notes == NOTES ? wc : NULL);
    for (unsigned i = 0; i < m; i++) {
        if (notes == FEW_NOTES)
            classifier_depends(&ft->flows, key[i], found[i], wc[i]);
        if (notes)
            note_bits(mine[i]);
        add_step(mine[i]->path, table, found[i]);
    }
    for (unsigned i = 0; i < m; i++)
        if (go_on(mine[i], mine[i]->path->step[mine[i]->path->n - 1].program))
            rest[left++] = mine[i];
    return left;
}

static void
walk_together(struct cache_walk *v, struct tables *t, unsigned n, enum notes notes)
{
    struct cache_walk *a[CACHE_AHEAD], *b[CACHE_AHEAD], **list = a, **rest = b;
    for (unsigned i = 0; i < n; i++) {
        struct cache_walk *w = &v[i];
        w->path->n = w->table = 0;
        w->rekeyed = false;
        if (notes)
            w->wc = w->step_wc = (struct flow_key){0};
        list[i] = w;
    }
    while (n) {
        n = step_together(t, list, n, notes, rest);
        struct cache_walk **other = list;
        list = rest;
        rest = other;
    }
}

void
cache_walk(struct flow_cache *c, struct tables *t, unsigned n, bool notes)
{
    walk_together(c->walk, t, n, notes ? NOTES : NO_NOTES);
}

bool
flow_walk(struct tables *t, const struct flow_key *key, struct flow_path *path,
          struct flow_key *bits)
{
    struct cache_walk w = {.key = key, .path = path, .no_remarks = true};
    walk_together(&w, t, 1, FEW_NOTES);
    *bits = w.wc;
    const struct program *last = path->n ? path->step[path->n - 1].program : NULL;
    return path->n && (!last || last->goto_table == NO_TABLE);
}
