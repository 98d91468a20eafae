/* SPDX-License-Identifier: Apache-2.0 */
/* Maps (qos/profile/map.h) on a switch: asks for its flows, and collects what changes them. */
#ifndef DPCTL_QUEUES_MAP_H
#define DPCTL_QUEUES_MAP_H

#include <core/complete.h>
#include <queues/steps.h>

#include <qos/profile/map.h>

/* The switch's flows of a set (NULL: of all sets). */
enum status map_flows(struct ctx *c, const char *set, struct of_list *out);

/* The queue that the flow chooses; 0: none. */
uint32_t map_queue(const struct of_flow_stats *f);

/* Makes the switch's flows of this set what the map has; `keep`: deletes none. */
enum status map_diff(struct ctx *c, const struct qos_map *m, bool keep, struct steps *out);

/* Deletes the flows of a set (NULL: of all sets). */
enum status map_delete(struct ctx *c, const char *set, struct steps *out);

/* Deletes those of the set's flows that the map has. */
enum status map_remove(struct ctx *c, const struct qos_map *m, struct steps *out);

/* Deletes the table-miss flows of tables in which `out` leaves no other flow of a set. */
enum status map_remove_misses(struct ctx *c, struct steps *out);

/* Completion of a rule (core/complete.h). */
void map_offer_rule(struct complete *k, const struct command *self);

#endif
