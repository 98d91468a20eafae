/* SPDX-License-Identifier: Apache-2.0 */
#include "help.h"

#include "options.h"
#include "registry.h"

#include <core/view.h>

#include <stream/address.h>

#include <stdio.h>

/* The help stands in a column of its own, on the next line where the arguments reach into it. */
static void
print_row(const struct command *k)
{
    enum { COLUMN = 40 };
    int n = printf("  %s %s", k->name, k->args ? k->args : "");
    if (n >= COLUMN) {
        printf("\n");
        n = 0;
    }
    printf("%*s%s\n", COLUMN - n, "", k->help);
}

static void
print_commands(void)
{
    const struct command *k;
    const struct page *page = NULL;
    for (size_t i = 0; (k = registry_at(i)); i++) {
        if (registry_page(k) != page) {
            page = registry_page(k);
            printf("\n%s: dpctl-%s(1)\n", page->title, page->name);
        }
        print_row(k);
    }
}

static void
print_task(enum task task)
{
    enum { COLUMN = 46 };
    const struct command *k;
    for (size_t i = 0; (k = registry_at(i)); i++)
        if (k->first.task == task)
            printf("  %-*s%s\n", COLUMN, k->first.typed, k->first.does);
}

void
help_print(void)
{
    static const char *const titles[N_TASKS] = {[TASK_LOOK] = "Look",
                                                [TASK_SHAPE] = "Shape",
                                                [TASK_FORWARD] = "Forward",
                                                [TASK_FIND] = "Find out why",
                                                [TASK_KEEP] = "Keep"};
    printf("usage: dpctl [OPTION...] [SWITCH] COMMAND [ARGUMENT...]\n"
           "SWITCH may be left out for the only switch of this machine.\n");
    for (enum task task = TASK_NONE + 1; task < N_TASKS; task++) {
        printf("\n%s\n", titles[task]);
        print_task(task);
    }
    printf("\n"
           "dpctl tour           a walk through these on a throw-away lab (as root)\n"
           "dpctl help COMMAND   what the command takes\n"
           "dpctl help all       every command and option, also dpctl --help=all\n");
}

void
help_print_all(void)
{
    printf("usage: dpctl [OPTION...] [SWITCH] COMMAND [ARGUMENT...]\n"
           "       dpctl [OPTION...] COMMAND SWITCH [ARGUMENT...]\n"
           "       dpctl [OPTION...] COMMAND [ARGUMENT...] SWITCH\n"
           "       dpctl help COMMAND\n\n"
           "SWITCH is %s.\n"
           "Without it, the environment variable %s counts, else\n%s.\n\n",
           REMOTE_ADDRESSES, REMOTE_VARIABLE, stream_default_socket);
    options_print();
    printf(
        "\nExit status: 0 done, 1 the switch refused or could not be reached, 2 bad arguments.\n");
    print_commands();
    printf("\n"
           "MATCH        in_port=1,eth_type=0x0800,ipv4_src=10.0.0.0/8,vlan_vid=any|none|N\n"
           "INSTRUCTION  apply:ACTIONS write:ACTIONS clear meta:N[/MASK] meter:N goto:TABLE\n"
           "ACTIONS      queue=1,output=2 output=controller:128 group=1 push_vlan=0x8100\n"
           "             set_field=eth_dst:00:00:00:00:00:01 pop_vlan nw_dec ...\n"
           "PORT         a number, a name, or in_port all flood controller local any\n"
           "FLOW         in the words of OpenFlow 1.0 and ovs-ofctl: see dpctl help add-flow\n"
           "Fields and constants may have the specification's names or BOFUSS's short ones.\n");
}

/* What the row says beyond its line of help: its text, its keys. */
static void
help_body(struct of_wr *w, const struct command *k)
{
    if (k->text)
        of_printf(w, "\n%s\n", k->text);
    if (k->more)
        k->more(w, k);
}

/* The row's own help, then that of the command it stands for. */
static void
print_more(struct of_wr *w, const struct command *k)
{
    const struct command *as = k->as ? registry_find(k->as) : NULL;
    help_body(w, k);
    if (!as || (!as->text && !as->more))
        return;
    of_printf(w, "\nAs for %s (dpctl help %s):\n", as->name, as->name);
    print_more(w, as);
}

static void
print_examples(struct of_wr *w, const char *examples)
{
    of_printf(w, "\nExamples:\n");
    while (*examples) {
        size_t n = strcspn(examples, "\n");
        of_printf(w, "  dpctl %.*s\n", (int)n, examples);
        examples += n + (examples[n] == '\n');
    }
}

enum status
help_command(struct ctx *c, const struct command *k)
{
    struct of_wr w = of_wr_grow(1 << 20);
    of_printf(&w, "usage: dpctl %s%s %s\n%s\n", k->alone ? "" : "SWITCH ", k->name,
              k->args ? k->args : "", k->help);
    if (k->alias)
        of_printf(&w, "Another name: %s\n", k->alias);
    if (k->examples)
        print_examples(&w, k->examples);
    print_more(&w, k);
    while (w.len && w.buf[w.len - 1] == '\n')
        w.len--;
    of_printf(&w, "\n\nManual page: dpctl-%s(1)", registry_page(k)->name);
    return view_line(c, &w);
}

/* ------------------------------------------------------------------ JSON */

static struct of_json json;

static void
json_option(char letter, const char *name, const char *argument, const char *help)
{
    of_json_object(&json, NULL);
    of_json_text(&json, "name", name);
    of_json_string(&json, "letter", &letter, letter != 0);
    of_json_text(&json, "argument", argument);
    of_json_text(&json, "help", help);
    of_json_end_object(&json);
}

static void
json_command(const struct command *k)
{
    struct of_wr w = of_wr_grow(1 << 20);
    const struct page *page = registry_page(k);
    help_body(&w, k);
    of_json_object(&json, NULL);
    of_json_text(&json, "name", k->name);
    of_json_text(&json, "alias", k->alias);
    of_json_text(&json, "title", page->title);
    of_json_text(&json, "page", page->name);
    of_json_text(&json, "arguments", k->args);
    of_json_text(&json, "help", k->help);
    of_json_string(&json, "text", (const char *)w.buf, w.len);
    of_json_text(&json, "as", k->as);
    of_json_bool(&json, "scheduler", k->sched);
    of_json_text(&json, "examples", k->examples);
    of_json_end_object(&json);
    of_wr_free(&w);
}

void
help_print_json(void)
{
    struct of_wr w = of_wr_grow(1 << 24);
    const struct command *k;
    json = of_json(&w);
    of_json_object(&json, NULL);
    of_json_array(&json, "options");
    options_each(json_option);
    of_json_end_array(&json);
    of_json_array(&json, "commands");
    for (size_t i = 0; (k = registry_at(i)); i++)
        json_command(k);
    of_json_end_array(&json);
    of_json_end_object(&json);
    printf("%.*s\n", (int)w.len, (const char *)w.buf);
    of_wr_free(&w);
}
