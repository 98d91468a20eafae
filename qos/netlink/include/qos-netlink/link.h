/* SPDX-License-Identifier: Apache-2.0 */
/* Network interfaces: their state, statistics, settings, and news of them.
 *
 * rtnetlink(7), ethtool's ETHTOOL_GLINKSETTINGS (linux/ethtool.h).  All functions act on the
 * network namespace the handle was opened in.
 */
#ifndef QOS_NETLINK_LINK_H
#define QOS_NETLINK_LINK_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

struct qos_link_stats {
    uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes, rx_dropped, tx_dropped, rx_errors,
        tx_errors, rx_frame_err, rx_over_err, rx_crc_err, collisions;
};

struct qos_link_info {
    int ifindex;
    char name[IFNAMSIZ];
    uint8_t mac[6];
    uint32_t mtu;
    uint32_t txqueuelen;
    unsigned flags; /* IFF_UP, IFF_RUNNING, IFF_LOWER_UP */
    uint64_t speed; /* bit/s; 0: unknown */
    bool full_duplex;
    uint32_t curr, advertised, supported, peer; /* OFPPF_ bits; 0 where ethtool has none */
    struct qos_link_stats stats;
};

struct qos_link;

/* -errno. */
int qos_link_open(struct qos_link **l);
void qos_link_close(struct qos_link *l);

/* -ENODEV: no such interface; other -errno.  *out is left alone on failure. */
int qos_link_get_by_name(struct qos_link *l, const char *name, struct qos_link_info *out);
int qos_link_get_by_index(struct qos_link *l, int ifindex, struct qos_link_info *out);

/* Only the counters; one round trip. */
int qos_link_get_stats(struct qos_link *l, int ifindex, struct qos_link_stats *out);

/* IFF_UP on or off. */
int qos_link_set_up(struct qos_link *l, int ifindex, bool up);

enum qos_link_event_kind {
    QOS_LINK_CHANGED, /* new, or something of it changed: get it anew */
    QOS_LINK_GONE,
    QOS_LINK_TC,      /* a qdisc or class of it came, went or changed */
    QOS_LINK_OVERRUN, /* events were lost: look at everything again (ifindex 0) */
};

struct qos_link_event {
    enum qos_link_event_kind kind;
    int ifindex;
    char name[IFNAMSIZ]; /* of CHANGED */
    uint32_t portid; /* who asked for it: qos_netlink_portid() for our own requests, 0 the kernel */
};

typedef void qos_link_fn(void *ctx, const struct qos_link_event *event);

struct qos_link_watch;

/* Subscribes to the news of all interfaces; fn is called from qos_link_watch_read.  -errno. */
int qos_link_watch_open(struct qos_link_watch **w, qos_link_fn *fn, void *ctx);

/* From now on nothing is told of qdiscs and classes that this socket asked for (qos_netlink_portid):
 * the kernel keeps that to itself.  Best effort. */
void qos_link_watch_ignore(struct qos_link_watch *w, uint32_t portid);
void qos_link_watch_close(struct qos_link_watch *w);

/* Readable when there is news (non-blocking). */
int qos_link_watch_fd(const struct qos_link_watch *w);

/* Reads what there is and calls fn for each event.  <0: -errno, the watch is of no more use. */
int qos_link_watch_read(struct qos_link_watch *w);

#endif
