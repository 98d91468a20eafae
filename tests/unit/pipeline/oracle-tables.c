/* SPDX-License-Identifier: Apache-2.0 */
/* Flow-mods and group-mods on lists (6.4, 6.5). */
#include "oracle.h"

#include <stdlib.h>

/* ------------------------------------------------------------------ matches */

/* The bits of a field that a match asks for; what isn't in it has none. */
static void
asked(const struct of_match *m, int f, uint8_t *value, uint8_t *mask)
{
    const struct oxm_row *row = &oxm_rows[f];
    memset(value, 0, OXM_MAX_LEN);
    memset(mask, 0, OXM_MAX_LEN);
    for (uint32_t i = 0; i < m->n; i++) {
        const struct of_oxm *o = &m->v[i];
        if (o->row->field != f)
            continue;
        memset(mask, 0xff, row->bytes);
        if (row->bits < row->bytes * 8)
            oxm_set_number(row, mask, (UINT64_C(1) << row->bits) - 1);
        for (int b = 0; b < row->bytes; b++) {
            mask[b] &= o->has_mask ? o->mask[b] : 0xff;
            value[b] = o->value[b] & mask[b];
        }
    }
}

/* Could a packet match both? */
static bool
overlap(const struct of_match *x, const struct of_match *y)
{
    uint8_t xv[OXM_MAX_LEN], xm[OXM_MAX_LEN], yv[OXM_MAX_LEN], ym[OXM_MAX_LEN];
    for (int f = 0; f < OXM_N; f++) {
        asked(x, f, xv, xm);
        asked(y, f, yv, ym);
        for (int b = 0; b < OXM_MAX_LEN; b++)
            if ((xv[b] ^ yv[b]) & xm[b] & ym[b])
                return false;
    }
    return true;
}

/* Is every packet that matches `inner` one that matches `outer`, as far as the fields tell? */
static bool
within(const struct of_match *inner, const struct of_match *outer)
{
    uint8_t iv[OXM_MAX_LEN], im[OXM_MAX_LEN], ov[OXM_MAX_LEN], om[OXM_MAX_LEN];
    for (int f = 0; f < OXM_N; f++) {
        asked(inner, f, iv, im);
        asked(outer, f, ov, om);
        for (int b = 0; b < OXM_MAX_LEN; b++)
            if (om[b] & ~im[b] || (iv[b] ^ ov[b]) & om[b])
                return false;
    }
    return true;
}

static bool
same(const struct of_match *x, const struct of_match *y)
{
    return within(x, y) && within(y, x);
}

/* ------------------------------------------------------------------ what flows refer to */

static bool
acts_have(const struct of_list *actions, uint16_t type, uint32_t arg)
{
    for (uint32_t i = 0; i < actions->n; i++) {
        const struct of_tagged *t = OF_AT(actions, i, struct of_tagged);
        if (t->row->type != type)
            continue;
        uint32_t have = type == OFPAT_OUTPUT ? ((const struct of_action_output *)t)->port
                                             : ((const struct of_action_group *)t)->group_id;
        if (have == arg)
            return true;
    }
    return false;
}

static bool
flow_has(const struct oracle_flow *f, uint16_t type, uint32_t arg)
{
    for (uint32_t i = 0; i < f->instructions->n; i++) {
        const struct of_instr_actions *a = OF_AT(f->instructions, i, struct of_instr_actions);
        if ((a->row->type == OFPIT_WRITE_ACTIONS || a->row->type == OFPIT_APPLY_ACTIONS) &&
            acts_have(&a->actions, type, arg))
            return true;
    }
    return false;
}

/* ------------------------------------------------------------------ flow-mods */

static bool
meant(const struct oracle_flow *f, const struct of_flow_mod *fm)
{
    bool strict = fm->command == OFPFC_MODIFY_STRICT || fm->command == OFPFC_DELETE_STRICT;
    bool removes = fm->command == OFPFC_DELETE || fm->command == OFPFC_DELETE_STRICT;
    if (f->table_id != fm->table_id && fm->table_id != OFPTT_ALL)
        return false;
    if ((f->cookie ^ fm->cookie) & fm->cookie_mask)
        return false;
    if (strict ? f->priority != fm->priority || !same(f->match, &fm->match)
               : !within(f->match, &fm->match))
        return false;
    if (!removes)
        return true;
    return (fm->out_port == OFPP_ANY || flow_has(f, OFPAT_OUTPUT, fm->out_port)) &&
           (fm->out_group == OFPG_ANY || flow_has(f, OFPAT_GROUP, fm->out_group));
}

static struct oracle_flow **
find(struct oracle_switch *s, const struct of_flow_mod *fm)
{
    struct oracle_flow **at = &s->flows;
    while (*at && ((*at)->table_id != fm->table_id || (*at)->priority != fm->priority ||
                   !same((*at)->match, &fm->match)))
        at = &(*at)->next;
    return at;
}

static void
take_out(struct oracle_flow **at)
{
    struct oracle_flow *f = *at;
    *at = f->next;
    free(f);
}

