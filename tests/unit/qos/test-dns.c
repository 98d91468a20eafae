/* SPDX-License-Identifier: Apache-2.0 */
/* DNS answers (qos/profile/dns.h) and the addresses that are known (names.h). */
#include "test.h"

#include <qos/profile/names.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An answer: video.example.org is edge.test, which is 192.0.2.7 and 2001:db8::7. */
static const uint8_t good[] = {
    0x12, 0x34, 0x81, 0x80, 0,   1,   0,   3,   0,   0,   0,   0,                 /* 3 answers */
    5,    'V',  'i',  'd',  'e', 'o', 7,   'e', 'x', 'a', 'm', 'p', 'l',  'e', 3, /* at 12 */
    'o',  'r',  'g',  0,    0,   1,   0,   1,                                     /* A, IN */
    0xc0, 12,   0,    5,    0,   1,   0,   0,   2,   0,   0,   11,                /* CNAME, 512 s */
    4,    'e',  'd',  'g',  'e', 4,   't', 'e', 's', 't', 0,                      /* at 47 */
    0xc0, 47,   0,    28,   0,   1,   0,   0,   4,   0,   0,   16,  0x20, 1,   0x0d,
    0xb8,                                                         /* AAAA, 1024 s */
    0,    0,    0,    0,    0,   0,   0,   0,   0,   0,   0,   7, /* */
    0xc0, 47,   0,    1,    0,   1,   0,   0,   0,   60,  0,   4,   192,  0,   2,
    7, /* A, 60 s */
};

static bool
read_it(const uint8_t *p, size_t n, struct qos_dns_answer *out)
{
    /* No byte more, so that the sanitizer sees a read past the end. */
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, p, n);
    bool read = qos_dns_read((struct of_bytes){copy, n}, out);
    free(copy);
    return read;
}

/* What a reader may rely on, whatever came. */
static void
check_bounds(const struct qos_dns_answer *a)
{
    assert_in_range(a->n_names, 1, QOS_DNS_CHAIN);
    assert_true(a->n <= QOS_DNS_ADDRESSES);
    for (size_t i = 0; i < a->n_names; i++) {
        assert_non_null(memchr(a->names[i], 0, QOS_DNS_NAME));
        for (const char *c = a->names[i]; *c; c++)
            assert_non_null(strchr("abcdefghijklmnopqrstuvwxyz0123456789-_?.", *c));
    }
    for (size_t i = 0; i < a->n; i++)
        assert_true(a->v[i].name < a->n_names);
}

static void
an_answer(void **state)
{
    struct qos_dns_answer a;
    assert_true(read_it(good, sizeof good, &a));
    check_bounds(&a);
    assert_int_equal(a.n_names, 2);
    assert_string_equal(a.names[0], "video.example.org");
    assert_string_equal(a.names[1], "edge.test");
    assert_int_equal(a.n, 2);
    assert_true(a.v[0].v6 && !a.v[1].v6);
    assert_int_equal(a.v[0].ttl, 512);
    assert_int_equal(a.v[1].ttl, 60);
    assert_int_equal(a.v[1].name, 1);
    assert_memory_equal(a.v[1].bytes, "\xc0\x00\x02\x07", 4);
    for (size_t n = 0; n < sizeof good; n++)
        assert_false(read_it(good, n, &a));
}

/* One byte changed makes it another message. */
static void
is_refused(size_t at, uint8_t value)
{
    struct qos_dns_answer a;
    uint8_t bytes[sizeof good];
    memcpy(bytes, good, sizeof good);
    bytes[at] = value;
    if (read_it(bytes, sizeof bytes, &a))
        fail_msg("byte %zu as %u is taken", at, value);
}

static void
what_is_none(void **state)
{
    is_refused(2, 0x01);  /* a question */
    is_refused(2, 0x89);  /* another opcode */
    is_refused(3, 0x83);  /* NXDOMAIN */
    is_refused(5, 0);     /* no question */
    is_refused(5, 2);     /* two */
    is_refused(7, 4);     /* more records than there are */
    is_refused(6, 0xff);  /* many more */
    is_refused(12, 64);   /* a label of a kind that nobody uses */
    is_refused(12, 0xc0); /* a pointer forward */
    is_refused(34, 3);    /* another class's question */
    is_refused(36, 35);   /* a pointer to itself */
    is_refused(36, 36);   /* to its own second byte */
    is_refused(46, 10);   /* the target is longer than its record */
    is_refused(69, 17);   /* an AAAA of 17 bytes */
    is_refused(97, 3);    /* an A of 3 bytes */
}

