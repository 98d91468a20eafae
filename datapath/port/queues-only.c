/* SPDX-License-Identifier: Apache-2.0 */
/* A port whose packets are left to the kernel, which bridges or routes them: the switch has its queues only.  No worker
 * sees it, so it neither receives nor sends. */
#include "backend.h"

#include <errno.h>
#include <net/if.h>

static int
queues_only_open(struct port *p, char *why, size_t why_len)
{
    return if_nametoindex(p->config.name) ? 0
                                          : backend_error(why, why_len, errno, "looking for it");
}

static void
queues_only_close(struct port *p)
{
}

const struct port_backend port_backend_queues_only = {
    .name = "queues-only",
    .only_by_name = true,
    .open = queues_only_open,
    .close = queues_only_close,
};
