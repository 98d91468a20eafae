/* SPDX-License-Identifier: Apache-2.0 */
/* A map's rules, read back from its flows.  Each flow becomes a shape: what it matches, as sets of values.  Shapes that
 * differ in one of their sets are joined, one kind of set after the other, as map-rule.c made flows of a rule. */
#include "map-shape.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define KEY_TEXT 400

enum way { FAMILY, TAG, SIDES, PORTS, ECN, DSCP, PCP, WAYS }; /* the sets, in order of joining */

/* ------------------------------------------------------------------ a flow's shape */

static void
take_action(struct map_shape *s, const struct of_tagged *a)
{
    struct qos_map_does *d = &s->does;
    if (a->row == OF_ACTION(SET_QUEUE)) {
        d->queue = ((const struct of_action_set_queue *)a)->queue_id;
    } else if (a->row == OF_ACTION(PUSH_VLAN)) {
        d->tag = true;
    } else if (a->row == OF_ACTION(OUTPUT)) {
        s->odd |= ((const struct of_action_output *)a)->port == OFPP_CONTROLLER;
    } else if (a->row == OF_ACTION(SET_FIELD)) {
        const struct of_oxm *o = &((const struct of_action_set_field *)a)->field;
        if (o->row->field == OXM_ip_dscp)
            d->dscp = o->value[0];
        else if (o->row->field == OXM_vlan_pcp)
            d->pcp = o->value[0];
        else
            s->odd |= o->row->field != OXM_vlan_vid || !d->tag;
    } else {
        s->odd = true;
    }
}

static void
take_actions(struct map_shape *s, const struct of_flow_stats *f)
{
    s->does = (struct qos_map_does){.dscp = -1, .pcp = -1};
    for (uint32_t i = 0; i < f->instructions.n; i++) {
        const struct of_instr_actions *apply = OF_AT(&f->instructions, i, struct of_instr_actions);
        for (uint32_t k = 0; apply->row == OF_INSTR(APPLY_ACTIONS) && k < apply->actions.n; k++)
            take_action(s, OF_AT(&apply->actions, k, struct of_tagged));
    }
}

static void
take_port(struct map_shape *s, struct of_parse *p, uint8_t proto, uint8_t side, uint64_t no)
{
    struct map_port *port = of_arena_alloc(p->arena, sizeof *port);
    s->odd |= !port || s->n_ports;
    if (!port)
        return;
    *port = (struct map_port){proto, side, (uint16_t)no};
    s->ports = port;
    s->n_ports = 1;
}

/* An address with the length of its prefix. */
static const char *
address_text(struct of_parse *p, const struct of_oxm *o)
{
    struct of_wr w = of_wr_grow(1 << 10);
    of_print_oxm_value(&w, o);
    const char *text = of_arena_text(p->arena, (const char *)w.buf, w.len);
    of_wr_free(&w);
    return text ? text : "";
}

static void
take_vlan(struct map_shape *s, const struct of_oxm *o)
{
    uint64_t vid = oxm_number(o->row, o->value);
    s->tags = vid == OFPVID_NONE ? MAP_UNTAGGED : MAP_TAGGED;
    s->odd |= vid == OFPVID_NONE ? o->has_mask
                                 : vid != OFPVID_PRESENT || !o->has_mask ||
                                       oxm_number(o->row, o->mask) != OFPVID_PRESENT;
}

static void
take_field(struct map_shape *s, struct of_parse *p, const struct of_oxm *o)
{
    uint64_t v = o->row->bytes <= 8 ? oxm_number(o->row, o->value) : 0;
    switch (o->row->field) {
    case OXM_in_port: s->in_port = (uint32_t)v; break;
    case OXM_eth_type:
        s->families = v == 0x0800 ? MAP_IPV4 : v == 0x86dd ? MAP_IPV6 : 0;
        s->odd |= !s->families;
        break;
    case OXM_vlan_vid: take_vlan(s, o); break;
    case OXM_vlan_pcp: s->pcps = (uint8_t)(1u << v); break;
    case OXM_ip_dscp: s->dscps = UINT64_C(1) << v; break;
    case OXM_ip_ecn: s->ecns = (uint8_t)(1u << v); break;
    case OXM_ip_proto: s->proto = (int)v; break;
    case OXM_ipv4_src:
    case OXM_ipv6_src: s->src = address_text(p, o); break;
    case OXM_ipv4_dst:
    case OXM_ipv6_dst: s->dst = address_text(p, o); break;
    case OXM_tcp_src:
    case OXM_udp_src:
    case OXM_sctp_src: take_port(s, p, (uint8_t)s->proto, MAP_SRC, v); break;
    case OXM_tcp_dst:
    case OXM_udp_dst:
    case OXM_sctp_dst: take_port(s, p, (uint8_t)s->proto, MAP_DST, v); break;
    default: s->odd = true;
    }
}

