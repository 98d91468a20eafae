/* SPDX-License-Identifier: Apache-2.0 */
/* A set's flows that the switch has, compared with those that it should have. */
#include <core/ask.h>
#include <core/say.h>
#include <queues/map.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static enum status
ask_flows(struct ctx *c, uint8_t table, uint64_t cookie, uint64_t mask, struct of_list *flows)
{
    struct of_mp_flow_request body = {.table_id = table,
                                      .out_port = OFPP_ANY,
                                      .out_group = OFPG_ANY,
                                      .cookie = cookie,
                                      .cookie_mask = mask};
    struct of_msg reply;
    int err = of_parse_match(&c->parse, "", &body.match);
    if (err)
        return say_parse(c, err);
    enum status st = ask_multipart(c, OFPMP_FLOW, &body, &reply);
    if (!st)
        *flows = ((const struct of_mp_flow_reply *)reply.body)->flows;
    return st;
}

enum status
map_flows(struct ctx *c, const char *set, struct of_list *out)
{
    return set ? ask_flows(c, OFPTT_ALL, map_cookie(set), UINT64_MAX, out)
               : ask_flows(c, OFPTT_ALL, MAP_COOKIE, MAP_COOKIE_MASK, out);
}

bool
map_is_miss(const struct of_flow_stats *f)
{
    return !f->priority && !f->match.n;
}

/* A flow as two texts: its table, priority and match; its instructions. */
struct known {
    const char *key, *does; /* `key` comes first: by_text compares it */
    uint64_t cookie;
    const struct of_flow_stats *flow;
    bool kept;
};

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The match's fields sorted, since a switch may change their order. */
static const char *
flow_key(struct ctx *c, uint8_t table, uint16_t priority, const struct of_match *m)
{
    struct of_wr w = of_wr_grow(1 << 16);
    char *fields[64], *save, *out = NULL;
    size_t n = 0;
    of_print_match(&w, m);
    of_wr8(&w, 0);
    if (!w.overflow && (out = of_arena_alloc(&c->arena, w.len + 32))) {
        for (char *f = strtok_r((char *)w.buf, ",", &save); f && n < 64;
             f = strtok_r(NULL, ",", &save))
            fields[n++] = f;
        qsort(fields, n, sizeof fields[0], by_text);
        char *to = out + snprintf(out, 32, "%u %u", table, priority);
        for (size_t i = 0; i < n; i++) {
            *to++ = ' ';
            to = stpcpy(to, fields[i]);
        }
    }
    of_wr_free(&w);
    return out;
}

static const char *
flow_does(struct ctx *c, const struct of_list *instructions)
{
    struct of_wr w = of_wr_grow(1 << 16);
    char *out = NULL;
    of_print_list(&w, &of_list_instructions, instructions);
    of_wr8(&w, 0);
    if (!w.overflow && (out = of_arena_alloc(&c->arena, w.len)))
        memcpy(out, w.buf, w.len);
    of_wr_free(&w);
    return out;
}

static enum status
learn(struct ctx *c, const struct of_list *flows, struct known **out)
{
    struct known *v = *out = of_arena_array(&c->arena, flows->n + 1, sizeof *v);
    for (uint32_t i = 0; v && i < flows->n; i++) {
        const struct of_flow_stats *f = OF_AT(flows, i, struct of_flow_stats);
        v[i] = (struct known){flow_key(c, f->table_id, f->priority, &f->match),
                              flow_does(c, &f->instructions), f->cookie, f, false};
        if (!v[i].key || !v[i].does)
            v = NULL;
    }
    if (!v)
        return say_memory(c);
    qsort(v, flows->n, sizeof *v, by_text);
    return DPCTL_OK;
}

/* Refuses to replace a flow of the same match and priority that is not qos-map's. */
static enum status
check_foreign(struct ctx *c, const struct map_flow *f, const struct map *m,
              const struct known *there)
{
    if (!there || (there->cookie & MAP_COOKIE_MASK) == MAP_COOKIE)
        return DPCTL_OK;
    if (!*f->match_text)
        return say_failed(
            c,
            "table %u already has a table-miss flow that qos-map did not make (cookie "
            "0x%" PRIx64 "): delete it, or choose another table with table=N",
            m->table, there->cookie);
    return say_failed(
        c,
        "table %u already has a flow for %s that qos-map did not make (cookie 0x%" PRIx64
        "): delete it, or choose another priority with prio=N",
        m->table, f->match_text, there->cookie);
}

