/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the flow tables: what their files share. */
#ifndef TABLE_TABLES_INSIDE_H
#define TABLE_TABLES_INSIDE_H

#include "change-log.h"

#include <shared/change-set.h>
#include <table/tables.h>
#include <table/timeouts.h>

struct tables {
    struct tables_ops ops;
    struct timeouts *timeouts;
    unsigned n_tables, n_workers;
    unsigned n_counters; /* of each flow and table: the workers' and the kernel's */
    struct limits limits;
    uint32_t n_flows; /* in all tables, but those that the open change set removes */
    uint64_t bytes;   /* of the programs of those flows */
    bool untidy;      /* flows were removed since tables_tidy */
    uint64_t now;     /* of the current change */
    struct change_log log;
    uint64_t revision; /* flows that came, went or changed; what was undone is not counted */
    /* Key bits that some flow's mask has, or had; workers read it.  It only grows, and its serial
     * number with it, before a flow with a new bit can be found. */
    struct flow_key used;
    unsigned used_serial;
    /* Of all tables, for each worker in pages of its own: a processor that walks the tables fetches
     * lines ahead, and would take the ones from another that writes them. */
    struct table_counter *counters;
    struct flow_table table[];
};

static inline struct table_counter *
tables_counter_of(const struct tables *t, uint8_t id, unsigned worker)
{
    _Static_assert(TABLES_MAX * sizeof(struct table_counter) <= FLOW_COUNTERS_STRIDE, "one page");
    return (struct table_counter *)((uintptr_t)t->counters + worker * FLOW_COUNTERS_STRIDE) + id;
}

/* ------------------------------------------------------------------ walks (tables.c) */

/* The first and the last table that a filter asks for. */
unsigned tables_first(const struct flow_filter *q);
unsigned tables_last(const struct tables *t, const struct flow_filter *q);

/* As tables_each, without its check of the table; key and mask are the filter's match. */
int tables_each_within(struct tables *t, const struct flow_filter *filter,
                       const struct flow_key *key, const struct flow_key *mask,
                       int (*each)(void *ctx, struct flow *f), void *ctx);

/* What an add sets, also when it replaces a flow. */
struct flow_timing {
    uint16_t idle_timeout, hard_timeout;
    uint8_t flags;
};

/* ------------------------------------------------------------------ changes (tables-change.c) They
 * take effect at once or, while a change set is open (change-set.h), at its end.  0, or -ENOMEM
 * with nothing changed. */

/* The flow comes from classifier_new_flow and has its priority and table.  Takes over flow and
 * program, also on failure. */
int flow_add(struct tables *t, struct flow *f, struct program *program,
             const struct flow_timing *timing);

/* Takes over the program, also on failure. */
int flow_modify(struct tables *t, struct flow *f, struct program *program, bool reset_counts);

/* As flow_modify, and the flow's duration starts again. */
int flow_replace(struct tables *t, struct flow *f, struct program *program,
                 const struct flow_timing *timing, bool reset_counts);

int flow_remove(struct tables *t, struct flow *f, uint8_t reason);

#endif
