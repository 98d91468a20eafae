/* SPDX-License-Identifier: Apache-2.0 */
/* The programs themselves are included; the helpers that they call do what Linux 6.1's do (net/core/filter.c,
 * net/core/skbuff.c). */
#include "programs.h"

#include "../../datapath/offload/bpf/switch.bpf.c"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REDIRECT 7 /* TC_ACT_REDIRECT */

static const struct offload_memory *memory;
static struct skb_out outs[SKB_OUTS];
static unsigned n_outs;
static uint32_t redirected; /* where the frame goes when the program has ended */

/* ------------------------------------------------------------------ maps, processor, clock */

void *
bpf_map_lookup_elem(void *map, const void *key)
{
    uint32_t i;
    memcpy(&i, key, sizeof i);
    const struct offload_memory *m = memory;
#define MAP(name, values, n)                                                                       \
    if (map == (void *)&(name))                                                                    \
        return i < (n) ? &(values)[i] : NULL;
    MAP(control, m->control, 1)
    MAP(sets, m->set, m->n_sets)
    MAP(entries, m->entry, m->n_entries)
    MAP(hits, m->hits, m->n_cpus * m->n_entries)
    MAP(cpus, m->cpu, m->n_cpus)
    MAP(ports, m->port, OFFLOAD_PORTS)
    MAP(meters, m->meter, OFFLOAD_METERS)
    MAP(rtt_control, m->probes.control, 1)
    MAP(rtt_slots, m->probes.slot, m->n_slots)
    MAP(rtt_ring, m->probes.ring, RTT_RING)
    abort();
}

__u32
bpf_get_smp_processor_id(void)
{
    return 0;
}

__u64
bpf_ktime_get_ns(void)
{
    static uint64_t now = 1000000000;
    return now += 1000;
}

__u64
bpf_ktime_get_coarse_ns(void)
{
    return 1000000000;
}

/* ------------------------------------------------------------------ bytes */

static bool
is_within(const struct __sk_buff *s, uint32_t offset, uint32_t len)
{
    return offset <= s->len && len <= s->len - offset;
}

static uint8_t *
bytes_of(struct __sk_buff *s)
{
    return ((struct skb *)s)->data;
}

long
bpf_skb_load_bytes(const void *skb, __u32 offset, void *to, __u32 len)
{
    const struct skb *s = skb;
    memset(to, 0, len);
    if (!is_within(&s->s, offset, len))
        return -EFAULT;
    memcpy(to, s->data + offset, len);
    return 0;
}

long
bpf_skb_store_bytes(struct __sk_buff *s, __u32 offset, const void *from, __u32 len, __u64 flags)
{
    if (!is_within(s, offset, len))
        return -EFAULT;
    memcpy(bytes_of(s) + offset, from, len);
    return 0;
}

long
bpf_skb_change_tail(struct __sk_buff *s, __u32 len, __u64 flags)
{
    if (s->gso_size || len > SKB_ROOM)
        return -ENOTSUP;
    if (len > s->len)
        memset(bytes_of(s) + s->len, 0, len - s->len);
    s->len = len;
    return 0;
}

/* Room in front, of zeros; which headers the kernel takes what follows for stays. */
long
bpf_skb_change_head(struct __sk_buff *s, __u32 len, __u64 flags)
{
    if (flags || len > SKB_ROOM - s->len)
        return -EINVAL;
    memmove(bytes_of(s) + len, bytes_of(s), s->len);
    memset(bytes_of(s), 0, len);
    s->len += len;
    return 0;
}

/* Takes bytes away behind the addresses and the type. */
long
bpf_skb_adjust_room(struct __sk_buff *s, __s32 len, __u32 mode, __u64 flags)
{
    bool v4 = s->protocol == bpf_htons(TYPE_IPV4);
    uint32_t n = (uint32_t)-len, least = ETH_HEADER + (v4 ? IPV4_HEADER : IPV6_HEADER);
    if (len > 0 || mode != BPF_ADJ_ROOM_MAC || flags != BPF_F_ADJ_ROOM_NO_CSUM_RESET)
        abort();
    if ((!v4 && s->protocol != bpf_htons(TYPE_IPV6)) || s->len < least + n)
        return -ENOTSUP;
    s->len -= n;
    memmove(bytes_of(s) + ETH_HEADER, bytes_of(s) + ETH_HEADER + n, s->len - ETH_HEADER);
    return 0;
}

