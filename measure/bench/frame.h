/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs that send frames have in common. */
#ifndef BENCH_FRAME_H
#define BENCH_FRAME_H

#include <stdint.h>

static inline void
put16(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

/* Of an IPv4 header without options. */
static inline void
put_checksum(uint8_t *ip)
{
    uint32_t sum = 0;
    put16(ip + 10, 0);
    for (int i = 0; i < 20; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    put16(ip + 10, ~sum);
}

#endif
