/* SPDX-License-Identifier: Apache-2.0 */
/* A packet's way (5.1 to 5.12), ports and groups on it. */
#include "oracle.h"

#include <stdlib.h>

/* ------------------------------------------------------------------ what comes out */

struct oracle_out *
oracle_log_add(struct oracle_log *l, const uint8_t *data, uint32_t n)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? 2 * l->cap : 16;
        l->v = realloc(l->v, l->cap * sizeof *l->v);
    }
    struct oracle_out *o = &l->v[l->n++];
    *o = (struct oracle_out){.n = n, .data = malloc(n + 1)};
    memcpy(o->data, data, n);
    return o;
}

void
oracle_log_clear(struct oracle_log *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        free(l->v[i].data);
    l->n = 0;
}

const struct oracle_port *
oracle_port(const struct oracle_world *w, uint32_t no)
{
    for (int i = 0; i < ORACLE_PORTS; i++)
        if (w->port[i].no == no && no)
            return &w->port[i];
    return NULL;
}

bool
oracle_port_up(const struct oracle_port *p)
{
    return !p->link_down && !(p->config & OFPPC_PORT_DOWN);
}

/* ------------------------------------------------------------------ output */

/* On whose behalf something is done to a packet. */
struct way {
    struct oracle_switch *s;
    uint64_t cookie;
    uint8_t table_id, reason;
    bool in_group;
    bool sent;   /* since `missed`, which ends at the last table's */
    bool missed; /* without a controller: OFPP_NORMAL is what remains */
};

static enum oracle_end carry_out(struct way *w, struct oracle_packet *p, const struct of_tagged *t);
static void tables(struct oracle_switch *s, struct oracle_packet *p);

static void
to_port(struct oracle_switch *s, const struct oracle_packet *p, uint32_t no)
{
    const struct oracle_port *port = oracle_port(s->world, no);
    if (!port || !oracle_port_up(port) || port->config & OFPPC_NO_FWD)
        return;
    struct oracle_out *o = oracle_log_add(&s->log, p->data, p->n);
    o->port = no;
    o->queue = p->queue;
}

static void
to_all(struct oracle_switch *s, const struct oracle_packet *p, bool floods)
{
    for (int i = 0; i < ORACLE_PORTS; i++)
        if (s->world->port[i].no && s->world->port[i].no != p->in_port &&
            !(floods && s->world->port[i].config & OFPPC_NO_FLOOD))
            to_port(s, p, s->world->port[i].no);
}

/* As it would be on a wire, where it has become shorter than Ethernet's least. */
static struct oracle_out *
log_packet_in(struct oracle_log *l, const struct oracle_packet *p)
{
    struct oracle_packet padded = *p;
    if (p->n >= p->came || p->n >= ORACLE_MIN_FRAME)
        return oracle_log_add(l, p->data, p->n);
    memset(padded.data + p->n, 0, ORACLE_MIN_FRAME - p->n);
    return oracle_log_add(l, padded.data, ORACLE_MIN_FRAME);
}

/* OFPPC_NO_PACKET_IN: "packets on that port that generate a table miss should never trigger a
 * packet-in" (7.2.1). */
static void
to_controller(const struct way *w, const struct oracle_packet *p, uint16_t max_len)
{
    const struct oracle_port *in = oracle_port(w->s->world, p->in_port);
    if (in && in->config & OFPPC_NO_PACKET_IN && w->reason == OFPR_NO_MATCH)
        return;
    struct oracle_out *o = log_packet_in(&w->s->log, p);
    o->packet_in = true;
    o->port = p->in_port;
    o->metadata = p->metadata;
    o->tunnel_id = p->tunnel_id;
    o->cookie = w->cookie;
    o->table_id = w->table_id;
    o->reason = w->reason;
    o->max_len = max_len;
}

static struct oracle_mac *
known_mac(struct oracle_switch *s, const uint8_t *mac, uint16_t vid)
{
    for (uint32_t i = 0; i < s->n_macs; i++)
        if (!memcmp(s->mac[i].mac, mac, 6) && s->mac[i].vid == vid)
            return &s->mac[i];
    return NULL;
}

