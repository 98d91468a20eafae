/* SPDX-License-Identifier: Apache-2.0 */
/* stats-cache: which packets the kernel handles by itself, which it does not and why, and what the
 * workers' flow caches have (docs/explanation/offload.md). */
#include <core/ask.h>
#include <core/command.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/view.h>
#include <core/words.h>

#include <oflib/plural.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct stats {
    struct of_list parts; /* entries in front, the most packets first */
    struct of_list ports; /* of the switch, for their names */
    const struct of_cache_kernel *kernel;
};

static uint16_t
type_of(const struct stats *s, uint32_t i)
{
    return OF_AT(&s->parts, i, struct of_tagged)->row->type;
}

static uint64_t
packets_of(const void *part)
{
    const struct of_cache_entry *e = part;
    return e->row->type == OFPSC_ENTRY ? e->packets : 0;
}

static int
most_first(const void *a, const void *b)
{
    const struct of_tagged *x = *(void *const *)a, *y = *(void *const *)b;
    uint64_t p = packets_of(x), q = packets_of(y);
    int types = (x->row->type > y->row->type) - (x->row->type < y->row->type);
    return types ? types : (p < q) - (p > q);
}

/* ------------------------------------------------------------------ for people */

static void
print_name(struct of_wr *w, const struct stats *s, uint32_t port)
{
    const struct of_port *p = ports_desc(&s->ports, port);
    if (!p)
        return;
    of_printf(w, " (");
    of_print_text(w, p->name, strnlen(p->name, sizeof p->name));
    of_printf(w, ")");
}

static void
print_reason(struct of_wr *w, const char *reason, size_t n)
{
    of_print_text(w, reason, strnlen(reason, n));
}

/* Packets that its programs saw. */
static uint64_t
seen(const struct of_cache_kernel *k)
{
    return k->hits + k->misses + k->other + k->held + k->too_long + k->host;
}

static double
share(const struct of_cache_kernel *k)
{
    return seen(k) ? 100 * (double)k->hits / (double)seen(k) : 0;
}

static void
print_kernel(struct of_wr *w, const struct of_cache_kernel *k)
{
    if (*k->reason) {
        of_printf(w, "packets are not handled in the kernel: ");
        of_print_text(w, k->text, strnlen(k->text, sizeof k->text));
        of_printf(w, " (");
        print_reason(w, k->reason, sizeof k->reason);
        of_printf(w, ")\n");
    }
    if (!k->most)
        return;
    of_printf(w,
              "kernel: %" PRIu32 " of at most %" PRIu32 " entries, masks %" PRIu32
              "; %.1f %% of the packets\n",
              k->entries, k->most, k->masks, share(k));
    of_printf(w,
              "  handled %" PRIu64 ", no entry %" PRIu64 ", other kinds %" PRIu64 ", held %" PRIu64
              ", too long %" PRIu64 ", also for the host %" PRIu64 ", lost %" PRIu64 "\n",
              k->hits, k->misses, k->other, k->held, k->too_long, k->host, k->failed);
    of_printf(w,
              "  entries: asked for %" PRIu64 ", made %" PRIu64 ", withdrawn by changes %" PRIu64
              ", aged %" PRIu64 ", all at once %" PRIu64 " times\n",
              k->asked, k->inserted, k->withdrawn, k->aged, k->all);
}

static void
print_actions(struct of_wr *w, const struct stats *s, const struct of_cache_entry *e)
{
    of_printf(w, "\n    -> ");
    if (e->meter_id)
        of_printf(w, "meter:%" PRIu32 " ", e->meter_id);
    for (uint32_t i = 0; i < e->actions.n; i++) {
        const struct of_list one = {.n = 1, .v = &e->actions.v[i]};
        const struct of_action_output *a = e->actions.v[i];
        of_printf(w, i ? "," : "");
        of_print_list(w, &of_list_actions, &one);
        if (a->row->type == OFPAT_OUTPUT)
            print_name(w, s, a->port);
        else if (a->row->type == OFPAT_SET_QUEUE && i + 1 == e->actions.n)
            of_printf(w, " on the way in"); /* the packets come by again */
    }
    if (!e->actions.n)
        of_printf(w, "drop");
}

