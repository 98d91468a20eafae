/* SPDX-License-Identifier: Apache-2.0 */
/* What any OpenFlow 1.3 switch reports: ports, tables, groups, meters. */
#include "metrics-inside.h"

#include <core/ask.h>
#include <core/ports.h>

/* ---------------------------------------------------------------------- ports */

static void
take_port(struct metrics *m, const struct of_port_stats *s)
{
    const struct of_port *p = ports_desc(&m->ports, s->port_no);
    metrics_label_port(m, s->port_no);
    uint64_t *v = metrics_object(m, METRICS_OF_PORT);
    if (!v)
        return;
    v[PORT_UP] = p ? !(p->state & OFPPS_LINK_DOWN) : METRICS_UNKNOWN;
    if (ports_speed(p))
        v[PORT_SPEED] = metrics_rate(ports_speed(p));
    v[PORT_RX_PACKETS] = s->rx_packets;
    v[PORT_RX_BYTES] = s->rx_bytes;
    v[PORT_RX_DROPPED] = s->rx_dropped;
    v[PORT_RX_ERRORS] = s->rx_errors;
    v[PORT_TX_PACKETS] = s->tx_packets;
    v[PORT_TX_BYTES] = s->tx_bytes;
    v[PORT_TX_DROPPED] = s->tx_dropped;
    v[PORT_TX_ERRORS] = s->tx_errors;
    v[PORT_COLLISIONS] = s->collisions;
}

static enum status
collect_ports(struct metrics *m)
{
    struct of_list l;
    enum status st = ports_ask(m->c, &m->ports);
    st = st ? st : ask_list(m->c, OFPMP_PORT_STATS, NULL, &l);
    for (uint32_t i = 0; !st && i < l.n; i++)
        take_port(m, OF_AT(&l, i, struct of_port_stats));
    return st;
}

/* --------------------------------------------------------------------- tables */

/* A switch may have 254 tables, most of them never used. */
static enum status
collect_tables(struct metrics *m)
{
    struct of_list l;
    enum status st = ask_list(m->c, OFPMP_TABLE, NULL, &l);
    if (st)
        return st;
    uint64_t flows = 0;
    for (uint32_t i = 0; i < l.n; i++) {
        const struct of_table_stats *s = OF_AT(&l, i, struct of_table_stats);
        flows += s->active_count;
        if (i && !s->active_count && !s->lookup_count)
            continue;
        metrics_label(m, "table", "%u", s->table_id);
        uint64_t *v = metrics_object(m, METRICS_OF_TABLE);
        if (!v)
            continue;
        v[TABLE_FLOWS] = s->active_count;
        v[TABLE_LOOKUPS] = s->lookup_count;
        v[TABLE_MATCHES] = s->matched_count;
    }
    if (m->of[METRICS_OF_SWITCH].n)
        m->of[METRICS_OF_SWITCH].v[0].v[SWITCH_FLOWS] = flows;
    return DPCTL_OK;
}

/* --------------------------------------------------------------------- groups */

static void
take_group(struct metrics *m, const struct of_group_stats *s)
{
    metrics_label(m, "group", "%u", (unsigned)s->group_id);
    uint64_t *v = metrics_object(m, METRICS_OF_GROUP);
    if (!v)
        return;
    v[GROUP_PACKETS] = s->packet_count;
    v[GROUP_BYTES] = s->byte_count;
    v[GROUP_REFERENCES] = s->ref_count;
    for (uint32_t i = 0; i < s->bucket_stats.n; i++) {
        const struct of_bucket_counter *b = OF_AT(&s->bucket_stats, i, struct of_bucket_counter);
        metrics_label(m, "group", "%u", (unsigned)s->group_id);
        metrics_label(m, "bucket", "%u", (unsigned)i);
        if (!(v = metrics_object(m, METRICS_OF_BUCKET)))
            return;
        v[BUCKET_PACKETS] = b->packet_count;
        v[BUCKET_BYTES] = b->byte_count;
    }
}

static enum status
collect_groups(struct metrics *m)
{
    struct of_list l;
    bool refused;
    enum status st = metrics_allow(m, ask_list(m->c, OFPMP_GROUP, NULL, &l), &refused);
    for (uint32_t i = 0; !st && !refused && i < l.n; i++)
        take_group(m, OF_AT(&l, i, struct of_group_stats));
    return st;
}

/* --------------------------------------------------------------------- meters */

static void
take_band(struct metrics *m, const struct of_meter_config *config, uint32_t i,
          const struct of_band_counter *n)
{
    const struct of_tagged *t =
        i < config->bands.n ? OF_AT(&config->bands, i, struct of_tagged) : NULL;
    uint16_t type = t ? t->row->type : 0;
    metrics_label(m, "meter", "%u", (unsigned)config->meter_id);
    metrics_label(m, "band", "%u", (unsigned)i);
    metrics_label(m, "type", "%s", t ? t->row->name : "");
    uint64_t *v = metrics_object(m, METRICS_OF_BAND);
    if (!v)
        return;
    if (type == OFPMBT_DROP || type == OFPMBT_DSCP_REMARK) { /* both begin alike */
        uint64_t rate = ((const struct of_band_drop *)t)->rate;
        if (config->flags & OFPMF_PKTPS)
            v[BAND_RATE_PACKETS] = rate;
        else
            v[BAND_RATE_BYTES] = metrics_rate(rate * 1000);
    }
    v[BAND_PACKETS] = n->packet_band_count;
    v[BAND_BYTES] = n->byte_band_count;
}

/* Both replies are in the same order, but a meter may have come or gone between them. */
static const struct of_meter_config *
config_of(const struct of_list *configs, uint32_t id, uint32_t *at)
{
    for (uint32_t i = 0; i < configs->n; i++) {
        uint32_t k = (*at + i) % configs->n;
        const struct of_meter_config *config = OF_AT(configs, k, struct of_meter_config);
        if (config->meter_id == id) {
            *at = k + 1;
            return config;
        }
    }
    return NULL;
}

static void
take_meter(struct metrics *m, const struct of_meter_stats *s, const struct of_meter_config *config)
{
    metrics_label(m, "meter", "%u", (unsigned)s->meter_id);
    uint64_t *v = metrics_object(m, METRICS_OF_METER);
    if (!v)
        return;
    v[METER_PACKETS] = s->packet_in_count;
    v[METER_BYTES] = s->byte_in_count;
    v[METER_FLOWS] = s->flow_count;
    for (uint32_t i = 0; config && i < s->band_stats.n; i++)
        take_band(m, config, i, OF_AT(&s->band_stats, i, struct of_band_counter));
}

static enum status
collect_meters(struct metrics *m)
{
    struct of_list l, configs;
    bool refused;
    uint32_t at = 0;
    enum status st = metrics_allow(m, ask_list(m->c, OFPMP_METER, NULL, &l), &refused);
    if (!st && !refused)
        st = metrics_allow(m, ask_list(m->c, OFPMP_METER_CONFIG, NULL, &configs), &refused);
    for (uint32_t i = 0; !st && !refused && i < l.n; i++) {
        const struct of_meter_stats *s = OF_AT(&l, i, struct of_meter_stats);
        take_meter(m, s, config_of(&configs, s->meter_id, &at));
    }
    return st;
}

enum status
metrics_collect_required(struct metrics *m)
{
    enum status st = collect_ports(m);
    return st ? st : collect_tables(m);
}

enum status
metrics_collect_standard(struct metrics *m)
{
    enum status st = collect_groups(m);
    return st ? st : collect_meters(m);
}
