/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of packet I/O: what port.c, port/transmit.c and the backends of I/O (port/af-packet.c, port/pcap.c, port/tap.c)
 * share.  Nobody else includes this.
 */
#ifndef PORT_BACKEND_H
#define PORT_BACKEND_H

#include <port/port.h>
#include <shared/atomics.h>

#include <sys/socket.h>
#include <sys/uio.h>

#define IO_FRAME_MAX   (65536 + 64) /* the longest frame received: 64 KB of IP and its headers */
#define IO_ARENA_BYTES (1 << 20)
#define IO_BATCH       256  /* messages a sendmmsg */
#define IO_PENDING     1024 /* packets queued on all ports before a flush */
#define IO_SOCKETS     128  /* queue sockets a worker keeps open; see port/transmit.c */
#define IO_NONE        UINT32_MAX

#define PRIORITY_OF(queue) (0x00010000u | (queue)) /* HTB class 1:queue */
#define QUEUE_PAGE         256
#define QUEUE_PAGES        (OFP_QOS_QUEUE_MAX / QUEUE_PAGE + 1)

/* Received frames of any length side by side, given back all at once. */
struct backend_arena {
    uint8_t *mem;
    uint32_t used;
};

/* Room for a frame of IO_FRAME_MAX with PACKET_HEADROOM in front of the result; NULL: full. */
uint8_t *backend_arena_room(struct backend_arena *a);
/* Of that room, `len` bytes are used. */
void backend_arena_take(struct backend_arena *a, const uint8_t *frame, uint32_t len);

/* Packets waiting for a flush that leave by one queue of one port, in order. */
struct txq {
    struct port *port;
    struct txq *next_dirty;
    uint32_t head, tail; /* in port_io.item; IO_NONE: empty */
    uint32_t queue;      /* 0: the port's plain socket */
    uint32_t sock;       /* in port_io.sock; valid while sock_use is that socket's `use` */
    uint64_t sock_use;
    uint32_t single; /* so many packets more go one a system call: see send_queue */
};

/* What a worker has on a port.  Written by this worker only. */
struct port_worker {
#define PORT_WORKER_COUNTER(name) uint64_t name;
#define PORT_NOT_COUNTED(name)
    PORT_TRAFFIC(PORT_WORKER_COUNTER)
    PORT_COUNTERS(PORT_WORKER_COUNTER, PORT_NOT_COUNTED)
    uint64_t rx_lost; /* as the kernel reported; written by the control thread */
    void *rx;         /* the backend's own state; all workers' the same one without fanout */
    unsigned given;   /* packets received since the last port_rx_done */
    int tx_fd;        /* the plain transmit socket, or what stands for it */
    struct txq plain;
    struct txq **page[QUEUE_PAGES]; /* pages of QUEUE_PAGE pointers, made when first used */
} __attribute__((aligned(64)));

struct port {
    struct port_config config;
    const struct port_backend *backend;
    uint32_t uid;        /* never used again; not 0 */
    uint64_t ring_bytes; /* that its receive rings have */
    /* Said by the control thread, read by workers (atomics.h). */
    uint32_t flags; /* OFPPC_, and PORT_LINK_DOWN */
    /* By queue: the longest super-packet in bytes; 0: there is no such queue.  NULL: none is known. */
    uint32_t *queue_super;
    struct port_shaper *shaper;
    unsigned n_workers;
    bool prio_by_message; /* SO_PRIORITY may be said with each message (Linux 6.14) */
    struct port_worker *worker;
};

#define PORT_LINK_DOWN (1u << 31)

struct tx_item {
    const uint8_t *data;
    uint32_t len;
    uint32_t next;
    uint16_t segments;
    struct virtio_net_hdr vnet;
};

/* A transmit socket that belongs to a (port, queue) for now. */
struct tx_sock {
    int fd;
    int ifindex;
    uint32_t port_uid;
    uint64_t use;  /* changes whenever it is taken over */
    uint64_t last; /* the flush that used it last */
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
    uint64_t drops[DROP_N];
    struct tx_sock sock[IO_SOCKETS];
    struct tx_item item[IO_PENDING];
    struct tx_item *msg_item[IO_BATCH]; /* what a message is made of */
    struct mmsghdr msg[IO_BATCH];
    struct iovec iov[IO_BATCH][3]; /* vnet header, frame, padding */
    struct txq *msg_q[IO_BATCH];
    union {
        struct cmsghdr head;
        uint8_t room[CMSG_SPACE(sizeof(uint32_t))];
    } prio[IO_BATCH]; /* its priority, where the socket has another */
};

/* A backend.  0 or -errno where an int is returned. */
struct port_backend {
    const char *name;
    bool ring;     /* receives by a ring of memory, of about config.ring_bytes */
    bool queues;   /* a socket a queue is possible */
    bool vnet;     /* takes partial checksums and super-packets */
    bool fans_out; /* shares what a port receives out among the workers, if it is told to */
    int (*open)(struct port *p, char *why, size_t why_len);
    void (*close)(struct port *p);
    unsigned (*rx)(struct port *p, struct port_worker *pw, struct port_io *w, struct packet *out,
                   unsigned max);
    void (*rx_done)(struct port_worker *pw);
    int (*rx_fd)(const struct port_worker *pw);
    /* Sends n messages (vnet header, frame, padding).  How many went, or -errno of the first. */
    int (*send)(struct port_worker *pw, int fd, struct mmsghdr *m, unsigned n);
    /* A socket for a queue: a new one (fd < 0) or one that was another's.  The fd or -errno. */
    int (*queue_socket)(int fd, int ifindex, int old_ifindex, uint32_t queue);
    /* Lost by the kernel since the last call (control thread); NULL: not known. */
    uint64_t (*rx_lost)(struct port_worker *pw);
};

extern const struct port_backend port_backend_packet, port_backend_pcap, port_backend_tap;

/* Puts a received frame into `out`. */
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
    out->pool = w->pool;
    packet_parse(out, p->config.port_no);
    counter_add(&pw->rx_packets, out->vnet.gso_type ? packet_segments(out) : 1);
    counter_add(&pw->rx_bytes, len);
}

void backend_rx_drop(struct port_worker *pw, struct port_io *w, enum drop_reason why);
int backend_error(char *why, size_t why_len, int err, const char *what); /* returns -err */
int backend_link_up(const char *name, bool need_ethernet, char *why, size_t why_len);
uint64_t backend_memory(void);   /* bytes of main memory */
uint64_t port_rings_share(void); /* what the next port's rings may have; see port_rings_limit_set */
void port_rings_count(struct port *p, uint64_t bytes); /* what they have got */
unsigned port_queue_sockets(uint32_t port_uid);        /* queue sockets that a port has now */

/* Closes descriptors, which takes an AF_PACKET socket many milliseconds, in the background. */
void backend_close_later(const int *fd, unsigned n);

#endif
