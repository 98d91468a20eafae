/* SPDX-License-Identifier: Apache-2.0 */
/* Sending what is queued (transmit.c): a sendmmsg per socket, drops by reason, and what the socket
 * can't take in segments. */
#include "backend.h"

#include <packet/headers.h>

#include <oflib/openflow.h>

#include <errno.h>
#include <string.h>

/* After a queue refused a packet, so many are sent one per system call. */
#define SINGLE_AFTER_DROP 1024
/* A plain frame of up to this length fits the MTU of a usual interface. */
#define USUAL_FRAME 1514

static const uint8_t zeros[PACKET_MIN];

/* A segment that we have cut; `item` has its headers. */
struct tx_segment {
    struct tx_item item;
    const uint8_t *payload;
    uint32_t payload_len;
};

/* Messages to be sent by one socket. */
struct sending {
    struct port_io *w;
    struct port *port;
    struct port_worker *pw;
    const struct port_backend *backend;
    int fd;
    unsigned n;
    uint32_t queue; /* of what count_drop is called for */
};

static void
count_sent(const struct sending *s, const struct tx_item *it)
{
    counter_add(&s->pw->tx_packets, it->segments);
    counter_add(&s->pw->tx_bytes, it->wire);
}

/* A segment's bytes in one piece; NULL: there is no memory. */
static const uint8_t *
whole_frame(struct port_io *w, const struct tx_item *it, uint32_t *len)
{
    const struct tx_segment *g = (const void *)it;
    *len = it->len;
    if (!it->segment)
        return it->data;
    *len += g->payload_len;
    uint8_t *frame = packet_pool_alloc(w->pool, *len);
    if (!frame)
        return NULL;
    memcpy(frame, it->data, it->len);
    memcpy(frame + it->len, g->payload, g->payload_len);
    return frame;
}

static void
count_drop(const struct sending *s, const struct tx_item *it, enum drop_reason why)
{
    struct packet_at at = PACKET_AT_NONE;
    bool shaper = s->port->config.no_rx;
    if (why == DROP_tx_full && shaper)
        why = DROP_in_full;
    *(shaper ? &at.in_port : &at.out_port) = s->port->config.port_no;
    at.queue = s->queue;
    counter_add(&s->pw->tx_dropped, it->segments);
    counter_add(&s->w->drops[why], it->segments);
    if (drop_log_wants(&s->w->drop_log, why)) {
        struct packet_frame frame = {.segments = it->segments, .vnet = &it->vnet};
        frame.data = whole_frame(s->w, it, &frame.len);
        drop_log_add(&s->w->drop_log, why, &at, &frame);
    }
}

static const struct {
    int err;
    enum drop_reason why;
    bool all; /* the following ones would fail too */
} refusals[] = {
    {ENOBUFS, DROP_tx_full, false}, /* the qdisc dropped it */
    {EAGAIN, DROP_tx_full, true},   /* the socket's buffer is full */
    {ENOMEM, DROP_tx_full, false},    {EMSGSIZE, DROP_too_long, false},
    {ENETDOWN, DROP_port_down, true}, {ENXIO, DROP_port_down, true},
    {ENODEV, DROP_port_down, true},   {EIO, DROP_port_down, true},  /* of a tap */
    {ENOSPC, DROP_tx_full, true},     {EDQUOT, DROP_tx_full, true}, /* of a file */
    {EFBIG, DROP_tx_full, true},
};

static enum drop_reason
refusal(int err, bool *all)
{
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; ++i)
        if (refusals[i].err == err) {
            *all = refusals[i].all;
            return refusals[i].why;
        }
    *all = false;
    return DROP_tx_error;
}

static bool
has_control(const struct mmsghdr *m, int type)
{
    const struct cmsghdr *c = m->msg_hdr.msg_control;
    return c && c->cmsg_type == type;
}

/* priority 0: the socket's. */
static void
fill_priority(struct mmsghdr *m, union tx_control *room, uint32_t priority)
{
    m->msg_hdr.msg_control = priority ? room : NULL;
    m->msg_hdr.msg_controllen = priority ? sizeof *room : 0;
    if (!priority)
        return;
    room->head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof priority), .cmsg_level = SOL_SOCKET, .cmsg_type = SO_PRIORITY};
    memcpy(CMSG_DATA(&room->head), &priority, sizeof priority);
}

static void
fill_message(struct mmsghdr *m, struct tx_item *it, const struct port *to)
{
    struct iovec *v = m->msg_hdr.msg_iov;
    uint32_t n = it->len;
    v[0].iov_base = &it->vnet;
    v[1].iov_base = (void *)(uintptr_t)it->data;
    v[1].iov_len = it->len;
    v += 2;
    if (it->segment) {
        const struct tx_segment *g = (const void *)it;
        *v++ = (struct iovec){(void *)(uintptr_t)g->payload, g->payload_len};
        n = it->wire;
    }
    if (n < PACKET_MIN && !to->config.no_rx) /* a port_shaper changes nothing */
        *v++ = (struct iovec){(void *)(uintptr_t)zeros, PACKET_MIN - n};
    m->msg_hdr.msg_iovlen = (size_t)(v - m->msg_hdr.msg_iov);
}

