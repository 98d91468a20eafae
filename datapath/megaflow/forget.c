/* SPDX-License-Identifier: Apache-2.0 */
/* Notes changes that no log has, until the entries concerned are withdrawn (changes.c). */
#include "state.h"

static unsigned
bit_of(uint32_t no)
{
    return no == OFPP_LOCAL ? (PORT_MAX / 64 + 1) * 64 : no;
}

bool
offload_port_changed(const struct sw_offload *f, uint32_t no)
{
    unsigned bit = bit_of(no);
    return (no <= PORT_MAX || no == OFPP_LOCAL) && f->port[bit / 64] >> bit % 64 & 1;
}

void
sw_offload_forget_port(struct sw *sw, uint32_t no)
{
    struct sw_offload *f = sw->offload;
    unsigned bit = bit_of(no);
    if (!f || (no > PORT_MAX && no != OFPP_LOCAL))
        return;
    f->port[bit / 64] |= UINT64_C(1) << bit % 64;
    f->ports = true;
}

void
sw_offload_port_stale(struct sw *sw, uint32_t no)
{
    if (sw->offload)
        offload_port_stale(sw->offload->o, no);
}

void
sw_offload_forget_all(struct sw *sw)
{
    if (sw->offload)
        sw->offload->all = true;
}
