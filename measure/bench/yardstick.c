/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine takes for a fixed piece of work that has nothing to do with the switch: the FNV-1a hash
 * of 60 bytes, the length of path-bench's packets; a multiplication a byte, each of which waits for the
 * one before it. Costs of a packet divided by this can be compared between machines.
 *
 *     yardstick        prints nanoseconds of CPU time
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define BYTES 60
#define TIMES 5000000

static uint64_t
hash(const uint8_t *data, uint64_t h)
{
    for (unsigned i = 0; i < BYTES; i++)
        h = (h ^ data[i]) * 0x100000001b3;
    return h;
}

int
main(void)
{
    static volatile uint8_t byte = 1;
    uint8_t data[BYTES];
    uint64_t h = 0xcbf29ce484222325;
    for (unsigned i = 0; i < BYTES; i++)
        data[i] = (uint8_t)(byte + i);
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    for (unsigned n = 0; n < TIMES; n++)
        h = hash(data, h);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    byte = (uint8_t)h;
    double ns = (double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec);
    printf("%.2f\n", ns / TIMES);
    return 0;
}
