/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that another command's row names. */
#ifndef DPCTL_OPENFLOW_TABLES_H
#define DPCTL_OPENFLOW_TABLES_H

#include <core/command.h>

extern const struct command_table commands_query, commands_mod, commands_ping, commands_of10;

#endif
