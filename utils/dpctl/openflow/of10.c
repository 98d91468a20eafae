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
    const char *key, *all;      /* of groups and meters: what a bare number is, all of them */
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

/* "group_id=1,type=select,bucket=output:1" as group-mod's words, "meter=1,kbps,band=..." as
 * meter-mod's.  Without words a deletion is of all. */
static enum status
change_other(struct ctx *c, const struct command *self, char **words, int n)
{
    const struct of10_command *o = self->of10;
    char **all = of_arena_array(&c->arena, (size_t)n + 2, sizeof *all);
    char *cmd = words_keep(c, o->usual, strlen(o->usual));
    if (!all || !cmd)
        return say_memory(c);
    if (!n && !o->deletes)
        return say_usage(c, "nothing given: write %.*s", (int)strcspn(self->examples, "\n"),
                         self->examples);
    const char *whole = !n ? o->all : strchr(words[0], '=') ? NULL : o->key;
    if (whole) { /* "del-groups", "del-groups 1" */
        size_t len = strlen(whole) + (n ? strlen(words[0]) : 0) + 1;
        char *text = of_arena_alloc(&c->arena, len);
        if (!text)
            return say_memory(c);
        snprintf(text, len, "%s%s", whole, n ? words[0] : "");
        all[1] = text;
    }
    for (int i = whole != NULL; i < n; i++)
        all[i + 1] = words[i];
    all[0] = cmd;
    n = n ? n : 1;
    cmd = words_join(c, all, 2, ',');
    if (!cmd)
        return say_memory(c);
    all[1] = cmd;
    return run_as(c, o->table, self->as, all + 1, n);
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
#define ASK(name, bare, ...)                                                                       \
    .run = of10_ask, .asks = true, .as = name, .bridge = 1 + (bare),                               \
    OF10(.table = &commands_query, __VA_ARGS__)
#define CHANGE(...)                                                                                \
    .run = change_flow, .as = "flow-mod", .bridge = 1, .more = flow_more, .offer = flow_offer,     \
    OF10(.table = &commands_mod, .flow = true, __VA_ARGS__)

#define OTHER(name, ...)                                                                           \
    .run = change_other, .as = name, .bridge = 2, OF10(.table = &commands_mod, __VA_ARGS__)
#define GROUP(...) OTHER("group-mod", .key = "group=", .all = "group=all", __VA_ARGS__)
#define METER(...) OTHER("meter-mod", .key = "meter=", .all = "meter=all", __VA_ARGS__)
#define BUCKETS                                                                                    \
    "group_id=N,type=all|select|indirect|ff,bucket=[weight:N,][watch_port:PORT,]ACTIONS..."
#define BANDS                                                                                      \
    "meter=N,kbps|pktps[,burst][,stats],band=type=drop|dscp_remark,rate=N[,burst_size=N]..."

static const struct command rows[] = {
    {.name = "show",
     .first = {TASK_LOOK, "show", "the switch and its ports"},
     .help = "features and ports",
     ASK("features", 0, .also = "port-desc")},
    {.name = "dump-desc", .help = "as desc", ASK("desc", 0)},
    {.name = "dump-tables", .args = "[all=yes]", .help = "as stats-table", ASK("stats-table", 0)},
    {.name = "dump-ports", .args = "[PORT]", .help = "as stats-port", ASK("stats-port", 1)},
    {.name = "dump-ports-desc", .help = "as port-desc", ASK("port-desc", 0)},
    {.name = "dump-queue",
     .args = "[PORT [QUEUE]]",
     .help = "as stats-queue",
     ASK("stats-queue", 2)},
    {.name = "dump-groups", .help = "as group-desc", ASK("group-desc", 0)},
    {.name = "dump-group-stats",
     .args = "[GROUP]",
     .help = "as stats-group",
     ASK("stats-group", 1)},
    {.name = "dump-group-features", .help = "as group-features", ASK("group-features", 0)},
    {.name = "dump-meters",
     .alias = "dump-meter",
     .args = "[METER]",
     .help = "as meter-config",
     ASK("meter-config", 1)},
    {.name = "meter-stats", .args = "[METER]", .help = "as stats-meter", ASK("stats-meter", 1)},
    {.name = "dump-table-features", .help = "as table-features", ASK("table-features", 0)},
    {.name = "queue-stats",
     .args = "[PORT [QUEUE]]",
     .help = "as stats-queue",
     ASK("stats-queue", 2)},
    {.name = "get-frags", .help = "as get-config", ASK("get-config", 0)},
    {.name = "dump-flows",
     .first = {TASK_LOOK, "dump-flows tcp,nw_dst=10.0.0.0/8", "flow entries and their counters"},
     .args = "[FLOW]",
     .help = "as stats-flow",
     .examples = "dump-flows tcp,nw_dst=10.0.0.0/8",
     .more = flow_more,
     .offer = flow_offer,
     ASK("stats-flow", 0, .flow = true)},
    {.name = "dump-aggregate",
     .args = "[FLOW]",
     .help = "as stats-aggr",
     .examples = "dump-aggregate tcp,nw_dst=10.0.0.0/8",
     .more = flow_more,
     .offer = flow_offer,
     ASK("stats-aggr", 0, .flow = true)},
    {.name = "probe",
     .help = "as ping",
     .run = of10_ask,
     .asks = true,
     .as = "ping",
     .bridge = 2,
     OF10(.table = &commands_ping)},
    {.name = "add-flow",
     .first = {TASK_FORWARD, "add-flow in_port=1,actions=output:2", "adds a flow entry"},
     .args = "FLOW,actions=...",
     .help = "adds a flow entry",
     .examples = "add-flow in_port=1,dl_type=0x800,nw_dst=10.0.0.1,actions=output:2",
     CHANGE(.usual = "cmd=add")},
    {.name = "add-flows",
     .args = "FILE",
     .help = "adds the flow entries in a file, one a line",
     .as = "flow-mod",
     .bridge = 2,
     .run = add_flows,
     .more = flow_more},
    {.name = "mod-flows",
     .args = "FLOW,actions=...",
     .help = "changes flow entries' actions (--strict: one's)",
     .examples = "mod-flows in_port=1,actions=output:3",
     CHANGE(.usual = "cmd=mod", .strict = "cmd=mods")},
    {.name = "del-flows",
     .first = {TASK_FORWARD, "del-flows in_port=1", "deletes flow entries"},
     .args = "[FLOW]",
     .help = "deletes flow entries (--strict: one)",
     .examples = "del-flows\ndel-flows in_port=1",
     CHANGE(.usual = "cmd=del", .strict = "cmd=dels", .deletes = true)},
    {.name = "add-group",
     .args = BUCKETS,
     .help = "adds a group",
     .examples =
         "add-group group_id=1,type=select,bucket=output:1,bucket=output:2\n"
         "add-group group_id=2,type=ff,bucket=watch_port:1,output:1,bucket=watch_port:2,output:2",
     GROUP(.usual = "cmd=add")},
    {.name = "mod-group",
     .args = BUCKETS,
     .help = "changes a group",
     .examples = "mod-group group_id=1,type=all,bucket=output:1",
     GROUP(.usual = "cmd=mod")},
    {.name = "del-groups",
     .alias = "del-group",
     .args = "[GROUP]",
     .help = "deletes a group, or all",
     .examples = "del-groups\ndel-groups group_id=1",
     GROUP(.usual = "cmd=del", .deletes = true)},
    {.name = "add-meter",
     .args = BANDS,
     .help = "adds a meter",
     .examples = "add-meter meter=1,kbps,band=type=drop,rate=1mbit",
     METER(.usual = "cmd=add")},
    {.name = "mod-meter",
     .args = BANDS,
     .help = "changes a meter",
     .examples = "mod-meter meter=1,kbps,band=type=drop,rate=2000",
     METER(.usual = "cmd=mod")},
    {.name = "del-meters",
     .alias = "del-meter",
     .args = "[METER]",
     .help = "deletes a meter, or all",
     .examples = "del-meters\ndel-meters meter=1",
     METER(.usual = "cmd=del", .deletes = true)},
    {.name = "set-frags",
     .args = "normal|drop|reasm",
     .help = "as set-config flags=",
     .examples = "set-frags drop",
     OTHER("set-config", .usual = "", .key = "flags=")},
    {.name = "mod-port",
     .subject = SUBJECT_PORT,
     .args = "PORT " PORT_WORDS,
     .help = "switches a port, by number or name, off or on, and what it does",
     .examples = "mod-port eth1 down\nmod-port eth1 no-flood",
     .bridge = 3,
     .run = mod_port},
};

const struct command_table commands_of10 = COMMAND_TABLE(rows);
