/* SPDX-License-Identifier: Apache-2.0 */
/* OXM: the 40 match fields of OpenFlow 1.3.5 (7.2.3.7), one row each.
 *
 * Prerequisites must precede the field that needs them (7.2.3.6).
 */
#ifndef OFLIB_OXM_H
#define OFLIB_OXM_H

#include <oflib/arena.h>
#include <oflib/openflow.h>
#include <oflib/row.h>

#define OXM_MAX_LEN 16

/*  number, name, bytes, bits, maskable, settable, how it is written, prerequisite */
#define OXM_ROWS(X)                                                                                \
    X(0, in_port, 4, 32, 0, 0, PORT, none)                                                         \
    X(1, in_phy_port, 4, 32, 0, 0, PORT, in_port)                                                  \
    X(2, metadata, 8, 64, 1, 0, HEX, none)                                                         \
    X(3, eth_dst, 6, 48, 1, 1, MAC, none)                                                          \
    X(4, eth_src, 6, 48, 1, 1, MAC, none)                                                          \
    X(5, eth_type, 2, 16, 0, 1, HEX, none)                                                         \
    X(6, vlan_vid, 2, 13, 1, 1, VLAN, none)                                                        \
    X(7, vlan_pcp, 1, 3, 0, 1, DEC, vlan)                                                          \
    X(8, ip_dscp, 1, 6, 0, 1, DEC, ip)                                                             \
    X(9, ip_ecn, 1, 2, 0, 1, DEC, ip)                                                              \
    X(10, ip_proto, 1, 8, 0, 1, DEC, ip)                                                           \
    X(11, ipv4_src, 4, 32, 1, 1, IPV4, ipv4)                                                       \
    X(12, ipv4_dst, 4, 32, 1, 1, IPV4, ipv4)                                                       \
    X(13, tcp_src, 2, 16, 0, 1, DEC, tcp)                                                          \
    X(14, tcp_dst, 2, 16, 0, 1, DEC, tcp)                                                          \
    X(15, udp_src, 2, 16, 0, 1, DEC, udp)                                                          \
    X(16, udp_dst, 2, 16, 0, 1, DEC, udp)                                                          \
    X(17, sctp_src, 2, 16, 0, 1, DEC, sctp)                                                        \
    X(18, sctp_dst, 2, 16, 0, 1, DEC, sctp)                                                        \
    X(19, icmpv4_type, 1, 8, 0, 1, DEC, icmpv4)                                                    \
    X(20, icmpv4_code, 1, 8, 0, 1, DEC, icmpv4)                                                    \
    X(21, arp_op, 2, 16, 0, 1, DEC, arp)                                                           \
    X(22, arp_spa, 4, 32, 1, 1, IPV4, arp)                                                         \
    X(23, arp_tpa, 4, 32, 1, 1, IPV4, arp)                                                         \
    X(24, arp_sha, 6, 48, 1, 1, MAC, arp)                                                          \
    X(25, arp_tha, 6, 48, 1, 1, MAC, arp)                                                          \
    X(26, ipv6_src, 16, 128, 1, 1, IPV6, ipv6)                                                     \
    X(27, ipv6_dst, 16, 128, 1, 1, IPV6, ipv6)                                                     \
    X(28, ipv6_flabel, 4, 20, 1, 1, HEX, ipv6)                                                     \
    X(29, icmpv6_type, 1, 8, 0, 1, DEC, icmpv6)                                                    \
    X(30, icmpv6_code, 1, 8, 0, 1, DEC, icmpv6)                                                    \
    X(31, ipv6_nd_target, 16, 128, 0, 1, IPV6, nd)                                                 \
    X(32, ipv6_nd_sll, 6, 48, 0, 1, MAC, nd_sol)                                                   \
    X(33, ipv6_nd_tll, 6, 48, 0, 1, MAC, nd_adv)                                                   \
    X(34, mpls_label, 4, 20, 0, 1, DEC, mpls)                                                      \
    X(35, mpls_tc, 1, 3, 0, 1, DEC, mpls)                                                          \
    X(36, mpls_bos, 1, 1, 0, 1, DEC, mpls)                                                         \
    X(37, pbb_isid, 3, 24, 1, 1, HEX, pbb)                                                         \
    X(38, tunnel_id, 8, 64, 1, 1, HEX, none)                                                       \
    X(39, ipv6_exthdr, 2, 9, 1, 0, HEX, ipv6)

