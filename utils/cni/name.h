/* SPDX-License-Identifier: Apache-2.0 */
/* What the host's end of an attachment is called: made of network, container and interface, so that DEL finds it
 * without a state of our own, and GC those of its network even where only the switch remembers them. */
#ifndef CNI_NAME_H
#define CNI_NAME_H

#include "cni.h"

/* "ofp", 4 characters for the network, 8 for network, container and interface. */
void name_host(const char *network, const char *id, const char *ifname, char out[IFNAMSIZ]);

/* Could this be the host's end of an attachment to this network? */
bool name_is_of(const char *host, const char *network);

/* "ofqos-cni/NETWORK/CONTAINER/INTERFACE": no part can have a slash.  False: it would be too long. */
bool name_alias(const char *network, const char *id, const char *ifname,
                char out[CNI_ALIAS_MAX + 1]);

/* Does the alias belong to this network? */
bool name_alias_is_of(const char *alias, const char *network);

#endif
