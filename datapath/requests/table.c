/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: features (7.3.5.5), statistics, table-mod. */
#include <admission/request.h>

#include <megaflow/megaflow.h>

#include <errno.h>
#include <stdlib.h>

struct features_dump {
    struct tables *tables;
    struct slice *slice; /* whose */
    unsigned next;
    struct table_features_wire wire;
};

static void
features_done(void *ctx)
{
    struct features_dump *d = ctx;
    slice_put(d->slice);
    free(d);
}

static bool
features_step(struct conn_dump *to, void *ctx)
{
    struct features_dump *d = ctx;
    unsigned n = tables_count(d->tables);
    const struct flow_table *ft = tables_get(d->tables, (uint8_t)d->next);
    if (ft && slice_has_table(d->slice, (uint8_t)d->next)) {
        table_features_write(&ft->features, (uint8_t)d->next, ft->config, &d->wire);
        conn_dump_add(to, &of_list_table_features, &d->wire.body);
    }
    return ++d->next < n;
}

/* Reads the whole pipeline that a request asks for.  Tables that it does not name are removed. */
static int
read_pipeline(const struct tables *t, const struct of_list *list, struct table_features *v)
{
    unsigned n_tables = tables_count(t);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct of_table_features *q = OF_AT(list, i, struct of_table_features);
        struct table_features all;
        if (q->table_id >= n_tables || v[q->table_id].present)
            return OF_TABLE_FEATURES_FAILED(BAD_TABLE);
        table_features_all(&all, q->table_id, n_tables, tables_max_entries(t));
        int err = table_features_read(q, &all, &v[q->table_id]);
        if (err)
            return err;
    }
    return table_features_check_pipeline(v, n_tables);
}

static int
configure(struct sw *sw, const struct of_list *list)
{
    unsigned n = tables_count(sw->dp.tables);
    struct table_features *v = calloc(n, sizeof *v);
    if (!v)
        return -ENOMEM;
    int err = read_pipeline(sw->dp.tables, list, v);
    if (!err) {
        tables_configure(sw->dp.tables, v, loop_now(sw->loop));
        sw_offload_forget_all(sw);
    }
    free(v);
    return err;
}

static int
handle_table_features(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_mp_table_features *q = m->body;
    struct features_dump *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->tables = sw->dp.tables;
    int err = q->tables.n ? configure(sw, &q->tables) : 0;
    d->slice = err ? NULL : slice_hold(sw_slice_of(c));
    if (!err)
        return conn_dump(c, m, features_step, features_done, d);
    free(d);
    return err;
}

static int
may_table_features(const struct slice_request *a)
{
    return ((const struct of_mp_table_features *)a->m->body)->tables.n
               ? slice_deny(a, OF_TABLE_FEATURES_FAILED(EPERM), "the pipeline")
               : 0;
}

const struct request request_table_features = {.access = ACCESS_WRITE_BODY,
                                               .slice = may_table_features,
                                               .needs = QUEUES,
                                               .run = handle_table_features};

/* ------------------------------------------------------------------ statistics and table-mod
 * (7.3.3) */

struct stats_dump {
    struct sw *sw;
    struct slice *slice;
};

static void
stats_done(void *ctx)
{
    struct stats_dump *d = ctx;
    slice_put(d->slice);
    free(d);
}

static bool
table_step(struct conn_dump *to, void *ctx)
{
    const struct stats_dump *d = ctx;
    struct sw *sw = d->sw;
    for (unsigned i = 0; i < tables_count(sw->dp.tables); i++) {
        const struct flow_table *ft = tables_get(sw->dp.tables, (uint8_t)i);
        if (!ft || !slice_has_table(d->slice, (uint8_t)i))
            continue;
        struct table_counter n = tables_counter(sw->dp.tables, (uint8_t)i);
        struct of_table_stats s = {.table_id = (uint8_t)i,
                                   .active_count = ft->flows.n_flows,
                                   .lookup_count = n.lookups,
                                   .matched_count = n.matched};
        conn_dump_add(to, &of_list_table_stats, &s);
    }
    return false;
}

static int
handle_table_stats(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct stats_dump *d = malloc(sizeof *d);
    if (!d)
        return -ENOMEM;
    *d = (struct stats_dump){sw, slice_hold(sw_slice_of(c))};
    return conn_dump(c, m, table_step, stats_done, d);
}

const struct request request_table_stats = {
    .access = ACCESS_READ, .slice = slice_anything, .needs = TABLES, .run = handle_table_stats};

static int
handle_table_mod(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_table_mod *q = m->body;
    if (q->table_id != OFPTT_ALL && !tables_get(sw->dp.tables, q->table_id))
        return OF_TABLE_MOD_FAILED(BAD_TABLE);
    if (q->config & ~(uint32_t)OFPTC_DEPRECATED_MASK)
        return OF_TABLE_MOD_FAILED(BAD_CONFIG);
    for (unsigned i = 0; i < tables_count(sw->dp.tables); i++) {
        struct flow_table *ft = tables_get(sw->dp.tables, (uint8_t)i);
        if (ft && (q->table_id == OFPTT_ALL || q->table_id == i))
            ft->config = q->config;
    }
    return 0;
}

static int
may_table_mod(const struct slice_request *a)
{
    uint8_t id = ((const struct of_table_mod *)a->m->body)->table_id;
    return slice_set_has(&a->slice->tables, id)
               ? 0
               : slice_deny(a, OF_TABLE_MOD_FAILED(EPERM), "table %u", id);
}

const struct request request_table_mod = {.access = ACCESS_WRITE,
                                          .slice = may_table_mod,
                                          .denied = OF_TABLE_MOD_FAILED(EPERM),
                                          .needs = QUEUES,
                                          LOGGED(FLOW),
                                          .run = handle_table_mod};
