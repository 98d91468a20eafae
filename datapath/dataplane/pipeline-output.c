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
    WATCH(drop(s, why));
    if (!s->ahead)
        worker_drop(s->w, why, s->p, &at);
}

/* Segments of a super-packet go to the controllers one by one, and so they are dropped. */
__attribute__((noinline)) static void
drop_segment(const struct step *s, enum drop_reason why, const uint8_t *data, uint32_t len)
{
    struct packet_at at = step_at(s, OFPP_CONTROLLER);
    struct worker *w = s->w;
    counter_add(&w->drops[why], 1);
    drop_log_note(w->drop_log, why, &at, 1, data, len, NULL);
}

__attribute__((noinline)) void
pipeline_capture_now(const struct step *s, enum ofp_capture point, uint32_t out_port)
{
    struct packet_at at = step_at(s, out_port);
    capture_packet(s->w, point, OFPCAP_NONE, &at, s->p->data, s->p->len, &s->p->vnet);
}

/* ------------------------------------------------------------------ to the controllers */

struct to_controller {
    struct step *s;
    struct port *in; /* where it came in; NULL: not one of our ports */
    uint16_t max_len;
};

static void
packet_in_each(void *ctx, const uint8_t *data, uint32_t len)
{
    struct to_controller *c = ctx;
    const struct step *s = c->s;
    /* A pop can leave less than Ethernet's minimum: pad it as on a wire. */
    uint32_t padding = len < PACKET_MIN && len < s->p->wire_len ? PACKET_MIN - len : 0;
    if (WATCHED) {
        watch_packet_in(s, data, len, padding, c->max_len);
        return;
    }
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

void
pipeline_output_controller(struct step *s, uint16_t max_len)
{
    struct port *in = dp_port(s->w->dp, s->p->in_port);
    struct to_controller c = {s, in, max_len};
    s->sent = true;
    /* NO_PACKET_IN is about table misses (7.2.1), not about flows that name the controller. */
    bool miss = s->reason == OFPR_NO_MATCH || s->reason == OFPR10_TABLE_MISS;
    if (in && miss && port_config_bits(in) & OFPPC_NO_PACKET_IN) {
        WATCH(no_packet_in(s));
        return;
    }
    if (s->ahead) {
        s->ahead->goes = true;
        if (!WATCHED)
            return;
    }
    pipeline_capture(s, OFPCAP_OUT, OFPP_CONTROLLER);
    int drop = packet_finish(s->p, packet_in_each, &c);
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

/* port NULL: there is no port of this number. */
static void
to_port(struct step *s, struct port *port, uint32_t to)
{
    int drop = EDIT_DROP(no_port);
    s->sent = true;
    if (s->ahead) {
        s->ahead->goes |= port && port_is_up(port);
        WATCH(port(s, port));
        return;
    }
    if (port)
        drop = port_tx(port, s->w->io, s->p);
    if (drop == PORT_TX_WATCHED)
        pipeline_capture(s, OFPCAP_OUT, to);
    else if (drop)
        pipeline_drop_to(s, (enum drop_reason)(drop - 1), to);
}

/* To every port but the one where it came in, and those with one of these OFPPC_ bits. */
static void
flood(struct step *s, uint32_t without)
{
    const struct port_list *l = rcu_dereference(s->w->dp->ports);
    s->sent = true;
    WATCH(flood(s, without));
    for (uint32_t i = 0; l && i < l->n && !(WATCHED && watch_full(s)); i++)
        if (port_no(l->v[i]) != s->p->in_port && !(port_config_bits(l->v[i]) & without))
            to_port(s, l->v[i], port_no(l->v[i]));
}

/* ------------------------------------------------------------------ NORMAL */

/* The packet's copy with the tag that ports of its VLAN want. */
struct retagged {
    enum vlan_edit edit; /* VLAN_AS_IS: there is none yet */
    int drop;
    struct packet p;
};

static void
retag(struct step *s, unsigned vlan, enum vlan_edit edit, struct retagged *r)
{
    struct vlan_acts acts;
    packet_clone(s->p, &r->p);
    r->edit = edit;
    r->drop = 0;
    vlans_acts(edit, vlan, &acts);
    ACTS_EACH(a, acts.list)
        if (!r->drop)
            r->drop = action_rows[a->op].edit(&r->p, a);
}

static void
to_vlan_port(struct step *s, unsigned vlan, struct port *port, struct retagged *r)
{
    uint32_t no = port_no(port);
    enum vlan_edit edit = vlans_edit(dp_vlans(s->w->dp, no), vlan, key_vid(&s->p->key));
    if (edit == VLAN_AS_IS) {
        to_port(s, port, no);
        return;
    }
    if (r->edit != edit)
        retag(s, vlan, edit, r);
    if (r->drop) {
        refuse(s, (enum drop_reason)(r->drop - 1), no);
        return;
    }
    struct step in = *s;
    in.p = &r->p;
    to_port(&in, port, no);
    s->sent = true;
}

__attribute__((noinline)) static void
flood_vlan(struct step *s, unsigned vlan)
{
    const struct dp *dp = s->w->dp;
    const struct port_list *l = rcu_dereference(dp->ports);
    struct retagged r;
    r.edit = VLAN_AS_IS;
    s->sent = true;
    WATCH(flood(s, FLOOD_WITHOUT));
    for (uint32_t i = 0; l && i < l->n && !(WATCHED && watch_full(s)); i++) {
        uint32_t no = port_no(l->v[i]);
        if (no != s->p->in_port && !(port_config_bits(l->v[i]) & FLOOD_WITHOUT) &&
            vlans_has(dp_vlans(dp, no), vlan))
            to_vlan_port(s, vlan, l->v[i], &r);
    }
}

__attribute__((noinline)) static void
to_station(struct step *s, unsigned vlan, struct port *port)
{
    struct retagged r;
    r.edit = VLAN_AS_IS;
    to_vlan_port(s, vlan, port, &r);
}

void
pipeline_output_normal(struct step *s)
{
    struct dp *dp = s->w->dp;
    struct packet *p = s->p;
    uint32_t now = (uint32_t)(s->w->now / 1000000000), in = p->in_port;
    int vlan = vlans_in(dp_vlans(dp, in), key_vid(&p->key));
    if (vlan < 0 || dp_keeps(dp, p->key.eth_dst)) {
        refuse(s, vlan < 0 ? DROP_vlan : DROP_reserved, OFPP_ANY);
        return;
    }
    uint16_t vid = (uint16_t)vlan;
    if (!s->ahead && !(p->key.eth_src[0] & 1) && (in <= PORT_MAX || in == OFPP_LOCAL))
        normal_learn(dp->normal, p->key.eth_src, vid,
                     in == OFPP_LOCAL ? NORMAL_LOCAL : (uint16_t)in, now);
    WATCH(learn(s, vid));
    uint16_t to = p->key.eth_dst[0] & 1 ? 0
                  : WATCHED             ? watch_find(s, vid, now)
                                        : normal_find(dp->normal, p->key.eth_dst, vid, now);
    struct port *port = to ? dp_port(dp, to == NORMAL_LOCAL ? OFPP_LOCAL : to) : NULL;
    if (port && !port_is_up(port)) /* the station may be elsewhere by now */
        port = NULL;
    WATCH(normal(s, vid, port));
    if (!port)
        flood_vlan(s, vid);
    else if (port_no(port) != in)
        to_station(s, vid, port);
    else
        refuse(s, DROP_in_port, in);
}

static void
to_port_number(struct step *s, uint32_t to)
{
    struct port *port = dp_port(s->w->dp, to);
    if (to == s->p->in_port)
        refuse(s, DROP_in_port, to); /* only OFPP_IN_PORT sends it back (7.2.5) */
    else if (port && port_config_bits(port) & OFPPC_NO_FWD)
        refuse(s, DROP_port_down, to);
    else
        to_port(s, port, to);
}

/* A table-miss entry sends the packet to controllers that are not there. */
static bool
is_left_alone(const struct step *s)
{
    return s->w->standalone == STANDALONE_LEFT && s->reason == OFPR_NO_MATCH && !s->depth;
}

void
pipeline_output(struct step *s, uint32_t to, uint16_t max_len)
{
    switch (to) {
    case OFPP_IN_PORT: to_port(s, dp_port(s->w->dp, s->p->in_port), s->p->in_port); break;
    case OFPP_NORMAL: pipeline_output_normal(s); break;
    case OFPP_FLOOD: flood(s, FLOOD_WITHOUT); break;
    case OFPP_ALL: flood(s, OFPPC_NO_FWD); break;
    case OFPP_CONTROLLER:
        if (is_left_alone(s))
            s->missed = true;
        else
            pipeline_output_controller(s, max_len);
        break;
    default: to_port_number(s, to);
    }
}
