/* SPDX-License-Identifier: Apache-2.0 */
/* Ports and queues in OpenConfig's models openconfig-interfaces and openconfig-qos, as JSON (RFC 7951):
 * docs/how-to/openconfig.md says what is what.  ofqos-exporter shows what this writes. */
#include <core/ask.h>
#include <core/ports.h>
#include <core/say.h>
#include <queues/queues.h>

#include <inttypes.h>
#include <stdio.h>

#define NAME_ROOM    32
#define POLICY_ROOM  96
#define DEFAULTS     (1 << 16)
#define QUEUE_ID_MAX 255 /* the model's queue-id is a uint8 */

struct doc {
    struct of_json *j;
    const struct queue_view *view;
    struct of_list ports;    /* struct of_port */
    struct of_list counters; /* struct of_port_stats */
};

/* The view's nodes of one port and direction. */
struct place {
    const char *port;
    enum qos_direction dir;
    size_t from, to;
    bool rooted; /* it has a root class, which the others are below */
};

/* ---------------------------------------------------------------------- leaves */

/* RFC 7951, 6.1: numbers of 64 bits are strings. */
static void
json_u64(struct of_json *j, const char *name, uint64_t v)
{
    of_json_quote(j, name);
    of_printf(j->w, "%" PRIu64, v);
    of_json_end_quote(j);
}

/* A list's key, and the leaf that it refers to in config and in state, which stays open. */
static void
begin_named(struct of_json *j, const char *key, const char *value)
{
    of_json_object(j, NULL);
    of_json_text(j, key, value);
    of_json_object(j, "config");
    of_json_text(j, key, value);
    of_json_end_object(j);
    of_json_object(j, "state");
    of_json_text(j, key, value);
}

static void
begin_list(struct of_json *j, const char *container, const char *list)
{
    of_json_object(j, container);
    of_json_array(j, list);
}

static void
end_list(struct of_json *j)
{
    of_json_end_array(j);
    of_json_end_object(j);
}

/* ---------------------------------------------------------------------- places */

static bool
is_class(const struct queue_node *node)
{
    return node->entry->config.object_type == OFP_QOS_CLASS;
}

static const char *
class_name(const struct queue_node *node, char buf[NAME_ROOM])
{
    uint32_t id = node->entry->config.class_id;
    if (id == QOS_CLASS_DEFAULT && node->entry->parent_id)
        snprintf(buf, NAME_ROOM, "default.%" PRIu32, node->entry->parent_id);
    else if (id == QOS_CLASS_DEFAULT)
        return "default";
    else if (!id)
        return is_class(node) ? "root" : "port";
    else
        snprintf(buf, NAME_ROOM, "%" PRIu32, id);
    return buf;
}

static bool
has_classes(const struct doc *d, const struct place *p, size_t i)
{
    for (size_t k = i + 1; k < p->to && d->view->v[k].depth > d->view->v[i].depth; k++)
        if (is_class(&d->view->v[k]))
            return true;
    return false;
}

/* A class that packets wait in, a band with a scheduler, or a scheduler that has the port for itself. */
static bool
is_queue(const struct doc *d, const struct place *p, size_t i)
{
    const struct queue_node *node = &d->view->v[i];
    const struct queue_node *before = i > p->from ? node - 1 : NULL;
    if (is_class(node))
        return node->entry->config.class_id && !has_classes(d, p, i);
    if (node->entry->config.sched->classful)
        return false;
    if (!node->entry->config.class_id)
        return p->to - p->from == 1;
    return !before || before->entry->config.class_id != node->entry->config.class_id;
}

/* The next place from p->to on. */
static bool
next_place(const struct doc *d, struct place *p)
{
    size_t i = p->from = p->to;
    if (i >= d->view->n)
        return false;
    const struct queue_node *first = &d->view->v[i];
    uint32_t no = first->entry->config.port_no;
    const struct of_port *port = ports_desc(&d->ports, no);
    p->dir = first->dir;
    p->port = port ? port->name : "";
    p->rooted = false;
    for (;
         i < d->view->n && d->view->v[i].dir == p->dir && d->view->v[i].entry->config.port_no == no;
         i++)
        p->rooted |= is_class(&d->view->v[i]) && !d->view->v[i].entry->config.class_id;
    p->to = i;
    return true;
}

