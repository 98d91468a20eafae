/* SPDX-License-Identifier: Apache-2.0 */
/* The control thread's side of capture.h. */
#include <punt/capture.h>
#include <switch/switch.h>

#include <packet/headers.h>
#include <shared/clock.h>
#include <shared/rcu.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RING_BYTES  (1u << 20) /* of each worker, for all subscribers */
#define AT_ONCE     512   /* packets a turn of the loop and worker, so that requests don't wait */
#define SNAPLEN_MAX 65000 /* the rest of a message is for the other members of CAPTURED */
/* So many turns empty a full ring of the smallest records. */
#define RINGFULS (RING_BYTES / sizeof(struct capture_record) / AT_ONCE + 1)

struct subscriber {
    struct conn *c; /* NULL: a free place */
    struct of_capture q;
    uint32_t since;     /* the first set that has its filter */
    uint64_t sent;      /* packets */
    uint64_t lost;      /* not sent: beyond its rate, or the peer doesn't read */
    uint64_t ring_lost; /* the workers' count when it began */
    uint64_t credit;    /* ns times the rate */
    uint64_t refilled;  /* loop time */
    bool over;          /* it has as many packets as it asked for, or is a slave now */
};

struct captures {
    struct subscriber v[CAPTURE_MAX];
    unsigned n;
    uint32_t serial;
    uint64_t sent, lost;
};

static struct captures *
captures_of(struct sw *sw)
{
    if (!sw->captures)
        sw->captures = calloc(1, sizeof *sw->captures);
    return sw->captures;
}

static struct subscriber *
find(const struct sw *sw, const struct conn *c)
{
    for (unsigned i = 0; sw->captures && i < CAPTURE_MAX; i++)
        if (sw->captures->v[i].c == c)
            return &sw->captures->v[i];
    return NULL;
}

/* ------------------------------------------------------------------ what workers see */

static int
make_rings(struct sw *sw)
{
    for (unsigned i = 0; i < sw->dp.n_workers; i++) {
        struct worker *w = sw->dp.workers[i];
        if (!w->captured && !(w->captured = ring_new(RING_BYTES, 0)))
            return -ENOMEM;
    }
    return 0;
}

/* No worker sees a set any more. */
static void
free_rings(struct sw *sw)
{
    for (unsigned i = 0; sw->dp.workers && i < sw->dp.n_workers; i++) {
        struct worker *w = sw->dp.workers[i];
        if (!w)
            continue;
        ring_free(w->captured);
        w->captured = NULL;
    }
}

static void
watch_ports(const struct sw *sw)
{
    uint32_t no = 0;
    for (struct sw_port *p; (p = sw_ports_next(sw, no)); no = p->no)
        if (p->port)
            port_watch(p->port, capture_watches(sw->dp.capture, p->no));
}

/* Shows the workers the present filters.  -ENOMEM: they keep the former ones. */
static int
publish(struct sw *sw)
{
    struct captures *all = sw->captures;
    struct capture_set *set = all->n ? calloc(1, sizeof *set) : NULL, *old = sw->dp.capture;
    if (all->n && !set)
        return -ENOMEM;
    all->serial++;
    for (unsigned i = 0; set && i < CAPTURE_MAX; i++) {
        struct subscriber *s = &all->v[i];
        if (!s->c)
            continue;
        set->f[i] = (struct capture_filter){.what = s->q.what,
                                            .port_no = s->q.port_no,
                                            .queue_id = s->q.queue_id,
                                            .reason = s->q.reason,
                                            .snaplen = s->q.snaplen};
        set->what |= s->q.what;
    }
    if (set)
        set->serial = all->serial;
    rcu_assign_pointer(sw->dp.capture, set);
    if (old)
        rcu_defer_free(old);
    watch_ports(sw);
    if (!set) {
        rcu_wait();
        free_rings(sw);
    }
    return 0;
}

/* ------------------------------------------------------------------ sending */

static uint64_t
lost_in_rings(const struct sw *sw, unsigned place)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < sw->dp.n_workers; i++)
        sum += counter_read(&sw->dp.workers[i]->capture_lost[place]);
    return sum;
}

static uint64_t
lost_of(const struct sw *sw, const struct subscriber *s)
{
    return s->lost + lost_in_rings(sw, (unsigned)(s - sw->captures->v)) - s->ring_lost;
}

static int
send_one(struct subscriber *s, const struct of_captured *captured, bool must)
{
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    of_encode_struct(&w, &of_row_captured, captured);
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, OFP_EXP_CAPTURED, {w.buf, w.len}};
    int err = conn_notify(s->c, OFPT_EXPERIMENTER, &m, must);
    of_wr_free(&w);
    return err;
}

/* Takes one packet from the rate's allowance; false: none is left. */
static bool
take_token(struct sw *sw, struct subscriber *s)
{
    uint64_t now = loop_now(sw->loop), passed = now - s->refilled, full = s->q.rate * NS_PER_S;
    if (!s->q.rate)
        return true;
    s->refilled = now;
    s->credit = passed >= NS_PER_S || s->credit + passed * s->q.rate > full
                    ? full
                    : s->credit + passed * s->q.rate;
    if (s->credit < NS_PER_S)
        return false;
    s->credit -= NS_PER_S;
    return true;
}