static bool
has_vlan(const struct oracle_port *port, uint16_t vlan, bool tagged)
{
    if (!port || !port->limited)
        return true;
    return tagged ? vlan && (port->tagged[0] == vlan || port->tagged[1] == vlan)
                  : vlan && port->untagged == vlan;
}

/* tag: of the frame as it is, -1: none */
static void
to_vlan_port(struct oracle_switch *s, const struct oracle_packet *p, uint32_t no, uint16_t vlan,
             int tag)
{
    const struct oracle_port *port = oracle_port(s->world, no);
    struct oracle_packet copy = *p;
    bool bare = port->limited && port->untagged == vlan;
    if (vlan && (bare ? tag >= 0 : tag <= 0))
        oracle_retag(&copy, vlan, !bare);
    to_port(s, &copy, no);
}

static void
to_vlan(struct oracle_switch *s, const struct oracle_packet *p, uint16_t vlan, int tag)
{
    for (int i = 0; i < ORACLE_PORTS; i++) {
        const struct oracle_port *port = &s->world->port[i];
        if (port->no && port->no != p->in_port && !(port->config & OFPPC_NO_FLOOD) &&
            (has_vlan(port, vlan, true) || has_vlan(port, vlan, false)))
            to_vlan_port(s, p, port->no, vlan, tag);
    }
}

/* A learning bridge, each VLAN for itself. */
static void
to_normal(struct oracle_switch *s, const struct oracle_packet *p)
{
    static const uint8_t reserved[5] = {0x01, 0x80, 0xc2};
    uint8_t field[2];
    bool tagged = oracle_field(p, OXM_vlan_vid, field) && of_get16(field) & OFPVID_PRESENT;
    uint16_t vid = of_get16(field) & 0xfff;
    int tag = tagged ? vid : -1;
    const struct oracle_port *in = oracle_port(s->world, p->in_port);
    if (in && in->limited && !vid)
        vid = in->untagged;
    if (in && in->limited && !has_vlan(in, vid, tag > 0))
        return;
    if (!memcmp(p->data, reserved, 5) && p->data[5] < 16 &&
        !(s->world->group_fwd >> p->data[5] & 1))
        return;
    struct oracle_mac *m = known_mac(s, p->data + 6, vid);
    if (!(p->data[6] & 1) && oracle_port(s->world, p->in_port)) {
        if (!m && s->n_macs == ORACLE_MACS)
            abort();
        if (!m)
            m = &s->mac[s->n_macs++];
        memcpy(m->mac, p->data + 6, 6);
        m->vid = vid;
        m->port = p->in_port;
    }
    m = p->data[0] & 1 ? NULL : known_mac(s, p->data, vid);
    if (!m || !oracle_port_up(oracle_port(s->world, m->port)))
        to_vlan(s, p, vid, tag);
    else if (m->port != p->in_port)
        to_vlan_port(s, p, m->port, vid, tag);
}

void
oracle_forget_port(struct oracle_switch *s, uint32_t no)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_macs; i++)
        if (s->mac[i].port != no)
            s->mac[n++] = s->mac[i];
    s->n_macs = n;
}

static void
output(struct way *w, const struct oracle_packet *p, const struct of_action_output *o)
{
    struct oracle_packet copy = *p;
    if (o->port == OFPP_CONTROLLER && w->s->world->alone == 2 && w->reason == OFPR_NO_MATCH &&
        !w->in_group) {
        w->missed = true;
        return;
    }
    w->sent = true;
    switch (o->port) {
    case OFPP_IN_PORT: to_port(w->s, p, p->in_port); break;
    case OFPP_TABLE: tables(w->s, &copy); break;
    case OFPP_NORMAL: to_normal(w->s, p); break;
    case OFPP_ALL: to_all(w->s, p, false); break;
    case OFPP_FLOOD: to_all(w->s, p, true); break;
    case OFPP_CONTROLLER: to_controller(w, p, o->max_len); break;
    default:
        if (o->port != p->in_port) /* back only by OFPP_IN_PORT */
            to_port(w->s, p, o->port);
    }
}

