/* SPDX-License-Identifier: Apache-2.0 */
#include "random.h"

#include <oflib/text.h>

#include <stdlib.h>

static void *
make(struct random_env *e, size_t n)
{
    void *p = of_arena_alloc(e->arena, n);
    if (!p)
        abort();
    return p;
}

static void
append(struct random_env *e, struct of_list *l, void *elem)
{
    if (!of_list_append(e->arena, l, elem))
        abort();
}

static uint32_t
any_port(struct random *c)
{
    /* clang-format off */
    static const uint32_t ports[] = {1, 2, 3, 4, 5, 1, 2, 3, 4, 9, OFPP_LOCAL, OFPP_IN_PORT, OFPP_ALL,
                                     OFPP_FLOOD, OFPP_NORMAL, OFPP_CONTROLLER, OFPP_CONTROLLER};
    /* clang-format on */
    if (c->plain && !once_in(c, 16))
        return ports[random_below(c, 14)];
    return ports[random_below(c, sizeof ports / sizeof ports[0])];
}

/* A group that is there, above `above`; 0: none. */
static uint32_t
any_group(struct random_env *e, uint32_t above)
{
    uint32_t id = 0, n = 0;
    for (const struct oracle_group *g = e->sw->groups; g; g = g->next)
        if (g->id > above && once_in(e->c, ++n))
            id = g->id;
    return id;
}

/* ------------------------------------------------------------------ actions */

static bool
may_have(const struct of_match *m, enum oxm_field f)
{
    const struct oxm_prereq *p = oxm_rows[f].prereq;
    if (p->field < 0)
        return true;
    const struct of_oxm *o = of_match_find(m, (enum oxm_field)p->field);
    if (!o)
        return false;
    uint64_t v = oxm_number(o->row, o->value);
    if (p->field == OXM_vlan_vid)
        return v & OFPVID_PRESENT;
    for (int i = 0; i < p->n; i++)
        if (v == p->value[i])
            return true;
    return !p->n;
}

/* Where a list of actions stands. */
struct place {
    const struct of_match *match; /* NULL: of a bucket, a packet-out */
    uint32_t above;               /* groups above this one may be named */
    bool packet_out;
};

static struct of_action_output *
make_output(struct random_env *e, uint32_t port)
{
    struct of_action_output *o = make(e, sizeof *o);
    *o = (struct of_action_output){.row = OF_ACTION(OUTPUT), .port = port};
    if (port == OFPP_CONTROLLER)
        o->max_len = once_in(e->c, 2) ? OFPCML_NO_BUFFER : (uint16_t)random_below(e->c, 200);
    return o;
}

static void *
make_set_field(struct random_env *e, const struct place *pl)
{
    struct of_action_set_field *s = make(e, sizeof *s);
    enum oxm_field f;
    do
        f = (enum oxm_field)random_below(e->c, OXM_N);
    while (!oxm_rows[f].settable || (pl->match && !may_have(pl->match, f)) ||
           (!e->c->roots && (f == OXM_eth_type || f == OXM_ip_proto || f == OXM_icmpv6_type)));
    s->row = OF_ACTION(SET_FIELD);
    s->field.row = &oxm_rows[f];
    memset(s->field.mask, 0xff, sizeof s->field.mask);
    random_value(e->c, f, s->field.value);
    return s;
}

static void *
make_plain(struct random_env *e, uint16_t type)
{
    struct of_action_empty *a = make(e, sizeof *a);
    a->row = of_tag_row(&of_list_actions, type);
    return a;
}

static void *
make_ttl(struct random_env *e, uint16_t type)
{
    struct of_action_ttl *a = make(e, sizeof *a);
    a->row = of_tag_row(&of_list_actions, type);
    a->ttl = (uint8_t)(once_in(e->c, 2) ? 64 : random_below(e->c, 3));
    return a;
}

