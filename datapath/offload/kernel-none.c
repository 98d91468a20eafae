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

void
offload_close(struct offload *o)
{
}

int
offload_port_add(struct offload *o, int ifindex, const struct offload_port_config *c,
                 const int *ring, unsigned n, char *why, size_t why_len)
{
    return -EOPNOTSUPP;
}

void
offload_port_rewire(struct offload *o, int ifindex, const struct offload_wire *wire)
{
}

int
offload_port_move(struct offload *o, int ifindex, const int *ring, unsigned n)
{
    return -EOPNOTSUPP;
}

void
offload_port_moved(struct offload *o, int ifindex)
{
}

void
offload_port_del(struct offload *o, int ifindex, bool later)
{
}

bool
offload_take_off(struct offload *o)
{
    return false;
}

bool
offload_port_has(const struct offload *o, int ifindex)
{
    return false;
}

void
offload_port_others(const struct offload *o, int ifindex, offload_name_fn *name, void *ctx)
{
}

void
offload_port_host(struct offload *o, int ifindex, uint32_t what)
{
}

uint64_t *
offload_port_done(struct offload *o, int ifindex)
{
    return NULL;
}
const uint64_t *
offload_port_passed(const struct offload *o, int ifindex)
{
    return NULL;
}

unsigned
offload_check(struct offload *o, uint64_t now, offload_front_fn *lost, void *ctx)
{
    return 0;
}

const char *
offload_port_waits(const struct offload *o, int ifindex)
{
    return NULL;
}

int
offload_cut_by(struct offload *o, int tx_ifindex, int rx_ifindex)
{
    return -EOPNOTSUPP;
}
