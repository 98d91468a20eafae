/* SPDX-License-Identifier: Apache-2.0 */
#include <core/ask.h>
#include <core/say.h>
#include <queues/map.h>

#include <errno.h>

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
    return set ? ask_flows(c, OFPTT_ALL, qos_map_cookie(set), UINT64_MAX, out)
               : ask_flows(c, OFPTT_ALL, QOS_MAP_COOKIE, QOS_MAP_COOKIE_MASK, out);
}

uint32_t
map_queue(const struct of_flow_stats *f)
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

/* What a function that compares returned. */
static enum status
collect(struct ctx *c, int err, const struct qos_map_changes *changes, struct steps *out)
{
    if (err)
        return err == -ENOMEM ? say_memory(c) : say_failed(c, "%s", c->parse.why);
    for (size_t i = 0; i < changes->n; i++)
        steps_flow(c, out, &changes->v[i]);
    return DPCTL_OK;
}

enum status
map_diff(struct ctx *c, const struct qos_map *m, bool keep, struct steps *out)
{
    struct of_list all, table;
    struct qos_map_changes changes = {0};
    if (!m->n)
        return keep ? DPCTL_OK : map_delete(c, m->set, out);
    enum status st = map_flows(c, NULL, &all);
    st = st ? st : ask_flows(c, m->table, 0, 0, &table);
    if (st)
        return st;
    int err = qos_map_diff(&c->parse, m, keep, &all, &table, &changes);
    return collect(c, err, &changes, out);
}

enum status
map_delete(struct ctx *c, const char *set, struct steps *out)
{
    struct of_list all;
    struct qos_map_changes changes = {0};
    enum status st = map_flows(c, NULL, &all);
    if (st)
        return st;
    int err = qos_map_delete(&c->parse, set, &all, &changes);
    return collect(c, err, &changes, out);
}

enum status
map_remove(struct ctx *c, const struct qos_map *m, struct steps *out)
{
    struct of_list set;
    struct qos_map_changes changes = {0};
    enum status st = map_flows(c, m->set, &set);
    if (st)
        return st;
    int err = qos_map_remove(&c->parse, m, &set, &changes);
    return collect(c, err, &changes, out);
}

static bool
leaves_none(const struct of_list *all, const struct steps *s, uint8_t table)
{
    size_t there = 0, deleted = 0;
    for (uint32_t i = 0; i < all->n; i++) {
        const struct of_flow_stats *f = OF_AT(all, i, struct of_flow_stats);
        there += f->table_id == table && !qos_map_is_miss(f);
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
        if (qos_map_is_miss(f) && leaves_none(&all, out, f->table_id))
            steps_delete(c, &misses, f);
    }
    for (size_t i = 0; i < misses.n; i++)
        steps_flow(c, out, misses.v[i].flow);
    out->nomem |= misses.nomem;
    return st;
}

void
map_offer_rule(struct complete *k, const struct command *self)
{
    const char *key, *name;
    bool bandwidth = !strncmp(self->name, "bw-", 3); /* has groups instead of queues */
    for (size_t i = 0; (key = qos_map_key_at(i)); i++) {
        if (bandwidth && !strcmp(key, "queue"))
            continue;
        complete_key(k, key, "", NULL);
        for (size_t n = 0; (name = qos_map_name_at(key, n)); n++)
            complete_key(k, key, name, NULL);
    }
}