/* "eth1:out": its queues' policy; "eth1:out:root": that of a class with classes below it. */
static const char *
policy_name(const struct place *p, const char *class, char buf[POLICY_ROOM])
{
    snprintf(buf, POLICY_ROOM, "%s:%s%s%s", p->port, p->dir == QOS_IN ? "in" : "out",
             class ? ":" : "", class ? class : "");
    return buf;
}

/* ------------------------------------------------------- openconfig-interfaces */

static void
json_counters(struct of_json *j, const struct of_port_stats *s)
{
    of_json_object(j, "counters");
    json_u64(j, "in-octets", s->rx_bytes);
    json_u64(j, "in-pkts", s->rx_packets);
    json_u64(j, "in-discards", s->rx_dropped);
    json_u64(j, "in-errors", s->rx_errors);
    json_u64(j, "out-octets", s->tx_bytes);
    json_u64(j, "out-pkts", s->tx_packets);
    json_u64(j, "out-discards", s->tx_dropped);
    json_u64(j, "out-errors", s->tx_errors);
    of_json_end_object(j);
}

static void
json_interface(const struct doc *d, const struct of_port *port)
{
    struct of_json *j = d->j;
    bool enabled = !(port->config & OFPPC_PORT_DOWN);
    begin_named(j, "name", port->name);
    of_json_text(j, "type", "iana-if-type:ethernetCsmacd");
    of_json_bool(j, "enabled", enabled);
    of_json_text(j, "admin-status", enabled ? "UP" : "DOWN");
    of_json_text(j, "oper-status", port->state & OFPPS_LINK_DOWN ? "DOWN" : "UP");
    for (uint32_t i = 0; i < d->counters.n; i++) {
        const struct of_port_stats *s = OF_AT(&d->counters, i, struct of_port_stats);
        if (s->port_no == port->port_no)
            json_counters(j, s);
    }
    of_json_end_object(j);
    of_json_end_object(j);
}

/* ------------------------------------------------------- /qos/interfaces */

static void
json_queue(const struct doc *d, const struct place *p, size_t i)
{
    const struct queue_node *node = &d->view->v[i];
    const struct qos_counters *n = &node->entry->counters;
    uint64_t drops = n->drops;
    char name[NAME_ROOM];
    /* A class counts what it refused, the scheduler below it what it dropped later, too. */
    if (i + 1 < p->to && !is_class(node + 1) &&
        node[1].entry->config.class_id == node->entry->config.class_id &&
        node[1].entry->counters.drops > drops)
        drops = node[1].entry->counters.drops;
    begin_named(d->j, "name", class_name(node, name));
    json_u64(d->j, "transmit-pkts", n->packets);
    json_u64(d->j, "transmit-octets", n->bytes);
    json_u64(d->j, "dropped-pkts", drops);
    of_json_end_object(d->j);
    of_json_end_object(d->j);
}

/* "output" or "input" */
static void
json_side(const struct doc *d, const struct place *p)
{
    struct of_json *j = d->j;
    char name[POLICY_ROOM];
    bool classes = false;
    of_json_object(j, p->dir == QOS_IN ? "input" : "output");
    begin_list(j, "queues", "queue");
    for (size_t i = p->from; i < p->to; i++) {
        classes |= is_class(&d->view->v[i]);
        if (is_queue(d, p, i))
            json_queue(d, p, i);
    }
    end_list(j);
    if (classes) {
        static const char *const both[] = {"config", "state"};
        of_json_object(j, "scheduler-policy");
        for (int k = 0; k < 2; k++) {
            of_json_object(j, both[k]);
            of_json_text(j, "name", policy_name(p, NULL, name));
            of_json_end_object(j);
        }
        of_json_end_object(j);
    }
    of_json_end_object(j);
}