static struct map_shape
shape_of(struct of_parse *p, const struct of_flow_stats *f)
{
    const char *then = qos_map_then(p, f);
    struct map_shape s = {.flow = f,
                          .then = then ? then : "",
                          .prio = f->priority,
                          .src = "",
                          .dst = "",
                          .proto = -1,
                          .flows = 1,
                          .packets = f->packet_count,
                          .bytes = f->byte_count};
    take_actions(&s, f);
    for (uint32_t i = 0; i < f->match.n; i++)
        take_field(&s, p, &f->match.v[i]);
    if (s.n_ports)
        s.proto = -1; /* the port has it */
    if (!s.families && !s.odd && (s.tags || s.pcps)) {
        s.families = MAP_ANY_PROTOCOL;
        s.prio++; /* as its rule's flows for IP */
    }
    s.odd |= !then || !s.families || (s.pcps && s.tags != MAP_TAGGED) ||
             (s.tags && !s.pcps && s.does.pcp < 0);
    return s;
}

/* ---------------------------------------------------------------------- joining */

/* What must be equal to join two shapes' sets of one kind. */
static const char *
key_of(struct of_parse *p, const struct map_shape *s, enum way way)
{
    char text[KEY_TEXT], ports[48] = "";
    const struct map_port *port = s->ports;
    if (s->n_ports == 1 && way < PORTS)
        snprintf(ports, sizeof ports, "%u/%u/%u", port->proto, way == SIDES ? 0u : port->sides,
                 port->no);
    else if (s->n_ports && way > PORTS)
        snprintf(ports, sizeof ports, "%p", (const void *)port);
    else if (s->n_ports)
        snprintf(ports, sizeof ports, "some");
    int n = snprintf(
        text, sizeof text,
        "%" PRIx64 " %u %.40s %u %u %d %d %u %.64s %.64s %d %d%u %d%u %s %d%u %d%" PRIx64 " %d%u",
        s->flow->cookie, s->flow->table_id, s->then, s->prio, (unsigned)s->does.queue, s->does.dscp,
        s->does.pcp, s->in_port, s->src, s->dst, s->proto, s->families == MAP_ANY_PROTOCOL,
        way == FAMILY ? 0u : s->families, s->tags != 0, way == TAG ? 0u : s->tags, ports,
        s->ecns != 0, way == ECN ? 0u : s->ecns, s->dscps != 0, way == DSCP ? 0 : s->dscps,
        s->pcps != 0, way == PCP ? 0u : s->pcps);
    return of_arena_text(p->arena, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

static int
by_key(const void *a, const void *b)
{
    return strcmp(((const struct map_shape *)a)->key, ((const struct map_shape *)b)->key);
}

static int
by_port(const void *a, const void *b)
{
    const struct map_port *x = a, *y = b;
    if (x->proto != y->proto)
        return x->proto - y->proto;
    return x->sides != y->sides ? x->sides - y->sides : x->no - y->no;
}

/* All ports of n shapes, in the first one. */
static bool
join_ports(struct of_parse *p, struct map_shape *s, size_t n)
{
    size_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += s[i].n_ports;
    struct map_port *v = of_arena_array(p->arena, all + 1, sizeof *v);
    if (!v)
        return false;
    all = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < s[i].n_ports; k++)
            v[all++] = s[i].ports[k];
    qsort(v, all, sizeof *v, by_port);
    s->ports = v;
    s->n_ports = all;
    return true;
}

/* n shapes of the same key become the first of them. */
static bool
join(struct of_parse *p, struct map_shape *s, size_t n, enum way way)
{
    if (way == PORTS && s->n_ports && !join_ports(p, s, n))
        return false;
    for (size_t i = 1; i < n; i++) {
        s->families |= s[i].families;
        s->tags |= s[i].tags;
        s->ecns |= s[i].ecns;
        s->dscps |= s[i].dscps;
        s->pcps |= s[i].pcps;
        s->does.tag = false; /* tagged frames need no tag */
        if (way == SIDES && s->n_ports)
            s->ports->sides |= s[i].ports->sides;
        s->flows += s[i].flows;
        s->packets += s[i].packets;
        s->bytes += s[i].bytes;
    }
    return true;
}

static bool
same_ports(const struct map_shape *a, const struct map_shape *b)
{
    if (a->n_ports != b->n_ports)
        return false;
    for (size_t i = 0; i < a->n_ports; i++)
        if (by_port(&a->ports[i], &b->ports[i]))
            return false;
    return true;
}

#define NEAR 256 /* a rule's shapes stand near each other, one for each of its other values */

/* Gives equal sets of ports the same address, by which key_of compares them. */
static void
share_ports(struct map_shape *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k-- && v[i].n_ports && i - k <= NEAR;)
            if (same_ports(&v[k], &v[i])) {
                v[i].ports = v[k].ports;
                break;
            }
}

