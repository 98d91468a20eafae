/* SPDX-License-Identifier: Apache-2.0 */
/* How many flows, groups and meters a controller may make.  The defaults follow the machine's
 * memory, so that a controller can't fill it. */
#ifndef FLOW_LIMITS_H
#define FLOW_LIMITS_H

#include <stdint.h>

/* name, option, the most, bytes assumed for one, part: by default all of them may take 1 / part of
 * the memory, the option's help */
#define LIMIT_ROWS(X)                                                                              \
    X(flows, "max-flows", 16u << 20, 512, 4, "flow entries in all tables")                         \
    X(table_flows, "max-table-flows", 4u << 20, 512, 4, "flow entries in one table")               \
    X(groups, "max-groups", 65536, 1024, 32, "groups")                                             \
    X(buckets, "max-buckets", 1u << 20, 256, 32, "buckets of all groups")                          \
    X(meters, "max-meters", 65536, 1024, 32, "meters")

struct limits {
#define LIMIT_MEMBER(name, option, most, bytes, part, help) uint32_t name;
    LIMIT_ROWS(LIMIT_MEMBER)
#undef LIMIT_MEMBER
    uint64_t flow_bytes;  /* all flows' programs: one flow may have 64 KiB of instructions */
    uint64_t group_bytes; /* all groups with their buckets */
};

/* memory: of the machine, bytes; UINT64_MAX: the most of everything. */
struct limits limits_default(uint64_t memory);

#endif
