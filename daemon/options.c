/* SPDX-License-Identifier: Apache-2.0 */
#include <daemon/options.h>

#include <daemon/daemon.h>

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX   128
#define FIRST_LONG 256 /* getopt's value for the first row; the letters are below */

/* ------------------------------------------------------------------ one argument */

static bool
take_number(const struct daemon_option *o, const char *arg, char *why, size_t n)
{
    char *end, such_as[40] = "";
    errno = 0;
    unsigned long value = strtoul(arg, &end, 10);
    if (*arg >= '0' && *arg <= '9' && !*end && !errno && value >= o->min && value <= o->max) {
        *o->to.number = (unsigned)value;
        return true;
    }
    if (*o->to.number)
        snprintf(such_as, sizeof such_as, ", such as %u", *o->to.number);
    snprintf(why, n, "must be a number from %u to %u%s", o->min, o->max, such_as);
    return false;
}

static bool
take_seconds(const struct daemon_option *o, const char *arg, char *why, size_t n)
{
    char *end;
    double seconds = strtod(arg, &end);
    bool number = *arg && !*end && !arg[strspn(arg, "0123456789.")];
    bool zero = o->may_be_0 && seconds == 0;
    if (number && (zero || (seconds >= 0.1 && seconds <= 3600))) {
        *o->to.number = zero ? o->zero : (unsigned)(seconds * 1000 + 0.5);
        return true;
    }
    snprintf(why, n, "must be a number of seconds from 0.1 to 3600, such as 2.5%s",
             o->may_be_0 ? ", or 0 for never" : "");
    return false;
}

static bool
take_word(const struct daemon_option *o, const char *arg, char *why, size_t n)
{
    int len = snprintf(why, n, "must be");
    for (const struct daemon_word *w = o->words; w->word; w++) {
        if (!strcmp(arg, w->word)) {
            *o->to.number = w->value;
            return true;
        }
        if ((size_t)len < n)
            len += snprintf(why + len, n - (size_t)len, "%s %s",
                            w == o->words ? ""
                            : w[1].word   ? ","
                                          : " or",
                            w->word);
    }
    return false;
}

bool
daemon_option_take(const struct daemon_option *o, const char *arg, char *why, size_t n)
{
    switch (o->kind) {
    case OPTION_IS_IGNORED: return true;
    case OPTION_IS_FLAG: return *o->to.flag = true;
    case OPTION_IS_NUMBER: return take_number(o, arg, why, n);
    case OPTION_IS_SECONDS: return take_seconds(o, arg, why, n);
    case OPTION_IS_TEXT: *o->to.text = arg ? arg : ""; return true;
    case OPTION_IS_WORD: return take_word(o, arg, why, n);
    case OPTION_IS_CALL: return o->to.call(arg, why, n);
    }
    return false;
}

/* ------------------------------------------------------------------ all of them */

/* What getopt_long needs, made of the rows. */
struct parser {
    struct option longs[ROWS_MAX + 3];
    const struct daemon_option *rows[ROWS_MAX];
    char letters[3 * ROWS_MAX + sizeof "hV"];
    int n;
};

static void
add_row(struct parser *p, const struct daemon_option *o)
{
    int has_arg = !o->arg ? no_argument : *o->arg == '[' ? optional_argument : required_argument;
    if (p->n == ROWS_MAX)
        daemon_die("more than %d options", ROWS_MAX);
    if (o->letter) {
        char *end = p->letters + strlen(p->letters);
        *end = o->letter;
        memcpy(end + 1, "::", (size_t)has_arg); /* ":": with an argument; "::": with or without */
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

static void
take(const struct daemon_option *o, const char *arg)
{
    char why[256];
    if (!daemon_option_take(o, arg, why, sizeof why))
        daemon_die("--%s %s, not '%s'", o->name, why, arg);
}

__attribute__((noreturn)) static void
print_help(const struct daemon_program *p, const char *format)
{
    if (!daemon_options_print(p, format ? format : "text", stdout))
        daemon_die("--help must be alone or --help=text, markdown or man, not '%s'", format);
    exit(0);
}

int
daemon_options(const struct daemon_program *p, int argc, char **argv)
{
    struct parser parser = {.letters = "hV"};
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
        take(o, optarg);
    }
    return optind;
}
