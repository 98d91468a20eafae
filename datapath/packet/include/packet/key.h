/* SPDX-License-Identifier: Apache-2.0 */
/* The flow key: every field of a packet that a match can name, in 16 words.
 *
 * Members are big-endian and as wide as their OXM field on the wire, so a match becomes a key and a
 * mask by copying (key_of_match).  Fields that a packet can't have together share their place: TCP,
 * UDP and SCTP ports, ICMP type and code, ARP opcode; IPv4, IPv6 and ARP addresses; ARP and ND
 * link-layer addresses.  That is sound because a match on any of them must have its prerequisite
 * (eth_type, ip_proto) exactly.
 *
 * A field that the packet lacks is 0 in its key, but must match no entry that names it (7.3.2).  So
 * the key has bits for the headers that are there, and a match on a header's field asks for its bit.
 * The bits are in words that such a match reads anyway.
 *
 * A mask is a key whose 1 bits are compared.
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
            uint8_t
                fragment; /* 1: of an IP packet.  No match names it, but flow hashes depend on it */
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

/* In vlan_vid, above its 13 bits: there is the header that eth_type names, the one that ip_proto
 * names. */
#define KEY_HAS_L3 0x8000
#define KEY_HAS_L4 0x4000
#define KEY_HAS    (KEY_HAS_L3 | KEY_HAS_L4)
/* In has_nd. */
#define KEY_HAS_ND_TARGET 1
#define KEY_HAS_ND_SLL    2
#define KEY_HAS_ND_TLL    4

/* The VID with OFPVID_PRESENT; 0: no tag. */
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

/* ARP or RARP, with Ethernet and IPv4 addresses? */
bool key_is_arp(const struct flow_key *k);

/* The bits of KEY_HAS that a packet with the field has. */
uint16_t key_has(enum oxm_field f);

/* A field's offset in the key; its width is in its OXM row. */
extern const uint8_t key_offset[OXM_N];

static inline uint8_t *
key_field(struct flow_key *k, enum oxm_field f)
{
    return (uint8_t *)k + key_offset[f];
}

/* Whether a mask of the field, in the field's own bytes, holds all of its bits. */
bool key_mask_is_whole(enum oxm_field f, const uint8_t *mask);

/* Whether the mask has all of these bits. */
static inline bool
key_mask_covers(const struct flow_key *mask, const struct flow_key *bits)
{
    uint64_t missing = 0;
    for (int i = 0; i < KEY_WORDS; i++)
        missing |= bits->w[i] & ~mask->w[i];
    return !missing;
}

/* Finds the words in which the mask has bits, and those bits.  Returns how many words. */
static inline uint8_t
key_mask_words(const struct flow_key *mask, uint8_t word[KEY_WORDS], uint64_t bits[KEY_WORDS])
{
    uint8_t n = 0;
    for (int i = 0; i < KEY_WORDS; i++) {
        if (!mask->w[i])
            continue;
        word[n] = (uint8_t)i;
        bits[n++] = mask->w[i];
    }
    return n;
}

/* A match that of_match_check has accepted, as key and mask.  Key bits outside the mask are 0. */
void key_of_match(const struct of_match *m, struct flow_key *key, struct flow_key *mask);

/* Key and mask as a match: prerequisites first, without fields whose mask is 0.  The prerequisites
 * say which of the fields that share a place it is.  `out->v` must have room for OXM_N entries. */
void key_to_match(const struct flow_key *key, const struct flow_key *mask, struct of_match *out);

/* The fields that the packet of this key has, but for those that are 0 with most packets (metadata,
 * tunnel_id, IPv6's flow label and extension headers).  Room as above. */
void key_describe(const struct flow_key *key, struct of_match *out);

#endif