static void
what_is_left_out(void **state)
{
    static const uint8_t addresses[][4] = {
        {0, 0, 0, 0}, {127, 0, 0, 1}, {224, 0, 0, 1}, {255, 255, 255, 255}};
    struct qos_dns_answer a;
    uint8_t bytes[sizeof good];
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        memcpy(bytes, good, sizeof good);
        memcpy(bytes + sizeof good - 4, addresses[i], 4);
        assert_true(read_it(bytes, sizeof bytes, &a));
        assert_int_equal(a.n, 1);
    }
    memcpy(bytes, good, sizeof good);
    bytes[70] = 0xff; /* multicast */
    assert_true(read_it(bytes, sizeof bytes, &a));
    assert_int_equal(a.n, 1);
    memcpy(bytes, good, sizeof good);
    bytes[92] = 0x80; /* a TTL of 2^31 is 0 */
    assert_true(read_it(bytes, sizeof bytes, &a));
    assert_int_equal(a.v[1].ttl, 0);
    bytes[91] = 3; /* another class: no record of ours */
    assert_true(read_it(bytes, sizeof bytes, &a));
    assert_int_equal(a.n, 1);
}

/* A chain of aliases that ends where it begins, and one that is longer than what is followed. */
static void
aliases(void **state)
{
    uint8_t bytes[4096];
    struct qos_dns_answer a;
    size_t n = 0, first = 12;
    memcpy(bytes, "\0\0\x81\x80\0\1\0\0\0\0\0\0\1a\0\0\1\0\1", 19);
    n = 19;
    for (int i = 0; i < 40; i++) { /* each an alias of the next; the last of the first */
        const uint8_t head[] = {0xc0, 0, 0, 5, 0, 1, 0, 0, 0, 9, 0, 0};
        memcpy(bytes + n, head, sizeof head);
        bytes[n] = (uint8_t)(0xc0 | first >> 8);
        bytes[n + 1] = (uint8_t)first;
        bytes[n + 11] = i == 39 ? 2 : 4;
        n += sizeof head;
        first = n;
        memcpy(bytes + n, (const uint8_t[]){2, (uint8_t)('a' + i / 26), (uint8_t)('a' + i % 26), 0},
               4);
        if (i == 39)
            memcpy(bytes + n, "\xc0\x0c", 2);
        n += bytes[n - 1];
    }
    bytes[7] = 40;
    assert_true(read_it(bytes, n, &a));
    check_bounds(&a);
    assert_int_equal(a.n_names, QOS_DNS_CHAIN);
    bytes[7] = 1;
    memcpy(bytes + 31, "\1a\0", 4); /* an alias of itself, in a record that is too long */
    assert_false(read_it(bytes, n, &a));
}

/* Anything: never a read past the end (the sanitizer), and bounds hold. */
static void
random_messages(void **state)
{
    struct qos_dns_answer a;
    uint8_t bytes[sizeof good + 64];
    size_t taken = 0;
    srandom(16);
    for (int i = 0; i < 200000; i++) {
        size_t n = sizeof good;
        memcpy(bytes, good, sizeof good);
        for (long k = random() % 4; k >= 0; k--)
            bytes[(size_t)random() % n] = (uint8_t)random();
        if (random() % 4 == 0)
            n = (size_t)random() % (sizeof good + 1);
        if (!read_it(bytes, n, &a))
            continue;
        taken++;
        check_bounds(&a);
    }
    assert_in_range(taken, 1000, 199999);
}

/* ------------------------------------------------------------------------ frames */

static void
found(const uint8_t *frame, size_t n, size_t length)
{
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, frame, n);
    struct of_bytes b = qos_dns_find((struct of_bytes){copy, n});
    assert_int_equal(b.n, length);
    if (length)
        assert_memory_equal(b.p, "DNS", 3);
    free(copy);
}

