/* SPDX-License-Identifier: Apache-2.0 */
/* What there is to do: found by comparing, shown or carried out. */
#include "map.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ------------------------------------------------------------------- collecting */

static struct step *
add_step(struct ctx *c, struct steps *s)
{
    if (s->n == s->room) {
        size_t room = s->room * 2 + 64;
        struct step *v = of_arena_array(&c->arena, room, sizeof *v);
        if (!v) {
            s->nomem = true;
            return NULL;
        }
        if (s->n)
            memcpy(v, s->v, s->n * sizeof *v);
        s->v = v;
        s->room = room;
    }
    s->v[s->n] = (struct step){0};
    return &s->v[s->n++];
}

void
steps_qos(struct ctx *c, struct steps *s, const struct qos_request *r, const char *where)
{
    struct step *step = add_step(c, s);
    struct qos_request *copy = of_arena_alloc(&c->arena, sizeof *copy);
    s->nomem |= !copy;
    if (step && copy) {
        *copy = *r;
        step->qos = copy;
        step->where = where;
    }
}

void
steps_flow(struct ctx *c, struct steps *s, const struct of_flow_mod *fm)
{
    struct step *step = add_step(c, s);
    struct of_flow_mod *copy = of_arena_alloc(&c->arena, sizeof *copy);
    s->nomem |= !copy;
    if (step && copy) {
        *copy = *fm;
        step->flow = copy;
    }
}

/* ------------------------------------------------------------------------ flows */

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
        return bad_parse(c, err);
    enum status st = multipart(c, OFPMP_FLOW, &body, &reply);
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

/* A flow as two texts: what it is known by, and what it does. */
struct known {
    const char *key, *does;
    uint64_t cookie;
    const struct of_flow_stats *flow;
    bool kept;
};

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A match's fields in one order, whichever they came in. */
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
        return failed(c, "out of memory");
    qsort(v, flows->n, sizeof *v, by_text);
    return DPCTL_OK;
}

void
steps_delete(struct ctx *c, struct steps *s, const struct of_flow_stats *f)
{
    struct of_flow_mod fm = {.command = OFPFC_DELETE_STRICT,
                             .table_id = f->table_id,
                             .priority = f->priority,
                             .cookie = f->cookie,
                             .cookie_mask = UINT64_MAX,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY,
                             .match = f->match};
    steps_flow(c, s, &fm);
}

/* Somebody else's flow of the same match and priority is not to be replaced. */
static enum status
check_foreign(struct ctx *c, const struct map_flow *f, const struct map *m,
              const struct known *there)
{
    if (!there || (there->cookie & MAP_COOKIE_MASK) == MAP_COOKIE)
        return DPCTL_OK;
    if (!*f->match_text)
        return failed(c,
                      "table %u has a table-miss flow already that is not of qos-map (cookie "
                      "0x%" PRIx64 "): delete it, or give table=N a table that is free for "
                      "the mapping",
                      m->table, there->cookie);
    return failed(c,
                  "table %u has a flow already for %s that is not of qos-map (cookie 0x%" PRIx64
                  "): delete it, or give another prio=",
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
        return failed(c, "out of memory");
    struct known *k = bsearch(&want, there, n, sizeof *there, by_text);
    enum status st = check_foreign(c, f, m, k);
    if (st)
        return st;
    /* The table-miss flow of another set that says the same serves this one, too. */
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

/* The flow for what no rule matches goes with the set that is the last one in its table. */
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
            return failed(c, "out of memory");
        struct known *k = bsearch(&key, v, mine.n, sizeof *v, by_text);
        if (k && !k->kept)
            steps_delete(c, out, k->flow);
        if (k)
            k->kept = true; /* not a second time */
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

/* ---------------------------------------------------------- showing, carrying out */

static void
print_flow(struct of_wr *w, const struct of_flow_mod *fm)
{
    bool add = fm->command == OFPFC_ADD;
    of_printf(w, "flow-mod cmd=%s,table=%u,prio=%u,cookie=0x%" PRIx64 "%s ", add ? "add" : "dels",
              fm->table_id, fm->priority, fm->cookie, add ? "" : ",cookie_mask=0xffffffffffffffff");
    size_t before = w->len;
    of_print_match(w, &fm->match);
    of_printf(w, w->len > before ? " " : "");
    of_print_list(w, &of_list_instructions, &fm->instructions);
}

/* A step as the command that does it. */
static void
print_step(struct of_wr *w, const struct step *step)
{
    if (step->qos)
        print_qos_command(w, step->qos);
    else
        print_flow(w, step->flow);
    while (w->len && w->buf[w->len - 1] == ' ')
        w->len--;
}

static void
json_steps(struct of_wr *w, const struct steps *s, bool dry)
{
    struct of_json j = of_json(w);
    of_json_object(&j, NULL);
    of_json_bool(&j, "applied", !dry);
    of_json_array(&j, "steps");
    for (size_t i = 0; i < s->n; i++) {
        struct of_wr one = of_wr_grow(1 << 16);
        print_step(&one, &s->v[i]);
        of_json_string(&j, NULL, (const char *)one.buf, one.len);
        w->overflow |= one.overflow;
        of_wr_free(&one);
    }
    of_json_end_array(&j);
    of_json_end_object(&j);
}

static enum status
show_steps(struct ctx *c, const struct steps *s, bool dry)
{
    struct of_wr w = of_wr_grow(1u << 30);
    if (c->json)
        json_steps(&w, s, dry);
    for (size_t i = 0; i < s->n && !c->json; i++) {
        of_printf(&w, i ? "\n" : "");
        print_step(&w, &s->v[i]);
    }
    return put_line(c, &w);
}

static enum status
carry_out(struct ctx *c, const struct steps *s)
{
    const char *where = c->where;
    bool own = !c->bundle; /* else it becomes part of what -F --atomic collects */
    enum status st = own ? bundle_begin(c) : DPCTL_OK;
    for (size_t i = 0; !st && i < s->n; i++) {
        c->where = s->v[i].where ? s->v[i].where : where;
        st = s->v[i].qos ? send_qos(c, s->v[i].qos) : modify(c, OFPT_FLOW_MOD, s->v[i].flow);
    }
    c->where = where;
    if (own && !st)
        st = bundle_commit(c);
    if (own)
        bundle_drop(c);
    return st;
}

enum status
steps_run(struct ctx *c, const struct steps *s, bool dry)
{
    struct of_wr w = of_wr_grow(256);
    bool json = c->json;
    enum status st = DPCTL_OK;
    if (s->nomem) {
        of_wr_free(&w);
        return failed(c, "out of memory");
    }
    if (dry || !s->n) {
        of_printf(&w, "nothing to change");
        if (s->n || json) {
            of_wr_free(&w);
            return show_steps(c, s, dry);
        }
        return put_line(c, &w);
    }
    c->json = false; /* what it did is one answer, at the end */
    st = carry_out(c, s);
    c->json = json;
    if (st || json) {
        of_wr_free(&w);
        return st ? st : show_steps(c, s, dry);
    }
    of_printf(&w, "done: %zu request%s, all in one", s->n, s->n == 1 ? "" : "s");
    return put_line(c, &w);
}
