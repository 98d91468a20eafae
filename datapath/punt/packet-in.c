/* SPDX-License-Identifier: Apache-2.0 */
#include <control/fair-queue.h>
#include <megaflow/megaflow.h>
#include <packet/drop-log.h>
#include <punt/capture.h>
#include <punt/packet-in.h>
#include <punt/packet-out.h>
#include <shared/clock.h>
#include <switch/switch.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_AT_ONCE 512 /* packets a turn of the loop, so that requests don't wait */

/* Until then a packet that the controller has as a whole takes nobody's buffer ("some amount of time",
 * 7.4.1). */
#define KEPT_NS UINT64_C(5000000000)

struct slot {
    uint32_t id;       /* generation << 8 | place */
    uint64_t since;    /* loop time, ns */
    uint8_t *copy;     /* NULL: empty */
    struct buffered b; /* data NULL: never used */
};

/* A slot per place.  If all are taken, the port that has most loses its oldest packet. */
struct buffers {
    struct slot slot[FAIR_QUEUE_PLACES];
    struct fair_queue lanes;
    uint32_t generation;
};

_Static_assert(FAIR_QUEUE_PLACES == 256,
               "features_reply says n_buffers, ids hold a place in 8 bits");

static void
empty(struct buffers *b, int place)
{
    fair_queue_remove(&b->lanes, place);
    free(b->slot[place].copy);
    b->slot[place].copy = NULL;
}

/* Keeps a copy; returns its id, or OFP_NO_BUFFER.  whole: the controller has the packet as well. */
static uint32_t
keep(struct sw *sw, const struct packet_in_record *r, bool whole)
{
    struct buffers *b = sw->buffers;
    uint64_t now = loop_now(sw->loop);
    int place = fair_queue_put(&b->lanes, r->in_port), oldest;
    if (place == FAIR_QUEUE_NONE) {
        oldest = fair_queue_longest(&b->lanes);
        if (whole && now - b->slot[oldest].since < KEPT_NS)
            return OFP_NO_BUFFER;
        empty(b, oldest);
        sw->counters.buffers_replaced++;
        place = fair_queue_put(&b->lanes, r->in_port);
    }
    uint8_t *copy = malloc(r->len);
    if (!copy) {
        fair_queue_remove(&b->lanes, place);
        return OFP_NO_BUFFER;
    }
    struct slot *s = &b->slot[place];
    memcpy(copy, r->data, r->len);
    *s = (struct slot){.id = (b->generation++ << 8 | (uint32_t)place) & 0x7fffffff,
                       .since = now,
                       .copy = copy,
                       .b = {.data = copy, .len = r->len, .in_port = r->in_port}};
    return s->id;
}

int
sw_buffers_find(const struct buffers *b, uint32_t id, const struct buffered **out)
{
    const struct slot *s = &b->slot[id % FAIR_QUEUE_PLACES];
    if (s->id != id || !s->b.data)
        return OF_BAD_REQUEST(BUFFER_UNKNOWN);
    if (!s->copy)
        return OF_BAD_REQUEST(BUFFER_EMPTY);
    *out = &s->b;
    return 0;
}

void
sw_buffers_drop(struct buffers *b, uint32_t id)
{
    struct slot *s = &b->slot[id % FAIR_QUEUE_PLACES];
    if (s->id == id && s->copy)
        empty(b, (int)(id % FAIR_QUEUE_PLACES));
}

/* ------------------------------------------------------------------ the message */

static void
put_number(struct of_match *m, enum oxm_field f, uint64_t value)
{
    struct of_oxm *o = &m->v[m->n++];
    *o = (struct of_oxm){.row = &oxm_rows[f]};
    oxm_set_number(o->row, o->value, value);
}

static void
drop_unwanted(struct sw *sw, const struct packet_in_record *r)
{
    sw->counters.packet_ins_unwanted++;
    sw->drop_log->now = clock_ns();
    drop_log_note(sw->drop_log, DROP_no_controller,
                  &(struct packet_at){.cookie = r->cookie,
                                      .in_port = r->in_port,
                                      .out_port = OFPP_CONTROLLER,
                                      .table_id = r->table_id},
                  &(struct packet_frame){r->data, r->len, 1, NULL});
}

