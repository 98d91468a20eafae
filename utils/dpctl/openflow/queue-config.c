/* SPDX-License-Identifier: Apache-2.0 */
/* queue-get-config.  OpenFlow counts rates in thousandths of the port's speed (7.2.2): 6 Mbit/s
 * of a link of 10 Gbit/s are 0.  So the rates are asked for too, where the switch knows
 * QOS_DUMP. */
#include <core/ask.h>
#include <core/command.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/view.h>
#include <core/whole.h>
#include <core/words.h>
#include <queues/queues.h>

#include <qos/sched/units.h>

#include <stdio.h>

#define UNKNOWN UINT16_MAX

struct answer {
    const struct of_list *queues, *ports;
    struct queue_view view; /* empty: the switch does not know QOS_DUMP */
};

static const struct queue_node *
find_queue(const struct queue_view *view, const struct of_packet_queue *q)
{
    for (size_t i = 0; i < view->n; i++) {
        const struct qos_request *r = &view->v[i].entry->config;
        if (r->object_type == OFP_QOS_CLASS && r->port_no == q->port &&
            r->class_id == q->queue_id && view->v[i].dir == QOS_OUT)
            return &view->v[i];
    }
    return NULL;
}

static uint16_t
thousandths(const struct of_packet_queue *q, uint16_t prop)
{
    for (uint32_t i = 0; i < q->properties.n; i++) {
        const struct of_queue_prop_rate *p = OF_AT(&q->properties, i, struct of_queue_prop_rate);
        if (p->row->type == prop)
            return p->rate;
    }
    return UNKNOWN;
}

/* "6mbit (0.06%)", "8%", "unknown" */
static void
print_rate(char *buf, size_t n, uint64_t rate, uint64_t speed, uint16_t part)
{
    char text[QOS_UNIT_TEXT], share[QOS_UNIT_TEXT];
    uint64_t ppm = part <= OFP_QUEUE_RATE_MAX ? part * 1000u : 0;
    if (!rate && ppm)
        rate = speed / 1000 * part;
    else if (rate && speed)
        ppm = whole((double)rate * 1000000 / (double)speed + 0.5);
    qos_format_ppm(ppm, share);
    if (rate && ppm)
        snprintf(buf, n, "%s (%s)", qos_format_rate(rate, text), share);
    else if (rate || part <= OFP_QUEUE_RATE_MAX)
        snprintf(buf, n, "%s", rate ? qos_format_rate(rate, text) : share);
    else
        snprintf(buf, n, "unknown");
}

static void
print_queues(struct of_wr *w, const struct answer *a)
{
    char least[80], most[80];
    of_printf(w, "%-6s %-8s %-24s %s", "port", "queue", "min_rate", "max_rate");
    for (uint32_t i = 0; i < a->queues->n; i++) {
        const struct of_packet_queue *q = OF_AT(a->queues, i, struct of_packet_queue);
        const struct queue_node *is = find_queue(&a->view, q);
        uint64_t speed = ports_speed(ports_desc(a->ports, q->port));
        print_rate(least, sizeof least, is ? is->rate : 0, speed, thousandths(q, OFPQT_MIN_RATE));
        print_rate(most, sizeof most, is ? is->ceil : 0, speed, thousandths(q, OFPQT_MAX_RATE));
        of_printf(w, "\n%-6u %-8u %-24s %s", (unsigned)q->port, (unsigned)q->queue_id, least, most);
    }
}

static enum status
queue_config(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_queue_get_config_request body = {.port = OFPP_ANY};
    struct of_msg reply;
    struct of_list ports;
    struct answer a = {.ports = &ports};
    enum status st = words_fields(c, &of_row_queue_get_config_request, words, n, &body);
    st = st ? st : ask_queue_config(c, &body, &reply);
    if (st || c->json)
        return st ? st : view_message(c, &reply);
    view_order(&reply);
    a.queues = &((const struct of_queue_get_config_reply *)reply.body)->queues;
    st = ports_ask(c, &ports);
    c->quiet = true;
    if (!st && queues_view(c, body.port, QOS_ALL_CLASSES, NULL, &a.view))
        a.view = (struct queue_view){0};
    c->quiet = false;
    if (st)
        return st;
    struct of_wr w = of_wr_grow(VIEW_MAX);
    print_queues(&w, &a);
    return view_line(c, &w);
}

static const struct command rows[] = {
    {.name = "queue-get-config",
     .subject = SUBJECT_QOS,
     .args = "[PORT]",
     .help = "the queues and their rates",
     .examples = "queue-get-config 2",
     .bridge = 2,
     .run = queue_config,
     .more = command_keys,
     .asks = true,
     .keys = &of_row_queue_get_config_request},
};

const struct command_table commands_queue_config = COMMAND_TABLE(rows);
