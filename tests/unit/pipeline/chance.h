/* SPDX-License-Identifier: Apache-2.0 */
/* What chance makes up: frames and messages of few values, so that they meet. */
#ifndef CHANCE_H
#define CHANCE_H

#include "slow.h"

struct chance {
    uint64_t seed;
    bool tags;    /* many, so that actions bring different things to light */
    bool roots;   /* set_field of eth_type, ip_proto and icmpv6_type too */
    bool partial; /* TCP and UDP checksums left to be made (not together with roots) */
};

/* A number below n; true once in n. */
uint32_t chance(struct chance *c, uint32_t n);
static inline bool
once_in(struct chance *c, uint32_t n)
{
    return !chance(c, n);
}

/* A value of a field, in its bytes. */
void chance_value(struct chance *c, enum oxm_field f, uint8_t *out);

#define FRAME_ROOM 1024
struct frame {
    uint8_t data[FRAME_ROOM]; /* with all checksums */
    uint32_t n;
    /* As the sender handed it over, where it left the checksum to be made; csum_start 0: it
     * didn't. */
    uint16_t csum_start, csum_offset, csum_field;
};
void chance_frame(struct chance *c, struct frame *f);

/* One that has the same fields as another, but not the same bytes: what actions bring to light
 * differs. */
void chance_sibling(struct chance *c, const struct frame *of, struct frame *f);

/* What is known of the switch. */
struct chance_env {
    struct chance *c;
    struct of_arena *arena;
    const struct slow_switch *sw;
    const struct frame *frames; /* that will come in */
    uint32_t n_frames;
    uint8_t n_tables;
    uint32_t next_cookie;
};

#define METER_ID 1 /* of a meter that drops nothing */

struct of_flow_mod *chance_flow_mod(struct chance_env *e);
struct of_group_mod *chance_group_mod(struct chance_env *e);
struct of_packet_out *chance_packet_out(struct chance_env *e);

#endif
