/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the flow tables: what their own files share (tables.h is for everybody else). */
#ifndef TABLE_TABLES_INSIDE_H
#define TABLE_TABLES_INSIDE_H

#include <shared/change-set.h>
#include <table/tables.h>
#include <table/timeouts.h>

struct tables {
    struct tables_ops ops;
    struct timeouts *timeouts;
    unsigned n_tables, n_workers;
    struct limits limits;
    uint32_t n_flows; /* in all tables, without those that a transaction takes out, */
    uint64_t bytes;   /* and what their programs take */
    bool untidy;      /* flows were removed since tables_tidy */
    uint64_t now;     /* of the change that is being made */
    struct flow_table table[];
};

/* ------------------------------------------------------------------ walks (tables.c) */

/* The first and the last table that a filter asks for. */
unsigned tables_first(const struct flow_filter *q);
unsigned tables_last(const struct tables *t, const struct flow_filter *q);

/* As tables_each, without its check of the table; key and mask are the filter's match. */
int tables_each_within(struct tables *t, const struct flow_filter *filter,
                       const struct flow_key *key, const struct flow_key *mask,
                       int (*each)(void *ctx, struct flow *f), void *ctx);

/* What an add of the same match sets anew. */
struct flow_timing {
    uint16_t idle_timeout, hard_timeout;
    uint8_t flags;
};

/* ------------------------------------------------------------------ changes (tables-change.c)
 * At once, or within a transaction (change_set.h) at its end.  -ENOMEM: nothing is changed. */

/* A flow from classifier_new_flow, with its key, priority and table set; its ownership goes along
 * with the program's, also on failure. */
int flow_add(struct tables *t, struct flow *f, struct program *program,
             const struct flow_timing *timing);

/* The program's ownership goes along, also on failure. */
int flow_modify(struct tables *t, struct flow *f, struct program *program, bool reset_counts);

/* As a modify, and the flow's time begins anew. */
int flow_replace(struct tables *t, struct flow *f, struct program *program,
                 const struct flow_timing *timing, bool reset_counts);

int flow_remove(struct tables *t, struct flow *f, uint8_t reason);

#endif
