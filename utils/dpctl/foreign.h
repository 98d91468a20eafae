/* SPDX-License-Identifier: Apache-2.0 */
/* What people type first who know another switch's commands: ovs-vsctl's, ovs-ofctl's, brctl's, tc's. */
#ifndef DPCTL_FOREIGN_H
#define DPCTL_FOREIGN_H

#include <core/command.h>

/* What to type here instead of another program's command; NULL: the word is none. */
const char *foreign_instead(const char *word);

/* Is the first of n words behind the command a switch's name, as ovs-ofctl has it ("dump-flows br0
 * tcp")? */
bool foreign_bridge(const struct command *k, char *const *words, int n);

/* Is the word in front of a command a name that bridges usually have ("br0 show")? */
bool foreign_bridge_first(const char *word);

/* The address of the switch that was named so: its own, or, where bridges usually have such a name,
 * that of the only switch of this machine if it has none.  NULL: `why` says that there is none. */
const char *foreign_address(const char *name, char *why, size_t size);

#endif
