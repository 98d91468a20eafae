/* SPDX-License-Identifier: Apache-2.0 */
#include "actions-inside.h"

#include <packet/headers.h>

#include <string.h>

/* ------------------------------------------------------------------ what is known of the packet */

void
known_from_match(struct known *k, const struct of_match *m)
{
    *k = (struct known){
        .eth_type = KNOWN_NOTHING, .ip_proto = KNOWN_NOTHING, .icmpv6_type = KNOWN_NOTHING};
    for (uint32_t i = 0; m && i < m->n; i++) {
        const struct of_oxm *o = &m->v[i];
        if (o->row->field == OXM_eth_type)
            k->eth_type = of_get16(o->value);
        else if (o->row->field == OXM_ip_proto)
            k->ip_proto = o->value[0];
        else if (o->row->field == OXM_icmpv6_type)
            k->icmpv6_type = o->value[0];
        else if (o->row->field == OXM_vlan_vid)
            k->vlan = of_get16(o->value) & OFPVID_PRESENT;
    }
}

static void
known_payload(struct known *k, uint32_t eth_type)
{
    k->eth_type = eth_type;
    k->ip_proto = k->icmpv6_type = KNOWN_NOTHING;
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
                                               : KNOWN_NOTHING;
    for (int i = 0; i < p->n; i++)
        if (v == p->value[i])
            return true;
    return false;
}

/* Do the match and the actions so far say that there is no VLAN tag? */
static bool
known_untagged(const struct compiler *c)
{
    const struct of_oxm *o = c->env->has_match ? of_match_find(c->env->match, OXM_vlan_vid) : NULL;
    return o && !o->has_mask && oxm_number(o->row, o->value) == OFPVID_NONE &&
           !c->known.pushed_vlans && !c->known.other_frame;
}

/* ------------------------------------------------------------------ compiling */

static int
emit(struct compiler *c, const struct of_tagged *t, uint32_t arg)
{
    struct act a = {.op = (uint8_t)t->row->type, .units = 1, .arg = arg};
    of_wr_bytes(&c->out, &a, sizeof a);
    return 0;
}

static int
compile_plain(struct compiler *c, const struct of_tagged *t)
{
    return emit(c, t, 0);
}

static int
compile_ttl(struct compiler *c, const struct of_tagged *t)
{
    return emit(c, t, ((const struct of_action_ttl *)t)->ttl);
}

static int
compile_push_vlan(struct compiler *c, const struct of_tagged *t)
{
    struct act a = {.op = OFPAT_PUSH_VLAN, .units = 1, .extra = c->if_there};
    a.arg = ((const struct of_action_push *)t)->ethertype;
    if (a.arg != TYPE_VLAN && a.arg != TYPE_SVLAN)
        return OF_BAD_ACTION(BAD_ARGUMENT);
    c->known.vlan = true;
    c->known.pushed_vlans++;
    of_wr_bytes(&c->out, &a, sizeof a);
    return 0;
}

static int
compile_pop_vlan(struct compiler *c, const struct of_tagged *t)
{
    if (known_untagged(c) && !c->if_there)
        return OF_BAD_ACTION(MATCH_INCONSISTENT);
    c->known.pushed_vlans -= c->known.pushed_vlans > 0;
    c->known.vlan = c->known.pushed_vlans; /* another tag may follow, but that isn't known */
    return emit(c, t, 0);
}

/* MPLS and PBB: the new tag hides those behind it. */
static int
push_tag(struct compiler *c, const struct of_tagged *t, uint16_t type)
{
    c->known.vlan = false;
    known_payload(&c->known, type);
    return emit(c, t, type);
}

static int
compile_push_mpls(struct compiler *c, const struct of_tagged *t)
{
    uint16_t type = ((const struct of_action_push *)t)->ethertype;
    return is_mpls_type(type) ? push_tag(c, t, type) : OF_BAD_ACTION(BAD_ARGUMENT);
}

static int
compile_pop_mpls(struct compiler *c, const struct of_tagged *t)
{
    uint16_t type = ((const struct of_action_push *)t)->ethertype;
    known_payload(&c->known, type);
    return emit(c, t, type);
}

static int
compile_push_pbb(struct compiler *c, const struct of_tagged *t)
{
    uint16_t type = ((const struct of_action_push *)t)->ethertype;
    return type == TYPE_PBB ? push_tag(c, t, type) : OF_BAD_ACTION(BAD_ARGUMENT);
}

