/* SPDX-License-Identifier: Apache-2.0 */
/* A command is a row: its name, what help says of it, and the function that carries it out.  A file
 * of commands has a table of rows; dpctl/meson.build lists the files. */
#ifndef DPCTL_CORE_COMMAND_H
#define DPCTL_CORE_COMMAND_H

#include <core/context.h>

struct qos_sched;
struct complete;

/* Options that not every command has. */
enum {
    COMMAND_DRY_RUN = 1,
    COMMAND_KERNEL = 2,
    COMMAND_TO = 4,
    COMMAND_ONCE = 32,
    COMMAND_OPENCONFIG = 64,
    COMMAND_YES = 128
};

/* What a person wants to do.  The first page of help has one line for each command that has a task. */
enum task { TASK_NONE, TASK_LOOK, TASK_SHAPE, TASK_FORWARD, TASK_FIND, TASK_KEEP, N_TASKS };

struct first {
    enum task task;
    const char *typed; /* the command as it is typed; with `does` it fits a line */
    const char *does;
};

/* What a command is about decides where help lists it and which page of the manual explains it;
 * dpctl/meson.build has their names.  The order is that of dpctl --help=all. */
enum subject {
    SUBJECT_SWITCH, /* what belongs to none of the others */
    SUBJECT_PORT,
    SUBJECT_FLOW,
    SUBJECT_GROUP,
    SUBJECT_METER,
    SUBJECT_QOS,
    SUBJECT_BW,
    SUBJECT_WATCH,
    N_SUBJECTS
};

/* What is left out is NULL, false or 0. */
struct command {
    const char *name;     /* "_" may be typed for "-" */
    const char *alias;    /* another name */
    enum subject subject; /* where `as` names a command, that one's counts */
    const char *args;     /* behind the name in its usage */
    const char *help;     /* one line */
    const char *text;     /* what `help COMMAND` says beyond it */
    const char *examples; /* lines of "COMMAND ARGUMENT..." */
    struct first first;   /* its line in dpctl --help; TASK_NONE: only --help=all has it */
    enum status (*run)(struct ctx *c, const struct command *self, char **words, int n);
    unsigned options; /* COMMAND_DRY_RUN, ... */
    bool alone;       /* talks to no switch, so none may be named, and it can't be in a file */
    bool asks;        /* changes nothing, so it can't be part of a bundle */
    int bridge;    /* ovs-ofctl's, which has the switch's name behind the command: 1, and how many
                       * bare words (PORT, FILE) the arguments may have; 0: it isn't, but a command
                       * without arguments */
    bool verbatim; /* the arguments are a text, not words to be tidied */

    /* `help COMMAND`, behind the text: prints what a row of another table tells of the
     * arguments. */
    void (*more)(struct of_wr *w, const struct command *self);
    const char *as; /* the command whose help goes for this one, too */

    /* Completion in a shell (complete.h): what the same row of another table tells of the
     * arguments.  NULL: args, text and keys tell all. */
    void (*offer)(struct complete *k, const struct command *self);

    /* What the row is about, for the functions above. */
    const struct of_struct_row *keys; /* the message whose fields are the keys */
    const struct query *query;        /* what is asked (openflow/query.c) */
    const struct qos_sched *sched;    /* a scheduler's command (qos/qos-request.c) */
    const struct of10_command *of10;  /* OpenFlow 1.0's (openflow/of10.c) */
};

struct command_table {
    const struct command *rows;
    size_t n;
    /* For rows that are made at run time: the i-th, NULL past the last. */
    const struct command *(*row)(size_t i);
};

#define COMMAND_TABLE(rows_)                                                                       \
    {                                                                                              \
        .rows = rows_, .n = sizeof(rows_) / sizeof((rows_)[0])                                     \
    }

/* The i-th row; NULL past the last. */
const struct command *command_at(const struct command_table *table, size_t i);

/* The table's row of this name or alias; NULL: it has none. */
const struct command *command_find(const struct command_table *table, const char *name);

/* For `more`: the keys of the row's message. */
void command_keys(struct of_wr *w, const struct command *self);

#endif
