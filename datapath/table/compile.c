/* SPDX-License-Identifier: Apache-2.0 */
/* From a flow-mod's instructions to a program, with all checks of 6.4, 7.2.4 and 7.2.5. */
#include <table/flow.h>

#include <errno.h>
#include <stdlib.h>

#define UNKNOWN UINT32_MAX

/* What is known of a packet at this point of the program, from the match and the actions so far:
 * what set_field's prerequisites are checked against. */
struct known {
    uint32_t eth_type, ip_proto, icmpv6_type;
    bool vlan;
    bool other_frame; /* than the one that the match is about */
    uint32_t pushed;  /* VLAN tags */
};

struct compiler {
    const struct compile_env *env;
    struct known known;
    struct of_wr out; /* actions, as struct act; there is room for all of them (list_size) */
};

static struct known
known_from_match(const struct of_match *m)
{
    struct known k = {.eth_type = UNKNOWN, .ip_proto = UNKNOWN, .icmpv6_type = UNKNOWN};
    for (uint32_t i = 0; m && i < m->n; i++) {
        const struct of_oxm *o = &m->v[i];
        if (o->row->field == OXM_eth_type)
            k.eth_type = of_get16(o->value);
        else if (o->row->field == OXM_ip_proto)
            k.ip_proto = o->value[0];
        else if (o->row->field == OXM_icmpv6_type)
            k.icmpv6_type = o->value[0];
        else if (o->row->field == OXM_vlan_vid)
            k.vlan = of_get16(o->value) & OFPVID_PRESENT;
    }
    return k;
}

static void
new_payload(struct known *k, uint32_t eth_type)
{
    k->eth_type = eth_type;
    k->ip_proto = k->icmpv6_type = UNKNOWN;
}

static bool
prereq_holds(const struct known *k, const struct oxm_prereq *p)
{
    if (p->field < 0)
        return true;
    if (p->field == OXM_vlan_vid)
        return k->vlan;
    uint32_t v = p->field == OXM_eth_type      ? k->eth_type
                 : p->field == OXM_ip_proto    ? k->ip_proto
                 : p->field == OXM_icmpv6_type ? k->icmpv6_type
                                               : UNKNOWN;
    for (int i = 0; i < p->n; i++)
        if (v == p->value[i])
            return true;
    return false;
}

static void
emit(struct compiler *c, uint8_t op, uint32_t arg, uint16_t extra)
{
    struct act a = {.op = op, .units = 1, .arg = arg, .extra = extra};
    of_wr_bytes(&c->out, &a, sizeof a);
}

static int
compile_output(struct compiler *c, const struct of_tagged *t)
{
    const struct of_action_output *o = (const struct of_action_output *)t;
    const struct compile_env *env = c->env;
    if (o->port == OFPP_TABLE ? !env->packet_out : !env->port_ok(env->sw, o->port))
        return OF_BAD_ACTION(BAD_OUT_PORT);
    if (o->port == OFPP_CONTROLLER && o->max_len > OFPCML_MAX && o->max_len != OFPCML_NO_BUFFER)
        return OF_BAD_ACTION(BAD_ARGUMENT);
    emit(c, OFPAT_OUTPUT, o->port, o->max_len);
    return 0;
}

/* Do the match and the actions so far say that there is no VLAN tag? */
static bool
is_untagged(const struct compiler *c)
{
    const struct of_oxm *o = c->env->has_match ? of_match_find(c->env->match, OXM_vlan_vid) : NULL;
    return o && !o->has_mask && oxm_number(o->row, o->value) == OFPVID_NONE && !c->known.pushed &&
           !c->known.other_frame;
}

/* Units of a set_field, the value included. */
static uint8_t
set_field_units(const struct of_oxm *o)
{
    return (uint8_t)(1 + (o->row->bytes + 7) / 8);
}

static int
compile_set_field(struct compiler *c, const struct of_tagged *t)
{
    const struct of_oxm *o = &((const struct of_action_set_field *)t)->field;
    if (c->env->has_match && !prereq_holds(&c->known, o->row->prereq))
        return OF_BAD_ACTION(MATCH_INCONSISTENT);
    if (o->row->field == OXM_vlan_vid && is_untagged(c))
        return OF_BAD_ACTION(MATCH_INCONSISTENT);
    struct act a = {.op = OFPAT_SET_FIELD, .units = set_field_units(o), .extra = o->row->field};
    of_wr_bytes(&c->out, &a, sizeof a);
    size_t start = c->out.len;
    of_wr_bytes(&c->out, o->value, o->row->bytes);
    of_wr_align(&c->out, start, 8);
    uint32_t v = (uint32_t)oxm_number(o->row, o->value);
    if (o->row->field == OXM_eth_type)
        new_payload(&c->known, v);
    else if (o->row->field == OXM_ip_proto)
        c->known.ip_proto = v;
    else if (o->row->field == OXM_icmpv6_type)
        c->known.icmpv6_type = v;
    return 0;
}

