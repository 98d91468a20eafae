/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles: files that say what a port's queues are to be (docs/dpctl-qos.md). */
#ifndef DPCTL_QUEUES_PROFILE_H
#define DPCTL_QUEUES_PROFILE_H

#include <queues/map.h>

struct profile {
    const char *file;
    struct profile_part {
        struct qos_request *want; /* ADD requests of port 1 */
        unsigned *line;           /* where each stands in the file */
        bool *optional;           /* "try": only where the kernel has the scheduler */
        size_t n;
    } part[2]; /* by enum qos_direction */
    struct map map;
};

/* `sets`: words "NAME=VALUE" of the command line, for the variables.  Everything is in the arena.
 * Reports mistakes with file and line. */
enum status profile_read(struct ctx *c, const char *file, char *const *sets, int n_sets,
                         struct profile *out);

/* Removes the optional requests for schedulers that the switch's kernel hasn't got. */
enum status profile_fit(struct ctx *c, struct profile *p);

#endif
