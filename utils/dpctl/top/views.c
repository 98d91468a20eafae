/* SPDX-License-Identifier: Apache-2.0 */
/* The views: their columns, and how their items are asked for. */
#include "top-inside.h"

#include <core/ask.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/words.h>
#include <queues/queues.h>

#include <oflib/text.h>

#include <inttypes.h>
#include <stdio.h>

static uint64_t
age(uint32_t sec, uint32_t nsec)
{
    return sec == UINT32_MAX ? 0 : (uint64_t)sec * 1000000 + nsec / 1000;
}

/* "1 eth1" */
static const char *
port_name(struct top *t, const struct of_list *ports, uint32_t no)
{
    const struct of_port *p = ports_desc(ports, no);
    if (no == OFPP_LOCAL)
        return top_text(t, "local %.*s", OFP_MAX_PORT_NAME_LEN, p ? p->name : "");
    return top_text(t, "%u %.*s", (unsigned)no, OFP_MAX_PORT_NAME_LEN, p ? p->name : "");
}

/* ---------------------------------------------------------------------- ports */

static enum status
collect_ports(struct top *t)
{
    struct of_list ports, l;
    enum status st;
    if ((st = ports_ask(t->c, &ports)) || (st = ask_list(t->c, OFPMP_PORT_STATS, NULL, &l)))
        return st;
    for (uint32_t k = 0; k < l.n; k++) {
        const struct of_port_stats *s = OF_AT(&l, k, struct of_port_stats);
        const struct of_port *p = ports_desc(&ports, s->port_no);
        struct top_item *i = top_add(t);
        if (!i)
            return say_memory(t->c);
        *i = (struct top_item){.key = {s->port_no},
                               .age_us = age(s->duration_sec, s->duration_nsec),
                               .v = {s->rx_bytes, s->rx_packets, s->tx_bytes, s->tx_packets,
                                     s->rx_dropped + s->tx_dropped, s->rx_errors + s->tx_errors,
                                     ports_speed(p)},
                               .name = port_name(t, &ports, s->port_no),
                               .detail = !p || p->state & OFPPS_LINK_DOWN ? "down" : "up"};
    }
    return DPCTL_OK;
}

/* --------------------------------------------------------------------- queues */

static const char *
queue_text(struct top *t, const struct of_list *ports, const struct queue_node *n)
{
    struct of_wr w = of_wr_grow(256);
    const struct qos_request *r = &n->entry->config;
    of_printf(&w, "%s%s ", port_name(t, ports, r->port_no), n->dir == QOS_IN ? " in" : "");
    if (r->class_id)
        of_printf(&w, "%u", (unsigned)r->class_id);
    else
        of_printf(&w, "root");
    const char *name = top_text(t, "%.*s", (int)w.len, (const char *)w.buf);
    of_wr_free(&w);
    return name;
}

/* The medians of its round trips and of waiting in it. */
static void
take_times(struct top_item *i, const struct queue_rows *rows, const struct queue_node *n)
{
    struct queue_latency l;
    bool known = queues_find_latency(rows, n, &l);
    i->v[7] = known && l.rtt.p50 != QUEUE_NO_TIME ? l.rtt.p50 : TOP_UNKNOWN;
    i->v[8] = known && l.wait.p50 != QUEUE_NO_TIME ? l.wait.p50 : TOP_UNKNOWN;
}

/* Classes; what is below them only where there is no class: of a port without queues, or of bands.
 */