static int
compile_pop_pbb(struct compiler *c, const struct of_tagged *t)
{
    known_payload(&c->known, KNOWN_NOTHING);
    c->known.vlan = false;
    c->known.other_frame = true;
    return emit(c, t, 0);
}

static unsigned
set_field_units(const struct of_oxm *o)
{
    return 1 + (o->row->bytes + 7u) / 8;
}

static int
compile_set_field(struct compiler *c, const struct of_tagged *t)
{
    const struct of_oxm *o = &((const struct of_action_set_field *)t)->field;
    bool promised = prereq_holds(&c->known, o->row->prereq);
    bool must = c->env->has_match && !c->if_there;
    if (must && (!promised || (o->row->field == OXM_vlan_vid && known_untagged(c))))
        return OF_BAD_ACTION(MATCH_INCONSISTENT);
    struct act a = {.op = OFPAT_SET_FIELD,
                    .units = (uint8_t)set_field_units(o),
                    .arg = !promised,
                    .extra = o->row->field};
    of_wr_bytes(&c->out, &a, sizeof a);
    size_t start = c->out.len;
    of_wr_bytes(&c->out, o->value, o->row->bytes);
    of_wr_align(&c->out, start, 8);
    uint32_t v = (uint32_t)oxm_number(o->row, o->value);
    if (o->row->field == OXM_eth_type)
        known_payload(&c->known, v);
    else if (o->row->field == OXM_ip_proto)
        c->known.ip_proto = v;
    else if (o->row->field == OXM_icmpv6_type)
        c->known.icmpv6_type = v;
    return 0;
}

static unsigned
queue_units(const struct queue_ports *ports)
{
    size_t bytes = ports ? sizeof *ports + ports->n * sizeof ports->v[0] : 0;
    return 1 + (unsigned)((bytes + 7) / 8);
}

_Static_assert(QUEUE_PORTS_MAX * 8 + 2 * 8 <= UINT8_MAX * 8,
               "an action's length in units has 8 bits");

static const struct queue_ports *
queue_ports_of(const struct compile_env *env)
{
    return env->queue_ports ? env->queue_ports(env->sw) : NULL;
}

static int
compile_queue(struct compiler *c, const struct of_tagged *t)
{
    const struct queue_ports *ports = queue_ports_of(c->env);
    struct act a = {.op = OFPAT_SET_QUEUE,
                    .units = (uint8_t)queue_units(ports),
                    .arg = ((const struct of_action_set_queue *)t)->queue_id};
    size_t start = c->out.len;
    if (a.arg > OFP_QOS_QUEUE_MAX)
        return OF_BAD_ACTION(BAD_QUEUE);
    of_wr_bytes(&c->out, &a, sizeof a);
    if (ports)
        of_wr_bytes(&c->out, ports, sizeof *ports + ports->n * sizeof ports->v[0]);
    of_wr_align(&c->out, start, 8);
    return 0;
}

static int
compile_group(struct compiler *c, const struct of_tagged *t)
{
    uint32_t id = ((const struct of_action_group *)t)->group_id;
    return c->env->group_ok(c->env->sw, id) ? emit(c, t, id) : OF_BAD_ACTION(BAD_OUT_GROUP);
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
    struct act a = {.op = OFPAT_OUTPUT, .units = 1, .arg = o->port, .extra = o->max_len};
    of_wr_bytes(&c->out, &a, sizeof a);
    return 0;
}

/* ------------------------------------------------------------------ editing */

#define EDIT(name, call)                                                                           \
    static int edit_##name(struct packet *p, const struct act *a)                                  \
    {                                                                                              \
        return call;                                                                               \
    }
EDIT(copy_ttl_in, packet_copy_ttl_in(p))
EDIT(copy_ttl_out, packet_copy_ttl_out(p))
EDIT(set_mpls_ttl, packet_set_mpls_ttl(p, (uint8_t)a->arg))
EDIT(dec_mpls_ttl, packet_dec_mpls_ttl(p))
EDIT(set_nw_ttl, packet_set_nw_ttl(p, (uint8_t)a->arg))
EDIT(dec_nw_ttl, packet_dec_nw_ttl(p))
EDIT(push_vlan, a->extra &&packet_has_vlan(p) ? 0 : packet_push_vlan(p, (uint16_t)a->arg))
EDIT(pop_vlan, packet_pop_vlan(p))
EDIT(push_mpls, packet_push_mpls(p, (uint16_t)a->arg))
EDIT(pop_mpls, packet_pop_mpls(p, (uint16_t)a->arg))
EDIT(push_pbb, packet_push_pbb(p, (uint16_t)a->arg))
EDIT(pop_pbb, packet_pop_pbb(p))
EDIT(set_field, packet_set_field(p, (enum oxm_field)a->extra, a->data))

