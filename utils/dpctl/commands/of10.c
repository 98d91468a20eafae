/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of OpenFlow 1.0's dpctl and of ovs-ofctl, for the scripts that use them. */
#include "of10.h"
#include "tables.h"

#include <core/ports.h>
#include <core/say.h>
#include <core/words.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What one of these commands stands for. */
struct of10_command {
    const struct command_table *table; /* of the command `as` */
    const char *also;                  /* a second command of the table, or NULL */
    const char *usual, *strict; /* of a change: flow-mod's command; strict NULL: there is none */
    bool deletes;
    bool flow; /* the arguments are a flow */
};

static enum status
run_as(struct ctx *c, const struct command_table *table, const char *name, char **words, int n)
{
    const struct command *k = command_find(table, name);
    return k->run(c, k, words, n);
}

static enum status
of10_ask(struct ctx *c, const struct command *self, char **words, int n)
{
    const struct of10_command *o = self->of10;
    struct of10_flow flow;
    enum status st = o->flow ? of10_translate(c, words, n, &flow) : DPCTL_OK;
    if (!st && o->flow && flow.actions)
        return say_usage(c, "leave out the actions: a flow to look for has none");
    if (!st)
        st = o->flow ? run_as(c, o->table, self->as, &flow.fields, 1)
                     : run_as(c, o->table, self->as, words, n);
    return st || !o->also ? st : run_as(c, o->table, o->also, words, 0);
}

enum { WORDS_MAX = 16 };

/* The flow as *n words of flow-mod. */
static enum status
flow_mod_words(struct ctx *c, const struct of10_flow *flow, const char *command, char **words,
               int *n)
{
    size_t len = flow->actions ? strlen(flow->actions) : 0;
    char *cmd = words_keep(c, command, strlen(command)), *save;
    char *apply = of_arena_alloc(&c->arena, sizeof "apply:" + len);
    if (!cmd || !apply)
        return say_memory(c);
    *n = 0;
    words[(*n)++] = cmd;
    words[(*n)++] = flow->fields;
    sprintf(apply, "apply:%s", len ? flow->actions : "");
    if (len)
        words[(*n)++] = apply;
    for (char *w = flow->instructions ? strtok_r(flow->instructions, " ", &save) : NULL; w;
         w = strtok_r(NULL, " ", &save)) {
        if (*n == WORDS_MAX)
            return say_usage(c, "more than %d instructions", WORDS_MAX);
        words[(*n)++] = w;
    }
    return DPCTL_OK;
}

static enum status
change_flow(struct ctx *c, const struct command *self, char **words, int n)
{
    const struct of10_command *o = self->of10;
    struct of10_flow flow;
    char *to[WORDS_MAX];
    enum status st = of10_translate(c, words, n, &flow);
    if (st)
        return st;
    if (!flow.actions && !o->deletes)
        return say_usage(c, "no actions given: add actions=output:2 or actions=drop");
    if (flow.actions && o->deletes)
        return say_usage(c, "leave out the actions: a flow to delete has none");
    if (c->strict && !o->strict)
        return say_usage(c, "%s has no --strict", self->name);
    st = flow_mod_words(c, &flow, c->strict ? o->strict : o->usual, to, &n);
    return st ? st : run_as(c, o->table, self->as, to, n);
}

/* Each line is a flow, checked as add-flow would check it. */
static enum status
add_lines(struct ctx *c, FILE *in, const char *name)
{
    const struct command *add_flow = command_find(&commands_of10, "add-flow"), *typed = c->command;
    const char *before = c->where;
    char *line = NULL, where[300];
    size_t size = 0;
    struct done done = {0};
    enum status st = DPCTL_OK;
    c->where = where;
    c->command = add_flow;
    for (unsigned number = 1; !st && getline(&line, &size, in) >= 0; number++) {
        char *flow = line + strspn(line, " \t\r\n");
        flow[strcspn(flow, "#")] = '\0';
        for (char *p = flow; *(p += strcspn(p, " \t\r\n")); p++)
            *p = ',';
        snprintf(where, sizeof where, "%.200s:%u", name, number);
        st = *flow ? change_flow(c, add_flow, &flow, 1) : DPCTL_OK;
        if (!st && *flow)
            done_add(&done, number);
    }
    c->where = before;
    c->command = typed;
    if (!st && !feof(in))
        st = say_usage(c, "%s: %s", name, strerror(errno));
    if (st && !c->bundle)
        done_say(name, &done, "flow entries");
    free(line);
    return st;
}

static enum status
add_flows(struct ctx *c, const struct command *self, char **words, int n)
{
    if (n != 1)
        return say_usage(c, "write one file's name, or - for stdin");
    if (!strcmp(words[0], "-"))
        return add_lines(c, stdin, "stdin");
    FILE *in = fopen(words[0], "re");
    if (!in)
        return say_usage(c, "%s: %s", words[0], strerror(errno));
    enum status st = add_lines(c, in, words[0]);
    fclose(in);
    return st;
}

