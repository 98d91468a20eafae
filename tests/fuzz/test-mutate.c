/* SPDX-License-Identifier: Apache-2.0 */
/* What mutate.c makes of messages: most of it is a row of whole messages again, with what is within them, and
 * nothing is written beyond the room. */
#include "structure.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define ROOM  512
#define TIMES 50000

const struct fuzz_format fuzz_format = FUZZ_OPENFLOW(1);

/* libFuzzer's part: other bytes, up to eight more or less of them. */
size_t
LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max)
{
    size_t n = size + (size_t)rand() % 17;
    n = n < 8 ? 0 : n - 8;
    n = n < max ? n : max;
    for (size_t i = size; i < n; i++)
        data[i] = (uint8_t)rand();
    if (n)
        data[(size_t)rand() % n] ^= (uint8_t)(1 << rand() % 8);
    return n;
}

/* A byte; a hello; a packet-out with two actions, the second one a set_field of ip_dscp; a hello. */
static const uint8_t good[] = {
    7, 4,  0, 0,  8,   0, 0,  0,  1,                                           /* */
    4, 13, 0, 56, 0,   0, 0,  2,  255, 255, 255, 255, 0, 0, 0, 1, 0, 32, 0, 0, /* */
    0, 0,  0, 0,  0,   0, 0,  16, 0,   0,   0,   2,   0, 0, 0, 0, 0, 0,  0, 0, /* */
    0, 25, 0, 16, 128, 0, 16, 1,  10,  0,   0,   0,   0, 0, 0, 0,              /* */
    4, 0,  0, 8,  0,   0, 0,  3,
};

static bool
whole(const uint8_t *p, size_t n)
{
    for (size_t at = 1; at < n; at += (size_t)p[at + 2] << 8 | p[at + 3])
        if (n - at < 8 || (size_t)(p[at + 2] << 8 | p[at + 3]) < 8 ||
            (size_t)(p[at + 2] << 8 | p[at + 3]) > n - at)
            return false;
    return n > 1;
}

/* Do the packet-out's actions still come to its end, whatever they are? */
static bool
whole_inside(const uint8_t *p, size_t n)
{
    size_t at = 1;
    while (at + 8 <= n && p[at + 1] != 13)
        at += (size_t)p[at + 2] << 8 | p[at + 3];
    if (at + 24 > n)
        return false;
    size_t end = at + ((size_t)p[at + 2] << 8 | p[at + 3]);
    for (at += 24; at + 4 <= end && p[at + 3] >= 4;)
        at += (((size_t)p[at + 2] << 8 | p[at + 3]) + 7) & ~(size_t)7;
    return at == end;
}

struct room {
    uint8_t before[16], data[ROOM], behind[16];
};

static void
put_good(struct room *r)
{
    memset(r, 0xa5, sizeof *r);
    memcpy(r->data, good, sizeof good);
}

static void
check_around(const struct room *r)
{
    for (unsigned i = 0; i < sizeof r->before; i++)
        assert_true(r->before[i] == 0xa5 && r->behind[i] == 0xa5);
}

static void
test_mutations(void **state)
{
    struct room r;
    unsigned row = 0, inside = 0, other = 0;
    assert_true(whole(good, sizeof good) && whole_inside(good, sizeof good));
    for (unsigned i = 0; i < TIMES; i++) {
        put_good(&r);
        size_t n = LLVMFuzzerCustomMutator(r.data, sizeof good, ROOM, i * 2654435761u);
        assert_in_range(n, 0, ROOM);
        check_around(&r);
        row += whole(r.data, n);
        inside += whole(r.data, n) && whole_inside(r.data, n);
        other += n != sizeof good || memcmp(r.data, good, n) != 0;
    }
    assert_in_range(row, TIMES / 2, TIMES);
    assert_in_range(inside, TIMES / 3, TIMES);
    assert_in_range(other, TIMES / 2, TIMES);
}

/* Again and again on what came out, also where there is hardly any room. */
static void
test_chains(void **state)
{
    struct room r;
    size_t n = sizeof good;
    put_good(&r);
    for (unsigned i = 0; i < TIMES; i++) {
        size_t max = i % 3 ? ROOM : n + 4 < ROOM ? n + 4 : ROOM;
        n = LLVMFuzzerCustomMutator(r.data, n, max, i * 2654435761u);
        assert_in_range(n, 0, max);
        check_around(&r);
        if (n < 9)
            put_good(&r), n = sizeof good;
    }
}

static void
test_crossing(void **state)
{
    static uint8_t other[ROOM];
    struct room r;
    unsigned row = 0;
    memcpy(other, good, sizeof good);
    for (unsigned i = 0; i < TIMES; i++) {
        put_good(&r);
        size_t n = LLVMFuzzerCustomCrossOver(good, sizeof good, other, sizeof good, r.data, ROOM,
                                             i * 2654435761u);
        assert_in_range(n, 0, ROOM);
        check_around(&r);
        row += whole(r.data, n);
    }
    assert_in_range(row, TIMES / 4, TIMES);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_crossing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