/* ------------------------------------------------------------------ the key */

#define FIELD(f) (UINT64_C(1) << OXM_##f)

/* Fields that can be set with no other effect on the key.  The others decide what the bytes
 * behind them are (eth_type, ip_proto, icmpv6_type), or lie where the key doesn't tell what the
 * packet has (ND). */
static const uint64_t plain_fields =
    FIELD(tunnel_id) | FIELD(eth_dst) | FIELD(eth_src) | FIELD(vlan_vid) | FIELD(vlan_pcp) |
    FIELD(ip_dscp) | FIELD(ip_ecn) | FIELD(ipv4_src) | FIELD(ipv4_dst) | FIELD(tcp_src) |
    FIELD(tcp_dst) | FIELD(udp_src) | FIELD(udp_dst) | FIELD(sctp_src) | FIELD(sctp_dst) |
    FIELD(icmpv4_type) | FIELD(icmpv4_code) | FIELD(arp_op) | FIELD(arp_spa) | FIELD(arp_tpa) |
    FIELD(arp_sha) | FIELD(arp_tha) | FIELD(ipv6_src) | FIELD(ipv6_dst) | FIELD(ipv6_flabel) |
    FIELD(icmpv6_code) | FIELD(mpls_label) | FIELD(mpls_tc) | FIELD(mpls_bos) | FIELD(pbb_isid);

/* arg: the packet may lack the field, and several fields share a place in the key. */
static enum key_effect
set_field_key(const struct act *a)
{
    return !a->arg && plain_fields >> a->extra & 1 ? KEY_FOLLOWS : KEY_UNKNOWN;
}

/* Whether the packet has all these bits of vlan_vid. */
static bool
has_bits(struct rekeyed *k, uint16_t bits)
{
    uint16_t asked = bits & (uint16_t)~of_get16(k->known.vlan_vid);
    of_set16(k->wc->vlan_vid, of_get16(k->wc->vlan_vid) | asked);
    return !(bits & ~of_get16(k->key.vlan_vid));
}

static void
know_vid(struct rekeyed *k, uint16_t vid, uint16_t bits)
{
    of_set16(k->key.vlan_vid, (uint16_t)((of_get16(k->key.vlan_vid) & ~bits) | vid));
    of_set16(k->known.vlan_vid, of_get16(k->known.vlan_vid) | bits);
}

/* As packet_set_field: what the packet lacks can't be set. */
static void
set_field_rekey(const struct act *a, struct rekeyed *k)
{
    enum oxm_field f = (enum oxm_field)a->extra;
    if (f == OXM_vlan_vid && has_bits(k, OFPVID_PRESENT))
        know_vid(k, of_get16(a->data) & 0xfff, 0xfff);
    if (f == OXM_vlan_vid || !has_bits(k, key_has(f)))
        return;
    memcpy(key_field(&k->key, f), a->data, oxm_rows[f].bytes);
    memset(key_field(&k->known, f), 0xff, oxm_rows[f].bytes);
}

/* The new tag has VID and PCP of the old one. */
static void
push_vlan_rekey(const struct act *a, struct rekeyed *k)
{
    if (!a->extra || !has_bits(k, OFPVID_PRESENT)) /* extra: only where there is none */
        know_vid(k, OFPVID_PRESENT, OFPVID_PRESENT);
}

/* ------------------------------------------------------------------ the rows */

/* In the order in which an action set is carried out (5.10).  A pop leaves the key unknown, as it
 * uncovers what was not in the key.  So does a push of MPLS or PBB, which hides most of the key;
 * few tables follow one.  TTLs are not in the key. */
