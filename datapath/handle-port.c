/* SPDX-License-Identifier: Apache-2.0 */
#include "switch.h"

#include <errno.h>
#include <stdlib.h>

#define BAD_REQUEST(code) OF_ERR(OFPET_BAD_REQUEST, OFPBRC_##code)

int
handle_port_mod(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return ports_mod(sw, m->body);
}

static bool
desc_step(struct dump *to, void *ctx)
{
    struct sw *sw = ctx;
    uint32_t no = 0;
    for (const struct sw_port *p; (p = ports_next(sw, no)); no = p->no) {
        struct of_port d;
        ports_describe(p, &d);
        dump_add(to, &of_list_ports, &d);
    }
    return false;
}

int
handle_port_desc(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return conn_dump(c, m, desc_step, NULL, sw);
}

/* What the switch moved is its own count; what the interface lost on the way is the kernel's. */
static void
add_stats(struct sw *sw, struct dump *to, const struct sw_port *p)
{
    struct of_port_stats s = {.port_no = p->no};
    struct port_counters n = {0};
    struct qos_link_stats k = p->base;
    if (p->port) {
        port_read_counters(p->port, &n);
        link_get_stats(sw->link, p->link.ifindex, &k);
    }
    s.rx_packets = n.rx_packets;
    s.tx_packets = n.tx_packets;
    s.rx_bytes = n.rx_bytes;
    s.tx_bytes = n.tx_bytes;
    s.rx_dropped = n.rx_dropped;
    /* What the interface refused, and what it took and then lost: its own ring was full. */
    s.tx_dropped = n.tx_dropped + k.tx_dropped - p->base.tx_dropped;
    s.rx_errors = k.rx_errors - p->base.rx_errors;
    s.tx_errors = k.tx_errors - p->base.tx_errors;
    s.rx_frame_err = k.rx_frame_err - p->base.rx_frame_err;
    s.rx_over_err = k.rx_over_err - p->base.rx_over_err;
    s.rx_crc_err = k.rx_crc_err - p->base.rx_crc_err;
    s.collisions = k.collisions - p->base.collisions;
    split_duration(loop_now(sw->loop), p->created, &s.duration_sec, &s.duration_nsec);
    dump_add(to, &of_list_port_stats, &s);
}

struct port_dump {
    struct sw *sw;
    uint32_t no;
};

static bool
stats_step(struct dump *to, void *ctx)
{
    struct port_dump *d = ctx;
    const struct sw_port *p;
    if (d->no != OFPP_ANY) {
        if ((p = ports_find(d->sw, d->no)))
            add_stats(d->sw, to, p);
        return false;
    }
    for (uint32_t no = 0; (p = ports_next(d->sw, no)); no = p->no)
        add_stats(d->sw, to, p);
    return false;
}

int
handle_port_stats(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    uint32_t no = ((const struct of_mp_port_request *)m->body)->port_no;
    if (no != OFPP_ANY && !ports_find(sw, no))
        return BAD_REQUEST(BAD_PORT);
    struct port_dump *d = malloc(sizeof *d);
    if (!d)
        return -ENOMEM;
    *d = (struct port_dump){sw, no};
    return conn_dump(c, m, stats_step, free, d);
}
