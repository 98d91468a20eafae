/* SPDX-License-Identifier: Apache-2.0 */
/* OFPMP_FLOW and OFPMP_AGGREGATE (7.3.5.2, 7.3.5.3).  The flows of a reply are listed when the request comes, and
 * held until the peer has read them, or until they have been added up, over many turns. */
#include "flow-list.h"
#include <admission/request.h>

#include <requests/flows.h>
#include <shared/reply.h>

#include <errno.h>
#include <stdlib.h>

#define FLOWS_A_STEP 256

struct flow_dump {
    struct flow_list *list;
    struct slice *slice; /* those that it sees */
    uint32_t at;
    struct of_mp_aggregate sum; /* OFPMP_AGGREGATE */
};

static void
dump_free(void *ctx)
{
    struct flow_dump *d = ctx;
    sw_flow_list_release(d->list);
    slice_put(d->slice);
    free(d);
}

static void
add_flow(struct conn_dump *to, struct sw *sw, const struct flow *f)
{
    struct of_oxm oxms[OXM_N];
    struct of_flow_stats s;
    sw_flow_describe(sw, f, oxms, &s);
    conn_dump_add(to, &of_list_flow_stats, &s);
}

static bool
is_reported(const struct flow_dump *d, const struct flow *f)
{
    return !f->removed && sw_slice_sees_flow(d->list->sw, d->slice, f);
}

static bool
flow_step(struct conn_dump *to, void *ctx)
{
    struct flow_dump *d = ctx;
    const struct flow_list *l = d->list;
    for (int i = 0; i < FLOWS_A_STEP && d->at < l->n; i++) {
        const struct flow *f = l->v[d->at++];
        if (is_reported(d, f)) {
            add_flow(to, l->sw, f);
            break;
        }
    }
    return d->at < l->n;
}

static void
sum_flow(struct flow_dump *d, const struct flow *f)
{
    struct flow_counter n = tables_flow_counter(d->list->sw->dp.tables, f);
    add_counter(&d->sum.packet_count, n.packets);
    add_counter(&d->sum.byte_count, n.bytes);
    d->sum.flow_count++;
}

static bool
sum_step(struct conn_dump *to, void *ctx)
{
    struct flow_dump *d = ctx;
    const struct flow_list *l = d->list;
    uint8_t bytes[64];
    struct of_wr w = of_wr_fixed(bytes, sizeof bytes);
    for (int i = 0; i < FLOWS_A_STEP && d->at < l->n; i++) {
        const struct flow *f = l->v[d->at++];
        if (is_reported(d, f))
            sum_flow(d, f);
    }
    if (d->at < l->n)
        return true;
    of_encode_struct(&w, &of_row_mp_aggregate, &d->sum);
    conn_dump_add_bytes(to, (struct of_bytes){bytes, w.len});
    return false;
}

static int
answer(struct sw *sw, struct conn *c, const struct of_msg *m, conn_dump_step step)
{
    struct flow_filter filter = flow_filter_of_stats(m->body);
    struct flow_dump *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    int err = sw_flow_list_new(sw, &filter, &d->list);
    d->slice = err ? NULL : slice_hold(sw_slice_of(c));
    if (!err)
        return conn_dump(c, m, step, dump_free, d);
    free(d);
    return err;
}

static int
handle_flow_stats(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return answer(sw, c, m, flow_step);
}

static int
may_flow_stats(const struct slice_request *a)
{
    uint8_t id = ((const struct of_mp_flow_request *)a->m->body)->table_id;
    return id == OFPTT_ALL || slice_has_table(a->slice, id)
               ? 0
               : slice_deny(a, OF_BAD_REQUEST(EPERM), "table %u", id);
}

const struct request request_flow_stats = {
    .access = ACCESS_READ, .slice = may_flow_stats, .needs = TABLES, .run = handle_flow_stats};

static int
handle_aggregate(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return answer(sw, c, m, sum_step);
}

const struct request request_aggregate = {
    .access = ACCESS_READ, .slice = may_flow_stats, .needs = TABLES, .run = handle_aggregate};
