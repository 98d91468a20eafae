/* SPDX-License-Identifier: Apache-2.0 */
/* The switch as the control thread sees it: everything but the packets. */
#ifndef SWITCH_SWITCH_H
#define SWITCH_SWITCH_H

#include <control/bundle.h>
#include <control/channel.h>
#include <switch/dp.h>
#include <switch/kernel-steps.h>

#include <qos-netlink/kernel.h>
#include <qos-netlink/link.h>
#include <qos/model/model.h>

#define SW_NAME "ofqos"

struct buffers;
struct commit;
struct flow_list;

/* One port: stays, with its number, when its interface goes away for a while. */
struct sw_port {
    uint32_t no;
    char name[IFNAMSIZ];
    struct qos_link_info link;  /* as last seen */
    struct port *port;          /* NULL: the interface is not there */
    uint32_t config;            /* OFPPC_ */
    uint64_t created;           /* ns */
    struct qos_link_stats base; /* the interface's counters when it became a port */
    bool tc_changed;            /* somebody else's tc was at work: read the queues again */
    bool look;                  /* there is news of the interface, to be dealt with */
    bool gone;                  /* it is that the interface went away */
};

/* What a port has (qos-changes.h). */
struct queue_snapshot {
    uint32_t port_no;
    bool heard;
    struct qos_entry *v;
    size_t n, cap;
};

/* A port whose queues follow its interface (port-queues.c). */
struct port_catch_up {
    struct sw_port *p;
    bool back; /* the interface is another, in the place of one that went away */
    struct queue_snapshot before;
    uint32_t n_queues; /* that it had */
};

struct sw_options {
    uint64_t datapath_id;
    unsigned n_tables;
    unsigned n_workers;
    bool fanout;            /* all workers read each port, where its backend can share it out */
    uint32_t cache_entries; /* a worker; 0: no cache */
    const char *backend;    /* NULL, "packet", "pcap" */
    const char *local_port; /* name of the tap, NULL: none */
    bool no_slicing;        /* leave traffic control alone */
    bool qos_keep;          /* leave the queues where they are at the end */
    enum qos_foreign qos_foreign;
    struct sw_desc {
        const char *mfr, *hw, *sw, *serial, *dp;
    } desc;         /* of OFPMP_DESC (7.3.5.1); NULL: our own */
    bool fail_open; /* without a controller packets go by OFPP_NORMAL */
    struct channel_options channel;
    struct limits limits;
};

struct sw {
    struct sw_options opt;
    struct loop *loop;
    struct channel *channel;
    struct dp dp;

    struct qos_kernel *kernel;
    struct qos *qos;
    struct qos_link *link;
    struct qos_link_watch *watch;
    struct loop_io *watch_io;

    struct sw_port *ports[PORT_MAX + 1];
    uint32_t n_ports; /* highest number in use */
    struct sw_port local;

    char dp_desc[OFP_DESC_STR_LEN];
    uint16_t miss_send_len;
    uint64_t packet_outs_lost;
    struct flow_list *flow_list; /* of all flows, which somebody is being sent; NULL */
    size_t flows_listed;         /* on all lists */
    uint32_t qos_changes;        /* that were told of */
    uint64_t packet_ins_unheard; /* there was nobody who wanted them */
    struct bundle_room bundles;
    struct kernel_steps steps;
    struct port_catch_up catch_up; /* one at a time */
    struct commit *committing;     /* a bundle, over many turns; NULL */
    struct loop_timer *commit_timer;
    bool controlled; /* a controller is connected, here or at a relay */
    uint64_t standalone_times;
    uint64_t links_not_followed;
    /* times the kernel refused what a link's new speed or MTU changes */ /* how often the switch was left to itself */
    uint64_t started;                                                     /* loop time, ns */
    struct loop_timer *expiry;
    struct loop_timer *sync_timer; /* foreign changes to a port's queues are read again by it */
    int packet_in_fd;
    struct loop_io *packet_in_io;
    struct buffers *buffers;
};

int sw_new(const struct sw_options *opt, struct sw **out, char *why, size_t why_len);
void sw_free(struct sw *sw); /* removes what the switch put on the interfaces */

