/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <string.h>

static const struct qos_sched *const scheds[] = {
    &qos_sched_none,  &qos_sched_htb, &qos_sched_pfifo, &qos_sched_bfifo, &qos_sched_sfq,
    &qos_sched_red,   &qos_sched_tbf, &qos_sched_prio,  &qos_sched_codel, &qos_sched_fq_codel,
    &qos_sched_fq,    &qos_sched_pie, &qos_sched_cake,  &qos_sched_hfsc,  &qos_sched_drr,
    &qos_sched_netem, &qos_sched_ets,
};

/* What every scheduler has. */
static const struct qos_field common[] = {
    {.names = "direction",
     .slot = QOS_DIRECTION,
     .unit = QOS_U_ENUM,
     .where = QOS_ON_QDISC | QOS_ON_CLASS | QOS_ON_SET | QOS_ON_DEL,
     QOS_PROP(DIRECTION),
     .max = 1,
     .words = "out|in",
     .help = "what leaves by the port (default), or what enters by it"},
    {.names = "children|with_children",
     .slot = QOS_WITH_CHILDREN,
     .unit = QOS_U_BOOL,
     .where = QOS_ON_CLASS | QOS_ON_DEL,
     QOS_PROP(WITH_CHILDREN),
     .max = 1,
     .help = "delete what hangs below as well"},
};

static const struct {
    const char *name;
    uint8_t bytes;
} props[] = {
#define ROW(n, type, size) [type] = {#n, size},
    OFP_QOS_PROP_ROWS(ROW)
#undef ROW
};

const struct qos_sched *
qos_sched_by_id(unsigned id)
{
    return id < QOS_COUNT(scheds) ? scheds[id] : NULL;
}

const struct qos_sched *
qos_sched_by_name(const char *name)
{
    for (size_t i = 0; i < QOS_COUNT(scheds); i++) {
        if (strcmp(scheds[i]->name, name) == 0)
            return scheds[i];
    }
    return NULL;
}

const struct qos_sched *
qos_sched_at(unsigned i)
{
    return qos_sched_by_id(i);
}

const struct qos_field *
qos_sched_field(const struct qos_sched *s, unsigned i)
{
    if (i < s->n_fields)
        return &s->fields[i];
    i -= s->n_fields;
    return i < QOS_COUNT(common) ? &common[i] : NULL;
}

const struct qos_field *
qos_sched_slot(const struct qos_sched *s, unsigned slot)
{
    const struct qos_field *f;
    for (unsigned i = 0; (f = qos_sched_field(s, i)); i++) {
        if (f->slot == slot)
            return f;
    }
    return NULL;
}

bool
qos_field_applies(const struct qos_field *f, unsigned object, unsigned action)
{
    unsigned need = (object == OFP_QOS_CLASS ? QOS_ON_CLASS : QOS_ON_QDISC) |
                    (action == OFP_QOS_DEL ? QOS_ON_DEL : QOS_ON_SET);
    return (f->where & need) == need;
}

unsigned
qos_field_slots(const struct qos_field *f)
{
    return f->unit == QOS_U_CURVE ? 3 : f->unit == QOS_U_PRIOMAP ? 2 : 1;
}

void
qos_values_merge(const struct qos_sched *s, struct qos_values *now, const struct qos_values *change)
{
    const struct qos_field *f;
    for (unsigned i = 0; (f = qos_sched_field(s, i)); i++) {
        if (f->rival && change->v[f->slot])
            qos_unset(now, f->rival);
    }
    for (unsigned slot = 0; slot < QOS_N_SLOTS; slot++) {
        if (qos_has(change, slot))
            qos_put(now, slot, change->v[slot]);
    }
}

unsigned
qos_prop_size(unsigned type)
{
    return type < QOS_COUNT(props) ? props[type].bytes : 0;
}

const char *
qos_prop_name(unsigned type)
{
    return type < QOS_COUNT(props) ? props[type].name : NULL;
}

uint32_t
qos_env_packets(const struct qos_env *env)
{
    return env->txqueuelen ? env->txqueuelen : 1000;
}

uint32_t
qos_env_frame(const struct qos_env *env)
{
    uint32_t mtu = env->mtu ? env->mtu : 1500;
    return (mtu < 0xffff ? mtu : 0xffff) + 14;
}

/* The kernel counts VLAN tags and MPLS labels, 4 bytes each, beside the MTU; stacks of eight are
 * rare. */
#define TAGS (8 * 4)

uint32_t
qos_env_longest(const struct qos_env *env)
{
    return qos_env_frame(env) + TAGS;
}

/* A queue that isn't served for some milliseconds (the machine is busy) must be able to make up for
 * it, or it falls behind its rate: 10 ms, up to 5 MB (a millisecond is enough above that); 4 ms where
 * a packet alone takes milliseconds. */
#define FAST         10000000u /* bit/s */
#define BURST_ENOUGH 5000000u

uint32_t
qos_default_burst(uint64_t rate, const struct qos_env *env)
{
    uint64_t ms = rate / 8 / 1000, burst = (rate < FAST ? 4 : 10) * ms;
    burst = burst < BURST_ENOUGH ? burst : BURST_ENOUGH;
    burst = (burst > ms ? burst : ms) + qos_env_longest(env);
    return burst < QOS_U32_MAX ? (uint32_t)burst : (uint32_t)QOS_U32_MAX;
}

bool
qos_burst_fits(uint64_t bytes, uint64_t rate)
{
    /* bytes * 8 / rate seconds < 2^32 * 64 ns = 274 s */
    return rate && bytes * 8 / rate < 274;
}

int
qos_check_priomap(const struct qos_values *v, const struct qos_values *given, struct qos_error *e)
{
    uint64_t bands = v->v[QOS_BANDS];
    for (unsigned i = 0; i < 16 && qos_has(v, QOS_PRIOMAP); i++) {
        if ((v->v[QOS_PRIOMAP + i / 8] >> (56 - i % 8 * 8) & 0xff) >= bands)
            return qos_fail(e, QOS_BAD_PARAM, "the priomap names a band above %u",
                            (unsigned)bands - 1);
    }
    return 0;
}
