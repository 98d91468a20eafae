/* SPDX-License-Identifier: Apache-2.0 */
#include <oflib/err.h>
#include <oflib/oxm.h>
#include <oflib/protocols.h>

#include <errno.h>

/* Q(name, field, n, value, value) */
#define PREREQS(Q)                                                                                 \
    Q(none, -1, 0, 0, 0)                                                                           \
    Q(in_port, OXM_in_port, 0, 0, 0)                                                               \
    Q(vlan, OXM_vlan_vid, 0, 0, 0)                                                                 \
    Q(ip, OXM_eth_type, 2, TYPE_IPV4, TYPE_IPV6)                                                   \
    Q(ipv4, OXM_eth_type, 1, TYPE_IPV4, 0)                                                         \
    Q(ipv6, OXM_eth_type, 1, TYPE_IPV6, 0)                                                         \
    Q(arp, OXM_eth_type, 1, TYPE_ARP, 0)                                                           \
    Q(mpls, OXM_eth_type, 2, TYPE_MPLS, TYPE_MPLS_MC)                                              \
    Q(pbb, OXM_eth_type, 1, TYPE_PBB, 0)                                                           \
    Q(tcp, OXM_ip_proto, 1, PROTO_TCP, 0)                                                          \
    Q(udp, OXM_ip_proto, 1, PROTO_UDP, 0)                                                          \
    Q(sctp, OXM_ip_proto, 1, PROTO_SCTP, 0)                                                        \
    Q(icmpv4, OXM_ip_proto, 1, PROTO_ICMP, 0)                                                      \
    Q(icmpv6, OXM_ip_proto, 1, PROTO_ICMPV6, 0)                                                    \
    Q(nd, OXM_icmpv6_type, 2, 135, 136)                                                            \
    Q(nd_sol, OXM_icmpv6_type, 1, 135, 0)                                                          \
    Q(nd_adv, OXM_icmpv6_type, 1, 136, 0)

#define PREREQ(nm, fld, count, a, b)                                                               \
    static const struct oxm_prereq prereq_##nm = {                                                 \
        .name = #nm, .field = fld, .n = count, .value = {a, b}};
PREREQS(PREREQ)

#define OXM_ROW(num, nm, by, bi, mask, set, f, pre)                                                \
    [num] = {.name = #nm,                                                                          \
             .field = num,                                                                         \
             .bytes = by,                                                                          \
             .bits = bi,                                                                           \
             .maskable = mask,                                                                     \
             .settable = set,                                                                      \
             .fmt = OXM_FMT_##f,                                                                   \
             .prereq = &prereq_##pre},
const struct oxm_row oxm_rows[OXM_N] = {OXM_ROWS(OXM_ROW)};

uint64_t
oxm_number(const struct oxm_row *row, const uint8_t *value)
{
    uint64_t n = 0;
    for (int i = 0; i < row->bytes && i < 8; i++)
        n = n << 8 | value[i];
    return n;
}

void
oxm_set_number(const struct oxm_row *row, uint8_t *value, uint64_t n)
{
    for (int i = row->bytes - 1; i >= 0; i--) {
        value[i] = (uint8_t)n;
        n >>= 8;
    }
}

const struct of_oxm *
of_match_find(const struct of_match *m, enum oxm_field field)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->v[i].row->field == field)
            return &m->v[i];
    return NULL;
}

/* Are bits set above the field's width? */
static bool
too_wide(const struct oxm_row *row, const uint8_t *v)
{
    return row->bits < row->bytes * 8 && oxm_number(row, v) >> row->bits;
}

/* vlan_vid has two kinds of values: OFPVID_NONE, and a VID with OFPVID_PRESENT.  With a mask, a VID
 * alone does; but not one of frames without a tag. */
static bool
vlan_value_ok(const struct of_oxm *o)
{
    uint16_t vid = of_get16(o->value);
    return vid == OFPVID_NONE || vid & OFPVID_PRESENT ||
           (o->has_mask && !(of_get16(o->mask) & OFPVID_PRESENT));
}

static int
check_oxm(const struct of_oxm *o, bool any_mask)
{
    const struct oxm_row *row = o->row;
    if (o->has_mask && !row->maskable && !any_mask)
        return OF_BAD_MATCH(BAD_MASK);
    if (too_wide(row, o->value) || (row->field == OXM_vlan_vid && !vlan_value_ok(o)))
        return OF_BAD_MATCH(BAD_VALUE);
    if (!o->has_mask)
        return 0;
    if (too_wide(row, o->mask))
        return OF_BAD_MATCH(BAD_MASK);
    for (int i = 0; i < row->bytes; i++)
        if (o->value[i] & ~o->mask[i])
            return OF_BAD_MATCH(BAD_WILDCARDS);
    return 0;
}

static int
check_prereq(const struct of_match *before, const struct of_oxm *o)
{
    const struct oxm_prereq *p = o->row->prereq;
    if (p->field < 0)
        return 0;
    const struct of_oxm *have = of_match_find(before, (enum oxm_field)p->field);
    if (!have)
        return OF_BAD_MATCH(BAD_PREREQ);
    if (p->field == OXM_vlan_vid)
        return oxm_number(have->row, have->value) & OFPVID_PRESENT ? 0 : OF_BAD_MATCH(BAD_PREREQ);
    if (!p->n)
        return 0;
    uint64_t v = oxm_number(have->row, have->value);
    for (int i = 0; i < p->n; i++)
        if (v == p->value[i])
            return 0;
    return OF_BAD_MATCH(BAD_PREREQ);
}

