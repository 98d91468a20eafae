/* SPDX-License-Identifier: Apache-2.0 */
/* PRIO and ETS: bands and the map from priorities to them. */
#include "fill.h"

#include <linux/pkt_sched.h>
#include <string.h>

void
netlink_fill_priomap(uint8_t map[16], const struct qos_values *v)
{
    for (unsigned i = 0; i < 16; i++)
        map[i] = (uint8_t)qos_priomap_get(&v->v[QOS_PRIOMAP], i);
}

void
netlink_read_priomap(struct qos_values *v, const uint8_t map[16])
{
    qos_put(v, QOS_PRIOMAP, 0);
    qos_put(v, QOS_PRIOMAP + 1, 0);
    for (unsigned i = 0; i < 16; i++)
        qos_priomap_put(&v->v[QOS_PRIOMAP], i, map[i]);
}

static int
prio_fill(struct nl_msg *msg, const struct qos_values *v)
{
    struct tc_prio_qopt opt = {.bands = (int)v->v[QOS_BANDS]};
    netlink_fill_priomap(opt.priomap, v);
    return nla_put(msg, TCA_OPTIONS, sizeof opt, &opt);
}

static void
prio_read(struct nlattr *options, struct qos_values *v)
{
    struct tc_prio_qopt opt;
    if (nla_len(options) < (int)sizeof opt)
        return;
    memcpy(&opt, nla_data(options), sizeof opt);
    qos_put(v, QOS_BANDS, (uint32_t)opt.bands);
    netlink_read_priomap(v, opt.priomap);
}

static int
ets_fill(struct nl_msg *msg, const struct qos_values *v)
{
    uint8_t map[16];
    if (nla_put_u8(msg, TCA_ETS_NBANDS, (uint8_t)v->v[QOS_BANDS]))
        return -1;
    netlink_fill_priomap(map, v);
    struct nlattr *inner = qos_has(v, QOS_PRIOMAP) ? nla_nest_start(msg, TCA_ETS_PRIOMAP) : NULL;
    for (unsigned i = 0; inner && i < 16; i++) {
        if (nla_put_u8(msg, TCA_ETS_PRIOMAP_BAND, map[i]))
            return -1;
    }
    if (inner)
        nla_nest_end(msg, inner);
    return 0;
}

static void
ets_read(struct nlattr *options, struct qos_values *v)
{
    struct nlattr *tb[TCA_ETS_MAX + 1], *a;
    uint8_t map[16] = {0};
    int left, i = 0;
    if (nla_parse_nested(tb, TCA_ETS_MAX, options, NULL))
        return;
    if (tb[TCA_ETS_NBANDS] && nla_len(tb[TCA_ETS_NBANDS]) >= 1)
        qos_put(v, QOS_BANDS, nla_get_u8(tb[TCA_ETS_NBANDS]));
    if (!tb[TCA_ETS_PRIOMAP])
        return;
    nla_for_each_nested(a, tb[TCA_ETS_PRIOMAP], left) {
        if (i < 16 && nla_len(a) >= 1)
            map[i++] = nla_get_u8(a);
    }
    netlink_read_priomap(v, map);
}

const struct filler netlink_fill_prio = {prio_fill, prio_read, false};
const struct filler netlink_fill_ets = {ets_fill, ets_read, true};
