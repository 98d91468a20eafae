/* SPDX-License-Identifier: Apache-2.0 */
/* A set's flows that the switch has, compared with those that it should have. */
#include <qos/profile/map.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool
qos_map_is_miss(const struct of_flow_stats *f)
{
    return !f->priority && !f->match.n;
}

uint32_t
qos_map_queue(const struct of_flow_stats *f)
{
    for (uint32_t i = 0; i < f->instructions.n; i++) {
        const struct of_instr_actions *apply = OF_AT(&f->instructions, i, struct of_instr_actions);
        if (apply->row != OF_INSTR(APPLY_ACTIONS))
            continue;
        for (uint32_t k = 0; k < apply->actions.n; k++) {
            const struct of_action_set_queue *a =
                OF_AT(&apply->actions, k, struct of_action_set_queue);
            if (a->row == OF_ACTION(SET_QUEUE))
                return a->queue_id;
        }
    }
    return 0;
}

struct of_flow_mod
qos_map_addition(const struct qos_map *m, const struct qos_map_flow *f)
{
    /* beside: the table's owner may delete the flows, and the one who maintains them learns of
     * it */
    return (struct of_flow_mod){.command = OFPFC_ADD,
                                .table_id = m->table,
                                .priority = f->priority,
                                .idle_timeout = f->idle_s,
                                .hard_timeout = f->hard_s,
                                .cookie = qos_map_cookie(m->set),
                                .buffer_id = OFP_NO_BUFFER,
                                .out_port = OFPP_ANY,
                                .out_group = OFPG_ANY,
                                .flags = m->beside ? OFPFF_SEND_FLOW_REM : 0,
                                .match = f->match,
                                .instructions = f->instructions};
}

struct of_flow_mod
qos_map_deletion(const struct of_flow_stats *f)
{
    return (struct of_flow_mod){.command = OFPFC_DELETE_STRICT,
                                .table_id = f->table_id,
                                .priority = f->priority,
                                .cookie = f->cookie,
                                .cookie_mask = UINT64_MAX,
                                .buffer_id = OFP_NO_BUFFER,
                                .out_port = OFPP_ANY,
                                .out_group = OFPG_ANY,
                                .match = f->match};
}

static int
change(struct of_parse *p, struct qos_map_changes *out, const struct of_flow_mod *fm)
{
    struct of_flow_mod *v = of_arena_room(p->arena, out->v, out->n, &out->room, sizeof *v);
    if (!v)
        return -ENOMEM;
    out->v = v;
    v[out->n++] = *fm;
    return 0;
}

