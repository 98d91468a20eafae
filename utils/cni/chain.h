/* SPDX-License-Identifier: Apache-2.0 */
/* "chained": another plugin has made the container's interface, a veth, and goes on bridging or routing what it carries.
 * The host's end becomes a port of queues only: it keeps its place, and gets totals and groups.  Which attachment has
 * which port is in the container's file (door.h). */
#ifndef CNI_CHAIN_H
#define CNI_CHAIN_H

#include "cni.h"

struct links;
struct node_switch;

int chain_add(struct cni *c);
int chain_del(struct cni *c);
int chain_check(struct cni *c);

/* Removes the port of the file of this name (name.h), and the file.  Also where there is none.  s NULL: there is no switch
 * to remove a port from. */
int chain_remove(struct cni *c, struct links *here, struct node_switch *s, const char *file);

#endif
