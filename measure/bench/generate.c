/* SPDX-License-Identifier: Apache-2.0 */
#include "generate.h"

#include "frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Neighbouring numbers differ in all fields, and no two numbers give the same ones. */
static void
make_frame(uint8_t *f, uint32_t i)
{
    /* clang-format off */
    static const uint8_t head[GENERATED_LEN] = {
        2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 1, 0x08, 0x00,            /* Ethernet */
        0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 1, 0, 0, 10, 2, 0, 0, /* IPv4 */
        0, 0, 0, 0, 0, 26, 0, 0};
    /* clang-format on */ /* UDP, no checksum */
    memcpy(f, head, sizeof head);
    put16(f + 28, i);                /* 10.1.i */
    put16(f + 32, i * 40503u);       /* 10.2.x: every 16-bit number once in 65,536 */
    put16(f + 34, 1024 + i % 64000); /* source port */
    put16(f + 36, 2000 + (i >> 16)); /* destination port */
    put_checksum(f + 14);
}

int
generator_init(struct generator *g, uint32_t flows)
{
    uint32_t n = flows ? flows : GENERATED_RING;
    *g = (struct generator){.flows = flows, .frames = calloc(n, GENERATED_LEN)};
    if (!g->frames)
        return -ENOMEM;
    for (uint32_t i = 0; i < flows; ++i)
        make_frame(g->frames + (size_t)i * GENERATED_LEN, i);
    return 0;
}

const uint8_t *
generator_next(struct generator *g)
{
    uint32_t i = g->next++;
    if (g->flows) {
        if (g->next == g->flows)
            g->next = 0;
        return g->frames + (size_t)i * GENERATED_LEN;
    }
    uint8_t *f = g->frames + (size_t)(i % GENERATED_RING) * GENERATED_LEN;
    make_frame(f, i % GENERATED_DISTINCT);
    return f;
}

void
generator_free(struct generator *g)
{
    free(g->frames);
}
