/* SPDX-License-Identifier: Apache-2.0 */
/* A program's options, one row each.  The rows are parsed, and printed as --help, as a table for a
 * page in Markdown and as a section of a manual (--help=markdown, --help=man).  They are the keys of
 * the configuration file, too (config.h; --help=conf, --help=conf-markdown).  `PROGRAM complete
 * WORD...` tells a shell how the last word may go on.
 *
 *     static const struct daemon_option options[] = {
 *         OPTION_GROUP("Packets"),
 *         {"tables", 0, "N", "flow tables", NULL, OPTION_NUMBER(args.n_tables, 1, 254)},
 *         {"fanout", 0, NULL, "every worker reads every port", NULL, OPTION_FLAG(args.fanout)},
 *         OPTION_END,
 *     };
 *
 * A row names the variable that it sets.  What that holds before parsing is the default.
 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* ------------------------------------------------------------------ rows */

#define DAEMON_OPTIONS_MAX 128 /* rows of a program */

/* Takes an option's argument.  False: refused, and `why` (n bytes) says what is allowed, to be
 * printed between the option's name and the argument: "must be 12 hexadecimal digits".  With a
 * configuration file `arg` may be NULL: back to the default. */
typedef bool daemon_option_call(const char *arg, char *why, size_t n);

/* One of the words that an option takes. */
struct daemon_word {
    const char *word; /* NULL: the list's end */
    unsigned value;
};

struct daemon_option {
    const char *name; /* NULL: `help` is the heading of the rows from here on, or the end */
    char letter;      /* 0: none */
    const char *arg;  /* what the argument is called; NULL: there is none; "[FILE]": may be
                             left out, and is "" then */
    const char *help; /* a phrase of any length; NULL: the option isn't shown */
    const char
        *fallback; /* the default in words; NULL: the variable's value, where it is a number */
    enum daemon_option_kind {
        OPTION_IS_IGNORED, /* read for old scripts' sake */
        OPTION_IS_FLAG,
        OPTION_IS_NUMBER,
        OPTION_IS_SECONDS, /* with a fraction, 0.1 to 3600; kept in milliseconds */
        OPTION_IS_TEXT,
        OPTION_IS_WORD,
        OPTION_IS_CALL,
        OPTION_IS_LIST, /* sets nothing: the program looks at the settings (config.h) */
    } kind;
    union {
        bool *flag;
        unsigned *number; /* of a word: its value */
        const char **text;
        daemon_option_call *call;
    } to;
    unsigned min, max; /* of a number */
    bool may_be_0;     /* of seconds: 0 is allowed, and kept as `zero` */
    unsigned zero;
    const struct daemon_word *words;

    /* The configuration file's. */
    bool many;      /* may be given again */
    bool line_only; /* not in a file */
    const char
        *section;    /* [SECTION TITLE] KEY = VALUE is the option's TITLE:VALUE; NULL: none.  The */
    const char *key; /* row whose name is the section's stands for the section itself. */
    /* Carries out a change at run time, after the variables are set; NULL: that needs a restart.
     * Called once, however many rows name it. */
    void (*apply)(void *ctx);
};

/* An `apply` for a row whose variable is all that there is to change. */
void daemon_applied(void *ctx);

#define OPTION_GROUP(heading)                                                                      \
    {                                                                                              \
        .help = (heading)                                                                          \
    }
#define OPTION_END                                                                                 \
    {                                                                                              \
        0                                                                                          \
    }
/* clang-format off */
#define OPTION_IGNORED              OPTION_IS_IGNORED, .to.flag = NULL
#define OPTION_FLAG(var)            OPTION_IS_FLAG, .to.flag = &(var)
#define OPTION_NUMBER(var, lo, hi)  OPTION_IS_NUMBER, .to.number = &(var), .min = (lo), .max = (hi)
#define OPTION_SECONDS(var)         OPTION_IS_SECONDS, .to.number = &(var)
#define OPTION_SECONDS_OR(var, never) OPTION_SECONDS(var), .may_be_0 = true, .zero = (never)
#define OPTION_TEXT(var)            OPTION_IS_TEXT, .to.text = &(var)
#define OPTION_WORD(var, list)      OPTION_IS_WORD, .to.number = &(var), .words = (list)
#define OPTION_CALL(function)       OPTION_IS_CALL, .to.call = (function)
#define OPTION_LIST                 OPTION_IS_LIST, .to.flag = NULL, .many = true
/* clang-format on */

/* ------------------------------------------------------------------ a command line */

struct daemon_program {
    const char *name;    /* as people type it */
    const char *version; /* one line, printed by --version */
    const char *before;  /* --help: what is above the options, and below them */
    const char *after;
    const char *words; /* how a word that is no option may begin: "punix:|ptcp:"; NULL: anyhow */
    const struct daemon_option *options;
};

/* Takes the options, and --help and --version, which end the program.  What is wrong with one ends
 * it as well (daemon_die).  -> the index of the first word that is no option: they are behind all
 * that are. */
int daemon_options(const struct daemon_program *p, int argc, char **argv);

/* What daemon_options is made of, for tests. */
bool daemon_option_take(const struct daemon_option *o, const char *arg, char *why, size_t n);
bool daemon_options_print(const struct daemon_program *p, const char *format, FILE *f);

/* The rows of --help and --version, which every program has; ends with a row without a name. */
extern const struct daemon_option daemon_own_options[];

/* A line for each way in which the last of the words may go on: the word, a tab, what it is. */
void daemon_complete(const struct daemon_program *p, char **words, int n, FILE *f);

#endif
