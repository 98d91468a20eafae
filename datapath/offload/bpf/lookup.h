/* SPDX-License-Identifier: Apache-2.0 */
/* From a frame's key to an entry. */
#ifndef OFFLOAD_BPF_LOOKUP_H
#define OFFLOAD_BPF_LOOKUP_H

#include "frame.h"

/* ------------------------------------------------------------------ finding */

/* As key_hash_words of packet/key-hash.h. */
static __always_inline __u32
hash_under(const struct offload_control *c, const struct offload_mask *m, const union key *key)
{
    __u64 sum = c->hash_sum;
#pragma unroll
    for (int i = 0; i < OFFLOAD_WORDS; i++) {
        __u64 w = key->w[i] & m->bits[i];
        sum += (c->hash_word[i][0] + (__u32)w) * (c->hash_word[i][1] + (w >> 32));
    }
    __u32 h = sum >> 32;
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    return h ^ h >> 16;
}

static __always_inline int
is_entry_of(const struct offload_entry *e, const struct offload_mask *m, const union key *key)
{
    __u64 diff = 0;
#pragma unroll
    for (int i = 0; i < OFFLOAD_WORDS; i++)
        diff |= (key->w[i] & m->bits[i]) ^ e->key[i];
    return !diff && e->state == OFFLOAD_LIVE;
}

/* The number + 1 of the key's entry under the i-th mask, or 0.  Not static, as ofqos_next_layer. */
__noinline __u32
ofqos_find_under(const union key *key, __u32 i)
{
    const struct offload_control *c = the_control();
    if (!c || !key || i >= OFFLOAD_MASKS)
        return 0;
    /* The bound once more, where Linux 6.1's verifier sees it: it forgets the bound of a word on
     * the stack. */
    __u32 at = i;
    asm volatile("" : "+r"(at));
    const struct offload_mask *m = &c->mask[at & (OFFLOAD_MASKS - 1)];
    if (!m->used)
        return 0;
    __u32 hash = hash_under(c, m, key), place = hash & c->sets;
    const struct offload_set *s = bpf_map_lookup_elem(&sets, &place);
    if (!s)
        return 0;
    for (int k = 0; k < OFFLOAD_WAYS; k++) {
        __u64 way = *(const volatile __u64 *)&s->way[k];
        if (way >> 32 != hash || !(__u32)way)
            continue;
        __u32 id = (__u32)way - 1;
        struct offload_entry *e = bpf_map_lookup_elem(&entries, &id);
        if (e && e->mask == i && is_entry_of(e, m, key))
            return (__u32)way;
    }
    return 0;
}

/* The same under all masks, those first that most packets have. */
__noinline __u32
ofqos_find(const union key *key)
{
    const struct offload_control *c = the_control();
    if (!c || !key)
        return 0;
    __u64 order = *(const volatile __u64 *)&c->order;
    for (__u32 i = 0; i < OFFLOAD_MASKS && i < c->n_masks; i++, order >>= 4) {
        __u32 found = ofqos_find_under(key, order & (OFFLOAD_MASKS - 1));
        if (found)
            return found;
    }
    return 0;
}

static __always_inline struct offload_entry *
find(const union key *key, __u32 *id)
{
    __u32 found = ofqos_find(key);
    *id = found - 1;
    return found ? bpf_map_lookup_elem(&entries, id) : 0;
}

/* Whether the host may want the frame, as it would get it if user space only had its copy. */
static __always_inline int
is_for_host(struct __sk_buff *skb, const struct offload_port *p)
{
    __u32 host = *(const volatile __u32 *)&p->host;
    return skb->pkt_type != PACKET_OTHERHOST || host & OFFLOAD_HOST_ALL ||
           (host & OFFLOAD_HOST_TAGGED && skb->vlan_present);
}

/* Has a port gone up or down that the entry depends on?  The switch is about to withdraw it. */
static __always_inline int
is_stale(const struct offload_control *c, const struct offload_entry *e)
{
    return *(const volatile __u32 *)&c->stale & e->ports;
}

/* From now on the entry's packets must not overtake those that user space has. */
static __always_inline void
begin_hold(struct offload_entry *e, const struct offload_port *p)
{
    e->hold_last = *(const volatile __u64 *)&p->passed;
    e->hold_from = *(const volatile __u64 *)&p->held;
    e->hold = 1;
    e->hold_new = 0;
}

/* Does user space still have earlier packets of the entry, which this one must not overtake?  If
 * user space can't keep up, that would be so for ever.  So there is an end: the more packets of the port
 * were held, the more may be overtaken.  Of the port, as many entries that are held together are what keeps user
 * space behind. */
