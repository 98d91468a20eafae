/* SPDX-License-Identifier: Apache-2.0 */
#include "flow-list.h"

#include <errno.h>
#include <stdlib.h>

#define LISTED_MAX (16u << 20) /* flows on all lists: 128 MB of pointers */

void
sw_flow_list_release(struct flow_list *l)
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

int
sw_flow_list_new(struct sw *sw, const struct flow_filter *q, struct flow_list **out)
{
    bool whole = flow_filter_is_all(q);
    struct flow_list *l = sw->flow_list;
    if (l && whole && l->table_id == q->table_id && l->stamp == tables_changes(sw->dp.tables)) {
        l->refs++;
        *out = l;
        return 0;
    }
    l = calloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    *l = (struct flow_list){
        .sw = sw, .refs = 1, .table_id = q->table_id, .stamp = tables_changes(sw->dp.tables)};
    int err = tables_each(sw->dp.tables, q, collect, l);
    if (err) {
        sw_flow_list_release(l);
        return err;
    }
    if (whole)
        sw->flow_list = l;
    *out = l;
    return 0;
}
