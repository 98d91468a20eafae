/* SPDX-License-Identifier: Apache-2.0 */
/* Where packets leave the pipeline: ports, NORMAL, the controllers (7.2.5). */
#include <dataplane/pipeline-inside.h>

#include <oflib/openflow10.h>

#include <flow/actions.h>
#include <oflib/wire.h>

#include <string.h>

static struct packet_at
step_at(const struct step *s, uint32_t out_port)
{
    bool packet_out = s->cookie == UINT64_MAX && s->reason == OFPR_ACTION;
    return (struct packet_at){.cookie = s->cookie,
                              .in_port = s->p->in_port,
                              .out_port = out_port,
                              .queue = queue_at(s->p->queue, s->p->queue_ports, out_port),
                              .table_id = packet_out ? OFPTT_ALL : s->table_id};
}

/* Not inlined, to keep it out of the stack frames of nested groups. */
__attribute__((noinline)) void
pipeline_drop_to(const struct step *s, enum drop_reason why, uint32_t out_port)
{
    struct packet_at at = step_at(s, out_port);
    if (!s->dry)
        worker_drop(s->w, why, s->p, &at);
    else if (s->dry->on->drop)
        s->dry->on->drop(s, why, out_port);
}

/* Segments of a super-packet go to the controllers one by one, and so they are dropped. */
__attribute__((noinline)) static void
drop_segment(const struct step *s, enum drop_reason why, const uint8_t *data, uint32_t len)
{
    struct packet_at at = step_at(s, OFPP_CONTROLLER);
    struct worker *w = s->w;
    counter_add(&w->drops[why], 1);
    drop_log_note(w->drop_log, why, &at, &(struct packet_frame){data, len, 1, NULL});
}

__attribute__((noinline)) void
pipeline_capture_now(const struct step *s, enum ofp_capture point, uint32_t out_port)
{
    struct packet_at at = step_at(s, out_port);
    capture_packet(s->w, point, OFPCAP_NONE, &at,
                   &(struct packet_frame){s->p->data, s->p->len, 1, &s->p->vnet});
}

/* ------------------------------------------------------------------ to the controllers */

struct to_controller {
    struct step *s;
    struct port *in; /* where it came in; NULL: not one of our ports */
    uint16_t max_len;
};

/* A pop can leave less than Ethernet's minimum: pad it as on a wire. */
static uint32_t
padding_of(const struct step *s, uint32_t len)
{
    return len < PACKET_MIN && len < s->p->wire_len ? PACKET_MIN - len : 0;
}

static void
each_traced(void *ctx, const uint8_t *data, uint32_t len)
{
    const struct to_controller *c = ctx;
    const bool dry = true;
    const struct step *s = c->s;
    TRACE(packet_in, s, data, len, padding_of(s, len), c->max_len);
}

static void
packet_in_each(void *ctx, const uint8_t *data, uint32_t len)
{
    struct to_controller *c = ctx;
    const struct step *s = c->s;
    uint32_t padding = padding_of(s, len);
    struct worker *w = s->w;
    const struct flow_key *k = &s->p->key;
    struct packet_in_record *r = NULL;
    uint32_t n = (uint32_t)sizeof *r + len + padding, port = s->p->in_port;
    uint32_t source = port <= PORT_MAX ? port : 0;
    bool fair = ring_fair(w->packet_ins, n, source);
    if (fair)
        r = ring_reserve(w->packet_ins, n, source);
    if (!r) {
        drop_segment(s, fair ? DROP_packet_in_full : DROP_packet_in_share, data, len);
        if (c->in)
            port_count_packet_in_dropped(c->in, w->io);
        return;
    }
    *r = (struct packet_in_record){.in_port = port,
                                   .in_phy_port = of_get32(k->in_phy_port),
                                   .metadata = of_get64(k->metadata),
                                   .tunnel_id = of_get64(k->tunnel_id),
                                   .cookie = step_cookie(s),
                                   .table_id = s->table_id,
                                   .reason = s->reason,
                                   .max_len = c->max_len,
                                   .len = len + padding};
    memcpy(r->data, data, len);
    memset(r->data + len, 0, padding);
    ring_publish(w->packet_ins);
    w->to_tell = true;
}

PIPELINE_BODY void
to_controllers(struct step *s, uint16_t max_len, const bool dry)
{
    struct port *in = dp_port(s->w->dp, s->p->in_port);
    struct to_controller c = {s, in, max_len};
    s->sent = true;
    /* NO_PACKET_IN is about table misses (7.2.1), not about flows that name the controller. */
    bool miss = s->reason == OFPR_NO_MATCH || s->reason == OFPR10_TABLE_MISS;
    if (in && miss && port_config_bits(in) & OFPPC_NO_PACKET_IN) {
        TRACE(no_packet_in, s);
        return;
    }
    if (dry && s->dry->on->controller && !s->dry->on->controller(s))
        return;
    pipeline_capture(s, OFPCAP_OUT, OFPP_CONTROLLER, dry);
    int drop = packet_finish(s->p, dry ? each_traced : packet_in_each, &c);
    if (drop)
        pipeline_drop_to(s, (enum drop_reason)(drop - 1), OFPP_CONTROLLER);
}

