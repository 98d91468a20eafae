/* SPDX-License-Identifier: Apache-2.0 */
/* What the switch does over many turns of its loop, done by tests at once. */
#ifndef AT_ONCE_H
#define AT_ONCE_H

#include <qos/model/model.h>

static inline int
rest_of_port(struct qos *q, struct qos_error *e)
{
    while (qos_port_plan(q)) {
        struct qos_error why = {0};
        int err = qos_commit(q, NULL, &why);
        qos_port_planned(q, err, &why);
    }
    return qos_port_end(q, e);
}

static inline int
port_update(struct qos *q, const struct qos_port *info, struct qos_error *e)
{
    int err = qos_port_update_begin(q, info);
    return err ? err : rest_of_port(q, e);
}

static inline int
port_back(struct qos *q, const struct qos_port *info, struct qos_error *e)
{
    int err = qos_port_back_begin(q, info);
    return err ? err : rest_of_port(q, e);
}

static inline bool
count_queue(void *n, const struct qos_queue *queue)
{
    ++*(uint32_t *)n;
    return true;
}

static inline uint32_t
queue_count(struct qos *q, uint32_t port_no)
{
    uint32_t n = 0;
    qos_queue_each(q, port_no, false, count_queue, &n);
    return n;
}

#endif
