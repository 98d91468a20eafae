/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the programs share with the switch (offload/layout.h).  The switch sets how many
 * values sets, entries, hits and cpus have. */
#ifndef OFFLOAD_BPF_MAPS_H
#define OFFLOAD_BPF_MAPS_H

#include <linux/bpf.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <offload/layout.h>

#define SHARED_ARRAY(type_, n)                                                                     \
    __uint(type, BPF_MAP_TYPE_ARRAY);                                                              \
    __uint(map_flags, BPF_F_MMAPABLE);                                                             \
    __type(key, __u32);                                                                            \
    __type(value, type_);                                                                          \
    __uint(max_entries, n)

struct {
    SHARED_ARRAY(struct offload_control, 1);
} control SEC(".maps");

struct {
    SHARED_ARRAY(struct offload_set, 1);
} sets SEC(".maps");

struct {
    SHARED_ARRAY(struct offload_entry, 1);
} entries SEC(".maps");

/* By processor, then by entry. */
struct {
    SHARED_ARRAY(struct offload_hits, 1);
} hits SEC(".maps");

struct {
    SHARED_ARRAY(struct offload_cpu, 1);
} cpus SEC(".maps");

struct {
    SHARED_ARRAY(struct offload_port, OFFLOAD_PORTS);
} ports SEC(".maps");

struct {
    SHARED_ARRAY(struct offload_meter, OFFLOAD_METERS);
} meters SEC(".maps");

#define COUNT(cpu, what) ((cpu)->what++)

static __always_inline struct offload_control *
the_control(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline struct offload_cpu *
this_cpu(void)
{
    __u32 id = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&cpus, &id);
}

/* From here to cpu_leave, the switch does not free what this processor has looked up
 * (offload_quiesce): `inside` is odd.  It is a full barrier, as atomic operations that return a
 * value are. */
static __always_inline void
cpu_enter(struct offload_cpu *cpu)
{
    if (__sync_fetch_and_add(&cpu->inside, 1) & 1)
        *(volatile __u64 *)&cpu->inside += 1;
}

static __always_inline void
cpu_leave(struct offload_cpu *cpu)
{
    if (*(volatile __u64 *)&cpu->inside & 1)
        *(volatile __u64 *)&cpu->inside += 1;
}

static __always_inline struct offload_port *
port_of(__u32 ifindex)
{
    __u32 place = ifindex % OFFLOAD_PORTS;
    struct offload_port *p = bpf_map_lookup_elem(&ports, &place);
    return p && p->ifindex == ifindex ? p : 0;
}

#endif
