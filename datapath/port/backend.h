/* SPDX-License-Identifier: Apache-2.0 */
/* What port.c, in-kernel.c, transmit.c, send.c, queue-sockets.c, rings.c and the backends (af-packet.c, pcap.c,
 * tap.c, pcap-file.c, queues-only.c) share. */
#ifndef PORT_BACKEND_H
#define PORT_BACKEND_H

#include <port/port.h>
#include <shared/atomics.h>

#include <oflib/openflow.h>

#include <sys/socket.h>
#include <sys/uio.h>

#define IO_FRAME_MAX   (65536 + 64) /* the longest frame received: 64 KB of IP and its headers */
#define IO_ARENA_BYTES (256 << 10)  /* of long frames in a batch */
#define IO_BATCH       256          /* messages a sendmmsg */
#define IO_PENDING     1024         /* packets queued on all ports before a flush */
#define IO_SOCKETS     128          /* queue sockets a worker keeps open; see queue-sockets.c */
#define IO_NONE        UINT32_MAX

#define QUEUE_PAGE  256
#define QUEUE_PAGES (OFP_QOS_QUEUE_MAX / QUEUE_PAGE + 1)

/* Received frames of any length, side by side; all are freed at once (used = 0). */
struct backend_arena {
    uint8_t *mem;
    uint32_t used;
};

/* Returns room for a frame of IO_FRAME_MAX, with PACKET_HEADROOM in front of it; NULL: full. */
uint8_t *backend_arena_room(struct backend_arena *a);
/* The frame has this length: the room behind it stays free. */
void backend_arena_take(struct backend_arena *a, const uint8_t *frame, uint32_t len);

/* How long a queue's packets wait, by the kernel's clock (queue-clock.c).  A packet that the queue has dropped makes no
 * second stamp, and not every scheduler tells the sender: after APART another one asks beside it, and after LOST all under
 * way are taken for lost. */
#define QUEUE_CLOCK_UNDER_WAY 8u
#define QUEUE_CLOCK_APART_NS  UINT64_C(100000000)
#define QUEUE_CLOCK_LOST_NS   UINT64_C(10000000000)
struct queue_clock {
    uint64_t next;       /* when a packet may ask for stamps again, ns */
    uint64_t asked;      /* when the last one did, ns */
    uint64_t full_until; /* until then one of those under way may still come out, ns */
    uint64_t
        last; /* of the last sample: when it was read, in ms, << 32 | how long it waited, us; 0: none yet */
    bool dropped; /* the last one that asked: it makes no second stamp */
    uint8_t n;
    uint8_t
        overtaken; /* so many of the oldest: a later one has left, so they were dropped, or their flow waits longer */
    struct queue_stamp {
        uint32_t id;
        uint32_t us; /* when it came to the queue, modulo 2^32 */
    } under_way[QUEUE_CLOCK_UNDER_WAY];
};

/* Packets waiting for a flush that leave by one queue of one port, in order. */
struct txq {
    struct port *port;
    struct txq *next_dirty;
    uint32_t head, tail; /* in port_io.item; IO_NONE: empty */
    uint32_t queue;      /* 0: the port's plain socket */
    uint32_t sock;       /* in port_io.sock; valid while sock_use is that socket's `use` */
    uint64_t sock_use;
    uint32_t single; /* so many packets are still sent one per system call: see send_messages */
    struct queue_clock clock;
};

/* A worker's part of a port.  Only this worker writes it; the control thread reads page[] and clock.last. */
struct port_worker {
#define PORT_WORKER_COUNTER(name) uint64_t name;
#define PORT_NOT_COUNTED(name)
    PORT_TRAFFIC(PORT_WORKER_COUNTER)
    PORT_COUNTERS(PORT_WORKER_COUNTER, PORT_NOT_COUNTED, PORT_NOT_COUNTED)
    uint64_t rx_lost; /* as the kernel reported; written by the control thread */
    void *rx;         /* the backend's state; without fanout all workers share it */
    unsigned given;   /* packets received since the last port_rx_done */
    int tx_fd;        /* the plain transmit socket, or the tap */
    struct txq plain;
    struct txq **page[QUEUE_PAGES]; /* QUEUE_PAGE pointers each, made when first used */
} __attribute__((aligned(64)));