static enum status
collect_queues(struct top *t)
{
    struct queue_view view;
    struct of_list ports;
    const struct queue_node *last = NULL;
    enum status st;
    if ((st = ports_ask(t->c, &ports)) ||
        (st = queues_view(t->c, OFPP_ANY, QOS_ALL_CLASSES, NULL, &view)))
        return st;
    const struct queue_rows times = queues_latency_if_known(t->c);
    for (size_t k = 0; k < view.n; k++) {
        const struct queue_node *n = &view.v[k];
        const struct qos_request *r = &n->entry->config;
        const struct qos_counters *c = &n->entry->counters;
        bool class = r->object_type == OFP_QOS_CLASS;
        bool below = !class && last && last->entry->config.class_id == r->class_id &&
                     last->entry->config.port_no == r->port_no && last->dir == n->dir;
        if (below) { /* its class has the line */
            t->v[t->n - 1].v[4] += c->marked;
            t->v[t->n - 1].detail = r->sched->name;
            continue;
        }
        if (!class && r->sched->classful && !r->sched->flat)
            continue; /* its root class comes next */
        struct top_item *i = top_add(t);
        if (!i)
            return say_memory(t->c);
        last = n;
        *i = (struct top_item){
            .key = {(uint64_t)r->port_no << 1 | (n->dir == QOS_IN), r->class_id},
            .v = {c->bytes, c->packets, n->rate, n->ceil, c->marked, c->backlog_bytes, c->drops},
            .name = queue_text(t, &ports, n),
            .detail = class ? "" : r->sched->name};
        take_times(i, &times, n);
    }
    return DPCTL_OK;
}

/* ------------------------------------------------------ meters, groups, tables */

static enum status
collect_meters(struct top *t)
{
    struct of_list l;
    enum status st = ask_list(t->c, OFPMP_METER, NULL, &l);
    if (st)
        return st;
    for (uint32_t k = 0; k < l.n; k++) {
        const struct of_meter_stats *s = OF_AT(&l, k, struct of_meter_stats);
        struct top_item *i = top_add(t);
        uint64_t packets = 0, bytes = 0;
        for (uint32_t b = 0; b < s->band_stats.n; b++) {
            packets += OF_AT(&s->band_stats, b, struct of_band_counter)->packet_band_count;
            bytes += OF_AT(&s->band_stats, b, struct of_band_counter)->byte_band_count;
        }
        if (!i)
            return say_memory(t->c);
        *i = (struct top_item){
            .key = {s->meter_id},
            .age_us = age(s->duration_sec, s->duration_nsec),
            .v = {s->byte_in_count, s->packet_in_count, bytes, packets, s->flow_count},
            .name = top_text(t, "%u", (unsigned)s->meter_id),
            .detail = ""};
    }
    return DPCTL_OK;
}

static enum status
collect_groups(struct top *t)
{
    struct of_list l;
    enum status st = ask_list(t->c, OFPMP_GROUP, NULL, &l);
    if (st)
        return st;
    for (uint32_t k = 0; k < l.n; k++) {
        const struct of_group_stats *s = OF_AT(&l, k, struct of_group_stats);
        struct top_item *i = top_add(t);
        if (!i)
            return say_memory(t->c);
        *i = (struct top_item){
            .key = {s->group_id},
            .age_us = age(s->duration_sec, s->duration_nsec),
            .v = {s->byte_count, s->packet_count, s->bucket_stats.n, s->ref_count},
            .name = top_text(t, "%u", (unsigned)s->group_id),
            .detail = ""};
    }
    return DPCTL_OK;
}

/* A switch may have 254 tables, most of them never used. */
static enum status
collect_tables(struct top *t)
{
    struct of_list l;
    enum status st = ask_list(t->c, OFPMP_TABLE, NULL, &l);
    if (st)
        return st;
    for (uint32_t k = 0; k < l.n; k++) {
        const struct of_table_stats *s = OF_AT(&l, k, struct of_table_stats);
        if (k && !s->active_count && !s->lookup_count)
            continue;
        struct top_item *i = top_add(t);
        if (!i)
            return say_memory(t->c);
        *i = (struct top_item){.key = {s->table_id},
                               .v = {s->lookup_count, s->matched_count, s->active_count},
                               .name = top_text(t, "%u", s->table_id),
                               .detail = ""};
    }
    return DPCTL_OK;
}

/* ------------------------------------------------------------------- the views */

