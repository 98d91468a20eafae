/* SPDX-License-Identifier: Apache-2.0 */
#include "map-names.h"
#include "map-shape.h"

#include <inttypes.h>
#include <stdio.h>

/* The sets whose flows this switch's own programs make. */
static const char *const sets[] = {"map", "config", "bw", "names", "network"};
#define HOSTS_PORTS 4096 /* of qos-hosts: "hosts:PORT" */

const char *
qos_map_set_name(struct of_parse *p, uint64_t cookie)
{
    char text[24];
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (qos_map_cookie(sets[i]) == cookie)
            return sets[i];
    for (unsigned port = 1; port <= HOSTS_PORTS; port++) {
        snprintf(text, sizeof text, "hosts:%u", port);
        if (qos_map_cookie(text) == cookie)
            return of_arena_text(p->arena, text, strlen(text));
    }
    snprintf(text, sizeof text, "#%08" PRIx32, (uint32_t)cookie);
    return of_arena_text(p->arena, text, strlen(text));
}

/* ------------------------------------------------------------------ values */

static const struct qos_map_name no_names[] = {{NULL, 0}};

static void
put_named(struct of_wr *w, const char *key, const struct qos_map_name *names, unsigned value)
{
    while (names->name && names->value != value)
        names++;
    if (names->name)
        of_printf(w, ",%s=%s", key, names->name);
    else
        of_printf(w, ",%s=%u", key, value);
}

/* "dscp=ef", "dscp=8-15": three values and more that follow each other are a range. */
static void
put_bits(struct of_wr *w, const char *key, const struct qos_map_name *names, uint64_t bits)
{
    for (unsigned i = 0, to; i < 64; i = to) {
        for (to = i + 1; bits >> i & 1 && to < 64 && bits >> to & 1;)
            to++;
        if (!(bits >> i & 1))
            continue;
        if (to - i > 2)
            of_printf(w, ",%s=%u-%u", key, i, to - 1);
        for (; to - i <= 2 && i < to; i++)
            put_named(w, key, names, i);
    }
}

static void
put_ecns(struct of_wr *w, uint8_t ecns)
{
    if (ecns == 1 || ecns == 14) /* 14: all but Not-ECT */
        of_printf(w, ",ecn=%s", ecns == 1 ? "no" : "yes");
    else
        put_bits(w, "ecn", qos_map_ecns, ecns);
}

/* ------------------------------------------------------------------ ports */

/* Where these ports of the application stand; n: not all are there. */
static size_t
find_app(const struct map_port *v, size_t n, const struct qos_map_app *a)
{
    const struct map_port first = {a->proto, MAP_SRC | MAP_DST, a->low};
    size_t at = 0;
    while (at < n &&
           (v[at].proto != first.proto || v[at].sides != first.sides || v[at].no != first.no))
        at++;
    size_t all = a->high - a->low + 1u;
    if (at + all > n || v[at + all - 1].no != a->high || v[at + all - 1].proto != a->proto)
        return n;
    return at;
}

/* Takes the ports of an application that are all there out of the list. */
static bool
take_app(struct map_port *v, size_t *n, const char *name)
{
    const struct qos_map_app *a;
    for (a = qos_map_apps; a->name; a++)
        if (!strcmp(a->name, name) && find_app(v, *n, a) == *n)
            return false;
    for (a = qos_map_apps; a->name; a++) {
        if (strcmp(a->name, name))
            continue;
        size_t at = find_app(v, *n, a), all = a->high - a->low + 1u;
        memmove(v + at, v + at + all, (*n - at - all) * sizeof *v);
        *n -= all;
    }
    return true;
}

