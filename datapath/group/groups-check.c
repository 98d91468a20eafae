/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a group-mod. */
#include "groups-inside.h"

/* ------------------------------------------------------------------ fields */

static int
check_watch(const struct groups *g, const struct of_bucket *b)
{
    if (b->watch_port == OFPP_ANY && b->watch_group == OFPG_ANY)
        return OF_GROUP_MOD_FAILED(BAD_WATCH);
    if (b->watch_port != OFPP_ANY && !g->ops.port_exists(g->ops.env.sw, b->watch_port))
        return OF_GROUP_MOD_FAILED(BAD_WATCH);
    if (b->watch_group != OFPG_ANY && !idmap_find(&g->map, b->watch_group))
        return OF_GROUP_MOD_FAILED(BAD_WATCH);
    return 0;
}

static int
check_bucket(const struct groups *g, const struct of_group_mod *m, const struct of_bucket *b)
{
    if (m->type != OFPGT_SELECT && b->weight)
        return OF_GROUP_MOD_FAILED(INVALID_GROUP); /* only select groups have weights (6.5) */
    return m->type == OFPGT_FF ? check_watch(g, b) : 0;
}

/* A select group whose buckets all have weight 0 could never select one. */
static bool
weighs_nothing(const struct of_group_mod *m)
{
    for (uint32_t i = 0; i < m->buckets.n; i++)
        if (OF_AT(&m->buckets, i, struct of_bucket)->weight)
            return false;
    return m->type == OFPGT_SELECT && m->buckets.n;
}

/* The head of an OFPMP_GROUP_DESC reply with one group: message, multipart and entry (7.3.5.7). */
#define REPLY_HEAD (8 + 8 + 8u)

/* A reply to OFPMP_GROUP_DESC must be able to report the group.  A group-mod of 64 KiB can make one
 * that is too long, as the reply's head is longer than the group-mod's. */
static bool
fits_reply(const struct of_group_mod *m)
{
    size_t n = REPLY_HEAD;
    for (uint32_t i = 0; i < m->buckets.n; i++)
        n += 16 + (OF_AT(&m->buckets, i, struct of_bucket)->actions.raw.n + 7) / 8 * 8;
    return n <= OF_MSG_MAX;
}

int
groups_check(const struct groups *g, const struct of_group_mod *m)
{
    if (m->group_id > OFPG_MAX)
        return OF_GROUP_MOD_FAILED(INVALID_GROUP);
    if (m->type > OFPGT_FF)
        return OF_GROUP_MOD_FAILED(BAD_TYPE);
    if (m->type == OFPGT_INDIRECT && m->buckets.n != 1)
        return OF_GROUP_MOD_FAILED(INVALID_GROUP);
    if (weighs_nothing(m))
        return OF_GROUP_MOD_FAILED(INVALID_GROUP);
    if (m->buckets.n > GROUP_MAX_BUCKETS)
        return OF_GROUP_MOD_FAILED(OUT_OF_BUCKETS);
    if (!fits_reply(m))
        return OF_BAD_REQUEST(BAD_LEN);
    for (uint32_t i = 0; i < m->buckets.n; i++) {
        int err = check_bucket(g, m, OF_AT(&m->buckets, i, struct of_bucket));
        if (err)
            return err;
    }
    return 0;
}

/* ------------------------------------------------------------------ chains */

#define LOOPS (UINT32_MAX / 2)

/* One walk.  Groups are chained by their buckets' group actions, or by the groups that these watch.
 * */
struct walk {
    struct groups *g;
    struct group *gr; /* the new group: takes the place of the one with its id */
    bool watching;
};

static uint32_t chain_length(const struct walk *w, struct group *gr, uint32_t depth);

static uint32_t
chain_behind(const struct walk *w, uint32_t id, uint32_t depth)
{
    struct group *next = id == w->gr->id ? w->gr : idmap_find(&w->g->map, id);
    return next ? chain_length(w, next, depth + 1) : 0;
}

static uint32_t
chain_from_bucket(const struct walk *w, const struct bucket *b, uint32_t depth)
{
    uint32_t longest = 0;
    if (w->watching)
        return b->watched == OFPG_ANY ? 0 : chain_behind(w, b->watched, depth);
    ACTS_EACH(a, program_apply(b->program)) {
        uint32_t n = a->op == OFPAT_GROUP ? chain_behind(w, a->arg, depth) : 0;
        longest = n > longest ? n : longest;
    }
    return longest;
}

/* The length of the longest chain from `gr` on, itself included: LOOPS if it leads back, any number
 * above GROUP_MAX_DEPTH if it is longer than that.  Visits each group once a walk. */
static uint32_t
chain_length(const struct walk *w, struct group *gr, uint32_t depth)
{
    uint32_t longest = 0;
    if (gr->checked == w->g->checks)
        return gr->chain;
    gr->checked = w->g->checks;
    gr->chain = LOOPS; /* a walk that meets it before its chain is known has gone in a circle */
    for (uint32_t i = 0; i < gr->n_buckets && depth <= GROUP_MAX_DEPTH; i++) {
        uint32_t n = chain_from_bucket(w, &gr->buckets[i], depth);
        longest = n > longest ? n : longest;
    }
    gr->chain = longest < LOOPS ? longest + 1 : LOOPS;
    return gr->chain;
}

static bool
is_led_to(const struct walk *w)
{
    const struct id_refs *r = refs_find(&w->g->refs, w->gr->id);
    return r && (w->watching ? r->watchers : r->buckets);
}

/* The longest chain through the group.  Other groups' chains can only get longer if the group leads
 * to some group and another leads to it. */
static uint32_t
longest_chain(struct walk *w)
{
    uint32_t pos = 0, longest;
    w->g->checks++;
    longest = chain_length(w, w->gr, 1);
    if (longest == 1 || longest > GROUP_MAX_DEPTH || !is_led_to(w))
        return longest;
    for (struct group *other;
         (other = idmap_each(&w->g->map, &pos)) && longest <= GROUP_MAX_DEPTH;) {
        uint32_t n = other->id == w->gr->id ? 0 : chain_length(w, other, 1);
        longest = n > longest ? n : longest;
    }
    return longest;
}

int
groups_check_chains(struct groups *g, struct group *gr)
{
    struct walk acting = {g, gr, false}, watching = {g, gr, true};
    uint32_t n = longest_chain(&acting);
    if (n > GROUP_MAX_DEPTH)
        return n == LOOPS ? OF_GROUP_MOD_FAILED(LOOP) : OF_GROUP_MOD_FAILED(CHAINING_UNSUPPORTED);
    n = longest_chain(&watching);
    if (n > GROUP_MAX_DEPTH)
        return n == LOOPS ? OF_GROUP_MOD_FAILED(BAD_WATCH) : OF_GROUP_MOD_FAILED(WATCH_UNSUPPORTED);
    return 0;
}
