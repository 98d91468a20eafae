/* SPDX-License-Identifier: Apache-2.0 */
/* A build without libseccomp. */
#include "confine-inside.h"

#include <errno.h>

int
confine_calls(bool strict, const struct confine_needs *n)
{
    return -EOPNOTSUPP;
}
