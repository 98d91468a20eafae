/* SPDX-License-Identifier: Apache-2.0 */
/* An entry's ops on a frame, as the programs in the kernel carry them out. */
#ifndef RUN_OPS_H
#define RUN_OPS_H

#include <offload/offload.h>

#define RUN_OUTS 16
#define RUN_ROOM 2048

struct ran {
    uint32_t n;
    struct ran_out {
        uint32_t ifindex, priority, n;
        uint8_t data[RUN_ROOM];
    } out[RUN_OUTS];
};

/* Frames that the programs look up: their key, and the TTL.  False: they leave the frame to user
 * space.  The in port's place is 0. */
bool run_key(const uint8_t *frame, uint32_t n, uint64_t key[OFFLOAD_WORDS], uint8_t *ttl);

bool run_matches(const struct offload_rule *r, const uint64_t key[OFFLOAD_WORDS]);

/* The frame is one that run_key takes. */
void run_ops(const struct offload_rule *r, const uint8_t *frame, uint32_t n, struct ran *out);

#endif