/* ------------------------------------------------------------------ what the kernel can't finish */

/* A queue's messages, and where they go. */
struct adding {
    struct sending *s;
    struct txq *q;
    uint32_t priority; /* of each message; 0: the socket's */
    uint32_t longest;  /* that a super-packet of the queue may be */
    bool complete;     /* nothing is left to the kernel */
    bool clock;        /* the first message asks for stamps */
    void (*add)(struct adding *a, struct tx_item *it);
};

/* Copies the headers, or the frame, to the pool.  A segment is dropped if that is full. */
static void
make_segment(void *ctx, const struct packet_segment *g)
{
    struct adding *a = ctx;
    struct tx_item lost = {
        .data = g->header, .len = g->header_len, .segments = (uint16_t)g->packets};
    struct tx_segment *t = (void *)packet_pool_alloc(a->s->w->pool, sizeof *t + g->header_len);
    if (!t) {
        a->s->queue = a->q->queue;
        count_drop(a->s, &lost, DROP_no_memory);
        return;
    }
    *t = (struct tx_segment){
        .item = {.data = memcpy(t + 1, g->header, g->header_len),
                 .len = g->header_len,
                 .wire = (g->packets * g->header_len + g->payload_len) & TX_WIRE_MAX,
                 .segment = g->payload_len > 0,
                 .segments = (uint16_t)g->packets,
                 .vnet = g->vnet},
        .payload = g->payload,
        .payload_len = g->payload_len};
    a->add(a, &t->item);
}

static void
make_whole(void *ctx, const uint8_t *data, uint32_t len)
{
    make_segment(ctx, &(struct packet_segment){
                          .header = data, .header_len = len, .payload = data, .packets = 1});
}

static void
parse(const struct adding *a, const struct tx_item *it, struct packet *p)
{
    *p = (struct packet){.data = (uint8_t *)(uintptr_t)it->data,
                         .len = it->len,
                         .wire_len = it->len,
                         .shared = true,
                         .pool = a->s->w->pool,
                         .vnet = it->vnet};
    packet_parse(p, 0);
}

/* Makes segments of a super-packet, and fills in checksums unless the backend does that. */
static void
finish(struct adding *a, const struct tx_item *it)
{
    struct packet p;
    parse(a, it, &p);
    void *ctx = a;
    int drop;
    if (a->complete)
        drop = packet_finish(&p, make_whole, ctx);
    else if (it->len <= a->longest && a->q->port->uso && packet_can_pack(&p))
        drop = packet_pack(&p, make_segment, ctx);
    else
        drop = packet_cut(&p, make_segment, ctx);
    a->s->queue = a->q->queue;
    if (drop)
        count_drop(a->s, it, (enum drop_reason)(drop - 1));
}

/* Sends again a packet that the kernel has refused. */
static void
send_alone(struct adding *a, struct tx_item *it)
{
    struct sending *s = a->s;
    struct iovec iov[4] = {{.iov_len = sizeof it->vnet}};
    struct mmsghdr m = {.msg_hdr.msg_iov = iov};
    union tx_control prio;
    bool all;
    fill_message(&m, it, s->port);
    fill_priority(&m, &prio, a->priority);
    int r = s->backend->send(s->pw, s->fd, &m, 1);
    if (r > 0)
        count_sent(s, it);
    else
        count_drop(s, it, refusal(-r, &all));
}

/* The socket refused the frame for its length.  Beside the MTU it allows for one tag of 802.1Q alone;
 * interfaces take any tags. */
static void
send_tagged(struct adding *a, struct tx_item *it)
{
    struct packet p;
    uint32_t most = load_relaxed(&a->s->port->mtu) + ETH_HEADER;
    parse(a, it, &p);
    if (it->len - (p.eth_type_at - ETH_TYPE_AT) > most || !packet_call_segment(&p)) {
        count_drop(a->s, it, DROP_too_long);
        return;
    }
    it->data = p.data;
    it->vnet = p.vnet;
    send_alone(a, it);
}

/* The first message's errno leaves a second way. */
static bool
sent_otherwise(struct sending *s, unsigned i, enum drop_reason why)
{
    struct tx_item *it = s->w->msg_item[i];
    struct adding a = {.s = s, .q = s->w->msg_q[i], .complete = true, .add = send_alone};
    if (it->segment)
        return false;
    if (has_control(&s->w->msg[i], SO_PRIORITY))
        a.priority = port_queue_priority(s->port, s->queue);
    if (why == DROP_tx_error && (it->vnet.flags || it->vnet.gso_type))
        finish(&a, it);
    else if (why == DROP_too_long && !it->vnet.gso_type)
        send_tagged(&a, it);
    else
        return false;
    return true;
}

