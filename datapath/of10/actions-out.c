/* SPDX-License-Identifier: Apache-2.0 */
/* Translates a flow's instructions of 1.3 to actions of 1.0, if that doesn't change what they
 * do: those that actions-in.c makes, and like ones of a 1.3 controller. */
#include "inside.h"

struct turn {
    struct of_arena *arena;
    struct of10_known known;
    bool if_there; /* IF_THERE came */
    bool pushed;   /* a tag that the next action must fill */
    uint32_t queue;
    void **v;
    uint32_t n;
};

static void *
add(struct turn *t, uint16_t type)
{
    const struct of_tag_row *row = of_tag_row(&of_list_v10_actions, type);
    struct of_tagged *e = of_arena_alloc(t->arena, row->body->size);
    if (!e)
        return NULL;
    e->row = row;
    t->v[t->n++] = e;
    return e;
}

static bool
add_vlan_vid(struct turn *t, const struct of_oxm *o)
{
    struct of_v10_action_vlan_vid *e = add(t, OFPAT10_SET_VLAN_VID);
    if (e)
        e->vlan_vid = of_get16(o->value) & 0xfff;
    return e;
}

static bool
add_vlan_pcp(struct turn *t, const struct of_oxm *o)
{
    struct of_v10_action_vlan_pcp *e = add(t, OFPAT10_SET_VLAN_PCP);
    if (e)
        e->vlan_pcp = o->value[0];
    return e;
}

static bool
add_dl_addr(struct turn *t, uint16_t type, const struct of_oxm *o)
{
    struct of_v10_action_dl_addr *e = add(t, type);
    if (e)
        memcpy(e->dl_addr, o->value, sizeof e->dl_addr);
    return e;
}

static bool
add_nw_addr(struct turn *t, uint16_t type, const struct of_oxm *o)
{
    struct of_v10_action_nw_addr *e = add(t, type);
    if (e)
        e->nw_addr = of_get32(o->value);
    return e;
}

/* 1.0 can't express the DSCP of IPv6. */
static bool
add_nw_tos(struct turn *t, const struct of_oxm *o)
{
    bool ipv4 = t->known.eth_type == TYPE_IPV4 || t->if_there;
    struct of_v10_action_nw_tos *e = ipv4 ? add(t, OFPAT10_SET_NW_TOS) : NULL;
    if (e)
        e->nw_tos = (uint8_t)(o->value[0] << 2);
    return e;
}

/* The port of one protocol.  If the protocol isn't known, UDP's action follows TCP's and repeats
 * it. */
static bool
add_tp_port(struct turn *t, uint16_t type, const struct of_oxm *o)
{
    uint16_t port = of_get16(o->value);
    bool udp = o->row->field == OXM_udp_src || o->row->field == OXM_udp_dst;
    if (t->known.ip_proto == UINT32_MAX && udp) {
        const struct of_v10_action_tp_port *tcp = t->n ? t->v[t->n - 1] : NULL;
        return tcp && tcp->row->type == type && tcp->tp_port == port;
    }
    if (t->known.ip_proto != UINT32_MAX && t->known.eth_type != TYPE_IPV4)
        return false;
    struct of_v10_action_tp_port *e = add(t, type);
    if (e)
        e->tp_port = port;
    return e;
}

