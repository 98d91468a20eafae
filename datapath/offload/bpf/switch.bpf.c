/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's two programs at each port (offload/offload.h).
 *
 * A frame's way through the kernel: packet sockets get it first, so the filter of the port's
 * ring looks it up.  If it finds an entry, the ring does not get the frame.  The verdict is in
 * skb->cb, and again in this processor's memory, because another socket's filter may have zeroed
 * cb.  tc comes next and carries the verdict out. */
#include "edit.h"
#include "rtt.h"

#define WHOLE 0x7fffffff /* all of the frame goes to user space */

enum { CB_MAGIC, CB_IFINDEX, CB_ENTRY, CB_WHERE };

static __always_inline void
say(struct __sk_buff *skb, struct offload_cpu *cpu, __u32 magic, __u32 id, __u32 where)
{
    skb->cb[CB_MAGIC] = magic;
    skb->cb[CB_IFINDEX] = skb->ifindex;
    skb->cb[CB_ENTRY] = id;
    skb->cb[CB_WHERE] = where;
    cpu->magic = magic;
    cpu->ifindex = skb->ifindex;
    cpu->len = skb->len;
    cpu->hash = skb->hash;
    cpu->entry = id;
    cpu->where = where;
    cpu->owed = skb->ifindex;
}

/* The last verdict on this processor was not used, so its frame is lost: tc has no program of
 * ours there any more.  User space gets the port's frames until that is mended (offload_check). */
static __always_inline void
give_up(struct offload_cpu *cpu)
{
    struct offload_port *p = port_of(cpu->owed);
    if (p) {
        p->ready = 0;
        __sync_fetch_and_add(&p->unclaimed, 1);
    }
    cpu->owed = 0;
    cpu_leave(cpu);
    COUNT(cpu, unclaimed);
}

/* Whether the kernel is to handle frames of this port now. */
static __always_inline int
is_ours(const struct offload_control *c, const struct offload_port *p)
{
    return c->on && p && p->ready;
}

/* User space gets this one of the entry's packets, and later ones must not overtake it. */
static __always_inline void
leave(struct offload_entry *e, const struct offload_port *p)
{
    begin_hold(e, p);
    e->hold_last++;
}

/* An edit would be in the host's frame, too: user space has a copy of its own. */
static __always_inline int
spoils_hosts(const struct offload_entry *e, __u32 where)
{
    return where & WHERE_HOST && e->edits;
}

/* As packets on the wire. */
struct wire {
    __u64 packets, bytes;
};

static __always_inline struct wire
wire_of(struct __sk_buff *skb, __u32 where)
{
    __u32 size = skb->gso_size, header = where_header(where), jumbo = where_jumbo(where),
          tag = where_tags(where) ? VLAN_TAG : 0;
    struct wire w = {1, skb->len - jumbo + tag};
    if (size && header && skb->len > header) {
        w.packets = size == GSO_BY_FRAGS ? skb->gso_segs : (skb->len - header + size - 1) / size;
        w.bytes += (w.packets - 1) * (header - jumbo + tag);
    }
    return w;
}

static __always_inline struct offload_hits *
hits_of(const struct offload_control *c, __u32 id)
{
    __u32 at = bpf_get_smp_processor_id() * c->entries + id;
    return bpf_map_lookup_elem(&hits, &at);
}

static __always_inline void
come_back(struct offload_around *a, struct offload_cpu *cpu, __u32 number)
{
    COUNT(cpu, again);
    if (a->last == number && a->away)
        a->away--;
    if (number - cpu->back - 1 < cpu->sent - cpu->back) /* a host may have made one up */
        cpu->back = number;
}

/* Would one more entry's packets be too many for the kernel's backlog? */
static __always_inline int
is_crowded(const struct offload_cpu *cpu)
{
    return cpu->sent - cpu->back > OFFLOAD_AWAY &&
           bpf_ktime_get_coarse_ns() - cpu->sent_at < OFFLOAD_AWAY_NS;
}

/* -> the frame's number */
static __always_inline __u32
send_around(struct offload_around *a, struct offload_cpu *cpu, __u32 n)
{
    cpu->around += n;
    cpu->sent += n;
    if (cpu->sent < n) /* 0 is no number */
        cpu->sent = n;
    cpu->sent_at = bpf_ktime_get_coarse_ns();
    a->last = cpu->sent;
    a->away = n;
    return a->last;
}

#define AS_IT_IS    0
#define WHOLE_SUPER (-1)