/* The EtherTypes that a push may push. */
static bool
push_type_ok(uint16_t action, uint16_t type)
{
    return action == OFPAT_PUSH_VLAN   ? type == 0x8100 || type == 0x88a8
           : action == OFPAT_PUSH_MPLS ? type == 0x8847 || type == 0x8848
                                       : type == 0x88e7;
}

static int
compile_push(struct compiler *c, const struct of_tagged *t)
{
    uint16_t type = ((const struct of_action_push *)t)->ethertype, action = t->row->type;
    if (!push_type_ok(action, type))
        return OF_BAD_ACTION(BAD_ARGUMENT);
    c->known.vlan = action == OFPAT_PUSH_VLAN; /* other tags hide it */
    c->known.pushed += action == OFPAT_PUSH_VLAN;
    if (action != OFPAT_PUSH_VLAN)
        new_payload(&c->known, type);
    emit(c, (uint8_t)action, type, 0);
    return 0;
}

static int
compile_pop(struct compiler *c, const struct of_tagged *t)
{
    uint16_t action = t->row->type;
    uint32_t type = 0;
    if (action == OFPAT_POP_VLAN) {
        if (is_untagged(c))
            return OF_BAD_ACTION(MATCH_INCONSISTENT);
        c->known.pushed -= c->known.pushed > 0;
        c->known.vlan = c->known.pushed; /* else whether there is another is not known */
    } else if (action == OFPAT_POP_MPLS) {
        type = ((const struct of_action_push *)t)->ethertype;
        new_payload(&c->known, type);
    } else {
        new_payload(&c->known, UNKNOWN);
        c->known.vlan = false;
        c->known.other_frame = true;
    }
    emit(c, (uint8_t)action, type, 0);
    return 0;
}

static int
compile_queue(struct compiler *c, const struct of_tagged *t)
{
    uint32_t q = ((const struct of_action_set_queue *)t)->queue_id;
    if (q > OFP_QOS_QUEUE_MAX)
        return OF_BAD_ACTION(BAD_QUEUE);
    emit(c, OFPAT_SET_QUEUE, q, 0);
    return 0;
}

static int
compile_group(struct compiler *c, const struct of_tagged *t)
{
    uint32_t id = ((const struct of_action_group *)t)->group_id;
    if (!c->env->group_ok(c->env->sw, id))
        return OF_BAD_ACTION(BAD_OUT_GROUP);
    emit(c, OFPAT_GROUP, id, 0);
    return 0;
}

static int
compile_ttl(struct compiler *c, const struct of_tagged *t)
{
    emit(c, (uint8_t)t->row->type, ((const struct of_action_ttl *)t)->ttl, 0);
    return 0;
}

static int
compile_plain(struct compiler *c, const struct of_tagged *t)
{
    emit(c, (uint8_t)t->row->type, 0, 0);
    return 0;
}

static int (*const compilers[])(struct compiler *, const struct of_tagged *) = {
    [OFPAT_OUTPUT] = compile_output,      [OFPAT_COPY_TTL_OUT] = compile_plain,
    [OFPAT_COPY_TTL_IN] = compile_plain,  [OFPAT_SET_MPLS_TTL] = compile_ttl,
    [OFPAT_DEC_MPLS_TTL] = compile_plain, [OFPAT_PUSH_VLAN] = compile_push,
    [OFPAT_POP_VLAN] = compile_pop,       [OFPAT_PUSH_MPLS] = compile_push,
    [OFPAT_POP_MPLS] = compile_pop,       [OFPAT_SET_QUEUE] = compile_queue,
    [OFPAT_GROUP] = compile_group,        [OFPAT_SET_NW_TTL] = compile_ttl,
    [OFPAT_DEC_NW_TTL] = compile_plain,   [OFPAT_SET_FIELD] = compile_set_field,
    [OFPAT_PUSH_PBB] = compile_push,      [OFPAT_POP_PBB] = compile_pop,
};

