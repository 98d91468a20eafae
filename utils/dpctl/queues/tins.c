/* SPDX-License-Identifier: Apache-2.0 */
/* CAKE's tins: TINS of docs/reference/extensions.md. */
#include <queues/queues.h>

static bool
has_tins(const struct queue_node *node)
{
    return node->entry->config.sched->tins;
}

enum status
queues_ask_tins(struct ctx *c, const struct queue_view *view, struct queue_rows *out)
{
    return queues_ask_rows(c, view, has_tins, OFP_EXP_TINS, OFP_TIN_LEN, out);
}

bool
queues_next_tin(const struct queue_rows *tins, const struct queue_node *node, size_t *i,
                struct queue_tin *out)
{
    const struct qos_request *r = &node->entry->config;
    for (; r->sched->tins && *i < tins->n; ++*i) {
        const uint8_t *p = tins->p + *i * OFP_TIN_LEN;
        if (of_get32(p) != r->port_no || of_get32(p + 4) != r->class_id ||
            p[8] != (node->dir == QOS_IN))
            continue;
        *out = (struct queue_tin){.number = p[9],
                                  .bytes = of_get64(p + 16),
                                  .packets = of_get64(p + 24),
                                  .drops = of_get64(p + 32),
                                  .marked = of_get64(p + 40),
                                  .rate = of_get64(p + 48),
                                  .backlog_bytes = of_get32(p + 56),
                                  .delay_us = of_get32(p + 60),
                                  .peak_us = of_get32(p + 64)};
        ++*i;
        return true;
    }
    return false;
}
