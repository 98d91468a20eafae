/* SPDX-License-Identifier: Apache-2.0 */
#include "describe.h"
#include "dump-ids.h"
#include "flow-mod.h"
#include <admission/request.h>

#include <shared/reply.h>

#include <errno.h>

static int
meter_mod(struct sw *sw, const struct of_msg *m)
{
    return tables_meter_mod(sw->dp.tables, m->body, UINT32_MAX, loop_now(sw->loop));
}

static int
handle_meter_mod(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    const struct of_meter_mod *q = m->body;
    if (q->command == OFPMC_DELETE && q->meter_id)
        return sw_delete_with_flows(sw, c, m);
    return meter_mod(sw, m);
}

static int
may_meter_mod(const struct slice_request *a)
{
    uint32_t id = ((const struct of_meter_mod *)a->m->body)->meter_id;
    return slice_has_meter(a->slice, id)
               ? 0
               : slice_deny(a, OF_BAD_REQUEST(EPERM), "meter %u", (unsigned)id);
}

const struct request request_meter_mod = {.access = ACCESS_WRITE,
                                          .slice = may_meter_mod,
                                          .needs = QUEUES,
                                          .bundle = BUNDLE_TABLES,
                                          .in_change_set = meter_mod,
                                          LOGGED(METER),
                                          .run = handle_meter_mod};

static void
add_stats(struct sw *sw, struct conn_dump *to, uint32_t id)
{
    const struct meter *mt = meters_find(sw->dp.meters, id);
    if (!mt)
        return;
    struct flow_counter n = meters_counter(sw->dp.meters, mt, -1);
    struct of_band_counter bands[METER_MAX_BANDS];
    void *v[METER_MAX_BANDS];
    struct of_meter_stats s = {.meter_id = mt->id,
                               .flow_count = meters_refs(sw->dp.meters, mt->id),
                               .packet_in_count = n.packets,
                               .byte_in_count = n.bytes,
                               .band_stats = OF_LIST(v, mt->n_bands)};
    for (uint32_t i = 0; i < mt->n_bands; i++) {
        n = meters_counter(sw->dp.meters, mt, (int)i);
        bands[i] = (struct of_band_counter){n.packets, n.bytes};
        v[i] = &bands[i];
    }
    split_duration(loop_now(sw->loop), mt->created, &s.duration_sec, &s.duration_nsec);
    conn_dump_add(to, &of_list_meter_stats, &s);
}

void
sw_meter_bands(const struct meter *mt, struct meter_bands *room, struct of_list *out)
{
    for (uint32_t i = 0; i < mt->n_bands; i++) {
        const struct band *b = &mt->bands[i];
        const struct of_tag_row *row = of_tag_row(&of_list_bands, b->type);
        if (b->type == OFPMBT_DROP)
            room->bands[i].drop =
                (struct of_band_drop){.row = row, .rate = b->rate, .burst_size = b->burst};
        else
            room->bands[i].remark = (struct of_band_dscp_remark){
                .row = row, .rate = b->rate, .burst_size = b->burst, .prec_level = b->prec_level};
        room->v[i] = &room->bands[i];
    }
    *out = OF_LIST(room->v, mt->n_bands);
}

static void
add_config(struct sw *sw, struct conn_dump *to, uint32_t id)
{
    const struct meter *mt = meters_find(sw->dp.meters, id);
    struct meter_bands room;
    if (!mt)
        return;
    struct of_meter_config r = {.flags = mt->flags, .meter_id = mt->id};
    sw_meter_bands(mt, &room, &r.bands);
    conn_dump_add(to, &of_list_meter_configs, &r);
}

static int
dump_meters(struct sw *sw, struct conn *c, const struct of_msg *m, id_dump_add add)
{
    uint32_t pos = 0, id = ((const struct of_mp_meter_request *)m->body)->meter_id;
    if (id != OFPM_ALL && !meters_find(sw->dp.meters, id))
        return OF_METER_MOD_FAILED(UNKNOWN_METER);
    struct id_dump *d = sw_id_dump_new(sw, id == OFPM_ALL ? meters_count(sw->dp.meters) : 1, add);
    if (!d)
        return -ENOMEM;
    if (id != OFPM_ALL)
        sw_id_dump_put(d, id);
    else
        for (const struct meter *mt; (mt = meters_each(sw->dp.meters, &pos));)
            if (slice_has_meter(sw_slice_of(c), mt->id))
                sw_id_dump_put(d, mt->id);
    return sw_id_dump_send(d, c, m);
}

static int
handle_meter_stats(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return dump_meters(sw, c, m, add_stats);
}

static int
may_meter_stats(const struct slice_request *a)
{
    uint32_t id = ((const struct of_mp_meter_request *)a->m->body)->meter_id;
    return id == OFPM_ALL || slice_has_meter(a->slice, id)
               ? 0
               : slice_deny(a, OF_BAD_REQUEST(EPERM), "meter %u", (unsigned)id);
}

const struct request request_meter_stats = {
    .access = ACCESS_READ, .slice = may_meter_stats, .needs = TABLES, .run = handle_meter_stats};

static int
handle_meter_config(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    return dump_meters(sw, c, m, add_config);
}

const struct request request_meter_config = {
    .access = ACCESS_READ, .slice = may_meter_stats, .needs = TABLES, .run = handle_meter_config};

static int
handle_meter_features(struct sw *sw, struct conn *c, const struct of_msg *m)
{
    struct of_mp_meter_features r = {.max_meter = meters_most(sw->dp.meters),
                                     .band_types = 1 << OFPMBT_DROP | 1 << OFPMBT_DSCP_REMARK,
                                     .capabilities =
                                         OFPMF_KBPS | OFPMF_PKTPS | OFPMF_BURST | OFPMF_STATS,
                                     .max_bands = METER_MAX_BANDS};
    return conn_reply(c, OFPT_MULTIPART_REPLY, m, &r);
}

const struct request request_meter_features = {
    .access = ACCESS_READ, .slice = slice_anything, .run = handle_meter_features};
