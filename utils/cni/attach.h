/* SPDX-License-Identifier: Apache-2.0 */
/* An attachment: the pair of interfaces, the port and the addresses that ADD makes for one interface of a container. */
#ifndef CNI_ATTACH_H
#define CNI_ATTACH_H

#include "link.h"
#include "port.h"

/* The names of this one.  CNI_BAD_ENVIRONMENT: they are too long together. */
struct attachment {
    char host[IFNAMSIZ], alias[CNI_ALIAS_MAX + 1];
};
int attach_name(struct cni *c, const char *id, const char *ifname, struct attachment *out);

/* The host's end.  1: it is there; 0: there is none; CNI_KERNEL_REFUSED: the interface of its name is another's. */
int attach_find_host(struct cni *c, struct links *here, const struct attachment *a,
                     struct link_there *out);

/* Removes the port and the pair, ifindex 0: there is none; then looks again, for the switch may read only now what a
 * killed ADD has asked.  s NULL: there is no switch to remove a port from.  1: there was a port; 0: none; -1. */
int attach_remove_named(struct cni *c, struct links *here, struct node_switch *s, const char *host,
                        int ifindex);

/* The same for this attachment.  *any, unless it is NULL: there was something. */
int attach_remove(struct cni *c, struct links *here, struct node_switch *s,
                  const struct attachment *a, bool *any);

#endif
