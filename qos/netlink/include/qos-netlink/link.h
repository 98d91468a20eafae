/* SPDX-License-Identifier: Apache-2.0 */
/* Network interfaces: state, counters, settings and events, by rtnetlink and ethtool.
 *
 * A handle stays in the network namespace in which it was opened.  Any thread, one at a time: of
 * all that ask the kernel, of any handle, one. */
#ifndef QOS_NETLINK_LINK_H
#define QOS_NETLINK_LINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct qos_link_stats {
    uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped, tx_dropped, rx_errors,
        tx_errors, rx_frame_err, rx_over_err, rx_crc_err, collisions;
};

struct qos_link_info {
    int ifindex;
    char name[IFNAMSIZ];
    char kind[IFNAMSIZ]; /* "bridge", "veth", ...; "": a device of its own */
    int master;          /* the interface that it is below, such as a bridge; 0: none */
    int linked; /* a veth's peer, what a VLAN is on, in the same network namespace; 0: none there */
    uint8_t mac[6];
    uint32_t mtu;
    uint32_t txqueuelen;
    uint32_t tx_queues;
    unsigned flags;  /* IFF_UP, IFF_RUNNING, IFF_LOWER_UP */
    bool cuts_tcp;   /* the driver cuts super-packets of TCP (tx-tcp-segmentation) */
    bool is_virtual; /* no driver's: veth, tun, VLAN, bond, ... */
    uint64_t speed;  /* bit/s; 0: unknown */
    bool full_duplex;
    uint32_t curr, advertised, supported, peer; /* OFPPF_ bits; 0: the driver reports none */
    struct qos_link_stats stats;
};

struct qos_link;

/* -errno. */
int qos_link_open(struct qos_link **l);
void qos_link_close(struct qos_link *l);

/* -ENODEV: no such interface; other -errno.  A failure leaves *out as it was. */
int qos_link_get_by_name(struct qos_link *l, const char *name, struct qos_link_info *out);
int qos_link_get_by_index(struct qos_link *l, int ifindex, struct qos_link_info *out);

/* Only the counters, without ethtool's system calls. */
int qos_link_get_stats(struct qos_link *l, int ifindex, struct qos_link_stats *out);

/* A flag on or off: IFF_UP, IFF_PROMISC. */
int qos_link_set_flag(struct qos_link *l, int ifindex, unsigned flag, bool on);

/* A pair of virtual interfaces: a super-packet that is sent by tx comes in by rx as its segments.  Named for
 * the interface of this index; a pair that was left behind is replaced.  -errno, and a sentence in
 * `why`. */
struct qos_link_cutter {
    int tx_ifindex, rx_ifindex; /* 0: there is none */
};
int qos_link_cutter_add(struct qos_link *l, int ifindex, struct qos_link_cutter *out, char *why,
                        size_t why_len);
void qos_link_cutter_del(struct qos_link *l, const struct qos_link_cutter *c);

enum qos_link_event_kind {
    QOS_LINK_CHANGED, /* it is new or has changed: get it again */
    QOS_LINK_GONE,
    QOS_LINK_TC,      /* one of its qdiscs or classes came, went or changed */
    QOS_LINK_OVERRUN, /* events were lost: look at all interfaces and queues (ifindex 0) */
};

struct qos_link_event {
    enum qos_link_event_kind kind;
    int ifindex;
    char name[IFNAMSIZ]; /* QOS_LINK_CHANGED only */
    unsigned flags;      /* likewise */
    uint32_t portid; /* the socket that caused it (qos_netlink_portid()); 0: the kernel itself */
};

typedef void qos_link_fn(void *ctx, const struct qos_link_event *event);

struct qos_link_monitor;

/* Subscribes to the events of all interfaces; qos_link_monitor_read() calls fn.  -errno. */
int qos_link_monitor_open(struct qos_link_monitor **w, qos_link_fn *fn, void *ctx);

/* Drops QOS_LINK_TC events that this socket caused (qos_netlink_portid()), by a filter in the
 * kernel.  Best effort: fn must be prepared for them. */
void qos_link_monitor_ignore(struct qos_link_monitor *w, uint32_t portid);
void qos_link_monitor_close(struct qos_link_monitor *w);

/* Readable when there are events. */
int qos_link_monitor_fd(const struct qos_link_monitor *w);

/* Calls fn for each event that waits, up to a thousand, and does not block.  -errno: no more events will
 * come. */
int qos_link_monitor_read(struct qos_link_monitor *w);

#endif