/* ------------------------------------------------------------------ tags */

static bool
is_tag(__be16 type)
{
    return type == bpf_htons(TYPE_VLAN) || type == bpf_htons(TYPE_SVLAN);
}

/* skb_vlan_untag, when the frame comes in, and __skb_vlan_pop. */
static bool
take_tag(struct __sk_buff *s)
{
    uint8_t *tag = bytes_of(s) + TYPE_AT;
    __be16 tci, type, next;
    if (s->len < ETH_HEADER + VLAN_TAG)
        return false;
    memcpy(&type, tag, 2);
    memcpy(&tci, tag + 2, 2);
    memcpy(&next, tag + 4, 2);
    memmove(tag, tag + VLAN_TAG, s->len - TYPE_AT - VLAN_TAG);
    s->len -= VLAN_TAG;
    s->vlan_present = 1;
    s->vlan_proto = type;
    s->vlan_tci = bpf_ntohs(tci);
    s->protocol = next;
    return true;
}

static bool
put_tag(uint8_t *frame, uint32_t *n, __be16 type, uint16_t host_tci, uint32_t room)
{
    __be16 tci = bpf_htons(host_tci);
    if (*n + VLAN_TAG > room)
        return false;
    memmove(frame + TYPE_AT + VLAN_TAG, frame + TYPE_AT, *n - TYPE_AT);
    memcpy(frame + TYPE_AT, &type, 2);
    memcpy(frame + TYPE_AT + 2, &tci, 2);
    *n += VLAN_TAG;
    return true;
}

long
bpf_skb_vlan_push(struct __sk_buff *s, __be16 type, __u16 tci)
{
    if (!is_tag(type))
        type = bpf_htons(TYPE_VLAN);
    if (s->vlan_present) {
        if (!put_tag(bytes_of(s), &s->len, (__be16)s->vlan_proto, (uint16_t)s->vlan_tci, SKB_ROOM))
            return -ENOMEM;
        s->protocol = s->vlan_proto;
    }
    s->vlan_present = 1;
    s->vlan_proto = type;
    s->vlan_tci = tci;
    return 0;
}

long
bpf_skb_vlan_pop(struct __sk_buff *s)
{
    s->vlan_present = s->vlan_tci = s->vlan_proto = 0;
    return !is_tag((__be16)s->protocol) || take_tag(s) ? 0 : -ENOMEM;
}

/* ------------------------------------------------------------------ checksums */

static uint32_t
add(uint32_t a, uint32_t b)
{
    uint64_t sum = (uint64_t)a + b;
    return (uint32_t)(sum + (sum >> 32));
}

static uint16_t
fold(uint32_t sum)
{
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~(sum + (sum >> 16));
}

/* from: 0, and to: a difference, where the size is 0. */
static uint16_t
replaced(uint16_t sum, uint64_t from, uint64_t to)
{
    return fold(add(add((uint16_t)~sum, ~(uint32_t)from), (uint32_t)to));
}

static bool
load_sum(struct __sk_buff *s, uint32_t offset, uint16_t *sum)
{
    return offset <= 0xffff && offset % 2 == 0 && !bpf_skb_load_bytes(s, offset, sum, 2);
}

long
bpf_l3_csum_replace(struct __sk_buff *s, __u32 offset, __u64 from, __u64 to, __u64 size)
{
    uint16_t sum;
    if (!load_sum(s, offset, &sum))
        return -EFAULT;
    sum = replaced(sum, from, to);
    return bpf_skb_store_bytes(s, offset, &sum, 2, 0);
}

