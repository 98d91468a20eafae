/* SPDX-License-Identifier: Apache-2.0 */
#include "map-flow.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TABLE_MAX        253   /* the last one that a flow can send packets on from */
#define ANSWERS_PRIORITY 60000 /* above all rules without prio= */

bool
qos_map_range(const char *text, unsigned long max, unsigned long *low, unsigned long *high)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    *low = *high = strtoul(text, &end, 0);
    if (*end == '-' && isdigit((unsigned char)end[1]))
        *high = strtoul(end + 1, &end, 0);
    return !*end && *low <= *high && *high <= max;
}

int
qos_map_put_flow(struct of_parse *p, struct qos_map *m, const struct qos_map_does *does,
                 uint16_t priority, const char *match)
{
    struct qos_map_flow *v = of_arena_room(p->arena, m->v, m->n, &m->room, sizeof *v);
    if (!v)
        return -ENOMEM;
    m->v = v;
    struct qos_map_flow *f = &v[m->n++];
    *f = (struct qos_map_flow){.priority = priority,
                               .does = *does,
                               .match_text = of_arena_text(p->arena, match, strlen(match))};
    return f->match_text ? of_parse_match(p, match, &f->match) : -ENOMEM;
}

void
qos_map_init(struct qos_map *m, const char *set)
{
    *m = (struct qos_map){.set = set};
}

uint64_t
qos_map_cookie(const char *set)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    char *end;
    if (*set == '#' && strlen(set) == 9) {
        unsigned long given = strtoul(set + 1, &end, 16);
        if (!*end)
            return QOS_MAP_COOKIE | given;
    }
    for (; *set; set++)
        hash = (hash ^ (uint8_t)*set) * 16777619u;
    return QOS_MAP_COOKIE | hash;
}

/* ---------------------------------------------------------------------- options */

static int
take_table(struct of_parse *p, struct qos_map *m, const char *word)
{
    unsigned long low, high;
    if (!qos_map_range(word + strlen("table="), TABLE_MAX, &low, &high) || low != high) {
        snprintf(p->why, sizeof p->why, "%.40s: the table must be 0 to %d", word, TABLE_MAX);
        return -EINVAL;
    }
    m->table = (uint8_t)low;
    return 1;
}

static int
take_then(struct of_parse *p, struct qos_map *m, const char *word)
{
    const char *then = word + strlen("then=");
    m->then = of_arena_text(p->arena, then, strlen(then));
    if (!strncmp(then, "goto:", 5) || !strncmp(then, "output:", 7) || !strcmp(then, "normal") ||
        !strcmp(then, "flood"))
        return m->then ? 1 : -ENOMEM;
    snprintf(p->why, sizeof p->why,
             "then must be goto:TABLE, normal, flood or output:PORT, not '%.40s'", then);
    return -EINVAL;
}

int
qos_map_place(struct of_parse *p, struct qos_map *m, const char *word)
{
    if (!strncmp(word, "table=", 6))
        return take_table(p, m, word);
    return !strncmp(word, "then=", 5) ? take_then(p, m, word) : 0;
}

/* "wash", "wash=yes".  1: taken; 0: it is another word. */
static int
take_yes(struct of_parse *p, const char *name, const char *word, bool *yes)
{
    size_t n = strlen(name);
    if (strncmp(word, name, n) || (word[n] && word[n] != '='))
        return 0;
    const char *value = word[n] ? word + n + 1 : "yes";
    *yes = !strcasecmp(value, "yes");
    if (*yes || !strcasecmp(value, "no"))
        return 1;
    snprintf(p->why, sizeof p->why, "%s must be yes or no, not '%.40s'", name, value);
    return -EINVAL;
}

int
qos_map_option(struct of_parse *p, struct qos_map *m, const char *word)
{
    int taken = qos_map_place(p, m, word);
    taken = taken ? taken : take_yes(p, "wash", word, &m->wash);
    taken = taken ? taken : take_yes(p, "beside", word, &m->beside);
    if (taken)
        return taken;
    if (strncmp(word, "set=", 4) || !word[4])
        return 0;
    m->set = of_arena_text(p->arena, word + 4, strlen(word + 4));
    return m->set ? 1 : -ENOMEM;
}

