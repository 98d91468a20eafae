/* SPDX-License-Identifier: Apache-2.0 */
/* The switch: its ports and their totals, over its control socket. */
#ifndef CNI_PORT_H
#define CNI_PORT_H

#include "cni.h"

struct node_switch;
struct result;

/* `code` is the error's if nobody answers. */
int port_open_switch(struct cni *c, unsigned code, struct node_switch **out);
void port_close_switch(struct node_switch *s);

/* When it returns, the switch has carried out what processes asked of it that have been killed since. */
int port_settle(struct cni *c, struct node_switch *s);
/* The port that has the interface.  1: there is one; 0: none; -1. */
int port_find(struct cni *c, struct node_switch *s, const char *name, uint32_t *no);

/* Calls fn for each port's interface. */
int port_each(struct cni *c, struct node_switch *s, void (*fn)(void *ctx, const char *name),
              void *ctx);

/* The interface of the local port.  1, 0, -1. */
int port_local(struct cni *c, struct node_switch *s, char name[IFNAMSIZ]);

/* Makes the interface a port with the configuration's totals, which are the port's root classes: what leaves
 * the switch by the port goes into the container, and its groups.  If it fails the port may be there. */
int port_add(struct cni *c, struct node_switch *s, const char *name,
             const struct result *addresses);

int port_del(struct cni *c, struct node_switch *s, uint32_t no);

/* Has the port the configuration's totals? */
int port_check_rates(struct cni *c, struct node_switch *s, uint32_t no);

#endif
