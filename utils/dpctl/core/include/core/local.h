/* SPDX-License-Identifier: Apache-2.0 */
/* The switches of this machine by name: NAME.sock in the directory of the default socket, as the
 * services ofdatapath@NAME make it. */
#ifndef DPCTL_CORE_LOCAL_H
#define DPCTL_CORE_LOCAL_H

#include <stdbool.h>
#include <stddef.h>

/* Whether there is a switch's socket of that name; `path` becomes "unix:" and its path. */
bool local_switch(const char *name, char *path, size_t size);

/* Puts the names of all into `names`, ", " between them, sorted; those that have no room are left
 * out.  -> how many there are. */
unsigned local_switches(char *names, size_t size);

#endif
