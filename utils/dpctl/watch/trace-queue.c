/* SPDX-License-Identifier: Apache-2.0 */
/* The classes and schedulers that a traced packet waits in. */
#include "trace-parts.h"

#include <queues/queues.h>

#include <qos/sched/field.h>
#include <qos/sched/sched.h>
#include <qos/sched/units.h>

bool
trace_queue_entry(const struct of_trace_queue *e, struct qos_entry *out)
{
    struct of_rd rd = of_rd(e->entry.p, e->entry.n);
    return !qos_entry_decode(out, &rd, NULL);
}

/* Its parameters, but those that say where it is and the rates, which stand before them. */
static void
print_config(struct of_wr *w, const struct qos_request *r)
{
    char name[32], value[256];
    const struct qos_field *f;
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        bool rate = r->object_type == OFP_QOS_CLASS && (f->slot == QOS_RATE || f->slot == QOS_CEIL);
        if (!qos_has(&r->values, f->slot) || f->slot == QOS_PARENT || f->slot == QOS_DIRECTION ||
            f->slot == QOS_NAME || rate)
            continue;
        of_printf(w, ", %s %s", qos_field_name(f, name, sizeof name),
                  qos_field_format(f, &r->values, value, sizeof value));
    }
}

void
trace_print_queue(struct of_wr *w, const struct of_trace_queue *e)
{
    char rate[QOS_UNIT_TEXT], ceil[QOS_UNIT_TEXT];
    struct qos_entry entry;
    if (!trace_queue_entry(e, &entry)) {
        of_printf(w, "a queue of a kind that this dpctl doesn't know");
        return;
    }
    const struct qos_request *r = &entry.config;
    bool class = r->object_type == OFP_QOS_CLASS;
    of_printf(w, "%s", class ? "" : "scheduler ");
    queues_print_name(w, r);
    if (class)
        of_printf(w, " (%s)", r->sched->name);
    if (e->rate)
        of_printf(w, ", rate %s", qos_format_rate(e->rate, rate));
    if (e->ceil)
        of_printf(w, ", ceil %s", qos_format_rate(e->ceil, ceil));
    print_config(w, r);
}

void
trace_json_queue(struct of_json *j, const struct of_trace_queue *e)
{
    struct qos_entry entry;
    of_json_object(j, NULL);
    of_json_text(j, "type", "queue");
    of_json_uint(j, "depth", e->depth);
    if (trace_queue_entry(e, &entry)) {
        struct queue_node node = {.entry = &entry, .dir = queues_direction(&entry)};
        queues_json_place(j, &node);
        of_json_uint(j, "rate_bps", e->rate);
        of_json_uint(j, "ceil_bps", e->ceil);
        queues_json_config(j, &entry.config);
    }
    of_json_end_object(j);
}