static bool
join_all(struct of_parse *p, struct map_shape *v, size_t *n, enum way way)
{
    size_t out = 0;
    for (size_t i = 0; i < *n; i++)
        if (!(v[i].key = key_of(p, &v[i], way)))
            return false;
    qsort(v, *n, sizeof *v, by_key);
    for (size_t i = 0, to; i < *n; i = to) {
        for (to = i + 1; to < *n && !by_key(&v[i], &v[to]);)
            to++;
        if (!join(p, &v[i], to - i, way))
            return false;
        v[out++] = v[i];
    }
    *n = out;
    if (way == PORTS)
        share_ports(v, out);
    return true;
}

/* A rule about frames of any protocol that marks IP packets has flows for both: the second shape's
 * are the first one's. */
static bool
is_frames_part(const struct map_shape *ip, const struct map_shape *any)
{
    return ip->families == (MAP_IPV4 | MAP_IPV6) && any->families == MAP_ANY_PROTOCOL &&
           (ip->tags || ip->pcps) && ip->does.dscp >= 0 && ip->flow->cookie == any->flow->cookie &&
           ip->flow->table_id == any->flow->table_id && ip->prio == any->prio &&
           !strcmp(ip->then, any->then) && ip->does.queue == any->does.queue &&
           ip->does.pcp == any->does.pcp && ip->tags == any->tags && ip->pcps == any->pcps &&
           ip->in_port == any->in_port && !ip->ecns && !ip->dscps && !ip->n_ports &&
           ip->proto < 0 && !*ip->src && !*ip->dst;
}

static void
join_frames(struct map_shape *v, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        for (size_t k = 0; v[i].families == (MAP_IPV4 | MAP_IPV6) && v[i].tags && k < *n; k++) {
            if (!is_frames_part(&v[i], &v[k]))
                continue;
            v[i].families |= MAP_ANY_PROTOCOL;
            v[i].flows += v[k].flows;
            v[i].packets += v[k].packets;
            v[i].bytes += v[k].bytes;
            v[k] = v[--*n];
            i -= i == *n;
            break;
        }
}

/* ------------------------------------------------------------------------ the whole */

static int
in_order(const void *a, const void *b)
{
    const struct qos_map_read *x = a, *y = b;
    if (x->cookie != y->cookie)
        return x->cookie < y->cookie ? -1 : 1;
    if (x->table != y->table)
        return x->table - y->table;
    int then = strcmp(x->then, y->then);
    return then ? then : x->prio != y->prio ? y->prio - x->prio : strcmp(x->text, y->text);
}

static bool
is_wash(const struct of_flow_stats *f)
{
    return f->priority == QOS_MAP_WASH_PRIORITY && f->match.n == 1 &&
           f->match.v[0].row->field == OXM_eth_type;
}

static bool
has_wash(const struct of_list *flows, const struct of_flow_stats *of)
{
    for (uint32_t i = 0; i < flows->n; i++) {
        const struct of_flow_stats *f = OF_AT(flows, i, struct of_flow_stats);
        if (is_wash(f) && f->cookie == of->cookie && f->table_id == of->table_id)
            return true;
    }
    return false;
}

static int
put_read(struct of_parse *p, const struct of_list *flows, const struct map_shape *s,
         struct qos_map_reads *out)
{
    struct qos_map_read *v = of_arena_room(p->arena, out->v, out->n, &out->room, sizeof *v);
    if (!v)
        return -ENOMEM;
    out->v = v;
    v += out->n++;
    *v = (struct qos_map_read){.cookie = s->flow->cookie,
                               .table = s->flow->table_id,
                               .then = s->then,
                               .prio = s->flow->priority,
                               .queue = s->does.queue,
                               .flows = s->flows,
                               .packets = s->packets,
                               .bytes = s->bytes,
                               .beside = s->flow->flags & OFPFF_SEND_FLOW_REM,
                               .wash = has_wash(flows, s->flow),
                               .text = ""};
    if (qos_map_is_miss(s->flow) || is_wash(s->flow))
        return 0;
    v->text = s->odd ? qos_map_flow_text(p, s->flow) : qos_map_rule_text(p, v, s);
    return v->text ? 0 : -ENOMEM;
}

int
qos_map_read(struct of_parse *p, const struct of_list *flows, struct qos_map_reads *out)
{
    struct map_shape *v = of_arena_array(p->arena, flows->n + 1, sizeof *v);
    size_t n = 0;
    int err = 0;
    *out = (struct qos_map_reads){0};
    if (!v)
        return -ENOMEM;
    for (uint32_t i = 0; !err && i < flows->n; i++) {
        const struct of_flow_stats *f = OF_AT(flows, i, struct of_flow_stats);
        v[n] = shape_of(p, f);
        if (qos_map_is_miss(f) || is_wash(f) || v[n].odd)
            err = put_read(p, flows, &v[n], out);
        else
            n++;
    }
    for (enum way way = FAMILY; !err && way < WAYS; way++)
        err = join_all(p, v, &n, way) ? 0 : -ENOMEM;
    if (!err)
        join_frames(v, &n);
    for (size_t i = 0; !err && i < n; i++)
        err = put_read(p, flows, &v[i], out);
    if (!err && out->n)
        qsort(out->v, out->n, sizeof *out->v, in_order);
    return err;
}
