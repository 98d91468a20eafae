/* SPDX-License-Identifier: Apache-2.0 */
#include "autorate-inside.h"

#include <core/signals.h>
#include <core/view.h>
#include <queues/watch.h>

#include <qos/sched/units.h>

#include <inttypes.h>
#include <time.h>

/* What every line of JSON begins with. */
static struct of_json
json_begin(struct of_wr *w, const struct autorate *a, const char *event)
{
    struct of_json j = of_json(w);
    of_json_object(&j, NULL);
    of_json_real(&j, "time", watch_time());
    of_json_text(&j, "event", event);
    of_json_number(&j, "port_no", &of_fmt_PORT, a->port);
    of_json_uint(&j, "class_id", a->class);
    of_json_text(&j, "direction", a->dir == QOS_IN ? "in" : "out");
    of_json_uint(&j, "rate_bps", a->rate);
    return j;
}

static uint64_t
sent_bps(const struct autorate *a)
{
    return a->line_took ? a->line_sent * 8 * 1000000 / (uint64_t)a->line_took : 0;
}

static const char *
state_name(const struct autorate *a)
{
    return a->lost ? "lost" : a->silent ? "silent" : autorate_state_name(a->state);
}

static void
line_json(struct of_wr *w, const struct autorate *a)
{
    struct of_json j = json_begin(w, a, "look");
    of_json_uint(&j, "sent_bps", sent_bps(a));
    if (a->line_delay >= 0) {
        of_json_uint(&j, "delay_us", (uint64_t)a->line_delay);
        of_json_uint(&j, "baseline_us", (uint64_t)a->baseline);
    }
    of_json_uint(&j, "answering", a->answering);
    of_json_uint(&j, "reflectors", a->probes.n);
    if (a->passive.on)
        of_json_uint(&j, "pairs", a->pairs);
    of_json_uint(&j, "changes", a->changes);
    of_json_text(&j, "state", state_name(a));
    of_json_end_object(&j);
}

static void
print_clock(struct of_wr *w)
{
    char text[16];
    time_t now = time(NULL);
    struct tm tm;
    strftime(text, sizeof text, "%H:%M:%S", localtime_r(&now, &tm));
    of_printf(w, "%s  ", text);
}

static void
line_text(struct of_wr *w, const struct autorate *a)
{
    char rate[16], sent[16];
    uint64_t bps = sent_bps(a);
    print_clock(w);
    of_printf(w, "rate %7s  sent %7s (%3" PRIu64 " %%)  ",
              a->rate ? watch_number(a->rate, rate) : "-", watch_number(bps, sent),
              a->rate ? (bps * 100 + a->rate / 2) / a->rate : 0);
    if (a->line_delay >= 0)
        of_printf(w, "delay +%" PRId64 ".%" PRId64 " ms above %" PRId64 ".%" PRId64 "  ",
                  a->line_delay / 1000, a->line_delay / 100 % 10, a->baseline / 1000,
                  a->baseline / 100 % 10);
    else
        of_printf(w, "delay not known  ");
    if (a->pairs)
        of_printf(w, "%u pair%s of hosts", a->pairs, a->pairs > 1 ? "s" : "");
    else if (a->passive.on && !a->answering)
        of_printf(w, "no round trip");
    else
        of_printf(w, "%u of %u answer", a->answering, a->probes.n);
    of_printf(w, "  %s", state_name(a));
}

enum status
autorate_line(struct autorate *a)
{
    struct of_wr w = of_wr_grow(4096);
    (a->c->json ? line_json : line_text)(&w, a);
    a->line_sent = 0;
    a->line_took = 0;
    a->line_delay = -1;
    return view_line(a->c, &w);
}

enum status
autorate_event(struct autorate *a, const char *event, const char *why)
{
    struct of_wr w = of_wr_grow(4096);
    char rate[QOS_UNIT_TEXT];
    if (a->c->json) {
        struct of_json j = json_begin(&w, a, event);
        of_json_text(&j, "why", why);
        of_json_end_object(&j);
    } else {
        print_clock(&w);
        of_printf(&w, "%s: %s; the class has %s", event, why,
                  a->rate ? qos_format_rate(a->rate, rate) : "the rate it had");
    }
    return view_line(a->c, &w);
}
