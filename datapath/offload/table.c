/* SPDX-License-Identifier: Apache-2.0 */
#include <offload/offload.h>

#include <errno.h>

void
offload_close(struct offload *o)
{
}
int
offload_port_add(struct offload *o, int ifindex, const int *ring, unsigned n, char *why,
                 size_t why_len)
{
    return -EOPNOTSUPP;
}
void
offload_port_del(struct offload *o, int ifindex)
{
}
bool
offload_port_has(const struct offload *o, int ifindex)
{
    return false;
}
void
offload_port_host(struct offload *o, int ifindex, bool has_addresses)
{
}
uint64_t *
offload_port_done(struct offload *o, int ifindex)
{
    return NULL;
}
unsigned
offload_check(struct offload *o)
{
    return 0;
}
int
offload_insert(struct offload *o, const struct offload_rule *r, uint32_t *id)
{
    return -ENOSPC;
}
void
offload_withdraw(struct offload *o, uint32_t id)
{
}
void
offload_quiesce(struct offload *o)
{
}
void
offload_release(struct offload *o, uint32_t id)
{
}
struct offload_hits
offload_read(const struct offload *o, uint32_t id)
{
    return (struct offload_hits){0};
}
uint64_t
offload_used(const struct offload *o, uint32_t id)
{
    return 0;
}
void
offload_turn(struct offload *o, bool on)
{
}
void
offload_alive(struct offload *o, uint64_t now)
{
}
int
offload_meter_new(struct offload *o)
{
    return -1;
}
struct offload_meter *
offload_meter(struct offload *o, int place)
{
    return NULL;
}
void
offload_meter_free(struct offload *o, int place)
{
}
struct offload_counts
offload_counts(const struct offload *o)
{
    return (struct offload_counts){0};
}
