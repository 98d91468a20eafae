/* SPDX-License-Identifier: Apache-2.0 */
/* Frames for the generator (relay -g): UDP over IPv4, 60 bytes without FCS.
 *
 * Microflow i goes from 10.1.x.y to 10.2.z.w with ports that depend on i too, so that tables with
 * many kinds of masks have something to tell apart; measure/bench/flowload.py makes the same ones.
 * Ethernet 02:00:00:00:00:01 -> 02:00:00:00:00:99, which is nobody's: the far host counts a frame
 * and drops it as early as it can.
 */
#ifndef BENCH_GENERATE_H
#define BENCH_GENERATE_H

#include <stdint.h>

#define GENERATED_LEN 60

struct generator {
    uint32_t flows; /* microflows in turn; 0: each frame is a new one, as far as a cache can tell:
                     * the first comes again after GENERATED_DISTINCT */
    uint32_t next;
    uint8_t *frames; /* GENERATED_LEN bytes each: `flows` of them, or a ring of GENERATED_RING */
};

/* At most this many frames may be in use (unsent) at a time. */
#define GENERATED_RING 256

#define GENERATED_DISTINCT (1u << 20)

int generator_init(struct generator *g, uint32_t flows); /* -ENOMEM */
const uint8_t *generator_next(struct generator *g);
void generator_free(struct generator *g);

#endif
