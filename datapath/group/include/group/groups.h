/* SPDX-License-Identifier: Apache-2.0 */
/* Groups (5.6, 6.5).  A modify replaces the group as a whole, so workers never see a part of it.
 * Control thread, except groups_find and the counters that workers add to. */
#ifndef GROUP_GROUPS_H
#define GROUP_GROUPS_H

#include <flow/flow.h>
#include <flow/limits.h>
#include <shared/idmap.h>

#define GROUP_MAX_BUCKETS 1024 /* of one */
#define GROUP_MAX_DEPTH   16   /* groups that lead to or watch one another */

struct bucket {
    uint16_t weight;
    uint32_t watch_port, watch_group;
    uint32_t watched; /* watch_group in a fast failover group, OFPG_ANY in others */
    /* In a select group, the ports that must be up: its output, if that is one port, and watch_port, if
     * that is another.  Else OFPP_ANY. */
    uint32_t out_port, other_port;
    struct program *program; /* apply list: the bucket's action set, in the set's order */
    struct of_bytes wire;    /* the actions as received, for OFPMP_GROUP_DESC */
};

struct group {
    IDMAP_OBJECT
    uint8_t type;
    uint32_t n_buckets;
    uint32_t total_weight;
    uint16_t *by_weight; /* the bucket at each unit of weight; NULL: that would be many */
    uint64_t created;
    uint64_t bytes;             /* of memory */
    uint64_t checked;           /* control thread: the walk that set `chain` */
    uint32_t chain;             /* groups that follow one another from here on, itself included */
    struct flow_counter *total; /* the group's, for each worker: a modify hands it on (6.5) */
    struct flow_counter *counters; /* the buckets', for each worker */
    uint32_t total_stride, stride; /* counters from one worker to the next */
    bool owns_total;               /* frees it */
    struct bucket buckets[];
};

struct groups;

struct groups_ops {
    struct compile_env env;
    bool (*port_exists)(void *sw, uint32_t port_no);
    bool kernel; /* groups_kernel_count may be called: each group and bucket has a counter more */
};

struct groups *groups_new(unsigned n_workers, const struct groups_ops *ops);
void groups_free(struct groups *g);

/* Call it before there are groups; the default is the most that the switch can have. */
void groups_limit(struct groups *g, const struct limits *l);
uint32_t groups_most(const struct groups *g);

/* 0 or an OpenFlow error, with nothing changed.  A delete leaves the flows that forward to the group
 * (tables_group_mod).  now: loop time, ns. */
int groups_mod(struct groups *g, const struct of_group_mod *m, uint64_t now);

/* What groups_mod says of a delete. */
int groups_check_delete(const struct groups *g, uint32_t id);
/* As refs_remove_users, for the flows that forward to the group, or to any (OFPG_ALL). */
int groups_remove_users(const struct groups *g, uint32_t id, uint32_t most,
                        int (*remove)(void *ctx, struct flow *f), void *ctx);

/* Any thread, under RCU. */
struct group *groups_find(const struct groups *g, uint32_t id);

/* The flow begins (delta 1) or ceases (-1) to refer to its program's groups. */
void groups_refer(struct groups *g, struct flow *f, struct program *p, int delta);
/* Flows and buckets that forward to the group. */
uint32_t groups_refs(const struct groups *g, uint32_t id);
uint32_t groups_count(const struct groups *g);
unsigned long
groups_changes(const struct groups *g); /* differs whenever one came, went or changed */

/* In no order; *pos starts as 0. */
struct group *groups_each(const struct groups *g, uint32_t *pos);

/* The ids of all groups, each behind those that it leads to or watches.  The caller frees *ids.
 * False: out of memory. */
bool groups_in_order(struct groups *g, uint32_t **ids, uint32_t *n);

/* Summed over the workers and the kernel; bucket -1: the group's own. */
struct flow_counter groups_counter(const struct groups *g, const struct group *gr, int bucket);
/* Adds what the kernel did since the last call. */
void groups_kernel_count(const struct groups *g, const struct group *gr, int bucket,
                         uint64_t packets, uint64_t bytes);

static inline struct flow_counter *
group_counter(const struct group *g, unsigned worker, int bucket)
{
    return bucket < 0 ? &g->total[worker * g->total_stride]
                      : &g->counters[worker * g->stride + (uint32_t)bucket];
}

#endif
