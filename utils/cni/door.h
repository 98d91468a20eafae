/* SPDX-License-Identifier: Apache-2.0 */
/* What others on this machine must know of a container: a file in a directory, whose name is that of the host's end.
 *
 * With "tenant" in the configuration it is a door: the container may divide its own totals.  It talks to `ofqos-tenant serve
 * --doors` at DOOR_ADDRESS, on its own loopback interface; the service opens the socket in the container's network namespace,
 * because the file says so (docs/how-to/tenants.md).  And ofqos-operator learns which pod it is. */
#ifndef CNI_DOOR_H
#define CNI_DOOR_H

#include "link.h"

#define DOOR_ADDRESS   "169.254.84.80"
#define DOOR_DIRECTORY "/run/ofqos/containers"

/* Reads "tenant" and "directory", which all commands but VERSION need. */
int door_conf(struct cni *c);

/* For ADD and CHECK: what a tenant needs besides. */
int door_needs(struct cni *c);

/* `there`: the container's interfaces; netns: its namespace; r: its addresses.  0 without doing anything, where
 * there is neither a tenant nor a pod. */
int door_open(struct cni *c, struct links *there, int netns, const char *host,
              const struct result *r);
int door_check(struct cni *c, struct links *there, int netns, const char *host);

/* For "chained": which interface is the container's port. */
struct door_port {
    int ifindex;
    char name[IFNAMSIZ];
};
int door_record(struct cni *c, int netns, const char *host, const struct result *r,
                const struct door_port *port);
/* False: there is none. */
bool door_port(const struct cni *c, const char *host, struct door_port *out);

/* Also where there is none. */
int door_close(struct cni *c, const char *host);

/* Calls fn for each door, whatever network it is of. */
int door_each(struct cni *c, void (*fn)(void *ctx, const char *host), void *ctx);

#endif
