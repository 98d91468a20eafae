/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics-inside.h"

#include <core/ports.h>
#include <core/words.h>

#include <oflib/text.h>

#include <stdarg.h>
#include <stdio.h>

#define METRICS_ROW(id, name, type, unit, per, help) {name, METRICS_##type, unit, per, help},
#define METRICS_ROWS(group, labels)                                                                \
    static const struct metrics_row rows_##group[] = {METRICS_##group(METRICS_ROW)};
METRICS_GROUPS(METRICS_ROWS)

#define METRICS_GROUP_ROW(group, labels) {labels, rows_##group, group##_N},
const struct metrics_family_group metrics_groups[METRICS_GROUPS_N] = {
    METRICS_GROUPS(METRICS_GROUP_ROW)};

/* Both formats escape these three, and take UTF-8 only. */
static void
write_escaped(struct of_wr *w, const char *s)
{
    size_t left = strlen(s);
    for (size_t n; left; s += n, left -= n) {
        n = of_utf8_len((const uint8_t *)s, left);
        if (!n || (n == 1 && ((*s & 0xe0) == 0 || *s == 0x7f))) {
            n = 1;
            of_wr8(w, '?');
            continue;
        }
        if (*s == '"' || *s == '\\')
            of_wr8(w, '\\');
        of_wr_bytes(w, s, n);
    }
}

void
metrics_label(struct metrics *m, const char *name, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    of_printf(&m->labels, ",%s=\"", name);
    write_escaped(&m->labels, text);
    of_wr8(&m->labels, '"');
}

void
metrics_label_port(struct metrics *m, uint32_t no)
{
    const struct of_port *p = ports_desc(&m->ports, no);
    if (no == OFPP_LOCAL)
        metrics_label(m, "port", "local");
    else
        metrics_label(m, "port", "%u", (unsigned)no);
    metrics_label(m, "name", "%.*s", OFP_MAX_PORT_NAME_LEN, p ? p->name : "");
}

uint64_t *
metrics_object(struct metrics *m, enum metrics_group group)
{
    struct metrics_objects *to = &m->of[group];
    size_t n = metrics_groups[group].n * metrics_width(metrics_groups[group].rows);
    struct metrics_object *v = words_room(m->c, to->v, to->n, &to->room, sizeof *v);
    uint64_t *values = of_arena_array(&m->c->arena, n, sizeof *values);
    char *labels = words_keep(m->c, (const char *)m->labels.buf, m->labels.len);
    bool full = !v || !values || !labels || m->labels.overflow;
    m->labels.len = 0;
    if (full) {
        m->full = true;
        return NULL;
    }
    for (size_t i = 0; i < n; i++)
        values[i] = METRICS_UNKNOWN;
    to->v = v;
    v[to->n++] = (struct metrics_object){labels, values};
    return values;
}

/* A refusal leaves remote.why empty; a lost connection fills it. */
enum status
metrics_allow(struct metrics *m, enum status st, bool *refused)
{
    *refused = st == DPCTL_FAILED && !*m->c->remote.why;
    return *refused ? DPCTL_OK : st;
}