static int
compile_one(struct compiler *c, const struct of_tagged *t)
{
    return t->row->type == OFPAT_EXPERIMENTER ? OF_BAD_ACTION(BAD_EXPERIMENTER)
                                              : compilers[t->row->type](c, t);
}

static int
compile_list(struct compiler *c, const struct of_list *actions)
{
    for (uint32_t i = 0; i < actions->n; i++) {
        int err = compile_one(c, OF_AT(actions, i, struct of_tagged));
        if (err)
            return err;
    }
    return 0;
}

/* What write-actions names is done in the action set's order (5.10), whatever the order here: tags
 * come and go before fields are set. */
static int
compile_set(struct compiler *c, const struct of_list *actions)
{
    static const uint8_t first[] = {OFPAT_POP_VLAN,  OFPAT_POP_MPLS, OFPAT_POP_PBB,
                                    OFPAT_PUSH_MPLS, OFPAT_PUSH_PBB, OFPAT_PUSH_VLAN};
    uint32_t tags = 0;
    for (unsigned k = 0; k <= sizeof first; k++) { /* the last time round: all others */
        for (uint32_t i = 0; i < actions->n; i++) {
            const struct of_tagged *t = OF_AT(actions, i, struct of_tagged);
            bool now = k < sizeof first ? t->row->type == first[k]
                                        : t->row->type > 31 || !(tags >> t->row->type & 1);
            int err = now ? compile_one(c, t) : 0;
            if (err)
                return err;
        }
        tags |= k < sizeof first ? 1u << first[k] : 0;
    }
    return 0;
}

/* The parts of a program before it is put together. */
struct parts {
    const struct of_list *apply, *write;
    bool of_flow;        /* its groups and its meter are to know who uses them */
    struct program head; /* last: it has a flexible end */
};

static int
take_instruction(const struct compile_env *env, const struct of_tagged *t, struct parts *p)
{
    switch (t->row->type) {
    case OFPIT_GOTO_TABLE: {
        uint8_t id = ((const struct of_instr_goto_table *)t)->table_id;
        if (id <= env->table_id || id >= env->n_tables)
            return OF_BAD_INSTRUCTION(BAD_TABLE_ID);
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

/* Popping a header shows what was behind it; a meter may remark or not; and where a field is
 * may depend on more than the key. */
static bool
is_opaque(const struct program *p)
{
    ACTS_EACH(a, program_apply(p)) {
        bool hidden_field = a->extra == OXM_eth_type || a->extra == OXM_ip_proto ||
                            a->extra == OXM_icmpv6_type || a->extra == OXM_ipv6_nd_target ||
                            a->extra == OXM_ipv6_nd_sll || a->extra == OXM_ipv6_nd_tll;
        if (a->op == OFPAT_POP_VLAN || a->op == OFPAT_POP_MPLS || a->op == OFPAT_POP_PBB ||
            (a->op == OFPAT_SET_FIELD && hidden_field))
            return true;
    }
    return p->meter_id;
}

/* Bytes that a list's actions are compiled to. */
static size_t
list_size(const struct of_list *actions)
{
    size_t units = 0;
    for (uint32_t i = 0; actions && i < actions->n; i++) {
        const struct of_tagged *t = OF_AT(actions, i, struct of_tagged);
        units += t->row->type == OFPAT_SET_FIELD
                     ? set_field_units(&((const struct of_action_set_field *)t)->field)
                     : 1;
    }
    return units * 8;
}

/* How many uses of meters and groups (program_uses). */
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

/* Compiles both lists into one allocation, with everything else. */
static int
assemble(const struct compile_env *env, const struct parts *p, struct of_bytes wire,
         struct program **out)
{
    size_t apply = list_size(p->apply), write = list_size(p->write);
    struct program head = p->head;
    head.n_apply = (uint16_t)(apply / 8);
    head.n_write = (uint16_t)(write / 8);
    head.n_wire = (uint16_t)wire.n;
    head.n_uses = (uint16_t)count_uses(p);
    struct program *prog = malloc(program_size(&head));
    if (!prog)
        return -ENOMEM;
    *prog = head;
    struct compiler c = {.env = env,
                         .known = known_from_match(env->has_match ? env->match : NULL),
                         .out = of_wr_fixed(prog->acts, apply + write + wire.n)};
    int err = p->apply ? compile_list(&c, p->apply) : 0;
    if (!err && p->write)
        err = compile_set(&c, p->write);
    if (err) {
        free(prog);
        return err;
    }
    of_wr_bytes(&c.out, wire.p, wire.n);
    prog->opaque = is_opaque(prog);
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
