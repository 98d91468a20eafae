/* SPDX-License-Identifier: Apache-2.0 */
/* Maps (qos/profile/map.h) on a switch: asks for its flows, and collects what changes them. */
#ifndef DPCTL_QUEUES_MAP_H
#define DPCTL_QUEUES_MAP_H

#include <core/complete.h>
#include <queues/steps.h>

#include <qos/profile/profile.h>

/* The switch's flows of a set (NULL: of all sets). */
enum status map_flows(struct ctx *c, const char *set, struct of_list *out);

/* The same without table-miss flows, in order of their queues. */
struct map_members {
    struct map_member {
        const struct of_flow_stats *flow;
        uint32_t queue; /* that the flow chooses; 0: none */
    } * v;              /* in the arena */
    size_t n;
};
enum status map_members(struct ctx *c, const char *set, struct map_members *out);

/* qos_map_way on the switch, in p's arena.  `table`: all flows of the map's table. */
enum status map_way(struct ctx *c, struct of_parse *p, struct qos_map *m, struct of_list *table);

/* Makes the switch's flows of this set what the map has; `keep`: deletes none.  Refuses to send
 * packets to an empty table. */
enum status map_diff(struct ctx *c, const struct qos_map *m, bool keep, struct steps *out);

/* Deletes the flows of a set (NULL: of all sets). */
enum status map_delete(struct ctx *c, const char *set, struct steps *out);

/* qos_map_remove */
enum status map_remove(struct ctx *c, const struct qos_map *m, bool any_queue, struct steps *out);

/* Says so, or asks, if no port has a queue of the map (core/say.h: say_doubt).  made: the profile,
 * or NULL, whose queues are to be there, too. */
enum status map_doubt_queues(struct ctx *c, const struct qos_map *m,
                             const struct qos_profile *made);

/* Deletes the table-miss flows of tables in which `out` leaves no other flow of a set. */
enum status map_remove_misses(struct ctx *c, struct steps *out);

/* Completion of a rule (core/complete.h). */
void map_offer_rule(struct complete *k, const struct command *self);

#endif