static void *
make_push(struct random_env *e, uint16_t type, uint16_t ethertype)
{
    struct of_action_push *a = make(e, sizeof *a);
    a->row = of_tag_row(&of_list_actions, type);
    a->ethertype = ethertype;
    return a;
}

static void *
make_tag_action(struct random_env *e)
{
    static const uint16_t behind[] = {0x8847, 0x8847, 0x800, 0x86dd, 0x8100, 0x88b5};
    bool other = once_in(e->c, 2);
    if (e->c->plain && !once_in(e->c, 16))
        return once_in(e->c, 2) ? make_push(e, OFPAT_PUSH_VLAN, other ? 0x8100 : 0x88a8)
                                : make_plain(e, OFPAT_POP_VLAN);
    switch (e->c->tags ? random_below(e->c, 3) * 2 + 1 : random_below(e->c, 6)) {
    case 0: return make_push(e, OFPAT_PUSH_VLAN, other ? 0x8100 : 0x88a8);
    case 1: return make_plain(e, OFPAT_POP_VLAN);
    case 2: return make_push(e, OFPAT_PUSH_MPLS, other ? 0x8847 : 0x8848);
    case 3: return make_push(e, OFPAT_POP_MPLS, behind[random_below(e->c, 6)]);
    case 4: return make_push(e, OFPAT_PUSH_PBB, 0x88e7);
    default: return make_plain(e, OFPAT_POP_PBB);
    }
}

static void *
make_ttl_action(struct random_env *e)
{
    static const uint16_t types[] = {OFPAT_COPY_TTL_OUT, OFPAT_COPY_TTL_IN, OFPAT_SET_MPLS_TTL,
                                     OFPAT_DEC_MPLS_TTL, OFPAT_SET_NW_TTL,  OFPAT_DEC_NW_TTL};
    uint16_t type = types[random_below(e->c, 6)];
    if (e->c->plain && once_in(e->c, 2))
        type = types[4 + random_below(e->c, 2)];
    return type == OFPAT_SET_MPLS_TTL || type == OFPAT_SET_NW_TTL ? make_ttl(e, type)
                                                                  : make_plain(e, type);
}

static void *
make_action(struct random_env *e, const struct place *pl)
{
    uint32_t group = any_group(e, pl->above), what = random_below(e->c, 16);
    if (what == 0 && group) {
        struct of_action_group *a = make(e, sizeof *a);
        *a = (struct of_action_group){.row = OF_ACTION(GROUP), .group_id = group};
        return a;
    }
    if (what == 1) {
        struct of_action_set_queue *a = make(e, sizeof *a);
        *a = (struct of_action_set_queue){.row = OF_ACTION(SET_QUEUE),
                                          .queue_id = random_below(e->c, 4)};
        return a;
    }
    if (what < 4)
        return make_ttl_action(e);
    if (what < 7)
        return make_tag_action(e);
    if (what < 12)
        return make_set_field(e, pl);
    return make_output(e, pl->packet_out && once_in(e->c, 3) ? OFPP_TABLE : any_port(e->c));
}

/* The switch's own: those behind it set what a packet has. */
static void *
make_if_there(struct random_env *e)
{
    static const uint8_t data[8] = {0, 0, 0, OFP_ACT_IF_THERE};
    struct of_action_experimenter *a = make(e, sizeof *a);
    *a = (struct of_action_experimenter){.row = OF_ACTION(EXPERIMENTER),
                                         .experimenter = OFP_QOS_EXPERIMENTER,
                                         .data = {data, sizeof data}};
    return a;
}

static void
random_actions(struct random_env *e, const struct place *pl, struct of_list *l)
{
    for (uint32_t n = random_below(e->c, 6); n; n--)
        append(e, l, make_action(e, pl));
    if (once_in(e->c, 2))
        append(e, l, make_output(e, any_port(e->c)));
}

/* ------------------------------------------------------------------ matches */

