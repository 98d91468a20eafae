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

/* The queues of a port have different places. */
static uint32_t
place_of(uint32_t no, uint32_t queue)
{
    return (no * 40503u + queue) & (OFFLOAD_QUEUES - 1);
}

bool
offload_queue_changed(const struct sw_offload *f, uint32_t no, uint32_t queue)
{
    uint32_t at = place_of(no, queue);
    return f->queue[at / 64] >> at % 64 & 1;
}

void
sw_offload_forget_queue(struct sw *sw, uint32_t no, uint32_t queue)
{
    struct sw_offload *f = sw->offload;
    uint32_t at = place_of(no, queue);
    if (!f)
        return;
    f->queue[at / 64] |= UINT64_C(1) << at % 64;
    f->queues = true;
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
