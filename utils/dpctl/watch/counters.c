/* SPDX-License-Identifier: Apache-2.0 */
/* counters: what the switch dropped, refused and lost, by reason (docs/reference/extensions.md). */
#include <core/ask.h>
#include <core/command.h>
#include <core/counters.h>
#include <core/say.h>
#include <core/view.h>

#include <inttypes.h>
#include <string.h>

static void
json_counter(void *to, const char *name, uint64_t value)
{
    of_json_uint(to, name, value);
}

/* Counters that are 0 are left out. */
static void
print_counter(void *to, const char *name, uint64_t value)
{
    enum { COLUMN = 32 };
    struct of_wr *w = to;
    if (!value)
        return;
    of_printf(w, w->len ? "\n" : "");
    size_t start = w->len;
    of_print_text(w, name, strlen(name));
    size_t used = w->len - start;
    of_printf(w, "%*s %" PRIu64, used < COLUMN ? (int)(COLUMN - used) : 0, "", value);
}

static bool
print_all(struct ctx *c, struct of_bytes entries, struct of_wr *w)
{
    struct of_json j = of_json(w);
    if (c->json) {
        of_json_object(&j, NULL);
        bool ok = counters_each(entries, json_counter, &j);
        of_json_end_object(&j);
        return ok;
    }
    bool ok = counters_each(entries, print_counter, w);
    if (!w->len)
        of_printf(w, "nothing was dropped or refused");
    return ok;
}

static enum status
show_counters(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_bytes entries = {0};
    struct of_wr w = of_wr_grow(16u << 20);
    if (n)
        return say_usage(c, "counters takes no arguments");
    enum status st = ask_experimenter(c, OFP_EXP_COUNTERS, (struct of_bytes){NULL, 0}, &entries);
    if (st)
        return st;
    if (!print_all(c, entries, &w)) {
        of_wr_free(&w);
        return say_malformed(c);
    }
    return view_line(c, &w);
}

static const struct command rows[] = {
    {.name = "counters",
     .subject = SUBJECT_WATCH,
     .help = "what was dropped, refused and lost, by reason",
     .run = show_counters,
     .asks = true},
};

const struct command_table commands_counters = COMMAND_TABLE(rows);
