/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's programs and user space read the same frame, and do the same to it: where the programs take a
 * frame, its key, headers, TTL and segments are what packet_parse and packet_wire say; an entry made of its plan
 * makes of it, and of every other frame that finds it, what the actions make of it in user space.
 *
 * Input: a byte of flags (FLAG_), how many actions and how many flips there are, the size of segments (16 bits);
 * 4 bytes an action, 2 bytes a flip (where, which bits), then the frame. */
#include "field.h"
#include "programs.h"

#include "../../datapath/megaflow/plan-inside.h"

#include <flow/actions.h>
#include <packet/headers.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD        5
#define ACTIONS_MAX 12
#define FLIPS_MAX   8
#define ENTRIES     16
#define SLOTS       16
#define IFINDEX     7
#define OUT         9 /* ifindex of the first output */

enum {
    FLAG_SUPER = 3, /* a super-packet of the kind kinds[] */
    FLAG_PARTIAL = 4,
    FLAG_OTHER_FILTER = 8, /* another socket's filter has zeroed skb->cb */
    FLAG_ORPHAN = 16,      /* nobody hears the ring, and the entries linger */
    FLAG_INNER = 32,       /* the partial checksum is a tunnel's inner one */
    FLAG_INSIDE = 192,     /* what the port looks into, PACKET_INSIDE_ in its upper bits */
};
static const uint8_t kinds[] = {VIRTIO_NET_HDR_GSO_NONE, VIRTIO_NET_HDR_GSO_TCPV4,
                                VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP_L4};

static struct packet_pool *pool;
static struct offload_memory memory;
static struct offload *table;
static struct probes
    ours; /* of round trips, as user space reads the packets that the programs send */

