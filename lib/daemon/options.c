/* SPDX-License-Identifier: Apache-2.0 */
#include <daemon/options.h>

#include <daemon/config.h>
#include <daemon/daemon.h>

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES (64u << 20)
#define FIRST_LONG     256 /* getopt's value for the first row; the letters are below */

/* ------------------------------------------------------------------ all of them */

/* What getopt_long needs, made of the rows. */
struct parser {
    struct option longs[DAEMON_OPTIONS_MAX + 3];
    const struct daemon_option *rows[DAEMON_OPTIONS_MAX];
    char letters[3 * DAEMON_OPTIONS_MAX + sizeof "hV"];
    int n;
};

static void
add_row(struct parser *p, const struct daemon_option *o)
{
    bool flag = o->kind == OPTION_IS_FLAG; /* --fanout=no, against a file's yes */
    int has_arg = flag             ? optional_argument
                  : !o->arg        ? no_argument
                  : *o->arg == '[' ? optional_argument
                                   : required_argument;
    if (p->n == DAEMON_OPTIONS_MAX)
        daemon_die("more than %d options", DAEMON_OPTIONS_MAX);
    if (o->letter) {
        char *end = p->letters + strlen(p->letters);
        *end = o->letter;
        memcpy(end + 1,
               "::", flag ? 0 : (size_t)has_arg); /* ":": with an argument; "::": with or without */
    }
    p->longs[p->n] = (struct option){o->name, has_arg, NULL, FIRST_LONG + p->n};
    p->rows[p->n++] = o;
}

static const struct daemon_option *
row_of(const struct parser *p, int opt)
{
    for (int i = 0; i < p->n; i++)
        if (opt == FIRST_LONG + i || opt == p->rows[i]->letter)
            return p->rows[i];
    return NULL;
}

__attribute__((noreturn)) static void
print_help(const struct daemon_program *p, const char *format)
{
    if (!daemon_options_print(p, format ? format : "text", stdout))
        daemon_die("--help must be alone or --help=text, markdown, man, conf or "
                   "conf-markdown, not '%s'",
                   format);
    exit(0);
}

int
daemon_settings_of_line(const struct daemon_program *p, int argc, char **argv,
                        struct daemon_settings *out)
{
    struct parser parser = {.letters = "hV"};
    *out = (struct daemon_settings){0};
    of_arena_init(&out->arena, LINE_MAX_BYTES);
    if (argc > 2 && !strcmp(argv[1], "complete")) {
        daemon_complete(p, argv + 2, argc - 2, stdout);
        exit(0);
    }
    for (const struct daemon_option *o = p->options; o->name || o->help; o++)
        if (o->name)
            add_row(&parser, o);
    parser.longs[parser.n] = (struct option){"help", optional_argument, NULL, 'h'};
    parser.longs[parser.n + 1] = (struct option){"version", no_argument, NULL, 'V'};
    for (int opt; (opt = getopt_long(argc, argv, parser.letters, parser.longs, NULL)) != -1;) {
        const struct daemon_option *o = row_of(&parser, opt);
        if (opt == 'h')
            print_help(p, optarg);
        if (opt == 'V') {
            puts(p->version);
            exit(0);
        }
        if (!o) {
            fprintf(stderr, "try: %s --help\n", p->name);
            exit(1);
        }
        daemon_settings_add(out, p, o->name, optarg);
    }
    return optind;
}

int
daemon_options(const struct daemon_program *p, int argc, char **argv)
{
    static struct daemon_settings line; /* variables point into it */
    int first = daemon_settings_of_line(p, argc, argv, &line);
    daemon_settings_take(p, &line, NULL);
    if (line.n_faults)
        daemon_die("%s", line.faults[0]);
    return first;
}