struct port {
    struct port_config config;
    const struct port_backend *backend;
    uint32_t uid;                 /* never reused; not 0 */
    uint64_t ring_bytes;          /* of its receive rings */
    uint64_t ring_most;           /* that they may have */
    unsigned filling;             /* control thread: so many looks found a ring filled, lately */
    unsigned not_filling;         /* and so many none since then */
    bool to_grow;                 /* the same: whatever the looks find */
    struct port_growing *growing; /* the same; NULL: no larger ring is being made */
    uint32_t mtu;                 /* written by the control thread; 0: not known */
    /* Written by the control thread, read by workers (atomics.h). */
    uint32_t flags; /* OFPPC_, and PORT_OURS; the liveness thread writes PORT_LIVENESS */
    /* By queue: the longest super-packet in bytes; 0: no such queue.  NULL: no queues yet. */
    uint32_t *queue_super;
    uint32_t *queue_priority; /* by queue: see port_queue_set; 0, NULL: PORT_PRIORITY */
    struct port_shaper *shaper;
    unsigned n_workers;
    bool uso;             /* the kernel takes super-packets of UDP (Linux 6.2) */
    bool prio_by_message; /* the kernel takes SO_PRIORITY with each message (Linux 6.14) */
    uint64_t *done;       /* see port_set_done */
    uint64_t done_off;    /* control thread: what was missing when port_sync_done last looked */
    struct port_kernel {  /* what the kernel did; written by the control thread */
        PORT_TRAFFIC(PORT_WORKER_COUNTER)
        PORT_COUNTERS(PORT_WORKER_COUNTER, PORT_NOT_COUNTED, PORT_NOT_COUNTED)
    } kernel;
    struct port_worker *worker;
};

#define PORT_LINK_DOWN (1u << 31)
#define PORT_WATCHED   (1u << 30)
#define PORT_OURS      (PORT_LINK_DOWN | PORT_WATCHED)
#define PORT_LIVENESS  (PORT_LINK_DOWN | OFPPC_PORT_DOWN) /* bits of port_set_link */

#define TX_WIRE_MAX ((1u << 30) - 1)
struct tx_item {
    const uint8_t *data;
    uint32_t len;
    uint32_t next;
    uint32_t wire : 30;   /* bytes of all segments */
    uint32_t cut : 1;     /* a super-packet that the kernel can't cut */
    uint32_t segment : 1; /* one that we have cut: a struct tx_segment */
    uint16_t segments;
    struct virtio_net_hdr vnet;
};

/* A message's priority, if the socket has another one; or that it asks for stamps (queue-clock.c). */
union tx_control {
    struct cmsghdr head;
    uint8_t room[CMSG_SPACE(sizeof(uint32_t))];
};

/* A transmit socket that belongs to a (port, queue) for now. */
struct tx_sock {
    int fd;
    int ifindex;
    uint32_t port_uid;
    uint32_t priority;
    uint64_t use;  /* changes whenever another queue takes the socket */
    uint64_t last; /* number of the flush that used it last */
};

struct port_io {
    unsigned worker;
    struct packet_pool *pool;
    struct txq *dirty, **dirty_end;
    uint32_t n_items;
    uint64_t flushes;
    uint64_t uses;
    unsigned n_sock, max_sock;
    struct port_io *next; /* of all workers */
    bool filled;          /* see port_io_filled */
    uint64_t drops[DROP_N];
    struct drop_log drop_log;
    struct tx_sock sock[IO_SOCKETS];
    struct tx_item item[IO_PENDING];
    struct tx_item *msg_item[IO_BATCH]; /* what each message is made of */
    struct mmsghdr msg[IO_BATCH];
    struct iovec iov[IO_BATCH][4]; /* vnet header, frame, a segment's payload, padding */
    struct txq *msg_q[IO_BATCH];
    union tx_control control[IO_BATCH];
    uint64_t clock_next; /* when a packet may ask for stamps again, ns */
};

