/* SPDX-License-Identifier: Apache-2.0 */
/* Random frames and messages, of few values so that they meet. */
#ifndef RANDOM_H
#define RANDOM_H

#include "oracle.h"

struct random {
    uint64_t seed;
    bool tags;    /* many, so that actions bring different things to light */
    bool roots;   /* set_field of eth_type, ip_proto and icmpv6_type too */
    bool plain;   /* mostly actions that the kernel's programs have */
    bool partial; /* TCP and UDP checksums left to be made (not together with roots) */
};

/* A number below n; true once in n. */
uint32_t random_below(struct random *c, uint32_t n);
static inline bool
once_in(struct random *c, uint32_t n)
{
    return !random_below(c, n);
}

/* A value of a field, in its bytes. */
void random_value(struct random *c, enum oxm_field f, uint8_t *out);

#define FRAME_ROOM 1024
struct frame {
    uint8_t data[FRAME_ROOM]; /* with all checksums */
    uint32_t n;
    /* As the sender handed it over, where it left the checksum to be made; csum_start 0: it
     * didn't. */
    uint16_t csum_start, csum_offset, csum_field;
};
void random_frame(struct random *c, struct frame *f);

/* One that has the same fields as another, but not the same bytes: what actions bring to light
 * differs. */
void random_sibling(struct random *c, const struct frame *of, struct frame *f);

/* What is known of the switch. */
struct random_env {
    struct random *c;
    struct of_arena *arena;
    const struct oracle_switch *sw;
    const struct frame *frames; /* that will come in */
    uint32_t n_frames;
    uint8_t n_tables;
    uint32_t next_cookie;
};

#define METER_ID 1 /* of a meter that drops nothing */

struct of_flow_mod *random_flow_mod(struct random_env *e);
struct of_group_mod *random_group_mod(struct random_env *e);
struct of_packet_out *random_packet_out(struct random_env *e);

#endif
