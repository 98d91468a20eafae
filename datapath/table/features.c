/* SPDX-License-Identifier: Apache-2.0 */
#include <table/features.h>

#include <packet/key.h>

#include <string.h>

#define BIT(n)    (UINT64_C(1) << (n))
#define ALL_TYPES 64 /* OFPIT_ and OFPAT_ are below it, except EXPERIMENTER */

enum kind { TYPES, NEXT, OXMS, OXMS_MASKS };

/* A row for each property: its set of bits in struct table_features. */
static const struct prop {
    uint16_t type;
    uint8_t kind;
    bool miss; /* may be left out: then the property of the row before counts */
    uint16_t off, size;
} props[TABLE_FEATURES_PROPS] = {
#define CAN(TYPE, kind, member)                                                                    \
    {OFPTFPT_##TYPE, kind, false, offsetof(struct table_features, can[0].member),                  \
     sizeof((struct table_can *)0)->member},                                                       \
    {                                                                                              \
        OFPTFPT_##TYPE##_MISS, kind, true, offsetof(struct table_features, can[1].member),         \
            sizeof((struct table_can *)0)->member                                                  \
    }
    CAN(INSTRUCTIONS, TYPES, instructions),
    CAN(NEXT_TABLES, NEXT, next),
    CAN(WRITE_ACTIONS, TYPES, write_actions),
    CAN(APPLY_ACTIONS, TYPES, apply_actions),
    {OFPTFPT_MATCH, OXMS_MASKS, false, offsetof(struct table_features, match), sizeof(uint64_t)},
    {OFPTFPT_WILDCARDS, OXMS, false, offsetof(struct table_features, wildcards), sizeof(uint64_t)},
    CAN(WRITE_SETFIELD, OXMS, write_fields),
    CAN(APPLY_SETFIELD, OXMS, apply_fields),
#undef CAN
};

static const struct prop *
prop_of(uint16_t type)
{
    for (size_t i = 0; i < TABLE_FEATURES_PROPS; i++)
        if (props[i].type == type)
            return &props[i];
    return NULL;
}

static uint64_t *
set_of(struct table_features *f, const struct prop *p)
{
    return (uint64_t *)(void *)((uint8_t *)f + p->off);
}

static bool
has_table(const uint64_t next[4], uint8_t id)
{
    return next[id / 64] >> id % 64 & 1;
}

/* ------------------------------------------------------------------ everything */

static uint64_t
all_types(const struct of_list_row *list)
{
    uint64_t set = 0;
    for (size_t i = 0; i < list->n_tags; i++)
        if (list->tags[i].type < ALL_TYPES)
            set |= BIT(list->tags[i].type);
    return set;
}

void
table_features_all(struct table_features *f, uint8_t id, unsigned n_tables, uint32_t max_entries)
{
    memset(f, 0, sizeof *f); /* with its holes: table_features_same compares them */
    f->metadata_match = f->metadata_write = UINT64_MAX;
    f->max_entries = max_entries;
    f->present = true;
    struct table_can *c = &f->can[0];
    for (int i = 0; i < OXM_N; i++) {
        f->match |= BIT(i);
        f->masks |= oxm_rows[i].maskable ? BIT(i) : 0;
        c->apply_fields |= oxm_rows[i].settable ? BIT(i) : 0;
    }
    f->wildcards = f->match;
    c->write_fields = c->apply_fields;
    c->instructions = all_types(&of_list_instructions);
    c->write_actions = c->apply_actions = all_types(&of_list_actions);
    if (id + 1u >= n_tables)
        c->instructions &= ~BIT(OFPIT_GOTO_TABLE);
    for (unsigned i = id + 1u; i < n_tables; i++)
        c->next[i / 64] |= BIT(i % 64);
    f->can[1] = f->can[0];
}

bool
table_features_same(const struct table_features *a, const struct table_features *b)
{
    return !memcmp(a, b, offsetof(struct table_features, name));
}

/* ------------------------------------------------------------------ a request */

