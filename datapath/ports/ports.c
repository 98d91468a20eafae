/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's ports: describing and changing them. */
#include "liveness.h"
#include "port-attach.h"

#include <megaflow/megaflow.h>
#include <ports/ports.h>

#include <daemon/log.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ALL_CONFIG                                                                                 \
    (OFPPC_PORT_DOWN | OFPPC_NO_RECV | OFPPC_NO_FLOOD | OFPPC_NO_FWD | OFPPC_NO_PACKET_IN)

/* ------------------------------------------------------------------ describing */

bool
sw_port_is_down(const struct sw_port *p)
{
    return !p->port || !(p->link.flags & IFF_UP) || !(p->link.flags & IFF_RUNNING);
}

void
sw_ports_describe(const struct sw_port *p, struct of_port *out)
{
    const struct qos_link_info *l = &p->link;
    uint32_t kbps = (uint32_t)(l->speed / 1000 > UINT32_MAX ? UINT32_MAX : l->speed / 1000);
    *out = (struct of_port){.port_no = p->no,
                            .config = p->config,
                            .state = sw_port_is_down(p) ? OFPPS_LINK_DOWN : OFPPS_LIVE,
                            .curr = l->curr,
                            .advertised = l->advertised,
                            .supported = l->supported,
                            .peer = l->peer,
                            .curr_speed = kbps,
                            .max_speed = kbps};
    memcpy(out->hw_addr, l->mac, sizeof out->hw_addr);
    snprintf(out->name, sizeof out->name, "%s", p->name);
}

void
sw_port_announce(struct sw *sw, const struct sw_port *p, uint8_t reason)
{
    struct of_port d;
    sw_offload_settle(sw); /* who hears of it may rely on it */
    sw_ports_describe(p, &d);
    struct of_port_status s = {.reason = reason,
                               .port_no = d.port_no,
                               .config = d.config,
                               .state = d.state,
                               .curr = d.curr,
                               .advertised = d.advertised,
                               .supported = d.supported,
                               .peer = d.peer,
                               .curr_speed = d.curr_speed,
                               .max_speed = d.max_speed};
    memcpy(s.hw_addr, d.hw_addr, sizeof s.hw_addr);
    memcpy(s.name, d.name, sizeof s.name);
    channel_async(sw->channel, ASYNC_PORT_STATUS, reason, OFPT_PORT_STATUS, &s);
}

void
sw_port_forget_stations(struct sw *sw, const struct sw_port *p)
{
    normal_forget(sw->dp.normal, p->no == OFPP_LOCAL ? NORMAL_LOCAL : (uint16_t)p->no);
}

void
sw_port_apply_flags(struct sw *sw, const struct sw_port *p)
{
    if (!p->port)
        return;
    bool was_up = port_is_up(p->port);
    uint32_t before = port_config_bits(p->port);
    if (p->files) {
        port_set_flags(p->port, p->config, sw_port_is_down(p));
        if (port_is_up(p->port) != was_up)
            sw_port_forget_stations(sw, p);
    } else { /* whether it is up says the liveness thread */
        sw_liveness_sync(sw);
        port_set_config(p->port, p->config);
    }
    port_set_mtu(p->port, p->link.mtu);
    if (port_is_up(p->port) != was_up || port_config_bits(p->port) != before)
        sw_offload_forget_port(sw, p->no);
}

/* ------------------------------------------------------------------ port-mod (7.3.4.3) */

/* The interface may be gone, a hardware switch may block its radio, ... */
static int
refused_by_kernel(const struct sw_port *p, int err)
{
    log_warning(PORT, "port %u (%s): the kernel refuses to change OFPPC_PORT_DOWN: %s", p->no,
                p->name, strerror(-err));
    return err == -ENODEV || err == -ENXIO   ? OF_PORT_MOD_FAILED(BAD_PORT)
           : err == -EPERM || err == -EACCES ? OF_PORT_MOD_FAILED(EPERM)
                                             : OF_PORT_MOD_FAILED(BAD_CONFIG);
}

int
sw_ports_mod(struct sw *sw, const struct of_port_mod *m)
{
    struct sw_port *p = sw_ports_find(sw, m->port_no);
    if (!p)
        return OF_PORT_MOD_FAILED(BAD_PORT);
    if (memcmp(m->hw_addr, p->link.mac, sizeof m->hw_addr))
        return OF_PORT_MOD_FAILED(BAD_HW_ADDR);
    if ((m->config | m->mask) & ~(uint32_t)ALL_CONFIG)
        return OF_PORT_MOD_FAILED(BAD_CONFIG);
    if (m->advertise && m->advertise != p->link.advertised) /* advertised modes can't be changed */
        return OF_PORT_MOD_FAILED(BAD_ADVERTISE);
    uint32_t config = (p->config & ~m->mask) | (m->config & m->mask);
    config |= p->queues_only ? SW_QUEUES_ONLY : 0;
    if (p->files)
        p->link.flags = config & OFPPC_PORT_DOWN ? IFF_RUNNING : IFF_RUNNING | IFF_UP;
    else if ((config ^ p->config) & OFPPC_PORT_DOWN && p->port) {
        int err = qos_link_set_flag(sw->link, p->link.ifindex, IFF_UP, !(config & OFPPC_PORT_DOWN));
        if (err)
            return refused_by_kernel(p, err);
        struct qos_link_info now;
        if (!qos_link_get_by_index(sw->link, p->link.ifindex, &now))
            p->link.flags = now.flags; /* the rest comes with the event, for its queues as well */
    }
    bool changed = config != p->config;
    p->config = config;
    sw_port_apply_flags(sw, p);
    if (changed)
        sw_port_announce(sw, p, OFPPR_MODIFY);
    return 0;
}