static void
deliver(struct sw *sw, struct subscriber *s, struct of_captured *m, uint32_t n)
{
    if (s->over || (s->q.limit && s->sent >= s->q.limit))
        return;
    m->data.n = n < s->q.snaplen ? n : s->q.snaplen;
    m->lost = lost_of(sw, s);
    if (conn_state(s->c)->role == OFPCR_ROLE_SLAVE) {
        s->over = true;
    } else if (!take_token(sw, s) || send_one(s, m, false)) {
        s->lost++;
        sw->captures->lost++;
    } else {
        sw->captures->sent++;
        s->over = ++s->sent == s->q.limit;
    }
}

static void
deliver_record(struct sw *sw, struct capture_record *r)
{
    struct of_oxm fields[OXM_N];
    struct of_captured m = {.point = r->point,
                            .table_id = r->at.table_id,
                            .reason = r->reason,
                            .in_port = r->at.in_port,
                            .time = r->time,
                            .out_port = r->at.out_port,
                            .queue_id = r->at.queue,
                            .cookie = r->at.cookie,
                            .total_len = r->len,
                            .segment = r->segment,
                            .unfinished = r->unfinished,
                            .match.v = fields,
                            .data.p = r->data};
    if (r->n >= ETH_HEADER)
        packet_describe(r->data, r->n, r->at.in_port, dp_inside(&sw->dp, r->at.in_port), &m.match);
    for (unsigned i = 0; i < CAPTURE_MAX; i++) {
        struct subscriber *s = &sw->captures->v[i];
        if (s->c && r->wanted >> i & 1 && (int32_t)(r->serial - s->since) >= 0)
            deliver(sw, s, &m, r->n);
    }
}

static unsigned
drain(struct sw *sw, struct ring *ring)
{
    unsigned n = 0;
    uint32_t bytes;
    for (struct capture_record *r; n < AT_ONCE && (r = ring_peek(ring, &bytes)); n++) {
        deliver_record(sw, r);
        ring_release(ring);
    }
    return n;
}

/* Sends the last message, which says how many were lost, and forgets the subscriber. */
static void
end(struct sw *sw, struct subscriber *s)
{
    struct of_captured last = {.point = OFPCAP_END,
                               .table_id = OFPTT_ALL,
                               .reason = OFPCAP_NONE,
                               .in_port = OFPP_ANY,
                               .out_port = OFPP_ANY,
                               .cookie = UINT64_MAX,
                               .lost = lost_of(sw, s)};
    send_one(s, &last, true);
    s->c = NULL;
    sw->captures->n--;
}

bool
sw_capture_drain(struct sw *sw)
{
    bool more = false, ended = false;
    for (unsigned i = 0; sw->dp.capture && i < sw->dp.n_workers; i++)
        more |= drain(sw, sw->dp.workers[i]->captured) == AT_ONCE;
    for (unsigned i = 0; sw->captures && i < CAPTURE_MAX; i++) {
        struct subscriber *s = &sw->captures->v[i];
        if (s->c && s->over) {
            end(sw, s);
            ended = true;
        }
    }
    if (ended)
        publish(sw);
    return more && sw->dp.capture;
}

/* ------------------------------------------------------------------ subscribing */

static int
subscribe(struct sw *sw, struct conn *c, const struct of_capture *q)
{
    struct captures *all = captures_of(sw);
    struct subscriber *s = all ? find(sw, c) : NULL, before;
    bool added = all && !s;
    if (added)
        s = find(sw, NULL); /* a free place */
    if (!s)
        return all ? -EUSERS : -ENOMEM;
    before = *s;
    *s = (struct subscriber){.c = c, .q = *q, .since = all->serial + 1};
    if (!q->snaplen || q->snaplen > SNAPLEN_MAX)
        s->q.snaplen = SNAPLEN_MAX;
    s->ring_lost = lost_in_rings(sw, (unsigned)(s - all->v));
    s->refilled = loop_now(sw->loop);
    s->credit = q->rate * NS_PER_S;
    all->n += added;
    int err = make_rings(sw);
    if (!err)
        err = publish(sw);
    if (err) {
        all->n -= added;
        *s = before;
    }
    return err;
}

int
sw_capture_set(struct sw *sw, struct conn *c, const struct of_capture *q)
{
    if (q->what)
        return subscribe(sw, c, q);
    struct subscriber *s = find(sw, c);
    if (!s)
        return 0;
    for (unsigned i = 0; i < RINGFULS && sw_capture_drain(sw); i++)
        continue; /* what was captured before is sent before */
    s->over = true;
    sw_capture_drain(sw);
    return 0;
}

void
sw_capture_forget(struct sw *sw, const struct conn *c)
{
    struct subscriber *s = find(sw, c);
    if (!s)
        return;
    s->c = NULL;
    sw->captures->n--;
    publish(sw);
}

void
sw_capture_free(struct sw *sw)
{
    free(sw->dp.capture);
    free(sw->captures);
}

/* ------------------------------------------------------------------ counters */

uint64_t
sw_capture_sent(const struct sw *sw)
{
    return sw->captures ? sw->captures->sent : 0;
}

uint64_t
sw_capture_lost(const struct sw *sw)
{
    uint64_t sum = sw->captures ? sw->captures->lost : 0;
    for (unsigned i = 0; i < CAPTURE_MAX; i++)
        sum += lost_in_rings(sw, i);
    return sum;
}