/* ------------------------------------------------------------------ action sets */

struct set {
    const struct of_tagged *one[32];   /* by type */
    const struct of_tagged *field[64]; /* set_field, by field */
};

static void
write_actions(struct set *set, const struct of_list *actions)
{
    for (uint32_t i = 0; i < actions->n; i++) {
        const struct of_tagged *t = OF_AT(actions, i, struct of_tagged);
        if (t->row->type == OFPAT_SET_FIELD)
            set->field[((const struct of_action_set_field *)t)->field.row->field] = t;
        else
            set->one[t->row->type] = t;
    }
}

/* 5.10, whatever order they were put in.  What goes to a controller from here has no flow's cookie, be it
 * from the action set or from a bucket (7.4.1).  False: the packet is gone. */
static bool
carry_out_set(struct way *w, struct oracle_packet *p, const struct set *set)
{
    static const uint8_t before[] = {OFPAT_COPY_TTL_IN, OFPAT_POP_VLAN,     OFPAT_POP_MPLS,
                                     OFPAT_POP_PBB,     OFPAT_PUSH_MPLS,    OFPAT_PUSH_PBB,
                                     OFPAT_PUSH_VLAN,   OFPAT_COPY_TTL_OUT, OFPAT_DEC_MPLS_TTL,
                                     OFPAT_DEC_NW_TTL,  OFPAT_SET_MPLS_TTL, OFPAT_SET_NW_TTL};
    w->cookie = UINT64_MAX;
    for (size_t i = 0; i < sizeof before; i++)
        if (set->one[before[i]] && carry_out(w, p, set->one[before[i]]))
            return false;
    for (int f = 0; f < 64; f++)
        if (set->field[f] && carry_out(w, p, set->field[f]))
            return false;
    if (set->one[OFPAT_SET_QUEUE])
        carry_out(w, p, set->one[OFPAT_SET_QUEUE]);
    if (set->one[OFPAT_GROUP])
        carry_out(w, p, set->one[OFPAT_GROUP]);
    else if (set->one[OFPAT_OUTPUT])
        carry_out(w, p, set->one[OFPAT_OUTPUT]);
    return true;
}

/* ------------------------------------------------------------------ groups */

static struct oracle_group *
find_group(const struct oracle_switch *s, uint32_t id)
{
    struct oracle_group *g = s->groups;
    while (g && g->id != id)
        g = g->next;
    return g;
}

static bool group_live(const struct oracle_switch *s, uint32_t id);

/* A bucket of a group that isn't fast failover need not watch anything, and is live then.  It doesn't if
 * its watch_port is no port: some controllers leave 0 there. */
static bool
bucket_live(const struct oracle_switch *s, const struct oracle_group *g, const struct of_bucket *b)
{
    const struct oracle_port *p = oracle_port(s->world, b->watch_port);
    if (g->type != OFPGT_FF)
        return !p || oracle_port_up(p);
    return (b->watch_port != OFPP_ANY && p && oracle_port_up(p)) ||
           (b->watch_group != OFPG_ANY && group_live(s, b->watch_group));
}

static bool
group_live(const struct oracle_switch *s, uint32_t id)
{
    const struct oracle_group *g = find_group(s, id);
    for (uint32_t i = 0; g && i < g->buckets->n; i++)
        if (bucket_live(s, g, OF_AT(g->buckets, i, struct of_bucket)))
            return true;
    return false;
}

static void
count(struct oracle_counter *c, const struct oracle_packet *p)
{
    c->packets++;
    c->bytes += p->n;
}

static void
run_bucket(const struct way *w, const struct oracle_packet *p, struct oracle_group *g, uint32_t i)
{
    struct oracle_packet copy = *p;
    struct way mine = *w;
    struct set set = {0};
    mine.in_group = true;
    count(&g->bucket[i], p);
    write_actions(&set, &OF_AT(g->buckets, i, struct of_bucket)->actions);
    carry_out_set(&mine, &copy, &set);
}