static void
json_places(const struct doc *d)
{
    struct of_json *j = d->j;
    const char *last = NULL; /* a port's two directions follow each other */
    begin_list(j, "interfaces", "interface");
    for (struct place p = {0}; next_place(d, &p);) {
        if (last != p.port) {
            if (last)
                of_json_end_object(j);
            begin_named(j, "interface-id", p.port);
            of_json_end_object(j);
        }
        last = p.port;
        json_side(d, &p);
    }
    if (last)
        of_json_end_object(j);
    end_list(j);
}

/* ------------------------------------------------------- /qos/queues */

/* Each name once, whatever ports have it: numbers, then the others. */
static void
json_queues(const struct doc *d)
{
    static bool seen[DEFAULTS + 16]; /* by number; behind them default classes, by tree */
    struct of_json *j = d->j;
    char name[NAME_ROOM];
    memset(seen, 0, sizeof seen);
    begin_list(j, "queues", "queue");
    for (struct place p = {0}; next_place(d, &p);)
        for (size_t i = p.from; i < p.to; i++) {
            const struct queue_node *node = &d->view->v[i];
            uint32_t id = node->entry->config.class_id, tree = node->entry->parent_id % 16;
            bool *said = &seen[id == QOS_CLASS_DEFAULT ? DEFAULTS + tree : id % DEFAULTS];
            if (!is_queue(d, &p, i) || *said)
                continue;
            *said = true;
            begin_named(j, "name", class_name(node, name));
            if (id && id <= QUEUE_ID_MAX)
                of_json_uint(j, "queue-id", id);
            of_json_end_object(j);
            of_json_end_object(j);
        }
    end_list(j);
}

/* ------------------------------------------------------- /qos/scheduler-policies */

/* The least and the most, bit/s; 0: none. */
static void
rates_of(const struct queue_node *node, uint64_t *least, uint64_t *most)
{
    const struct qos_values *v = &node->entry->config.values;
    *least = node->rate;
    *most = node->ceil;
    if (node->entry->config.sched->id == OFP_QOS_SCHED_HFSC) {
        *least = v->v[qos_has(v, QOS_RSC) ? QOS_RSC + 2 : QOS_FSC + 2];
        *most = qos_has(v, QOS_USC) ? v->v[QOS_USC + 2] : 0;
    }
}

static void
json_rates(struct of_json *j, const struct queue_node *node)
{
    const struct qos_values *v = &node->entry->config.values;
    uint64_t least, most;
    rates_of(node, &least, &most);
    bool two = most != least;
    of_json_object(j, two ? "two-rate-three-color" : "one-rate-two-color");
    of_json_object(j, "state");
    json_u64(j, "cir", least);
    if (two && most)
        json_u64(j, "pir", most);
    if (qos_has(v, QOS_BURST))
        of_json_uint(j, "bc", v->v[QOS_BURST]);
    if (two && qos_has(v, QOS_CBURST))
        of_json_uint(j, "be", v->v[QOS_CBURST]);
    if (!two)
        of_json_text(j, "queuing-behavior", "SHAPE");
    of_json_end_object(j);
    of_json_end_object(j);
}

static void
json_input(struct of_json *j, const struct queue_node *node)
{
    const struct qos_request *r = &node->entry->config;
    char own[QOS_NAME_ROOM], name[NAME_ROOM];
    const char *queue = class_name(node, name);
    begin_list(j, "inputs", "input");
    begin_named(j, "id", *queues_name(r, own) ? own : queue);
    of_json_text(j, "input-type", "QUEUE");
    of_json_text(j, "queue", queue);
    if (r->sched->id == OFP_QOS_SCHED_HTB)
        json_u64(j, "weight", 8 - r->values.v[QOS_PRIO]); /* the model's higher is served first */
    if (r->sched->id == OFP_QOS_SCHED_DRR && qos_has(&r->values, QOS_QUANTUM))
        json_u64(j, "weight", r->values.v[QOS_QUANTUM]);
    of_json_end_object(j);
    of_json_end_object(j);
    end_list(j);
}

