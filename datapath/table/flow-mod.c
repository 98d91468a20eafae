/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out a flow-mod (6.4, 7.3.4.1). */
#include "tables-inside.h"

#include <errno.h>
#include <string.h>

#define TOO_LONG OF_BAD_REQUEST(BAD_LEN)
#define ALL_FLAGS                                                                                  \
    (OFPFF_SEND_FLOW_REM | OFPFF_CHECK_OVERLAP | OFPFF_RESET_COUNTS | OFPFF_NO_PKT_COUNTS |        \
     OFPFF_NO_BYT_COUNTS)

struct request {
    struct tables *t;
    const struct of_flow_mod *fm;
    struct flow_filter filter; /* of a modify or delete */
    struct flow_key key, mask;
    struct program *program; /* compiled for this request, which owns it until it is taken */
    bool or_add;             /* a modify that finds none adds one */
    bool found;              /* a modify has found one */
    int64_t growth;          /* what a modify adds to the programs' bytes */
};

static int
compile(struct request *r, uint8_t table_id)
{
    int err = table_features_check(&r->t->table[table_id].features, r->fm);
    if (err)
        return err;
    struct compile_env env = r->t->ops.env;
    env.table_id = table_id;
    env.n_tables = (uint8_t)r->t->n_tables;
    env.has_match = true;
    env.match = &r->fm->match;
    err = compile_instructions(&env, &r->fm->instructions, &r->program);
    if (err)
        return err;
    r->program->cookie = r->fm->cookie;
    r->program->miss = !r->fm->match.n && !r->fm->priority;
    return 0;
}

static struct flow_timing
timing_of(const struct of_flow_mod *fm)
{
    return (struct flow_timing){fm->idle_timeout, fm->hard_timeout, (uint8_t)fm->flags};
}

static struct program *
take_program(struct request *r)
{
    struct program *p = r->program;
    r->program = NULL;
    return p;
}

/* The head of an OFPMP_FLOW reply with one flow: message, multipart and entry (7.3.5.2). */
#define REPLY_HEAD (8 + 8 + 48u)
#define ANY_MATCH  1024u /* no match is this long */

static size_t
match_bytes(const struct flow_key *key, const struct flow_key *mask)
{
    struct of_oxm oxms[OXM_N];
    struct of_match m = {.v = oxms};
    size_t n = 4;
    key_to_match(key, mask, &m);
    for (uint32_t i = 0; i < m.n; i++)
        n += 4 + (size_t)m.v[i].row->bytes * (m.v[i].has_mask ? 2 : 1);
    return (n + 7) / 8 * 8;
}

/* A reply to OFPMP_FLOW must be able to report the flow.  A flow-mod of 64 KiB can make one that is
 * too long, as the entry's head is longer than the flow-mod's. */
static bool
fits_reply(const struct flow_key *key, const struct flow_key *mask, const struct program *p)
{
    size_t n = REPLY_HEAD + (size_t)p->n_wire;
    return n + ANY_MATCH <= OF_MSG_MAX || n + match_bytes(key, mask) <= OF_MSG_MAX;
}

static int
check_fits_reply(void *ctx, struct flow *f)
{
    struct request *r = ctx;
    struct flow_key key;
    flow_key_of(f, &key);
    return fits_reply(&key, &f->sub->mask, r->program) ? 0 : TOO_LONG;
}

/* old: the program that it replaces, or NULL. */
static bool
has_room(const struct tables *t, const struct program *p, const struct program *old)
{
    uint64_t more = program_size(p), less = old ? program_size(old) : 0;
    return more <= less || t->bytes + more - less <= t->limits.flow_bytes;
}

static int
add_new(struct request *r, struct flow_table *ft, const struct classifier_place *at)
{
    struct flow_timing timing = timing_of(r->fm);
    if (ft->flows.n_flows - ft->n_leaving >= ft->features.max_entries ||
        r->t->n_flows >= r->t->limits.flows || !has_room(r->t, r->program, NULL))
        return OF_FLOW_MOD_FAILED(TABLE_FULL);
    struct flow *f =
        classifier_new_flow(&ft->flows, at, &r->key, &r->mask, r->t->n_workers, r->t->ops.kernel);
    if (!f)
        return -ENOMEM;
    f->priority = r->fm->priority;
    f->table_id = r->fm->table_id;
    return flow_add(r->t, f, take_program(r), &timing);
}