/* A partial checksum is the sum of the pseudo-header, not its complement. */
long
bpf_l4_csum_replace(struct __sk_buff *s, __u32 offset, __u64 from, __u64 to, __u64 flags)
{
    uint16_t sum;
    bool zero_is_none = flags & BPF_F_MARK_MANGLED_0, partial = ((struct skb *)s)->partial;
    uint32_t change =
        flags & BPF_F_HDR_FIELD_MASK ? add(~(uint32_t)from, (uint32_t)to) : (uint32_t)to;
    if (!load_sum(s, offset, &sum))
        return -EFAULT;
    if (zero_is_none && !sum)
        return 0;
    if (!partial)
        sum = fold(add((uint16_t)~sum, change));
    else if (flags & BPF_F_PSEUDO_HDR)
        sum = (uint16_t)~fold(add(sum, change));
    if (zero_is_none && !sum)
        sum = 0xffff;
    return bpf_skb_store_bytes(s, offset, &sum, 2, 0);
}

__s64
bpf_csum_diff(const __be32 *from, __u32 from_size, const __be32 *to, __u32 to_size, __u32 seed)
{
    uint32_t sum = seed;
    for (uint32_t i = 0; i < from_size / 4; i++)
        sum = add(sum, ~from[i]);
    for (uint32_t i = 0; i < to_size / 4; i++)
        sum = add(sum, to[i]);
    return sum;
}

/* Nobody has looked at the frame's checksums. */
long
bpf_csum_level(struct __sk_buff *s, __u64 level)
{
    return -EACCES;
}

__s64
bpf_csum_update(struct __sk_buff *s, __wsum csum)
{
    return -ENOTSUP;
}

/* ------------------------------------------------------------------ sending */

static long
send(struct __sk_buff *s, uint32_t ifindex)
{
    struct skb_out *o = &outs[n_outs];
    if (n_outs == SKB_OUTS)
        abort();
    n_outs++;
    o->ifindex = ifindex;
    o->priority = s->priority;
    o->n = s->len;
    memcpy(o->data, bytes_of(s), s->len);
    if (s->vlan_present &&
        !put_tag(o->data, &o->n, (__be16)s->vlan_proto, (uint16_t)s->vlan_tci, sizeof o->data))
        abort();
    return 0;
}

long
bpf_clone_redirect(struct __sk_buff *s, __u32 ifindex, __u64 flags)
{
    return send(s, ifindex);
}

long
bpf_redirect(__u32 ifindex, __u64 flags)
{
    redirected = ifindex;
    return REDIRECT;
}

/* ------------------------------------------------------------------ calls */

bool
skb_of(struct skb *s, const uint8_t *frame, uint32_t n)
{
    __be16 type;
    memset(&s->s, 0, sizeof s->s);
    if (n < ETH_HEADER || n > SKB_ROOM)
        return false;
    memcpy(s->data, frame, n);
    memcpy(&type, frame + TYPE_AT, 2);
    s->s.len = n;
    s->s.protocol = type;
    s->s.pkt_type = PACKET_OTHERHOST;
    return !is_tag(type) || (n >= ETH_HEADER + VLAN_TAG + 2 && take_tag(&s->s));
}

void
programs_use(const struct offload_memory *m)
{
    memory = m;
}

bool
programs_read(struct skb *s, struct skb_view *out)
{
    struct frame f = {};
    const struct offload_port *p = port_of(s->s.ifindex);
    if (!parse(&s->s, &f, p ? p->inside : 0))
        return false;
    struct wire w = wire_of(&s->s, where_of(&f));
    uint32_t tag = s->s.vlan_present ? VLAN_TAG : 0;
    memcpy(out->key, f.key.w, sizeof out->key);
    out->l3 = f.l3 + tag;
    out->l4 = f.l4 ? f.l4 + tag : 0;
    out->ttl = f.ttl;
    out->inside = f.key.proto == PROTO_UDP && f.l4 && inside_of(&s->s, f.l4 + UDP_HEADER);
    out->transport = s->s.gso_size ? (uint8_t)(layers_of(&s->s, TYPE_ETH, 0) >> 32) : 0;
    out->cuts = where_header(f.where) != 0;
    out->packets = w.packets;
    out->bytes = w.bytes;
    return true;
}

bool
programs_filter(struct skb *s)
{
    return !ofqos_filter(&s->s);
}

unsigned
programs_ingress(struct skb *s, const struct skb_out **out)
{
    n_outs = 0;
    if (ofqos_ingress(&s->s) == REDIRECT)
        send(&s->s, redirected);
    *out = outs;
    return n_outs;
}
