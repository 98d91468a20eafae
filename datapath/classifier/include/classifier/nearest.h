/* SPDX-License-Identifier: Apache-2.0 */
/* Which flows of a table a key misses by the fewest fields: for people who ask why the flow that
 * they meant did not match. */
#ifndef CLASSIFIER_NEAREST_H
#define CLASSIFIER_NEAREST_H

#include <classifier/classifier.h>

#define NEAREST_MOST 3

struct nearest {
    uint32_t n;
    struct flow *flow[NEAREST_MOST]; /* fewest differences first, then highest priority */
    unsigned differs[NEAREST_MOST];  /* fields */
    uint32_t higher;                 /* flows above the priority */
    uint32_t not_compared;           /* of these */
};

/* Among the flows whose priority is above `above` (-1: all).  Looks at no more than about `budget`
 * of them, of each mask some.  Control thread. */
void classifier_nearest(struct classifier *c, const struct flow_key *key, int above,
                        uint32_t budget, struct nearest *out);

#endif