static void
print_entry(struct of_wr *w, const struct stats *s, const struct of_cache_entry *e)
{
    of_printf(w, "  ");
    of_print_match(w, &e->match);
    print_actions(w, s, e);
    of_printf(w, "\n    %" PRIu64 " packet%s, %" PRIu64 " bytes, in %" PRIu64 " frame%s",
              e->packets, OF_S(e->packets), e->bytes, e->frames, OF_S(e->frames));
    if (e->dropped)
        of_printf(w, "; the meter dropped %" PRIu64, e->dropped);
    of_printf(w, "; made %.1f s ago", (double)e->age_ns / 1e9);
    if (e->idle_ns == UINT64_MAX)
        of_printf(w, ", not used yet\n");
    else
        of_printf(w, ", used %.1f s ago\n", (double)e->idle_ns / 1e9);
}

static void
print_entries(struct of_wr *w, const struct stats *s)
{
    for (uint32_t i = 0; i < s->parts.n && type_of(s, i) == OFPSC_ENTRY; i++)
        print_entry(w, s, s->parts.v[i]);
    if (s->kernel->left_out)
        of_printf(w, "  ... and %" PRIu32 " more\n", s->kernel->left_out);
}

static bool
same_reason(const struct of_cache_refused *r, const struct of_cache_reason *why)
{
    return !strncmp(r->reason, why->reason, sizeof r->reason);
}

static void
print_refused(struct of_wr *w, const struct stats *s, const struct of_cache_reason *why)
{
    of_printf(w, "not in the kernel, ");
    print_reason(w, why->reason, sizeof why->reason);
    of_printf(w, " (%" PRIu64 " request%s): ", why->requests, OF_S(why->requests));
    of_print_text(w, why->text, strnlen(why->text, sizeof why->text));
    of_printf(w, "\n");
    for (uint32_t i = 0; i < s->parts.n; i++) {
        const struct of_cache_refused *r = s->parts.v[i];
        if (type_of(s, i) != OFPSC_REFUSED || !same_reason(r, why))
            continue;
        of_printf(w, "  ");
        of_print_match(w, &r->match);
        of_printf(w, "\n");
    }
}

/* Prints a port whose packets stay with the workers for a reason of its own. */
static void
print_port(struct of_wr *w, const struct stats *s, const struct of_cache_port *p)
{
    if (!*p->reason || !strncmp(p->reason, s->kernel->reason, sizeof p->reason))
        return;
    of_printf(w, "port ");
    of_print_number(w, &of_fmt_PORT, p->port_no);
    print_name(w, s, p->port_no);
    of_printf(w, " is not in the kernel, ");
    print_reason(w, p->reason, sizeof p->reason);
    of_printf(w, ": ");
    of_print_text(w, p->text, strnlen(p->text, sizeof p->text));
    of_printf(w, "\n");
}

static void
print_worker(struct of_wr *w, const struct of_cache_worker *k)
{
    of_printf(w, "worker %" PRIu32 ": %" PRIu64 " packet%s", k->worker, k->packets,
              OF_S(k->packets));
    if (k->entries)
        of_printf(w,
                  "; its flow cache: %" PRIu32 " of %" PRIu32 " entries, %" PRIu32
                  " mask%s, %" PRIu64 " hit%s, %" PRIu64 " miss%s, not asked %" PRIu64
                  ", withdrawn %" PRIu64,
                  k->used, k->entries, k->masks, OF_S(k->masks), k->hits, OF_S(k->hits), k->misses,
                  k->misses == 1 ? "" : "es", k->bypassed, k->withdrawn);
    of_printf(w, "\n");
}

