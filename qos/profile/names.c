/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/profile/names.h>

#include <stdio.h>
#include <string.h>

uint32_t
qos_names_seconds(const struct qos_names *t, uint32_t ttl)
{
    if (ttl < t->limits.min_s)
        return t->limits.min_s;
    return ttl < t->limits.max_s ? ttl : t->limits.max_s;
}

static void
drop_old(struct qos_names *t, uint64_t now_s)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].until_s > now_s)
            t->v[n++] = t->v[i];
    t->n = n;
}

static struct qos_names_entry *
find(struct qos_names *t, uint16_t rule, const struct qos_dns_address *a)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].rule == rule && t->v[i].v6 == a->v6 &&
            !memcmp(t->v[i].address, a->bytes, sizeof a->bytes))
            return &t->v[i];
    return NULL;
}

static bool
has_room(const struct qos_names *t, uint16_t rule, const char *name)
{
    size_t same = 0;
    for (size_t i = 0; i < t->n; i++)
        same += t->v[i].rule == rule && !strcmp(t->v[i].name, name);
    return t->n < t->limits.all && same < t->limits.per_name;
}

/* Half of the least time may pass before flows are made again: an answer that comes a thousand times
 * a second changes nothing, and flows without packets never expire while answers come. */
enum qos_names_news
qos_names_learn(struct qos_names *t, uint16_t rule, const char *name,
                const struct qos_dns_address *a, uint64_t now_s)
{
    drop_old(t, now_s);
    struct qos_names_entry *e = find(t, rule, a);
    bool is_new = !e;
    if (e && now_s - e->made_s < t->limits.min_s / 2)
        return QOS_NAMES_SAME;
    if (!e && !has_room(t, rule, name))
        return QOS_NAMES_FULL;
    if (!e) {
        e = &t->v[t->n++];
        *e = (struct qos_names_entry){.v6 = a->v6, .rule = rule};
        snprintf(e->name, sizeof e->name, "%s", name);
        memcpy(e->address, a->bytes, sizeof e->address);
    }
    e->made_s = now_s;
    e->until_s = now_s + t->limits.max_s;
    return is_new ? QOS_NAMES_NEW : QOS_NAMES_AGAIN;
}
