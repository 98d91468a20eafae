/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h and arena.h: limits, stickiness, alignment. */
#include "test.h"

#include <oflib/arena.h>
#include <oflib/wire.h>

static void
reads_big_endian(void **state)
{
    static const uint8_t b[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    struct of_rd r = of_rd(b, sizeof b);
    assert_int_equal(of_rd8(&r), 0x01);
    assert_int_equal(of_rd16(&r), 0x0203);
    assert_int_equal(of_rd32(&r), 0x04050607);
    assert_true(of_rd64(&r) == UINT64_C(0x08090a0b0c0d0e0f));
    assert_int_equal(of_rd_left(&r), 0);
    assert_false(r.short_read);
}

static void
short_read_is_zero_and_sticky(void **state)
{
    static const uint8_t b[] = {0xff, 0xff, 0xff};
    uint8_t out[4] = {1, 1, 1, 1};
    struct of_rd r = of_rd(b, sizeof b);
    of_rd_copy(&r, out, sizeof out);
    assert_true(r.short_read);
    assert_memory_equal(out, "\0\0\0\0", 4);
    assert_int_equal(of_rd_left(&r), 0);
    assert_int_equal(of_rd8(&r), 0);
    assert_true(r.short_read);
    of_rd_copy(&r, NULL, 0);
    assert_true(r.short_read);
}

static void
sub_reader(void **state)
{
    static const uint8_t b[] = {1, 2, 3, 4};
    struct of_rd r = of_rd(b, sizeof b);
    struct of_rd sub = of_rd_sub(&r, 3);
    assert_int_equal(of_rd_left(&sub), 3);
    assert_int_equal(of_rd_left(&r), 1);
    sub = of_rd_sub(&r, 2);
    assert_true(sub.short_read && r.short_read);
    assert_int_equal(of_rd_left(&sub), 0);
    r = of_rd(NULL, 0);
    sub = of_rd_sub(&r, 0);
    assert_false(sub.short_read || r.short_read);
}

static void
writes_big_endian(void **state)
{
    uint8_t b[15];
    struct of_wr w = of_wr_fixed(b, sizeof b);
    of_wr8(&w, 0x01);
    of_wr16(&w, 0x0203);
    of_wr32(&w, 0x04050607);
    of_wr64(&w, UINT64_C(0x08090a0b0c0d0e0f));
    for (uint8_t i = 0; i < sizeof b; i++)
        assert_int_equal(b[i], i + 1);
    assert_false(w.overflow);
    of_wr8(&w, 0);
    assert_true(w.overflow);
    assert_int_equal(w.len, sizeof b);
}

static void
overflow_is_sticky(void **state)
{
    uint8_t b[4] = {9, 9, 9, 9};
    struct of_wr w = of_wr_fixed(b, sizeof b);
    of_wr64(&w, 1);
    assert_true(w.overflow);
    assert_null(of_wr_add(&w, 1));
    assert_int_equal(w.len, 0);
    assert_int_equal(b[0], 9);
    of_wr_patch16(&w, 0, 1);
    assert_int_equal(b[0], 9);
}

static void
aligns_and_patches(void **state)
{
    uint8_t b[32];
    memset(b, 0xff, sizeof b);
    struct of_wr w = of_wr_fixed(b, sizeof b);
    of_wr8(&w, 1);
    size_t start = w.len;
    of_wr_align(&w, start, 8);
    assert_int_equal(w.len, 1);
    of_wr8(&w, 2);
    of_wr_align(&w, start, 8);
    assert_int_equal(w.len, 9);
    assert_memory_equal(b, "\1\2\0\0\0\0\0\0\0", 9);
    of_wr_patch16(&w, 7, 0x1234);
    assert_memory_equal(b + 7, "\x12\x34", 2);
    of_wr_patch16(&w, 8, 0x5678); /* the second byte lies past the end */
    assert_int_equal(b[8], 0x34);
}

static void
grows_up_to_max(void **state)
{
    struct of_wr w = of_wr_grow(1000);
    for (int i = 0; i < 1000; i++)
        of_wr8(&w, (uint8_t)i);
    assert_false(w.overflow);
    assert_int_equal(w.len, 1000);
    assert_int_equal(w.buf[999], 999 & 0xff);
    of_wr8(&w, 0);
    assert_true(w.overflow);
    of_wr_free(&w);
    assert_null(w.buf);
    assert_int_equal(w.max, 1000);
    assert_false(w.overflow);
}

static void
add_nothing(void **state)
{
    uint8_t b[1];
    struct of_wr w = of_wr_fixed(b, 0), g = of_wr_grow(10);
    of_wr_bytes(&w, NULL, 0);
    of_wr_bytes(&g, NULL, 0);
    assert_false(w.overflow || g.overflow);
    of_wr_free(&g);
}

static void
arena_zeroes_and_aligns(void **state)
{
    struct of_arena a;
    of_arena_init(&a, 1 << 16);
    for (int round = 0; round < 3; round++) {
        for (size_t n = 0; n < 100; n++) {
            uint8_t *p = of_arena_alloc(&a, n);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(p[i], 0);
                p[i] = 0xff;
            }
        }
        of_arena_reset(&a);
    }
    of_arena_free(&a);
}

