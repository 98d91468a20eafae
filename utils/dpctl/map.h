/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of traffic put into queues by flows (docs/dpctl-qos.md, "Which traffic goes where"). */
#ifndef DPCTL_MAP_H
#define DPCTL_MAP_H

#include "qos-cmd.h"

/* A cookie is these 32 bits and the hash of the set's name. */
#define MAP_COOKIE      0x514f534600000000ull
#define MAP_COOKIE_MASK 0xffffffff00000000ull

struct map_flow {
    uint16_t priority;
    struct of_match match;
    struct of_list instructions;
    const char *match_text, *instruction_text; /* to compare and to show */
};

/* A set of flows that belong together. */
struct map {
    const char *set; /* its name */
    uint8_t table;
    const char *then; /* "goto:1", "normal", "output:2" */
    struct map_flow *v;
    size_t n, room;
};

/* `set` is kept. */
void map_init(struct map *m, const char *set);

/* "table=0", "then=normal", "set=voip": true where the word was one of these; else it is for a
 * rule.  *why is set where the value is wrong. */
bool map_option(struct ctx *c, struct map *m, const char *word, const char **why);

/* "queue=10,dscp=ef,...": its flows.  both_ways: also for the packets that go the other way, whose
 * source and destination are exchanged.  *why: a sentence, NULL where all is well. */
void map_rule(struct ctx *c, struct map *m, const char *text, bool both_ways, const char **why);

/* At the end: the flow for what no rule matches.  Two rules that say different things of the same
 * packets are *why. */
void map_finish(struct ctx *c, struct map *m, const char **why);

uint64_t map_cookie(const char *set);

/* The switch's flows of a set (NULL: of all sets). */
enum status map_flows(struct ctx *c, const char *set, struct of_list *out);
/* The flow for what no rule matches? */
bool map_is_miss(const struct of_flow_stats *f);

/* ---------------------------------------------------------------- steps.c
 * What there is to do: requests and flow-mods, in order. */

struct steps {
    struct step {
        struct qos_request *qos; /* or NULL: */
        struct of_flow_mod *flow;
        const char *where; /* what refusals begin with; NULL: as always */
    } * v;
    size_t n, room;
    bool nomem;
};

void steps_qos(struct ctx *c, struct steps *s, const struct qos_request *r, const char *where);
void steps_flow(struct ctx *c, struct steps *s, const struct of_flow_mod *fm);

/* What makes the switch's flows of this set what the map says; `keep`: without deleting any. */
enum status map_diff(struct ctx *c, const struct map *m, bool keep, struct steps *out);
/* What deletes the flows of a set (NULL: of all sets).  The flow for what no rule matches, which sets
 * share, goes with the last of them. */
enum status map_delete(struct ctx *c, const char *set, struct steps *out);
/* What deletes those of the set's flows that match what the map's do. */
enum status map_remove(struct ctx *c, const struct map *m, struct steps *out);
/* What deletes the flows for what no rule matches of the tables in which `out` leaves no other flow. */
enum status map_remove_misses(struct ctx *c, struct steps *out);
/* What deletes this flow. */
void steps_delete(struct ctx *c, struct steps *s, const struct of_flow_stats *f);

/* Does it, all or nothing; or only shows it (dry). */
enum status steps_run(struct ctx *c, const struct steps *s, bool dry);

#endif
