/* SPDX-License-Identifier: Apache-2.0 */
#include "state-dump.h"

#include "describe.h"
#include "flow-list.h"
#include "state-queues.h"

#include <oflib/state.h>

#include <errno.h>
#include <stdlib.h>
#include <time.h>

struct ids {
    uint32_t *v, n;
};

struct state_dump {
    struct sw *sw;
    struct ids meters, groups;
    struct flow_list *flows;
    unsigned part; /* of parts[] */
    uint32_t at;   /* in the part */
    uint32_t count;
    struct of_wr queues; /* requests, encoded */
    size_t queues_at;
};

/* ------------------------------------------------------------------ parts
 * Each appends one message, or nothing where what it was to be about has gone; false: the part is
 * over. */

typedef bool part_fn(struct state_dump *d, struct of_wr *w);

static bool
add_mark(struct state_dump *d, struct of_wr *w, bool is_end)
{
    struct of_state_mark mark = {.is_end = is_end,
                                 .count = is_end ? d->count : 0,
                                 .datapath_id = d->sw->opt.datapath_id,
                                 .time = (uint64_t)time(NULL)};
    if (d->at++)
        return false;
    of_state_mark_encode(w, &mark);
    return true;
}

static bool
add_begin(struct state_dump *d, struct of_wr *w)
{
    return add_mark(d, w, false);
}

static bool
add_end(struct state_dump *d, struct of_wr *w)
{
    return add_mark(d, w, true);
}

/* Reserves room for a message.  Then one that does not fit is too long; without this it could be
 * lost for want of memory. */
static bool
reserve(struct of_wr *w)
{
    if (w->cap - w->len >= OF_MSG_MAX)
        return true;
    if (!of_wr_add(w, OF_MSG_MAX))
        return false;
    w->len -= OF_MSG_MAX;
    return true;
}

/* Appends and counts a message; an element that fits no message is left out, as in replies. */
static void
add(struct state_dump *d, struct of_wr *w, uint8_t type, const void *body)
{
    d->count += !of_encode_body(w, type, 0, body);
}

static bool
add_meter(struct state_dump *d, struct of_wr *w)
{
    struct meter_bands room;
    if (d->at == d->meters.n)
        return false;
    const struct meter *mt = meters_find(d->sw->dp.meters, d->meters.v[d->at++]);
    if (!mt)
        return true;
    struct of_meter_mod mm = {.command = OFPMC_ADD, .flags = mt->flags, .meter_id = mt->id};
    sw_meter_bands(mt, &room, &mm.bands);
    add(d, w, OFPT_METER_MOD, &mm);
    return true;
}

static bool
add_group(struct state_dump *d, struct of_wr *w)
{
    if (d->at == d->groups.n)
        return false;
    const struct group *g = groups_find(d->sw->dp.groups, d->groups.v[d->at++]);
    if (!g)
        return true;
    struct of_group_mod gm = {.command = OFPGC_ADD, .type = g->type, .group_id = g->id};
    if (sw_group_buckets(g, &gm.buckets))
        add(d, w, OFPT_GROUP_MOD, &gm);
    else
        w->overflow = true;
    free(gm.buckets.v);
    return true;
}

static bool
add_flow(struct state_dump *d, struct of_wr *w)
{
    if (d->at == d->flows->n)
        return false;
    const struct flow *f = d->flows->v[d->at++];
    struct of_oxm oxms[OXM_N];
    struct flow_key key;
    if (f->removed)
        return true;
    struct of_flow_mod fm = {.command = OFPFC_ADD,
                             .table_id = f->table_id,
                             .priority = f->priority,
                             .idle_timeout = f->idle_timeout,
                             .hard_timeout = f->hard_timeout,
                             .flags = f->flags,
                             .cookie = flow_program(f)->cookie,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY,
                             .match = {.v = oxms},
                             .instructions = {.raw = program_wire(flow_program(f))}};
    flow_key_of(f, &key);
    key_to_match(&key, &f->sub->mask, &fm.match);
    add(d, w, OFPT_FLOW_MOD, &fm);
    return true;
}

static bool
add_port(struct state_dump *d, struct of_wr *w)
{
    const struct sw_port *p = sw_ports_next(d->sw, d->at);
    if (!p)
        return false;
    d->at = p->no;
    struct of_port_mod pm = {.port_no = p->no, .config = p->config, .mask = p->config};
    memcpy(pm.hw_addr, p->link.mac, sizeof pm.hw_addr);
    if (p->config)
        add(d, w, OFPT_PORT_MOD, &pm);
    return true;
}

static bool
add_queue(struct state_dump *d, struct of_wr *w)
{
    if (d->queues_at == d->queues.len)
        return false;
    const uint8_t *p = d->queues.buf + d->queues_at;
    of_wr_bytes(w, p, of_get16(p + 2));
    d->queues_at += of_get16(p + 2);
    d->count++;
    return true;
}

static part_fn *const parts[] = {add_begin, add_meter, add_group, add_flow,
                                 add_port,  add_queue, add_end};

/* ------------------------------------------------------------------ all of it */

static bool
list_meters(struct sw *sw, struct ids *out)
{
    uint32_t pos = 0, room = meters_count(sw->dp.meters);
    out->v = malloc(room * sizeof *out->v + 1);
    for (const struct meter *m; out->v && out->n < room && (m = meters_each(sw->dp.meters, &pos));)
        out->v[out->n++] = m->id;
    return out->v;
}

int
sw_state_dump_new(struct sw *sw, struct state_dump **out)
{
    static const struct of_match any;
    const struct flow_filter all = {
        .table_id = OFPTT_ALL, .out_port = OFPP_ANY, .out_group = OFPG_ANY, .match = &any};
    struct state_dump *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->sw = sw;
    d->queues = of_wr_grow(256u << 20);
    int err = sw_flow_list_new(sw, &all, &d->flows);
    if (!err && (!list_meters(sw, &d->meters) ||
                 !groups_in_order(sw->dp.groups, &d->groups.v, &d->groups.n) ||
                 !sw_state_queues(sw, &d->queues)))
        err = -ENOMEM;
    if (err) {
        sw_state_dump_free(d);
        return err;
    }
    *out = d;
    return 0;
}

void
sw_state_dump_free(struct state_dump *d)
{
    if (d->flows)
        sw_flow_list_release(d->flows);
    free(d->meters.v);
    free(d->groups.v);
    of_wr_free(&d->queues);
    free(d);
}

bool
sw_state_dump_next(struct state_dump *d, struct of_wr *w)
{
    size_t before = w->len;
    while (w->len == before && reserve(w)) {
        if (parts[d->part](d, w))
            continue;
        d->at = 0;
        if (++d->part == sizeof parts / sizeof parts[0])
            return false;
    }
    return true;
}