struct compile_env sw_compile_env(struct sw *sw);

/* ------------------------------------------------------------------ ports (ports.c) */

/* Adds an interface as a port; no 0: the lowest free number. */
int sw_ports_add(struct sw *sw, const char *name, uint32_t no, char *why, size_t why_len);
/* Removes a port for good, with its queues; its number is free again.  -ENOENT. */
int sw_ports_del(struct sw *sw, uint32_t no);
void sw_ports_close_all(struct sw *sw);
struct sw_port *sw_ports_find(const struct sw *sw, uint32_t no); /* also OFPP_LOCAL; NULL */
/* The next port above `no` in numerical order; 0: the first; NULL: no more.  OFPP_LOCAL is last. */
struct sw_port *sw_ports_next(const struct sw *sw, uint32_t no);
int sw_ports_watch(struct sw *sw);
/* Deals with news of interfaces, until there is work for many turns; at its end again. */
void sw_ports_look(struct sw *sw);
/* The interface is back, with its queues: tells of it. */
void sw_ports_returned(struct sw *sw, const struct sw_port *p);
/* What enters by the port goes through a shaper from now on, without queues yet; NULL: no longer. */
void sw_ports_set_shaper(struct sw *sw, uint32_t no, const struct qos_shaper *s);
void sw_ports_describe(const struct sw_port *p, struct of_port *out);
int sw_ports_mod(struct sw *sw, const struct of_port_mod *m);

/* ------------------------------------------------------------------ their queues (port-queues.c) */

/* A new port has the queues that an earlier run left. */
void sw_port_queues_adopt(struct sw *sw, const struct sw_port *p);
/* The port's interface is back, and gets the queues that it had; then sw_ports_returned.  Or the link has
 * another speed or MTU.  Both may take many turns; not while a commit is under way. */
void sw_port_queues_back(struct sw *sw, struct sw_port *p);
void sw_port_queues_update(struct sw *sw, struct sw_port *p);

/* ------------------------------------------------------------------ packet-in, buffers */

int sw_packet_in_start(struct sw *sw);
void sw_packet_in_stop(struct sw *sw);

struct buffered {
    const uint8_t *data;
    uint32_t len;
    uint32_t in_port;
};
/* The packet kept under this number, until the next is kept or it is dropped.  OFPBRC_BUFFER_EMPTY
 * when it has been used, OFPBRC_BUFFER_UNKNOWN when it is no longer or was never there. */
int sw_buffers_find(const struct buffers *b, uint32_t id, const struct buffered **out);
void sw_buffers_drop(struct buffers *b, uint32_t id);
uint64_t sw_buffers_replaced(const struct buffers *b); /* by others, while nobody had used them */

/* Sends a packet through a worker; the program is given up.  A worker that takes nothing for a second
 * costs the packet, which is counted. */
void sw_packet_out(struct sw *sw, struct program *program, uint32_t in_port, const uint8_t *data,
                   uint32_t len);

/* ------------------------------------------------------------------ handlers */

typedef int (*message_handler)(struct sw *sw, struct conn *c, const struct of_msg *m);

int sw_handle_message(void *sw, struct conn *c, const struct of_msg *m);