static bool
give_set_field(struct turn *t, const struct of_oxm *o)
{
    bool vlan = o->row->field == OXM_vlan_vid || o->row->field == OXM_vlan_pcp;
    if (t->pushed && !vlan)
        return false;
    if (vlan && t->known.vlan != OF10_VLAN_TAGGED)
        return false;
    t->pushed = false;
    switch (o->row->field) {
    case OXM_vlan_vid: return add_vlan_vid(t, o);
    case OXM_vlan_pcp: return add_vlan_pcp(t, o);
    case OXM_eth_src: return add_dl_addr(t, OFPAT10_SET_DL_SRC, o);
    case OXM_eth_dst: return add_dl_addr(t, OFPAT10_SET_DL_DST, o);
    case OXM_ipv4_src: return add_nw_addr(t, OFPAT10_SET_NW_SRC, o);
    case OXM_ipv4_dst: return add_nw_addr(t, OFPAT10_SET_NW_DST, o);
    case OXM_ip_dscp: return add_nw_tos(t, o);
    case OXM_tcp_src:
    case OXM_udp_src:
    case OXM_sctp_src: return add_tp_port(t, OFPAT10_SET_TP_SRC, o);
    case OXM_tcp_dst:
    case OXM_udp_dst:
    case OXM_sctp_dst: return add_tp_port(t, OFPAT10_SET_TP_DST, o);
    default: return false;
    }
}

static bool
give_push(struct turn *t, const struct of_action_push *a)
{
    bool one_tag =
        t->known.vlan == OF10_VLAN_UNTAGGED || (t->if_there && t->known.vlan == OF10_VLAN_UNKNOWN);
    if (a->ethertype != TYPE_VLAN || !one_tag)
        return false;
    t->pushed = true;
    t->known.vlan = OF10_VLAN_TAGGED;
    return true;
}

static bool
give_output(struct turn *t, const struct of_action_output *a)
{
    uint16_t port;
    if (!of_port10(a->port, &port))
        return false;
    bool one = port <= OFPP10_MAX || port == OFPP10_IN_PORT;
    if (t->queue && !one && port != OFPP10_CONTROLLER)
        return false; /* a queue of each port: 1.0 would need one action a port */
    if (t->queue && one) {
        struct of_v10_action_enqueue *e = add(t, OFPAT10_ENQUEUE);
        if (e)
            e->port = port;
        if (e)
            e->queue_id = t->queue;
        return e;
    }
    struct of_v10_action_output *e = add(t, OFPAT10_OUTPUT);
    if (e)
        e->port = port;
    if (e)
        e->max_len = a->max_len;
    return e;
}

static bool
give_experimenter(struct turn *t, const struct of_action_experimenter *a)
{
    t->if_there = of_action_is_if_there(a);
    return t->if_there;
}

static bool
give(struct turn *t, const struct of_tagged *a)
{
    const void *p = a;
    if (t->pushed && a->row->type != OFPAT_SET_FIELD)
        return false;
    switch (a->row->type) {
    case OFPAT_OUTPUT: return give_output(t, p);
    case OFPAT_SET_QUEUE: t->queue = ((const struct of_action_set_queue *)p)->queue_id; return true;
    case OFPAT_SET_FIELD: return give_set_field(t, &((const struct of_action_set_field *)p)->field);
    case OFPAT_PUSH_VLAN: return give_push(t, p);
    case OFPAT_POP_VLAN: t->known.vlan = OF10_VLAN_UNKNOWN; return add(t, OFPAT10_STRIP_VLAN);
    case OFPAT_EXPERIMENTER: return give_experimenter(t, p);
    default: return false;
    }
}

bool
of10_actions_out(struct of_arena *arena, const struct of_match *m,
                 const struct of_list *instructions, struct of_list *out)
{
    struct turn t = {.arena = arena, .known = of10_known(m)};
    *out = (struct of_list){.n = 0};
    if (!instructions->n)
        return true; /* it drops */
    const struct of_instr_actions *apply = OF_AT(instructions, 0, const struct of_instr_actions);
    if (instructions->n > 1 || apply->row->type != OFPIT_APPLY_ACTIONS)
        return false;
    const struct of_list *in = &apply->actions;
    if (!(t.v = of_arena_array(arena, in->n, sizeof *t.v)))
        return false;
    for (uint32_t i = 0; i < in->n; i++)
        if (!give(&t, OF_AT(in, i, const struct of_tagged)))
            return false;
    *out = (struct of_list){.n = t.n, .v = t.v};
    return !t.pushed;
}