static int
read_types(const struct of_ids *ids, uint64_t *set)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        if (ids->v[i].id >= ALL_TYPES)
            return OF_TABLE_FEATURES_FAILED(BAD_ARGUMENT);
        *set |= BIT(ids->v[i].id);
    }
    return 0;
}

/* OXM headers.  The specification doesn't say what length a header without a value has
 * (7.3.5.5).  So the length of the value, that of value and mask together, and 0 are accepted;
 * os-ken and Faucet send 0. */
static int
read_oxms(const struct of_ids *ids, uint64_t *set, uint64_t *masks)
{
    for (uint32_t i = 0; i < ids->n; i++) {
        uint32_t id = ids->v[i].id, field = id >> 9 & 0x7f;
        bool mask = id >> 8 & 1;
        if (id >> 16 != OFPXMC_OPENFLOW_BASIC || field >= OXM_N)
            return OF_TABLE_FEATURES_FAILED(BAD_ARGUMENT);
        uint8_t bytes = oxm_rows[field].bytes, len = (uint8_t)id;
        if (len && len != bytes && !(mask && len == 2 * bytes))
            return OF_TABLE_FEATURES_FAILED(BAD_ARGUMENT);
        *set |= BIT(field);
        *masks |= mask ? BIT(field) : 0;
    }
    return 0;
}

static int
read_prop(const struct of_tagged *t, const struct prop *p, const struct table_features *all,
          struct table_features *out)
{
    uint64_t *set = set_of(out, p), masks = 0;
    uint64_t can_mask = p->kind == OXMS_MASKS || p->type == OFPTFPT_WILDCARDS ? all->masks : 0;
    int err = 0;
    memset(set, 0, p->size);
    if (p->kind == NEXT) {
        struct of_bytes b = ((const struct of_tfp_next_tables *)t)->tables;
        for (size_t i = 0; i < b.n; i++)
            set[b.p[i] / 64] |= BIT(b.p[i] % 64);
    } else if (p->kind == TYPES) {
        err = read_types(&((const struct of_tfp_typeids *)t)->ids, set);
    } else {
        err = read_oxms(&((const struct of_tfp_oxmids *)t)->ids, set, &masks);
    }
    if (masks & ~can_mask)
        err = OF_TABLE_FEATURES_FAILED(BAD_ARGUMENT);
    if (p->kind == OXMS_MASKS)
        out->masks = masks;
    const uint64_t *can = (const uint64_t *)(const void *)((const uint8_t *)all + p->off);
    for (size_t i = 0; !err && i < p->size / sizeof *set; i++)
        if (set[i] & ~can[i])
            err = OF_TABLE_FEATURES_FAILED(BAD_ARGUMENT);
    return err;
}

/* Every property once; the _MISS ones may be left out (7.3.5.5). */
static int
read_props(const struct of_list *list, const struct table_features *all, struct table_features *out)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct of_tagged *t = OF_AT(list, i, struct of_tagged);
        const struct prop *p = prop_of(t->row->type);
        if (!p || seen & 1u << p->type)
            return OF_TABLE_FEATURES_FAILED(BAD_TYPE);
        seen |= 1u << p->type;
        int err = read_prop(t, p, all, out);
        if (err)
            return err;
    }
    for (const struct prop *p = props; p < props + TABLE_FEATURES_PROPS; p++) {
        if (seen & 1u << p->type)
            continue;
        if (!p->miss)
            return OF_TABLE_FEATURES_FAILED(BAD_TYPE);
        memcpy(set_of(out, p), set_of(out, p - 1), p->size);
    }
    return 0;
}

int
table_features_read(const struct of_table_features *wire, const struct table_features *all,
                    struct table_features *out)
{
    if (wire->metadata_match & ~all->metadata_match || wire->metadata_write & ~all->metadata_write)
        return OF_TABLE_FEATURES_FAILED(BAD_METADATA); /* LCOV_EXCL_LINE: all of it can be used */
    if (wire->max_entries > all->max_entries)
        return OF_TABLE_FEATURES_FAILED(BAD_ARGUMENT);
    memset(out, 0, sizeof *out);
    out->metadata_match = wire->metadata_match;
    out->metadata_write = wire->metadata_write;
    out->max_entries = wire->max_entries;
    out->present = true;
    memcpy(out->name, wire->name, strnlen(wire->name, sizeof out->name - 1));
    return read_props(&wire->properties, all, out);
}