/* A bit of a port's configuration: the words that clear and set it. */
static const struct port_word {
    const char *clear, *set, *flag;
} port_words[] = {
    {"up", "down", "port_down"},
    {"flood", "no-flood", "no_flood"},
    {"receive", "no-receive", "no_recv"},
    {"forward", "no-forward", "no_fwd"},
    {"packet-in", "no-packet-in", "no_packet_in"},
};

#define PORT_WORDS                                                                                 \
    "up|down|flood|no-flood|receive|no-receive|forward|no-forward|packet-in|no-packet-in"

static enum status
mod_port(struct ctx *c, const struct command *self, char **words, int n)
{
    const struct of_port *port = NULL;
    const struct port_word *w = port_words, *end = w + sizeof port_words / sizeof *w;
    char text[80], *p = text;
    if (n != 2)
        return say_usage(c, "write a port, then up or down: mod-port eth1 down");
    while (w < end && strcmp(words[1], w->clear) && strcmp(words[1], w->set))
        w++;
    if (w == end)
        return say_usage(c, "'%s' can't be done to a port; write one of " PORT_WORDS, words[1]);
    enum status st = ports_get(c, words[0], &port);
    if (st)
        return st;
    snprintf(text, sizeof text, "port=%u,conf=%s,mask=%s", (unsigned)port->port_no,
             strcmp(words[1], w->set) ? "0" : w->flag, w->flag);
    return run_as(c, &commands_mod, "port-mod", &p, 1);
}

/* What the words of a flow become. */
static void
flow_more(struct of_wr *w, const struct command *self)
{
    of10_print_words(w);
}

static void
flow_offer(struct complete *k, const struct command *self)
{
    of10_offer_words(k);
}

#define OF10(...)                                                                                  \
    .of10 = &(const struct of10_command)                                                           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define ASK(name, ...)                                                                             \
    .run = of10_ask, .asks = true, .as = name, OF10(.table = &commands_query, __VA_ARGS__)
#define CHANGE(...)                                                                                \
    .run = change_flow, .as = "flow-mod", .more = flow_more, .offer = flow_offer,                  \
    OF10(.table = &commands_mod, .flow = true, __VA_ARGS__)

static const struct command rows[] = {
    {.name = "show", .help = "features and ports", ASK("features", .also = "port-desc")},
    {.name = "dump-desc", .help = "as desc", ASK("desc")},
    {.name = "dump-tables", .args = "[all=yes]", .help = "as stats-table", ASK("stats-table")},
    {.name = "dump-ports", .args = "[PORT]", .help = "as stats-port", ASK("stats-port")},
    {.name = "dump-ports-desc", .help = "as port-desc", ASK("port-desc")},
    {.name = "dump-queue", .args = "[PORT [QUEUE]]", .help = "as stats-queue", ASK("stats-queue")},
    {.name = "dump-flows",
     .args = "[FLOW]",
     .help = "as stats-flow",
     .examples = "dump-flows tcp,nw_dst=10.0.0.0/8",
     .more = flow_more,
     .offer = flow_offer,
     ASK("stats-flow", .flow = true)},
    {.name = "dump-aggregate",
     .args = "[FLOW]",
     .help = "as stats-aggr",
     .examples = "dump-aggregate tcp,nw_dst=10.0.0.0/8",
     .more = flow_more,
     .offer = flow_offer,
     ASK("stats-aggr", .flow = true)},
    {.name = "probe",
     .help = "as ping",
     .run = of10_ask,
     .asks = true,
     .as = "ping",
     OF10(.table = &commands_ping)},
    {.name = "add-flow",
     .args = "FLOW,actions=...",
     .help = "adds a flow entry",
     .examples = "add-flow in_port=1,dl_type=0x800,nw_dst=10.0.0.1,actions=output:2",
     CHANGE(.usual = "cmd=add")},
    {.name = "add-flows",
     .args = "FILE",
     .help = "adds the flow entries in a file, one a line",
     .as = "flow-mod",
     .run = add_flows,
     .more = flow_more},
    {.name = "mod-flows",
     .args = "FLOW,actions=...",
     .help = "changes flow entries' actions (--strict: one's)",
     .examples = "mod-flows in_port=1,actions=output:3",
     CHANGE(.usual = "cmd=mod", .strict = "cmd=mods")},
    {.name = "del-flows",
     .args = "[FLOW]",
     .help = "deletes flow entries (--strict: one)",
     .examples = "del-flows\ndel-flows in_port=1",
     CHANGE(.usual = "cmd=del", .strict = "cmd=dels", .deletes = true)},
    {.name = "mod-port",
     .args = "PORT " PORT_WORDS,
     .help = "switches a port, by number or name, off or on, and what it does",
     .examples = "mod-port eth1 down\nmod-port eth1 no-flood",
     .run = mod_port},
};

const struct command_table commands_of10 = COMMAND_TABLE("As in OpenFlow 1.0's dpctl", rows);