/* A way of packet I/O.  Functions that return an int return 0 or -errno. */
struct port_backend {
    const char *name;
    bool only_by_name; /* never chosen for a port that names no backend */
    bool ring;         /* receives by rings of about config.ring_bytes */
    bool queues;       /* can have a socket per queue */
    bool vnet;         /* takes partial checksums and super-packets */
    bool fans_out;     /* can distribute what a port receives among the workers */
    int (*open)(struct port *p, char *why, size_t why_len);
    void (*close)(struct port *p);
    unsigned (*rx)(struct port *p, struct port_worker *pw, struct port_io *w, struct packet *out,
                   unsigned max);
    /* done: NULL, or where the frames are counted that go back to the ring, before they do. */
    void (*rx_done)(struct port_worker *pw, uint64_t *done);
    int (*rx_fd)(const struct port_worker *pw);
    bool (*rx_moves)(const struct port_worker *pw); /* port_rx_moves; NULL: never */
    bool filtered; /* rx_fd is a socket that takes a filter, of which `done` counts the frames */
    uint64_t (*rx_waited)(const struct port_worker *pw); /* port_rx_waited; NULL: unknown */
    /* Sends n messages (vnet header, frame, perhaps payload and padding).  Returns how many went, or
     * -errno of the first. */
    int (*send)(struct port_worker *pw, int fd, struct mmsghdr *m, unsigned n);
    /* Makes a socket for a queue's packets, which have this skb->priority, or makes it of one that
     * was another's (fd >= 0).  The fd or -errno. */
    int (*queue_socket)(int fd, int ifindex, int old_ifindex, uint32_t priority);
    /* Packets that the kernel lost since the last call (control thread); NULL: unknown. */
    uint64_t (*rx_lost)(struct port_worker *pw);
};

extern const struct port_backend port_backend_packet, port_backend_pcap, port_backend_tap,
    port_backend_file, port_backend_queues_only;

/* Makes a packet of a received frame.  Counters have what a super-packet is on the wire. */
static inline void
backend_fill(struct packet *out, struct port *p, struct port_worker *pw, struct port_io *w,
             uint8_t *data, uint32_t len, uint32_t headroom)
{
    out->data = data;
    out->len = len;
    out->headroom = headroom;
    out->wire_len = len;
    out->shared = false;
    out->queue = 0;
    out->queue_ports = NULL;
    out->pool = w->pool;
    out->inside = p->config.inside;
    packet_parse(out, p->config.port_no);
    struct packet_wire wire = packet_on_wire(out);
    counter_add(&pw->rx_packets, wire.packets);
    counter_add(&pw->rx_bytes, wire.bytes);
}

/* The longest super-packet for this queue, in bytes; 0: there is no such queue. */
static inline uint32_t
port_queue_super(const struct port *p, uint32_t queue)
{
    uint32_t *super = load_acquire(&p->queue_super);
    if (!super)
        return queue ? 0 : UINT32_MAX;
    return queue <= OFP_QOS_QUEUE_MAX ? load_relaxed(&super[queue]) : 0;
}

/* The skb->priority of packets for this queue (not 0): a class in the kernel. */
static inline uint32_t
port_queue_priority(const struct port *p, uint32_t queue)
{
    uint32_t *all = load_acquire(&p->queue_priority);
    uint32_t other = all ? load_relaxed(&all[queue]) : 0;
    return other ? other : PORT_PRIORITY(queue);
}

/* Returns the queue's own socket; -EAGAIN: none, but each message can carry its priority; -ENOENT.
 */
int port_queue_fd(struct port_io *w, struct txq *q);

/* On a new socket; when a queue has got another one. */
void queue_clock_open(int fd);
void queue_clock_forget(struct queue_clock *c, int fd);
/* Whether the queue's next message is to ask for stamps; reads those that have come.  Then: it asks. */
bool queue_clock_due(struct port_io *w, struct queue_clock *c, int fd);
void queue_clock_ask(struct mmsghdr *m, union tx_control *room);

/* data NULL: the frame was not read. */
void backend_rx_drop(const struct port *p, struct port_worker *pw, struct port_io *w,
                     enum drop_reason why, const struct packet_frame *frame);
int backend_error(char *why, size_t why_len, int err, const char *what); /* returns -err */
int backend_link_up(const char *name, bool need_ethernet, char *why, size_t why_len);
void
port_read_lost(struct port *p);  /* adds what the kernel lost since then to rx_lost (in-kernel.c) */
uint64_t backend_memory(void);   /* bytes of main memory */
uint64_t port_rings_share(void); /* for the next port; see port_rings_limit_set */
void rings_ahead_expect(unsigned ports); /* so many are about to be opened; see port_rings_ahead */
void port_rings_count(struct port *p, uint64_t bytes);  /* what it has got */
void port_rings_reserve(struct port *p, uint64_t most); /* what it may come to have */
uint64_t port_rings_room(const struct port *p);         /* what it may come to have now */
bool port_rings_given(void);                            /* their memory was set */
unsigned port_queue_sockets(uint32_t port_uid);         /* open now */

/* Closes descriptors in the background: an AF_PACKET socket takes many milliseconds. */
void backend_close_later(const int *fd, unsigned n);

#endif