static int
delete_flow(struct of_parse *p, struct qos_map_changes *out, const struct of_flow_stats *f)
{
    struct of_flow_mod fm = qos_map_deletion(f);
    return change(p, out, &fm);
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
flow_key(struct of_parse *p, uint8_t table, uint16_t priority, const struct of_match *m)
{
    struct of_wr w = of_wr_grow(1 << 16);
    char *fields[64], *save, *out = NULL;
    size_t n = 0;
    of_print_match(&w, m);
    of_wr8(&w, 0);
    if (!w.overflow && (out = of_arena_alloc(p->arena, w.len + 32))) {
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
flow_does(struct of_parse *p, const struct of_list *instructions)
{
    struct of_wr w = of_wr_grow(1 << 16);
    char *out = NULL;
    of_print_list(&w, &of_list_instructions, instructions);
    of_wr8(&w, 0);
    if (!w.overflow && (out = of_arena_alloc(p->arena, w.len)))
        memcpy(out, w.buf, w.len);
    of_wr_free(&w);
    return out;
}

static int
learn(struct of_parse *p, const struct of_list *flows, struct known **out)
{
    struct known *v = *out = of_arena_array(p->arena, flows->n + 1, sizeof *v);
    for (uint32_t i = 0; v && i < flows->n; i++) {
        const struct of_flow_stats *f = OF_AT(flows, i, struct of_flow_stats);
        v[i] = (struct known){flow_key(p, f->table_id, f->priority, &f->match),
                              flow_does(p, &f->instructions), f->cookie, f, false};
        if (!v[i].key || !v[i].does)
            v = NULL; /* LCOV_EXCL_LINE: no memory */
    }
    if (!v)
        return -ENOMEM;
    qsort(v, flows->n, sizeof *v, by_text);
    return 0;
}

/* Refuses to replace a flow of the same match and priority that is not a map's. */
static int
check_foreign(struct of_parse *p, const struct qos_map_flow *f, const struct qos_map *m,
              const struct known *there)
{
    if (!there || (there->cookie & QOS_MAP_COOKIE_MASK) == QOS_MAP_COOKIE)
        return 0;
    if (!*f->match_text)
        snprintf(p->why, sizeof p->why,
                 "table %u already has a table-miss flow that qos-map did not make (cookie "
                 "0x%" PRIx64
                 "): delete it and say with then= where packets go, choose another table with "
                 "table=N, or, if a controller made it, write beside",
                 m->table, there->cookie);
    else
        snprintf(p->why, sizeof p->why,
                 "table %u already has a flow for %.300s that qos-map did not make (cookie "
                 "0x%" PRIx64 "): delete it, or choose another priority with prio=N",
                 m->table, f->match_text, there->cookie);
    return -EEXIST;
}

static int
diff_flow(struct of_parse *p, const struct qos_map *m, struct qos_map_flow *f, struct known *there,
          size_t n, struct qos_map_changes *out)
{
    uint64_t cookie = qos_map_cookie(m->set);
    struct known want = {.key = flow_key(p, m->table, f->priority, &f->match),
                         .does = flow_does(p, &f->instructions)};
    if (!want.key || !want.does)
        return -ENOMEM;
    struct known *k = bsearch(&want, there, n, sizeof *there, by_text);
    int err = check_foreign(p, f, m, k);
    if (err)
        return err;
    /* Sets share a table-miss flow. */
    bool shared = k && !*f->match_text && !strcmp(k->does, want.does);
    if (k)
        k->kept = true; /* or replaced */
    if (k && (k->cookie == cookie || shared) && !strcmp(k->does, want.does))
        return 0;
    struct of_flow_mod fm = qos_map_addition(m, f);
    return change(p, out, &fm);
}

/* A flow of another set, which needs the set's table-miss flow, too; NULL: none does. */
static const struct of_flow_stats *
heir_of(const struct of_list *all, const struct of_flow_stats *miss)
{
    for (uint32_t i = 0; i < all->n; i++) {
        const struct of_flow_stats *f = OF_AT(all, i, struct of_flow_stats);
        if (f->table_id == miss->table_id && f->cookie != miss->cookie && !qos_map_is_miss(f))
            return f;
    }
    return NULL;
}

/* A table-miss flow that others need becomes theirs: the set that made it may be all that says whose it is. */
static int
pass_on(struct of_parse *p, struct qos_map_changes *out, const struct of_flow_stats *miss,
        uint64_t cookie)
{
    struct of_flow_mod fm = {.command = OFPFC_ADD,
                             .table_id = miss->table_id,
                             .cookie = cookie,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY,
                             .flags = miss->flags,
                             .match = miss->match,
                             .instructions = miss->instructions};
    return change(p, out, &fm);
}

/* Does this flow of `all` sets go where the set (NULL: all sets) is to have none? */
static bool
goes(const char *set, const struct of_flow_stats *f)
{
    return !set || f->cookie == qos_map_cookie(set);
}

static int
let_go(struct of_parse *p, const char *set, const struct of_list *all,
       const struct of_flow_stats *f, struct qos_map_changes *out)
{
    const struct of_flow_stats *heir = set && qos_map_is_miss(f) ? heir_of(all, f) : NULL;
    return heir ? pass_on(p, out, f, heir->cookie) : delete_flow(p, out, f);
}

int
qos_map_delete(struct of_parse *p, const char *set, const struct of_list *all,
               struct qos_map_changes *out)
{
    int err = 0;
    for (uint32_t i = 0; !err && i < all->n; i++) {
        const struct of_flow_stats *f = OF_AT(all, i, struct of_flow_stats);
        if (goes(set, f))
            err = let_go(p, set, all, f, out);
    }
    return err;
}

/* Deletes the set's flows that are not kept, and table-miss flows that no set needs any more. */
static int
delete_others(struct of_parse *p, const struct qos_map *m, const struct of_list *all,
              const struct known *table, size_t n, struct qos_map_changes *out)
{
    int err = 0;
    for (uint32_t i = 0; !err && i < all->n; i++) {
        const struct of_flow_stats *f = OF_AT(all, i, struct of_flow_stats);
        if (!goes(m->set, f))
            continue;
        struct known is = {.key = flow_key(p, f->table_id, f->priority, &f->match)};
        if (!is.key)
            return -ENOMEM;
        const struct known *k = bsearch(&is, table, n, sizeof *table, by_text);
        if (!k || !k->kept)
            err = let_go(p, m->set, all, f, out);
    }
    return err;
}

int
qos_map_diff(struct of_parse *p, const struct qos_map *m, bool keep, const struct of_list *all,
             const struct of_list *table, struct qos_map_changes *out)
{
    struct known *v = NULL;
    struct qos_map_changes adds = {0};
    int err = learn(p, table, &v);
    for (size_t i = 0; !err && i < m->n; i++)
        err = diff_flow(p, m, &m->v[i], v, table->n, &adds);
    if (!err && !keep)
        err = delete_others(p, m, all, v, table->n, out);
    for (size_t i = 0; !err && i < adds.n; i++)
        err = change(p, out, &adds.v[i]);
    return err;
}

int
qos_map_remove(struct of_parse *p, const struct qos_map *m, bool any_queue,
               const struct of_list *set, struct qos_map_changes *out)
{
    struct known *v = NULL;
    int err = learn(p, set, &v);
    for (size_t i = 0; !err && i < m->n; i++) {
        struct known key = {.key = flow_key(p, m->table, m->v[i].priority, &m->v[i].match)};
        struct known *k = key.key ? bsearch(&key, v, set->n, sizeof *v, by_text) : NULL;
        if (!key.key)
            return -ENOMEM;
        if (k && !k->kept && *m->v[i].match_text &&
            (any_queue || qos_map_queue(k->flow) == m->v[i].does.queue))
            err = delete_flow(p, out, k->flow);
        if (k)
            k->kept = true; /* delete it once */
    }
    return err;
}