#define ACTIONS(A)                                                                                 \
    A(COPY_TTL_IN, .compile = compile_plain, .edit = edit_copy_ttl_in, .key = KEY_KEPT)            \
    A(POP_VLAN, .compile = compile_pop_vlan, .edit = edit_pop_vlan, .key = KEY_UNKNOWN)            \
    A(POP_MPLS, .compile = compile_pop_mpls, .edit = edit_pop_mpls, .key = KEY_UNKNOWN)            \
    A(POP_PBB, .compile = compile_pop_pbb, .edit = edit_pop_pbb, .key = KEY_UNKNOWN)               \
    A(PUSH_MPLS, .compile = compile_push_mpls, .edit = edit_push_mpls, .key = KEY_UNKNOWN)         \
    A(PUSH_PBB, .compile = compile_push_pbb, .edit = edit_push_pbb, .key = KEY_UNKNOWN)            \
    A(PUSH_VLAN, .compile = compile_push_vlan, .edit = edit_push_vlan, .key = KEY_FOLLOWS,         \
      .rekey = push_vlan_rekey)                                                                    \
    A(COPY_TTL_OUT, .compile = compile_plain, .edit = edit_copy_ttl_out, .key = KEY_KEPT)          \
    A(DEC_MPLS_TTL, .compile = compile_plain, .edit = edit_dec_mpls_ttl, .key = KEY_KEPT)          \
    A(DEC_NW_TTL, .compile = compile_plain, .edit = edit_dec_nw_ttl, .key = KEY_KEPT)              \
    A(SET_MPLS_TTL, .compile = compile_ttl, .edit = edit_set_mpls_ttl, .key = KEY_KEPT)            \
    A(SET_NW_TTL, .compile = compile_ttl, .edit = edit_set_nw_ttl, .key = KEY_KEPT)                \
    A(SET_FIELD, .compile = compile_set_field, .edit = edit_set_field, .key_of = set_field_key,    \
      .rekey = set_field_rekey)                                                                    \
    A(SET_QUEUE, .compile = compile_queue, .key = KEY_KEPT)                                        \
    A(GROUP, .compile = compile_group, .key = KEY_KEPT)                                            \
    A(OUTPUT, .compile = compile_output, .key = KEY_KEPT)

#define PLACE(type, ...) PLACE_##type,
enum { ACTIONS(PLACE) PLACES };
_Static_assert(PLACES <= ACTION_TYPES, "an action set's places are bits of a uint32_t");

#define ROW(type, ...) [OFPAT_##type] = {.place = PLACE_##type, __VA_ARGS__},
const struct action_row action_rows[ACTION_TYPES] = {ACTIONS(ROW)};

/* The switch's own action has no code: it changes what the actions behind it do. */
static int
compile_experimenter(struct compiler *c, const struct of_action_experimenter *e)
{
    if (e->experimenter != OFP_QOS_EXPERIMENTER)
        return OF_BAD_ACTION(BAD_EXPERIMENTER);
    if (e->data.n != 8 || !of_action_is_if_there(e))
        return OF_BAD_ACTION(BAD_EXP_TYPE);
    if (c->in_set) /* an action set has its own order, so nothing is behind it */
        return OF_BAD_ACTION(UNSUPPORTED_ORDER);
    c->if_there = true;
    return 0;
}

int
action_compile(struct compiler *c, const struct of_tagged *t)
{
    if (t->row->type == OFPAT_EXPERIMENTER)
        return compile_experimenter(c, (const struct of_action_experimenter *)t);
    if (t->row->type >= ACTION_TYPES)
        return OF_BAD_ACTION(BAD_TYPE); /* LCOV_EXCL_LINE: the decoder refuses it */
    const struct action_row *row = &action_rows[t->row->type];
    return row->compile ? row->compile(c, t) : OF_BAD_ACTION(BAD_TYPE);
}

unsigned
action_units(const struct compile_env *env, const struct of_tagged *t)
{
    if (t->row->type == OFPAT_EXPERIMENTER)
        return 0;
    if (t->row->type == OFPAT_SET_QUEUE)
        return queue_units(queue_ports_of(env));
    return t->row->type == OFPAT_SET_FIELD
               ? set_field_units(&((const struct of_action_set_field *)t)->field)
               : 1;
}

enum key_effect
actions_key_effect(struct act_list l)
{
    enum key_effect all = KEY_KEPT;
    ACTS_EACH(a, l) {
        const struct action_row *row = &action_rows[a->op];
        enum key_effect one = row->key_of ? row->key_of(a) : row->key;
        if (one < all)
            all = one;
    }
    return all;
}

enum key_effect
program_key_effect(const struct program *p)
{
    enum key_effect e = actions_key_effect(program_apply(p));
    return p->has_metadata && e > KEY_FOLLOWS ? KEY_FOLLOWS : e;
}

void
program_rekey(const struct program *p, struct rekeyed *k)
{
    ACTS_EACH(a, program_apply(p))
        if (action_rows[a->op].rekey)
            action_rows[a->op].rekey(a, k);
    if (!p->has_metadata)
        return;
    uint64_t was = of_get64(k->key.metadata) & ~p->metadata_mask;
    of_set64(k->key.metadata, was | p->metadata);
    of_set64(k->known.metadata, of_get64(k->known.metadata) | p->metadata_mask);
}
