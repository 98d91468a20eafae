/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles instructions to a program, with the checks of 6.4 and 7.2.4.  actions.c does those of
 * actions. */
#include "actions-inside.h"

#include <errno.h>
#include <stdlib.h>

static int
compile_list(struct compiler *c, const struct of_list *actions)
{
    int err = 0;
    for (uint32_t i = 0; !err && i < actions->n; i++)
        err = action_compile(c, OF_AT(actions, i, struct of_tagged));
    return err;
}

/* Actions that have this place in an action set; ACTION_TYPES: those that have none. */
static int
compile_place(struct compiler *c, const struct of_list *actions, unsigned place)
{
    int err = 0;
    for (uint32_t i = 0; !err && i < actions->n; i++) {
        const struct of_tagged *t = OF_AT(actions, i, struct of_tagged);
        uint16_t type = t->row->type;
        if (place == (type < ACTION_TYPES ? action_rows[type].place : ACTION_TYPES))
            err = action_compile(c, t);
    }
    return err;
}

/* Whatever the order of write-actions is, an action set carries them out in its own (5.10): tags
 * come and go before fields are set. */
static int
compile_set(struct compiler *c, const struct of_list *actions)
{
    int err = 0;
    c->if_there = false;
    c->in_set = true;
    for (unsigned place = 0; !err && place <= ACTION_TYPES; place++)
        err = compile_place(c, actions, place);
    return err;
}

/* What the instructions say, before the program is put together. */
struct parts {
    const struct of_list *apply, *write;
    bool of_flow;        /* groups and the meter count it as a user */
    struct program head; /* last: it has a flexible end */
};

static int
take_instruction(const struct compile_env *env, const struct of_tagged *t, struct parts *p)
{
    switch (t->row->type) {
    case OFPIT_GOTO_TABLE: {
        uint8_t id = ((const struct of_instr_goto_table *)t)->table_id;
        if (id <= env->table_id || id >= env->n_tables)
            return OF_BAD_INSTRUCTION(BAD_TABLE_ID); /* LCOV_EXCL_LINE: features refuse it */
        p->head.goto_table = id;
        return 0;
    }
    case OFPIT_WRITE_METADATA: {
        const struct of_instr_write_metadata *m = (const struct of_instr_write_metadata *)t;
        p->head.has_metadata = true;
        p->head.metadata_mask = m->metadata_mask;
        p->head.metadata = m->metadata & m->metadata_mask;
        return 0;
    }
    case OFPIT_WRITE_ACTIONS: p->write = &((const struct of_instr_actions *)t)->actions; return 0;
    case OFPIT_APPLY_ACTIONS: p->apply = &((const struct of_instr_actions *)t)->actions; return 0;
    case OFPIT_CLEAR_ACTIONS: p->head.clear = true; return 0;
    case OFPIT_METER:
        p->head.meter_id = ((const struct of_instr_meter *)t)->meter_id;
        if (!env->meter_ok(env->sw, p->head.meter_id))
            return OF_METER_MOD_FAILED(UNKNOWN_METER);
        return 0;
    default: return OF_BAD_INSTRUCTION(BAD_EXPERIMENTER);
    }
}

/* In bytes, compiled. */
static size_t
list_size(const struct compile_env *env, const struct of_list *actions)
{
    size_t units = 0;
    for (uint32_t i = 0; actions && i < actions->n; i++)
        units += action_units(env, OF_AT(actions, i, struct of_tagged));
    return units * 8;
}

/* References to meters and groups (program_uses). */
static uint32_t
count_uses(const struct parts *p)
{
    const struct of_list *lists[] = {p->apply, p->write};
    uint32_t n = p->head.meter_id != 0;
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; lists[l] && i < lists[l]->n; i++)
            n += OF_AT(lists[l], i, struct of_tagged)->row->type == OFPAT_GROUP;
    return p->of_flow ? n : 0;
}

static int
assemble(const struct compile_env *env, const struct parts *p, struct of_bytes wire,
         struct program **out)
{
    size_t apply = list_size(env, p->apply), write = list_size(env, p->write);
    struct program head = p->head;
    head.n_apply = (uint16_t)(apply / 8);
    head.n_write = (uint16_t)(write / 8);
    head.n_wire = (uint16_t)wire.n;
    head.n_uses = (uint16_t)count_uses(p);
    struct program *prog = malloc(program_size(&head));
    if (!prog)
        return -ENOMEM;
    *prog = head;
    struct compiler c = {.env = env, .out = of_wr_fixed(prog->acts, apply + write + wire.n)};
    known_from_match(&c.known, env->has_match ? env->match : NULL);
    int err = p->apply ? compile_list(&c, p->apply) : 0;
    if (!err && p->write)
        err = compile_set(&c, p->write);
    if (err) {
        free(prog);
        return err;
    }
    of_wr_bytes(&c.out, wire.p, wire.n);
    prog->key_effect = program_key_effect(prog);
    if (prog->n_uses)
        memset(program_uses(prog), 0, prog->n_uses * sizeof(struct flow_use));
    *out = prog;
    return 0;
}

int
compile_instructions(const struct compile_env *env, const struct of_list *instructions,
                     struct program **out)
{
    struct parts p = {.of_flow = true, .head = {.goto_table = NO_TABLE}};
    uint32_t seen = 0;
    for (uint32_t i = 0; i < instructions->n; i++) {
        const struct of_tagged *t = OF_AT(instructions, i, struct of_tagged);
        uint32_t bit = 1u << (t->row->type & 31);
        if (seen & bit) /* at most one of each type (5.9); 1.3 has no code of its own for it */
            return OF_BAD_INSTRUCTION(UNSUP_INST);
        seen |= bit;
        int err = take_instruction(env, t, &p);
        if (err)
            return err;
    }
    return assemble(env, &p, instructions->raw, out);
}

int
compile_actions(const struct compile_env *env, const struct of_list *actions, struct program **out)
{
    struct parts p = {.head = {.goto_table = NO_TABLE}, .apply = actions};
    return assemble(env, &p, (struct of_bytes){0}, out);
}
