/* SPDX-License-Identifier: Apache-2.0 */
/* The workers' side of capture.h. */
#include <dataplane/capture.h>
#include <dataplane/dp.h>

#include <shared/clock.h>

#include <string.h>

static bool
port_matches(const struct capture_filter *f, enum ofp_capture point, const struct packet_at *at)
{
    if (f->port_no == OFPP_ANY)
        return true;
    switch (point) {
    case OFPCAP_OUT: return at->out_port == f->port_no;
    case OFPCAP_DROP: return at->in_port == f->port_no || at->out_port == f->port_no;
    default: return at->in_port == f->port_no;
    }
}

static bool
matches(const struct capture_filter *f, enum ofp_capture point, uint16_t reason,
        const struct packet_at *at)
{
    if (!(f->what & point) || !port_matches(f, point, at))
        return false;
    if (f->queue_id != OFPQ_ALL && point & (OFPCAP_OUT | OFPCAP_DROP) && at->queue != f->queue_id)
        return false;
    return point != OFPCAP_DROP || f->reason == OFPCAP_ANY || f->reason == reason;
}

/* clock_gettime(2) is no system call here: the C library reads the kernel's page. */
static uint64_t
since_1970(void)
{
    return clock_ns_of(CLOCK_REALTIME);
}

static void
count_lost(struct worker *w, uint8_t wanted)
{
    for (unsigned i = 0; i < CAPTURE_MAX; i++)
        if (wanted >> i & 1)
            counter_add(&w->capture_lost[i], 1);
}

__attribute__((noinline)) void
capture_packet(struct worker *w, enum ofp_capture point, uint16_t reason,
               const struct packet_at *at, const struct packet_frame *frame)
{
    const struct capture_set *set = w->capture;
    uint32_t snaplen = 0;
    uint8_t wanted = 0;
    if (!set || !(set->what & point))
        return;
    for (unsigned i = 0; i < CAPTURE_MAX; i++) {
        const struct capture_filter *f = &set->f[i];
        if (!matches(f, point, reason, at))
            continue;
        wanted |= (uint8_t)(1u << i);
        snaplen = f->snaplen > snaplen ? f->snaplen : snaplen;
    }
    if (!wanted)
        return;
    uint32_t n = frame->len < snaplen ? frame->len : snaplen;
    struct capture_record *r = ring_reserve(w->captured, (uint32_t)sizeof *r + n, 0);
    if (!r) {
        count_lost(w, wanted);
        return;
    }
    *r = (struct capture_record){.at = *at,
                                 .time = since_1970(),
                                 .serial = set->serial,
                                 .len = frame->len,
                                 .n = n,
                                 .reason = reason,
                                 .wanted = wanted,
                                 .point = (uint8_t)point};
    if (frame->vnet) {
        r->segment = frame->vnet->gso_type ? frame->vnet->gso_size : 0;
        r->unfinished = frame->vnet->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
    }
    memcpy(r->data, frame->data, n);
    ring_publish(w->captured);
    w->to_tell = true;
}

void
capture_received(struct worker *w, const struct port *port, const struct packet *batch, unsigned n)
{
    struct packet_at at = PACKET_AT_NONE;
    at.in_port = port_no(port);
    if (port != dp_port(w->dp, at.in_port)) /* a shaper's: captured when it came in */
        return;
    for (unsigned i = 0; i < n; i++)
        capture_packet(w, OFPCAP_IN, OFPCAP_NONE, &at,
                       &(struct packet_frame){batch[i].data, batch[i].len, 1, &batch[i].vnet});
}

static void
dropped(void *ctx, enum drop_reason why, const struct packet_at *at,
        const struct packet_frame *frame)
{
    capture_packet(ctx, OFPCAP_DROP, (uint16_t)why, at, frame);
}

void
capture_begin_round(struct worker *w)
{
    w->capture = rcu_dereference(w->dp->capture);
    w->drop_log->seen = w->capture && w->capture->what & OFPCAP_DROP ? dropped : NULL;
    w->drop_log->ctx = w;
}
