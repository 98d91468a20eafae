/* SPDX-License-Identifier: Apache-2.0 */
/* dpctl: queries and configures an OpenFlow 1.3 switch from the command line. */
#include "complete.h"
#include "foreign.h"
#include "help.h"
#include "options.h"
#include "registry.h"

#include <core/change.h>
#include <core/local.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/words.h>

#include <oflib/near.h>
#include <stream/address.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_TIMEOUT_S 10
#define ARENA_MAX         ((size_t)2 << 30)
#define WORDS_MAX         4096

/* A switch of this machine by its name.  A command's name wins. */
static bool
is_name(const char *word)
{
    char path[300];
    return !registry_find(word) && local_switch(word, path, sizeof path);
}

/* Behind such a command a path without a socket is the file. */
static bool
takes_file(const char *name)
{
    const struct command *k = registry_find(name);
    return k && k->args && strstr(k->args, "FILE");
}

/* Takes the address off the words: the first one or, behind a command, the second or the last.
 * NULL: none is given. */
static const char *
take_switch(char ***words, int *n, bool file, bool needed)
{
    char **w = *words;
    if (*n && !file && foreign_instead(w[0])) /* "ofproto/trace" is no path */
        return NULL;
    if (*n && (file || remote_is_address(w[0]) || is_name(w[0]) ||
               (!registry_find(w[0]) && remote_may_be_address(w[0], false)))) {
        ++*words;
        --*n;
        return w[0];
    }
    if (*n > 2 && stream_is_address(w[1])) {
        const char *address = w[1];
        w[1] = w[0];
        ++*words;
        --*n;
        return address;
    }
    return *n > 1 && remote_may_be_address(w[*n - 1], needed && !takes_file(w[0])) ? w[--*n] : NULL;
}

/* "dump-flows br0": as ovs-ofctl names the switch; also "br0 dump-flows".  *address stays NULL: none
 * is named so. */
static enum status
take_bridge(struct ctx *c, char ***words, int *n, const char **address)
{
    static char why[512];
    char **w = *words, *name = NULL;
    const struct command *k = *n > 1 ? registry_find(w[0]) : NULL;
    if (k && foreign_bridge(k, w + 1, *n - 1)) {
        name = w[1];
        w[1] = w[0];
    } else if (!k && *n > 1 && foreign_bridge_first(w[0]) &&
               (registry_find(w[1]) || foreign_instead(w[1]))) {
        name = w[0];
    }
    if (!name)
        return DPCTL_OK;
    if (!(*address = foreign_address(name, why, sizeof why)))
        return say_failed(c, "%s", why);
    ++*words;
    --*n;
    return DPCTL_OK;
}

static enum status
no_command(struct ctx *c, const char *name)
{
    char near[OF_NEAR_TEXT];
    const char *instead = foreign_instead(name);
    if (instead)
        return say_usage(c, "there is no command %s: %s", name, instead);
    return say_usage(c, "there is no command %s%s", name, registry_near(name, near, sizeof near));
}

static enum status
check_options(struct ctx *c, const struct command *k)
{
    if (c->bundle && k->asks)
        return say_usage(c, "%s changes nothing, so it can't be part of --atomic", k->name);
    if (c->dry_run && !(k->options & COMMAND_DRY_RUN))
        return say_usage(c, "%s has no --dry-run", k->name);
    if (c->kernel && !(k->options & COMMAND_KERNEL))
        return say_usage(c, "%s has no --kernel", k->name);
    if (c->openconfig && !(k->options & COMMAND_OPENCONFIG))
        return say_usage(c, "%s has no --openconfig", k->name);
    if (c->to && !(k->options & COMMAND_TO))
        return say_usage(c, "%s has no --to", k->name);
    if (c->once && !(k->options & COMMAND_ONCE))
        return say_usage(c, "%s has no --once", k->name);
    if (c->yes && !(k->options & COMMAND_YES))
        return say_usage(c, "%s has no --yes", k->name);
    if (k->alone && c->address)
        return say_usage(c, "%s takes no switch, and can't be in a file: type  dpctl %s", k->name,
                         k->name);
    return DPCTL_OK;
}