static void
arena_keeps_what_it_gave(void **state)
{
    struct of_arena a;
    uint32_t *p[200];
    of_arena_init(&a, 1 << 20);
    for (uint32_t i = 0; i < 200; i++) {
        p[i] = of_arena_array(&a, 100, sizeof *p[i]);
        assert_non_null(p[i]);
        for (int k = 0; k < 100; k++)
            p[i][k] = i;
    }
    for (uint32_t i = 0; i < 200; i++)
        assert_true(p[i][0] == i && p[i][99] == i);
    of_arena_free(&a);
}

static void
arena_limit(void **state)
{
    struct of_arena a;
    of_arena_init(&a, 10000);
    assert_null(of_arena_alloc(&a, 10001));
    assert_null(of_arena_array(&a, SIZE_MAX / 2, 4));
    assert_null(of_arena_array(&a, SIZE_MAX, SIZE_MAX));
    size_t given = 0;
    while (of_arena_alloc(&a, 100))
        given += 100;
    assert_true(given <= 10000 && given > 5000);
    assert_true(a.total <= a.max);
    of_arena_reset(&a);
    assert_non_null(of_arena_alloc(&a, 100));
    of_arena_free(&a);
    of_arena_init(&a, 50);
    assert_non_null(of_arena_alloc(&a, 48));
    assert_null(of_arena_alloc(&a, 48));
    of_arena_free(&a);
}

/* Messages of the same size again and again: after the first rounds nothing is allocated. */
static void
arena_reset_keeps_a_chunk(void **state)
{
    struct of_arena a;
    of_arena_init(&a, 1 << 20);
    size_t total = 0;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 60; i++)
            assert_non_null(of_arena_alloc(&a, 1000));
        if (round == 10)
            total = a.total;
        of_arena_reset(&a);
        if (round > 10)
            assert_true(a.total <= total);
    }
    of_arena_reset(&a);
    struct of_arena_chunk *kept = a.chunks;
    for (int i = 0; i < 60; i++)
        assert_non_null(of_arena_alloc(&a, 1000));
    assert_ptr_equal(a.chunks, kept);
    of_arena_free(&a);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_big_endian),
        cmocka_unit_test(short_read_is_zero_and_sticky),
        cmocka_unit_test(sub_reader),
        cmocka_unit_test(writes_big_endian),
        cmocka_unit_test(overflow_is_sticky),
        cmocka_unit_test(aligns_and_patches),
        cmocka_unit_test(grows_up_to_max),
        cmocka_unit_test(add_nothing),
        cmocka_unit_test(arena_zeroes_and_aligns),
        cmocka_unit_test(arena_keeps_what_it_gave),
        cmocka_unit_test(arena_limit),
        cmocka_unit_test(arena_reset_keeps_a_chunk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
