/* SPDX-License-Identifier: Apache-2.0 */
/* dpctl: asks and configures an OpenFlow 1.3 switch, from the command line. */
#include "commands.h"

#include <oflib/near.h>
#include <stream/address.h>

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_TIMEOUT_S 10
#define ARENA_MAX         ((size_t)2 << 30)
#define WORDS_MAX         4096

struct options {
    const char *file; /* -F */
    bool atomic;      /* the file as one bundle */
    struct stream_tls_options tls;
    bool help, version;
};

static enum status
parse_timeout(struct ctx *c, const char *text)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < 0 || v > 1000000)
        return bad_args(c, "--timeout %s: a number of seconds is right", text);
    c->timeout_s = (int)v;
    return DPCTL_OK;
}

static enum status
parse_options(struct ctx *c, int argc, char **argv, struct options *o)
{
    enum { JSON = 256, TIMEOUT, EXPERIMENTER, ATOMIC, STRICT, DRY_RUN, KERNEL, HELP, VERSION };
    /* clang-format off */
    static const struct option longs[] = {{"json", no_argument, NULL, JSON},
                                          {"timeout", required_argument, NULL, TIMEOUT},
                                          {"experimenter", no_argument, NULL, EXPERIMENTER},
                                          {"file", required_argument, NULL, 'F'},
                                          {"atomic", no_argument, NULL, ATOMIC},
                                          {"strict", no_argument, NULL, STRICT},
                                          {"dry-run", no_argument, NULL, DRY_RUN},
                                          {"kernel", no_argument, NULL, KERNEL},
                                          STREAM_TLS_LONGS
                                          {"help", no_argument, NULL, HELP},
                                          {"version", no_argument, NULL, VERSION},
                                          {NULL, 0, NULL, 0}};
    /* clang-format on */
    enum status st = DPCTL_OK;
    int opt;
    while (!st && (opt = getopt_long(argc, argv, "F:hV", longs, NULL)) != -1) {
        switch (opt) {
        case JSON: c->json = true; break;
        case TIMEOUT: st = parse_timeout(c, optarg); break;
        case EXPERIMENTER: c->experimenter = true; break;
        case ATOMIC: o->atomic = true; break;
        case STRICT: c->strict = true; break;
        case DRY_RUN: c->dry_run = true; break;
        case KERNEL: c->kernel = true; break;
        case 'F': o->file = optarg; break;
        case HELP:
        case 'h': o->help = true; break;
        case VERSION:
        case 'V': o->version = true; break;
        default:
            if (!stream_tls_option(&o->tls, opt, optarg))
                st = DPCTL_USAGE; /* getopt has said it */
        }
    }
    return st;
}

/* The address is the first word or, behind a command, the second or the last one; it is taken off
 * the words.  NULL: none is given. */
static const char *
take_address(char ***words, int *n, bool file, bool needed)
{
    char **w = *words;
    if (*n && (file || remote_is_address(w[0]) ||
               (!find_command(w[0]) && remote_may_be_address(w[0], false)))) {
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
    return *n > 1 && remote_may_be_address(w[*n - 1], needed) ? w[--*n] : NULL;
}

static enum status
no_command(struct ctx *c, const char *name)
{
    char near[OF_NEAR_TEXT];
    return bad_args(c, "there is no command %s%s", name, near_commands(name, near, sizeof near));
}

static enum status
run_words(struct ctx *c, char **words, int n)
{
    c->command = NULL;
    const struct command *k = find_command(words[0]);
    if (!k)
        return no_command(c, words[0]);
    if (c->bundle && command_asks(k))
        return bad_args(c, "%s changes nothing: with --atomic only changes make sense", words[0]);
    if ((c->dry_run && !strstr(k->args, "--dry-run")) ||
        (c->kernel && !strstr(k->args, "--kernel")))
        return bad_args(c, "%s has no --%s", words[0], c->dry_run ? "dry-run" : "kernel");
    c->command = k;
    c->ports.fresh = false;
    words++;
    n--;
    enum status st = k->more && k->more->verbatim ? DPCTL_OK : tidy_words(c, &words, &n);
    st = st ? st : k->run(c, words, n);
    c->command = c->typed = NULL;
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
            return bad_args(c, "more than %d words", WORDS_MAX);
        words[n++] = w;
    }
    *empty = !n;
    return n ? run_words(c, words, n) : DPCTL_OK;
}

