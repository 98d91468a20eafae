/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: one network interface each, its receive ring and its transmit queues.
 *
 * Reading and sending is done by workers, a batch at a time, without locks, allocations or system
 * calls per packet.  Ports are made, changed and removed by the control thread only; workers see
 * them through RCU.
 *
 * A port's interface is brought up when it is opened, and is in promiscuous mode until it is
 * closed; nothing else of it is changed, and it is not set down again.  The host's own stack still
 * hears what arrives: an interface that is a port should have no addresses (packet(7)).
 */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <packet/packet.h>

#include <net/if.h>

#define PORT_MAX   4094 /* highest port number; see normal.h */
#define PORT_BATCH 64

struct port;
struct port_io; /* a worker's side: packets queued for sending, its counters, its pool */

/* A port's counters, one row each.  A super-packet counts as its segments; bytes are without FCS, a
 * super-packet's headers once.
 *
 * PORT_TRAFFIC is in OpenFlow's port statistics, PORT_COUNTERS (the first two also there) in
 * the COUNTERS request.  W(name): counted by workers in struct port_worker, summed when read; it takes
 * a row and the statement that counts.  S(name): made of others when read (port_read_counters). */
#define PORT_TRAFFIC(W) W(rx_packets) W(rx_bytes) W(tx_packets) W(tx_bytes)

#define PORT_COUNTERS(W, S)                                                                        \
    W(rx_dropped)        /* ring or shaper full, or the frame longer than 64 KB */                 \
    W(tx_dropped)        /* queue full, frame longer than the MTU, interface down, ... */          \
    W(tx_no_queue)       /* sent by the default class: no such queue, or it has queues below it */ \
    S(rx_no_queue)       /* the same in the shaper of what enters */                               \
    S(queue_sockets)     /* transmit sockets open now */                                           \
    S(ring_bytes)        /* memory of the receive rings now, the shaper's too */                   \
    W(packet_in_dropped) /* the ring to the control thread was full */

struct port_counters {
#define PORT_COUNTER_MEMBER(name) uint64_t name;
    PORT_TRAFFIC(PORT_COUNTER_MEMBER)
    PORT_COUNTERS(PORT_COUNTER_MEMBER, PORT_COUNTER_MEMBER)
};

/* How a port moves packets: AF_PACKET rings, libpcap (where those are not to be had), a tap.
 * One row each: af-packet.c, pcap.c, tap.c. */
struct port_backend;

struct port_config {
    uint32_t port_no;
    char name[IFNAMSIZ]; /* the interface */
    int ifindex;
    const char *backend; /* "packet", "pcap", "tap"; NULL: the best that works */
    unsigned n_workers;  /* that use it, ids 0 .. n_workers - 1; 0: one */
    bool fanout;         /* all of them receive, each its share of the flows (PACKET_FANOUT); else
                         * one of them does, whichever it is, and all may send */
    size_t ring_bytes;   /* receive ring, of all workers together; 0: see port_rings_limit_set */
    size_t slot_bytes; /* a frame's place in the ring; 0: 2048; longer frames go beside the ring */
    bool no_rx, no_tx; /* one way only ("packet") */
};

/* Once, at the start: raises RLIMIT_NOFILE as far as it goes.  -errno. */
int port_global_init(void);
/* Receive rings, control thread only.  All ports that are not told how much share `limit` bytes: the
 * next `ports` of them equally, each that comes later a quarter of what is left by then and no more
 * than those; none more than 16 MB, none less than 256 KB (128 KB a worker with fanout), whatever
 * the limit.  0: a sixteenth of main memory, at most 256 MB, of which what other programs' rings in
 * this network namespace have is taken off. */
void port_rings_limit_set(uint64_t limit, unsigned ports);
uint64_t port_rings_limit(void);
uint64_t port_rings_bytes(void); /* that there are now */
/* At the end, after the last port_close and port_io_free: waits (some seconds at most) until
 * their sockets, which the kernel is slow to close, are closed. */
void port_global_exit(void);

/* Opens the interface (for "tap": makes it), `c->ifindex` being found by name.  -errno, and a
 * sentence in `why`. */
