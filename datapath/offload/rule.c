/* SPDX-License-Identifier: Apache-2.0 */
#include <offload/offload.h>

#include <packet/headers.h>

#include <string.h>

#define ADDRESSES_WORD                                                                             \
    6 /* of a key: where the programs have ARP's sender, and in the next one its target */
#define FIRST_ND_WORD 12

#define WORD_OF_KEY(i, w) [i] = (w),
static const uint8_t word_of_key[OFFLOAD_WORDS] = {OFFLOAD_WORD_ROWS(WORD_OF_KEY)};

/* An interface in the place of both port numbers. */
static uint64_t
port_word(uint32_t in_port, uint32_t in_phy_port)
{
    uint32_t half[2] = {in_port, in_phy_port};
    uint64_t w;
    memcpy(&w, half, sizeof w);
    return w;
}

/* ------------------------------------------------------------------ ARP and neighbour discovery */

/* What is in these words is 0 in ARP's keys. */
static void
fold_arp(struct flow_key *k)
{
    memcpy(&k->w[ADDRESSES_WORD], k->nd_sll, ETH_ADDR);
    memcpy(&k->w[ADDRESSES_WORD + 1], k->nd_tll, ETH_ADDR);
}

static void
unfold_arp(struct flow_key *k)
{
    memcpy(k->nd_sll, &k->w[ADDRESSES_WORD], ETH_ADDR);
    memcpy(k->nd_tll, &k->w[ADDRESSES_WORD + 1], ETH_ADDR);
    memset(&k->w[ADDRESSES_WORD], 0, ETH_ADDR);
    memset(&k->w[ADDRESSES_WORD + 1], 0, ETH_ADDR);
}

/* Does the rule depend on what ARP's packets have something else for? */
static bool
has_folded(const struct flow_key *bits)
{
    uint8_t any = 0;
    for (int i = 0; i < ETH_ADDR; i++)
        any |= ((const uint8_t *)&bits->w[ADDRESSES_WORD])[i] |
               ((const uint8_t *)&bits->w[ADDRESSES_WORD + 1])[i];
    return any;
}

static bool
has_nd(const struct flow_key *bits)
{
    uint64_t any = 0;
    for (int i = FIRST_ND_WORD; i < KEY_WORDS; i++)
        any |= bits->w[i];
    return any;
}

/* Makes the rule depend on what makes it sure that its packets aren't neighbour discovery. */
static void
exclude_nd(const struct flow_key *key, struct flow_key *bits)
{
    if (of_get16(key->eth_type) != TYPE_IPV6)
        return;
    bits->ip_proto = 0xff;
    if (key->ip_proto != PROTO_ICMPV6)
        return;
    bits->tp_src[0] = 0xff;
    of_set16(bits->vlan_vid, of_get16(bits->vlan_vid) | KEY_HAS_L4);
}

/* ------------------------------------------------------------------ key and mask */

void
offload_key_words(const struct flow_key *key, uint64_t words[OFFLOAD_WORDS])
{
    struct flow_key k = *key;
    if (key_is_arp(key))
        fold_arp(&k);
    for (int i = 1; i < OFFLOAD_WORDS; i++)
        words[i] = k.w[word_of_key[i]];
}

bool
offload_rule_match(struct offload_rule *r, const struct flow_key *key, const struct flow_key *bits,
                   int ifindex)
{
    struct flow_key b = *bits;
    bool arp = key_is_arp(key), nd = has_nd(bits);
    if (nd && key->has_nd)
        return false;
    if (arp || nd || has_folded(bits)) {
        memset(b.eth_type, 0xff, sizeof b.eth_type);
        of_set16(b.vlan_vid, of_get16(b.vlan_vid) | KEY_HAS_L3);
    }
    if (nd)
        exclude_nd(key, &b);
    if (arp)
        fold_arp(&b);
    offload_key_words(key, r->key); /* all bits: the entry's mask may have more */
    for (int i = 0; i < OFFLOAD_WORDS; i++)
        r->mask[i] = b.w[word_of_key[i]];
    r->key[0] = port_word((uint32_t)ifindex, 0); /* the rest of the word is 0 */
    r->mask[0] = port_word(UINT32_MAX, 0);
    return true;
}

/* Words that no packet has when it comes in are known: they are 0. */
void
offload_rule_packets(const struct offload_rule *r, struct flow_key *key, struct flow_key *mask)
{
    *key = (struct flow_key){0};
    memset(mask, 0xff, sizeof *mask);
    for (int i = 1; i < OFFLOAD_WORDS; i++) {
        key->w[word_of_key[i]] = r->key[i] & r->mask[i];
        mask->w[word_of_key[i]] = r->mask[i];
    }
    uint16_t type = of_get16(key->eth_type);
    bool typed = of_get16(mask->eth_type) == UINT16_MAX;
    bool other = mask->ip_proto == 0xff && key->ip_proto != PROTO_ICMPV6;
    if (typed && key_is_arp(key)) {
        unfold_arp(key);
        unfold_arp(mask);
    } else if (!typed || (type == TYPE_IPV6 && !other)) {
        memset(&mask->w[FIRST_ND_WORD], 0, (KEY_WORDS - FIRST_ND_WORD) * sizeof mask->w[0]);
    }
}

bool
offload_rule_op(struct offload_rule *r, struct offload_op op)
{
    if (r->n_ops == OFFLOAD_OPS)
        return false;
    r->op[r->n_ops++] = op;
    return true;
}

bool
offload_rule_edits(const struct offload_rule *r)
{
    for (uint32_t i = 0; i < r->n_ops; i++)
        switch (r->op[i].kind) {
        case OFFLOAD_OUTPUT:
        case OFFLOAD_QUEUE_IN:
        case OFFLOAD_METER: break;
        default: return true;
        }
    return false;
}

/* What a label is put in front of leaves as MPLS, which user space doesn't look into either; the same with PBB. */
bool
offload_rule_measured(const struct offload_rule *r)
{
    for (uint32_t i = 0; i < r->n_ops; i++)
        switch (r->op[i].kind) {
        case OFFLOAD_PUSH_MPLS:
        case OFFLOAD_POP_MPLS:
        case OFFLOAD_PUSH_PBB:
        case OFFLOAD_POP_PBB: return false;
        default: break;
        }
    return !offload_rule_covered(r);
}

bool
offload_rule_covered(const struct offload_rule *r)
{
    for (uint32_t i = 0; i < r->n_ops; i++)
        switch (r->op[i].kind) {
        case OFFLOAD_SET_IPV4_SRC:
        case OFFLOAD_SET_IPV4_DST:
        case OFFLOAD_SET_IPV6:
        case OFFLOAD_SET_TP_SRC:
        case OFFLOAD_SET_TP_DST: return true;
        default: break;
        }
    return false;
}
