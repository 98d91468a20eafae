/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's ports by number and by name. */
#include <switch/switch.h>

#include <string.h>

struct sw_port *
sw_ports_find(const struct sw *sw, uint32_t no)
{
    if (no == OFPP_LOCAL)
        return sw->local.no ? (struct sw_port *)(uintptr_t)&sw->local : NULL;
    return no && no <= sw->n_ports ? sw->ports[no] : NULL;
}

struct sw_port *
sw_ports_next(const struct sw *sw, uint32_t no)
{
    for (uint64_t i = (uint64_t)no + 1; i <= sw->n_ports; i++)
        if (sw->ports[i])
            return sw->ports[i];
    return no < OFPP_LOCAL ? sw_ports_find(sw, OFPP_LOCAL) : NULL;
}

struct sw_port *
sw_ports_by_name(const struct sw *sw, const char *name)
{
    struct sw_port *p;
    for (uint32_t no = 0; (p = sw_ports_next(sw, no)); no = p->no)
        if (!strcmp(p->name, name))
            return p;
    return NULL;
}

struct sw_port *
sw_ports_by_ifindex(const struct sw *sw, int ifindex)
{
    struct sw_port *p;
    for (uint32_t no = 0; (p = sw_ports_next(sw, no)); no = p->no)
        if (p->port && !p->files && p->link.ifindex == ifindex)
            return p;
    return NULL;
}
