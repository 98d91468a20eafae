/* SPDX-License-Identifier: Apache-2.0 */
/* Where a map's packets go next, and so what its flows do. */
#include <qos/profile/map.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define APPLY_TEXT 160 /* the actions of a flow */

/* A comma before every action but the first. */
__attribute__((format(printf, 2, 3))) static void
put_action(char apply[APPLY_TEXT], const char *fmt, ...)
{
    size_t at = strlen(apply);
    va_list ap;
    if (at)
        at += (size_t)snprintf(apply + at, APPLY_TEXT - at, ",");
    va_start(ap, fmt);
    vsnprintf(apply + at, APPLY_TEXT - at, fmt, ap);
    va_end(ap);
}

static int
set_instructions(struct of_parse *p, const char *then, struct qos_map_flow *f)
{
    const struct qos_map_does *does = &f->does;
    char apply[APPLY_TEXT] = "", first[APPLY_TEXT + 8];
    bool on = !strncmp(then, "goto:", 5);
    f->instructions = (struct of_list){0};
    if (does->queue)
        put_action(apply, "queue=%u", (unsigned)does->queue);
    if (does->dscp >= 0)
        put_action(apply, "set_field=ip_dscp:%d", does->dscp);
    if (does->copy)
        put_action(apply, "output=controller:no_buffer");
    if (does->tag) /* VID 0: a priority tag (IEEE 802.1Q, 6.9) */
        put_action(apply, "push_vlan=0x8100,set_field=vlan_vid:0");
    if (does->pcp >= 0)
        put_action(apply, "set_field=vlan_pcp:%d", does->pcp);
    if (!on)
        put_action(apply, "output=%s", !strncmp(then, "output:", 7) ? then + 7 : then);
    snprintf(first, sizeof first, "apply:%s", apply);
    int err = *apply ? of_parse_instruction(p, first, &f->instructions) : 0;
    return err || !on ? err : of_parse_instruction(p, then, &f->instructions);
}

const char *
qos_map_then(struct of_parse *p, const struct of_flow_stats *f)
{
    static const char apply[] = "apply:";
    struct of_wr w = of_wr_grow(1 << 16);
    char text[64], then[64] = "";
    of_print_list(&w, &of_list_instructions, &f->instructions);
    /* the last action or instruction: a queue and marks stand before it */
    size_t from = w.overflow ? w.len : 0;
    for (size_t i = from; i < w.len; i++)
        if (w.buf[i] == ',' || w.buf[i] == ' ')
            from = i + 1;
    snprintf(text, sizeof text, "%.*s", (int)(w.len - from), (const char *)w.buf + from);
    of_wr_free(&w);
    const char *last = text + (!strncmp(text, apply, sizeof apply - 1) ? sizeof apply - 1 : 0);
    if (!strncmp(last, "goto:", 5))
        snprintf(then, sizeof then, "%s", last);
    else if (!strcmp(last, "output=normal") || !strcmp(last, "output=flood"))
        snprintf(then, sizeof then, "%s", last + 7);
    else if (!strncmp(last, "output=", 7) && strncmp(last, "output=controller", 17))
        snprintf(then, sizeof then, "output:%.40s", last + 7);
    return *then ? of_arena_text(p->arena, then, strlen(then)) : NULL;
}

const char *
qos_map_present(struct of_parse *p, const struct qos_map *m, const struct of_list *flows)
{
    for (uint32_t i = 0; i < flows->n; i++) {
        const struct of_flow_stats *f = OF_AT(flows, i, struct of_flow_stats);
        if (f->table_id == m->table &&
            (m->beside ? f->cookie == qos_map_cookie(m->set)
                       : qos_map_is_miss(f) && (f->cookie & QOS_MAP_COOKIE_MASK) == QOS_MAP_COOKIE))
            return qos_map_then(p, f);
    }
    return NULL;
}

int
qos_map_way(struct of_parse *p, struct qos_map *m, const struct of_list *table)
{
    char then[16];
    int err = 0;
    if (!m->then)
        m->then = qos_map_present(p, m, table);
    if (!m->then) {
        snprintf(then, sizeof then, "goto:%u", m->table + 1u);
        m->then = of_arena_text(p->arena, then, strlen(then));
    }
    struct qos_map_flow *v = of_arena_array(p->arena, m->n + 1, sizeof *v);
    if (!v || !m->then)
        return -ENOMEM;
    for (size_t i = 0; !err && i < m->n; i++) {
        v[i] = m->v[i];
        err = set_instructions(p, m->then, &v[i]);
    }
    m->v = v; /* a copy of the map may be asked the same of another table */
    m->room = m->n + 1;
    return err;
}

int
qos_map_next(const struct qos_map *m)
{
    return m->then && !strncmp(m->then, "goto:", 5) ? atoi(m->then + 5) : -1;
}