static void
mask_it(struct random *c, struct of_oxm *o)
{
    uint32_t bits = o->row->bytes * 8u, keep = random_below(c, bits + 1);
    o->has_mask = true;
    memset(o->mask, 0, sizeof o->mask);
    for (uint32_t b = 0; b < keep; b++) { /* a prefix or a suffix */
        uint32_t bit = once_in(c, 8) ? random_below(c, bits) : keep & 1 ? bits - 1 - b : b;
        if (bit >= bits - o->row->bits)
            o->mask[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
    }
    if (o->row->field == OXM_vlan_vid)
        o->mask[0] |= OFPVID_PRESENT >> 8;
    for (int i = 0; i < o->row->bytes; i++)
        o->value[i] &= o->mask[i];
}

/* How often a field is asked for: once in so many matches that could. */
static uint32_t
rarity(enum oxm_field f)
{
    switch (f) {
    case OXM_eth_type:
    case OXM_ip_proto:
    case OXM_metadata: return 2;
    case OXM_in_port:
    case OXM_vlan_vid:
    case OXM_icmpv6_type: return 4;
    case OXM_tunnel_id:
    case OXM_eth_src:
    case OXM_eth_dst: return 10;
    default: return 5;
    }
}

/* A value that one of the frames has, or would have if it had the field; false: it can't have. */
static bool
value_of(struct random *c, const struct oracle_packet *p, enum oxm_field f, uint8_t *value)
{
    if (oracle_field(p, f, value))
        return f > OXM_metadata && f != OXM_tunnel_id;
    memset(value, 0, oxm_rows[f].bytes);
    return once_in(c, 3);
}

static void
random_match(struct random_env *e, struct of_match *m)
{
    struct random *c = e->c;
    const struct frame *frame = &e->frames[random_below(c, e->n_frames)];
    struct oracle_packet like = {.n = frame->n};
    bool meets = !once_in(c, 4);
    memcpy(like.data, frame->data, frame->n);
    for (uint32_t n = random_below(c, 3); n; n--) /* as it may look in a later table */
        oracle_edit(&like, make_tag_action(e));
    m->v = make(e, OXM_N * sizeof *m->v);
    for (int f = 0; f < OXM_N; f++) {
        struct of_oxm *o = &m->v[m->n];
        if (!may_have(m, (enum oxm_field)f) || !once_in(c, rarity((enum oxm_field)f)))
            continue;
        *o = (struct of_oxm){.row = &oxm_rows[f]};
        memset(o->mask, 0xff, sizeof o->mask);
        if (!meets || !value_of(c, &like, (enum oxm_field)f, o->value))
            random_value(c, (enum oxm_field)f, o->value);
        if (f == OXM_vlan_vid && (!o->value[0] || once_in(c, 4)))
            memset(o->value, 0, 2); /* OFPVID_NONE */
        else if (oxm_rows[f].maskable && once_in(c, 2))
            mask_it(c, o);
        m->n++;
    }
}

/* ------------------------------------------------------------------ flow-mods */

static void
add_actions(struct random_env *e, uint16_t type, const struct of_match *m, struct of_list *l)
{
    struct place pl = {.match = m};
    struct of_instr_actions *a = make(e, sizeof *a);
    a->row = of_tag_row(&of_list_instructions, type);
    if (type == OFPIT_APPLY_ACTIONS && once_in(e->c, 6)) {
        append(e, &a->actions, make_if_there(e));
        pl.match = NULL; /* it needs to promise nothing */
    }
    if (e->c->tags && type == OFPIT_APPLY_ACTIONS)
        append(e, &a->actions, make_tag_action(e));
    if (!e->c->tags || once_in(e->c, 2))
        random_actions(e, &pl, &a->actions);
    append(e, l, a);
}

static void
random_instructions(struct random_env *e, uint8_t table, const struct of_match *m,
                    struct of_list *l)
{
    struct random *c = e->c;
    if (!once_in(c, c->tags ? 16 : 4) && table + 1 < e->n_tables) {
        struct of_instr_goto_table *g = make(e, sizeof *g);
        g->row = OF_INSTR(GOTO_TABLE);
        uint32_t further = once_in(c, 2) ? 1 : e->n_tables - table - 1u;
        g->table_id = (uint8_t)(table + 1 + random_below(c, further));
        append(e, l, g);
    }
    if (once_in(c, 2)) {
        struct of_instr_write_metadata *w = make(e, sizeof *w);
        w->row = OF_INSTR(WRITE_METADATA);
        w->metadata = random_below(c, 4);
        w->metadata_mask = once_in(c, 2) ? UINT64_MAX : random_below(c, 4);
        append(e, l, w);
    }
    if (once_in(c, 2))
        add_actions(e, OFPIT_APPLY_ACTIONS, m, l);
    if (once_in(c, 2))
        add_actions(e, OFPIT_WRITE_ACTIONS, m, l);
    if (once_in(c, 8)) {
        struct of_instr_clear *i = make(e, sizeof *i);
        i->row = OF_INSTR(CLEAR_ACTIONS);
        append(e, l, i);
    }
    if (once_in(c, 12)) {
        struct of_instr_meter *i = make(e, sizeof *i);
        i->row = OF_INSTR(METER);
        i->meter_id = METER_ID;
        append(e, l, i);
    }
}

/* Mostly the match, table and priority of a flow that is there. */
static void
aim(struct random_env *e, struct of_flow_mod *fm)
{
    uint32_t n = 0;
    const struct oracle_flow *one = NULL;
    for (const struct oracle_flow *f = e->sw->flows; f; f = f->next)
        if (once_in(e->c, ++n))
            one = f;
    if (!one || once_in(e->c, 3))
        return;
    fm->table_id = one->table_id;
    fm->priority = one->priority;
    fm->match.n = one->match->n;
    memcpy(fm->match.v, one->match->v, one->match->n * sizeof *one->match->v);
    if (fm->match.n && once_in(e->c, 2) && fm->command != OFPFC_ADD)
        fm->match.n = 1 + random_below(e->c, fm->match.n); /* prerequisites come first */
}

static void
random_timing(struct random *c, struct of_flow_mod *fm)
{
    if (once_in(c, 8))
        fm->idle_timeout = (uint16_t)(1 + random_below(c, 4));
    if (once_in(c, 8))
        fm->hard_timeout = (uint16_t)(1 + random_below(c, 8));
    if (once_in(c, 8))
        fm->flags |= OFPFF_CHECK_OVERLAP;
    if (once_in(c, 8))
        fm->flags |= OFPFF_NO_PKT_COUNTS;
    if (once_in(c, 8))
        fm->flags |= OFPFF_NO_BYT_COUNTS;
}

struct of_flow_mod *
random_flow_mod(struct random_env *e)
{
    static const uint8_t commands[] = {
        OFPFC_ADD, OFPFC_ADD,    OFPFC_ADD,           OFPFC_ADD,    OFPFC_ADD,
        OFPFC_ADD, OFPFC_MODIFY, OFPFC_MODIFY_STRICT, OFPFC_DELETE, OFPFC_DELETE_STRICT};
    struct random *c = e->c;
    struct of_flow_mod *fm = make(e, sizeof *fm);
    *fm = (struct of_flow_mod){.command = commands[random_below(c, sizeof commands)],
                               .table_id =
                                   (uint8_t)(once_in(c, 3) ? 0 : random_below(c, e->n_tables)),
                               .priority = (uint16_t)random_below(c, 8),
                               .buffer_id = OFP_NO_BUFFER,
                               .out_port = OFPP_ANY,
                               .out_group = OFPG_ANY,
                               .cookie = (uint64_t)++e->next_cookie << 8 | random_below(c, 4)};
    bool removes = fm->command == OFPFC_DELETE || fm->command == OFPFC_DELETE_STRICT;
    random_match(e, &fm->match);
    if (fm->match.n < 3)
        fm->priority /= 2; /* what few packets match should meet them */
    if (fm->command == OFPFC_ADD && (!fm->match.n || once_in(c, 6))) /* table-miss */
        fm->match.n = fm->priority = 0;
    else if (fm->command != OFPFC_ADD || once_in(c, 6))
        aim(e, fm);
    if (!removes)
        random_instructions(e, fm->table_id, &fm->match, &fm->instructions);
    if (fm->command == OFPFC_ADD)
        random_timing(c, fm);
    if (!removes && once_in(c, 3))
        fm->flags |= OFPFF_RESET_COUNTS;
    if (fm->command != OFPFC_ADD && once_in(c, 3))
        fm->cookie_mask = 3;
    if (removes && once_in(c, 4))
        fm->out_port = any_port(c);
    if (removes && once_in(c, 6))
        fm->out_group = 1 + random_below(c, 6);
    if (removes && once_in(c, 4))
        fm->table_id = OFPTT_ALL;
    return fm;
}

/* ------------------------------------------------------------------ others */

static struct of_bucket *
random_bucket(struct random_env *e, const struct of_group_mod *gm)
{
    struct place pl = {.above = gm->group_id};
    struct of_bucket *b = make(e, sizeof *b);
    *b = (struct of_bucket){.watch_port = OFPP_ANY, .watch_group = OFPG_ANY};
    if (gm->type == OFPGT_FF) {
        uint32_t group = any_group(e, gm->group_id);
        b->watch_port = 1 + random_below(e->c, 5);
        if (group && once_in(e->c, 2))
            b->watch_group = group;
        if (b->watch_group != OFPG_ANY && once_in(e->c, 2))
            b->watch_port = OFPP_ANY;
    } else if (once_in(e->c, 4)) {
        b->watch_port = random_below(e->c, 8); /* a port, or none at all */
    }
    random_actions(e, &pl, &b->actions);
    return b;
}

struct of_group_mod *
random_group_mod(struct random_env *e)
{
    static const uint16_t commands[] = {OFPGC_ADD, OFPGC_ADD, OFPGC_MODIFY, OFPGC_MODIFY,
                                        OFPGC_DELETE};
    struct random *c = e->c;
    struct of_group_mod *gm = make(e, sizeof *gm);
    *gm = (struct of_group_mod){.command = commands[random_below(c, 5)],
                                .type = (uint8_t)random_below(c, 4),
                                .group_id = 1 + random_below(c, 6)};
    if (gm->command == OFPGC_DELETE) {
        gm->type = OFPGT_ALL;
        return gm;
    }
    uint32_t n = gm->type == OFPGT_INDIRECT ? 1 : random_below(c, 4);
    struct of_bucket *equal = random_bucket(e, gm);
    for (uint32_t i = 0; i < n; i++) {
        struct of_bucket *b = random_bucket(e, gm);
        if (gm->type == OFPGT_SELECT && once_in(c, 2)) { /* see oracle-switch.c */
            b->weight = (uint16_t)(1 + random_below(c, 3));
            b->actions = equal->actions;
        }
        append(e, &gm->buckets, b);
    }
    return gm;
}

struct of_packet_out *
random_packet_out(struct random_env *e)
{
    struct place pl = {.packet_out = true};
    struct of_packet_out *po = make(e, sizeof *po);
    struct frame f;
    random_frame(e->c, &f);
    *po = (struct of_packet_out){.buffer_id = OFP_NO_BUFFER,
                                 .in_port = once_in(e->c, 2) ? OFPP_CONTROLLER
                                                             : 1 + random_below(e->c, 5)};
    if (once_in(e->c, 6))
        append(e, &po->actions, make_if_there(e));
    random_actions(e, &pl, &po->actions);
    uint8_t *data = make(e, f.n);
    memcpy(data, f.data, f.n);
    po->data = (struct of_bytes){data, f.n};
    return po;
}