static void
frames(void **state)
{
    static const uint8_t v4[] = {0, 0,  0, 0,  0, 0,  0, 0,  0, 0, 0,   0,   8,   0, 0x45, 0,
                                 0, 31, 0, 0,  0, 0,  9, 17, 0, 0, 1,   1,   1,   1, 2,    2,
                                 2, 2,  0, 53, 0, 99, 0, 11, 0, 0, 'D', 'N', 'S', 0, 0,    0};
    uint8_t copy[sizeof v4 + 8];
    found(v4, sizeof v4, 3); /* padding behind the packet is not of it */
    for (size_t n = 0; n < 45; n++)
        found(v4, n, 0);
    static const struct {
        size_t at;
        uint8_t value;
    } changes[] = {{12, 9}, {14, 0x65}, {14, 0x44}, {14, 0x4f}, {17, 30}, {20, 0x20},
                   {21, 1}, {23, 6},    {35, 54},   {39, 7},    {39, 12}, {16, 1}};
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        memcpy(copy, v4, sizeof v4);
        copy[changes[i].at] = changes[i].value;
        found(copy, sizeof v4, 0);
    }
    memcpy(copy, v4, 12); /* two tags */
    memcpy(copy + 12, "\x88\xa8\0\1\x81\0\0\2", 8);
    memcpy(copy + 20, v4 + 12, sizeof v4 - 12);
    found(copy, sizeof copy, 3);
    uint8_t v6[14 + 40 + 11] = {[12] = 0x86, [13] = 0xdd, [14] = 0x60, [19] = 11, [20] = 17};
    memcpy(v6 + 54, v4 + 34, 11);
    found(v6, sizeof v6, 3);
    for (size_t n = 0; n < sizeof v6; n++)
        found(v6, n, 0);
    v6[20] = 44; /* a fragment */
    found(v6, sizeof v6, 0);
}

/* ------------------------------------------------------------------------- names */

static void
patterns(void **state)
{
    static const char *const right[] = {"a", "example.org", "*.example.org", "a-b._c.d", "*.org"};
    static const char *const wrong[] = {"",      "*",    "*.",    ".",    "a..b",       "a.",
                                        "*.*.b", "a*.b", "a b.c", "a.b*", "\xc3\xa4.de"};
    char big[300];
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++)
        assert_true(qos_dns_pattern(right[i]));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(qos_dns_pattern(wrong[i]));
    memset(big, 'a', sizeof big);
    big[64] = '\0';
    assert_false(qos_dns_pattern(big));
    assert_true(qos_dns_pattern(big + 1));
    assert_true(qos_dns_fits("Example.org", "example.org"));
    assert_false(qos_dns_fits("example.org", "a.example.org"));
    assert_true(qos_dns_fits("*.Example.org", "a.example.org"));
    assert_true(qos_dns_fits("*.example.org", "b.a.example.org"));
    assert_false(qos_dns_fits("*.example.org", "example.org"));
    assert_false(qos_dns_fits("*.example.org", ".example.org"));
    assert_false(qos_dns_fits("*.example.org", "badexample.org"));
    assert_false(qos_dns_fits("*.example.org", "a.example.org.test"));
}

static struct qos_dns_address
host(uint8_t n)
{
    return (struct qos_dns_address){.bytes = {10, 0, 0, n}, .ttl = 300};
}

static void
known_addresses(void **state)
{
    struct qos_names_entry room[3];
    struct qos_names t = {.limits = {60, 600, 2, 3}, .v = room};
    struct qos_dns_address a = host(1), b = host(2), c = host(3), six = {.v6 = true};
    assert_int_equal(qos_names_seconds(&t, 0), 60);
    assert_int_equal(qos_names_seconds(&t, 300), 300);
    assert_int_equal(qos_names_seconds(&t, UINT32_MAX), 600);
    assert_int_equal(qos_names_learn(&t, 0, "x", &a, 1000), QOS_NAMES_NEW);
    assert_int_equal(qos_names_learn(&t, 0, "x", &a, 1029), QOS_NAMES_SAME);
    assert_int_equal(qos_names_learn(&t, 0, "x", &a, 1030), QOS_NAMES_AGAIN);
    assert_int_equal(qos_names_learn(&t, 1, "x", &a, 1030), QOS_NAMES_NEW); /* another rule's */
    assert_int_equal(qos_names_learn(&t, 0, "x", &b, 1031), QOS_NAMES_NEW);
    assert_int_equal(qos_names_learn(&t, 0, "y", &c, 1031), QOS_NAMES_FULL); /* in all */
    assert_int_equal(qos_names_learn(&t, 0, "y", &c, 1630),
                     QOS_NAMES_NEW); /* the first two are over */
    assert_int_equal(t.n, 2);
    t.limits.per_name = 1;
    assert_int_equal(qos_names_learn(&t, 0, "y", &six, 1630), QOS_NAMES_FULL); /* of the name */
    assert_int_equal(qos_names_learn(&t, 0, "z", &six, 1630), QOS_NAMES_NEW);
    assert_int_equal(qos_names_learn(&t, 0, "x", &a, 9000), QOS_NAMES_NEW); /* all are */
    assert_int_equal(t.n, 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer),        cmocka_unit_test(what_is_none),
        cmocka_unit_test(what_is_left_out), cmocka_unit_test(aliases),
        cmocka_unit_test(random_messages),  cmocka_unit_test(frames),
        cmocka_unit_test(patterns),         cmocka_unit_test(known_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