/* An add of a flow that is there already replaces it; the counters stay unless OFPFF_RESET_COUNTS
 * (6.4). */
static int
replace(struct request *r, struct flow *f)
{
    struct flow_timing timing = timing_of(r->fm);
    if (!has_room(r->t, r->program, flow_program(f)))
        return OF_FLOW_MOD_FAILED(TABLE_FULL);
    return flow_replace(r->t, f, take_program(r), &timing, r->fm->flags & OFPFF_RESET_COUNTS);
}

static int
request_add(struct request *r)
{
    struct flow_table *ft = tables_get(r->t, r->fm->table_id);
    if (!ft)
        return OF_FLOW_MOD_FAILED(BAD_TABLE_ID);
    struct classifier_place at = classifier_place(&ft->flows, &r->key, &r->mask);
    int err = compile(r, r->fm->table_id);
    if (err)
        return err;
    if (!fits_reply(&r->key, &r->mask, r->program))
        return TOO_LONG;
    if (r->fm->flags & OFPFF_CHECK_OVERLAP &&
        classifier_overlap(&ft->flows, &r->key, &r->mask, r->fm->priority))
        return OF_FLOW_MOD_FAILED(OVERLAP);
    struct flow *f = classifier_find(&at, &r->key, r->fm->priority);
    return f ? replace(r, f) : add_new(r, ft, &at);
}

/* A modify leaves each flow its cookie. */
static struct program *
copy_program(const struct program *p, const struct program *old)
{
    struct program *c = malloc(program_size(p));
    if (!c)
        return NULL;
    memcpy(c, p, program_size(p)); /* its flow_uses are on no list yet */
    c->cookie = old->cookie;
    c->miss = old->miss;
    return c;
}

static int
modify_flow(struct tables *t, struct flow *f, const struct program *with, bool reset)
{
    struct program *p = copy_program(with, flow_program(f));
    return p ? flow_modify(t, f, p, reset) : -ENOMEM;
}

static int
modify_one(void *ctx, struct flow *f)
{
    struct request *r = ctx;
    r->found = true;
    return modify_flow(r->t, f, r->program, r->fm->flags & OFPFF_RESET_COUNTS);
}

static int
delete_one(void *ctx, struct flow *f)
{
    struct request *r = ctx;
    return flow_remove(r->t, f, OFPRR_DELETE);
}

/* The flows that a modify or delete is about. */
static int
each_named(struct request *r, bool strict, int (*each)(void *, struct flow *))
{
    if (!strict)
        return tables_each_within(r->t, &r->filter, &r->key, &r->mask, each, r);
    int err = 0;
    for (unsigned i = tables_first(&r->filter); i <= tables_last(r->t, &r->filter) && !err; i++) {
        struct classifier_place at = classifier_place(&r->t->table[i].flows, &r->key, &r->mask);
        struct flow *f = classifier_find(&at, &r->key, r->fm->priority);
        if (f && flow_filter_passes(&r->filter, f))
            err = each(r, f);
    }
    return err;
}

static int
add_growth(void *ctx, struct flow *f)
{
    struct request *r = ctx;
    r->growth += (int64_t)program_size(r->program) - (int64_t)program_size(flow_program(f));
    return 0;
}

/* Before the first one is changed: a modify that is refused changes none. */
static int
check_room(struct request *r, bool strict)
{
    const struct tables *t = r->t;
    uint64_t most = t->bytes + t->n_flows * (uint64_t)program_size(r->program);
    if (most <= t->limits.flow_bytes)
        return 0;
    each_named(r, strict, add_growth);
    return r->growth <= 0 || t->bytes + (uint64_t)r->growth <= t->limits.flow_bytes
               ? 0
               : OF_FLOW_MOD_FAILED(TABLE_FULL);
}

static int
check_modify(struct request *r, bool strict)
{
    if (!tables_get(r->t, r->fm->table_id))
        return OF_FLOW_MOD_FAILED(BAD_TABLE_ID);
    int err = compile(r, r->fm->table_id);
    if (!err && REPLY_HEAD + r->program->n_wire + ANY_MATCH > OF_MSG_MAX)
        err = each_named(r, strict, check_fits_reply);
    return err ? err : check_room(r, strict);
}

