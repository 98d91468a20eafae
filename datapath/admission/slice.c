/* SPDX-License-Identifier: Apache-2.0 */
#include <admission/slice.h>

int
slice_anything(const struct slice_request *q)
{
    return 0;
}

int
slice_deny_port(const struct slice_request *q, int err, uint32_t no)
{
    return slice_deny(q, err, "port %u", (unsigned)no);
}