/* An option among a command's words is for this command. */
static void
take_flags(struct ctx *c, const struct command *k, char **words, int *n)
{
    if (k->options & COMMAND_DRY_RUN)
        c->dry_run |= words_take_flag(words, n, "dry-run");
    if (k->options & COMMAND_KERNEL)
        c->kernel |= words_take_flag(words, n, "kernel");
    if (k->options & COMMAND_OPENCONFIG)
        c->openconfig |= words_take_flag(words, n, "openconfig");
}

static enum status
run_words(struct ctx *c, char **words, int n)
{
    const bool dry_run = c->dry_run, kernel = c->kernel, openconfig = c->openconfig;
    const struct command *k = registry_find(words[0]);
    c->command = NULL;
    if (!k)
        return no_command(c, words[0]);
    enum status st = check_options(c, k);
    if (st)
        return st;
    c->command = k;
    c->ports.fresh = false;
    words++;
    n--;
    st = k->verbatim ? DPCTL_OK : words_tidy(c, &words, &n);
    if (!st) {
        take_flags(c, k, words, &n);
        st = k->run(c, k, words, n);
    }
    c->command = NULL;
    c->dry_run = dry_run;
    c->kernel = kernel;
    c->openconfig = openconfig;
    of_arena_reset(&c->arena);
    return st;
}

static enum status
run_line(struct ctx *c, char *line, bool *empty)
{
    static char *words[WORDS_MAX];
    char *save, *comment = strchr(line, '#');
    int n = 0;
    if (comment)
        *comment = '\0';
    for (char *w = strtok_r(line, " \t\r\n", &save); w; w = strtok_r(NULL, " \t\r\n", &save)) {
        if (n == WORDS_MAX)
            return say_usage(c, "the line has more than %d words", WORDS_MAX);
        words[n++] = w;
    }
    *empty = !n;
    return n ? run_words(c, words, n) : DPCTL_OK;
}

/* Stops at the first command that fails; with --atomic nothing is done then. */
static enum status
run_file(struct ctx *c, const char *name, bool atomic)
{
    FILE *in = strcmp(name, "-") ? fopen(name, "re") : stdin;
    char *line = NULL, where[300];
    size_t size = 0;
    struct done done = {0};
    bool empty = false;
    enum status st = DPCTL_OK;
    if (!in) {
        fprintf(stderr, "dpctl: %s: %s\n", name, strerror(errno));
        return DPCTL_USAGE;
    }
    if (atomic)
        st = change_begin(c);
    for (unsigned number = 1; !st && getline(&line, &size, in) >= 0; number++) {
        snprintf(where, sizeof where, "%.200s:%u", in == stdin ? "stdin" : name, number);
        c->where = where;
        st = run_line(c, line, &empty);
        c->where = "dpctl";
        if (!st && !empty && !atomic)
            done_add(&done, number);
    }
    if (!st && !feof(in)) {
        fprintf(stderr, "dpctl: %s: %s\n", name, strerror(errno));
        st = DPCTL_USAGE;
    }
    if (st)
        done_say(in == stdin ? "stdin" : name, &done, "commands");
    if (atomic && !st)
        st = change_commit(c);
    change_drop(c);
    free(line);
    if (in != stdin)
        fclose(in);
    return st;
}

static bool
asks_for_help(char **words, int n)
{
    return (n && !strcmp(words[0], "help")) ||
           (n > 1 && (remote_is_address(words[0]) || is_name(words[0])) &&
            !strcmp(words[1], "help"));
}

