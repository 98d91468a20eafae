/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the QOS_DUMP reply (docs/reference/qos-extension.md, "Asking") and of QOS_PORTS. */
#include <qos/wire/entry.h>

#define HEAD 72 /* length to backlog_packets */

void
qos_entry_encode(struct of_wr *w, const struct qos_entry *entry)
{
    const struct qos_request *r = &entry->config;
    const struct qos_counters *n = &entry->counters;
    size_t start = w->len;
    of_wr16(w, 0);
    of_wr8(w, r->object_type);
    of_wr8(w, r->sched->id);
    of_wr32(w, r->port_no);
    of_wr32(w, r->class_id);
    of_wr32(w, entry->parent_id);
    of_wr64(w, n->bytes);
    of_wr64(w, n->packets);
    of_wr64(w, n->drops);
    of_wr64(w, n->overlimits);
    of_wr64(w, n->requeues);
    of_wr64(w, n->marked);
    of_wr32(w, n->backlog_bytes);
    of_wr32(w, n->backlog_packets);
    qos_values_encode(w, r, true);
    of_wr_align(w, start, 8);
    of_wr_patch16(w, start, (uint16_t)(w->len - start));
}

int
qos_entry_decode(struct qos_entry *entry, struct of_rd *rd, struct qos_error *e)
{
    struct qos_entry tmp = {.config = {.action_type = OFP_QOS_ADD}};
    struct qos_request *r = &tmp.config;
    struct qos_counters *n = &tmp.counters;
    size_t length = of_rd_left(rd) >= 2 ? of_get16(rd->p) : 0;
    if (length < HEAD || length % 8 || length > of_rd_left(rd))
        return qos_fail(e, QOS_ERR_BAD_LEN, "the entry's length %u is wrong", (unsigned)length);
    struct of_rd in = of_rd_sub(rd, length);
    of_rd16(&in);
    r->object_type = of_rd8(&in);
    unsigned sched = of_rd8(&in);
    r->sched = qos_sched_by_id(sched);
    if (!r->sched)
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_SCHED), "sched_type %u is unknown", sched);
    if (!qos_object_name(r->object_type))
        return qos_fail(e, QOS_ERR(OFPSFC_BAD_OBJECT), "object_type %u is unknown", r->object_type);
    r->port_no = of_rd32(&in);
    r->class_id = of_rd32(&in);
    tmp.parent_id = of_rd32(&in);
    n->bytes = of_rd64(&in);
    n->packets = of_rd64(&in);
    n->drops = of_rd64(&in);
    n->overlimits = of_rd64(&in);
    n->requeues = of_rd64(&in);
    n->marked = of_rd64(&in);
    n->backlog_bytes = of_rd32(&in);
    n->backlog_packets = of_rd32(&in);
    int err = qos_values_decode(r, &in, true, e);
    if (!err)
        *entry = tmp;
    return err;
}

enum { KEPT = 1, DIFFERS = 2, ABSENT = 4, OTHER_ROOT = 8 };

void
qos_tree_encode(struct of_wr *w, const struct qos_tree *t)
{
    of_wr32(w, t->port_no);
    of_wr8(w, (uint8_t)t->dir);
    of_wr8(w, t->sched ? t->sched->id : OFP_QOS_SCHED_NONE);
    of_wr16(w, (uint16_t)((t->kept ? KEPT : 0) | (t->foreign.differs ? DIFFERS : 0) |
                          (t->absent ? ABSENT : 0) | (t->foreign.root ? OTHER_ROOT : 0)));
    of_wr32(w, t->default_id);
    of_wr32(w, t->n_queues);
    of_wr64(w, t->foreign.changed);
    of_wr64(w, t->foreign.repaired);
}

void
qos_tree_decode(struct qos_tree *t, const uint8_t *p)
{
    uint16_t flags = of_get16(p + 6);
    *t = (struct qos_tree){.port_no = of_get32(p),
                           .dir = p[4] ? QOS_IN : QOS_OUT,
                           .sched = p[5] == OFP_QOS_SCHED_NONE ? NULL : qos_sched_by_id(p[5]),
                           .kept = flags & KEPT,
                           .absent = flags & ABSENT,
                           .default_id = of_get32(p + 8),
                           .n_queues = of_get32(p + 12),
                           .foreign = {.changed = of_get64(p + 16),
                                       .repaired = of_get64(p + 24),
                                       .differs = flags & DIFFERS,
                                       .root = flags & OTHER_ROOT}};
}
