/* SPDX-License-Identifier: Apache-2.0 */
/* A container's groups on the switch: a class for each below each of its totals, and flows into them, which are a set
 * (qos/profile/map.h) of the port's name. */
#ifndef CNI_RULES_H
#define CNI_RULES_H

#include "port.h"
#include "result.h"

#include <core/command.h>

/* Sends classes and flows of the configuration's groups; for a bundle that also makes the totals. */
enum status rules_send(struct node_switch *s, const struct cni_conf *f, const char *name,
                       uint32_t no, const struct result *addresses);

/* Has the port the configuration's groups? */
int rules_check(struct cni *c, struct node_switch *s, const char *name, uint32_t no,
                const struct result *addresses);

/* Removes the flows of the port of this name. */
int rules_del(struct cni *c, struct node_switch *s, const char *name);

#endif
