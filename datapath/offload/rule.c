/* SPDX-License-Identifier: Apache-2.0 */
#include <offload/offload.h>

#include <string.h>

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

bool
offload_rule_match(struct offload_rule *r, const struct flow_key *key, const struct flow_key *bits,
                   int ifindex)
{
    struct flow_key rest = *bits;
    rest.w[1] = rest.w[2] = 0; /* metadata and tunnel_id are 0 when a packet comes in */
    for (int i = 0; i < OFFLOAD_WORDS; i++) {
        r->key[i] = key->w[word_of_key[i]]; /* all bits: the entry's mask may have more */
        r->mask[i] = bits->w[word_of_key[i]];
        rest.w[word_of_key[i]] = 0;
    }
    for (int i = 0; i < KEY_WORDS; i++)
        if (key->w[i] & rest.w[i]) /* the kernel's packets have 0 in these words */
            return false;
    r->key[0] = port_word((uint32_t)ifindex, 0); /* the rest of the word is 0 */
    r->mask[0] = port_word(UINT32_MAX, 0);
    return true;
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
