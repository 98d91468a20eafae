/* SPDX-License-Identifier: Apache-2.0 */
/* OFPMP_FLOW (7.3.5.2).  The flows of a reply are listed when the request comes, and held until the
 * peer has read them.  Requests for all flows share a list as long as no flow is added or removed,
 * and all lists together are bounded, so peers that don't read cost little memory. */
#include "requests.h"

#include <switch/flows.h>

#include <errno.h>
#include <stdlib.h>

#define LISTED_MAX (16u << 20) /* flows on all lists: 128 MB of pointers */

struct flow_list {
    struct sw *sw;
    unsigned refs;
    uint8_t table_id;
    uint64_t stamp; /* of the tables */
    uint32_t n, cap;
    struct flow **v;
};

struct flow_dump {
    struct flow_list *list;
    uint32_t at;
};

/* Changes whenever a flow is added or removed. */
static uint64_t
stamp_of(const struct sw *sw)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < tables_count(sw->dp.tables); i++)
        sum += tables_generation(sw->dp.tables, (uint8_t)i);
    return sum;
}

/* ------------------------------------------------------------------ lists */

static void
list_release(struct flow_list *l)
{
    if (--l->refs)
        return;
    if (l->sw->flow_list == l)
        l->sw->flow_list = NULL;
    for (uint32_t i = 0; i < l->n; i++)
        flow_release(l->v[i]);
    l->sw->flows_listed -= l->n;
    free(l->v);
    free(l);
}

static int
collect(void *ctx, struct flow *f)
{
    struct flow_list *l = ctx;
    if (l->sw->flows_listed >= LISTED_MAX)
        return OF_BAD_REQUEST(MULTIPART_BUFFER_OVERFLOW);
    if (l->n == l->cap) {
        uint32_t cap = l->cap ? l->cap * 2 : 64;
        struct flow **v = realloc(l->v, cap * sizeof *v);
        if (!v)
            return -ENOMEM;
        l->v = v;
        l->cap = cap;
    }
    flow_hold(f);
    l->v[l->n++] = f;
    l->sw->flows_listed++;
    return 0;
}

static int
list_new(struct sw *sw, const struct flow_filter *q, struct flow_list **out)
{
    bool whole = flow_filter_is_all(q);
    struct flow_list *l = sw->flow_list;
    if (l && whole && l->table_id == q->table_id && l->stamp == stamp_of(sw)) {
        l->refs++;
        *out = l;
        return 0;
    }
    l = calloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    *l = (struct flow_list){.sw = sw, .refs = 1, .table_id = q->table_id, .stamp = stamp_of(sw)};
    int err = tables_each(sw->dp.tables, q, collect, l);
    if (err) {
        list_release(l);
        return err;
    }
    if (whole)
        sw->flow_list = l;
    *out = l;
    return 0;
}

/* ------------------------------------------------------------------ the reply */

static void
dump_free(void *ctx)
{
    struct flow_dump *d = ctx;
    list_release(d->list);
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
flow_step(struct conn_dump *to, void *ctx)
{
    struct flow_dump *d = ctx;
    const struct flow_list *l = d->list;
    for (int i = 0; i < 256 && d->at < l->n && l->v[d->at]->removed; i++)
        d->at++;
    if (d->at < l->n && !l->v[d->at]->removed)
        add_flow(to, l->sw, l->v[d->at++]);
    return d->at < l->n;
}

int
handle_flow_stats(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct flow_filter filter = flow_filter_of_stats(m->body);
    struct flow_dump *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    int err = list_new(sw, &filter, &d->list);
    if (!err)
        return conn_dump(c, m, flow_step, dump_free, d);
    free(d);
    return err;
}
