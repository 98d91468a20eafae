/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory the process may have. */
#ifndef DAEMON_MACHINE_MEMORY_H
#define DAEMON_MACHINE_MEMORY_H

#include <stdint.h>

/* Bytes: the least of what the machine has, its control groups may take, and its address space
 * holds.  UINT64_MAX: unknown. */
uint64_t machine_memory(void);

/* What the control groups named in `root`/proc/self/cgroup may take; UINT64_MAX: no limit. */
uint64_t machine_memory_of_cgroups(const char *root);

#endif
