/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of traffic put into queues by flows (docs/dpctl-qos.md, "Which traffic goes where"). */
#ifndef DPCTL_QUEUES_MAP_H
#define DPCTL_QUEUES_MAP_H

#include <queues/steps.h>

/* The upper 32 bits of the flows' cookies; the lower ones are the hash of the set's name. */
#define MAP_COOKIE      0x514f534600000000ull
#define MAP_COOKIE_MASK 0xffffffff00000000ull

struct map_flow {
    uint16_t priority;
    struct of_match match;
    struct of_list instructions;
    const char *match_text, *instruction_text; /* to compare and to show */
};

/* A set of flows that belong together; all in the arena. */
struct map {
    const char *set; /* its name */
    uint8_t table;
    const char *then; /* "goto:1", "normal", "output:2" */
    struct map_flow *v;
    size_t n, room;
};

/* The functions that return an int return 0, -ENOMEM, or -EINVAL with a sentence in
 * c->parse.why. */

/* `set` is kept. */
void map_init(struct map *m, const char *set);

/* Takes "table=0", "then=normal", "set=voip".  1: taken; 0: it is none of them. */
int map_option(struct ctx *c, struct map *m, const char *word);

/* Adds the flows of "queue=10,dscp=ef,...", to those the options apply that were taken before.
 * both_ways: also those for the packets whose source and destination are exchanged. */
int map_rule(struct ctx *c, struct map *m, const char *text, bool both_ways);

/* After the last rule: adds the table-miss flow, for packets that fit no rule.  Refuses two rules
 * that put the same packets into different queues. */
int map_finish(struct ctx *c, struct map *m);

uint64_t map_cookie(const char *set);

/* The switch's flows of a set (NULL: of all sets). */
enum status map_flows(struct ctx *c, const char *set, struct of_list *out);
bool map_is_miss(const struct of_flow_stats *f);

/* ------------------------------------------------------- differences (map-diff.c) */

/* Makes the switch's flows of this set what the map has; `keep`: deletes none. */
enum status map_diff(struct ctx *c, const struct map *m, bool keep, struct steps *out);

/* Deletes the flows of a set (NULL: of all sets).  The table-miss flow, which the sets of a table
 * share, goes with the last of them. */
enum status map_delete(struct ctx *c, const char *set, struct steps *out);

/* Deletes those of the set's flows that the map has. */
enum status map_remove(struct ctx *c, const struct map *m, struct steps *out);

/* Deletes the table-miss flows of tables in which `out` leaves no other flow of a set. */
enum status map_remove_misses(struct ctx *c, struct steps *out);

#endif
