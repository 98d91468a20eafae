/* SPDX-License-Identifier: Apache-2.0 */
/* What was collected: the objects of each group, with their labels and values.  All of it is in the
 * context's arena. */
#ifndef METRICS_INSIDE_H
#define METRICS_INSIDE_H

#include "families.h"

#include <core/context.h>

#include <oflib/openflow.h>

#define METRICS_UNKNOWN UINT64_MAX /* also what a switch reports if it does not count */

/* Of a histogram: how many took at most each of OFP_LATENCY_BOUNDS, or longer than all; then their sum. */
#define METRICS_HISTOGRAM_VALUES (OFP_LATENCY_BOUNDS_N + 2)
#define METRICS_HISTOGRAMS       100 /* queues: a switch that has more is told without */

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_INFO, METRICS_HISTOGRAM };

struct metrics_row {
    const char *name;
    enum metrics_type type;
    const char *unit;
    uint64_t per;
    const char *help;
};

struct metrics_family_group {
    const char *labels;
    const struct metrics_row *rows;
    size_t n;
};
extern const struct metrics_family_group metrics_groups[METRICS_GROUPS_N];

struct metrics_object {
    const char *labels; /* ,port="1",name="eth1" */
    uint64_t *v;        /* metrics_width of them for each row of the group */
};

static inline size_t
metrics_width(const struct metrics_row *row)
{
    return row->type == METRICS_HISTOGRAM ? METRICS_HISTOGRAM_VALUES : 1;
}

struct metrics_objects {
    struct metrics_object *v;
    size_t n, room;
};

struct metrics {
    struct ctx *c;
    char dp[20];          /* datapath id, 16 digits */
    struct of_wr labels;  /* of the next object */
    struct of_list ports; /* struct of_port */
    struct metrics_objects of[METRICS_GROUPS_N];
    bool full; /* out of memory */
};

/* bit/s as thousandths of bytes/s: those are Prometheus's base unit, and compare with rates of byte
 * counters. */
static inline uint64_t
metrics_rate(uint64_t bps)
{
    return bps < UINT64_MAX / 125 ? bps * 125 : METRICS_UNKNOWN;
}

/* A label of the next object, whatever bytes the value has. */
__attribute__((format(printf, 3, 4))) void metrics_label(struct metrics *m, const char *name,
                                                         const char *fmt, ...);

/* The object with these labels; its values are METRICS_UNKNOWN.  NULL: out of memory. */
uint64_t *metrics_object(struct metrics *m, enum metrics_group group);

/* port="1",name="eth1" */
void metrics_label_port(struct metrics *m, uint32_t no);

/* Did the switch refuse?  Then st becomes DPCTL_OK and *refused true: the caller goes on without
 * the answer. */
enum status metrics_allow(struct metrics *m, enum status st, bool *refused);

/* collect*.c */
/* Ports and tables: there are no metrics without them, so a refusal is reported. */
enum status metrics_collect_required(struct metrics *m);
enum status metrics_collect_standard(struct metrics *m);
enum status metrics_collect_queues(struct metrics *m);
enum status metrics_collect_status(struct metrics *m);
enum status metrics_collect_counters(struct metrics *m);

#endif