/* A super-packet that would take its queue too long the kernel cuts, and what follows it on this processor goes the same way
 * as long as not all of it is back: -> its number.  Not while user space has packets of the entry: then it cuts.  Where the
 * processor can't keep up, cutting would make that worse: then the queue gets it whole.  Not inline, as the filter's stack
 * has no room. */
static __noinline __s64
way_of(struct __sk_buff *skb, const struct offload_control *c, struct frame *f,
       struct offload_entry *e, struct offload_cpu *cpu)
{
    int begins = cpu->beyond == BEYOND_QUEUE && !e->hold && !e->hold_new && !e->join;
    struct offload_hits *h = begins || e->around ? hits_of(c, cpu->entry) : 0;
    if (!h)
        return AS_IT_IS;
    if (skb->tc_index == OFFLOAD_AGAIN) {
        come_back(&h->around, cpu, skb->mark);
        return AS_IT_IS;
    }
    if (!begins && !h->around.away)
        return AS_IT_IS;
    if (!c->cut_by) {
        COUNT(cpu, unpaired);
        return AS_IT_IS;
    }
    if (!h->around.away && skb->len <= OFFLOAD_MAX_RING && is_crowded(cpu)) {
        COUNT(cpu, whole);
        return WHOLE_SUPER;
    }
    e->around = 1;
    return send_around(&h->around, cpu, wire_of(skb, f->where).packets);
}

/* The number of the entry for the frame, or OFFLOAD_CUT; negative: it goes to user space. */
static __always_inline __s64
look_up(struct __sk_buff *skb, const struct offload_control *c, struct offload_port *p,
        struct offload_cpu *cpu, __u32 *where)
{
    struct frame f = {};
    __u32 id = 0;
    if (!*(volatile __u32 *)&p->entries) {
        COUNT(cpu, misses);
        return -1;
    }
    if (!parse(skb, &f, p->inside)) {
        COUNT(cpu, other);
        return -1;
    }
    struct offload_entry *e = find(&f.key, &id);
    if (!e || is_stale(c, e)) {
        COUNT(cpu, misses);
        return -1;
    }
    cpu->entry = id;
    cpu->beyond = is_beyond(skb, &f, e);
    __s64 way = e->around || cpu->beyond == BEYOND_QUEUE ? way_of(skb, c, &f, e, cpu) : AS_IT_IS;
    if (way > 0) {
        *where = way;
        return OFFLOAD_CUT;
    }
    if (cpu->beyond && way != WHOLE_SUPER) {
        COUNT(cpu, too_long);
        leave(e, p);
        return -1;
    }
    *where = where_of(&f) | (is_for_host(skb, p) ? WHERE_HOST : 0);
    if (*where & WHERE_HOST)
        COUNT(cpu, host);
    if (spoils_hosts(e, *where)) {
        leave(e, p);
        return -1;
    }
    if (is_joined(skb, &f, e, p) || is_held(e, p)) {
        COUNT(cpu, held);
        return -1;
    }
    return id;
}

/* Can't a ring have the super-packet?  SCTP's no header in front of a frame describes, UDP's only those of
 * newer kernels, and none one above 64 KB. */
static __always_inline int
is_to_be_cut(struct __sk_buff *skb, const struct offload_control *c, const struct offload_port *p)
{
    if (!skb->gso_size || !p || !p->ready)
        return 0;
    return skb->len > OFFLOAD_MAX_RING || skb->gso_size == GSO_BY_FRAGS ||
           (!c->uso && layers_of(skb, TYPE_ETH, 0) >> 32 == PROTO(PROTO_UDP));
}

/* Has the port a wire, and does nobody serve it (offload_serve)?  To be asked for each frame: the coarse clock is
 * some ms late, and costs a load. */
static __always_inline int
is_unserved(const struct offload_control *c, const struct offload_port *p)
{
    return p && *(const volatile __u32 *)&p->wire.to &&
           bpf_ktime_get_coarse_ns() > *(const volatile __u64 *)&c->served;
}

/* Two rings have the filter while a larger one takes the other's place.  Who comes first takes the frame; then
 * comes the program at tc. */
static __always_inline int
has_seen(struct __sk_buff *skb, const struct offload_port *p, const struct offload_cpu *cpu)
{
    return cpu->ran == skb->ifindex && p && p->moving;
}

