/* SPDX-License-Identifier: Apache-2.0 */
/* A build without libbpf, or for a processor whose 64-bit words tear: nothing is handled in the kernel. */
#include <offload/offload.h>

#include <errno.h>
#include <stdio.h>

int
offload_open(const struct offload_options *opt, struct offload **out, char *why, size_t why_len)
{
    snprintf(why, why_len, "this build has no programs for the kernel (meson -Dbpf=enabled)");
    return -EOPNOTSUPP;
}
