/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DPCTL_QUEUES_PROFILE_TEXT_H
#define DPCTL_QUEUES_PROFILE_TEXT_H

#include <core/context.h>

/* A line without its comment, its variables replaced. */
struct profile_line {
    unsigned number;
    char *text;
};

/* Reads the file; "set" lines give variables their values and are left out. */
enum status profile_lines(struct ctx *c, const char *file, char *const *sets, int n_sets,
                          struct profile_line **out, size_t *n);

#endif
