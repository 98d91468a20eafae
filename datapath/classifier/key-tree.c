/* SPDX-License-Identifier: Apache-2.0 */
#include "key-tree.h"

#include <stddef.h>
#include <string.h>

#define LOOK_AT 64 /* nodes, while known bits are tried */

/* A leaf is a flow; an inner node has the lowest bit of its address set. */
struct node {
    uint16_t bit; /* the first in which both sides differ, counted over the tree's bytes */
    uintptr_t side[2];
};

struct key_tree {
    uintptr_t root;   /* 0: no key */
    uint32_t n_keys;  /* as many as the subtable has: then it is whole */
    uint32_t grow_at; /* where in the subtable's hash it goes on to grow */
    uint8_t n_bytes;
    struct {
        uint8_t word, at; /* of the flow's words */
        uint8_t of_key;   /* byte of the key */
        uint8_t mask;
    } byte[sizeof(struct flow_key)];
};

/* What changes least from one packet to the next comes first, so that a proof seldom needs what is behind it: a
 * protocol before an address, and ports last, which differ with each connection. */
#define FIELD(f)                                                                                   \
    {                                                                                              \
        offsetof(struct flow_key, f), sizeof((struct flow_key *)0)->f                              \
    }
static const struct {
    uint8_t at, n;
} order[] = {
    FIELD(in_port),     FIELD(in_phy_port), FIELD(metadata),   FIELD(tunnel_id), FIELD(eth_type),
    FIELD(vlan_vid),    FIELD(vlan_pcp),    FIELD(mpls_label), FIELD(mpls_tc),   FIELD(mpls_bos),
    FIELD(pbb_isid),    FIELD(ip_proto),    FIELD(ip_dscp),    FIELD(ip_ecn),    FIELD(ipv6_exthdr),
    FIELD(ipv6_flabel), FIELD(has_nd),      FIELD(eth_dst),    FIELD(eth_src),   FIELD(ip_dst),
    FIELD(ip_src),      FIELD(nd_target),   FIELD(nd_sll),     FIELD(nd_tll),    FIELD(tp_dst),
    FIELD(tp_src),
};

/* ------------------------------------------------------------------ bits */

static inline unsigned
byte_of_flow(const struct key_tree *t, const struct flow *f, unsigned i)
{
    return ((const uint8_t *)&f->key_and_counters[t->byte[i].word])[t->byte[i].at];
}

static inline unsigned
byte_of_key(const struct key_tree *t, const struct flow_key *key, unsigned i)
{
    return ((const uint8_t *)key)[t->byte[i].of_key] & t->byte[i].mask;
}

static inline unsigned
bit_of(unsigned byte, unsigned bit)
{
    return byte >> (~bit & 7) & 1;
}

static inline struct node *
inner(uintptr_t p)
{
    return p & 1 ? (struct node *)(p - 1) : NULL;
}

/* The first bit in which the key and the flow differ, or -1. */
static int
differ_at(const struct key_tree *t, const struct flow_key *key, const struct flow *f)
{
    for (unsigned i = 0; i < t->n_bytes; i++) {
        unsigned diff = byte_of_key(t, key, i) ^ byte_of_flow(t, f, i);
        if (diff)
            return (int)(i * 8) + __builtin_clz(diff << 24);
    }
    return -1;
}

/* One of the flows that have the most bits in common with the key, counted from the first one. */
static const struct flow *
closest(const struct key_tree *t, const struct flow_key *key)
{
    uintptr_t p = t->root;
    for (const struct node *n; (n = inner(p));)
        p = n->side[bit_of(byte_of_key(t, key, n->bit / 8), n->bit)];
    return (const struct flow *)p;
}

/* ------------------------------------------------------------------ growing */

static struct key_tree *
new_tree(const struct subtable *s)
{
    struct key_tree *t = calloc(1, sizeof *t);
    for (unsigned i = 0; t && i < sizeof order / sizeof order[0]; i++)
        for (unsigned at = order[i].at; at < order[i].at + order[i].n; at++) {
            uint8_t mask = ((const uint8_t *)&s->mask)[at], word = 0;
            if (!mask)
                continue;
            while (s->word[word] != at / 8)
                word++;
            t->byte[t->n_bytes].word = word;
            t->byte[t->n_bytes].at = at % 8;
            t->byte[t->n_bytes].of_key = (uint8_t)at;
            t->byte[t->n_bytes++].mask = mask;
        }
    return t;
}

/* Where a node that decides by this bit belongs on the key's way: above those of later bits. */
static uintptr_t *
place_of(struct key_tree *t, const struct flow_key *key, unsigned bit)
{
    uintptr_t *at = &t->root;
    for (struct node *n; (n = inner(*at)) && n->bit < bit;)
        at = &n->side[bit_of(byte_of_key(t, key, n->bit / 8), n->bit)];
    return at;
}

/* False: no memory. */
static bool
put(struct key_tree *t, const struct flow *f)
{
    struct flow_key key;
    flow_key_of(f, &key);
    if (!t->root) {
        t->root = (uintptr_t)f;
        t->n_keys = 1;
        return true;
    }
    int bit = differ_at(t, &key, closest(t, &key));
    if (bit < 0)     /* it came while the tree was growing */
        return true; /* LCOV_EXCL_LINE: luck */
    struct node *n = malloc(sizeof *n);
    if (!n)
        return false;
    t->n_keys++;
    uintptr_t *at = place_of(t, &key, (unsigned)bit);
    unsigned side = bit_of(byte_of_key(t, &key, (unsigned)bit / 8), (unsigned)bit);
    n->bit = (uint16_t)bit;
    n->side[side] = (uintptr_t)f;
    n->side[!side] = *at;
    *at = (uintptr_t)n | 1;
    return true;
}