static enum status
diff_flow(struct ctx *c, const struct map *m, struct map_flow *f, struct known *there, size_t n,
          struct steps *out)
{
    uint64_t cookie = map_cookie(m->set);
    struct known want = {.key = flow_key(c, m->table, f->priority, &f->match),
                         .does = flow_does(c, &f->instructions)};
    if (!want.key || !want.does)
        return say_memory(c);
    struct known *k = bsearch(&want, there, n, sizeof *there, by_text);
    enum status st = check_foreign(c, f, m, k);
    if (st)
        return st;
    /* Sets share a table-miss flow. */
    bool shared = k && !*f->match_text && !strcmp(k->does, want.does);
    if (k && (k->cookie == cookie || shared) && !strcmp(k->does, want.does)) {
        k->kept = true;
        return DPCTL_OK;
    }
    struct of_flow_mod fm = {.command = OFPFC_ADD,
                             .table_id = m->table,
                             .priority = f->priority,
                             .cookie = cookie,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY,
                             .match = f->match,
                             .instructions = f->instructions};
    steps_flow(c, out, &fm);
    if (k)
        k->kept = true; /* replaced */
    return DPCTL_OK;
}

enum status
map_diff(struct ctx *c, const struct map *m, bool keep, struct steps *out)
{
    struct of_list mine, all;
    struct known *v = NULL, *old = NULL;
    if (!m->n)
        return keep ? DPCTL_OK : map_delete(c, m->set, out);
    enum status st = map_flows(c, m->set, &mine);
    st = st ? st : ask_flows(c, m->table, 0, 0, &all);
    st = st ? st : learn(c, &all, &v);
    st = st ? st : learn(c, &mine, &old);
    if (st)
        return st;
    struct steps adds = {0};
    for (size_t i = 0; !st && i < m->n; i++)
        st = diff_flow(c, m, &m->v[i], v, all.n, &adds);
    for (uint32_t i = 0; !st && !keep && i < mine.n; i++) {
        const struct known *k = bsearch(&old[i], v, all.n, sizeof *v, by_text);
        if (!k || !k->kept)
            steps_delete(c, out, old[i].flow);
    }
    for (size_t i = 0; !st && i < adds.n; i++)
        steps_flow(c, out, adds.v[i].flow);
    out->nomem |= adds.nomem;
    return st;
}

/* Is the set (NULL: all sets) the last one in the table, so that the table-miss flow goes? */
static bool
miss_goes(const struct of_list *all, const char *set, uint8_t table)
{
    bool mine = !set, others = false;
    for (uint32_t i = 0; set && i < all->n; i++) {
        const struct of_flow_stats *f = OF_AT(all, i, struct of_flow_stats);
        bool own = f->cookie == map_cookie(set);
        mine |= own && f->table_id == table;
        others |= !own && f->table_id == table && !map_is_miss(f);
    }
    return mine && !others;
}

enum status
map_delete(struct ctx *c, const char *set, struct steps *out)
{
    struct of_list all = {0};
    enum status st = map_flows(c, NULL, &all);
    for (uint32_t i = 0; !st && i < all.n; i++) {
        const struct of_flow_stats *f = OF_AT(&all, i, struct of_flow_stats);
        if (map_is_miss(f) ? miss_goes(&all, set, f->table_id)
                           : !set || f->cookie == map_cookie(set))
            steps_delete(c, out, f);
    }
    return st;
}

enum status
map_remove(struct ctx *c, const struct map *m, struct steps *out)
{
    struct of_list mine;
    struct known *v;
    enum status st = map_flows(c, m->set, &mine);
    st = st ? st : learn(c, &mine, &v);
    for (size_t i = 0; !st && i < m->n; i++) {
        struct known key = {.key = flow_key(c, m->table, m->v[i].priority, &m->v[i].match)};
        if (!key.key)
            return say_memory(c);
        struct known *k = bsearch(&key, v, mine.n, sizeof *v, by_text);
        if (k && !k->kept)
            steps_delete(c, out, k->flow);
        if (k)
            k->kept = true; /* delete it once */
    }
    return st;
}

static bool
leaves_none(const struct of_list *all, const struct steps *s, uint8_t table)
{
    size_t there = 0, deleted = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct of_flow_stats *f = OF_AT(all, i, struct of_flow_stats);
        there += f->table_id == table && !map_is_miss(f);
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct of_flow_mod *fm = s->v[i].flow;
        deleted += fm && fm->command == OFPFC_DELETE_STRICT && fm->table_id == table;
    }
    return there == deleted;
}

enum status
map_remove_misses(struct ctx *c, struct steps *out)
{
    struct of_list all = {0};
    struct steps misses = {0};
    enum status st = map_flows(c, NULL, &all);
    for (uint32_t i = 0; !st && i < all.n; i++) {
        const struct of_flow_stats *f = OF_AT(&all, i, struct of_flow_stats);
        if (map_is_miss(f) && leaves_none(&all, out, f->table_id))
            steps_delete(c, &misses, f);
    }
    for (size_t i = 0; i < misses.n; i++)
        steps_flow(c, out, misses.v[i].flow);
    out->nomem |= misses.nomem;
    return st;
}