static int
request_modify(struct request *r, bool strict)
{
    int err = check_modify(r, strict);
    if (!err)
        err = each_named(r, strict, modify_one);
    if (err || r->found || !r->or_add)
        return err;
    free(take_program(r)); /* an add compiles its own */
    return request_add(r);
}

static int
check_tables(struct tables *t, uint8_t id)
{
    return id == OFPTT_ALL || tables_get(t, id) ? 0 : OF_FLOW_MOD_FAILED(BAD_TABLE_ID);
}

static int
request_delete(struct request *r, bool strict)
{
    int err = check_tables(r->t, r->fm->table_id);
    return err ? err : each_named(r, strict, delete_one);
}

static int
read_request(struct request *r, struct tables *t, const struct of_flow_mod *fm)
{
    r->t = t;
    r->fm = fm;
    r->filter = flow_filter_of_flow_mod(fm);
    r->program = NULL;
    r->or_add = r->found = false;
    r->growth = 0;
    if (fm->flags & ~ALL_FLAGS)
        return OF_FLOW_MOD_FAILED(BAD_FLAGS);
    key_of_match(&fm->match, &r->key, &r->mask);
    return 0;
}

static int
flow_mod(struct tables *t, const struct of_flow_mod *fm, uint64_t now, bool or_add)
{
    struct request r; /* key and mask are written by key_of_match */
    int err = read_request(&r, t, fm);
    if (err)
        return err;
    r.or_add = or_add;
    t->now = now;
    switch (fm->command) {
    case OFPFC_ADD: err = request_add(&r); break;
    case OFPFC_MODIFY:
    case OFPFC_MODIFY_STRICT: err = request_modify(&r, fm->command == OFPFC_MODIFY_STRICT); break;
    case OFPFC_DELETE:
    case OFPFC_DELETE_STRICT: err = request_delete(&r, fm->command == OFPFC_DELETE_STRICT); break;
    default: err = OF_FLOW_MOD_FAILED(BAD_COMMAND);
    }
    free(r.program);
    return err == -ENOMEM ? OF_FLOW_MOD_FAILED(TABLE_FULL) : err;
}

int
tables_flow_mod(struct tables *t, const struct of_flow_mod *fm, uint64_t now)
{
    return flow_mod(t, fm, now, false);
}

int
tables_flow_mod_or_add(struct tables *t, const struct of_flow_mod *fm, uint64_t now)
{
    return flow_mod(t, fm, now, true);
}

int
tables_each_deleted(struct tables *t, const struct of_flow_mod *fm,
                    int (*each)(void *ctx, struct flow *f), void *ctx)
{
    struct request r;
    int err = read_request(&r, t, fm);
    err = err ? err : check_tables(t, fm->table_id);
    return err ? err : tables_each_within(t, &r.filter, &r.key, &r.mask, each, ctx);
}

/* ------------------------------------------------------------------ a modify, flow by flow */

struct tables_modify {
    struct program *program;
    bool reset;
};

int
tables_modify_begin(struct tables *t, const struct of_flow_mod *fm,
                    int (*each)(void *ctx, struct flow *f), void *ctx, struct tables_modify **out)
{
    struct request r;
    struct tables_modify *m = malloc(sizeof *m);
    int err = m ? read_request(&r, t, fm) : -ENOMEM;
    if (!err)
        err = check_modify(&r, false);
    if (!err)
        err = tables_each_within(t, &r.filter, &r.key, &r.mask, each, ctx);
    if (err) {
        if (m)
            free(r.program);
        free(m);
        return err;
    }
    *m = (struct tables_modify){take_program(&r), fm->flags & OFPFF_RESET_COUNTS};
    *out = m;
    return 0;
}

int
tables_modify_flow(struct tables *t, const struct tables_modify *m, struct flow *f, uint64_t now)
{
    t->now = now;
    return modify_flow(t, f, m->program, m->reset);
}

void
tables_modify_end(struct tables_modify *m)
{
    if (m)
        free(m->program);
    free(m);
}
