/* SPDX-License-Identifier: Apache-2.0 */
/* The reply to COUNTERS (docs/reference/extensions.md). */
#ifndef DPCTL_CORE_COUNTERS_H
#define DPCTL_CORE_COUNTERS_H

#include <oflib/wire.h>

/* Calls `each` for every entry of the answer; false: it is malformed. */
bool counters_each(struct of_bytes entries,
                   void (*each)(void *to, const char *name, uint64_t value), void *to);

#endif