/* Neither the port that it watches nor the one that it sends to is down. */
static bool
bucket_usable(const struct oracle_switch *s, const struct of_bucket *b)
{
    const struct oracle_port *watched = oracle_port(s->world, b->watch_port);
    uint32_t to = OFPP_ANY;
    if (watched && !oracle_port_up(watched))
        return false;
    for (uint32_t i = 0; i < b->actions.n; i++) {
        const struct of_tagged *t = OF_AT(&b->actions, i, struct of_tagged);
        if (t->row->type == OFPAT_GROUP)
            return true;
        if (t->row->type == OFPAT_OUTPUT)
            to = ((const struct of_action_output *)t)->port;
    }
    if (to > OFPP_MAX && to != OFPP_LOCAL)
        return true;
    return oracle_port(s->world, to) && oracle_port_up(oracle_port(s->world, to));
}

/* Select: the tests' groups have the same actions in all buckets that may be chosen. */
static bool
chosen(const struct oracle_switch *s, const struct oracle_group *g, const struct of_bucket *b)
{
    switch (g->type) {
    case OFPGT_SELECT: return b->weight > 0 && bucket_usable(s, b);
    case OFPGT_FF: return bucket_live(s, g, b);
    default: return true;
    }
}

static void
run_group(struct way *w, const struct oracle_packet *p, uint32_t id)
{
    struct oracle_group *g = find_group(w->s, id);
    w->sent = true;
    if (!g)
        return;
    count(&g->count, p);
    for (uint32_t i = 0; i < g->buckets->n; i++) {
        if (!chosen(w->s, g, OF_AT(g->buckets, i, struct of_bucket)))
            continue;
        run_bucket(w, p, g, i);
        if (g->type != OFPGT_ALL)
            break;
    }
}

/* ------------------------------------------------------------------ the pipeline */

static enum oracle_end
carry_out(struct way *w, struct oracle_packet *p, const struct of_tagged *t)
{
    struct oracle_packet before = *p;
    if (t->row->type == OFPAT_OUTPUT)
        output(w, p, (const struct of_action_output *)t);
    else if (t->row->type == OFPAT_GROUP)
        run_group(w, p, ((const struct of_action_group *)t)->group_id);
    else if (t->row->type == OFPAT_SET_QUEUE) {
        p->queue = ((const struct of_action_set_queue *)t)->queue_id;
        if (!w->s->met_queue)
            w->s->first_queue = p->queue;
        w->s->met_queue = true;
    } else {
        enum oracle_end end = oracle_edit(p, t);
        if (end == ORACLE_TTL) {
            struct way invalid = *w;
            invalid.reason = OFPR_INVALID_TTL;
            to_controller(&invalid, &before, OFPCML_NO_BUFFER);
        }
        return end;
    }
    return ORACLE_GOES_ON;
}

/* Behind IF_THERE a tag is pushed where there is none.  False: the packet is gone. */
static bool
carry_out_list(struct way *w, struct oracle_packet *p, const struct of_list *actions)
{
    bool if_there = false;
    for (uint32_t i = 0; i < actions->n; i++) {
        const struct of_tagged *t = OF_AT(actions, i, struct of_tagged);
        uint8_t vlan[2];
        bool tagged = oracle_field(p, OXM_vlan_vid, vlan) && of_get16(vlan) & OFPVID_PRESENT;
        if (t->row->type == OFPAT_EXPERIMENTER)
            if_there = true;
        else if (if_there && t->row->type == OFPAT_PUSH_VLAN && tagged)
            continue;
        else if (carry_out(w, p, t))
            return false;
    }
    return true;
}

static bool
matches(const struct oracle_packet *p, const struct of_match *m)
{
    uint8_t value[OXM_MAX_LEN];
    for (uint32_t i = 0; i < m->n; i++) {
        const struct of_oxm *o = &m->v[i];
        uint8_t any = 0;
        for (int b = 0; b < o->row->bytes; b++)
            any |= o->has_mask ? o->mask[b] : 0xff;
        if (!any) /* a wholly masked field is as good as left out (7.2.3.5) */
            continue;
        if (!oracle_field(p, (enum oxm_field)o->row->field, value))
            return false; /* what isn't there matches no entry that has that field set (7.3.2) */
        for (int b = 0; b < o->row->bytes; b++)
            if ((value[b] ^ o->value[b]) & (o->has_mask ? o->mask[b] : 0xff))
                return false;
    }
    return true;
}