/* ---------------------------------------------------------------------- the end */

static int
by_match_text(const void *a, const void *b)
{
    const struct qos_map_flow *x = a, *y = b;
    int order = strcmp(x->match_text, y->match_text);
    return order ? order : (int)x->priority - (int)y->priority;
}

static int
check_then(struct of_parse *p, const struct qos_map *m)
{
    unsigned long low = 0, high;
    if (!m->then || strncmp(m->then, "goto:", 5) ||
        (qos_map_range(m->then + 5, TABLE_MAX, &low, &high) && low == high && low > m->table))
        return 0;
    snprintf(p->why, sizeof p->why,
             "then=%.40s must name a table after table %u, such as then=goto:%u", m->then, m->table,
             m->table + 1u);
    return -EINVAL;
}

static bool
do_the_same(const struct qos_map_does *a, const struct qos_map_does *b)
{
    return a->queue == b->queue && a->dscp == b->dscp && a->pcp == b->pcp && a->tag == b->tag &&
           a->copy == b->copy;
}

/* Drops flows that are there twice; two that differ in their queue are an error. */
static int
drop_twins(struct of_parse *p, struct qos_map *m)
{
    size_t n = 0;
    if (m->n)
        qsort(m->v, m->n, sizeof *m->v, by_match_text);
    for (size_t i = 0; i < m->n; i++) {
        if (!n || by_match_text(&m->v[n - 1], &m->v[i])) {
            m->v[n++] = m->v[i];
        } else if (!do_the_same(&m->v[n - 1].does, &m->v[i].does)) {
            snprintf(p->why, sizeof p->why,
                     "two rules put %.300s into different queues, or mark it differently: give one "
                     "of them prio=",
                     m->v[i].match_text);
            return -EINVAL;
        }
    }
    m->n = n;
    return 0;
}

/* A flow for packets that fit no rule. */
static int
add_rest(struct of_parse *p, struct qos_map *m, const char *match, uint16_t priority, int dscp)
{
    const struct qos_map_does does = {.dscp = dscp, .pcp = -1};
    return qos_map_put_flow(p, m, &does, priority, match);
}

int
qos_map_answers(struct of_parse *p, struct qos_map *m, const char *server, uint32_t queue,
                uint16_t hard_s)
{
    const struct qos_map_does does = {.queue = queue, .dscp = -1, .pcp = -1, .copy = true};
    char match[160];
    int err = 0;
    for (int v6 = 0; !err && v6 < 2; v6++) {
        if (server && (strchr(server, ':') != NULL) != v6)
            continue;
        snprintf(match, sizeof match, "eth_type=%s,ip_proto=17,udp_src=53%s%.60s",
                 v6 ? "0x86dd" : "0x0800",
                 !server ? ""
                 : v6    ? ",ipv6_src="
                         : ",ipv4_src=",
                 server ? server : "");
        err = qos_map_put_flow(p, m, &does, ANSWERS_PRIORITY, match);
        if (!err)
            m->v[m->n - 1].hard_s = hard_s;
    }
    return err;
}

int
qos_map_finish(struct of_parse *p, struct qos_map *m)
{
    if (!m->n && !m->wash && (!m->then || m->beside))
        return 0;
    if (m->wash && m->beside) {
        snprintf(p->why, sizeof p->why,
                 "wash and beside exclude each other: wash has flows for all IP packets, which the "
                 "controller's flows of the table would then miss");
        return -EINVAL;
    }
    int err = check_then(p, m);
    if (!err && m->wash)
        err = add_rest(p, m, "eth_type=0x0800", QOS_MAP_WASH_PRIORITY, 0);
    if (!err && m->wash)
        err = add_rest(p, m, "eth_type=0x86dd", QOS_MAP_WASH_PRIORITY, 0);
    err = err ? err : drop_twins(p, m);
    return err || m->beside ? err : add_rest(p, m, "", 0, -1);
}
