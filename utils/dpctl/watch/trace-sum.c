/* SPDX-License-Identifier: Apache-2.0 */
/* The result of a trace: a line for each place that the packet goes to. */
#include "trace-parts.h"

#include <inttypes.h>

void
trace_put_rate(struct of_wr *w, uint64_t bps)
{
    static const char *const units[] = {"bit/s", "kbit/s", "Mbit/s", "Gbit/s"};
    int u = 0;
    double v = (double)bps;
    for (; v >= 1000 && u < 3; u++)
        v /= 1000;
    of_printf(w, "%.4g %s", v, units[u]);
}

void
trace_put_port(struct of_wr *w, const struct of_trace_output *e)
{
    of_printf(w, "port ");
    of_print_number(w, &of_fmt_PORT, e->port_no);
    if (*e->name) {
        of_printf(w, " (");
        of_print_text(w, e->name, strnlen(e->name, sizeof e->name));
        of_printf(w, ")");
    }
}

struct limits {
    uint64_t rate, ceil; /* bit/s; 0: none is known */
};

/* The rate of the class that the packet waits in, and the lowest ceiling above it. */
static struct limits
limits_behind(const struct of_list *l, uint32_t i)
{
    struct limits found = {0, 0};
    bool first = true;
    for (i++; i < l->n && OF_AT(l, i, struct of_tagged)->row->type == OFPTE_QUEUE; i++) {
        const struct of_trace_queue *q = l->v[i];
        struct qos_entry entry;
        if (!trace_queue_entry(q, &entry) || entry.config.object_type != OFP_QOS_CLASS)
            continue;
        if (first)
            found.rate = q->rate;
        if (q->ceil && (!found.ceil || q->ceil < found.ceil))
            found.ceil = q->ceil;
        first = false;
    }
    return found;
}

bool
trace_is_led(const struct of_list *l, const struct of_trace_output *e)
{
    uint32_t i = 0;
    bool passes = false;
    while (i < l->n && l->v[i] != e)
        i++;
    for (i++; i < l->n && OF_AT(l, i, struct of_tagged)->row->type == OFPTE_QUEUE; i++) {
        struct qos_entry entry;
        passes |= trace_queue_entry(l->v[i], &entry) && entry.config.object_type == OFP_QOS_CLASS &&
                  entry.config.class_id == e->queue_id;
    }
    return passes && e->queue_id && e->queue_id != e->class_id;
}

static void
sum_output(struct of_wr *w, const struct of_list *l, uint32_t i)
{
    const struct of_trace_output *e = l->v[i];
    struct limits q = limits_behind(l, i);
    of_printf(w, "Leaves by ");
    trace_put_port(w, e);
    if (e->queue_id && e->queue_id == e->class_id)
        of_printf(w, ", queue %" PRIu32, e->queue_id);
    else if (trace_is_led(l, e))
        of_printf(w, ", queue %" PRIu32 " by class %" PRIu32 " below it", e->queue_id, e->class_id);
    else if (e->queue_id)
        of_printf(w, ", as queue %" PRIu32 " is not there by the default class", e->queue_id);
    if (q.rate) {
        of_printf(w, ": at least ");
        trace_put_rate(w, q.rate);
    }
    if (q.ceil) {
        of_printf(w, "%s at most ", q.rate ? "," : ":");
        trace_put_rate(w, q.ceil);
    }
    of_printf(w, "\n");
}

static void
sum_packet_in(struct of_wr *w, const struct of_list *l, uint32_t i)
{
    unsigned n = 0;
    for (uint32_t k = i + 1; k < l->n; k++) {
        if (OF_AT(l, k, struct of_tagged)->row->type != OFPTE_CONTROLLER)
            break;
        n += OF_AT(l, k, struct of_trace_controller)->wanted != 0;
    }
    if (n)
        of_printf(w, "Goes to the controllers: %u of them want%s it\n", n, n == 1 ? "s" : "");
    else
        of_printf(w, "Dropped: no connected controller wants it (drop.no_controller)\n");
}

static void
sum_drop(struct of_wr *w, const struct of_trace_drop *e, int table)
{
    of_printf(w, "Dropped");
    if (table >= 0)
        of_printf(w, " in table %d", table);
    of_printf(w, ": ");
    of_print_text(w, e->text, strnlen(e->text, sizeof e->text));
    of_printf(w, " (");
    of_print_text(w, e->reason, strnlen(e->reason, sizeof e->reason));
    of_printf(w, ")\n");
}

void
trace_sum_up(struct of_wr *w, const struct of_list *l)
{
    int table = -1;
    for (uint32_t i = 0; i < l->n; i++) {
        switch (OF_AT(l, i, struct of_tagged)->row->type) {
        case OFPTE_TABLE: table = OF_AT(l, i, struct of_trace_table)->table_id; break;
        case OFPTE_ACTION_SET:
            if (OF_AT(l, i, struct of_trace_action_set)->what == OFPTS_EXECUTED)
                table = -1;
            break;
        case OFPTE_OUTPUT:
            if (OF_AT(l, i, struct of_trace_output)->goes)
                sum_output(w, l, i);
            break;
        case OFPTE_PACKET_IN:
            if (!OF_AT(l, i, struct of_trace_packet_in)->suppressed)
                sum_packet_in(w, l, i);
            break;
        case OFPTE_DROP: sum_drop(w, l->v[i], table); break;
        }
    }
    if (!w->len)
        of_printf(w, "Goes nowhere\n");
}
