/* SPDX-License-Identifier: Apache-2.0 */
/* The flow tables: flow-mods, timeouts, statistics (6.4 to 6.6).  Control thread, except where it
 * says otherwise. */
#ifndef TABLE_TABLES_H
#define TABLE_TABLES_H

#include <table/classifier.h>
#include <table/features.h>
#include <table/flow-filter.h>
#include <table/limits.h>

#define TABLES_MAX     255
#define TABLES_DEFAULT 64

struct table_counter {
    uint64_t lookups;
    uint64_t matched;
    uint64_t apart[6]; /* see COUNTER_LINE */
};

struct flow_table {
    struct classifier flows;
    uint32_t config; /* OFPTC_: nothing but deprecated bits in 1.3 */
    struct table_features features;
    struct table_counter *counters; /* one a worker */
    uint32_t n_leaving;             /* flows that a transaction takes out: still counted in flows */
    uint32_t generation;            /* changes when a flow comes or goes; see flow-cache.h */
};

struct tables;

struct tables_ops {
    struct compile_env env; /* filled in but for table and match */
    void (*removed)(void *ctx, struct flow *f, uint8_t reason, uint64_t now);
    /* The flow begins (delta 1) or ceases (-1) to refer to the program's groups and meter. */
    void (*refers)(void *ctx, struct flow *f, struct program *p, int delta);
    void *ctx;
};

struct tables *tables_new(unsigned n_tables, unsigned n_workers, const struct tables_ops *ops);
void tables_free(struct tables *t);

/* Before there are flows; without it as many as can be. */
void tables_limit(struct tables *t, const struct limits *l);
uint32_t tables_max_entries(const struct tables *t); /* of one table */

unsigned tables_count(const struct tables *t); /* those that there could be: ids below it */
/* NULL: no such table, or not part of the pipeline. */
struct flow_table *tables_get(struct tables *t, uint8_t id);

/* A new pipeline (7.3.5.5): `v` has an element for each of the tables_count tables.  Tables that are
 * no longer present or can do something else from now on lose their flows, and nobody is told. */
void tables_configure(struct tables *t, const struct table_features *v, uint64_t now);

/* Worker side: the flow that the packet's key finds, counted; NULL: none. */
struct flow *tables_lookup(struct tables *t, uint8_t id, unsigned worker,
                           const struct flow_key *key);

/* Worker side: the table's generation (flow-cache.h), and a lookup that the cache has answered. */
uint32_t tables_generation(const struct tables *t, uint8_t id);
void tables_count_cached(struct tables *t, uint8_t id, unsigned worker, bool matched);

/* A flow-mod, whole; nothing is changed when it fails. now: loop time, ns. */
int tables_flow_mod(struct tables *t, const struct of_flow_mod *fm, uint64_t now);

/* Removes what has timed out.  Returns when to call it next, ns; 0: nothing has a timeout. */
uint64_t tables_expire(struct tables *t, uint64_t now);

/* After flows were removed, once for many: at the end of a turn. */
void tables_tidy(struct tables *t);

/* Removes a flow whose group or meter goes away.  -ENOMEM, within a transaction. */
int tables_remove(struct tables *t, struct flow *f, uint8_t reason, uint64_t now);

/* ------------------------------------------------------------------ statistics */

/* Calls `each` for what passes; stops at the first value other than 0 and returns it.
 * OFPBRC_BAD_TABLE_ID where there is no such table. */
int tables_each(struct tables *t, const struct flow_filter *filter,
                int (*each)(void *ctx, struct flow *f), void *ctx);

struct flow_counter tables_flow_counter(const struct tables *t, const struct flow *f);
struct table_counter tables_counter(const struct tables *t, uint8_t id);

/* A flow that is to be looked at later is held, and released when it has been. */
void flow_hold(struct flow *f);
void flow_release(struct flow *f);

#endif
