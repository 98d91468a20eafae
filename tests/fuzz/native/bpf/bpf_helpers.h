/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of libbpf's header: the kernel's helpers are functions of this process (programs.c). */
#ifndef FUZZ_BPF_HELPERS_H
#define FUZZ_BPF_HELPERS_H

#include <linux/bpf.h>
#include <linux/types.h>

#define SEC(name)
#define __uint(name, val) int(*name)[val]
#define __type(name, val) __typeof__(val) *name
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif

void *bpf_map_lookup_elem(void *map, const void *key);
__u32 bpf_get_smp_processor_id(void);
__u64 bpf_ktime_get_ns(void);
__u64 bpf_ktime_get_coarse_ns(void);
long bpf_skb_load_bytes(const void *skb, __u32 offset, void *to, __u32 len);
long bpf_skb_store_bytes(struct __sk_buff *skb, __u32 offset, const void *from, __u32 len,
                         __u64 flags);
long bpf_skb_change_tail(struct __sk_buff *skb, __u32 len, __u64 flags);
long bpf_skb_change_head(struct __sk_buff *skb, __u32 len, __u64 flags);
long bpf_skb_adjust_room(struct __sk_buff *skb, __s32 len, __u32 mode, __u64 flags);
long bpf_skb_vlan_push(struct __sk_buff *skb, __be16 type, __u16 tci);
long bpf_skb_vlan_pop(struct __sk_buff *skb);
long bpf_l3_csum_replace(struct __sk_buff *skb, __u32 offset, __u64 from, __u64 to, __u64 size);
long bpf_l4_csum_replace(struct __sk_buff *skb, __u32 offset, __u64 from, __u64 to, __u64 flags);
__s64 bpf_csum_diff(const __be32 *from, __u32 from_size, const __be32 *to, __u32 to_size,
                    __u32 seed);
long bpf_csum_level(struct __sk_buff *skb, __u64 level);
__s64 bpf_csum_update(struct __sk_buff *skb, __wsum csum);
long bpf_clone_redirect(struct __sk_buff *skb, __u32 ifindex, __u64 flags);
long bpf_redirect(__u32 ifindex, __u64 flags);

#endif
