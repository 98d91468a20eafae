/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory the process may have, and for how many processors the kernel reserves it. */
#ifndef DAEMON_MACHINE_MEMORY_H
#define DAEMON_MACHINE_MEMORY_H

#include <stdint.h>

/* Bytes: the least of the machine's memory, the limits of the process's control groups, and its
 * address space. */
uint64_t machine_memory(void);

/* The limit of the control groups named in `root`/proc/self/cgroup; UINT64_MAX: none. */
uint64_t machine_memory_of_cgroups(const char *root);

/* Processors that the machine may ever have, as root/sys/devices/system/cpu/possible says; 0: unknown. */
unsigned machine_processors_of(const char *root);
unsigned machine_processors(void); /* at least 1 */

#endif
