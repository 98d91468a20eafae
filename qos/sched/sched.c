/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <qos/sched/units.h>

#include <stdio.h>
#include <string.h>

#define SPEED_DEFAULT 10000000000ull /* bit/s */

/* What every scheduler has. */
static const struct qos_field common[] = {
    {QOS_FIELD("direction", DIRECTION, ENUM, QOS_ON_QDISC | QOS_ON_CLASS | QOS_ON_SET | QOS_ON_DEL),
     QOS_PROP(DIRECTION), .max = 1, .words = "out|in",
     .help = "what leaves by the port (default), or what enters by it"},
    {QOS_FIELD("children|with_children", WITH_CHILDREN, BOOL, QOS_ON_CLASS | QOS_ON_DEL),
     QOS_PROP(WITH_CHILDREN), .max = 1, .help = "delete what hangs below as well"},
};

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
        if (slot >= f->slot && slot < f->slot + qos_field_slots(f))
            return f;
    }
    return NULL;
}

const char *
qos_sched_kind(const struct qos_sched *s, const struct qos_values *v, char buf[QOS_NAME_ROOM])
{
    if (!s->named)
        return s->name;
    return v && *qos_name_get(&v->v[QOS_NAME], buf) ? buf : NULL;
}

bool
qos_sched_at_add(const struct qos_sched *s, unsigned slot)
{
    const struct qos_field *f = qos_sched_slot(s, slot);
    return f && f->where & QOS_AT_ADD;
}

unsigned
qos_sched_n_parts(const struct qos_sched *s, const struct qos_values *resolved)
{
    static const uint8_t tins[] = {1, 3, 4, 8}; /* by DIFFSERV */
    uint64_t diffserv = resolved->v[QOS_DIFFSERV];
    return s->bands                                ? (unsigned)resolved->v[QOS_BANDS]
           : s->tins && diffserv < QOS_COUNT(tins) ? tins[diffserv]
                                                   : 0;
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

/* ---------------------------------------------------------- resolved values */

uint64_t
qos_link_speed(const struct qos_env *env)
{
    return env->speed >= QOS_RATE_MIN ? env->speed : SPEED_DEFAULT;
}

void
qos_resolve_class(const struct qos_sched *s, bool root, const struct qos_values *config,
                  const struct qos_env *env, struct qos_values *out)
{
    struct qos_env at = *env;
    if (root)
        at.parent_rate = at.parent_ceil = qos_link_speed(env);
    *out = *config;
    if (s->flat && (root || qos_sched_parts(s))) {
        qos_put(out, QOS_RATE, 0);
        qos_put(out, QOS_CEIL, env->speed);
    } else if (s->resolve) {
        s->resolve(out, &at);
    }
}

void
qos_resolve_leaf(const struct qos_sched *s, const struct qos_values *config,
                 const struct qos_env *env, struct qos_values *out)
{
    *out = *config;
    if (s->resolve)
        s->resolve(out, env);
}

void
qos_own_config(const struct qos_sched *s, bool root, uint64_t rate, uint64_t ceil,
               struct qos_values *out)
{
    *out = (struct qos_values){0};
    if (s->own)
        s->own(out, root, rate, ceil);
}

/* -------------------------------------------------------------------- usage */

/* "  prio=N   0 (default) is served first, 7 last (0 to 7)" */
static void
usage_line(const struct qos_field *f, char *buf, size_t n, int *at)
{
    char name[32], key[128], range[128];
    snprintf(key, sizeof key, "%s=%s", qos_field_name(f, name, sizeof name), qos_field_hint(f));
    size_t help = strlen(f->help);
    if (!*qos_field_range(f, range, sizeof range))
        qos_append(buf, n, at, "\n  %-22s  %s", key, f->help);
    else if (f->help[help - 1] == ')')
        qos_append(buf, n, at, "\n  %-22s  %.*s; %s)", key, (int)help - 1, f->help, range);
    else
        qos_append(buf, n, at, "\n  %-22s  %s (%s)", key, f->help, range);
}

int
qos_sched_usage(const struct qos_sched *s, char *buf, size_t n)
{
    char name[32];
    const struct qos_field *f;
    int at = 0;
    if (s->id == OFP_QOS_SCHED_NONE)
        qos_append(buf, n, &at, "cmd=del,port=PORT|any");
    else
        qos_append(buf, n, &at,
                   "cmd=add|del|change|replace,port=PORT,class=CLASS[,object=qdisc|class]");
    if (s->classful)
        qos_append(buf, n, &at, ",default=CLASS");
    for (unsigned i = 0; i < s->n_fields && (f = qos_sched_field(s, i)); i++) {
        bool needed = f->where & QOS_NEEDED;
        qos_append(buf, n, &at, needed ? ",%s=%s" : "[,%s=%s]",
                   qos_field_name(f, name, sizeof name), qos_field_hint(f));
    }
    for (unsigned i = 0; (f = qos_sched_field(s, i)); i++)
        usage_line(f, buf, n, &at);
    return at;
}
