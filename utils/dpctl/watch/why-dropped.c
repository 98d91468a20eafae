/* SPDX-License-Identifier: Apache-2.0 */
/* why-dropped: what was dropped, why, what to do, and the last packets; by the switch, by the
 * kernel's queues below it, and by the interfaces. */
#include "packet-text.h"

#include <oflib/plural.h>

#include <core/ask.h>
#include <core/command.h>
#include <core/keys.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/signals.h>
#include <core/view.h>
#include <queues/queues.h>

#include <inttypes.h>
#include <unistd.h>

#define SECONDS_MAX 3600

/* What is asked for. */
struct why {
    struct ctx *c;
    uint32_t port;              /* OFPP_ANY: all */
    const struct of_drop *only; /* NULL: every reason */
    bool all;                   /* also reasons that dropped nothing */
    uint64_t seconds;           /* 0: counts since the start, else rates over this time */
    struct of_list drops, before;
    struct queue_view queues;
    struct of_list ports; /* struct of_port_stats */
};

/* ------------------------------------------------------------------ asking */

static enum status
ask_everything(struct why *k)
{
    enum status st = packet_drops_ask(k->c, &k->drops);
    if (!st && k->seconds) {
        k->before = k->drops;
        usleep((useconds_t)k->seconds * 1000000);
        st = packet_drops_ask(k->c, &k->drops);
    }
    if (!st)
        st = ask_list(k->c, OFPMP_PORT_STATS, &(struct of_mp_port_request){k->port}, &k->ports);
    if (!st)
        st = queues_view(k->c, k->port, QOS_ALL_CLASSES, NULL, &k->queues);
    return st;
}

/* ------------------------------------------------------------------ what is shown */

static bool
sample_shown(const struct why *k, const struct of_drop_sample *s)
{
    return k->port == OFPP_ANY || s->in_port == k->port || s->out_port == k->port;
}

static bool
reason_shown(const struct why *k, const struct of_drop *d)
{
    bool sampled = k->port == OFPP_ANY;
    if (k->only)
        return d->reason == k->only->reason;
    for (uint32_t i = 0; i < d->samples.n; i++)
        sampled |= sample_shown(k, d->samples.v[i]);
    return k->all || (d->packets && sampled);
}

/* Packets a second over --seconds; the count since the start without it. */
static uint64_t
recent(const struct why *k, const struct of_drop *d)
{
    const struct of_drop *b = packet_drops_row(&k->before, d->reason);
    return b ? d->packets - b->packets : 0;
}

/* ------------------------------------------------------------------ for people */

static void
print_sample(struct of_wr *w, const struct of_drop_sample *s)
{
    struct packet_place p = {.cookie = s->cookie,
                             .in_port = s->in_port,
                             .out_port = s->out_port,
                             .queue_id = s->queue_id,
                             .table_id = s->table_id};
    of_printf(w, "\n    ");
    packet_print_time(w, s->time);
    of_printf(w, " ");
    packet_print_place(w, &p);
    if (s->total_len)
        of_printf(w, " %" PRIu32 " bytes", s->total_len);
    if (s->segments > 1)
        of_printf(w, " in %" PRIu32 " segments", s->segments);
    of_printf(w, s->match.n ? ": " : "");
    of_print_match(w, &s->match);
}

static void
print_packets(struct of_wr *w, uint64_t n)
{
    of_printf(w, "%" PRIu64 " packet%s", n, OF_S(n));
}

static void
print_reason(struct of_wr *w, const struct why *k, const struct of_drop *d)
{
    of_printf(w, w->len ? "\n" : "");
    of_print_text(w, d->name, strlen(d->name));
    of_printf(w, ": ");
    print_packets(w, d->packets);
    if (k->seconds)
        of_printf(w, ", %.1f a second now", (double)recent(k, d) / (double)k->seconds);
    of_printf(w, ": ");
    of_print_text(w, d->text, strlen(d->text));
    of_printf(w, "\n    ");
    of_print_text(w, d->help, strlen(d->help));
    for (uint32_t i = 0; i < d->samples.n; i++)
        if (sample_shown(k, d->samples.v[i]))
            print_sample(w, d->samples.v[i]);
}

static void
print_below(struct of_wr *w, const struct why *k)
{
    for (size_t i = 0; i < k->queues.n; i++) {
        const struct queue_node *n = &k->queues.v[i];
        const struct qos_request *r = &n->entry->config;
        uint64_t drops = n->entry->counters.drops;
        /* A class counts what the scheduler in it drops, too. */
        bool counted = r->object_type == OFP_QOS_QDISC && (r->class_id || r->sched->classful);
        if (!drops || drops == UINT64_MAX || counted)
            continue;
        of_printf(w, "%sthe kernel's queues, port ", w->len ? "\n" : "");
        of_print_number(w, &of_fmt_PORT, r->port_no);
        of_printf(w, " %s, ", n->dir == QOS_IN ? "in" : "out");
        queues_print_name(w, r);
        of_printf(w, ": ");
        print_packets(w, drops);
        of_printf(w, " (tx_full and in_full count those too that user space sent to a full queue)");
    }
    for (uint32_t i = 0; i < k->ports.n; i++) {
        const struct of_port_stats *p = k->ports.v[i];
        bool rx = p->rx_dropped && p->rx_dropped != UINT64_MAX;
        bool tx = p->tx_dropped && p->tx_dropped != UINT64_MAX;
        if (!rx && !tx)
            continue;
        of_printf(w, "%sport ", w->len ? "\n" : "");
        of_print_number(w, &of_fmt_PORT, p->port_no);
        of_printf(w,
                  " and its interface: %" PRIu64 " dropped on receiving, %" PRIu64
                  " on sending (stats-port, and ip -s link)",
                  rx ? p->rx_dropped : 0, tx ? p->tx_dropped : 0);
    }
}

