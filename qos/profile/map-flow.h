/* SPDX-License-Identifier: Apache-2.0 */
/* Makes flows of a map's rules. */
#ifndef QOS_PROFILE_MAP_FLOW_H
#define QOS_PROFILE_MAP_FLOW_H

#include <qos/profile/map.h>

/* "7" or "7-9", each at most `max`. */
bool qos_map_range(const char *text, unsigned long max, unsigned long *low, unsigned long *high);

/* A flow of this priority and match at the end of the map.  0, -EINVAL with a sentence in p->why,
 * -ENOMEM. */
int qos_map_put_flow(struct of_parse *p, struct qos_map *m, const struct qos_map_does *does,
                     uint16_t priority, const char *match);

#endif
