/* SPDX-License-Identifier: Apache-2.0 */
/* The flow key: everything a match can ask of a packet, in 16 words.
 *
 * All members are big-endian, in the width their OXM field has on the wire, so that a match
 * becomes a key and a mask by copying (key_of_match).  Fields that cannot be there together share
 * their place: TCP, UDP and SCTP ports, ICMP type and code, ARP opcode; IPv4, IPv6 and ARP
 * addresses; ARP and ND link-layer addresses.  That is sound because a match on any of them must
 * hold its prerequisite (eth_type, ip_proto) exactly.
 *
 * What a packet has not got is 0 in its key; so that no match on a 0 finds it (7.3.2: a field that is
 * not present matches no entry that has it set), the key also says which headers are there, and a
 * match on a header's field asks for that.  The bits are in words that such a match asks for anyway.
 *
 * A mask is a key whose set bits are the ones that count.
 */
#ifndef PACKET_KEY_H
#define PACKET_KEY_H

#include <oflib/oxm.h>
#include <oflib/wire.h>

#include <stdbool.h>
#include <stdint.h>

#define KEY_WORDS 16

union key_ip {
    uint8_t v6[16];
    uint8_t v4[4]; /* also ARP's protocol addresses */
};

struct flow_key {
    union {
        uint64_t w[KEY_WORDS];
        struct {
            uint8_t in_port[4]; /* word 0 */
            uint8_t in_phy_port[4];
            uint8_t metadata[8];
            uint8_t tunnel_id[8];
            uint8_t eth_dst[6]; /* word 3 */
            uint8_t eth_src[6];
            uint8_t eth_type[2]; /* of the payload, after all VLAN tags */
            uint8_t vlan_vid[2]; /* of the outermost tag, with OFPVID_PRESENT; 0: none; KEY_HAS_ */
            uint8_t vlan_pcp;    /* word 5 */
            uint8_t ip_dscp;
            uint8_t ip_ecn;
            uint8_t ip_proto;
            uint8_t tp_src[2]; /* TCP, UDP, SCTP; [0] ICMP type, [1] ICMP code; ARP opcode */
            uint8_t tp_dst[2];
            uint8_t mpls_label[4]; /* word 6: the outermost label */
            uint8_t mpls_tc;
            uint8_t mpls_bos;
            uint8_t ipv6_exthdr[2];
            uint8_t ipv6_flabel[4]; /* word 7 */
            uint8_t pbb_isid[3];
            uint8_t zero0;
            union key_ip ip_src; /* word 8 */
            union key_ip ip_dst;
            uint8_t nd_target[16]; /* word 12 */
            uint8_t nd_sll[6];     /* also arp_sha */
            uint8_t nd_tll[6];     /* also arp_tha */
            uint8_t has_nd;        /* KEY_HAS_ND_ */
            uint8_t zero1[3];
        };
    };
};
_Static_assert(sizeof(struct flow_key) == KEY_WORDS * 8, "flow_key has no holes");

/* In vlan_vid, above its 13 bits: the header that eth_type names, that ip_proto names. */
#define KEY_HAS_L3 0x8000
#define KEY_HAS_L4 0x4000
#define KEY_HAS    (KEY_HAS_L3 | KEY_HAS_L4)
/* In has_nd. */
#define KEY_HAS_ND_TARGET 1
#define KEY_HAS_ND_SLL    2
#define KEY_HAS_ND_TLL    4

/* With OFPVID_PRESENT, or 0. */
static inline uint16_t
key_vid(const struct flow_key *k)
{
    return of_get16(k->vlan_vid) & (uint16_t)~KEY_HAS;
}

static inline void
key_set_vid(struct flow_key *k, uint16_t vid)
{
    of_set16(k->vlan_vid, (uint16_t)((of_get16(k->vlan_vid) & KEY_HAS) | vid));
}

/* Where the key keeps a field; its width is the OXM row's. */
extern const uint8_t key_offset[OXM_N];

static inline uint8_t *
key_field(struct flow_key *k, enum oxm_field f)
{
    return (uint8_t *)k + key_offset[f];
}

/* Whether a mask of the field, in the field's own bytes, holds all of its bits. */
bool key_mask_is_whole(enum oxm_field f, const uint8_t *mask);

/* A match (already checked by of_match_check) as key and mask; bits outside the mask are 0. */
void key_of_match(const struct of_match *m, struct flow_key *key, struct flow_key *mask);

/* A key and mask as a match, prerequisites first, fields that are wholly masked out left away.
 * `out->v` must have room for OXM_N entries.  Which of the fields that share a place it is follows
 * from the prerequisites in key and mask. */
void key_to_match(const struct flow_key *key, const struct flow_key *mask, struct of_match *out);

#endif