int
table_features_check_pipeline(const struct table_features *v, unsigned n_tables)
{
    uint64_t there[4] = {0};
    for (unsigned i = 0; i < n_tables; i++)
        there[i / 64] |= v[i].present ? BIT(i % 64) : 0;
    for (unsigned i = 0; i < n_tables; i++)
        for (int w = 0; w < 4; w++)
            if ((v[i].can[0].next[w] | v[i].can[1].next[w]) & ~there[w])
                return OF_TABLE_FEATURES_FAILED(BAD_ARGUMENT);
    return v[0].present ? 0
                        : OF_TABLE_FEATURES_FAILED(BAD_TABLE); /* packets begin in table 0 (5.1) */
}

/* ------------------------------------------------------------------ a reply */

static struct of_ids
put_ids(struct table_features_wire *w, const struct prop *p, uint64_t set, uint64_t masks)
{
    struct of_id *first = &w->ids[w->n_ids];
    uint32_t n = 0;
    for (uint32_t i = 0; i < ALL_TYPES; i++) {
        if (!(set >> i & 1))
            continue;
        bool mask = p->kind == OXMS_MASKS && masks >> i & 1;
        first[n++].id = p->kind == TYPES ? i : OXM_HEADER(i, mask, oxm_rows[i].bytes);
    }
    w->n_ids += n;
    return (struct of_ids){n, first};
}

static struct of_bytes
put_next(uint8_t *to, const uint64_t next[4])
{
    size_t n = 0;
    for (unsigned i = 0; i < 256; i++)
        if (has_table(next, (uint8_t)i))
            to[n++] = (uint8_t)i;
    return (struct of_bytes){to, n};
}

void
table_features_write(const struct table_features *f, uint8_t id, uint32_t config,
                     struct table_features_wire *out)
{
    uint32_t n = 0;
    memset(out, 0, sizeof *out);
    for (const struct prop *p = props; p < props + TABLE_FEATURES_PROPS; p++) {
        const uint64_t *set = (const uint64_t *)(const void *)((const uint8_t *)f + p->off);
        if (p->miss && !memcmp(set, (const uint8_t *)f + p[-1].off, p->size))
            continue;
        const struct of_tag_row *row = of_tag_row(&of_list_table_props, p->type);
        if (p->kind == NEXT)
            out->props[n].next =
                (struct of_tfp_next_tables){row, put_next(out->next[p->miss], set)};
        else if (p->kind == TYPES)
            out->props[n].types = (struct of_tfp_typeids){row, put_ids(out, p, *set, 0)};
        else
            out->props[n].oxms = (struct of_tfp_oxmids){row, put_ids(out, p, *set, f->masks)};
        out->v[n] = &out->props[n];
        n++;
    }
    out->body = (struct of_table_features){.table_id = id,
                                           .metadata_match = f->metadata_match,
                                           .metadata_write = f->metadata_write,
                                           .config = config,
                                           .max_entries = f->max_entries,
                                           .properties = {.n = n, .v = out->v}};
    memcpy(out->body.name, f->name, sizeof out->body.name);
}

/* ------------------------------------------------------------------ a flow-mod */

/* A mask of all ones is none (7.2.3.5). */
static bool
is_masked(const struct of_oxm *o)
{
    return o->has_mask && !key_mask_is_whole((enum oxm_field)o->row->field, o->mask);
}

/* Whether the match has the prerequisite of a field (7.2.3.6). */
static bool
has_prereq(const struct of_match *m, const struct oxm_prereq *p)
{
    const struct of_oxm *have = p->field < 0 ? NULL : of_match_find(m, (enum oxm_field)p->field);
    if (p->field < 0 || !have)
        return p->field < 0;
    uint64_t v = oxm_number(have->row, have->value);
    if (p->field == OXM_vlan_vid)
        return v & OFPVID_PRESENT;
    bool any = !p->n;
    for (int i = 0; i < p->n; i++)
        any = any || v == p->value[i];
    return any;
}

