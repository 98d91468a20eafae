/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: all that the switch counts, for a monitoring system (docs/reference/metrics.md). */
#include <core/command.h>
#include <core/file.h>
#include <core/keys.h>
#include <core/say.h>
#include <core/view.h>
#include <metrics/metrics.h>

#define METRICS_MAX ((size_t)1 << 30)

/* node_exporter reads *.prom files, in the older format only. */
static enum metrics_format
usual_format(const struct ctx *c)
{
    size_t n = c->to ? strlen(c->to) : 0;
    bool prom = n > 5 && !strcmp(c->to + n - 5, ".prom");
    return c->json ? METRICS_JSON : prom ? METRICS_PROMETHEUS : METRICS_OPENMETRICS;
}

static enum status
show_metrics(struct ctx *c, const struct command *self, char **words, int n)
{
    struct shown {
        enum metrics_format format;
    } q = {usual_format(c)};
    static const struct key keys[] = {
        {"format", key_choice, KEY_TO(struct shown, format), .values = "openmetrics|prometheus"},
        {NULL}};
    enum status st = keys_take(c, keys, words, n, &q);
    if (st)
        return st;
    struct of_wr w = of_wr_grow(METRICS_MAX);
    st = metrics_write(c, &w, q.format);
    if (!st && q.format == METRICS_JSON)
        of_wr8(&w, '\n');
    if (!st)
        st = w.overflow ? say_memory(c)
                        : file_replace(c, c->to ? c->to : "-", (struct of_bytes){w.buf, w.len});
    of_wr_free(&w);
    return st;
}

static void
metrics_more(struct of_wr *w, const struct command *self)
{
    of_printf(w, "\nName, type and labels (beside dp, the datapath id):\n");
    metrics_print_names(w);
}

static const char metrics_help[] =
    "  format=openmetrics   OpenMetrics text (the default)\n"
    "  format=prometheus    Prometheus's older text format, for node_exporter's textfile collector\n"
    "                       (the default with --to NAME.prom)\n"
    "--to FILE writes a file that appears as a whole.  With --json, an object for each metric.";

static const struct command rows[] = {
    {.name = "metrics",
     .subject = SUBJECT_WATCH,
     .args = "[format=openmetrics|prometheus] [--to FILE]",
     .help = "all that the switch counts, for a monitoring system (Prometheus)",
     .text = metrics_help,
     .examples = "metrics\nmetrics --to /var/lib/prometheus/node-exporter/ofqos.prom",
     .run = show_metrics,
     .more = metrics_more,
     .options = COMMAND_TO,
     .asks = true},
};

const struct command_table commands_metrics = COMMAND_TABLE(rows);