static void
print_all(struct of_wr *w, const struct why *k)
{
    for (uint32_t i = 0; i < k->drops.n; i++)
        if (reason_shown(k, k->drops.v[i]))
            print_reason(w, k, k->drops.v[i]);
    if (!k->only)
        print_below(w, k);
    if (!w->len)
        of_printf(w, "nothing was dropped");
}

/* ------------------------------------------------------------------ for programs */

static void
json_reason(struct of_json *j, const struct why *k, const struct of_drop *d)
{
    of_json_object(j, NULL);
    of_json_text(j, "reason", d->name);
    of_json_uint(j, "packets", d->packets);
    if (k->seconds)
        of_json_real(j, "rate", (double)recent(k, d) / (double)k->seconds);
    of_json_text(j, "text", d->text);
    of_json_text(j, "help", d->help);
    of_json_array(j, "samples");
    for (uint32_t i = 0; i < d->samples.n; i++)
        if (sample_shown(k, d->samples.v[i]))
            of_json_struct(j, NULL, &of_row_drop_sample, d->samples.v[i]);
    of_json_end_array(j);
    of_json_end_object(j);
}

static void
json_below(struct of_json *j, const struct why *k)
{
    of_json_array(j, "queues");
    for (size_t i = 0; i < k->queues.n; i++) {
        const struct queue_node *n = &k->queues.v[i];
        if (!n->entry->counters.drops || n->entry->counters.drops == UINT64_MAX)
            continue;
        of_json_object(j, NULL);
        queues_json_place(j, n);
        of_json_uint(j, "dropped", n->entry->counters.drops);
        of_json_end_object(j);
    }
    of_json_end_array(j);
    of_json_array(j, "ports");
    for (uint32_t i = 0; i < k->ports.n; i++) {
        const struct of_port_stats *p = k->ports.v[i];
        of_json_object(j, NULL);
        of_json_number(j, "port_no", &of_fmt_PORT, p->port_no);
        of_json_uint(j, "rx_dropped", p->rx_dropped);
        of_json_uint(j, "tx_dropped", p->tx_dropped);
        of_json_end_object(j);
    }
    of_json_end_array(j);
}

static void
json_all(struct of_wr *w, const struct why *k)
{
    struct of_json json = of_json(w), *j = &json;
    of_json_object(j, NULL);
    of_json_array(j, "reasons");
    for (uint32_t i = 0; i < k->drops.n; i++)
        if (reason_shown(k, k->drops.v[i]))
            json_reason(j, k, k->drops.v[i]);
    of_json_end_array(j);
    json_below(j, k);
    of_json_end_object(j);
}

/* ------------------------------------------------------------------ the command */

/* A reason, or "eth1" */
static enum status
take_other(struct ctx *c, const struct key *key, char *word, void *to)
{
    struct why *k = to;
    enum status st = k->drops.n ? DPCTL_OK : packet_drops_ask(c, &k->drops);
    if (st || (!packet_drops_is(&k->drops, word) && ports_is(c, word, &k->port)))
        return st;
    return packet_drops_find(c, &k->drops, word, &k->only);
}

static const struct key keys[] = {
    {"port", key_port, KEY_TO(struct why, port)},
    {"seconds", key_number, KEY_TO(struct why, seconds), .most = SECONDS_MAX},
    {"all", key_flag, KEY_TO(struct why, all)},
    {.take = take_other},
};

static enum status
why_dropped(struct ctx *c, const struct command *self, char **words, int n)
{
    struct why k = {.c = c, .port = OFPP_ANY};
    enum status st = keys_take(c, keys, words, n, &k);
    if (!st)
        st = ask_everything(&k);
    if (st)
        return st;
    struct of_wr w = of_wr_grow(VIEW_MAX);
    (c->json ? json_all : print_all)(&w, &k);
    return view_line(c, &w);
}

static const char why_dropped_help[] =
    "  REASON      only this one\n"
    "  port=PORT   only reasons whose last packets came in or were to leave by this port;\n"
    "              eth1 alone is port=eth1\n"
    "  seconds=N   waits so long, and shows how many a second there are\n"
    "  all=yes     also reasons that dropped nothing\n"
    "Each reason has up to four of its last packets, at most one a millisecond.  What is dropped\n"
    "below the switch follows: by the kernel's queues and by the interfaces.";

static const struct command rows[] = {
    {.name = "why-dropped",
     .subject = SUBJECT_WATCH,
     .first = {TASK_FIND, "why-dropped eth1", "why packets were dropped"},
     .args = "[REASON] [PORT|port=PORT] [seconds=N] [all=yes]",
     .help = "why packets were dropped, what to do, and the last of them",
     .text = why_dropped_help,
     .examples = "why-dropped\nwhy-dropped no_match\nwhy-dropped eth1 seconds=1",
     .run = why_dropped,
     .asks = true},
};

const struct command_table commands_why_dropped = COMMAND_TABLE(rows);
