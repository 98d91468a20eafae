/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: kinds of a container's traffic with a share each of its totals (docs/how-to/containers.md). */
#ifndef CNI_GROUP_H
#define CNI_GROUP_H

#include "cni.h"

/* Reads the groups of the configuration: the annotation ofqos.io/groups, else args.cni.ofqosGroups, else
 * runtimeConfig.ofqosGroups. */
int group_read(struct cni *c);

#endif