static void
send_packet_in(struct sw *sw, const struct packet_in_record *r)
{
    struct of_oxm oxms[4];
    if (!channel_wants(sw->channel, ASYNC_PACKET_IN, r->reason)) {
        drop_unwanted(sw, r);
        return;
    }
    bool by_config = r->reason == OFPR_INVALID_TTL || r->reason == OFPR10_TABLE_MISS;
    uint16_t max_len = by_config ? sw->miss_send_len : r->max_len;
    bool whole = max_len == OFPCML_NO_BUFFER || r->len <= max_len;
    bool kept = max_len != OFPCML_NO_BUFFER;
    struct of_packet_in p = {.buffer_id = kept ? keep(sw, r, whole) : OFP_NO_BUFFER,
                             .total_len = r->len > UINT16_MAX ? UINT16_MAX : (uint16_t)r->len,
                             .reason = r->reason,
                             .table_id = r->table_id,
                             .cookie = r->cookie,
                             .match = {.v = oxms},
                             .data = {r->data, r->len}};
    put_number(&p.match, OXM_in_port, r->in_port);
    if (r->in_phy_port && r->in_phy_port != r->in_port)
        put_number(&p.match, OXM_in_phy_port, r->in_phy_port);
    if (r->metadata)
        put_number(&p.match, OXM_metadata, r->metadata);
    if (r->tunnel_id)
        put_number(&p.match, OXM_tunnel_id, r->tunnel_id);
    if (!whole && p.buffer_id != OFP_NO_BUFFER)
        p.data.n = max_len;
    channel_packet_in(sw->channel, r->in_port, &p);
}

static unsigned
drain(struct sw *sw, struct worker *w)
{
    unsigned n = 0;
    uint32_t bytes;
    for (struct packet_in_record *r; n < MAX_AT_ONCE && (r = ring_peek(w->packet_ins, &bytes));
         n++) {
        send_packet_in(sw, r);
        ring_release(w->packet_ins);
    }
    return n;
}

static void
packets_ready(void *ctx, uint32_t events)
{
    struct sw *sw = ctx;
    uint64_t v;
    bool more = false;
    ssize_t ignored = read(sw->packet_in_fd, &v, sizeof v);
    (void)ignored;
    for (unsigned i = 0; i < sw->dp.n_workers; i++)
        more |= drain(sw, sw->dp.workers[i]) == MAX_AT_ONCE;
    sw_packet_outs_go_on(sw);
    more |= sw_capture_drain(sw);
    more |= sw_offload_asked(sw);
    channel_packet_ins_send(sw->channel);
    v = 1;
    if (more) /* the rest comes next turn */
        ignored = write(sw->packet_in_fd, &v, sizeof v);
}

void
sw_misses_update(struct sw *sw)
{
    bool told = false;
    for (struct conn *c = NULL; (c = channel_next(sw->channel, c));)
        told |= conn_is_of10(c);
    if (told == sw->dp.tell_misses)
        return;
    store_relaxed(&sw->dp.tell_misses, told);
    sw_offload_forget_all(sw); /* the kernel drops them */
}

int
sw_packet_in_start(struct sw *sw)
{
    sw->buffers = calloc(1, sizeof *sw->buffers);
    sw->drop_log = calloc(1, sizeof *sw->drop_log);
    sw->packet_in_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!sw->buffers || !sw->drop_log || sw->packet_in_fd < 0)
        return -ENOMEM;
    fair_queue_init(&sw->buffers->lanes);
    return loop_io_add(sw->loop, sw->packet_in_fd, EPOLLIN, packets_ready, sw, &sw->packet_in_io);
}

void
sw_packet_in_stop(struct sw *sw)
{
    if (sw->packet_in_io)
        loop_io_del(sw->packet_in_io);
    if (sw->packet_in_fd > 0)
        close(sw->packet_in_fd);
    for (int i = 0; sw->buffers && i < FAIR_QUEUE_PLACES; i++)
        free(sw->buffers->slot[i].copy);
    free(sw->buffers);
    free(sw->drop_log);
}
