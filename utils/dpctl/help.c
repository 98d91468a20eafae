/* SPDX-License-Identifier: Apache-2.0 */
/* `dpctl help COMMAND`: what a command takes, out of the rows that it is read by. */
#include "commands.h"
#include "of10.h"

#include <qos/wire/entry.h>

#include <stdio.h>

static void
print_scheduler(struct of_wr *w, const struct qos_sched *s)
{
    char text[4096];
    if (qos_sched_usage(s, text, sizeof text) < (int)sizeof text)
        of_printf(w, "\n%s\n", text);
}

static void
print_row_usage(struct of_wr *w, const struct of_struct_row *row)
{
    if (!row->n_fields)
        return;
    of_printf(w, "\n");
    of_print_usage(w, row);
}

static void
print_more(struct of_wr *w, const struct command_more *more)
{
    const struct command *now = more->of10 ? find_command(more->of10->now) : NULL;
    if (more->text)
        of_printf(w, "\n%s\n", more->text);
    if (more->keys)
        print_row_usage(w, more->keys);
    if (more->query)
        print_row_usage(w, query_row(more->query));
    if (more->sched)
        print_scheduler(w, more->sched);
    if (more->of10 && more->of10->flow)
        of10_print_words(w);
    if (now && now->more) {
        of_printf(w, "\nAs for %s (dpctl help %s):\n", now->name, now->name);
        print_more(w, now->more);
    }
}

enum status
print_command_help(struct ctx *c, const struct command *k)
{
    struct of_wr w = of_wr_grow(1 << 20);
    of_printf(&w, "usage: dpctl SWITCH %s %s\n%s\n", k->name, k->args, k->help);
    if (k->alias)
        of_printf(&w, "Another name: %s\n", k->alias);
    if (k->more)
        print_more(&w, k->more);
    while (w.len && w.buf[w.len - 1] == '\n') /* put_line adds one */
        w.len--;
    return put_line(c, &w);
}