const struct top_view top_views[] = {
    {'p',
     "ports",
     "PORT",
     "LINK",
     {{"IN bit/s", "rx_bps", TOP_BITS, 0, 9},
      {"IN pkt/s", "rx_pps", TOP_RATE, 1, 9},
      {"OUT bit/s", "tx_bps", TOP_BITS, 2, 10},
      {"OUT pkt/s", "tx_pps", TOP_RATE, 3, 10},
      {"DROP/s", "drops_ps", TOP_RATE, 4, 8},
      {"ERR/s", "errors_ps", TOP_RATE, 5, 7},
      {"SPEED", "speed_bps", TOP_STATE, 6, 7}},
     collect_ports},
    {'q',
     "queues",
     "QUEUE",
     "SCHEDULER",
     {{"bit/s", "tx_bps", TOP_BITS, 0, 8},
      {"pkt/s", "tx_pps", TOP_RATE, 1, 8},
      {"RATE", "rate_bps", TOP_STATE, 2, 7},
      {"CEIL", "ceil_bps", TOP_STATE, 3, 7},
      {"BACKLOG", "backlog_bytes", TOP_STATE, 5, 8},
      {"DROP/s", "drops_ps", TOP_RATE, 6, 8},
      {"MARK/s", "marks_ps", TOP_RATE, 4, 8},
      {"RTT us", "rtt_us", TOP_STATE, 7, 6},
      {"WAIT us", "wait_us", TOP_STATE, 8, 7}},
     collect_queues},
    {'f',
     "flows",
     "TABLE PRIO",
     "MATCH -> INSTRUCTIONS",
     {{"bit/s", "bps", TOP_BITS, 0, 8},
      {"pkt/s", "pps", TOP_RATE, 1, 8},
      {"PACKETS", "packets", TOP_STATE, 1, 8}},
     top_collect_flows},
    {'m',
     "meters",
     "METER",
     NULL,
     {{"bit/s", "bps", TOP_BITS, 0, 8},
      {"pkt/s", "pps", TOP_RATE, 1, 8},
      {"BAND bit/s", "band_bps", TOP_BITS, 2, 11},
      {"BAND pkt/s", "band_pps", TOP_RATE, 3, 11},
      {"FLOWS", "flows", TOP_STATE, 4, 8}},
     collect_meters},
    {'g',
     "groups",
     "GROUP",
     NULL,
     {{"bit/s", "bps", TOP_BITS, 0, 8},
      {"pkt/s", "pps", TOP_RATE, 1, 8},
      {"BUCKETS", "buckets", TOP_STATE, 2, 8},
      {"USERS", "references", TOP_STATE, 3, 8}},
     collect_groups},
    {'t',
     "tables",
     "TABLE",
     NULL,
     {{"LOOKUP/s", "lookups_ps", TOP_RATE, 0, 9},
      {"MATCH/s", "matches_ps", TOP_RATE, 1, 9},
      {"FLOWS", "flows", TOP_STATE, 2, 9}},
     collect_tables},
    {'c',
     "processors",
     "PROCESSOR",
     NULL,
     {{"KERNEL/s", "kernel_ps", TOP_RATE, 0, 9},
      {"LEFT/s", "left_ps", TOP_RATE, 1, 9},
      {"WORKER/s", "worker_ps", TOP_RATE, 2, 9},
      {"WAKE-UP/s", "wakeups_ps", TOP_RATE, 3, 10},
      {"CPU us/s", "cpu_us_ps", TOP_RATE, 4, 9}},
     top_collect_processors},
    {0},
};

const struct top_view *
top_view_by_name(const char *name)
{
    size_t n = strlen(name);
    for (const struct top_view *v = top_views; v->name; v++)
        if (!strcmp(v->name, name) || (n + 1 == strlen(v->name) && !strncmp(v->name, name, n)))
            return v;
    return NULL;
}

const struct top_view *
top_view_by_key(int key)
{
    for (const struct top_view *v = top_views; v->name; v++)
        if (v->key == key)
            return v;
    return NULL;
}

int
top_columns(const struct top_view *v)
{
    int n = 0;
    while (n < TOP_COLUMNS && v->columns[n].title)
        n++;
    return n;
}
