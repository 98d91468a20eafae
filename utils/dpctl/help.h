/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DPCTL_HELP_H
#define DPCTL_HELP_H

#include <core/command.h>

/* dpctl --help, on stdout: the commands that have a task. */
void help_print(void);

/* dpctl --help=all, on stdout: every command and option. */
void help_print_all(void);

/* dpctl help COMMAND, on stdout. */
enum status help_command(struct ctx *c, const struct command *command);

/* What a command's row says beyond its line of help: its text, its keys. */
void help_body(struct of_wr *w, const struct command *command);

#endif
