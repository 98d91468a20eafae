/* SPDX-License-Identifier: Apache-2.0 */
/* What the input of a fuzz target looks like, for mutate.c: elements with a length of their own, elements
 * within them, and so on.  A target that is linked with mutate.c defines fuzz_format. */
#ifndef FUZZ_STRUCTURE_H
#define FUZZ_STRUCTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kind of element. */
struct fuzz_rule {
    uint8_t len_at, len_bytes; /* where in the element its length is */
    uint8_t head;              /* bytes it has at least */
    uint8_t align;  /* elements begin at a multiple of this; the length does not count the pad */
    bool little;    /* the length's byte order */
    bool body_only; /* the length does not count the head */
};

#define FUZZ_RULES 4

struct fuzz_format {
    size_t skip; /* bytes before the first element */
    struct fuzz_rule
        outer; /* what the input is a row of; head 0: it is the inside of one element */
    struct fuzz_rule
        inner[FUZZ_RULES]; /* what may be in an element; the first that fits is taken */
};

extern const struct fuzz_format fuzz_format;

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FUZZ_LITTLE true
#else
#define FUZZ_LITTLE false
#endif

/* Instructions, actions, properties and the like; buckets and entries of multipart replies; what is not padded;
 * OXM.  All big-endian. */
#define FUZZ_OPENFLOW_INNER                                                                        \
    {                                                                                              \
        {2, 2, 4, 8, false, false}, {0, 2, 8, 8, false, false}, {2, 2, 4, 1, false, false},        \
            {3, 1, 4, 1, false, true},                                                             \
    }

/* Messages one behind the other; the inside of one. */
#define FUZZ_OPENFLOW(skip_)                                                                       \
    {                                                                                              \
        .skip = skip_, .outer = {2, 2, 8, 1, false, false}, .inner = FUZZ_OPENFLOW_INNER           \
    }
#define FUZZ_OPENFLOW_BODY                                                                         \
    {                                                                                              \
        .inner = FUZZ_OPENFLOW_INNER                                                               \
    }

/* Datagrams of fuzz-netlink; messages, attributes. */
#define FUZZ_NETLINK                                                                               \
    {                                                                                              \
        .skip = 2, .outer = {0, 2, 4, 1, FUZZ_LITTLE, true}, .inner = {                            \
            {0, 4, 16, 4, FUZZ_LITTLE, false},                                                     \
            {0, 2, 4, 4, FUZZ_LITTLE, false},                                                      \
        }                                                                                          \
    }

/* mutate.c's, which libFuzzer calls. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t n_a, const uint8_t *b, size_t n_b,
                                 uint8_t *out, size_t max, unsigned seed);

/* libFuzzer's own. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

#endif
