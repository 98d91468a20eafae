/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <string.h>

static const struct qos_sched *const scheds[] = {
#define ROW(name, id, row) [id] = &qos_sched_##row,
    QOS_SCHED_ROWS(ROW)
#undef ROW
};

const struct qos_sched *
qos_sched_by_id(unsigned id)
{
    return id < QOS_COUNT(scheds) ? scheds[id] : NULL;
}

const struct qos_sched *
qos_sched_by_name(const char *name)
{
    for (size_t i = 0; i < QOS_COUNT(scheds); i++) {
        if (strcmp(scheds[i]->name, name) == 0)
            return scheds[i];
    }
    return NULL;
}

const struct qos_sched *
qos_sched_at(unsigned i)
{
    return qos_sched_by_id(i);
}