SEC("socket")
int
ofqos_filter(struct __sk_buff *skb)
{
    struct offload_control *c = the_control();
    struct offload_cpu *cpu = this_cpu();
    if (skb->pkt_type == PACKET_OUTGOING)
        return 0;
    if (!c || !cpu)
        return WHOLE;
    struct offload_port *p = port_of(skb->ifindex);
    if (has_seen(skb, p, cpu))
        return 0;
    if (cpu->owed)
        give_up(cpu);
    cpu->ran = 0;
    skb->cb[CB_MAGIC] = 0;
    cpu->magic = 0;
    if (is_unserved(c, p))
        return 0;
    cpu->ran = skb->ifindex;
    __u32 where = 0;
    __s64 id = -1;
    if (is_ours(c, p) && p) {
        cpu_enter(cpu);
        id = look_up(skb, c, p, cpu, &where);
        if (id < 0 || id == OFFLOAD_CUT)
            cpu_leave(cpu);
    }
    if (id < 0) {
        if (!is_to_be_cut(skb, c, p))
            return WHOLE;
        if (!c->cut_by) {
            COUNT(cpu, uncut);
            return WHOLE;
        }
        id = OFFLOAD_CUT;
        where = 0;
    }
    say(skb, cpu, c->magic, id, where);
    return 0;
}

/* ------------------------------------------------------------------ carrying it out */

/* As take() of group/meters.c, without what several workers may hold. */
static __always_inline int
passes_band(struct offload_meter *m, __u32 i, const struct wire *w, __u64 now)
{
    __u64 rate = m->band[i].rate, room = m->band[i].room;
    if (!rate)
        return 1;
    __u64 cost = m->packets ? w->packets * 16000000000ull / rate : w->bytes * 8 * 16000000 / rate;
    for (int tries = 0; tries < 8; tries++) {
        __u64 full = *(volatile __u64 *)&m->band[i].full_at, from = full > now ? full : now;
        if (from > now + room)
            return 0;
        if (__sync_val_compare_and_swap(&m->band[i].full_at, full, from + cost) == full)
            break;
    }
    return 1;
}

static __always_inline int
passes_meter(__u32 place, const struct wire *w)
{
    struct offload_meter *m = bpf_map_lookup_elem(&meters, &place);
    int passes = 1;
    if (!m)
        return 1;
    __u64 now = bpf_ktime_get_ns() * 16;
    for (__u32 i = 0; i < OFFLOAD_BANDS; i++)
        if (i < m->n_bands && !passes_band(m, i, w, now))
            passes = 0;
    return passes;
}

static __always_inline int
is_segment(struct __sk_buff *skb, __u32 where)
{
    return where_proto(where) == PROTO_TCP && !where_fragment(where) && !skb->gso_size &&
           skb->len >= OFFLOAD_SEGMENT;
}

static __always_inline void
count_hit(struct offload_control *c, struct offload_entry *e, __u32 id, const struct wire *w,
          int dropped, int segment, __u64 now)
{
    struct offload_hits *h = hits_of(c, id);
    if (e->used != now)
        e->used = now;
    if (!h)
        return;
    h->packets += w->packets;
    h->bytes += w->bytes;
    h->frames++;
    h->segments += segment;
    if (dropped) {
        h->dropped += w->packets;
        h->dropped_bytes += w->bytes;
    }
}

/* Edits, and outputs but the last op.  Not static, as ofqos_next_layer: of an entry's ops it is verified once. */
__noinline int
ofqos_run_op(struct __sk_buff *skb, struct offload_at *at, const struct offload_op *op)
{
    if (!at || !op)
        return 0;
    __u32 arg = op->arg, v6 = where_is_v6(at->where);
    __u64 value = op->value;
    int err;
    switch (op->kind) {
    case OFFLOAD_OUTPUT: return output_copy(skb, arg, value);
    case OFFLOAD_QUEUE_IN: return queue_copy(skb, arg, value);
    case OFFLOAD_SET_ETH_DST: return set_eth(skb, 0, value);
    case OFFLOAD_SET_ETH_SRC: return set_eth(skb, 6, value);
    case OFFLOAD_PUSH_VLAN:
        err = push_vlan(skb, arg);
        at->tags = (at->tags + 1) & 15;
        return err;
    case OFFLOAD_POP_VLAN:
        err = bpf_skb_vlan_pop(skb);
        at->tags = at->tags ? at->tags - 1 : 0;
        return err;
    case OFFLOAD_SET_VLAN: return set_vlan(skb, arg, value);
    case OFFLOAD_SET_TOS: return set_tos(skb, l3_of(at), v6, (arg & 0xff) << 8 | (value & 0xff));
    case OFFLOAD_SET_IPV4_SRC: return set_ipv4(skb, at, 0, arg);
    case OFFLOAD_SET_IPV4_DST: return set_ipv4(skb, at, 4, arg);
    case OFFLOAD_SET_IPV6: return set_ipv6(skb, at, arg, value);
    case OFFLOAD_SET_TTL: return set_ttl(skb, l3_of(at), v6, arg & 0xff);
    case OFFLOAD_DEC_TTL: return set_ttl(skb, l3_of(at), v6, 256);
    case OFFLOAD_SET_TP_SRC: return set_tp(skb, at, 0, arg);
    case OFFLOAD_SET_TP_DST: return set_tp(skb, at, 2, arg);
    case OFFLOAD_SET_HEAD: return set_head(skb, at, value >> 32, value);
    case OFFLOAD_PUSH_MPLS: return push_mpls(skb, at, arg, value);
    case OFFLOAD_POP_MPLS: return pop_mpls(skb, at, arg);
    case OFFLOAD_PUSH_PBB: return push_pbb(skb, at, arg, value);
    case OFFLOAD_POP_PBB: return pop_pbb(skb);
    case OFFLOAD_SET_MPLS_TTL: return set_head(skb, at, bpf_htonl(0xff), bpf_htonl(arg & 0xff));
    case OFFLOAD_DEC_MPLS_TTL: return dec_mpls_ttl(skb, at);
    case OFFLOAD_SET_ARP:
        return set_arp(skb, l3_of(at) + (arg >> 16 & 0xff), arg >> 8 & 0xff, value);
    default: return 0;
    }
}

