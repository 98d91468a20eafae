/* SPDX-License-Identifier: Apache-2.0 */
/* What cmocka wants to be included first, and byte building for these tests. */
#ifndef TEST_OFLIB_H
#define TEST_OFLIB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../support/hex.h"

#include <oflib/codec.h>

#define ARENA_MAX (1 << 20)

#define assert_err(got, type, code) assert_int_equal(got, OF_ERR(OFPET_##type, code))

static inline void
put_hex(struct of_wr *w, const char *hex)
{
    uint8_t buf[4096];
    long n = hex_bytes(hex, buf, sizeof buf);
    assert_true(n >= 0);
    of_wr_bytes(w, buf, (size_t)n);
}

/* A header; finish() fills in its length. */
static inline void
put_header(struct of_wr *w, uint8_t type)
{
    of_wr8(w, OFP_VERSION);
    of_wr8(w, type);
    of_wr16(w, 0);
    of_wr32(w, 0x11223344);
}

/* Copied to memory of exactly this size, so that sanitizers see a read past its end. */
static inline struct of_bytes
finish(const struct of_wr *w)
{
    assert_false(w->overflow);
    uint8_t *copy = test_malloc(w->len ? w->len : 1);
    memcpy(copy, w->buf, w->len);
    if (w->len >= 4)
        of_set16(copy + 2, (uint16_t)w->len);
    return (struct of_bytes){copy, w->len};
}

/* ofp_match around these TLVs. */
static inline void
put_match(struct of_wr *w, const char *tlvs)
{
    size_t start = w->len;
    of_wr16(w, OFPMT_OXM);
    of_wr16(w, 0);
    put_hex(w, tlvs);
    of_wr_patch16(w, start + 2, (uint16_t)(w->len - start));
    of_wr_align(w, start, 8);
}

/* The fixed part of a flow_mod that adds an entry. */
#define FLOW_MOD_FIXED                                                                             \
    "0000000000000000 0000000000000000 00 00 0000 0000 000a ffffffff ffffffff ffffffff 0000 0000"

static inline void
put_flow_mod(struct of_wr *w, const char *tlvs, const char *instructions)
{
    put_header(w, OFPT_FLOW_MOD);
    put_hex(w, FLOW_MOD_FIXED);
    put_match(w, tlvs);
    put_hex(w, instructions);
}

/* What decoding this message answers; frees it. */
static inline int
decode_bytes(struct of_bytes raw)
{
    struct of_arena arena;
    struct of_msg m;
    of_arena_init(&arena, ARENA_MAX);
    int err = of_decode(raw, &arena, &m);
    of_arena_free(&arena);
    test_free((void *)(uintptr_t)raw.p);
    return err;
}

#endif