/* switch/handlers/flow.c */
int handle_flow_mod(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_packet_out(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_aggregate(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_table_stats(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_table_mod(struct sw *sw, struct conn *c, const struct of_msg *m);
/* A flow-mod, and what is to be done once it is in effect. */
int sw_flow_mod(struct sw *sw, const struct of_flow_mod *q);
int sw_flow_mod_done(struct sw *sw, const struct of_flow_mod *q);
void sw_flow_removed(void *sw, struct flow *f, uint8_t reason, uint64_t now);
void sw_flows_expire(void *sw);
void sw_flows_watch(struct sw *sw);

/* flow-dump.c */
int handle_flow_stats(struct sw *sw, struct conn *c, const struct of_msg *m);

/* switch/handlers/table.c */
int handle_table_features(struct sw *sw, struct conn *c, const struct of_msg *m);

/* switch/handlers/group.c */
int handle_group_mod(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_group_stats(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_group_desc(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_group_features(struct sw *sw, struct conn *c, const struct of_msg *m);

/* switch/handlers/meter.c */
int handle_meter_mod(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_meter_stats(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_meter_config(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_meter_features(struct sw *sw, struct conn *c, const struct of_msg *m);

/* switch/handlers/port.c */
int handle_port_mod(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_port_desc(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_port_stats(struct sw *sw, struct conn *c, const struct of_msg *m);

/* switch/handlers/queue.c: the QoS extension, and queues as standard OpenFlow sees them */
int handle_queue_stats(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_queue_get_config(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_qos(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_qos_dump(struct sw *sw, struct conn *c, const struct of_msg *m);

/* A refusal in the terms of a message of the extension, of the experimenter's, or of BOFUSS's queue
 * messages. */
enum envelope { NATIVE, EXPERIMENTER, QUEUE_MESSAGE };
int sw_qos_refuse(struct conn *c, const struct of_msg *m, enum envelope env,
                  const struct qos_error *e);

/* A message with a QoS request (bundle_is_qos): its envelope, what it asks for, and carrying that
 * out. */
enum envelope sw_qos_envelope(const struct of_msg *m);
int sw_qos_decode(const struct of_msg *m, struct qos_request *r, struct qos_error *e);
int sw_qos_execute(struct sw *sw, const struct qos_request *r, struct qos_error *e);

/* queue-message.c: BOFUSS's queue messages as QoS requests.  `data` follows the experimenter's
 * header. */
int sw_queue_message_decode(uint32_t exp_type, struct of_bytes data, struct qos_request *r,
                            struct qos_error *e);

/* switch/handlers/bundle.c */
extern const struct bundle_ops sw_bundle_ops;
int sw_commit_init(struct sw *sw);
void sw_commit_stop(struct sw *sw); /* connections are gone */
void sw_commit_forget(struct sw *sw, const struct conn *c);
bool sw_commit_under_way(const struct sw *sw);
/* Whether this request may be handled now. */
bool sw_commit_allows(const struct sw *sw, const struct conn *c, struct of_bytes frame);

/* switch/handlers/experimenter.c: experimenter messages */
int handle_experimenter(struct sw *sw, struct conn *c, const struct of_msg *m);
int handle_mp_experimenter(struct sw *sw, struct conn *c, const struct of_msg *m);

/* qos-changes.c */
int handle_monitor(struct sw *sw, struct conn *c, const struct of_msg *m);

/* switch/handlers/counters.c */
int handle_counters(struct sw *sw, struct conn *c, const struct of_msg *m);

/* fail.c: what becomes of packets while no controller is connected (6.3.3).  To be called when that
 * may have changed. */
void sw_fail_update(struct sw *sw);
/* RELAY */
int sw_fail_relay(struct sw *sw, struct conn *c, const uint8_t *p, struct qos_error *e);

/* switch/handlers/status.c */
int handle_status(struct sw *sw, struct conn *c, const struct of_msg *m);

/* switch/handlers/kernel.c: sw_kernel_ask at the start */
void sw_kernel_ask(struct sw *sw);
int handle_kernel(struct sw *sw, struct conn *c, const struct of_msg *m);

/* switch/handlers/qos-ports.c */
int handle_qos_ports(struct sw *sw, struct conn *c, const struct of_msg *m);

/* The duration members of statistics. */
static inline void
split_duration(uint64_t now, uint64_t since, uint32_t *sec, uint32_t *nsec)
{
    uint64_t d = now > since ? now - since : 0;
    *sec = (uint32_t)(d / 1000000000);
    *nsec = (uint32_t)(d % 1000000000);
}

/* Counters that are not kept are all ones; sums leave them alone. */
static inline void
add_counter(uint64_t *sum, uint64_t n)
{
    if (n != UINT64_MAX)
        *sum += n;
}

/* A list of elements for a reply body. */
#define OF_LIST(v_, n_) ((struct of_list){.n = (n_), .v = (void **)(v_)})

#endif