static __always_inline int
is_output(const struct offload_op *op)
{
    return op->kind == OFFLOAD_OUTPUT || op->kind == OFFLOAD_QUEUE_IN;
}

/* What becomes of the frame itself: nothing, unless the host may want it. */
static __always_inline int
end_of(__u32 where)
{
    return where & WHERE_HOST ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

static __always_inline int
run_ops(struct __sk_buff *skb, struct offload_cpu *cpu, const struct offload_entry *e, __u32 where)
{
    cpu->at.tags = where_tags(where);
    cpu->at.where = where;
    cpu->at.summed = BPF_F_RECOMPUTE_CSUM;
    for (__u32 i = e->meter ? 1 : 0; i < OFFLOAD_OPS; i++) {
        const struct offload_op *op = &e->op[i];
        if (i >= e->n_ops)
            break;
        if (i + 1 == e->n_ops && is_output(op) && !(where & WHERE_HOST) &&
            (op->kind == OFFLOAD_QUEUE_IN || !pad(skb))) {
            skb->priority = op->value;
            return bpf_redirect(op->arg, 0);
        }
        if (ofqos_run_op(skb, &cpu->at, op)) {
            COUNT(cpu, failed);
            if (!is_output(op)) /* other ports may take it */
                return TC_ACT_SHOT;
        }
    }
    return end_of(where);
}

static __always_inline int
carry_out(struct __sk_buff *skb, struct offload_control *c, struct offload_cpu *cpu, __u32 id,
          __u32 where)
{
    struct offload_entry *e = bpf_map_lookup_elem(&entries, &id);
    if (!e) {
        COUNT(cpu, failed);
        return TC_ACT_SHOT;
    }
    struct wire w = wire_of(skb, where);
    int drop = e->meter && e->op[0].kind == OFFLOAD_METER && !passes_meter(e->op[0].arg, &w);
    __u64 now = bpf_ktime_get_coarse_ns();
    count_hit(c, e, id, &w, drop, !cpu->again_now && is_segment(skb, where), now);
    COUNT(cpu, hits);
    if (drop)
        return end_of(where);
    if (is_measured(e, where))
        measure(skb, e, where, now);
    return run_ops(skb, cpu, e, where);
}

/* The verdict's second place. */
static __always_inline int
is_for(const struct offload_cpu *cpu, struct __sk_buff *skb, __u32 magic)
{
    return cpu->magic == magic && cpu->ifindex == skb->ifindex && cpu->len == skb->len &&
           cpu->hash == skb->hash;
}

/* Nobody reads the ring any more: did the switch say that its entries go on, for a while (linger_ns) or with
 * the port's wire? */
static __always_inline int
goes_on(const struct offload_control *c, const struct offload_port *p)
{
    if (p->wire.to)
        return !p->wire.alone;
    return c->linger && bpf_ktime_get_ns() < c->linger;
}

static __noinline int
find_orphan(struct __sk_buff *skb, const struct offload_control *c, struct offload_cpu *cpu)
{
    struct offload_port *p = port_of(skb->ifindex);
    struct frame f = {};
    __u32 id = 0;
    if (!is_ours(c, p) || !p || !goes_on(c, p) || !parse(skb, &f, p->inside))
        return 0;
    struct offload_entry *e = find(&f.key, &id);
    cpu->entry = id;
    cpu->where = where_of(&f) | (is_for_host(skb, p) ? WHERE_HOST : 0);
    return e && !is_stale(c, e) && !is_beyond(skb, &f, e) && !spoils_hosts(e, cpu->where);
}

/* The frame is with user space, if the filter ran. */
static __always_inline void
pass(struct __sk_buff *skb, struct offload_cpu *cpu, int ran, int owed)
{
    struct offload_port *p = port_of(skb->ifindex);
    if (p && ran)
        __sync_fetch_and_add(&p->passed, 1);
    if (owed) { /* it was not: the verdict is lost in both places */
        COUNT(cpu, no_verdict);
        cpu_leave(cpu);
    }
}

/* The frame's way from here. */
enum { USER_SPACE, KERNEL, NOBODY };

/* Puts the verdict into the processor's memory even if cb had it: to the
 * verifier, what is read from there is any number, so it looks at what follows only once. */
static __always_inline int
take_verdict(struct __sk_buff *skb, struct offload_control *c, struct offload_cpu *cpu)
{
    int owed = cpu->owed == skb->ifindex, ran = cpu->ran == skb->ifindex;
    if (owed)
        cpu->owed = 0;
    cpu->ran = 0;
    if (skb->cb[CB_MAGIC] == c->magic && skb->cb[CB_IFINDEX] == skb->ifindex) {
        cpu->entry = skb->cb[CB_ENTRY];
        cpu->where = skb->cb[CB_WHERE];
        return KERNEL;
    }
    if (is_for(cpu, skb, c->magic) || (!ran && find_orphan(skb, c, cpu)))
        return KERNEL;
    pass(skb, cpu, ran, owed);
    return ran ? USER_SPACE : NOBODY;
}

/* As if both ports were one cable.  The host gets what is for it, as always. */
static __noinline int
wire(struct __sk_buff *skb, struct offload_cpu *cpu)
{
    struct offload_port *p = port_of(skb->ifindex);
    if (!p || !p->wire.to)
        return TC_ACT_UNSPEC;
    COUNT(cpu, wired);
    if (is_for_host(skb, p)) {
        queue_copy(skb, p->wire.to, p->wire.priority);
        return TC_ACT_UNSPEC;
    }
    skb->priority = p->wire.priority;
    return bpf_redirect(p->wire.to, 0);
}

/* The kernel cuts the super-packet where it sends it by that interface.  Behind it, ofqos_again brings the segments
 * back to the port: there they are frames as others.  number: 0, or send_around's. */
static __always_inline int
cut(struct __sk_buff *skb, const struct offload_control *c, struct offload_cpu *cpu, __u32 number)
{
    __u32 place = skb->ifindex % OFFLOAD_PORTS + 1;
    if (skb->gso_size)
        COUNT(cpu, cut);
    if (number)
        skb->mark = number;
    skb->tc_index = number ? place | OFFLOAD_NUMBERED : place;
    return bpf_redirect(c->cut_by, 0);
}

SEC("tc")
int
ofqos_again(struct __sk_buff *skb)
{
    __u32 place = (skb->tc_index & ~OFFLOAD_NUMBERED) - 1;
    struct offload_port *p = bpf_map_lookup_elem(&ports, &place);
    if (!p || !p->ready || skb->gso_size)
        return TC_ACT_SHOT;
    skb->tc_index = skb->tc_index & OFFLOAD_NUMBERED ? OFFLOAD_AGAIN : 0;
    return bpf_redirect(p->ifindex, BPF_F_INGRESS);
}

SEC("tc")
int
ofqos_ingress(struct __sk_buff *skb)
{
    struct offload_control *c = the_control();
    struct offload_cpu *cpu = this_cpu();
    if (!c || !cpu)
        return TC_ACT_UNSPEC;
    cpu->again_now = skb->tc_index == OFFLOAD_AGAIN;
    if (cpu->again_now)
        skb->tc_index = skb->mark = 0;
    int way = take_verdict(skb, c, cpu);
    if (way != KERNEL)
        return way == NOBODY ? wire(skb, cpu) : TC_ACT_UNSPEC;
    skb->cb[CB_MAGIC] = 0;
    cpu->magic = 0;
    if (*(volatile __u32 *)&cpu->entry == OFFLOAD_CUT)
        return cut(skb, c, cpu, *(volatile __u32 *)&cpu->where);
    int act =
        carry_out(skb, c, cpu, *(volatile __u32 *)&cpu->entry, *(volatile __u32 *)&cpu->where);
    cpu_leave(cpu);
    return act;
}

/* The programs call no helper that requires the GPL. */
const char ofqos_license[] SEC("license") = "Apache-2.0";