static void
broken(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

/* ------------------------------------------------------------------ a frame, on both sides */

struct both {
    struct packet p;
    struct skb s;
    struct skb_view view;
};

static bool
is_whole_tcp_or_udp(const struct packet *p)
{
    return p->l4 && !p->fragment && (p->key.ip_proto == PROTO_TCP || p->key.ip_proto == PROTO_UDP);
}

/* A partial checksum is the sum of the pseudo-header, which is never 0. */
static void
put_pseudo_sum(struct both *b, uint32_t offset)
{
    struct packet *p = &b->p;
    struct ip_view v;
    bool v6 = of_get16(p->key.eth_type) == TYPE_IPV6;
    uint32_t at = p->l4 + offset;
    if (!ip_view(p->data, p->len, p->l3, v6, false, &v))
        abort();
    of_set16(p->data + at, ip_pseudo_sum(p->data + p->l3, v6, v.proto, v.end - p->l4));
    memcpy(b->s.data + at - (b->s.s.vlan_present ? VLAN_TAG : 0), p->data + at, 2);
}

/* Somewhere in a datagram with a checksum that is whole, or of a super-packet a partial one, too, as senders and the
 * kernel's receive offload leave it: what follows is as good as an inner header's. */
static void
set_inner(struct both *b)
{
    struct packet *p = &b->p;
    struct skb_view v;
    if (!p->l4 || !programs_read(&b->s, &v) || !v.inside || p->len < p->l4 + UDP_HEADER + 20)
        return;
    p->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
    p->vnet.csum_start = (uint16_t)(p->l4 + UDP_HEADER);
    p->vnet.csum_offset = TCP_CSUM_AT;
    b->s.partial = true;
    if (b->s.s.gso_size && of_get16(p->data + p->l4 + UDP_CSUM_AT))
        put_pseudo_sum(b, UDP_CSUM_AT);
}

/* The checksum's place is right: who sends other ones to a port is the kernel itself. */
static void
set_vnet(struct both *b, uint8_t flags, uint16_t mss)
{
    struct packet *p = &b->p;
    if (flags & FLAG_SUPER && mss) {
        p->vnet.gso_type = kinds[flags & FLAG_SUPER];
        p->vnet.gso_size = mss;
        b->s.s.gso_size = mss;
    }
    if (flags & FLAG_INNER) {
        set_inner(b);
    } else if (flags & FLAG_PARTIAL && is_whole_tcp_or_udp(p)) {
        p->vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
        p->vnet.csum_start = (uint16_t)p->l4;
        p->vnet.csum_offset = p->key.ip_proto == PROTO_TCP ? TCP_CSUM_AT : UDP_CSUM_AT;
        b->s.partial = true;
        put_pseudo_sum(b, p->vnet.csum_offset);
    }
}

/* False: the kernel would not hand it on. */
static bool
both_of(struct both *b, const uint8_t *frame, uint32_t n, uint8_t flags, uint16_t mss)
{
    memset(b, 0, offsetof(struct both, s));
    b->s.partial = false;
    if (!skb_of(&b->s, frame, n))
        return false;
    uint8_t *own = packet_pool_alloc(pool, n);
    if (!own)
        return false;
    memcpy(own, frame, n);
    b->s.s.ifindex = IFINDEX;
    b->p = (struct packet){
        .data = own, .len = n, .wire_len = n, .pool = pool, .inside = flags / (FLAG_INSIDE / 3)};
    memory.port[IFINDEX].inside = b->p.inside;
    packet_parse(&b->p, IFINDEX);
    set_vnet(b, flags, mss);
    packet_parse(&b->p, IFINDEX);
    b->s.s.hash = packet_flow_hash(&b->p);
    return true;
}

static void
compare_keys(const struct both *b)
{
    uint64_t words[OFFLOAD_WORDS];
    offload_key_words(&b->p.key, words);
    for (int i = 1; i < OFFLOAD_WORDS; i++)
        if (b->view.key[i] != words[i])
            broken("the kernel's key is another one");
}

/* Whether lengths say that the frame ends with its IP packet: what is behind it is not cut. */
static bool
ends_with_ip(const struct packet *p)
{
    struct ip_view v;
    uint16_t type = of_get16(p->key.eth_type);
    return (type == TYPE_IPV4 || type == TYPE_IPV6) &&
           ip_view(p->data, p->len, p->l3, type == TYPE_IPV6, false, &v) && v.end == p->len;
}

/* The kernel does not tell the programs of what kind a super-packet is: where lengths say that there is a packet in a
 * datagram, they take it for a tunnel's.  Whether the frame is what they take it for. */
static bool
is_as_it_seems(const struct both *b)
{
    const struct packet *p = &b->p;
    bool udp = p->key.ip_proto == PROTO_UDP && p->l4;
    if (gso_kind(p) == VIRTIO_NET_HDR_GSO_UDP_L4)
        return udp && !b->view.inside;
    return b->view.transport == PROTO_TCP && (!udp || b->view.inside);
}

static void
compare_views(const struct both *b)
{
    const struct packet *p = &b->p;
    uint16_t type = of_get16(p->key.eth_type);
    compare_keys(b);
    if (p->malformed)
        broken("the kernel takes what is malformed");
    if ((p->l3 && b->view.l3 != p->l3) || (p->l4 && b->view.l4 != p->l4))
        broken("headers are elsewhere");
    if (type == TYPE_IPV4 && b->view.ttl != p->data[p->l3 + IPV4_TTL_AT])
        broken("the TTL is another one");
    if (type == TYPE_IPV6 && b->view.ttl != p->data[p->l3 + IPV6_HOPS_AT])
        broken("the hop limit is another one");
    struct packet_wire w = packet_wire(p);
    if (!b->view.cuts || w.cut == PACKET_CUT_BY_NOBODY || !ends_with_ip(p) || !is_as_it_seems(b))
        return;
    if (w.packets != b->view.packets || w.bytes != b->view.bytes) {
        fprintf(stderr, "%u packets, %u bytes; in the kernel %llu, %llu\n", w.packets, w.bytes,
                (unsigned long long)b->view.packets, (unsigned long long)b->view.bytes);
        broken("segments are counted differently");
    }
}

/* ------------------------------------------------------------------ actions */

union room {
    struct act act;
    uint8_t bytes[sizeof(struct act) + OXM_MAX_LEN];
};

static void
set_field_of(union room *r, const uint8_t *op)
{
    uint8_t value[OXM_MAX_LEN];
    enum oxm_field f = field_of(op, value);
    r->act = (struct act){.op = OFPAT_SET_FIELD, .extra = f, .arg = 1};
    memcpy(r->bytes + sizeof r->act, value, oxm_rows[f].bytes);
}

static void
label_action_of(union room *r, const uint8_t *op)
{
    static const uint16_t behind[] = {TYPE_IPV4, TYPE_IPV6, TYPE_MPLS, TYPE_ARP};
    switch (op[1] % 6) {
    case 0: r->act = (struct act){.op = OFPAT_POP_MPLS, .arg = behind[op[2] % 4]}; break;
    case 1:
        r->act = (struct act){.op = OFPAT_PUSH_MPLS, .arg = op[2] & 1 ? TYPE_MPLS_MC : TYPE_MPLS};
        break;
    case 2: r->act = (struct act){.op = OFPAT_SET_MPLS_TTL, .arg = op[2]}; break;
    case 4: r->act = (struct act){.op = OFPAT_PUSH_PBB, .arg = TYPE_PBB}; break;
    case 5: r->act = (struct act){.op = OFPAT_POP_PBB}; break;
    default: r->act = (struct act){.op = OFPAT_DEC_MPLS_TTL};
    }
}

/* The actions that a plan knows; what the packet lacks stays. */
static void
action_of(union room *r, const uint8_t *op)
{
    memset(r, 0, sizeof *r);
    switch (op[0] % 12) {
    case 0:
        r->act = (struct act){.op = OFPAT_PUSH_VLAN, .arg = op[1] & 1 ? TYPE_VLAN : TYPE_SVLAN};
        break;
    case 1: r->act = (struct act){.op = OFPAT_POP_VLAN}; break;
    case 2: r->act = (struct act){.op = OFPAT_SET_NW_TTL, .arg = op[1]}; break;
    case 3: r->act = (struct act){.op = OFPAT_DEC_NW_TTL}; break;
    case 4: r->act = (struct act){.op = op[1] & 1 ? OFPAT_COPY_TTL_IN : OFPAT_COPY_TTL_OUT}; break;
    case 5: label_action_of(r, op); break;
    case 6: r->act = (struct act){.op = OFPAT_PUSH_VLAN, .arg = TYPE_VLAN, .extra = 1}; break;
    case 7: r->act = (struct act){.op = OFPAT_OUTPUT}; break;
    default: set_field_of(r, op);
    }
}

struct actions {
    union room v[ACTIONS_MAX];
    unsigned n;
};

/* A plan of the actions, and an output at the end.  False: the packets stay in user space. */
static bool
make_rule(const struct actions *a, const struct packet *p, struct offload_plan *plan)
{
    static struct plan_way w;
    memset(plan, 0, sizeof *plan);
    plan->rule.longest = plan->rule.super = OFFLOAD_MAX_FRAME;
    w = (struct plan_way){.out = plan, .now = {.key = p->key, .ttl = -1}, .inside = p->inside};
    for (unsigned i = 0; i < a->n; i++) {
        bool ok = a->v[i].act.op == OFPAT_OUTPUT ? plan_op(&w, OFFLOAD_OUTPUT, OUT + i, i)
                                                 : plan_edit(&w, &a->v[i].act);
        if (!ok)
            return false;
    }
    plan->rule.came_by = IFINDEX;
    return plan_op(&w, OFFLOAD_OUTPUT, OUT + a->n, a->n) &&
           offload_rule_match(&plan->rule, &p->key, &w.bits, IFINDEX);
}

/* ------------------------------------------------------------------ what comes out */

/* The two forms of zero, in a checksum that is not UDP's. */
static bool
same_sum(const uint8_t *a, const uint8_t *b)
{
    uint16_t x = of_get16(a), y = of_get16(b);
    return x == y || (x % 0xffff == 0 && y % 0xffff == 0);
}

/* Makes the forms of zero of b those of a. */
static void
settle_zeros(const struct packet *p, const uint8_t *a, uint8_t *b)
{
    uint16_t type = of_get16(p->key.eth_type);
    uint32_t l4 = l4_csum_offset(p->key.ip_proto);
    uint32_t at[2] = {type == TYPE_IPV4 && p->l3 ? p->l3 + IPV4_CSUM_AT : 0,
                      p->l4 && l4 && p->key.ip_proto != PROTO_UDP ? p->l4 + l4 : 0};
    for (int i = 0; i < 2; i++)
        if (at[i] && at[i] + 2 <= p->len && same_sum(a + at[i], b + at[i]))
            memcpy(b + at[i], a + at[i], 2);
}

/* The outer checksum of a tunnel's super-packet is the sum of its pseudo-header: the kernel's programs keep it that,
 * and the kernel completes it in each segment.  User space makes it anew in each segment, whatever it is. */
static void
settle_outer_sum(const struct packet *p, uint8_t *b)
{
    bool v6 = of_get16(p->key.eth_type) == TYPE_IPV6;
    struct ip_view v;
    if (!is_super(p) || !(p->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || is_partial(p, p->l4) ||
        p->key.ip_proto != PROTO_UDP || !p->l4 || !ip_view(p->data, p->len, p->l3, v6, false, &v))
        return;
    uint8_t sum[2], *field = b + p->l4 + UDP_CSUM_AT;
    of_set16(sum, ip_pseudo_sum(p->data + p->l3, v6, PROTO_UDP, v.end - p->l4));
    if (same_sum(sum, field))
        memcpy(field, p->data + p->l4 + UDP_CSUM_AT, 2);
}

/* The kernel has one packet: what an earlier output has padded stays so. */
static void
compare_out(const struct packet *p, const struct skb_out *o, unsigned i, uint32_t *padded)
{
    static uint8_t copy[SKB_ROOM + VLAN_TAG];
    uint32_t least = is_super(p) || p->len >= PACKET_MIN ? p->len : PACKET_MIN;
    if (o->ifindex != OUT + i || o->priority != i)
        broken("it leaves by another port or queue");
    if (o->n < least || o->n - least > *padded) {
        fprintf(stderr, "output %u: %u bytes, in the kernel %u\n", i, least, o->n);
        broken("it is longer or shorter");
    }
    *padded = o->n - p->len;
    memcpy(copy, o->data, o->n);
    settle_zeros(p, p->data, copy);
    settle_outer_sum(p, copy);
    for (uint32_t k = 0; k < o->n; k++)
        if (copy[k] != (k < p->len ? p->data[k] : 0)) {
            fprintf(stderr, "output %u: byte %u of %u is %02x, in the kernel %02x\n", i, k, o->n,
                    k < p->len ? p->data[k] : 0, copy[k]);
            broken("its bytes differ");
        }
}

/* What user space makes of the frame, beside what the kernel has sent. */
static void
compare_outs(const struct actions *a, struct packet *p, const struct skb_out *o, unsigned n)
{
    uint32_t padded = 0;
    unsigned k = 0;
    for (unsigned i = 0; i <= a->n; i++) {
        const struct act *act = &a->v[i].act;
        if (i < a->n && act->op != OFPAT_OUTPUT) {
            if (action_rows[act->op].edit(p, act))
                broken("user space drops it");
            continue;
        }
        if (k == n)
            broken("less comes out");
        compare_out(p, &o[k++], i, &padded);
    }
    if (k != n)
        broken("more comes out");
}

/* Might the outer checksum be a partial one, and the inner one as well? */
static bool
is_ambiguous(const struct both *b)
{
    const struct packet *p = &b->p;
    bool v6 = of_get16(p->key.eth_type) == TYPE_IPV6;
    struct ip_view v;
    return b->view.inside && !b->s.s.gso_size && ip_view(p->data, p->len, p->l3, v6, false, &v) &&
           of_get16(p->data + p->l4 + UDP_CSUM_AT) ==
               ip_pseudo_sum(p->data + p->l3, v6, PROTO_UDP, v.end - p->l4);
}

/* Whether user space is to look though there is an entry. */
static bool
is_beyond_entry(const struct both *b, const struct offload_rule *r)
{
    return b->view.ttl < r->min_ttl || (b->s.s.gso_size && (!b->view.cuts || !r->super)) ||
           (offload_rule_covered(r) && is_ambiguous(b));
}

/* Of connections whose round trips are measured, both sides remember the same. */
static void
compare_probes(const struct both *b, const struct offload_rule *r)
{
    const struct offload_op *op = r->n_ops ? &r->op[r->n_ops - 1] : NULL;
    if (!op || op->kind != OFFLOAD_OUTPUT || !offload_rule_measured(r))
        return;
    if (probes_want(&ours, &b->p))
        probes_look(&ours, &b->p, IFINDEX, (int)op->arg, (uint32_t)(op->value >> 32), 1000000000);
    for (uint32_t i = 0; i < SLOTS; i++) {
        const struct rtt_slot *x = &ours.slot[i], *y = &memory.probes.slot[i];
        if (x->sig != y->sig)
            broken("a connection is another one");
        for (int k = 0; k < 2; k++)
            if (!x->way[k].state != !y->way[k].state ||
                (x->way[k].state < RTT_STILL && x->way[k].high != y->way[k].high))
                broken("a segment is read otherwise");
    }
    if (b->p.key.ip_proto != PROTO_UDP) /* of what UDP carries they remember times, too */
        return;
    memset(ours.slot, 0, SLOTS * sizeof *ours.slot);
    memset(memory.probes.slot, 0, SLOTS * sizeof *ours.slot);
}

/* True: the programs have sent the frame. */
static bool
forward(struct both *b, const struct actions *a, const struct offload_rule *r, uint8_t flags)
{
    const struct skb_out *out;
    struct offload_cpu *cpu = &memory.cpu[0];
    memory.control->linger = flags & FLAG_ORPHAN ? UINT64_MAX : 0;
    if (flags & FLAG_ORPHAN)
        cpu->ran = 0;
    else if (!programs_filter(&b->s))
        return false;
    if (flags & FLAG_OTHER_FILTER)
        memset(b->s.s.cb, 0, sizeof b->s.s.cb);
    unsigned n = programs_ingress(&b->s, &out);
    if (cpu->inside & 1 || cpu->owed)
        broken("the programs have not left");
    if (!n && flags & FLAG_ORPHAN)
        return false;
    compare_outs(a, &b->p, out, n);
    compare_probes(b, r);
    return true;
}

/* ------------------------------------------------------------------ a run */

static void
set_up(void)
{
    uint32_t sets = offload_sets_for(ENTRIES);
    pool = packet_pool_new(1 << 22);
    memory = (struct offload_memory){.control = calloc(1, sizeof *memory.control),
                                     .set = calloc(sets, sizeof *memory.set),
                                     .entry = calloc(ENTRIES, sizeof *memory.entry),
                                     .hits = calloc(ENTRIES, sizeof *memory.hits),
                                     .cpu = aligned_alloc(128, sizeof *memory.cpu),
                                     .port = calloc(OFFLOAD_PORTS, sizeof *memory.port),
                                     .meter = calloc(OFFLOAD_METERS, sizeof *memory.meter),
                                     .n_entries = ENTRIES,
                                     .n_sets = sets,
                                     .n_slots = SLOTS,
                                     .n_cpus = 1};
    memset(memory.cpu, 0, sizeof *memory.cpu);
    if (probes_new(&memory.probes, SLOTS) || probes_new(&ours, SLOTS))
        abort();
    probes_turn(&memory.probes, true);
    *ours.control = *memory.probes.control;
    table = offload_table_new(&memory);
    if (!table)
        abort();
    programs_use(&memory);
    memory.port[IFINDEX] = (struct offload_port){.ifindex = IFINDEX, .ready = 1};
    offload_turn(table, true);
}

static void
try_frames(const struct actions *a, const uint8_t *frame, uint8_t *other, uint32_t n, uint8_t flags,
           uint16_t mss)
{
    static struct both b;
    static struct offload_plan plan;
    uint32_t id;
    if (!both_of(&b, frame, n, flags, mss) || !programs_read(&b.s, &b.view))
        return;
    compare_views(&b);
    if (!make_rule(a, &b.p, &plan))
        return;
    if (offload_insert(table, &plan.rule, &id))
        broken("no room for the entry");
    if (!forward(&b, a, &plan.rule, flags) && !is_beyond_entry(&b, &plan.rule))
        broken("the frame does not find its own entry");
    if (both_of(&b, other, n, flags, mss) && programs_read(&b.s, &b.view)) {
        compare_views(&b);
        forward(&b, a, &plan.rule, flags);
    }
    offload_withdraw(table, id);
    offload_quiesce(table);
    offload_release(table, id);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct actions a;
    if (!pool)
        set_up();
    if (size < HEAD)
        return 0;
    unsigned n = data[1] % ACTIONS_MAX, flips = data[2] % FLIPS_MAX;
    size_t head = HEAD + n * 4 + flips * 2;
    if (size <= head || size - head > SKB_ROOM - 64)
        return 0;
    a.n = n;
    for (unsigned i = 0; i < n; i++)
        action_of(&a.v[i], data + HEAD + i * 4);
    uint32_t len = (uint32_t)(size - head);
    uint8_t *other = malloc(len);
    if (!other)
        abort();
    memcpy(other, data + head, len);
    for (unsigned i = 0; i < flips; i++) {
        const uint8_t *f = data + HEAD + n * 4 + i * 2;
        other[f[0] % len] ^= f[1];
    }
    packet_pool_reset(pool);
    try_frames(&a, data + head, other, len, data[0], of_get16(data + 3));
    free(other);
    return 0;
}