/* Stops at the first command that fails; with --atomic nothing has been done then. */
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
        st = bundle_begin(c);
    for (unsigned number = 1; !st && getline(&line, &size, in) >= 0; number++) {
        snprintf(where, sizeof where, "%.200s:%u", in == stdin ? "stdin" : name, number);
        c->where = where;
        st = run_line(c, line, &empty);
        c->where = "dpctl";
        if (!st && !empty && !atomic)
            note_done(&done, number);
    }
    if (st)
        say_done(in == stdin ? "stdin" : name, &done, "commands");
    if (atomic && !st)
        st = bundle_commit(c);
    bundle_drop(c);
    free(line);
    if (in != stdin)
        fclose(in);
    return st;
}

static enum status
help_for(struct ctx *c, const char *name)
{
    const struct command *k = find_command(name);
    return k ? print_command_help(c, k) : no_command(c, name);
}

/* "help", "help COMMAND", "COMMAND --help", each also behind an address. */
static enum status
help(struct ctx *c, char **words, int n)
{
    if (n && !find_command(words[0]) && remote_is_address(words[0])) {
        words++;
        n--;
    }
    if (n && !strcmp(words[0], "help")) {
        words++;
        n--;
    }
    if (n)
        return help_for(c, words[0]);
    print_help();
    return DPCTL_OK;
}

static bool
asks_for_help(char **words, int n)
{
    return (n && !strcmp(words[0], "help")) ||
           (n > 1 && remote_is_address(words[0]) && !strcmp(words[1], "help"));
}

static enum status
talk(struct ctx *c, const struct options *o, const char *address, char **words, int n)
{
    int timeout_s = c->timeout_s > 0 ? c->timeout_s : DEFAULT_TIMEOUT_S;
    char why[256];
    enum status st;
    if (stream_tls_new(&o->tls, &c->remote.tls, why, sizeof why))
        return bad_args(c, "%s", why);
    if (remote_open(&c->remote, address, timeout_s * 1000))
        st = failed(c, "%s", c->remote.why);
    else
        st = o->file ? run_file(c, o->file, o->atomic) : run_words(c, words, n);
    remote_close(&c->remote);
    stream_tls_free(c->remote.tls);
    return st;
}

static enum status
connect_and_run(struct ctx *c, const struct options *o, char **words, int n)
{
    const char *usual = getenv(REMOTE_VARIABLE);
    bool has_usual = usual && *usual;
    const char *address = take_address(&words, &n, o->file != NULL, !has_usual);
    if (!address)
        address = has_usual ? usual : "unix:";
    if (!n != !!o->file)
        return bad_args(c, o->file ? "with -F only the switch's address is given"
                                   : "the command is missing: dpctl --help lists them");
    if (o->atomic && !o->file)
        return bad_args(c, "--atomic goes with -F");
    if (n > 1 && !find_command(words[0]) && find_command(words[1]))
        return bad_args(c, "%s is no switch's address: %s is right", words[0], REMOTE_ADDRESSES);
    if (n && !find_command(words[0]))
        return no_command(c, words[0]);
    return talk(c, o, address, words, n);
}

int
main(int argc, char **argv)
{
    static struct ctx c = {.timeout_s = -1, .where = "dpctl"};
    struct options o = {0};
    enum status st = parse_options(&c, argc, argv, &o);
    if (st)
        return st;
    char **words = argv + optind;
    int n = argc - optind;
    if (o.help || asks_for_help(words, n))
        return help(&c, words, n);
    if (o.version) {
        printf("dpctl (ofqos) %s\n", DPCTL_VERSION);
        return DPCTL_OK;
    }
    of_arena_init(&c.arena, ARENA_MAX);
    c.parse = (struct of_parse){.arena = &c.arena, .find_port = ports_find, .find_port_ctx = &c};
    st = connect_and_run(&c, &o, words, n);
    ports_forget(&c);
    of_arena_free(&c.arena);
    return st;
}
