/* SPDX-License-Identifier: Apache-2.0 */
/* The formats (OpenMetrics 1.0.0; Prometheus's text format 0.0.4; JSON). */
#include "metrics-inside.h"

#include <metrics/metrics.h>

#include <core/ask.h>
#include <core/say.h>

#include <oflib/json.h>
#include <oflib/text.h>

#include <inttypes.h>
#include <stdio.h>

#define PREFIX "ofqos_"

static const char *const type_names[] = {"counter", "gauge", "info", "histogram"};
static const char *const endings[] = {"_total", "", "_info", ""};

/* --------------------------------------------------------------------- a value */

static bool
is_known(const struct metrics_row *row, const struct metrics_object *o, size_t at)
{
    return o->v[at] != METRICS_UNKNOWN && row->per;
}

/* A counter in nanoseconds keeps all its digits. */
static void
write_value(struct of_wr *w, const struct metrics_row *row, uint64_t v)
{
    int digits = 0;
    for (uint64_t p = row->per; p > 1; p /= 10)
        digits++;
    if (digits)
        of_printf(w, "%" PRIu64 ".%0*" PRIu64, v / row->per, digits, v % row->per);
    else
        of_printf(w, "%" PRIu64, v);
}

/* ------------------------------------------------------------------ a histogram */

static const uint32_t bounds[] = {OFP_LATENCY_BOUNDS}; /* us */

/* Seconds as both formats want them, with at least one digit behind the point: 0.0005, 1.0; "+Inf". */
static const char *
bound_text(unsigned i, char text[24])
{
    if (i == OFP_LATENCY_BOUNDS_N)
        return "+Inf";
    int n = snprintf(text, 24, "%.6f", bounds[i] / 1e6);
    while (text[n - 1] == '0' && text[n - 2] != '.')
        text[--n] = '\0';
    return text;
}

/* Each place counts those before it, too. */
static void
write_histogram(const struct metrics *m, struct of_wr *w, const struct metrics_row *row,
                const char *labels, const uint64_t *v)
{
    char le[24];
    uint64_t n = 0;
    for (unsigned i = 0; i <= OFP_LATENCY_BOUNDS_N; i++) {
        n += v[i];
        of_printf(w, PREFIX "%s_bucket{dp=\"%s\"%s,le=\"%s\"} %" PRIu64 "\n", row->name, m->dp,
                  labels, bound_text(i, le), n);
    }
    of_printf(w, PREFIX "%s_count{dp=\"%s\"%s} %" PRIu64 "\n", row->name, m->dp, labels, n);
    of_printf(w, PREFIX "%s_sum{dp=\"%s\"%s} ", row->name, m->dp, labels);
    write_value(w, row, v[OFP_LATENCY_BOUNDS_N + 1]);
    of_wr8(w, '\n');
}

/* ------------------------------------------------------------------------ text */

/* The older format knows neither UNIT nor info, and a counter's name has its _total everywhere. */
static void
write_head(struct of_wr *w, const struct metrics_row *row, enum metrics_format format)
{
    bool open = format == METRICS_OPENMETRICS;
    const char *ending = open ? "" : endings[row->type];
    const char *type = !open && row->type == METRICS_INFO ? "gauge" : type_names[row->type];
    of_printf(w, "# HELP " PREFIX "%s%s %s.\n", row->name, ending, row->help);
    of_printf(w, "# TYPE " PREFIX "%s%s %s\n", row->name, ending, type);
    if (open && *row->unit)
        of_printf(w, "# UNIT " PREFIX "%s %s\n", row->name, row->unit);
}

static void
write_family(const struct metrics *m, struct of_wr *w, enum metrics_group group, size_t at,
             enum metrics_format format)
{
    const struct metrics_row *row = &metrics_groups[group].rows[at];
    const struct metrics_objects *all = &m->of[group];
    const size_t first = at * metrics_width(row);
    bool any = false;
    for (size_t i = 0; i < all->n; i++) {
        const struct metrics_object *o = &all->v[i];
        if (!is_known(row, o, first))
            continue;
        if (!any)
            write_head(w, row, format);
        any = true;
        if (row->type == METRICS_HISTOGRAM) {
            write_histogram(m, w, row, o->labels, o->v + first);
            continue;
        }
        of_printf(w, PREFIX "%s%s{dp=\"%s\"%s} ", row->name, endings[row->type], m->dp, o->labels);
        write_value(w, row, o->v[at]);
        of_wr8(w, '\n');
    }
}

/* ------------------------------------------------------------------------ JSON */

/* Labels are escaped as JSON's are: ,port="1",name="eth1" becomes "port": "1", "name": "eth1". */
static void
json_labels(struct of_json *j, const struct metrics *m, const char *labels)
{
    of_json_object(j, "labels");
    of_json_text(j, "dp", m->dp);
    while (*labels == ',') {
        const char *name = ++labels, *eq = strchr(name, '='), *end = eq + 2;
        char text[64];
        while (*end != '"')
            end += *end == '\\' ? 2 : 1;
        snprintf(text, sizeof text, "%.*s", (int)(eq - name), name);
        of_json_raw(j, text, eq + 1, (size_t)(end + 1 - eq - 1));
        labels = end + 1;
    }
    of_json_end_object(j);
}