int port_open(const struct port_config *c, struct port **out, char *why, size_t why_len);
void port_close(struct port *p); /* no worker may see it any more; NULL is allowed */

uint32_t port_no(const struct port *p);
const char *port_name(const struct port *p);
int port_ifindex(const struct port *p);
void port_read_counters(const struct port *p, struct port_counters *out);

/* What the control thread tells the packet side (atomic, any time). */
void port_set_flags(struct port *p, uint32_t ofppc_config, bool link_down);
uint32_t port_config_bits(const struct port *p); /* OFPPC_ */
bool port_is_up(const struct port *p);           /* link up and not OFPPC_PORT_DOWN */

/* A queue (1 .. OFP_QOS_QUEUE_MAX) exists, or no longer does, on this port: packets with set_queue
 * are sent with skb->priority 0x00010000 | queue_id.  A worker's socket for it is opened when it is
 * first used.
 * most: what the queue gets at most, bit/s; 0: no limit is known.  A super-packet that would take it
 * longer than PORT_SUPER_MS is sent as its segments: others' packets would have to wait for all of
 * it, and small shares would be given out in large pieces.  Queue 0: packets without a queue.
 * -ERANGE, -ENOMEM. */
#define PORT_SUPER_MS 1
int port_queue_set(struct port *p, uint32_t queue_id, uint64_t most);
void port_queue_del(struct port *p, uint32_t queue_id);

/* What enters by a port may have to wait in queues of the kernel before it goes through the tables
 * (docs/ingress.md): packets that are sent to `to` come out of `from`, received by the port. */
struct port_shaper {
    struct port *to;   /* has the queues; sends only */
    struct port *from; /* receives only; its number and flags are the port's */
};

/* Opens the two interfaces and shows them to the workers; there must be none yet.  They are brought
 * up.  -errno, and a sentence in `why`. */
int port_shaper_open(struct port *p, const char *to, const char *from, char *why, size_t why_len);
/* Workers find none any more; what is returned (NULL: there was none) is closed when they no longer
 * use it.  Packets in between are lost. */
struct port_shaper *port_shaper_take(struct port *p);
void port_shaper_close(struct port_shaper *s);               /* NULL is allowed */
const struct port_shaper *port_shaper(const struct port *p); /* any thread; NULL: none */

/* ------------------------------------------------------------------ worker side */

/* A turn of a worker: port_rx on each of its ports, the packets' backends, port_io_flush,
 * port_rx_done on each port, packet_pool_reset. */

struct port_io *port_io_new(unsigned worker, size_t pool_bytes); /* NULL: no memory */
void port_io_free(struct port_io *w); /* before or after its ports are closed */
struct packet_pool *port_io_pool(struct port_io *w);

/* Up to `max` packets (at most PORT_BATCH), parsed, not yet released.  The bytes stay valid until
 * port_rx_done, which gives all received so far back to the ring (not needed after 0 packets).  A
 * port that is administratively down or OFPPC_NO_RECV gives none; what arrives is dropped (DROP_port_down). */
unsigned port_rx(struct port *p, struct port_io *w, struct packet *out, unsigned max);
void port_rx_done(struct port *p, struct port_io *w);

/* Queues the packet's present bytes for sending through its queue; they are used until
 * port_io_flush and the packet becomes shared.  0, or an EDIT_DROP reason (not counted in
 * port_io_drops): the port is down, or OFPPC_NO_FWD. */
int port_tx(struct port *p, struct port_io *w, struct packet *pkt);

/* Sends what is queued on all ports, in order per port and queue.  Drops are counted per port and
 * reason; nothing is retried. */
void port_io_flush(struct port_io *w);

/* For poll: the descriptor that becomes readable when the port has packets for this worker; -1:
 * none has.  An error condition (interface down) is cleared by calling port_rx some times. */
int port_rx_fd(const struct port *p, unsigned worker);

/* Every worker has packets of its own on this port; else just one may receive. */
bool port_fans_out(const struct port *p);

/* One that came by the port was not taken to be told to the controllers. */
void port_count_packet_in_dropped(struct port *p, const struct port_io *w);

/* Dropped packets by reason, on this worker. */
uint64_t *port_io_drops(struct port_io *w); /* DROP_N counters */

#endif