/* ------------------------------------------------------------------ to ports */

static void
refuse(struct step *s, enum drop_reason why, uint32_t to)
{
    s->sent = true;
    pipeline_drop_to(s, why, to);
}

/* The round trips of connections: of what leaves as it came in by another port. */
__attribute__((noinline)) static void
measure(const struct step *s, const struct port *port, uint32_t to)
{
    const struct port *in = dp_port(s->w->dp, s->p->in_port);
    uint32_t queue = queue_at(s->p->queue, s->p->queue_ports, to);
    if (in)
        probes_look(&s->w->dp->probes, s->p, port_ifindex(in), port_ifindex(port), queue,
                    s->w->now);
}

/* port NULL: there is no port of this number. */
PIPELINE_BODY void
to_port(struct step *s, struct port *port, uint32_t to, const bool dry)
{
    int drop = EDIT_DROP(no_port);
    s->sent = true;
    if (dry) {
        TRACE(port, s, port, to);
        return;
    }
    if (port && probes_want(&s->w->dp->probes, s->p))
        measure(s, port, to);
    if (port)
        drop = port_tx(port, s->w->io, s->p);
    if (drop == PORT_TX_WATCHED)
        pipeline_capture(s, OFPCAP_OUT, to, dry);
    else if (drop)
        pipeline_drop_to(s, (enum drop_reason)(drop - 1), to);
}

/* To every port but the one where it came in, and those with one of these OFPPC_ bits. */
PIPELINE_BODY void
flood(struct step *s, uint32_t without, const bool dry)
{
    const struct port_list *l = rcu_dereference(s->w->dp->ports);
    s->sent = true;
    TRACE(flood, s, without);
    for (uint32_t i = 0; l && i < l->n && !step_enough(s, dry); i++)
        if (port_no(l->v[i]) != s->p->in_port && !(port_config_bits(l->v[i]) & without))
            to_port(s, l->v[i], port_no(l->v[i]), dry);
}

/* ------------------------------------------------------------------ NORMAL */

static enum vlan_edit
edit_for(const struct step *s, unsigned vlan, uint32_t no)
{
    return vlans_edit(dp_vlans(s->w->dp, no), vlan, key_vid(&s->p->key));
}

/* Gives the step a copy of its packet with the tag that ports of the VLAN want.  0 or EDIT_DROP. */
PIPELINE_BODY int
retag(struct step *in, unsigned vlan, enum vlan_edit edit, struct packet *copy, const bool dry)
{
    struct vlan_acts acts;
    int drop = 0;
    packet_clone(in->p, copy);
    in->p = copy;
    vlans_acts(edit, vlan, &acts);
    ACTS_EACH(a, acts.list)
        if (!drop)
            drop = step_edit(in, a, dry);
    return drop;
}

/* in: the step with the packet as the port takes it, unless drop says that this could not be made. */
PIPELINE_BODY void
to_vlan_port(struct step *s, struct step *in, int drop, struct port *port, const bool dry)
{
    if (drop)
        pipeline_drop_to(s, (enum drop_reason)(drop - 1), port_no(port));
    else
        to_port(in, port, port_no(port), dry);
}

/* To the ports of the VLAN that take the packet of `in`, which has this edit.  Returns bits of the edits that
 * others need. */
PIPELINE_BODY unsigned
flood_with(struct step *s, unsigned vlan, enum vlan_edit edit, struct step *in, int drop,
           const bool dry)
{
    const struct dp *dp = s->w->dp;
    const struct port_list *l = rcu_dereference(dp->ports);
    unsigned edits = 0;
    for (uint32_t i = 0; l && i < l->n && !step_enough(s, dry); i++) {
        uint32_t no = port_no(l->v[i]);
        if (no == s->p->in_port || port_config_bits(l->v[i]) & FLOOD_WITHOUT ||
            !vlans_has(dp_vlans(dp, no), vlan))
            continue;
        enum vlan_edit wants = edit_for(s, vlan, no);
        edits |= 1u << wants;
        if (wants == edit)
            to_vlan_port(s, in, drop, l->v[i], dry);
    }
    return edits & ~(1u << edit);
}

