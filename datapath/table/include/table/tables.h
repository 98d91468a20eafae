/* SPDX-License-Identifier: Apache-2.0 */
/* The flow tables: flow-mods, timeouts, statistics (6.4 to 6.6).  They own their flows.  The groups and meters
 * that flows refer to lie below.  Control thread, except where a comment says worker. */
#ifndef TABLE_TABLES_H
#define TABLE_TABLES_H

#include <classifier/classifier.h>
#include <flow/flow-filter.h>
#include <flow/limits.h>
#include <group/groups.h>
#include <group/meters.h>
#include <table/features.h>

#define TABLES_MAX     255
#define TABLES_DEFAULT 64

struct table_counter {
    uint64_t lookups;
    uint64_t matched;
};

struct flow_table {
    struct classifier flows;
    uint32_t config; /* OFPTC_: 1.3 has only deprecated bits */
    struct table_features features;
    uint32_t n_leaving; /* flows that the open change set removes; `flows` counts them */
    uint32_t n_goto;    /* flows that lead to another table; workers read it as a hint */
};

struct tables;

struct tables_ops {
    struct compile_env env; /* the tables fill in table and match */
    struct groups *groups;  /* this and `meters`: NULL if no flow refers to any */
    struct meters *meters;
    /* A flow with OFPFF_SEND_FLOW_REM was removed; reason: OFPRR_.  Called after the grace period
     * (rcu_turn, rcu_wait), in the order of the removals: its counters are final.  now: of the
     * removal. */
    void (*removed)(void *ctx, struct flow *f, uint8_t reason, uint64_t now);
    /* NULL, or called between two flows of a walk over very many, now and then: for what can't wait until its end
     * and leaves the tables as they are. */
    void (*pause)(void *ctx);
    void *ctx;
    bool kernel; /* tables_kernel_* may be called: each flow and table has a counter more */
};

struct tables *tables_new(unsigned n_tables, unsigned n_workers, const struct tables_ops *ops);
void tables_free(struct tables *t);

/* Call it before there are flows; the default is the most that the switch can have. */
void tables_limit(struct tables *t, const struct limits *l);
uint32_t tables_max_entries(const struct tables *t); /* of one table */

unsigned tables_count(const struct tables *t); /* table ids are below it */
/* NULL: there is no such table, or it is not part of the pipeline. */
struct flow_table *tables_get(struct tables *t, uint8_t id);

/* A new pipeline (7.3.5.5); `v` has tables_count elements.  A table whose capabilities change loses
 * its flows, without flow-removed messages. */
void tables_configure(struct tables *t, const struct table_features *v, uint64_t now);

/* Worker: the flow that matches the key, or NULL; counts n packets. */
struct flow *tables_lookup(struct tables *t, uint8_t id, unsigned worker,
                           const struct flow_key *key, uint32_t n);

/* The same without counting.  While tables_configure removes a table, a worker may still be about
 * to use it: it finds no flow there. */
struct flow *tables_preview(const struct tables *t, uint8_t id, const struct flow_key *key);

/* Worker: counts n packets that the cache has answered. */
void tables_count_lookups(struct tables *t, uint8_t id, unsigned worker, uint64_t n, bool matched);

/* Adds what the kernel did since the last call.  used: when the last packet came, ns; 0: no news. */
void tables_kernel_flow(struct tables *t, struct flow *f, uint64_t packets, uint64_t bytes,
                        uint64_t used);
void tables_kernel_lookups(struct tables *t, uint8_t id, uint64_t n, bool matched);

/* The key bits that some flow's mask has, or had: what tells packets apart.  Returns a number that
 * differs whenever they do. */
unsigned tables_used(const struct tables *t, struct flow_key *bits);

/* A number that differs whenever a flow came, went or got other instructions. */
unsigned long tables_changes(const struct tables *t);

/* How many flows came, went or changed, each once: unlike tables_changes, what a change set undid is not
 * counted, so whoever changed n flows can tell that nobody else changed one.  Control thread. */
uint64_t tables_revision(const struct tables *t);

/* The most changes that are compared with an entry one by one: comparing more costs more than a new
 * lookup. */
#define CHANGES_TOLD 256

/* The word of a changed flow's match that rules out the most packets. */
struct change_tells {
    uint64_t key, mask;
    unsigned at; /* in the flow key */
};

/* Fills these in for all changes after `from`; returns how many, or -1: there are more than n, or
 * the log doesn't reach back so far. */
int tables_change_tells(const struct tables *t, unsigned long from, struct change_tells *to,
                        unsigned n);

/* 0 or an OpenFlow error, with nothing changed.  now: loop time, ns. */
int tables_flow_mod(struct tables *t, const struct of_flow_mod *fm, uint64_t now);

/* As OpenFlow 1.0 means it: a modify that finds no flow adds one. */
int tables_flow_mod_or_add(struct tables *t, const struct of_flow_mod *fm, uint64_t now);

/* Calls `each` for the flows that a non-strict delete is about; removing them (tables_remove) is
 * left to the caller.  A result other than 0 ends the walk and is returned; or an error as
 * tables_flow_mod's. */
int tables_each_deleted(struct tables *t, const struct of_flow_mod *fm,
                        int (*each)(void *ctx, struct flow *f), void *ctx);

/* A modify that isn't strict, with all its checks: calls `each` for the flows that it is about, whose change
 * (tables_modify_flow) is left to the caller, who changes nothing else meanwhile.  Errors as above, -ENOMEM. */
struct tables_modify;
int tables_modify_begin(struct tables *t, const struct of_flow_mod *fm,
                        int (*each)(void *ctx, struct flow *f), void *ctx,
                        struct tables_modify **out);
int tables_modify_flow(struct tables *t, const struct tables_modify *m, struct flow *f,
                       uint64_t now); /* 0, -ENOMEM */
void tables_modify_end(struct tables_modify *m);

/* Removes flows that have timed out, no more than `most`.  Returns when to call it next, ns: `now`, which isn't 0,
 * if more have timed out; 0: no flow has a timeout. */
uint64_t tables_expire(struct tables *t, uint64_t now, uint32_t most);

/* Shortens lookups after removals: once at the end of a turn. */
void tables_tidy(struct tables *t);

/* Removes a flow that is there.  0, or -ENOMEM while a change set is open. */
int tables_remove(struct tables *t, struct flow *f, uint8_t reason, uint64_t now);

/* As groups_mod and meters_mod.  A delete first removes the flows that refer to the group or meter (6.5), at most
 * `most`; -EAGAIN: there are more, and it is still there. */
int tables_group_mod(struct tables *t, const struct of_group_mod *m, uint32_t most, uint64_t now);
int tables_meter_mod(struct tables *t, const struct of_meter_mod *m, uint32_t most, uint64_t now);

/* ------------------------------------------------------------------ statistics */

/* Calls `each` for every flow that passes; a result other than 0 ends the walk and is returned.
 * OFPBRC_BAD_TABLE_ID: there is no such table. */
int tables_each(struct tables *t, const struct flow_filter *filter,
                int (*each)(void *ctx, struct flow *f), void *ctx);

struct flow_counter tables_flow_counter(const struct tables *t, const struct flow *f);
struct table_counter tables_counter(const struct tables *t, uint8_t id);

/* A flow that is held stays in memory after its removal, until it is released. */
void flow_hold(struct flow *f);
void flow_release(struct flow *f);

#endif
