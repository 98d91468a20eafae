/* SPDX-License-Identifier: Apache-2.0 */
/* Finding commands, describing them, and saying what is wrong with their arguments. */
#include "commands.h"

#include <oflib/near.h>
#include <stream/address.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static const struct {
    const char *title;
    const struct command *commands;
} groups[] = {
    {"Asking", query_commands},
    {"Changing", mod_commands},
    {"The switch itself", ext_commands},
    {"Queues", qos_commands},
    {"Queues as BOFUSS's dpctl had them", queue_commands},
    {"Bandwidth groups", bw_commands},
    {"Watching", monitor_commands},
    {"As OpenFlow 1.0's dpctl had them", of10_commands},
};

#define GROUPS (sizeof groups / sizeof groups[0])

static bool
same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++)
        if (*a != *b && !(strchr("-_", *a) && strchr("-_", *b)))
            return false;
    return *a == *b;
}

const struct command *
find_command(const char *name)
{
    for (size_t g = 0; g < GROUPS; g++)
        for (const struct command *k = groups[g].commands; k->name; k++)
            if (same_name(k->name, name) || (k->alias && same_name(k->alias, name)))
                return k;
    const struct command *k;
    for (unsigned i = 0; (k = scheduler_command(i)); i++)
        if (same_name(k->name, name))
            return k;
    return NULL;
}

const char *
near_commands(const char *name, char *buf, size_t size)
{
    struct of_near near = of_near(name, strlen(name));
    const struct command *k;
    for (size_t g = 0; g < GROUPS; g++) {
        for (k = groups[g].commands; k->name; k++) {
            of_near_try(&near, k->name);
            if (k->alias)
                of_near_try(&near, k->alias);
        }
    }
    for (unsigned i = 0; (k = scheduler_command(i)); i++) {
        of_near_try(&near, k->name);
        if (same_name(k->name + strlen("qos-"), name)) { /* "htb" */
            snprintf(buf, size, "; did you mean %s?", k->name);
            return buf;
        }
    }
    return *of_near_text(&near, buf, size) ? buf : ": dpctl --help lists them";
}

bool
command_asks(const struct command *k)
{
    static enum status (*const asking[])(struct ctx *, char **, int) = {
        counters, show_status, qos_show, qos_watch, bw_show, bw_watch, of10_ask};
    for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++)
        if (k->run == asking[i])
            return true;
    for (size_t g = 0; g < GROUPS; g++)
        for (const struct command *q = groups[g].commands; q->name; q++)
            if (q == k)
                return groups[g].commands == query_commands ||
                       groups[g].commands == monitor_commands;
    return false;
}

/* The help stands in a column of its own, on the next line where the arguments reach into it. */
static void
print_row(const struct command *k)
{
    enum { COLUMN = 40 };
    int n = printf("  %s %s", k->name, k->args);
    if (n >= COLUMN) {
        printf("\n");
        n = 0;
    }
    printf("%*s%s\n", COLUMN - n, "", k->help);
}

/* clang-format off */
#define TLS_HELP(id, name, arg, help) "  --" name " " arg "\n                     " help "\n"

