/* SPDX-License-Identifier: Apache-2.0 */
/* Ports: one network interface each, its receive ring and its transmit queues.
 *
 * Workers receive and send batches, without locks, allocations or system calls per packet.  Only
 * the control thread opens, changes and closes ports; workers see them through RCU.
 *
 * Opening a port sets its interface up, and promiscuous until the port is closed; nothing else of
 * the interface changes, and closing does not set it down.  The host's own stack also receives what
 * arrives, so an interface that is a port should have no addresses (packet(7)).
 */
#ifndef PORT_PORT_H
#define PORT_PORT_H

#include <packet/drop-log.h>
#include <packet/packet.h>

#include <net/if.h>

#define PORT_MAX   4094 /* highest port number; see normal.h */
#define PORT_BATCH 64

struct port;
struct port_io; /* a worker's side: packets queued for sending, drop counters, packet pool */

/* A port's counters, one row each.  A super-packet counts as its segments, their headers included;
 * bytes are without FCS.
 *
 * PORT_TRAFFIC is in OpenFlow's port statistics, PORT_COUNTERS (the first two also there) in the
 * COUNTERS request.  W(name): counted by workers in struct port_worker, summed when read; it takes
 * a row and the statement that counts.  S(name): made of others when read (port_read_counters).
 * G(name): what there is now, not a count. */
#define PORT_TRAFFIC(W) W(rx_packets) W(rx_bytes) W(tx_packets) W(tx_bytes)

#define PORT_COUNTERS(W, S, G)                                                                     \
    W(rx_dropped)        /* ring or shaper full, or the frame longer than 64 KB */                 \
    W(tx_dropped)        /* queue full, frame longer than the MTU, interface down, ... */          \
    W(tx_no_queue)       /* sent by the default class: no such queue                            */ \
    S(rx_no_queue)       /* the same in the shaper of what enters */                               \
    G(queue_sockets)     /* transmit sockets open now */                                           \
    G(ring_bytes)        /* memory of the receive rings now, the shaper's too */                   \
    W(packet_in_dropped) /* the ring to the control thread was full */

struct port_counters {
#define PORT_COUNTER_MEMBER(name) uint64_t name;
    PORT_TRAFFIC(PORT_COUNTER_MEMBER)
    PORT_COUNTERS(PORT_COUNTER_MEMBER, PORT_COUNTER_MEMBER, PORT_COUNTER_MEMBER)
};

/* How a port moves packets: AF_PACKET rings, libpcap (where there are no such rings), a tap, or not at all. */
struct port_backend;

/* A port out of files (pcap-file.c). */
struct port_files {
    char in[256], out[256]; /* "": nothing enters; what leaves is thrown away */
    bool recorded;          /* at the pace of the packets' times, not as fast as possible */
};

struct port_config {
    uint32_t port_no;
    char name[IFNAMSIZ]; /* the interface */
    int ifindex;
    const char
        *backend; /* "packet", "pcap", "tap", "file", "queues-only"; NULL: the best that works */
    unsigned n_workers; /* that use it, with ids 0 .. n_workers - 1; 0: one */
    bool fanout;        /* all workers receive, each a share of the flows (PACKET_FANOUT); else
                         * one of them does.  All may send. */
    size_t ring_bytes;  /* receive ring, of all workers together; 0: see port_rings_limit_set */
    bool grows;         /* it begins with less, and a larger ring may come (port_grow) */
    bool blocked;   /* its rings get nothing until they have the switch's filter, or port_unblock */
    uint8_t inside; /* of the packets that come in (packet/packet.h) */
    size_t slot_bytes; /* of a frame in the ring; 0: 2048.  Longer frames go beside the ring */
    bool no_rx, no_tx; /* one direction only ("packet") */
    const struct port_files *files; /* of "file"; they outlive the port */
};

