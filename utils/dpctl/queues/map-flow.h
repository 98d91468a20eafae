/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules of a map are made into flows with. */
#ifndef DPCTL_QUEUES_MAP_FLOW_H
#define DPCTL_QUEUES_MAP_FLOW_H

#include <queues/map.h>

/* "7" or "7-9", each at most `max`. */
bool map_range(const char *text, unsigned long max, unsigned long *low, unsigned long *high);

/* A new flow at the end of the map; NULL: no memory. */
struct map_flow *map_add_flow(struct ctx *c, struct map *m);

/* The flow's instructions: the queue (0: none), then what the map's `then` says.  0, -EINVAL with a
 * sentence in c->parse.why, -ENOMEM. */
int map_set_instructions(struct ctx *c, const struct map *m, uint32_t queue, struct map_flow *f);

#endif