/* Where it sends: into the policy of the class above, or out of the interface. */
static void
json_output(struct of_json *j, const struct place *p, const struct queue_node *node)
{
    uint32_t above = node->entry->parent_id;
    char class[NAME_ROOM], name[POLICY_ROOM];
    bool below = node->entry->config.class_id && (above || p->rooted);
    snprintf(class, sizeof class, "%" PRIu32, above);
    of_json_object(j, "output");
    of_json_object(j, "state");
    of_json_text(j, "output-type", below ? "SCHEDULER" : "INTERFACE");
    if (below)
        of_json_text(j, "child-scheduler", policy_name(p, above ? class : "root", name));
    of_json_end_object(j);
    of_json_end_object(j);
}

static void
json_scheduler(const struct doc *d, const struct place *p, size_t i, uint32_t sequence, bool queue)
{
    const struct queue_node *node = &d->view->v[i];
    struct of_json *j = d->j;
    uint64_t least, most;
    rates_of(node, &least, &most);
    of_json_object(j, NULL);
    of_json_uint(j, "sequence", sequence);
    of_json_object(j, "config");
    of_json_uint(j, "sequence", sequence);
    of_json_end_object(j);
    of_json_object(j, "state");
    of_json_uint(j, "sequence", sequence);
    if (least || most)
        of_json_text(j, "type",
                     least == most ? "openconfig-qos-types:ONE_RATE_TWO_COLOR"
                                   : "openconfig-qos-types:TWO_RATE_THREE_COLOR");
    of_json_end_object(j);
    if (queue)
        json_input(j, node);
    json_output(j, p, node);
    if (least || most)
        json_rates(j, node);
    of_json_end_object(j);
}

static void
begin_policy(struct of_json *j, const struct place *p, const char *class)
{
    char name[POLICY_ROOM];
    begin_named(j, "name", policy_name(p, class, name));
    of_json_end_object(j);
    begin_list(j, "schedulers", "scheduler");
}

static void
end_policy(struct of_json *j)
{
    end_list(j);
    of_json_end_object(j);
}

/* One for the queues, and one for each class above them. */
static void
json_policies(const struct doc *d, const struct place *p)
{
    uint32_t n = 0;
    char name[NAME_ROOM];
    for (size_t i = p->from; i < p->to; i++)
        if (is_class(&d->view->v[i]) && is_queue(d, p, i)) {
            if (!n)
                begin_policy(d->j, p, NULL);
            json_scheduler(d, p, i, n++, true);
        }
    if (n)
        end_policy(d->j);
    for (size_t i = p->from; i < p->to; i++) {
        const struct queue_node *node = &d->view->v[i];
        if (!is_class(node) || is_queue(d, p, i))
            continue;
        begin_policy(d->j, p, class_name(node, name));
        json_scheduler(d, p, i, 0, false);
        end_policy(d->j);
    }
}

/* ---------------------------------------------------------------- all of it */

static void
json_qos(const struct doc *d)
{
    of_json_object(d->j, "openconfig-qos:qos");
    json_places(d);
    json_queues(d);
    begin_list(d->j, "scheduler-policies", "scheduler-policy");
    for (struct place p = {0}; next_place(d, &p);)
        json_policies(d, &p);
    end_list(d->j);
    of_json_end_object(d->j);
}

enum status
queues_json_openconfig(struct ctx *c, const struct queue_view *view, uint32_t port, struct of_wr *w)
{
    struct of_mp_port_request asked = {.port_no = port};
    struct of_json j = of_json(w);
    struct doc d = {.j = &j, .view = view};
    enum status st;
    if ((st = ports_ask(c, &d.ports)) || (st = ask_list(c, OFPMP_PORT_STATS, &asked, &d.counters)))
        return st;
    of_json_object(&j, NULL);
    begin_list(&j, "openconfig-interfaces:interfaces", "interface");
    for (uint32_t i = 0; i < d.ports.n; i++) {
        const struct of_port *p = OF_AT(&d.ports, i, struct of_port);
        if (port == OFPP_ANY || p->port_no == port)
            json_interface(&d, p);
    }
    end_list(&j);
    json_qos(&d);
    of_json_end_object(&j);
    return DPCTL_OK;
}