static void
json_value(struct of_json *j, const char *name, const struct metrics_row *row, uint64_t v)
{
    char number[48];
    struct of_wr w = of_wr_fixed(number, sizeof number);
    write_value(&w, row, v);
    of_json_raw(j, name, number, w.len);
}

/* Each place by itself, below the bound that it reaches to. */
static void
json_histogram(struct of_json *j, const struct metrics_row *row, const uint64_t *v)
{
    char le[24];
    of_json_object(j, "buckets");
    for (unsigned i = 0; i <= OFP_LATENCY_BOUNDS_N; i++)
        of_json_uint(j, bound_text(i, le), v[i]);
    of_json_end_object(j);
    json_value(j, "sum", row, v[OFP_LATENCY_BOUNDS_N + 1]);
}

static void
json_sample(struct of_json *j, const struct metrics *m, const struct metrics_row *row,
            const struct metrics_object *o, size_t at)
{
    of_json_object(j, NULL);
    json_labels(j, m, o->labels);
    if (row->type == METRICS_HISTOGRAM)
        json_histogram(j, row, o->v + at);
    else
        json_value(j, "value", row, o->v[at]);
    of_json_end_object(j);
}

static void
json_family(struct of_json *j, const struct metrics *m, enum metrics_group group, size_t at)
{
    const struct metrics_row *row = &metrics_groups[group].rows[at];
    const struct metrics_objects *all = &m->of[group];
    char name[128];
    snprintf(name, sizeof name, PREFIX "%s%s", row->name, endings[row->type]);
    of_json_object(j, NULL);
    of_json_text(j, "name", name);
    of_json_text(j, "type", type_names[row->type]);
    of_json_text(j, "unit", row->unit);
    of_json_text(j, "help", row->help);
    of_json_array(j, "samples");
    for (size_t i = 0; i < all->n; i++)
        if (is_known(row, &all->v[i], at * metrics_width(row)))
            json_sample(j, m, row, &all->v[i], at * metrics_width(row));
    of_json_end_array(j);
    of_json_end_object(j);
}

/* ----------------------------------------------------------------------- all of it */

static void
write_all(const struct metrics *m, struct of_wr *w, enum metrics_format format)
{
    struct of_json j = of_json(w);
    bool json = format == METRICS_JSON;
    if (json)
        of_json_array(&j, NULL);
    for (int g = 0; g < METRICS_GROUPS_N; g++)
        for (size_t at = 0; at < metrics_groups[g].n; at++) {
            if (json)
                json_family(&j, m, g, at);
            else
                write_family(m, w, g, at, format);
        }
    if (json)
        of_json_end_array(&j);
    else if (format == METRICS_OPENMETRICS)
        of_printf(w, "# EOF\n");
}

static enum status
collect(struct metrics *m)
{
    struct of_msg features;
    enum status st = ask_message(m->c, OFPT_FEATURES_REQUEST, NULL, &features);
    if (st)
        return st;
    if (features.type != OFPT_FEATURES_REPLY)
        return say_unexpected(m->c);
    uint64_t dp = ((const struct of_features_reply *)features.body)->datapath_id;
    snprintf(m->dp, sizeof m->dp, "%016" PRIx64, dp);
    bool quiet = m->c->quiet;
    st = metrics_collect_required(m);
    m->c->quiet = true; /* a refusal of the others leaves them out */
    st = st ? st : metrics_collect_status(m);
    st = st ? st : metrics_collect_standard(m);
    st = st ? st : metrics_collect_counters(m);
    st = st ? st : metrics_collect_queues(m);
    m->c->quiet = quiet;
    return !st && m->full ? say_memory(m->c) : st;
}

enum status
metrics_write(struct ctx *c, struct of_wr *w, enum metrics_format format)
{
    struct metrics m = {.c = c, .labels = of_wr_grow(1 << 16)};
    *c->remote.why = '\0';
    enum status st = collect(&m);
    if (!st)
        write_all(&m, w, format);
    of_wr_free(&m.labels);
    return st;
}

void
metrics_print_names(struct of_wr *w)
{
    for (int g = 0; g < METRICS_GROUPS_N; g++)
        for (size_t i = 0; i < metrics_groups[g].n; i++) {
            const struct metrics_row *row = &metrics_groups[g].rows[i];
            of_printf(w, "  " PREFIX "%s%s %s", row->name, endings[row->type],
                      type_names[row->type]);
            of_printf(w, "%s%s\n      %s.\n", *metrics_groups[g].labels ? ": " : "",
                      metrics_groups[g].labels, row->help);
        }
}