/* LCOV_EXCL_START: no memory */
static void
drop_tree(struct subtable *s)
{
    key_tree_free(s->tree);
    s->tree = NULL;
}
/* LCOV_EXCL_STOP */

/* Puts more of the subtable's keys into the tree; true: it has all of them. */
static bool
grow(struct subtable *s, unsigned *room)
{
    struct key_tree *t = s->tree;
    for (; *room && t->n_keys < s->heads.used; --*room) {
        const struct flow *f = ptr_hash_each(&s->heads, &t->grow_at);
        if (!f) {           /* the hash was made anew meanwhile, and some are elsewhere in it */
            t->grow_at = 0; /* LCOV_EXCL_LINE: luck */
        } else if (!put(t, f)) { /* LCOV_EXCL_START: no memory */
            drop_tree(s);
            return false;
        } /* LCOV_EXCL_STOP */
    }
    return t->n_keys == s->heads.used;
}

/* ------------------------------------------------------------------ changes */

void
key_tree_add(struct subtable *s, const struct flow *f)
{
    if (s->tree && !put(s->tree, f))
        drop_tree(s); /* LCOV_EXCL_LINE: no memory */
}

/* The place of the flow's leaf, and of the node above it; NULL: it has none yet. */
static uintptr_t *
leaf_of(struct key_tree *t, const struct flow *f, uintptr_t **above)
{
    uintptr_t *at = &t->root;
    *above = NULL;
    for (struct node *n; (n = inner(*at));) {
        *above = at;
        at = &n->side[bit_of(byte_of_flow(t, f, n->bit / 8), n->bit)];
    }
    return *at == (uintptr_t)f ? at : NULL;
}

void
key_tree_remove(struct subtable *s, const struct flow *f)
{
    uintptr_t *above, *at = s->tree ? leaf_of(s->tree, f, &above) : NULL;
    if (!at)
        return;
    s->tree->n_keys--;
    if (!above) {
        s->tree->root = 0;
        return;
    }
    struct node *n = inner(*above);
    *above = n->side[at == &n->side[0]];
    free(n);
}

void
key_tree_replace(struct subtable *s, const struct flow *f, const struct flow *by)
{
    uintptr_t *above, *at = s->tree ? leaf_of(s->tree, f, &above) : NULL;
    if (at)
        *at = (uintptr_t)by;
}

void
key_tree_free(struct key_tree *t)
{
    while (t &&
           inner(t->root)) { /* turns the tree into a list as it goes, so that it needs no stack */
        /* LCOV_EXCL_START: no memory; a subtable that goes otherwise has no keys any more */
        struct node *n = inner(t->root), *left = inner(n->side[0]);
        if (left) {
            n->side[0] = left->side[1];
            left->side[1] = t->root;
            t->root = (uintptr_t)left | 1;
        } else {
            t->root = n->side[1];
            free(n);
        }
        /* LCOV_EXCL_STOP */
    }
    free(t);
}

/* ------------------------------------------------------------------ proofs */

static bool
agrees_in(const struct key_tree *t, const struct flow *f, const struct flow_key *key,
          const struct flow_key *bits)
{
    for (unsigned i = 0; i < t->n_bytes; i++)
        if ((byte_of_flow(t, f, i) ^ byte_of_key(t, key, i)) &
            ((const uint8_t *)bits)[t->byte[i].of_key])
            return false;
    return true;
}

/* Whether a flow may match a packet that has these bits of the key.  *left: nodes that may still be looked at; then
 * one may. */
static bool
may_match(const struct key_tree *t, uintptr_t p, const struct flow_key *key,
          const struct flow_key *bits, unsigned *left)
{
    for (const struct node *n; (n = inner(p));) {
        unsigned known = ((const uint8_t *)bits)[t->byte[n->bit / 8].of_key];
        unsigned side = bit_of(byte_of_key(t, key, n->bit / 8), n->bit);
        if (!*left)
            return true;
        --*left;
        if (!bit_of(known, n->bit) && may_match(t, n->side[!side], key, bits, left))
            return true;
        p = n->side[side];
    }
    return agrees_in(t, (const struct flow *)p, key, bits);
}

/* Up to the bit and to the end of its byte, of IP addresses and ports of its nibble: of those there are many, and
 * one fewer bit halves the megaflows; but each mask costs the kernel time. */
static void
add_prefix(const struct key_tree *t, unsigned bit, struct flow_key *bits)
{
    uint8_t *b = (uint8_t *)bits;
    unsigned last = bit / 8;
    for (unsigned i = 0; i < last; i++)
        b[t->byte[i].of_key] |= t->byte[i].mask;
    unsigned at = t->byte[last].of_key;
    bool nibbles =
        at >= offsetof(struct flow_key, ip_src) ||
        (at >= offsetof(struct flow_key, tp_src) && at < offsetof(struct flow_key, mpls_label));
    b[at] |= t->byte[last].mask & (nibbles && bit % 8 < 4 ? 0xf0 : 0xff);
}

bool
key_tree_excludes(struct subtable *s, const struct flow_key *key, unsigned *room,
                  struct flow_key *bits)
{
    if (!s->tree && !(s->tree = new_tree(s)))
        return false;
    if (!grow(s, room))
        return false;
    const struct key_tree *t = s->tree;
    unsigned left = LOOK_AT;
    if (!t->root)
        return true;
    int bit = differ_at(t, key, closest(t, key));
    if (bit < 0)
        return false;
    if (may_match(t, t->root, key, bits, &left))
        add_prefix(t, (unsigned)bit, bits);
    return true;
}
