/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of OpenFlow 1.0's dpctl, for the scripts that use them. */
#include "commands.h"
#include "of10.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* By another command; what is wrong is said in the name of the one that was typed. */
static enum status
run_as(struct ctx *c, const char *name, char **words, int n)
{
    if (!c->typed)
        c->typed = c->command;
    c->command = find_command(name);
    return c->command->run(c, words, n);
}

enum status
of10_ask(struct ctx *c, char **words, int n)
{
    const struct of10_command *ask = c->command->more->of10;
    struct of10_flow flow;
    enum status st = ask->flow ? of10_translate(c, words, n, &flow) : DPCTL_OK;
    if (!st && ask->flow && flow.actions)
        return bad_args(c, "a flow to look for has no actions");
    if (!st)
        st = ask->flow ? run_as(c, ask->now, &flow.fields, 1) : run_as(c, ask->now, words, n);
    return st || !ask->also ? st : run_as(c, ask->also, words, 0);
}

enum { WORDS_MAX = 16 };

/* The words of flow-mod; *n of them. */
static enum status
flow_mod_words(struct ctx *c, const struct of10_flow *flow, const char *command, char **words,
               int *n)
{
    size_t len = flow->actions ? strlen(flow->actions) : 0;
    char *cmd = keep_text(c, command, strlen(command)), *save;
    char *apply = of_arena_alloc(&c->arena, sizeof "apply:" + len);
    if (!cmd || !apply)
        return failed(c, "out of memory");
    *n = 0;
    words[(*n)++] = cmd;
    words[(*n)++] = flow->fields;
    sprintf(apply, "apply:%s", len ? flow->actions : "");
    if (len)
        words[(*n)++] = apply;
    for (char *w = flow->instructions ? strtok_r(flow->instructions, " ", &save) : NULL; w;
         w = strtok_r(NULL, " ", &save)) {
        if (*n == WORDS_MAX)
            return bad_args(c, "more than %d instructions", WORDS_MAX);
        words[(*n)++] = w;
    }
    return DPCTL_OK;
}

static enum status
change_flow(struct ctx *c, char **words, int n)
{
    const struct of10_command *k = c->command->more->of10;
    struct of10_flow flow;
    char *to[WORDS_MAX];
    enum status st = of10_translate(c, words, n, &flow);
    if (st)
        return st;
    if (!flow.actions != k->deletes)
        return bad_args(c, k->deletes ? "a flow to delete has no actions"
                                      : "the actions are missing: actions=output:2 (or drop)");
    if (c->strict && !k->strict)
        return bad_args(c, "%s has no --strict", c->command->name);
    st = flow_mod_words(c, &flow, c->strict ? k->strict : k->usual, to, &n);
    return st ? st : run_as(c, "flow-mod", to, n);
}

/* Each line of a file is one. */
static enum status
add_lines(struct ctx *c, FILE *in, const char *name)
{
    const char *before = c->where;
    char *line = NULL, where[300];
    size_t size = 0;
    struct done done = {0};
    enum status st = DPCTL_OK;
    c->where = where;
    for (unsigned number = 1; !st && getline(&line, &size, in) >= 0; number++) {
        char *flow = line + strspn(line, " \t\r\n");
        flow[strcspn(flow, "#")] = '\0';
        for (char *p = flow; *(p += strcspn(p, " \t\r\n")); p++)
            *p = ',';
        snprintf(where, sizeof where, "%.200s:%u", name, number);
        c->command = find_command("add-flow");
        st = *flow ? change_flow(c, &flow, 1) : DPCTL_OK;
        if (!st && *flow)
            note_done(&done, number);
    }
    c->where = before;
    if (st && !c->bundle)
        say_done(name, &done, "flow entries");
    free(line);
    return st;
}

static enum status
add_flows(struct ctx *c, char **words, int n)
{
    if (n != 1)
        return bad_args(c, "one file's name is right (-: stdin)");
    if (!strcmp(words[0], "-"))
        return add_lines(c, stdin, "stdin");
    FILE *in = fopen(words[0], "re");
    if (!in)
        return bad_args(c, "%s: %s", words[0], strerror(errno));
    enum status st = add_lines(c, in, words[0]);
    fclose(in);
    return st;
}

static enum status
mod_port(struct ctx *c, char **words, int n)
{
    static const char *const actions[][2] = {{"up", "0"}, {"down", "port_down"}};
    char text[80], *p = text;
    const struct of_port *port = NULL;
    if (n != 2)
        return bad_args(c, "a port, then up or down is right");
    for (size_t i = 0; i < 2; i++) {
        if (strcmp(words[1], actions[i][0]))
            continue;
        enum status st = find_port(c, words[0], &port);
        if (st)
            return st;
        snprintf(text, sizeof text, "port=%u,conf=%s,mask=port_down", (unsigned)port->port_no,
                 actions[i][1]);
        return run_as(c, "port-mod", &p, 1);
    }
    return bad_args(c,
                    "'%s': up or down is right (flooding to a port can't be switched off in "
                    "OpenFlow 1.3)",
                    words[1]);
}

#define OF10(...)                MORE(.of10 = &(const struct of10_command){__VA_ARGS__})
#define ASK(name, second, flow_) OF10(.now = name, .also = second, .flow = flow_)
#define CHANGE(usual_, strict_, deletes_)                                                          \
    OF10(.now = "flow-mod", .usual = usual_, .strict = strict_, .deletes = deletes_, .flow = true)

const struct command of10_commands[] = {
    {"show", NULL, "", "features and ports", of10_ask, ASK("features", "port-desc", false)},
    {"dump-desc", NULL, "", "as desc", of10_ask, ASK("desc", NULL, false)},
    {"dump-tables", NULL, "[all=yes]", "as stats-table", of10_ask, ASK("stats-table", NULL, false)},
    {"dump-ports", NULL, "[PORT]", "as stats-port", of10_ask, ASK("stats-port", NULL, false)},
    {"dump-ports-desc", NULL, "", "as port-desc", of10_ask, ASK("port-desc", NULL, false)},
    {"dump-queue", NULL, "[PORT [QUEUE]]", "as stats-queue", of10_ask,
     ASK("stats-queue", NULL, false)},
    {"add-queue", NULL, "PORT QUEUE [BW]", "as queue-mod; without BW a thousandth is guaranteed",
     queue_add, NULL},
    {"dump-flows", NULL, "[FLOW]", "as stats-flow", of10_ask, ASK("stats-flow", NULL, true)},
    {"dump-aggregate", NULL, "[FLOW]", "as stats-aggr", of10_ask, ASK("stats-aggr", NULL, true)},
    {"probe", NULL, "", "as ping", of10_ask, ASK("ping", NULL, false)},
    {"add-flow", NULL, "FLOW,actions=...", "adds a flow entry", change_flow,
     CHANGE("cmd=add", NULL, false)},
    {"add-flows", NULL, "FILE", "adds the flow entries in a file, one a line", add_flows,
     CHANGE("cmd=add", NULL, false)},
    {"mod-flows", NULL, "FLOW,actions=...", "changes flow entries' actions (--strict: one's)",
     change_flow, CHANGE("cmd=mod", "cmd=mods", false)},
    {"del-flows", NULL, "[FLOW]", "deletes flow entries (--strict: one)", change_flow,
     CHANGE("cmd=del", "cmd=dels", true)},
    {"mod-port", NULL, "PORT up|down", "switches a port, by number or name, off or on", mod_port,
     NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