void
print_help(void)
{
    printf("usage: dpctl [OPTION...] [SWITCH] COMMAND [ARGUMENT...]\n"
           "       dpctl [OPTION...] COMMAND SWITCH [ARGUMENT...], COMMAND [ARGUMENT...] SWITCH\n"
           "       dpctl help COMMAND, dpctl COMMAND --help\n\n"
           "SWITCH is %s.\n"
           "Without it, what DPCTL_SWITCH in the environment says, else\n%s.\n\n"
           "  --json             answers as JSON\n"
           "  --timeout SECONDS  how long to wait for an answer (default 10), to monitor;\n"
           "                     with --atomic: for a sign of life\n"
           "  --experimenter     QoS requests in the experimenter's envelope\n"
           "  -F, --file FILE    commands from a file (-: stdin), one a line, # for comments\n"
           "  --atomic           with -F: all its changes as one bundle, or none of them\n"
           "  --strict           with mod-flows, del-flows: the very flow entry only\n"
           "  --dry-run          with qos-apply, qos-map, bw-...: shows what would be done\n"
           STREAM_TLS_OPTIONS(TLS_HELP)
           "  --help, --version\n\n"
           "Exit status: 0 done, 1 the switch refused or could not be reached, 2 bad arguments.\n",
           REMOTE_ADDRESSES, stream_default_socket);
    for (size_t g = 0; g < GROUPS; g++) {
        printf("\n%s\n", groups[g].title);
        for (const struct command *k = groups[g].commands; k->name; k++)
            print_row(k);
        const struct command *k;
        for (unsigned i = 0; groups[g].commands == qos_commands && (k = scheduler_command(i)); i++)
            print_row(k);
    }
    printf("\n"
           "MATCH        in_port=1,eth_type=0x0800,ipv4_src=10.0.0.0/8,vlan_vid=any|none|N\n"
           "INSTRUCTION  apply:ACTIONS write:ACTIONS clear meta:N[/MASK] meter:N goto:TABLE\n"
           "ACTIONS      queue=1,output=2 output=controller:128 group=1 push_vlan=0x8100\n"
           "             set_field=eth_dst:00:00:00:00:00:01 pop_vlan nw_dec ...\n"
           "PORT         a number, or in_port all flood controller local any\n"
           "FLOW         words of OpenFlow 1.0 and ovs-ofctl: dpctl help add-flow lists them\n"
           "Fields and constants may have the specification's names or BOFUSS's short ones.\n"
           "dpctl help COMMAND says what a command takes.\n");
}
/* clang-format on */

static const struct command *
typed(const struct ctx *c)
{
    return c->typed ? c->typed : c->command;
}

__attribute__((format(printf, 2, 0))) static void
complain(struct ctx *c, const char *fmt, va_list ap)
{
    fprintf(stderr, "%s: ", c->where);
    if (typed(c))
        fprintf(stderr, "%s: ", typed(c)->name);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
}

enum status
bad_args(struct ctx *c, const char *fmt, ...)
{
    const struct command *k = typed(c);
    va_list ap;
    va_start(ap, fmt);
    complain(c, fmt, ap);
    va_end(ap);
    if (k)
        fprintf(stderr, "usage: dpctl SWITCH %s %s (more: dpctl help %s)\n", k->name, k->args,
                k->name);
    return DPCTL_USAGE;
}

enum status
bad_parse(struct ctx *c, int err)
{
    return err == -ENOMEM ? failed(c, "out of memory") : bad_args(c, "%s", c->parse.why);
}

enum status
wrong_line(struct ctx *c, const char *file, unsigned line, const char *fmt, ...)
{
    va_list ap;
    const char *name = strcmp(file, "-") ? file : "stdin";
    if (line)
        fprintf(stderr, "%s:%u: ", name, line);
    else
        fprintf(stderr, "%s: ", name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return DPCTL_USAGE;
}

void
note_done(struct done *d, unsigned line)
{
    d->first = d->n++ ? d->first : line;
    d->last = line;
}

void
say_done(const char *file, const struct done *d, const char *what)
{
    if (!d->n)
        fprintf(stderr, "%s: nothing of it has been carried out\n", file);
    else if (d->first == d->last)
        fprintf(stderr, "%s: what is in line %u has been carried out and stays\n", file, d->first);
    else
        fprintf(stderr, "%s: %u %s, in lines %u to %u, have been carried out and stay\n", file,
                d->n, what, d->first, d->last);
}

enum status
failed(struct ctx *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    complain(c, fmt, ap);
    va_end(ap);
    return DPCTL_FAILED;
}

char *
keep_text(struct ctx *c, const char *text, size_t n)
{
    char *p = of_arena_alloc(&c->arena, n + 1);
    if (p) {
        memcpy(p, text, n);
        p[n] = '\0';
    }
    return p;
}

char *
join_words(struct ctx *c, char *const *words, int n, char sep)
{
    size_t len = 1;
    for (int i = 0; i < n; i++)
        len += strlen(words[i]) + 1;
    char *out = of_arena_alloc(&c->arena, len), *p = out;
    for (int i = 0; out && i < n; i++) {
        size_t k = strlen(words[i]);
        memcpy(p, words[i], k);
        p[k] = i + 1 < n ? sep : '\0';
        p += k + 1;
    }
    return out;
}