/* First to the ports that take it as it came: a megaflow has only one packet. */
PIPELINE_BODY void
flood_vlan(struct step *s, unsigned vlan, const bool dry)
{
    struct packet copy;
    s->sent = true;
    TRACE(flood, s, FLOOD_WITHOUT);
    unsigned edits = flood_with(s, vlan, VLAN_AS_IS, s, 0, dry);
    for (unsigned edit = VLAN_AS_IS + 1; edits >> edit && !step_enough(s, dry); edit++) {
        if (!(edits >> edit & 1))
            continue;
        struct step in = *s;
        TRACE(retag, s);
        TRACE(fork, s);
        int drop = retag(&in, vlan, (enum vlan_edit)edit, &copy, dry);
        flood_with(s, vlan, (enum vlan_edit)edit, &in, drop, dry);
        TRACE(join, s);
    }
}

__attribute__((noinline)) static void
flood_vlan_live(struct step *s, unsigned vlan)
{
    flood_vlan(s, vlan, false);
}

PIPELINE_BODY void
to_learned_port(struct step *s, unsigned vlan, struct port *port, const bool dry)
{
    enum vlan_edit edit = edit_for(s, vlan, port_no(port));
    struct packet copy;
    if (edit == VLAN_AS_IS) {
        to_port(s, port, port_no(port), dry);
        return;
    }
    s->sent = true;
    struct step in = *s;
    TRACE(fork, s);
    int drop = retag(&in, vlan, edit, &copy, dry);
    to_vlan_port(s, &in, drop, port, dry);
    TRACE(join, s);
}

__attribute__((noinline)) static void
to_learned_port_live(struct step *s, unsigned vlan, struct port *port)
{
    to_learned_port(s, vlan, port, false);
}

PIPELINE_BODY void
normal(struct step *s, const bool dry)
{
    struct dp *dp = s->w->dp;
    struct packet *p = s->p;
    uint32_t now = (uint32_t)(s->w->now / 1000000000), in = p->in_port;
    TRACE(normal, s);
    int vlan = vlans_in(dp_vlans(dp, in), key_vid(&p->key));
    if (vlan < 0 || dp_keeps(dp, p->key.eth_dst)) {
        refuse(s, vlan < 0 ? DROP_vlan : DROP_reserved, OFPP_ANY);
        return;
    }
    uint16_t vid = (uint16_t)vlan;
    if (!dry && !(p->key.eth_src[0] & 1) && (in <= PORT_MAX || in == OFPP_LOCAL))
        normal_learn(dp->normal, p->key.eth_src, vid,
                     in == OFPP_LOCAL ? NORMAL_LOCAL : (uint16_t)in, now);
    TRACE(learn, s, vid);
    uint16_t to = p->key.eth_dst[0] & 1     ? 0
                  : dry && s->dry->on->find ? s->dry->on->find(s, vid, now)
                                            : normal_find(dp->normal, p->key.eth_dst, vid, now);
    struct port *port = to ? dp_port(dp, to == NORMAL_LOCAL ? OFPP_LOCAL : to) : NULL;
    if (port && !port_is_up(port)) /* the address may be elsewhere by now */
        port = NULL;
    TRACE(decided, s, vid, port);
    if (port && port_no(port) == in)
        refuse(s, DROP_in_port, in);
    else if (port && dry)
        to_learned_port(s, vid, port, dry);
    else if (port)
        to_learned_port_live(s, vid, port);
    else if (dry)
        flood_vlan(s, vid, dry);
    else
        flood_vlan_live(s, vid);
}

PIPELINE_BODY void
to_port_number(struct step *s, uint32_t to, const bool dry)
{
    struct port *port = dp_port(s->w->dp, to);
    if (to == s->p->in_port)
        refuse(s, DROP_in_port, to); /* only OFPP_IN_PORT sends it back (7.2.5) */
    else if (port && port_config_bits(port) & OFPPC_NO_FWD)
        refuse(s, DROP_port_down, to);
    else
        to_port(s, port, to, dry);
}

/* A table-miss entry sends the packet to controllers that are not there. */
static bool
is_left_alone(const struct step *s)
{
    return s->w->standalone == STANDALONE_LEFT && s->reason == OFPR_NO_MATCH && !s->depth;
}

PIPELINE_BODY void
output(struct step *s, uint32_t to, uint16_t max_len, const bool dry)
{
    switch (to) {
    case OFPP_IN_PORT: to_port(s, dp_port(s->w->dp, s->p->in_port), s->p->in_port, dry); break;
    case OFPP_NORMAL: normal(s, dry); break;
    case OFPP_FLOOD: flood(s, FLOOD_WITHOUT, dry); break;
    case OFPP_ALL: flood(s, OFPPC_NO_FWD, dry); break;
    case OFPP_CONTROLLER:
        if (is_left_alone(s))
            s->missed = true;
        else
            to_controllers(s, max_len, dry);
        break;
    default: to_port_number(s, to, dry);
    }
}

void
pipeline_output(struct step *s, uint32_t to, uint16_t max_len)
{
    output(s, to, max_len, false);
}

void
pipeline_output_dry(struct step *s, uint32_t to, uint16_t max_len)
{
    output(s, to, max_len, true);
}
