/* SPDX-License-Identifier: Apache-2.0 */
/* How much of each thing a controller may put into the switch.  The most that can be asked for, and
 * the default, which follows the memory there is: a controller can't fill it. */
#ifndef TABLE_LIMITS_H
#define TABLE_LIMITS_H

#include <stdint.h>

/* name, option, the most, bytes that one is taken for, what all by default may take of the memory
 * (1 / part), the option's help */
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
    uint64_t flow_bytes;  /* of all flows' instructions: one may have 64 KiB of them */
    uint64_t group_bytes; /* of all buckets' actions */
};

/* By the memory there is; UINT64_MAX: the most. */
struct limits limits_default(uint64_t memory);

#endif
