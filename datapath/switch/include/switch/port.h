/* SPDX-License-Identifier: Apache-2.0 */
/* A port as the control thread keeps it.  It stays, with its number and its queues' model, when its
 * interface goes away.  The room ports/ adds, changes and removes them; others read. */
#ifndef SWITCH_PORT_H
#define SWITCH_PORT_H

#include <port/port.h>

#include <qos-netlink/link.h>
#include <qos/sched/sched.h>

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct port;
struct sw;

#define SW_OWNER_LEN 160
#define SW_UNCUT_LEN 160

struct sw_port {
    uint32_t no;
    char name[IFNAMSIZ];
    struct qos_link_info link; /* as last read */
    struct port_files *files;  /* its interface is files (port-files.c); NULL: as usual */
    bool queues_only;          /* its packets are left to the kernel: workers don't have it */
    struct port *port;         /* NULL: the interface is missing */
    uint32_t config;           /* OFPPC_ */
    uint64_t created;          /* ns */
    struct port_counters past; /* of interfaces that it had, and of shapers */
    /* What to subtract from link.stats: the interface's own when it became the port's, less what
     * earlier ones had counted */
    struct qos_link_stats base;
    bool tc_changed;      /* another program changed its queues: read them again */
    bool link_event;      /* an event of the interface is still to be handled */
    bool link_gone;       /* that event: the interface went away */
    bool link_reported;   /* controllers know whether the port is up, the rest of the event waits */
    unsigned link_flags;  /* as of the last event */
    uint32_t link_events; /* their number */
    bool expected;        /* its interface has not been there yet */
    bool offload_waits;   /* its packets are to be handled in the kernel, and aren't yet */
    bool is_taken;        /* its interface has come, but belongs to somebody else */
    bool has_senders;     /* sockets send what enters by it (megaflow/cut.h) */
    bool loss_said;       /* the log has said what of its super-packets is lost */
    int lock; /* descriptor + 1: says that the interface is ours (port-owner.c); 0: none */
    char master[SW_OWNER_LEN]; /* "bridge br-lan", which has the interface, too; "": none */
    char rival[SW_OWNER_LEN];  /* another switch that has the interface, too (--force); "": none */
    char uncut
        [SW_UNCUT_LEN]; /* why the kernel took no programs for it (megaflow/cut.h); "": it did */
};

/* The configuration (OFPPC_) of a port of `queues_only`, which no port-mod changes. */
#define SW_QUEUES_ONLY (OFPPC_NO_RECV | OFPPC_NO_FWD | OFPPC_NO_FLOOD | OFPPC_NO_PACKET_IN)

/* What defaults of its queues depend on. */
static inline struct qos_env
sw_port_env(const struct sw_port *p)
{
    return (struct qos_env){.mtu = p->link.mtu,
                            .txqueuelen = p->link.txqueuelen,
                            .tx_queues = p->link.tx_queues,
                            .speed = p->link.speed};
}

/* Returns NULL if there is none; also finds OFPP_LOCAL. */
struct sw_port *sw_ports_find(const struct sw *sw, uint32_t no);
/* Returns the next port above `no` (0: the first), or NULL.  OFPP_LOCAL is last. */
struct sw_port *sw_ports_next(const struct sw *sw, uint32_t no);
/* Of an interface that is attached now. */
struct sw_port *sw_ports_by_ifindex(const struct sw *sw, int ifindex);

/* NULL: no port has this name. */
struct sw_port *sw_ports_by_name(const struct sw *sw, const char *name);

#endif
