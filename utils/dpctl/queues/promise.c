/* SPDX-License-Identifier: Apache-2.0 */
/* What became of classes' promises: SERVICE of docs/reference/extensions.md. */
#include <queues/queues.h>

#include <stdlib.h>

static bool
has_promise(const struct queue_node *node)
{
    const struct qos_values *v = &node->entry->config.values;
    return v->v[QOS_PROMISE] || v->v[QOS_DELAY];
}

enum status
queues_ask_promises(struct ctx *c, const struct queue_view *view, struct queue_rows *out)
{
    return queues_ask_rows(c, view, has_promise, OFP_EXP_SERVICE, OFP_SERVICE_LEN, out);
}

int
queues_by_place(const struct queue_node *n, uint32_t port, bool in, uint32_t class)
{
    const struct qos_request *r = &n->entry->config;
    if (r->port_no != port)
        return r->port_no < port ? -1 : 1;
    if ((n->dir == QOS_IN) != in)
        return in ? -1 : 1;
    return r->class_id < class ? -1 : r->class_id > class;
}

static int
by_place(const void *node, const void *entry)
{
    const uint8_t *p = entry;
    return queues_by_place(node, of_get32(p), p[8], of_get32(p + 4));
}

const uint8_t *
queues_service(const struct queue_rows *all, const struct queue_node *node)
{
    return all->n ? bsearch(node, all->p, all->n, OFP_SERVICE_LEN, by_place) : NULL;
}

bool
queues_find_promise(const struct queue_rows *all, const struct queue_node *node,
                    struct queue_promise *out)
{
    const uint8_t *p = has_promise(node) ? queues_service(all, node) : NULL;
    if (!p)
        return false;
    *out = (struct queue_promise){.rated = p[9] & OFP_SERVICE_RATE,
                                  .backlogged_us = of_get64(p + 32),
                                  .below_us = of_get64(p + 40),
                                  .broken = p[9] & OFP_SERVICE_BROKEN,
                                  .drops = p[9] & OFP_SERVICE_DROPS,
                                  .slow = p[9] & OFP_SERVICE_DELAY,
                                  .delay_missed = of_get16(p + 10),
                                  .delay_us = of_get32(p + 12)};
    return out->below_us <= out->backlogged_us;
}

double
queues_kept(const struct queue_promise *p)
{
    return p->rated && p->backlogged_us ? 1 - (double)p->below_us / (double)p->backlogged_us : -1;
}

void
queues_json_promise(struct of_json *j, const struct queue_rows *all, const struct queue_node *node)
{
    struct queue_promise p;
    if (!queues_find_promise(all, node, &p))
        return;
    double kept = queues_kept(&p);
    of_json_object(j, "promise");
    if (p.rated) {
        of_json_uint(j, "backlogged_us", p.backlogged_us);
        of_json_uint(j, "below_rate_us", p.below_us);
        of_json_bool(j, "broken", p.broken);
    }
    if (kept >= 0)
        of_json_real(j, "kept", kept);
    of_json_bool(j, "dropping", p.drops);
    if (node->entry->config.values.v[QOS_DELAY]) {
        of_json_bool(j, "delay_broken", p.slow);
        of_json_real(j, "delay_kept", 1 - p.delay_missed / 1e3);
        of_json_uint(j, "delay_us", p.delay_us);
    }
    of_json_end_object(j);
}
