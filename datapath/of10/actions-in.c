/* SPDX-License-Identifier: Apache-2.0 */
/* Translates 1.0's actions to 1.3's, line by line as docs/reference/openflow10.md has them.
 *
 * 1.0 changes what a packet has, and adds a VLAN tag if it is missing.  1.3 requires the match
 * to promise the field or tag.  If the match doesn't, the list begins with the switch's own
 * action IF_THERE (docs/reference/extensions.md), under which 1.3's actions do what 1.0's do. */
#include "inside.h"

#include <errno.h>

#define MAX_FROM_ONE 3 /* actions of 1.3 that one of 1.0 becomes */

struct turn {
    struct of_arena *arena;
    struct of10_known known;
    bool if_there; /* the list needs IF_THERE */
    uint32_t queue;
    void **v;
    uint32_t n;
    bool full; /* the arena is */
};

static void *
add(struct turn *t, uint16_t type)
{
    const struct of_tag_row *row = of_tag_row(&of_list_actions, type);
    struct of_tagged *e = of_arena_alloc(t->arena, row->body->size);
    if (!e) {
        t->full = true;
        return NULL;
    }
    e->row = row;
    t->v[t->n++] = e;
    return e;
}

static void
add_set(struct turn *t, enum oxm_field field, uint64_t number, const uint8_t *bytes)
{
    struct of_action_set_field *e = add(t, OFPAT_SET_FIELD);
    if (!e)
        return;
    e->field.row = &oxm_rows[field];
    memset(e->field.mask, 0xff, sizeof e->field.mask);
    if (bytes)
        memcpy(e->field.value, bytes, e->field.row->bytes);
    else
        oxm_set_number(e->field.row, e->field.value, number);
}

static void
add_queue(struct turn *t, uint32_t queue)
{
    struct of_action_set_queue *e = add(t, OFPAT_SET_QUEUE);
    if (e)
        e->queue_id = queue;
    t->queue = queue;
}

static void
add_output(struct turn *t, uint16_t port, uint16_t max_len)
{
    struct of_action_output *e = add(t, OFPAT_OUTPUT);
    if (!e)
        return;
    e->port = of_port_of10(port);
    e->max_len = max_len > OFPCML_MAX && max_len != OFPCML_NO_BUFFER ? OFPCML_MAX : max_len;
}

/* ENQUEUE's queue is for its port alone; set_queue's is for all outputs that follow. */
static int
take_output(struct turn *t, const struct of_v10_action_output *a)
{
    if (t->queue)
        add_queue(t, 0);
    add_output(t, a->port, a->max_len);
    return 0;
}

static int
take_enqueue(struct turn *t, const struct of_v10_action_enqueue *a)
{
    if (a->port > OFPP10_MAX && a->port != OFPP10_IN_PORT)
        return OF_BAD_ACTION(BAD_OUT_PORT);
    if (a->queue_id != t->queue)
        add_queue(t, a->queue_id);
    add_output(t, a->port, 0);
    return 0;
}

/* Pushes a tag, if the packet may have none yet. */
static void
need_tag(struct turn *t)
{
    if (t->known.vlan == OF10_VLAN_TAGGED)
        return;
    struct of_action_push *e = add(t, OFPAT_PUSH_VLAN);
    if (e)
        e->ethertype = TYPE_VLAN;
    t->if_there |= t->known.vlan == OF10_VLAN_UNKNOWN;
    t->known.vlan = OF10_VLAN_TAGGED;
}

static int
take_vlan_vid(struct turn *t, const struct of_v10_action_vlan_vid *a)
{
    if (a->vlan_vid > 0xfff)
        return OF_BAD_ACTION(BAD_ARGUMENT);
    need_tag(t);
    add_set(t, OXM_vlan_vid, OFPVID_PRESENT | a->vlan_vid, NULL);
    return 0;
}

static int
take_vlan_pcp(struct turn *t, const struct of_v10_action_vlan_pcp *a)
{
    if (a->vlan_pcp > 7)
        return OF_BAD_ACTION(BAD_ARGUMENT);
    need_tag(t);
    add_set(t, OXM_vlan_pcp, a->vlan_pcp, NULL);
    return 0;
}

