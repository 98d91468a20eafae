/* SPDX-License-Identifier: Apache-2.0 */
#include "dump-ids.h"
#include <admission/request.h>

#include <ports/ports.h>
#include <shared/reply.h>

#include <errno.h>

static int
handle_port_mod(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return sw_ports_mod(sw, m->body);
}

static int
may_port_mod(const struct slice_request *a)
{
    uint32_t no = ((const struct of_port_mod *)a->m->body)->port_no;
    return slice_has_port(a->slice, no) ? 0 : slice_deny_port(a, OF_PORT_MOD_FAILED(EPERM), no);
}

const struct request request_port_mod = {.access = ACCESS_WRITE,
                                         .slice = may_port_mod,
                                         .denied = OF_PORT_MOD_FAILED(EPERM),
                                         .needs = QUEUES,
                                         .blocks = true,
                                         .bundle = BUNDLE_PORTS,
                                         LOGGED(PORT),
                                         .run = handle_port_mod};

/* One port, or all of them (OFPP_ANY). */
static int
dump_ports(struct sw *sw, struct conn *c, const struct of_msg *m, uint32_t no, id_dump_add add)
{
    struct id_dump *d = sw_id_dump_new(sw, no == OFPP_ANY ? PORT_MAX + 1 : 1, add);
    if (!d)
        return -ENOMEM;
    if (no != OFPP_ANY)
        sw_id_dump_put(d, no);
    else
        for (uint32_t at = 0; sw_ports_next(sw, at);) {
            at = sw_ports_next(sw, at)->no;
            if (slice_has_port(sw_slice_of(c), at))
                sw_id_dump_put(d, at);
        }
    return sw_id_dump_send(d, c, m);
}

static void
add_desc(struct sw *sw, struct conn_dump *to, uint32_t no)
{
    const struct sw_port *p = sw_ports_find(sw, no);
    struct of_port d;
    if (!p)
        return;
    sw_ports_describe(p, &d);
    conn_dump_add(to, &of_list_ports, &d);
}

static int
handle_port_desc(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return dump_ports(sw, c, m, OFPP_ANY, add_desc);
}

const struct request request_port_desc = {
    .access = ACCESS_READ, .slice = slice_anything, .run = handle_port_desc};

/* Packets are the switch's own counts; losses of the interface are the kernel's. */
static void
add_stats(struct sw *sw, struct conn_dump *to, uint32_t no)
{
    struct sw_port *p = sw_ports_find(sw, no);
    struct of_port_stats s = {.port_no = no};
    struct port_counters n;
    if (!p)
        return;
    const struct qos_link_stats k = sw_port_losses(p);
    sw_port_read_counters(p, &n);
    s.rx_packets = n.rx_packets;
    s.tx_packets = n.tx_packets;
    s.rx_bytes = n.rx_bytes;
    s.tx_bytes = n.tx_bytes;
    s.rx_dropped = n.rx_dropped;
#define PUT_LOSS(name) s.name = k.name;
    SW_LINK_LOSSES(PUT_LOSS)
    s.tx_dropped +=
        n.tx_dropped; /* refused by the interface; k: accepted, but its own ring was full */
    split_duration(loop_now(sw->loop), p->created, &s.duration_sec, &s.duration_nsec);
    conn_dump_add(to, &of_list_port_stats, &s);
}

static void
read_losses(struct sw *sw, uint32_t port_no)
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        if (port_no == OFPP_ANY || port_no == p->no)
            sw_port_read_losses(sw, p);
}

static int
handle_port_stats(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    uint32_t no = ((const struct of_mp_port_request *)m->body)->port_no;
    if (no != OFPP_ANY && !sw_ports_find(sw, no))
        return OF_BAD_REQUEST(BAD_PORT);
    read_losses(sw, no);
    return dump_ports(sw, c, m, no, add_stats);
}

static int
may_port_stats(const struct slice_request *a)
{
    uint32_t no = ((const struct of_mp_port_request *)a->m->body)->port_no;
    return no == OFPP_ANY || slice_has_port(a->slice, no)
               ? 0
               : slice_deny_port(a, OF_BAD_REQUEST(EPERM), no);
}

const struct request request_port_stats = {
    .access = ACCESS_READ, .slice = may_port_stats, .blocks = true, .run = handle_port_stats};
