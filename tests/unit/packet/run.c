/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>

int
run_random(const struct CMUnitTest *tests, size_t n, uint64_t *seed, struct packet_pool **pool)
{
    const char *wanted = getenv("SEED");
    if (wanted)
        *seed = strtoull(wanted, NULL, 0);
    *pool = packet_pool_new(64 << 20);
    int failed = _cmocka_run_group_tests("tests", tests, n, NULL, NULL);
    packet_pool_free(*pool);
    return failed;
}
