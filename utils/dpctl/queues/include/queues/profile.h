/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles (qos/profile/profile.h) for a switch. */
#ifndef DPCTL_QUEUES_PROFILE_H
#define DPCTL_QUEUES_PROFILE_H

#include <queues/map.h>

#include <qos/profile/profile.h>

/* `sets`: words "NAME=VALUE" of the command line, for the variables.  Everything is in the arena.
 * Reports mistakes with file and line. */
enum status profile_read(struct ctx *c, const char *file, char *const *sets, int n_sets,
                         struct qos_profile *out);

/* Removes the optional requests for schedulers that the switch's kernel hasn't got. */
enum status profile_fit(struct ctx *c, struct qos_profile *p);

#endif