static __always_inline int
is_held(struct offload_entry *e, struct offload_port *p)
{
    if (e->hold_new)
        begin_hold(e, p);
    if (!e->hold)
        return 0;
    __s64 behind = e->hold_last - *(const volatile __u64 *)&p->done;
    __s64 held = *(const volatile __u64 *)&p->held - e->hold_from;
    if (behind * OFFLOAD_HOLD_EACH <= held || held >= OFFLOAD_HOLD) {
        e->hold = 0;
        return 0;
    }
    e->hold_last = *(const volatile __u64 *)&p->passed + 1;
    __sync_fetch_and_add(&p->held, 1);
    return 1;
}

/* Does user space join the entry's TCP segments?  A connection's end ends that: others need not wait then. */
static __always_inline int
is_joined(struct __sk_buff *skb, const struct frame *f, struct offload_entry *e,
          const struct offload_port *p)
{
    __u8 flags;
    if (!*(volatile __u32 *)&e->join || f->key.proto != PROTO_TCP)
        return 0;
    if (skb->gso_size) /* it must not overtake its connection's segments */
        return *(const volatile __u64 *)&p->passed != *(const volatile __u64 *)&p->done;
    if (skb->len >= OFFLOAD_SEGMENT)
        e->joined++;
    e->used = bpf_ktime_get_coarse_ns();
    if (!bpf_skb_load_bytes(skb, f->l4 + TCP_FLAGS_AT, &flags, 1) && flags & TCP_ENDS) {
        e->hold_new = 1;
        *(volatile __u32 *)&e->join = 0;
    }
    return 1;
}

/* The sum of the pseudo-header, which is in the checksum's place as long as that is to be made. */
static __always_inline __be16
pseudo_sum(const struct frame *f)
{
    __u64 sum = bpf_htons(f->l4_len) + bpf_htons(PROTO_UDP);
#pragma clang loop unroll(disable) /* as in ofqos_nd */
    for (int i = ADDRESSES_AT; i < OFFLOAD_WORDS; i++)
        sum += (f->key.w[i] >> 32) + (__u32)f->key.w[i];
    sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    return (sum & 0xffff) + (sum >> 16);
}

/* Who edits what a datagram's checksum covers must know whether that is a partial one.  The kernel does, but
 * for a tunnel's: a partial checksum inside of it, which the sender has left to be made, makes it take the outer one
 * for partial, too.  The bytes tell: hardly ever is a whole checksum the sum of its pseudo-header.  What may be such
 * a tunnel's datagram is for user space, where the header in front of the frame tells.  False: it is. */
static __noinline int
tell_sum(struct __sk_buff *skb, struct frame *f)
{
    __be16 sum;
    if (f->key.proto != PROTO_UDP || !f->l4 ||
        bpf_skb_load_bytes(skb, f->l4 + UDP_SUM_AT, &sum, sizeof sum) || !sum)
        return 1;
    if (sum == pseudo_sum(f))
        return skb->gso_size || !inside_of(skb, f->l4 + UDP_HEADER);
    f->where |= WHERE_WHOLE;
    return 1;
}

/* How long a super-packet's segments are at most, as far as one can know it. */
static __always_inline __u32
segment_of(struct __sk_buff *skb, const struct frame *f)
{
    __u32 n = skb->gso_segs, header = where_header(f->where);
    if (skb->gso_size != GSO_BY_FRAGS)
        return header - where_jumbo(f->where) + skb->gso_size;
    return n ? header + (skb->len - header + n - 1) / n : OFFLOAD_MAX_FRAME;
}

/* Does the program know how to put a label in front of the super-packet (edit.h, push_mpls_super)?  Not of one in a
 * tunnel, whose headers the kernel knows already, nor of BIG TCP's over IPv6, which loses a header where it is cut. */
static __always_inline int
takes_label(const struct frame *f)
{
    __u32 proto = f->key.proto;
    return !where_tags(f->where) && !where_jumbo(f->where) &&
           (proto == PROTO_TCP ||
            (proto == PROTO_UDP && where_header(f->where) == f->l4 + UDP_HEADER));
}

enum beyond { NOT_BEYOND, BEYOND, BEYOND_QUEUE };

/* Is it too long for its output, does its TTL run out, or can't the program edit it?  User space cuts
 * or edits it, or drops it and tells the controllers.  BEYOND_QUEUE: a super-packet is too long for the output's queue
 * only; the kernel can cut it.  Not where super is 0, as the program can't edit one, so the queue must not get it whole. */
static __always_inline enum beyond
is_beyond(struct __sk_buff *skb, struct frame *f, const struct offload_entry *e)
{
    __u32 tag = where_tags(f->where) ? VLAN_TAG : 0, len = skb->len + tag;
    if (f->ttl < e->min_ttl || (e->covered && !tell_sum(skb, f)))
        return BEYOND;
    if (!skb->gso_size)
        return len > e->longest;
    if (!e->super || !where_header(f->where) || segment_of(skb, f) + tag > e->longest ||
        (e->edits & OFFLOAD_EDITS_LABELS && !takes_label(f)))
        return BEYOND;
    return len > e->super ? BEYOND_QUEUE : NOT_BEYOND;
}

#endif