static struct oracle_flow *
lookup(struct oracle_switch *s, uint8_t table, const struct oracle_packet *p)
{
    struct oracle_flow *best = NULL;
    for (struct oracle_flow *f = s->flows; f; f = f->next)
        if (f->table_id == table && (!best || f->priority > best->priority) && matches(p, f->match))
            best = f;
    s->lookups[table]++;
    s->matched[table] += best != NULL;
    return best;
}

static const void *
instruction(const struct oracle_flow *f, uint16_t type)
{
    for (uint32_t i = 0; i < f->instructions->n; i++)
        if (OF_AT(f->instructions, i, struct of_tagged)->row->type == type)
            return f->instructions->v[i];
    return NULL;
}

/* A flow's instructions in the order of 5.9 (meters of these tests never drop).  The next table;
 * -1: it was the last; -2: the packet is gone. */
static int
carry_out_flow(struct way *w, struct oracle_packet *p, const struct oracle_flow *f, struct set *set)
{
    const struct of_instr_actions *a = instruction(f, OFPIT_APPLY_ACTIONS);
    if (a && !carry_out_list(w, p, &a->actions))
        return -2;
    if (instruction(f, OFPIT_CLEAR_ACTIONS))
        memset(set, 0, sizeof *set);
    if ((a = instruction(f, OFPIT_WRITE_ACTIONS)))
        write_actions(set, &a->actions);
    const struct of_instr_write_metadata *m = instruction(f, OFPIT_WRITE_METADATA);
    if (m)
        p->metadata = (p->metadata & ~m->metadata_mask) | (m->metadata & m->metadata_mask);
    const struct of_instr_goto_table *g = instruction(f, OFPIT_GOTO_TABLE);
    return g ? g->table_id : -1;
}

static void
tables(struct oracle_switch *s, struct oracle_packet *p)
{
    struct set set = {0};
    struct way w = {.s = s};
    if (s->world->frag == OFPC_FRAG_DROP && oracle_is_fragment(p))
        return;
    for (int table = 0; table >= 0;) {
        struct oracle_flow *f = lookup(s, (uint8_t)table, p);
        w.table_id = (uint8_t)table;
        if (!f && !s->world->alone)
            return; /* dropped: no table-miss entry (5.4) */
        if (!f || (f->miss && s->world->alone == 2))
            w.sent = false;
        if (!f) {
            w.missed = true;
            break;
        }
        count(&f->count, p);
        f->used = s->world->now;
        w.cookie = f->cookie;
        w.reason = f->miss ? OFPR_NO_MATCH : OFPR_ACTION;
        if ((table = carry_out_flow(&w, p, f, &set)) == -2)
            return;
    }
    if (carry_out_set(&w, p, &set) && w.missed && !w.sent)
        to_normal(s, p);
}

static void
fill(struct oracle_packet *p, const uint8_t *data, uint32_t n, uint32_t in_port)
{
    if (n > ORACLE_ROOM)
        abort();
    *p = (struct oracle_packet){.n = n, .came = n, .in_port = in_port};
    memcpy(p->data, data, n);
}

void
oracle_receive(struct oracle_switch *s, const uint8_t *data, uint32_t n, uint32_t in_port)
{
    struct oracle_packet p;
    s->met_queue = false;
    fill(&p, data, n, in_port);
    tables(s, &p);
}

void
oracle_packet_out(struct oracle_switch *s, const uint8_t *data, uint32_t n, uint32_t in_port,
                  const struct of_list *actions)
{
    struct oracle_packet p;
    struct way w = {.s = s, .cookie = UINT64_MAX, .reason = OFPR_ACTION};
    fill(&p, data, n, in_port);
    carry_out_list(&w, &p, actions);
}
