/* SPDX-License-Identifier: Apache-2.0 */
/* top: ports, queues, flows and more by rate, live (docs/how-to/top.md). */
#include <core/command.h>
#include <core/words.h>
#include <top/top.h>

static enum status
top(struct ctx *c, const struct command *self, char **words, int n)
{
    bool once = words_take_flag(words, &n, "once") || c->once;
    return top_run(c, words, n, once);
}

static void
top_more(struct of_wr *w, const struct command *self)
{
    top_print_views(w);
}

static const char top_help[] =
    "  interval=1s      time between two looks (100ms to 60s)\n"
    "  sort=COLUMN      the column to sort by, or name\n"
    "  filter=TEXT      only lines with this text\n"
    "  count=N          ends after N tables (default: at SIGINT, ^C)\n"
    "  rows=N           at most so many lines of a table\n"
    "  MATCH            flows: only these, as for stats-flow\n"
    "On a terminal it fills the screen, and keys change what is shown (h lists them).  Elsewhere\n"
    "each look is a table of text, with --json an object.  --once prints one table, after one\n"
    "interval.  A look at flows takes in the first 100,000 and says so where there are more.";

static const struct command rows[] = {
    {.name = "top",
     .subject = SUBJECT_WATCH,
     .first = {TASK_FIND, "top queues", "what is busiest, live"},
     .args = "[ports|queues|flows|meters|groups|tables|processors] [interval=TIME] [sort=COLUMN] "
             "[filter=TEXT] [count=N] [rows=N] [MATCH]",
     .help = "ports, queues, flows, meters, groups, tables and processors by rate, live",
     .text = top_help,
     .examples = "top\ntop queues\ntop flows in_port=1 sort=pps\ntop ports --once",
     .run = top,
     .more = top_more,
     .options = COMMAND_ONCE,
     .asks = true},
};

const struct command_table commands_top = COMMAND_TABLE(rows);