static int
check_match(const struct of_match *m, bool any_mask)
{
    uint64_t seen = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        const struct of_oxm *o = &m->v[i];
        struct of_match before = {.n = i, .v = m->v};
        if (seen >> o->row->field & 1)
            return OF_BAD_MATCH(DUP_FIELD);
        seen |= UINT64_C(1) << o->row->field;
        int err = check_oxm(o, any_mask);
        if (!err)
            err = check_prereq(&before, o);
        if (err)
            return err;
    }
    return 0;
}

int
of_match_check(const struct of_match *m)
{
    return check_match(m, false);
}

/* One TLV's header, checked against its row; BAD_MATCH errors. */
static int
read_header(struct of_rd *r, struct of_oxm *o)
{
    uint32_t header = of_rd32(r);
    if (r->short_read)
        return OF_BAD_MATCH(BAD_LEN);
    uint8_t field = header >> 9 & 0x7f, len = (uint8_t)header;
    if (header >> 16 != OFPXMC_OPENFLOW_BASIC || field >= OXM_N)
        return OF_BAD_MATCH(BAD_FIELD);
    o->row = &oxm_rows[field];
    o->has_mask = header >> 8 & 1;
    if (len != o->row->bytes << o->has_mask || of_rd_left(r) < len)
        return OF_BAD_MATCH(BAD_LEN);
    return 0;
}

/* Copies a value or mask, zero-padded.  Sizes known at compile time make each copy a load and a
 * store. */
static inline void
read_value(struct of_rd *r, uint8_t out[OXM_MAX_LEN], uint8_t bytes)
{
    memset(out, 0, OXM_MAX_LEN);
    switch (bytes) {
    case 1: out[0] = r->p[0]; break;
    case 2: memcpy(out, r->p, 2); break;
    case 4: memcpy(out, r->p, 4); break;
    case 6: memcpy(out, r->p, 6); break;
    default: memcpy(out, r->p, bytes);
    }
    r->p += bytes;
}

static int
read_oxm(struct of_rd *r, struct of_oxm *o)
{
    int err = read_header(r, o);
    if (err)
        return err;
    read_value(r, o->value, o->row->bytes);
    if (o->has_mask)
        read_value(r, o->mask, o->row->bytes);
    else
        memset(o->mask, 0xff, sizeof o->mask);
    return 0;
}

int
of_match_keep(const struct of_match *m, struct of_arena *arena, struct of_match *out)
{
    struct of_match kept = {.n = m->n, .v = of_arena_array(arena, m->n, sizeof *m->v)};
    if (!kept.v)
        return -ENOMEM;
    if (m->n)
        memcpy(kept.v, m->v, m->n * sizeof *m->v);
    *out = kept;
    return 0;
}

static int
decode_tlvs(struct of_bytes tlvs, bool any_mask, struct of_arena *arena, struct of_match *out)
{
    struct of_oxm v[OXM_N]; /* a match has no field twice */
    struct of_match m = {.n = 0, .v = v};
    struct of_rd r = of_rd(tlvs.p, tlvs.n);
    for (; of_rd_left(&r); m.n++) {
        struct of_oxm more, *o = m.n < OXM_N ? &v[m.n] : &more;
        int err = read_oxm(&r, o);
        if (!err && o == &more)
            err = OF_BAD_MATCH(DUP_FIELD);
        if (err)
            return err;
    }
    int err = check_match(&m, any_mask);
    return err ? err : of_match_keep(&m, arena, out);
}

int
of_match_decode_tlvs(struct of_bytes tlvs, struct of_arena *arena, struct of_match *out)
{
    return decode_tlvs(tlvs, false, arena, out);
}

int
of_match_decode_any(struct of_bytes tlvs, struct of_arena *arena, struct of_match *out)
{
    return decode_tlvs(tlvs, true, arena, out);
}

void
of_oxm_encode(struct of_wr *w, const struct of_oxm *o)
{
    of_wr32(w, OXM_HEADER(o->row->field, o->has_mask, o->row->bytes));
    of_wr_bytes(w, o->value, o->row->bytes);
    if (o->has_mask)
        of_wr_bytes(w, o->mask, o->row->bytes);
}

int
of_set_field_decode(struct of_rd *r, struct of_oxm *out)
{
    int err = read_header(r, out);
    if (err)
        return err == OF_BAD_MATCH(BAD_LEN) ? OF_BAD_ACTION(BAD_SET_LEN)
                                            : OF_BAD_ACTION(BAD_SET_TYPE);
    if (out->has_mask || !out->row->settable)
        return OF_BAD_ACTION(BAD_SET_TYPE);
    of_rd_copy(r, out->value, out->row->bytes);
    memset(out->mask, 0xff, out->row->bytes);
    if (too_wide(out->row, out->value))
        return OF_BAD_ACTION(BAD_SET_ARGUMENT);
    /* A set VID is a VID: OFPVID_PRESENT must be there (7.2.5). */
    if (out->row->field == OXM_vlan_vid && !(of_get16(out->value) & OFPVID_PRESENT))
        return OF_BAD_ACTION(BAD_SET_ARGUMENT);
    return 0;
}
