/* SPDX-License-Identifier: Apache-2.0 */
#include "inside.h"

/* 10 Mbit/s to 10 Gbit/s have the same bits; 1.0 has no faster ones, and no bits between these and
 * the medium. */
#define SPEEDS 0x7fu
#define MOVED  (OFPPF_COPPER | OFPPF_FIBER | OFPPF_AUTONEG | OFPPF_PAUSE | OFPPF_PAUSE_ASYM)

_Static_assert(OFPPF_COPPER >> 4 == OFPPF10_COPPER && OFPPF_PAUSE_ASYM >> 4 == OFPPF10_PAUSE_ASYM,
               "the medium's bits are in the same order, four lower");

static uint32_t
features_to(uint32_t bits)
{
    return (bits & SPEEDS) | (bits & MOVED) >> 4;
}

void
of10_port(const struct of_port *p, uint16_t port_no, struct of_v10_port *out)
{
    *out = (struct of_v10_port){.port_no = port_no,
                                .config = p->config,
                                .state = p->state & OFPPS10_LINK_DOWN,
                                .curr = features_to(p->curr),
                                .advertised = features_to(p->advertised),
                                .supported = features_to(p->supported),
                                .peer = features_to(p->peer)};
    memcpy(out->hw_addr, p->hw_addr, sizeof out->hw_addr);
    memcpy(out->name, p->name, sizeof out->name);
}
