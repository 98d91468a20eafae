/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <core/say.h>

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum kind { FLAG, TEXT, SECONDS };

#define AT(member) offsetof(struct invocation, member)
#define TLS_ROW(id, name, argument, help)                                                          \
    {0, name, argument, help, TEXT, AT(tls.values[STREAM_TLS_##id])},

static const struct row {
    char letter; /* 0: none */
    const char *name, *argument, *help;
    enum kind kind;
    size_t at; /* what it sets, in struct invocation */
} rows[] = {
    {0, "json", NULL, "writes answers as JSON", FLAG, AT(c.json)},
    {0, "timeout", "SECONDS",
     "how long to wait for an answer (default 10), with --atomic for a\n"
     "sign of life; how long monitor runs",
     SECONDS, AT(c.timeout_s)},
    {0, "experimenter", NULL, "sends QoS requests in the experimenter's envelope", FLAG,
     AT(c.experimenter)},
    {'F', "file", "FILE", "commands from a file (-: stdin), one a line, # for comments", TEXT,
     AT(file)},
    {0, "atomic", NULL, "with -F: all changes of the file as one bundle, or none", FLAG,
     AT(atomic)},
    {0, "strict", NULL, "with mod-flows, del-flows: exactly this flow entry", FLAG, AT(c.strict)},
    {0, "dry-run", NULL, "with qos-apply, qos-map, bw-...: shows what would be done", FLAG,
     AT(c.dry_run)},
    {'O', "protocols", "VERSIONS",
     "as ovs-ofctl has it: OpenFlow13 must be among them, which dpctl speaks", TEXT, AT(protocols)},
    {0, "to", "FILE", "with capture, metrics: the file to write (-: stdout)", TEXT, AT(c.to)},
    {0, "kernel", NULL, "with qos-show: which schedulers the kernel has", FLAG, AT(c.kernel)},
    {0, "openconfig", NULL,
     "with qos-show, or alone: ports and queues in OpenConfig's models (JSON)", FLAG,
     AT(c.openconfig)},
    {0, "once", NULL, "with top: one table of text", FLAG, AT(c.once)},
    {0, "yes", NULL, "with tour: goes on without waiting for Enter", FLAG, AT(c.yes)},
    STREAM_TLS_OPTIONS(TLS_ROW){
        'h', "help", "[=FORMAT]",
        "the first commands; behind a command, what the command takes; FORMAT:\n"
        "text, all (every command) or json",
        TEXT, AT(help)},
    {'V', "version", NULL, "dpctl's version", FLAG, AT(version)},
};

#define ROWS         (sizeof rows / sizeof rows[0])
#define FIRST_OPTION 256 /* what getopt_long returns for the first row */
#define SECONDS_MAX  1000000

static enum status
take_seconds(struct ctx *c, const struct row *row, const char *text, int *out)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < 0 || v > SECONDS_MAX)
        return say_usage(c, "--%s must be a number of seconds, not '%s'", row->name, text);
    *out = (int)v;
    return DPCTL_OK;
}

static enum status
take_option(struct invocation *v, const struct row *row, const char *value)
{
    void *to = (uint8_t *)v + row->at;
    switch (row->kind) {
    case FLAG: *(bool *)to = true; return DPCTL_OK;
    case TEXT: *(const char **)to = value ? value : ""; return DPCTL_OK;
    case SECONDS: return take_seconds(&v->c, row, value, to);
    }
    return DPCTL_USAGE;
}

/* The row of what getopt_long returned, or NULL: it has reported an error. */
static const struct row *
find_row(int option)
{
    if (option >= FIRST_OPTION)
        return &rows[option - FIRST_OPTION];
    for (size_t i = 0; i < ROWS; i++)
        if (rows[i].letter && rows[i].letter == option)
            return &rows[i];
    return NULL;
}

/* "OpenFlow10,OpenFlow13" */
static enum status
check_protocols(struct invocation *v)
{
    static const char ours[] = "OpenFlow13";
    for (const char *p = v->protocols; p && *p; p += strcspn(p, ","), p += *p == ',')
        if (strcspn(p, ",") == strlen(ours) && !strncasecmp(p, ours, strlen(ours)))
            return DPCTL_OK;
    return v->protocols
               ? say_usage(&v->c, "-O %s: dpctl speaks OpenFlow 1.3: write -O %s, or nothing",
                           v->protocols, ours)
               : DPCTL_OK;
}

enum status
options_take(struct invocation *v, int argc, char **argv)
{
    struct option longs[ROWS + 1] = {0};
    char letters[2 * ROWS + 1], *letter = letters;
    enum status st = DPCTL_OK;
    int option;
    for (size_t i = 0; i < ROWS; i++) {
        int argument = !rows[i].argument          ? no_argument
                       : *rows[i].argument == '[' ? optional_argument
                                                  : required_argument;
        longs[i] = (struct option){rows[i].name, argument, NULL, FIRST_OPTION + (int)i};
        if (rows[i].letter)
            letter +=
                sprintf(letter, "%c%s", rows[i].letter, argument == required_argument ? ":" : "");
    }
    *letter = '\0';
    while (!st && (option = getopt_long(argc, argv, letters, longs, NULL)) != -1) {
        const struct row *row = find_row(option);
        st = row ? take_option(v, row, optarg) : DPCTL_USAGE;
    }
    return st ? st : check_protocols(v);
}

void
options_print(void)
{
    enum { COLUMN = 26 };
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        int n = r->letter ? printf("  -%c, ", r->letter) : printf("      ");
        n += printf("--%s%s%s", r->name, r->argument && *r->argument != '[' ? " " : "",
                    r->argument ? r->argument : "");
        for (const char *line = r->help; *line; n = 0) {
            size_t len = strcspn(line, "\n");
            printf("%*s%.*s\n", n < COLUMN ? COLUMN - n : 1, "", (int)len, line);
            line += len + (line[len] == '\n');
        }
    }
}

void
options_each(void (*call)(char letter, const char *name, const char *argument, const char *help))
{
    for (size_t i = 0; i < ROWS; i++)
        call(rows[i].letter, rows[i].name, rows[i].argument, rows[i].help);
}