static bool
put_ports(struct of_parse *p, struct of_wr *w, const struct map_shape *s)
{
    static const char *const sides[] = {"", "_src", "_dst", ""};
    size_t n = s->n_ports;
    struct map_port *v = of_arena_array(p->arena, n + 1, sizeof *v);
    if (!v)
        return false;
    for (size_t i = 0; i < n; i++)
        v[i] = s->ports[i];
    for (const struct qos_map_app *a = qos_map_apps; a->name; a++)
        if ((a == qos_map_apps || strcmp(a->name, a[-1].name)) && take_app(v, &n, a->name))
            of_printf(w, ",app=%s", a->name);
    for (size_t i = 0, to; i < n; i = to) {
        for (to = i + 1; to < n && v[to].proto == v[i].proto && v[to].sides == v[i].sides &&
                         v[to].no == v[to - 1].no + 1;)
            to++;
        const struct qos_map_name *proto = qos_map_protocols;
        while (proto->value != v[i].proto)
            proto++;
        of_printf(w, ",%s%s=%u", proto->name, sides[v[i].sides], v[i].no);
        if (to - i > 1)
            of_printf(w, "-%u", v[to - 1].no);
    }
    return true;
}

/* ------------------------------------------------------------------ the rule */

static void
put_does(struct of_wr *w, const struct map_shape *s, bool wash)
{
    if (s->does.dscp >= 0 && !(wash && !s->does.dscp))
        put_named(w, "remark", qos_map_dscps, (unsigned)s->does.dscp);
    if (s->does.pcp >= 0)
        of_printf(w, ",set_pcp=%d", s->does.pcp);
}

/* How many flows the text would make, and their priority. */
static size_t
flows_of(struct of_parse *p, const struct qos_map_read *r, const char *text, uint16_t *prio)
{
    struct qos_map m;
    qos_map_init(&m, "");
    m.wash = r->wash;
    m.beside = r->beside;
    if (qos_map_rule(p, &m, text, false) || !m.n)
        return 0;
    *prio = 0;
    for (size_t i = 0; i < m.n; i++) /* those for frames of any protocol have one less */
        *prio = m.v[i].priority > *prio ? m.v[i].priority : *prio;
    return m.n;
}

static bool
frames_only(const struct map_shape *s)
{
    return s->families == MAP_ANY_PROTOCOL;
}

const char *
qos_map_rule_text(struct of_parse *p, struct qos_map_read *r, const struct map_shape *s)
{
    struct of_wr w = of_wr_grow(1 << 16);
    uint16_t prio;
    char *text = NULL;
    if (s->does.queue)
        of_printf(&w, ",queue=%u", (unsigned)s->does.queue);
    put_bits(&w, "pcp", no_names, s->pcps);
    put_bits(&w, "dscp", qos_map_dscps, s->dscps);
    if (s->ecns)
        put_ecns(&w, s->ecns);
    bool ok = put_ports(p, &w, s);
    if (s->proto >= 0)
        put_named(&w, "ip_proto", qos_map_protocols, (unsigned)s->proto);
    if (*s->src)
        of_printf(&w, ",src=%s", s->src);
    if (*s->dst)
        of_printf(&w, ",dst=%s", s->dst);
    if (s->in_port) {
        of_printf(&w, ",in_port=");
        of_print_number(&w, &of_fmt_PORT, s->in_port);
    }
    put_does(&w, s, r->wash);
    if (ok && !w.overflow && w.len)
        text = of_arena_text(p->arena, (const char *)w.buf + 1, w.len - 1);
    size_t want = text ? flows_of(p, r, text, &prio) : 0;
    uint16_t is = frames_only(s) ? (uint16_t)(s->prio - 1) : s->prio;
    if (want && prio != is) {
        of_printf(&w, ",prio=%u", s->prio);
        text = of_arena_text(p->arena, (const char *)w.buf + 1, w.len - 1);
        want = text ? flows_of(p, r, text, &prio) : 0;
    }
    of_wr_free(&w);
    r->missing = want > s->flows ? (uint32_t)(want - s->flows) : 0;
    return text;
}

const char *
qos_map_flow_text(struct of_parse *p, const struct of_flow_stats *f)
{
    struct of_wr w = of_wr_grow(1 << 16);
    of_printf(&w, "flow ");
    of_print_match(&w, &f->match);
    const char *text = w.overflow ? NULL : of_arena_text(p->arena, (const char *)w.buf, w.len);
    of_wr_free(&w);
    return text;
}
