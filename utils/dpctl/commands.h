/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of commands, one a file; each ends with a row without a name. */
#ifndef DPCTL_COMMANDS_H
#define DPCTL_COMMANDS_H

#include "dpctl.h"

extern const struct command query_commands[];
extern const struct command mod_commands[];
extern const struct command ext_commands[];
extern const struct command monitor_commands[];
extern const struct command qos_commands[];
extern const struct command queue_commands[];
extern const struct command bw_commands[];
extern const struct command of10_commands[];

/* A command that asks: for the generic function. */
struct query {
    uint16_t type; /* OFPT_, or OFPMP_ where `multipart` */
    bool multipart;
    const void *defaults; /* of the request's body; NULL: zeros */
};

/* Fills in `body` (of the row) out of words: "key=value" pairs of its fields and, where it has a
 * match, of the match; bare values for its numbers in order where it has none. */
enum status parse_args(struct ctx *c, const struct of_struct_row *row, char *const *words, int n,
                       void *body);

/* The command of the i-th scheduler of the qos library ("qos-htb"), NULL past the last; valid until
 * the next call. */
const struct command *scheduler_command(unsigned i);

/* The fields of what the command asks for. */
const struct of_struct_row *query_row(const struct query *q);

/* `help COMMAND`, on stdout. */
enum status print_command_help(struct ctx *c, const struct command *command);

enum status queue_config(struct ctx *c, char **words, int n);
enum status queue_add(struct ctx *c, char **words, int n);
enum status of10_ask(struct ctx *c, char **words, int n);
enum status counters(struct ctx *c, char **words, int n);
enum status show_status(struct ctx *c, char **words, int n);
enum status qos_show(struct ctx *c, char **words, int n);
enum status qos_watch(struct ctx *c, char **words, int n);
enum status bw_show(struct ctx *c, char **words, int n);
enum status bw_watch(struct ctx *c, char **words, int n);

#endif