static void
print_all(struct of_wr *w, const struct stats *s)
{
    print_kernel(w, s->kernel);
    print_entries(w, s);
    for (uint32_t i = 0; i < s->parts.n; i++) {
        const struct of_cache_reason *why = s->parts.v[i];
        switch (type_of(s, i)) {
        case OFPSC_REASON:
            if (why->requests)
                print_refused(w, s, why);
            break;
        case OFPSC_PORT: print_port(w, s, s->parts.v[i]); break;
        case OFPSC_WORKER: print_worker(w, s->parts.v[i]); break;
        }
    }
    w->len -= w->len > 0; /* view_line ends the last line */
}

/* ------------------------------------------------------------------ for programs */

static void
json_list(struct of_json *j, const char *name, const struct stats *s, enum ofp_stats_cache type)
{
    of_json_array(j, name);
    for (uint32_t i = 0; i < s->parts.n; i++) {
        const struct of_tagged *part = s->parts.v[i];
        if (part->row->type == type)
            of_json_struct(j, NULL, part->row->body, part);
    }
    of_json_end_array(j);
}

static void
json_all(struct of_wr *w, const struct stats *s)
{
    struct of_json json = of_json(w), *j = &json;
    of_json_object(j, NULL);
    of_json_bool(j, "handles", !*s->kernel->reason);
    of_json_real(j, "share", share(s->kernel) / 100);
    of_json_struct(j, "kernel", &of_row_cache_kernel, s->kernel);
    json_list(j, "entries", s, OFPSC_ENTRY);
    json_list(j, "refused", s, OFPSC_REFUSED);
    json_list(j, "reasons", s, OFPSC_REASON);
    json_list(j, "ports", s, OFPSC_PORT);
    json_list(j, "workers", s, OFPSC_WORKER);
    of_json_end_object(j);
}

/* ------------------------------------------------------------------ the command */

static enum status
ask(struct ctx *c, const struct of_cache_request *q, struct stats *s)
{
    uint8_t room[8];
    struct of_wr w = of_wr_fixed(room, sizeof room);
    struct of_bytes reply;
    void *body;
    of_encode_struct(&w, &of_row_cache_request, q);
    enum status st =
        ask_experimenter(c, OFP_EXP_STATS_CACHE, (struct of_bytes){room, sizeof room}, &reply);
    if (st)
        return st;
    if (of_decode_struct(reply, &of_row_cache_reply, &c->arena, &body))
        return say_malformed(c);
    s->parts = ((const struct of_cache_reply *)body)->parts;
    if (s->parts.n)
        qsort(s->parts.v, s->parts.n, sizeof *s->parts.v, most_first);
    for (uint32_t i = 0; i < s->parts.n; i++)
        if (type_of(s, i) == OFPSC_KERNEL)
            s->kernel = s->parts.v[i];
    return s->kernel ? DPCTL_OK : say_malformed(c);
}

static enum status
stats_cache(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_cache_request q = {.port_no = OFPP_ANY};
    struct stats s = {.kernel = NULL};
    enum status st = words_fields(c, self->keys, words, n, &q);
    if (!st)
        st = ask(c, &q, &s);
    if (!st && !c->json)
        st = ports_ask(c, &s.ports);
    if (st)
        return st;
    struct of_wr w = of_wr_grow(VIEW_MAX);
    (c->json ? json_all : print_all)(&w, &s);
    return view_line(c, &w);
}

static const char stats_cache_help[] =
    "  port=PORT   only packets that come in, or leave, by this port\n"
    "  most=N      no more entries than that; the switch tells at most 4096\n"
    "Each entry has what is done with its packets, and what it has counted.  Requests of the workers\n"
    "for an entry that were refused follow by reason, with the packets that were refused lately.";

static const struct command rows[] = {
    {.name = "stats-cache",
     .subject = SUBJECT_WATCH,
     .args = "[port=PORT] [most=N]",
     .help = "packets that the kernel handles, those it does not and why; flow caches",
     .text = stats_cache_help,
     .examples = "stats-cache\nstats-cache port=1",
     .keys = &of_row_cache_request,
     .run = stats_cache,
     .asks = true},
};

const struct command_table commands_stats_cache = COMMAND_TABLE(rows);
