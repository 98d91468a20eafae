/* SPDX-License-Identifier: Apache-2.0 */
/* Table features (7.3.5.5): every table can do everything. */
#include "switch.h"

#include <stdlib.h>
#include <string.h>

/* The properties of one table, in memory that lives as long as the reply is made. */
struct features {
    struct of_id instructions[OFPIT_METER + 1], actions[32], match[OXM_N], wildcards[OXM_N],
        setfields[OXM_N];
    uint8_t next[TABLES_MAX];
    union {
        struct of_tfp_typeids types;
        struct of_tfp_oxmids oxms;
        struct of_tfp_next_tables next;
    } props[16];
    void *v[16];
    uint32_t n;
};

static void
put_types(struct features *f, uint16_t prop, struct of_ids ids)
{
    f->props[f->n].types =
        (struct of_tfp_typeids){.row = of_tag_row(&of_list_table_props, prop), .ids = ids};
    f->v[f->n] = &f->props[f->n];
    f->n++;
}

static void
put_oxms(struct features *f, uint16_t prop, struct of_ids ids)
{
    f->props[f->n].oxms =
        (struct of_tfp_oxmids){.row = of_tag_row(&of_list_table_props, prop), .ids = ids};
    f->v[f->n] = &f->props[f->n];
    f->n++;
}

static void
put_next(struct features *f, uint16_t prop, uint8_t id, unsigned n_tables)
{
    uint32_t n = 0;
    for (unsigned i = id + 1u; i < n_tables; i++)
        f->next[n++] = (uint8_t)i;
    f->props[f->n].next = (struct of_tfp_next_tables){
        .row = of_tag_row(&of_list_table_props, prop), .tables = {f->next, n}};
    f->v[f->n] = &f->props[f->n];
    f->n++;
}

static struct of_ids
instruction_ids(struct features *f, bool can_go_on)
{
    uint32_t n = 0;
    for (size_t i = 0; i < of_list_instructions.n_tags; i++) {
        uint16_t type = of_list_instructions.tags[i].type;
        if (type != OFPIT_EXPERIMENTER && (type != OFPIT_GOTO_TABLE || can_go_on))
            f->instructions[n++].id = type;
    }
    return (struct of_ids){n, f->instructions};
}

static struct of_ids
action_ids(struct features *f)
{
    uint32_t n = 0;
    for (size_t i = 0; i < of_list_actions.n_tags; i++)
        if (of_list_actions.tags[i].type != OFPAT_EXPERIMENTER)
            f->actions[n++].id = of_list_actions.tags[i].type;
    return (struct of_ids){n, f->actions};
}

static struct of_ids
oxm_ids(struct of_id *v, bool settable_only, bool masks)
{
    uint32_t n = 0;
    for (int i = 0; i < OXM_N; i++) {
        const struct oxm_row *r = &oxm_rows[i];
        if (!settable_only || r->settable)
            v[n++].id = OXM_HEADER(i, masks && r->maskable, r->bytes);
    }
    return (struct of_ids){n, v};
}

static void
add_table(struct sw *sw, struct dump *to, uint8_t id)
{
    const struct flow_table *ft = tables_get(sw->dp.tables, id);
    unsigned n_tables = tables_count(sw->dp.tables);
    struct features *f = calloc(1, sizeof *f);
    if (!f)
        return;
    struct of_ids instr = instruction_ids(f, id + 1u < n_tables), acts = action_ids(f);
    struct of_ids set = oxm_ids(f->setfields, true, false);
    put_types(f, OFPTFPT_INSTRUCTIONS, instr);
    put_next(f, OFPTFPT_NEXT_TABLES, id, n_tables);
    put_types(f, OFPTFPT_WRITE_ACTIONS, acts);
    put_types(f, OFPTFPT_APPLY_ACTIONS, acts);
    put_oxms(f, OFPTFPT_MATCH, oxm_ids(f->match, false, true));
    put_oxms(f, OFPTFPT_WILDCARDS, oxm_ids(f->wildcards, false, false));
    put_oxms(f, OFPTFPT_WRITE_SETFIELD, set);
    put_oxms(f, OFPTFPT_APPLY_SETFIELD, set);
    struct of_table_features t = {.table_id = id,
                                  .metadata_match = UINT64_MAX,
                                  .metadata_write = UINT64_MAX,
                                  .config = ft->config,
                                  .max_entries = ft->max_entries,
                                  .properties = OF_LIST(f->v, f->n)};
    memcpy(t.name, ft->name, sizeof t.name);
    dump_add(to, &of_list_table_features, &t);
    free(f);
}

static bool
features_step(struct dump *to, void *ctx)
{
    struct sw *sw = ctx;
    for (unsigned i = 0; i < tables_count(sw->dp.tables); i++)
        add_table(sw, to, (uint8_t)i);
    return false;
}

int
handle_table_features(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_mp_table_features *q = m->body;
    if (q->tables.n) /* the tables' features are what they are */
        return OF_ERR(OFPET_TABLE_FEATURES_FAILED, OFPTFFC_EPERM);
    return conn_dump(c, m, features_step, NULL, sw);
}