/* ------------------------------------------------------------------ messages */

/* How many messages from this one on may share a system call. */
static unsigned
together(const struct sending *s, unsigned i)
{
    struct txq *const *q = s->w->msg_q;
    unsigned k = i + 1;
    while (!q[i]->single && k < s->n && !q[k]->single)
        ++k;
    return k - i;
}

/* Sends the messages.
 *
 * sendmmsg(2) hides the errno of a message if others went before it, and sending that message again
 * to learn it would make the qdisc count a second drop.  So a frame that nothing but a full queue
 * can have refused counts as that, and a full queue is then sent one packet per call. */
static void
send_messages(struct sending *s)
{
    struct port_io *w = s->w;
    for (unsigned i = 0; i < s->n;) {
        unsigned most = together(s, i);
        int r = s->backend->send(s->pw, s->fd, w->msg + i, most);
        if (w->msg_q[i]->single)
            --w->msg_q[i]->single;
        for (int k = 0; k < r; ++k)
            count_sent(s, w->msg_item[i++]);
        if (r == (int)most)
            continue;
        w->msg_q[i]->single = SINGLE_AFTER_DROP;
        s->queue = w->msg_q[i]->queue;
        struct tx_item *it = w->msg_item[i];
        bool partial = !it->segment && (it->vnet.flags || it->vnet.gso_type), all = false;
        if (r > 0 && (partial || it->wire > USUAL_FRAME))
            continue; /* again, for its errno */
        enum drop_reason why = refusal(r > 0 ? ENOBUFS : -r, &all);
        if (has_control(&w->msg[i], SO_TIMESTAMPING))
            w->msg_q[i]->clock.dropped = true;
        if (!sent_otherwise(s, i, why))
            count_drop(s, it, why);
        ++i;
        while (all && i < s->n)
            count_drop(s, w->msg_item[i++], why);
    }
    s->n = 0;
}

static void
add_message(struct adding *a, struct tx_item *it)
{
    struct sending *s = a->s;
    struct port_io *w = s->w;
    fill_message(&w->msg[s->n], it, a->q->port);
    fill_priority(&w->msg[s->n], &w->control[s->n], a->priority);
    if (a->clock)
        queue_clock_ask(&w->msg[s->n], &w->control[s->n]);
    a->clock = false;
    w->msg_item[s->n] = it;
    w->msg_q[s->n] = a->q;
    if (++s->n == IO_BATCH)
        send_messages(s);
}

static void
add_messages(struct sending *s, struct txq *q, uint32_t priority, bool clock)
{
    struct port_io *w = s->w;
    bool vnet = s->backend->vnet;
    struct adding a = {.s = s,
                       .q = q,
                       .priority = priority,
                       .longest = port_queue_super(q->port, q->queue),
                       .complete = !vnet,
                       .clock = clock,
                       .add = add_message};
    for (uint32_t at = q->head; at != IO_NONE;) {
        struct tx_item *it = &w->item[at];
        at = it->next;
        if (it->cut || (!vnet && (it->vnet.flags || it->vnet.gso_type)) ||
            (it->vnet.gso_type && it->len > a.longest))
            finish(&a, it);
        else
            add_message(&a, it);
    }
    q->head = q->tail = IO_NONE;
}

static void
send_queue(struct sending *s, struct txq *q)
{
    struct port_io *w = s->w;
    struct port_worker *pw = &q->port->worker[w->worker];
    uint32_t priority = 0;
    int fd = q->queue ? port_queue_fd(w, q) : pw->tx_fd;
    if (fd < 0) {
        if (fd == -EAGAIN)
            priority = port_queue_priority(q->port, q->queue);
        else
            counter_add(&pw->tx_no_queue, 1);
        fd = pw->tx_fd;
    }
    if (s->n && (fd != s->fd || q->port != s->port))
        send_messages(s);
    s->port = q->port;
    s->pw = pw;
    s->backend = q->port->backend;
    s->fd = fd;
    bool own = q->queue && fd != pw->tx_fd;
    add_messages(s, q, priority, own && queue_clock_due(w, &q->clock, fd));
}

void
port_io_flush(struct port_io *w)
{
    if (!w->n_items)
        return;
    ++w->flushes;
    struct sending s = {.w = w};
    struct txq *q = w->dirty;
    while (q) {
        struct txq *next = q->next_dirty;
        send_queue(&s, q);
        q = next;
    }
    send_messages(&s);
    w->dirty = NULL;
    w->dirty_end = &w->dirty;
    w->n_items = 0;
}