#define OXM_ENUM_ROW(num, name, bytes, bits, mask, set, fmt, pre) OXM_##name = (num),
enum oxm_field { OXM_ROWS(OXM_ENUM_ROW) OXM_N };

enum oxm_fmt {
    OXM_FMT_DEC,
    OXM_FMT_HEX,
    OXM_FMT_PORT,
    OXM_FMT_MAC,
    OXM_FMT_VLAN,
    OXM_FMT_IPV4,
    OXM_FMT_IPV6
};

/* The match must already hold one of the `n` values in `field` (bytes right-aligned as numbers);
 * n 0: the field must just be there; for vlan_pcp: vlan_vid must not be OFPVID_NONE. */
struct oxm_prereq {
    const char *name;
    int8_t field; /* -1: no prerequisite */
    uint8_t n;
    uint16_t value[2];
};

struct oxm_row {
    const char *name; /* "eth_type" */
    uint8_t field;    /* enum oxm_field */
    uint8_t bytes;
    uint8_t bits;
    bool maskable;
    bool settable;
    enum oxm_fmt fmt;
    const struct oxm_prereq *prereq;
};

extern const struct oxm_row oxm_rows[OXM_N];

/* The 32-bit OXM header of an OPENFLOW_BASIC field. */
#define OXM_HEADER(field, has_mask, bytes)                                                         \
    ((uint32_t)OFPXMC_OPENFLOW_BASIC << 16 | (uint32_t)(field) << 9 |                              \
     (uint32_t)((has_mask) ? 1 : 0) << 8 | (uint32_t)((has_mask) ? 2 * (bytes) : (bytes)))

struct of_oxm {
    const struct oxm_row *row;
    bool has_mask;
    uint8_t value[OXM_MAX_LEN]; /* row->bytes of them, big-endian */
    uint8_t mask[OXM_MAX_LEN];  /* all ones where has_mask is false */
};

struct of_match {
    uint32_t n;
    struct of_oxm *v;
};

const struct oxm_row *oxm_by_name(const char *name, size_t n);

/* The value as a number, for fields of up to 8 bytes. */
uint64_t oxm_number(const struct oxm_row *row, const uint8_t *value);
void oxm_set_number(const struct oxm_row *row, uint8_t *value, uint64_t n);

/* The field in a match, or NULL. */
const struct of_oxm *of_match_find(const struct of_match *m, enum oxm_field field);

/* Copies the fields into the arena.  0 or -ENOMEM. */
int of_match_keep(const struct of_match *m, struct of_arena *arena, struct of_match *out);

/* Decodes the TLVs in `tlvs` (what stands between ofp_match's header and its padding), with all
 * checks of 7.2.3: OFPET_BAD_MATCH errors.  Fields go into the arena. */
int of_match_decode_tlvs(struct of_bytes tlvs, struct of_arena *arena, struct of_match *out);
/* The same, where every field may have a mask: entries of the kernel, not flows. */
int of_match_decode_any(struct of_bytes tlvs, struct of_arena *arena, struct of_match *out);

/* Checks that a match could come from the wire: values in range, no field twice, prerequisites
 * first.  0 or OFPET_BAD_MATCH. */
int of_match_check(const struct of_match *m);

/* One OXM TLV (header, value, mask); at most OXM_TLV_MAX bytes. */
#define OXM_TLV_MAX (4 + 2 * OXM_MAX_LEN)
void of_oxm_encode(struct of_wr *w, const struct of_oxm *o);

/* Decodes the TLV of a set-field action: OFPBAC_BAD_SET_* errors. */
int of_set_field_decode(struct of_rd *r, struct of_oxm *out);

#endif
