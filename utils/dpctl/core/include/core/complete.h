/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates for the next word of a command line that is being typed: shells ask for them (dpctl
 * complete).  They come from what the help comes from: a command's arguments, its text, and the
 * rows behind them.  Numbers of ports, queues, tables, groups and meters come from the running
 * switch, if one answers soon. */
#ifndef DPCTL_CORE_COMPLETE_H
#define DPCTL_CORE_COMPLETE_H

#include <core/command.h>

struct complete {
    struct ctx *c;
    const char *word;    /* as far as it is typed */
    char *const *before; /* the n finished words behind the command */
    int n;
    const char *address; /* of the switch; NULL: it does not answer */
    struct of_wr w;      /* a line for each way to go on: the word, a tab, what it is */
};

/* The word's first `keep` characters may be followed by `text`; does nothing if what is typed says
 * otherwise.  `help` may be NULL. */
void complete_offer(struct complete *k, size_t keep, const char *text, const char *help);

/* They may be followed by "add", "del", ... (`values`: "add|del"), or by what a word in capital
 * letters stands for: PORT, QUEUE, CLASS, GROUP, METER, TABLE, FILE, INTERFACE. */
void complete_values(struct complete *k, size_t keep, const char *values);

/* "key=value" among others with commas between them. */
void complete_key(struct complete *k, const char *key, const char *values, const char *help);

/* The keys, lists and values of a structure (oflib/complete.h). */
void complete_row(struct complete *k, const struct of_struct_row *row);

/* A command's arguments as its row writes them: "PORT up|down [name=N]".  with_keys: also the
 * keys. */
void complete_arguments(struct complete *k, const char *arguments, bool with_keys);

/* The lines "  KEY=N   what it is" of a command's text. */
void complete_text(struct complete *k, const char *text);

/* What only the switch and the system know (complete-ask.c). */
void complete_ports(struct complete *k, size_t keep);
void complete_queues(struct complete *k, size_t keep);
void complete_tables(struct complete *k, size_t keep);
void complete_groups(struct complete *k, size_t keep);
void complete_meters(struct complete *k, size_t keep);
void complete_files(struct complete *k, size_t keep);
void complete_interfaces(struct complete *k, size_t keep);

#endif
