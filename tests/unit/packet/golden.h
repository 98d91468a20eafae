/* SPDX-License-Identifier: Apache-2.0 */
/* Frames made by another program, and the match that is exact in all that they have. */
#ifndef GOLDEN_H
#define GOLDEN_H

struct golden {
    const char *name;
    const char *hex;
    const char *match; /* in_port is 1 */
};

extern const struct golden golden_frames[];
extern const unsigned n_golden_frames;

#endif