static int
add(struct oracle_switch *s, const struct of_flow_mod *fm)
{
    for (const struct oracle_flow *f = s->flows; f && fm->flags & OFPFF_CHECK_OVERLAP; f = f->next)
        if (f->table_id == fm->table_id && f->priority == fm->priority &&
            overlap(f->match, &fm->match))
            return OF_FLOW_MOD_FAILED(OVERLAP);
    struct oracle_flow **old = find(s, fm), *f = calloc(1, sizeof *f);
    *f = (struct oracle_flow){.table_id = fm->table_id,
                              .priority = fm->priority,
                              .flags = fm->flags,
                              .idle = fm->idle_timeout,
                              .hard = fm->hard_timeout,
                              .miss = !fm->match.n && !fm->priority,
                              .cookie = fm->cookie,
                              .created = s->world->now,
                              .used = s->world->now,
                              .match = &fm->match,
                              .instructions = &fm->instructions};
    if (*old) {
        if (!(fm->flags & OFPFF_RESET_COUNTS))
            f->count = (*old)->count;
        take_out(old);
    }
    f->next = s->flows;
    s->flows = f;
    return 0;
}

int
oracle_flow_mod(struct oracle_switch *s, const struct of_flow_mod *fm)
{
    if (fm->command == OFPFC_ADD)
        return add(s, fm);
    for (struct oracle_flow **at = &s->flows, *f; (f = *at);) {
        if (!meant(f, fm)) {
            at = &f->next;
        } else if (fm->command == OFPFC_DELETE || fm->command == OFPFC_DELETE_STRICT) {
            take_out(at);
        } else {
            f->instructions = &fm->instructions;
            if (fm->flags & OFPFF_RESET_COUNTS)
                f->count = (struct oracle_counter){0};
            at = &f->next;
        }
    }
    return 0;
}

void
oracle_expire(struct oracle_switch *s)
{
    const uint64_t second = 1000000000;
    for (struct oracle_flow **at = &s->flows, *f; (f = *at);) {
        if ((f->hard && s->world->now >= f->created + f->hard * second) ||
            (f->idle && s->world->now >= f->used + f->idle * second))
            take_out(at);
        else
            at = &f->next;
    }
}

bool
oracle_ambiguous(const struct oracle_switch *s, const struct of_flow_mod *fm)
{
    for (const struct oracle_flow *f = s->flows; f; f = f->next)
        if (f->table_id == fm->table_id && f->priority == fm->priority &&
            overlap(f->match, &fm->match) && !same(f->match, &fm->match))
            return true;
    return false;
}

/* ------------------------------------------------------------------ group-mods */

/* A bucket's actions are a set: the last group action in it is the one. */
static bool
leads_to(const struct of_bucket *b, uint32_t id)
{
    uint32_t to = OFPG_ANY;
    for (uint32_t i = 0; i < b->actions.n; i++) {
        const struct of_action_group *a = OF_AT(&b->actions, i, struct of_action_group);
        if (a->row->type == OFPAT_GROUP)
            to = a->group_id;
    }
    return to == id;
}

static bool
chained(const struct oracle_switch *s, uint32_t id)
{
    for (const struct oracle_group *g = s->groups; g; g = g->next)
        for (uint32_t i = 0; i < g->buckets->n; i++)
            if (leads_to(OF_AT(g->buckets, i, struct of_bucket), id))
                return true;
    return false;
}

static int
delete_group(struct oracle_switch *s, struct oracle_group **at)
{
    struct oracle_group *g = *at;
    if (!g)
        return 0;
    if (chained(s, g->id))
        return OF_GROUP_MOD_FAILED(CHAINED_GROUP);
    for (struct oracle_flow **f = &s->flows; *f;) {
        if (flow_has(*f, OFPAT_GROUP, g->id))
            take_out(f);
        else
            f = &(*f)->next;
    }
    *at = g->next;
    free(g);
    return 0;
}

/* A select group that could never select. */
static bool
weighs_nothing(const struct of_group_mod *gm)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < gm->buckets.n; i++)
        sum += OF_AT(&gm->buckets, i, struct of_bucket)->weight;
    return gm->type == OFPGT_SELECT && gm->buckets.n && !sum;
}

int
oracle_group_mod(struct oracle_switch *s, const struct of_group_mod *gm)
{
    struct oracle_group **at = &s->groups;
    while (*at && (*at)->id != gm->group_id)
        at = &(*at)->next;
    if (gm->command == OFPGC_DELETE)
        return delete_group(s, at);
    if (gm->command == OFPGC_ADD && *at)
        return OF_GROUP_MOD_FAILED(GROUP_EXISTS);
    if (gm->command == OFPGC_MODIFY && !*at)
        return OF_GROUP_MOD_FAILED(UNKNOWN_GROUP);
    if (weighs_nothing(gm))
        return OF_GROUP_MOD_FAILED(INVALID_GROUP);
    if (!*at)
        *at = calloc(1, sizeof **at);
    (*at)->id = gm->group_id;
    (*at)->type = gm->type;
    (*at)->buckets = &gm->buckets;
    memset((*at)->bucket, 0, sizeof(*at)->bucket);
    return 0;
}

void
oracle_free(struct oracle_switch *s)
{
    while (s->flows)
        take_out(&s->flows);
    for (struct oracle_group *g; (g = s->groups);) {
        s->groups = g->next;
        free(g);
    }
    oracle_log_clear(&s->log);
    free(s->log.v);
    s->log = (struct oracle_log){0};
}
