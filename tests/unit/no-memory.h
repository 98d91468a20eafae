/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that ends where a test wants it to: for one source of a program that is linked with --wrap for malloc, calloc
 * and whatever else it has FAILS for. */
#ifndef NO_MEMORY_H
#define NO_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

static int left = -1;           /* allocations until one fails; negative: none does */
static void (*meanwhile)(void); /* called where it fails; NULL: nothing */

static bool
fails(void)
{
    if (left < 0 || left--)
        return false;
    if (meanwhile)
        meanwhile();
    return true;
}

#define FAILS(type, name, parameters, arguments)                                                   \
    type __real_##name parameters;                                                                 \
    type __wrap_##name parameters;                                                                 \
    type __wrap_##name parameters                                                                  \
    {                                                                                              \
        return fails() ? NULL : __real_##name arguments;                                           \
    }

FAILS(void *, malloc, (size_t n), (n))
FAILS(void *, calloc, (size_t n, size_t size), (n, size))

#endif
