/* SPDX-License-Identifier: Apache-2.0 */
/* A policy's words (policy.h). */
#ifndef QOS_PROFILE_POLICY_WORDS_H
#define QOS_PROFILE_POLICY_WORDS_H

#include "profile-text.h"

#define POLICY_RULES 32

struct policy {
    const struct profile_line *line;
    enum qos_direction dir;
    struct policy_amount {
        const char *text;   /* NULL: not given */
        uint64_t rate, ppm; /* one of them is 0 */
    } guarantee, limit;
    const char *latency, *name, *within; /* NULL: not given */
    uint64_t latency_us;
    const char *rules[POLICY_RULES];
    unsigned n_rules;
    bool others; /* for packets that fit no rule */
    /* Of the tree: */
    struct policy *parent; /* NULL: the root */
    uint32_t class_id;
    unsigned depth, children;
    uint64_t bits, promised; /* its guarantee in bit/s, 0: unknown; what its children are given */
    uint64_t shares;         /* of its children, in ppm */
};

/* Is the line a policy? */
bool qos_policy_is(const char *text);

/* Takes the line's words apart.  0, -ENOMEM, -EINVAL with a sentence in p->why. */
int qos_policy_words(struct of_parse *p, const struct profile_line *line, struct policy *out);

#endif