/* A missing tag is no error, neither here nor in a packet.  Behind the tag may be another one. */
static int
take_strip_vlan(struct turn *t)
{
    if (t->known.vlan == OF10_VLAN_UNTAGGED)
        return 0;
    add(t, OFPAT_POP_VLAN);
    t->known.vlan = OF10_VLAN_UNKNOWN;
    return 0;
}

static int
take_network(struct turn *t, enum oxm_field field, uint64_t number)
{
    t->if_there |= t->known.eth_type != TYPE_IPV4;
    add_set(t, field, number, NULL);
    return 0;
}

/* TCP and UDP (and SCTP, as elsewhere); of a packet whose protocol isn't known, whichever it has. */
static int
take_port(struct turn *t, uint16_t port, bool src)
{
    switch (t->known.ip_proto) {
    case PROTO_ICMP: return 0;
    case PROTO_TCP: add_set(t, src ? OXM_tcp_src : OXM_tcp_dst, port, NULL); return 0;
    case PROTO_UDP: add_set(t, src ? OXM_udp_src : OXM_udp_dst, port, NULL); return 0;
    case PROTO_SCTP: add_set(t, src ? OXM_sctp_src : OXM_sctp_dst, port, NULL); return 0;
    }
    t->if_there = true;
    add_set(t, src ? OXM_tcp_src : OXM_tcp_dst, port, NULL);
    add_set(t, src ? OXM_udp_src : OXM_udp_dst, port, NULL);
    return 0;
}

static int
take(struct turn *t, const struct of_tagged *a)
{
    const void *p = a;
    switch (a->row->type) {
    case OFPAT10_OUTPUT: return take_output(t, p);
    case OFPAT10_SET_VLAN_VID: return take_vlan_vid(t, p);
    case OFPAT10_SET_VLAN_PCP: return take_vlan_pcp(t, p);
    case OFPAT10_STRIP_VLAN: return take_strip_vlan(t);
    case OFPAT10_SET_DL_SRC:
    case OFPAT10_SET_DL_DST:
        add_set(t, a->row->type == OFPAT10_SET_DL_SRC ? OXM_eth_src : OXM_eth_dst, 0,
                ((const struct of_v10_action_dl_addr *)p)->dl_addr);
        return 0;
    case OFPAT10_SET_NW_SRC:
    case OFPAT10_SET_NW_DST:
        return take_network(t, a->row->type == OFPAT10_SET_NW_SRC ? OXM_ipv4_src : OXM_ipv4_dst,
                            ((const struct of_v10_action_nw_addr *)p)->nw_addr);
    case OFPAT10_SET_NW_TOS:
        return take_network(t, OXM_ip_dscp, ((const struct of_v10_action_nw_tos *)p)->nw_tos >> 2);
    case OFPAT10_SET_TP_SRC:
    case OFPAT10_SET_TP_DST:
        return take_port(t, ((const struct of_v10_action_tp_port *)p)->tp_port,
                         a->row->type == OFPAT10_SET_TP_SRC);
    case OFPAT10_ENQUEUE: return take_enqueue(t, p);
    default: return OF_BAD_ACTION(BAD_EXPERIMENTER);
    }
}

/* Puts IF_THERE at the list's place 0, which is kept free for it. */
static void
put_if_there(struct turn *t)
{
    static const uint8_t type[] = {0, 0, 0, OFP_ACT_IF_THERE, 0, 0, 0, 0};
    uint32_t n = t->n;
    t->n = 0;
    struct of_action_experimenter *e = add(t, OFPAT_EXPERIMENTER);
    t->n = n;
    if (!e)
        return;
    e->experimenter = OFP_QOS_EXPERIMENTER;
    e->data = (struct of_bytes){type, sizeof type};
}

int
of10_actions_in(struct of_arena *arena, const struct of_match *m, const struct of_list *in,
                struct of_list *out)
{
    struct turn t = {.arena = arena, .known = of10_known(m), .n = 1};
    int err = 0;
    if (!(t.v = of_arena_array(arena, (size_t)in->n * MAX_FROM_ONE + 1, sizeof *t.v)))
        return -ENOMEM;
    for (uint32_t i = 0; i < in->n && !err; i++)
        err = take(&t, OF_AT(in, i, const struct of_tagged));
    if (t.if_there)
        put_if_there(&t);
    *out = (struct of_list){.n = t.n - !t.if_there, .v = t.v + !t.if_there};
    return err ? err : t.full ? -ENOMEM : 0;
}
