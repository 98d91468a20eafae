/* SPDX-License-Identifier: Apache-2.0 */
#include "stats-cache.h"

#include <megaflow/megaflow.h>

#include <packet/headers.h>

#include <string.h>

/* The room for an action more; its row is set. */
static union cache_action *
add(struct cache_actions *a, const struct of_tag_row *row)
{
    union cache_action *to = &a->v[a->n];
    *to = (union cache_action){.row = row};
    a->list[a->n++] = to;
    return to;
}

static uint8_t *
set_field(struct cache_actions *a, enum oxm_field f)
{
    struct of_oxm *o = &add(a, OF_ACTION(SET_FIELD))->field.field;
    o->row = &oxm_rows[f];
    memset(o->mask, 0xff, sizeof o->mask);
    return o->value;
}

static void
set_bytes(struct cache_actions *a, enum oxm_field f, const void *bytes)
{
    memcpy(set_field(a, f), bytes, oxm_rows[f].bytes);
}

static void
set_number(struct cache_actions *a, enum oxm_field f, uint64_t n)
{
    oxm_set_number(&oxm_rows[f], set_field(a, f), n);
}

static uint32_t
port_of(const struct sw *sw, int ifindex)
{
    const struct sw_port *p = sw_ports_by_ifindex(sw, ifindex);
    return p ? p->no : OFPP_ANY;
}

static void
put_output(const struct sw *sw, const struct offload_op *op, uint32_t *queue,
           struct cache_actions *a)
{
    uint32_t to = (uint32_t)(op->value >> 32);
    if (to != *queue)
        add(a, OF_ACTION(SET_QUEUE))->queue.queue_id = to;
    *queue = to;
    add(a, OF_ACTION(OUTPUT))->output.port = port_of(sw, (int)op->arg);
}

/* To the port's queues for what enters: their packets come by again.  The queue is told even if it is the default
 * class, as no action at all is a drop. */
static void
put_queue_in(const struct offload_op *op, struct cache_actions *a)
{
    add(a, OF_ACTION(SET_QUEUE))->queue.queue_id = (uint32_t)(op->value >> 32);
}

static void
put_transport(const struct sw_offload_view *v, const struct offload_op *op, struct cache_actions *a)
{
    bool src = op->kind == OFFLOAD_SET_TP_SRC;
    if (v->key.ip_proto == 6)
        set_bytes(a, src ? OXM_tcp_src : OXM_tcp_dst, &op->arg);
    else
        set_bytes(a, src ? OXM_udp_src : OXM_udp_dst, &op->arg);
}

/* An address is two ops, one behind the other. */
static void
put_ipv6(const struct offload_op *op, struct cache_actions *a)
{
    if (op->arg & 1) {
        if (a->n)
            memcpy(a->v[a->n - 1].field.field.value + 8, &op->value, 8);
    } else {
        memcpy(set_field(a, op->arg ? OXM_ipv6_dst : OXM_ipv6_src), &op->value, 8);
    }
}

static void
put_head(const struct offload_op *op, struct cache_actions *a)
{
    uint32_t half[2] = {(uint32_t)op->value, (uint32_t)(op->value >> 32)};
    uint32_t value = of_get32((const uint8_t *)&half[0]),
             bits = of_get32((const uint8_t *)&half[1]);
    set_number(a, (enum oxm_field)op->arg, value / (bits & -bits));
}

static void
put_edit(const struct sw_offload_view *v, const struct offload_op *op, struct cache_actions *a)
{
    switch (op->kind) {
    case OFFLOAD_SET_ETH_DST: set_bytes(a, OXM_eth_dst, &op->value); break;
    case OFFLOAD_SET_ETH_SRC: set_bytes(a, OXM_eth_src, &op->value); break;
    case OFFLOAD_PUSH_VLAN: add(a, OF_ACTION(PUSH_VLAN))->push.ethertype = (uint16_t)op->arg; break;
    case OFFLOAD_POP_VLAN: add(a, OF_ACTION(POP_VLAN)); break;
    case OFFLOAD_SET_VLAN:
        if (op->arg & 0xfff)
            set_number(a, OXM_vlan_vid, OFPVID_PRESENT | (op->value & 0xfff));
        else
            set_number(a, OXM_vlan_pcp, op->value >> 13 & 7);
        break;
    case OFFLOAD_SET_TOS:
        if (op->arg & 0xfc)
            set_number(a, OXM_ip_dscp, op->value >> 2 & 0x3f);
        else
            set_number(a, OXM_ip_ecn, op->value & 3);
        break;
    case OFFLOAD_SET_IPV4_SRC: set_bytes(a, OXM_ipv4_src, &op->arg); break;
    case OFFLOAD_SET_IPV4_DST: set_bytes(a, OXM_ipv4_dst, &op->arg); break;
    case OFFLOAD_SET_IPV6: put_ipv6(op, a); break;
    case OFFLOAD_SET_TTL: add(a, OF_ACTION(SET_NW_TTL))->ttl.ttl = (uint8_t)op->arg; break;
    case OFFLOAD_DEC_TTL: add(a, OF_ACTION(DEC_NW_TTL)); break;
    case OFFLOAD_SET_TP_SRC:
    case OFFLOAD_SET_TP_DST: put_transport(v, op, a); break;
    case OFFLOAD_SET_HEAD: put_head(op, a); break;
    case OFFLOAD_PUSH_MPLS: add(a, OF_ACTION(PUSH_MPLS))->push.ethertype = (uint16_t)op->arg; break;
    case OFFLOAD_POP_MPLS: add(a, OF_ACTION(POP_MPLS))->push.ethertype = (uint16_t)op->arg; break;
    case OFFLOAD_PUSH_PBB: add(a, OF_ACTION(PUSH_PBB))->push.ethertype = (uint16_t)op->arg; break;
    case OFFLOAD_POP_PBB: add(a, OF_ACTION(POP_PBB)); break;
    case OFFLOAD_SET_MPLS_TTL: add(a, OF_ACTION(SET_MPLS_TTL))->ttl.ttl = (uint8_t)op->arg; break;
    case OFFLOAD_DEC_MPLS_TTL: add(a, OF_ACTION(DEC_MPLS_TTL)); break;
    case OFFLOAD_SET_ARP: set_bytes(a, (enum oxm_field)(op->arg & 0xff), &op->value); break;
    }
}

void
cache_actions(const struct sw *sw, const struct sw_offload_view *v, struct cache_actions *out)
{
    uint32_t queue = 0;
    out->n = 0;
    for (uint32_t i = 0; i < v->n_ops; i++) {
        if (v->op[i].kind == OFFLOAD_OUTPUT)
            put_output(sw, &v->op[i], &queue, out);
        else if (v->op[i].kind == OFFLOAD_QUEUE_IN)
            put_queue_in(&v->op[i], out);
        else
            put_edit(v, &v->op[i], out);
    }
}

bool
cache_sends_to(const struct sw_offload_view *v, int ifindex)
{
    for (uint32_t i = 0; i < v->n_ops; i++)
        if (v->op[i].kind == OFFLOAD_OUTPUT && (int)v->op[i].arg == ifindex)
            return true;
    return false;
}
