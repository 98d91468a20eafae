/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of some words of a flow key, with a random secret.
 *
 * Whoever knows this code but not the secret can't choose keys whose hashes collide: the hashes of
 * any two different keys (over the same words) are a uniformly random pair.  So two keys collide with
 * probability 2^-32, and their lowest k bits are the same with 2^-k.  The sum is Multilinear-HM of
 * Lemire and Kaser, "Strongly universal string hashing is fast" (2014), of which the upper half has
 * this property; key_hash_end permutes its values, which keeps it.  Without that, consecutive
 * addresses have hashes at equal distances, and one secret in a few hundred makes them fill one
 * stretch of a table (100 slots to probe instead of 2.5).
 *
 * One multiplication a word, none of which waits for another.  Hashes over different words have nothing to
 * do with each other.
 */
#ifndef PACKET_KEY_HASH_H
#define PACKET_KEY_HASH_H

#include <packet/key.h>

struct key_hash_secret {
    uint64_t sum;
    uint64_t word[KEY_WORDS][2]; /* for its lower and its upper half */
};

extern struct key_hash_secret key_hash_secret;

/* Draws the secret, once: before the first hash, and before there are threads. */
void key_hash_init(void);

/* Draws another one, for tests: all hashes change. */
void key_hash_renew(void);

/* A hash is key_hash_end(key_hash_begin() + key_hash_word(...) + ...). */
static inline uint64_t
key_hash_begin(void)
{
    return key_hash_secret.sum;
}

/* i: the word's place among those that are hashed. */
static inline uint64_t
key_hash_word(unsigned i, uint64_t w)
{
    return (key_hash_secret.word[i][0] + (uint32_t)w) * (key_hash_secret.word[i][1] + (w >> 32));
}

static inline uint32_t
key_hash_end(uint64_t sum)
{
    uint32_t h = (uint32_t)(sum >> 32);
    h = (h ^ h >> 15) * 0x2c1b3c6du;
    return h ^ h >> 16;
}

/* Of n words, masked. */
static inline uint32_t
key_hash_words(const struct flow_key *key, const uint8_t *at, const uint64_t *mask, unsigned n)
{
    uint64_t sum = key_hash_begin();
    for (unsigned i = 0; i < n; i++)
        sum += key_hash_word(i, key->w[at[i]] & mask[i]);
    return key_hash_end(sum);
}

/* Of the whole key. */
static inline uint32_t
key_hash(const struct flow_key *key)
{
    uint64_t sum = key_hash_begin();
    for (unsigned i = 0; i < KEY_WORDS; i++)
        sum += key_hash_word(i, key->w[i]);
    return key_hash_end(sum);
}

#endif