/* At the start: raises RLIMIT_NOFILE as far as allowed.  -errno. */
int port_global_init(void);
/* Memory of receive rings (control thread).  Ports without ring_bytes share `limit` bytes: the next
 * `ports` of them equally, each later one gets a quarter of the rest, at most as much as the first.
 * Each gets 256 KB (128 KB a worker with fanout) to 16 MB, whatever the limit.  limit 0: a
 * sixteenth of main memory, at most 256 MB, less what other programs' rings in this network
 * namespace take.  A port whose rings may grow (port_grow) has its part reserved. */
void port_rings_limit_set(uint64_t limit, unsigned ports);
/* Announces that so many port_open follow at once; port_rings_ahead(0) comes after them.  Their
 * rings are made many at a time, which saves each a wait of some 10 ms in the kernel.  The later
 * ports of port_rings_limit_set share the rest equally, none getting more than a quarter. */
void port_rings_ahead(unsigned ports);
uint64_t port_rings_limit(void);
uint64_t port_rings_bytes(void); /* of all open rings */
/* At the end, after the last port_close and port_io_free: waits up to 5 seconds for their sockets,
 * which the kernel is slow to close. */
void port_global_exit(void);

/* Opens the interface by its name ("tap" makes it).  Returns -errno, and a sentence in `why`. */
int port_open(const struct port_config *c, struct port **out, char *why, size_t why_len);
void port_close(struct port *p); /* no worker may see it any more; NULL is allowed */

uint32_t port_no(const struct port *p);
uint32_t port_uid(const struct port *p); /* of all ports ever opened; never 0 */
const char *port_name(const struct port *p);
int port_ifindex(const struct port *p);
uint8_t port_inside(const struct port *p); /* port_config.inside */
void port_read_counters(const struct port *p, struct port_counters *out);
/* Without what there is now. */
void port_counters_add(struct port_counters *sum, const struct port_counters *n);

/* Flags, read by workers at any time.  What the controllers configure is set by the control thread; whether
 * the port is up (OFPPC_PORT_DOWN and its link), by whoever watches its interface, in any thread. */
void port_set_config(struct port *p, uint32_t ofppc_config); /* without OFPPC_PORT_DOWN */
void port_set_link(struct port *p, bool down, bool link_down);
void port_set_flags(struct port *p, uint32_t ofppc_config, bool link_down); /* both */
uint32_t port_config_bits(const struct port *p);                            /* OFPPC_ */
void port_watch(struct port *p, bool on); /* port_tx returns PORT_TX_WATCHED */
bool port_is_up(const struct port *p);    /* link up and not OFPPC_PORT_DOWN */

/* The interface's MTU, whenever it changes (control thread); 0, as at first: not known. */
void port_set_mtu(struct port *p, uint32_t mtu);

/* ------------------------------------------------------------------ the kernel's part */

/* Whether this kernel's packet sockets know super-packets of UDP (VIRTIO_NET_HDR_GSO_UDP_L4). */
bool port_takes_uso(void);

/* Packets of a port may be handled in the kernel (docs/explanation/offload.md), by a filter on its receive sockets
 * that lets only the others pass.  Control thread. */

/* The receive sockets, one a ring: how many there are, at most `max` of them in fd.  0: the backend has
 * no such sockets. */
unsigned port_rx_sockets(const struct port *p, int *fd, unsigned max);

void port_unblock(struct port *p); /* after port_config.blocked */

/* From now on the port adds to *done, atomically, the frames that it is done with.  Workers add
 * those that went back to the ring, dropped and skipped ones too, once a batch and after what the
 * frames became was sent.  Those that the ring lost are added when that is read (port_sync_done,
 * port_read_counters).  NULL: no longer; workers may still add until the next grace period. */
void port_set_done(struct port *p, uint64_t *done);

/* Call it about once a second while there is a `done`: adds the frames that the rings have lost.
 * passed: the frames that the filter has let pass so far.  If that has not changed and the rings
 * are empty, *done is set to the same number.  Until then it may be wrong by the frames that were
 * in the rings when the filter was set. */
void port_sync_done(struct port *p, const uint64_t *passed);

