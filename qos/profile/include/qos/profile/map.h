/* SPDX-License-Identifier: Apache-2.0 */
/* Flows that put kinds of traffic into queues (docs/how-to/dpctl-qos.md, "Which traffic goes where").
 * Makes flows of a map's words, and compares the flows that a switch has with those of the map.
 * Pure. */
#ifndef QOS_PROFILE_MAP_H
#define QOS_PROFILE_MAP_H

#include <oflib/text.h>

/* A DSCP's name, as in a rule, or its number.  False: it is none. */
bool qos_map_dscp(const char *text, uint8_t *out);

/* The upper 32 bits of the flows' cookies; the lower ones are the hash of the set's name. */
#define QOS_MAP_COOKIE      0x514f534600000000ull
#define QOS_MAP_COOKIE_MASK 0xffffffff00000000ull

/* What a flow does with a packet before it goes where the map's `then` says. */
struct qos_map_does {
    uint32_t queue; /* 0: none */
    int dscp, pcp;  /* -1: stays */
    bool tag;       /* the PCP needs a tag first */
    bool copy;      /* also to the controllers */
};

struct qos_map_flow {
    uint16_t priority, idle_s, hard_s; /* timeouts, 0: none */
    struct qos_map_does does;
    struct of_match match;
    const char *match_text;      /* to compare and to show */
    struct of_list instructions; /* since qos_map_way */
};

/* A set of flows that belong together; all in the parser's arena. */
struct qos_map {
    const char *set; /* its name */
    uint8_t table;
    const char *then; /* "goto:1", "normal", "output:2"; NULL: not given, see qos_map_way */
    bool wash;        /* the DSCP of packets that no rule marks becomes 0 */
    bool beside; /* a controller has the table: rules lie above its flows and leave it the rest */
    struct qos_map_flow *v;
    size_t n, room;
};

/* The functions that return an int return 0, -ENOMEM, or -EINVAL with a sentence in p->why. */

/* `set` is kept. */
void qos_map_init(struct qos_map *m, const char *set);

/* Takes "table=0", "then=normal".  1: taken; 0: it is none of them. */
int qos_map_place(struct of_parse *p, struct qos_map *m, const char *word);

/* Those, and "wash", "beside", "set=voip". */
int qos_map_option(struct of_parse *p, struct qos_map *m, const char *word);

/* Is it a rule, and no option? */
bool qos_map_is_rule(const char *text);

/* Adds the flows of "queue=10,dscp=ef,..."; the options that were taken so far apply to them.
 * both_ways: also flows for packets whose source and destination are exchanged. */
int qos_map_rule(struct of_parse *p, struct qos_map *m, const char *text, bool both_ways);

/* Adds the flows that also send DNS answers to the controllers, above all rules: those of one server
 * (NULL: of all), into this queue (0: none), for hard_s seconds. */
int qos_map_answers(struct of_parse *p, struct qos_map *m, const char *server, uint32_t queue,
                    uint16_t hard_s);

/* After the last rule: adds the flows for packets that fit no rule.  Refuses two rules that do
 * different things with the same packets. */
int qos_map_finish(struct of_parse *p, struct qos_map *m);

/* Options and rules in any order; qos_map_words: and the end. */
int qos_map_rules(struct of_parse *p, struct qos_map *m, char *const *words, size_t n);
int qos_map_words(struct of_parse *p, struct qos_map *m, char *const *words, size_t n);

/* After that: where packets go next.  A map without then= inherits it from the table-miss flow of its
 * `table` (all flows of it), and sends packets to table 1 where there is none.  Gives the flows their
 * instructions. */
int qos_map_way(struct of_parse *p, struct qos_map *m, const struct of_list *table);

/* The present way of the packets of the table's maps, as a then=; beside a controller, that of the set's.  NULL: there
 * is none, or then= can't say it.  `flows`: at least all of the maps in the table. */
const char *qos_map_present(struct of_parse *p, const struct qos_map *m,
                            const struct of_list *flows);

/* The table that m->then leads to; -1: none. */
int qos_map_next(const struct qos_map *m);

/* Where a flow sends packets, as then= writes it; NULL: then= can't. */
const char *qos_map_then(struct of_parse *p, const struct of_flow_stats *f);

/* For completion: the i-th key of a rule, and the i-th name that a key's value may be ("ef" of
 * dscp; a name may come twice).  NULL past the last. */
const char *qos_map_key_at(size_t i);
const char *qos_map_name_at(const char *key, size_t i);

/* Of the set's name; or of "#12345678", as qos_map_set_name writes an unknown name. */
uint64_t qos_map_cookie(const char *set);
const char *qos_map_set_name(struct of_parse *p, uint64_t cookie); /* NULL: out of memory */

/* The queue that the flow chooses; 0: none. */
uint32_t qos_map_queue(const struct of_flow_stats *f);

/* A table-miss flow. */
bool qos_map_is_miss(const struct of_flow_stats *f);

/* ------------------------------------------------------- reading back (map-read.c) */

#define QOS_MAP_WASH_PRIORITY 1 /* below all rules, above the table-miss flow */

/* A rule, or the packets that fit none. */
struct qos_map_read {
    uint64_t cookie; /* of its set */
    uint8_t table;
    uint16_t prio;
    const char *then;  /* "" where then= can't say it */
    bool wash, beside; /* of the set */
    const char
        *text; /* as for qos_map_rule; "flow MATCH": no rule makes it; "": all other packets */
    uint32_t queue;
    uint32_t flows, missing; /* flows of the rule that are there, and that are not */
    uint64_t packets, bytes;
};

struct qos_map_reads {
    struct qos_map_read *v; /* by set, table, then; the rule that comes first, first */
    size_t n, room;
};

/* The rules whose flows these are.  Rules of one queue and priority that differ in one key only are
 * one rule: queue=10,app=ssh and queue=10,app=sip are queue=10,app=sip,app=ssh. */
int qos_map_read(struct of_parse *p, const struct of_list *flows, struct qos_map_reads *out);

/* ------------------------------------------------------- differences (map-diff.c)
 * Lists are of struct of_flow_stats, as a switch shows its flows.  Changes are appended, deletions
 * before additions. */

struct qos_map_changes {
    struct of_flow_mod *v;
    size_t n, room;
};

/* The flow-mod that makes this flow of the map. */
struct of_flow_mod qos_map_addition(const struct qos_map *m, const struct qos_map_flow *f);

/* The flow-mod that deletes exactly this flow. */
struct of_flow_mod qos_map_deletion(const struct of_flow_stats *f);

/* Makes the flows of this set those of the map; `keep`: deletes none.  `all`: the flows of all
 * sets, in any table; `table`: all flows of the map's table.  A table-miss flow goes when the last
 * set leaves its table.  -EEXIST with a sentence in p->why: a flow of the same match and priority
 * is not a map's. */
int qos_map_diff(struct of_parse *p, const struct qos_map *m, bool keep, const struct of_list *all,
                 const struct of_list *table, struct qos_map_changes *out);

/* Deletes the flows of a set (NULL: of all sets) from `all` sets' flows.  The table-miss flow, which
 * the sets of a table share, goes with the last of them. */
int qos_map_delete(struct of_parse *p, const char *set, const struct of_list *all,
                   struct qos_map_changes *out);

/* Deletes those of the set's flows that the map has, but for the table-miss flow; any_queue: whatever
 * queue they choose. */
int qos_map_remove(struct of_parse *p, const struct qos_map *m, bool any_queue,
                   const struct of_list *set, struct qos_map_changes *out);

#endif
