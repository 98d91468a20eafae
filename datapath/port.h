/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: one network interface each, its receive ring and its transmit queues.
 *
 * Reading and sending is done by workers, a batch at a time, without locks, allocations or system
 * calls per packet.  Ports are made, changed and removed by the control thread only; workers see
 * them through RCU.
 */
#ifndef DATAPATH_PORT_H
#define DATAPATH_PORT_H

#include "packet.h"

#include <net/if.h>

#define PORT_MAX      4096 /* highest port number */
#define PORT_MAX_QUEUE 0xffef
#define PORT_BATCH    64

struct port;
struct worker_io; /* a worker's side: packets queued for sending, its counters, its pool */

struct port_counters {
    uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
    uint64_t rx_dropped, tx_dropped;
    uint64_t tx_no_queue; /* set_queue named a queue that isn't there: went to the default class */
    uint64_t queue_sockets; /* transmit sockets open now */
};

/* How a port moves packets: AF_PACKET rings, libpcap (where those are not to be had), a tap.
 * One row a way; io-packet.c, io-pcap.c, io-tap.c. */
struct port_io_ops;

struct port_config {
    uint32_t port_no;
    char name[IFNAMSIZ]; /* the interface */
    int ifindex;
    const char *io; /* "packet", "pcap", "tap"; NULL: the best that works */
    unsigned n_workers;
};

/* Opens the interface.  -errno, and a sentence in `why`. */
int port_open(const struct port_config *c, struct port **out, char *why, size_t why_len);
void port_close(struct port *p); /* no worker may see it any more */

uint32_t port_no(const struct port *p);
const char *port_name(const struct port *p);
int port_ifindex(const struct port *p);
void port_read_counters(const struct port *p, struct port_counters *out);

/* What the control thread tells the packet side (atomic, any time). */
void port_set_flags(struct port *p, uint32_t ofppc_config, bool link_down);
uint32_t port_config_bits(const struct port *p); /* OFPPC_ */
bool port_is_up(const struct port *p);           /* link up and not OFPPC_PORT_DOWN */

/* A queue exists (or no longer does) on this port.  Its socket is opened when it is first used. */
int port_queue_add(struct port *p, uint32_t queue_id);
void port_queue_del(struct port *p, uint32_t queue_id);
/* Whether the port has a queue tree at all; without one nothing needs a priority. */

/* ------------------------------------------------------------------ worker side */

struct worker_io *worker_io_new(unsigned worker, size_t pool_bytes);
void worker_io_free(struct worker_io *w);
struct packet_pool *worker_io_pool(struct worker_io *w);

/* Up to `max` packets (at most PORT_BATCH), parsed, not yet released.  The bytes stay valid until
 * port_rx_done, which gives all received so far back to the ring. */
unsigned port_rx(struct port *p, struct worker_io *w, struct packet *out, unsigned max);
void port_rx_done(struct port *p, struct worker_io *w);

/* Queues the packet's present bytes for sending through its queue; they are used until
 * worker_io_flush and the packet becomes shared.  0, or an EDIT_DROP reason. */
int port_tx(struct port *p, struct worker_io *w, struct packet *pkt);

/* Sends what is queued on all ports. Drops are counted per port and reason. */
void worker_io_flush(struct worker_io *w);

/* For poll: the descriptor that becomes readable when the port has packets for this worker. */
int port_rx_fd(const struct port *p, unsigned worker);

/* Dropped packets by reason, on this worker. */
uint64_t *worker_io_drops(struct worker_io *w); /* DROP_N counters */

#endif