/* Any thread: whether there is a `done`, so the kernel may handle what comes in by the port. */
bool port_in_kernel(const struct port *p);

/* ------------------------------------------------------------------ rings that grow */

#define PORT_RINGS_MAX 64 /* of a port, as many workers: what is read or moved together */

/* A port of port_config.grows begins with rings of 4 MB, unless the memory for rings was set
 * (port_rings_limit_set).  Larger ones take their place, once, without a frame lost or doubled if the port has
 * the switch's filter.  Control thread.
 *
 * Look at port_is_filling about 20 times a second while it is: true if a ring was half full since the last look.
 * After three such looks, not long ago, port_is_to_grow; and from port_grow_soon on. */
bool port_is_filling(struct port *p);
bool port_is_to_grow(const struct port *p);
void port_grow_soon(struct port *p);

/* Begins to make the larger rings, in a thread: -errno.  Then look at port_growth every few ms.  -EBUSY: memory that
 * the ports have twice which grow now is not there; try again when one of them has done. */
int port_grow(struct port *p);

/* MADE: put the filter on those sockets, from when on they get the frames, and call port_grow_move.  DRAINS: a
 * worker still reads the old ring, which gets nothing any more.  NONE: all is done, or nothing was begun. */
enum port_growth { PORT_GROWTH_NONE, PORT_GROWTH_WAITS, PORT_GROWTH_MADE, PORT_GROWTH_DRAINS };
enum port_growth port_growth(struct port *p);
unsigned port_grow_sockets(const struct port *p, int *fd, unsigned max);
/* Workers must be told that the port's descriptors have changed.  filtered: they get frames already. */
void port_grow_move(struct port *p, bool filtered);
/* The filter is about to go: gives up, or waits up to some 50 ms until the old ring gets nothing. */
void port_grow_settle(struct port *p);

/* What the kernel must know to send by the port as port_tx does.  False: it can't send by it (the
 * port is down, not to be forwarded to, or has no interface with rings).  Control thread. */
struct port_kernel_output {
    int ifindex;
    uint32_t queue;    /* that takes the packet; 0: by none */
    uint32_t priority; /* of the skb */
    uint32_t longest;  /* frame; with an outermost 802.1Q tag VLAN_TAG longer */
    uint32_t super;    /* the longest super-packet */
};
bool port_kernel_output(const struct port *p, uint32_t queue, struct port_kernel_output *out);

/* Counts what the kernel did since the last call: rows that are summed over workers. */
void port_count_kernel(struct port *p, const struct port_counters *more);

/* ------------------------------------------------------------------ queues */

/* A queue (1 .. OFP_QOS_QUEUE_MAX) of this port exists, or no longer does.  Packets with set_queue
 * are sent with this skb->priority, which says the class (PORT_PRIORITY: that of the queue's own number); a worker opens a
 * socket for the queue when it first uses it.  Queue 0: packets without a queue.
 *
 * most: the queue's maximum rate, bit/s; 0: unknown, or its scheduler cuts super-packets itself.  One that would occupy
 * the queue for more than PORT_SUPER_MS is sent as its segments: otherwise other queues' packets wait for all of it,
 * and small shares are given out in large pieces.  -ERANGE, -ENOMEM. */
#define PORT_SUPER_MS           1
#define PORT_PRIORITY(queue_id) (UINT32_C(0x00010000) | (queue_id))
int port_queue_set(struct port *p, uint32_t queue_id, uint32_t priority, uint64_t most);
void port_queue_del(struct port *p, uint32_t queue_id);

/* Whether packets of queues are sampled for how long they wait (queue-clock.c).  Off at first; any thread. */
void port_queue_clocks(bool run);

/* How long the last sampled packet of the queue waited, us; false: there is none of the last PORT_WAITED_MS, but for
 * the time that it waited itself.  Only of packets that workers send; control thread. */
#define PORT_WAITED_MS 1100u
bool port_queue_waited(const struct port *p, uint32_t queue, uint32_t *us);

