/* SPDX-License-Identifier: Apache-2.0 */
/* In place of libpcap, in a build without it: no port can be opened. */
#include "backend.h"

#include <errno.h>
#include <stdio.h>

static int
none_open(struct port *p, char *why, size_t why_len)
{
    if (why && why_len)
        snprintf(why, why_len, "this build has no libpcap; start the switch with --io=packet");
    return -ENOTSUP;
}

const struct port_backend port_backend_pcap = {
    .name = "pcap",
    .only_by_name = true,
    .open = none_open,
};

static int
no_files(struct port *p, char *why, size_t why_len)
{
    if (why && why_len)
        snprintf(why, why_len, "this build has no libpcap, so no ports out of files");
    return -ENOTSUP;
}

const struct port_backend port_backend_file = {
    .name = "file",
    .only_by_name = true,
    .open = no_files,
};
