/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DPCTL_HELP_H
#define DPCTL_HELP_H

#include <core/command.h>

/* dpctl --help, on stdout: the commands that have a task. */
void help_print(void);

/* dpctl --help=all, on stdout: every command and option. */
void help_print_all(void);

/* dpctl --help=json, on stdout: the options and all commands, of which scripts/man-rows makes manual pages. */
void help_print_json(void);

/* dpctl help COMMAND, on stdout. */
enum status help_command(struct ctx *c, const struct command *command);

#endif