/* "help", "help COMMAND", "COMMAND --help", each also behind an address. */
static enum status
show_help(struct invocation *v, char **words, int n)
{
    struct ctx *c = &v->c;
    const char *format = v->help && *v->help ? v->help : "text";
    if (c->json && (!n || (n == 1 && !strcmp(words[0], "help"))))
        format = "json";
    if (!strcmp(format, "json")) {
        help_print_json();
        return DPCTL_OK;
    }
    if (!strcmp(format, "all") || (n && !strcmp(words[n - 1], "all") && asks_for_help(words, n))) {
        help_print_all();
        return DPCTL_OK;
    }
    if (strcmp(format, "text"))
        return say_usage(c, "--help must be alone or --help=text, all or json, not '%s'", format);
    if (n && !registry_find(words[0]) && (remote_is_address(words[0]) || is_name(words[0]))) {
        words++;
        n--;
    }
    if (n && !strcmp(words[0], "help")) {
        words++;
        n--;
    }
    if (!n) {
        help_print();
        return DPCTL_OK;
    }
    const struct command *k = registry_find(words[0]);
    return k ? help_command(c, k) : no_command(c, words[0]);
}

static enum status
talk(struct invocation *v, const char *address, char **words, int n)
{
    struct ctx *c = &v->c;
    int timeout_s = c->timeout_s > 0 ? c->timeout_s : DEFAULT_TIMEOUT_S;
    char why[256];
    enum status st;
    if (stream_tls_new(&v->tls, &c->remote.tls, why, sizeof why))
        return say_usage(c, "%s", why);
    c->address = address;
    if (remote_open(&c->remote, address, timeout_s * 1000))
        st = say_failed(c, "%s", c->remote.why);
    else
        st = v->file ? run_file(c, v->file, v->atomic) : run_words(c, words, n);
    remote_close(&c->remote);
    stream_tls_free(c->remote.tls);
    return st;
}

static enum status
no_switch(struct ctx *c, const char *word)
{
    char names[256];
    unsigned n = local_switches(names, sizeof names);
    return say_usage(c, "%s is not a switch's address: write %s%s%s", word, REMOTE_ADDRESSES,
                     n ? "; running here: " : "", names);
}

static enum status
connect_and_run(struct invocation *v, char **words, int n)
{
    struct ctx *c = &v->c;
    const char *usual = getenv(REMOTE_VARIABLE);
    bool has_usual = usual && *usual;
    char show[] = "qos-show", *alone[] = {show};
    const char *address = take_switch(&words, &n, v->file != NULL, !has_usual);
    enum status st = address ? DPCTL_OK : take_bridge(c, &words, &n, &address);
    if (st)
        return st;
    const char *named = address;
    if (!address)
        address = has_usual ? usual : remote_usual();
    if (n && v->file)
        return say_usage(c, "with -F, '%s' can't stand on the command line: only the switch can",
                         words[0]);
    if (!n && c->openconfig) { /* --openconfig without a command means qos-show */
        words = alone;
        n = 1;
    }
    if (!n && !v->file) {
        if (!c->json)
            help_print();
        return say_usage(c, "no command given: dpctl help COMMAND explains one");
    }
    if (v->atomic && !v->file)
        return say_usage(c, "--atomic needs -F FILE");
    if (n > 1 && !registry_find(words[0]) && registry_find(words[1]) && !foreign_instead(words[0]))
        return no_switch(c, words[0]);
    const struct command *k = n ? registry_find(words[0]) : NULL;
    if (n && !k)
        return no_command(c, words[0]);
    if (k && k->alone) {
        c->address = named;
        return run_words(c, words, n);
    }
    return talk(v, address, words, n);
}

int
main(int argc, char **argv)
{
    static struct invocation v;
    struct ctx *c = &v.c;
    v = (struct invocation){.c = {.timeout_s = -1, .where = "dpctl"}};
    if (complete_is(argc, argv))
        return complete_words(argv + 2, argc - 2);
    enum status st = options_take(&v, argc, argv);
    if (st)
        return st;
    char **words = argv + optind;
    int n = argc - optind;
    if (v.help || asks_for_help(words, n))
        return show_help(&v, words, n);
    if (v.version) {
        printf("dpctl (ofqos) %s\n", DPCTL_VERSION);
        return DPCTL_OK;
    }
    of_arena_init(&c->arena, ARENA_MAX);
    c->run_line = run_line;
    c->parse = (struct of_parse){.arena = &c->arena, .find_port = ports_find, .find_port_ctx = c};
    st = connect_and_run(&v, words, n);
    ports_forget(c);
    of_arena_free(&c->arena);
    return st;
}