/* A detour through queues of the kernel for packets that enter by a port, before they go through
 * the tables (docs/explanation/ingress.md): what is sent to `to` is received from `from`. */
struct port_shaper {
    struct port *to; /* has the queues; sends only */
    /* Receives only, with the port's fanout; its number and flags are the port's. */
    struct port *from;
};

/* Opens the two interfaces, sets them up and shows them to the workers.  The port must have no
 * shaper yet.  Returns -errno, and a sentence in `why`. */
int port_shaper_open(struct port *p, const char *to, const char *from, char *why, size_t why_len);
/* Hides the shaper from the workers and returns it (NULL: there was none); close it once no worker
 * uses it.  Packets still in it are lost. */
struct port_shaper *port_shaper_take(struct port *p);
void port_shaper_close(struct port_shaper *s); /* NULL is allowed */
/* what it has counted, which is part of the port's counters */
void port_shaper_read_counters(const struct port_shaper *s, struct port_counters *out);
const struct port_shaper *port_shaper(const struct port *p); /* any thread; NULL: none */

/* ------------------------------------------------------------------ worker side */

/* A worker's batch: port_rx on one of its ports, the pipeline, port_io_flush, packet_pool_reset,
 * port_rx_done. */

struct port_io *port_io_new(unsigned worker, size_t pool_bytes); /* NULL: no memory */
void port_io_free(struct port_io *w); /* before or after its ports are closed */
struct packet_pool *port_io_pool(struct port_io *w);

/* Receives up to `max` packets (at most PORT_BATCH) and parses them.  Their bytes stay valid until
 * port_rx_done, which returns all received so far to the ring (not needed after 0 packets).  With
 * OFPPC_PORT_DOWN or OFPPC_NO_RECV what arrives is dropped (DROP_port_down). */
unsigned port_rx(struct port *p, struct port_io *w, struct packet *out, unsigned max);
void port_rx_done(struct port *p, struct port_io *w);

/* Whether a ring was found half full since the last call, and the control thread had not looked at it since it was. */
bool port_io_filled(struct port_io *w);

/* How long the next packet has been in the ring, ns; 0: there is none, or nobody knows. */
uint64_t port_rx_waited(const struct port *p, const struct port_io *w);

/* Queues the packet's present bytes for sending; they must stay until port_io_flush, and the packet
 * is marked shared.  Returns 0, or PORT_TX_WATCHED where it did so on a watched port, or an EDIT_DROP
 * reason that the caller counts: the port is down, or OFPPC_NO_FWD. */
#define PORT_TX_WATCHED (-1)
int port_tx(struct port *p, struct port_io *w, struct packet *pkt);

/* What port_tx would return now; this queue, and the class that would take its packet: 0 if the port
 * has no such queue.  Any thread. */
int port_tx_refusal(const struct port *p, const struct packet *pkt);
uint32_t port_tx_queue(const struct port *p, uint32_t queue);
uint32_t port_tx_class(const struct port *p, uint32_t queue);
bool port_receives(const struct port *p); /* neither OFPPC_PORT_DOWN nor OFPPC_NO_RECV */

/* Sends what is queued on all ports, in order per port and queue.  Counts drops per port and
 * reason; retries nothing. */
void port_io_flush(struct port_io *w);

/* Returns the descriptor that becomes readable when the port has packets for this worker, or -1.
 * After the interface went down it reports an error until SO_ERROR is read. */
int port_rx_fd(const struct port *p, unsigned worker);

/* Whether the worker has to read another ring, too, that the descriptor says nothing of (port_grow). */
bool port_rx_moves(const struct port *p, unsigned worker);

/* Whether every worker receives on this port; otherwise one of them does. */
bool port_fans_out(const struct port *p);

/* Counts a packet-in dropped because the ring to the control thread was full. */
void port_count_packet_in_dropped(struct port *p, const struct port_io *w);

/* This worker's DROP_N counters. */
uint64_t *port_io_drops(struct port_io *w);
/* The last of them. */
struct drop_log *port_io_drop_log(struct port_io *w);

#endif