static int
check_match(const struct table_features *f, const struct of_flow_mod *fm, bool miss)
{
    const struct of_match *m = &fm->match;
    uint64_t there = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct of_oxm *o = &m->v[i];
        there |= BIT(o->row->field);
        if (!(f->match >> o->row->field & 1))
            return OF_BAD_MATCH(BAD_FIELD);
        if (is_masked(o) && !(f->masks >> o->row->field & 1))
            return OF_BAD_MATCH(BAD_MASK);
        if (o->row->field == OXM_metadata && oxm_number(o->row, o->mask) & ~f->metadata_match)
            return OF_BAD_MATCH(BAD_MASK);
    }
    /* Any table takes a table-miss entry, which leaves out every field (5.4). */
    uint64_t must = miss || fm->command != OFPFC_ADD ? 0 : f->match & ~f->wildcards & ~there;
    for (int i = 0; must && i < OXM_N; i++)
        if (must >> i & 1 && has_prereq(m, oxm_rows[i].prereq))
            return OF_BAD_MATCH(BAD_WILDCARDS);
    return 0;
}

static int
check_actions(const struct of_list *l, uint64_t types, uint64_t fields)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct of_tagged *t = OF_AT(l, i, struct of_tagged);
        if (t->row->type >= ALL_TYPES)
            continue;
        if (!(types >> t->row->type & 1))
            return OF_BAD_ACTION(BAD_TYPE);
        if (t->row->type == OFPAT_SET_FIELD &&
            !(fields >> ((const struct of_action_set_field *)t)->field.row->field & 1))
            return OF_BAD_ACTION(BAD_SET_TYPE);
    }
    return 0;
}

static int
check_instruction(const struct of_tagged *t, const struct table_can *can, uint64_t metadata_write)
{
    if (t->row->type >= ALL_TYPES)
        return 0;
    if (!(can->instructions >> t->row->type & 1) && t->row->type != OFPIT_GOTO_TABLE)
        return OF_BAD_INSTRUCTION(UNSUP_INST);
    switch (t->row->type) {
    case OFPIT_GOTO_TABLE: /* checked first: in the last table no id is right */
        if (!has_table(can->next, ((const struct of_instr_goto_table *)t)->table_id))
            return OF_BAD_INSTRUCTION(BAD_TABLE_ID);
        return can->instructions >> OFPIT_GOTO_TABLE & 1 ? 0 : OF_BAD_INSTRUCTION(UNSUP_INST);
    case OFPIT_WRITE_METADATA: {
        const struct of_instr_write_metadata *w = (const struct of_instr_write_metadata *)t;
        if (w->metadata & w->metadata_mask & ~metadata_write)
            return OF_BAD_INSTRUCTION(UNSUP_METADATA);
        return w->metadata_mask & ~metadata_write ? OF_BAD_INSTRUCTION(UNSUP_METADATA_MASK) : 0;
    }
    case OFPIT_WRITE_ACTIONS:
        return check_actions(&((const struct of_instr_actions *)t)->actions, can->write_actions,
                             can->write_fields);
    case OFPIT_APPLY_ACTIONS:
        return check_actions(&((const struct of_instr_actions *)t)->actions, can->apply_actions,
                             can->apply_fields);
    default: return 0;
    }
}

int
table_features_check(const struct table_features *f, const struct of_flow_mod *fm)
{
    /* An empty match with priority 0 is the table-miss entry; a non-strict modify with an empty
     * match may modify both kinds. */
    bool miss = !fm->match.n && !fm->priority && fm->command != OFPFC_MODIFY;
    int last = !fm->match.n && (miss || fm->command == OFPFC_MODIFY);
    int err = check_match(f, fm, miss);
    for (int which = miss; which <= last; which++)
        for (uint32_t i = 0; !err && i < fm->instructions.n; i++)
            err = check_instruction(OF_AT(&fm->instructions, i, struct of_tagged), &f->can[which],
                                    f->metadata_write);
    return err;
}
