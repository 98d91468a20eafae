/* SPDX-License-Identifier: Apache-2.0 */
#include <flow/flow-filter.h>

struct flow_filter
flow_filter_of_stats(const struct of_mp_flow_request *q)
{
    return (struct flow_filter){.table_id = q->table_id,
                                .out_port = q->out_port,
                                .out_group = q->out_group,
                                .cookie = q->cookie,
                                .cookie_mask = q->cookie_mask,
                                .match = &q->match};
}

struct flow_filter
flow_filter_of_flow_mod(const struct of_flow_mod *fm)
{
    bool outputs = fm->command == OFPFC_DELETE || fm->command == OFPFC_DELETE_STRICT;
    return (struct flow_filter){.table_id = fm->table_id,
                                .out_port = outputs ? fm->out_port : OFPP_ANY,
                                .out_group = outputs ? fm->out_group : OFPG_ANY,
                                .cookie = fm->cookie,
                                .cookie_mask = fm->cookie_mask,
                                .match = &fm->match};
}

bool
flow_filter_is_all(const struct flow_filter *q)
{
    return !q->match->n && !q->cookie_mask && q->out_port == OFPP_ANY && q->out_group == OFPG_ANY;
}

static bool
list_has(struct act_list l, uint8_t op, uint32_t arg)
{
    ACTS_EACH(a, l)
        if (a->op == op && a->arg == arg)
            return true;
    return false;
}

static bool
program_has(const struct program *p, uint8_t op, uint32_t arg)
{
    return list_has(program_apply(p), op, arg) || list_has(program_write(p), op, arg);
}

bool
program_outputs_to(const struct program *p, uint32_t port)
{
    return program_has(p, OFPAT_OUTPUT, port);
}

bool
flow_filter_passes(const struct flow_filter *q, const struct flow *f)
{
    const struct program *p = flow_program(f);
    return !((p->cookie ^ q->cookie) & q->cookie_mask) &&
           (q->out_port == OFPP_ANY || program_outputs_to(p, q->out_port)) &&
           (q->out_group == OFPG_ANY || program_has(p, OFPAT_GROUP, q->out_group));
}
