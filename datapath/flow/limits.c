/* SPDX-License-Identifier: Apache-2.0 */
#include <flow/limits.h>

/* The parts of the memory that flows and groups may take when each is large. */
#define FLOW_PART  2
#define GROUP_PART 8

static uint32_t
share(uint64_t memory, uint32_t most, uint64_t bytes, uint64_t part)
{
    uint64_t n = memory / part / bytes;
    return n < most ? (uint32_t)n : most;
}

struct limits
limits_default(uint64_t memory)
{
    return (struct limits){
#define LIMIT_VALUE(name, option, most, bytes, part, help) .name = share(memory, most, bytes, part),
        LIMIT_ROWS(LIMIT_VALUE)
#undef LIMIT_VALUE
            .flow_bytes = memory / FLOW_PART,
        .group_bytes = memory / GROUP_PART,
    };
}
