/* SPDX-License-Identifier: Apache-2.0 */
/* Multipart requests in several messages, 7.3.5. */
#include "fixture.h"

#define MORE      OFPMPF_REQ_MORE
#define BAD(code) OFPET_BAD_REQUEST, OFPBRC_##code

/* n tables of 64 bytes each */
static const uint8_t *
tables(uint32_t n)
{
    static uint8_t body[65000];
    memset(body, 0, sizeof body);
    for (uint32_t i = 0; i < n; i++)
        of_set16(body + i * 64, 64);
    return body;
}

static void
pieces_make_one_request(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    for (int i = 0; i < 4; i++) /* more than one message can hold */
        peer_multipart(p, OFPMP_TABLE_FEATURES, MORE, 5, tables(1000), 64000);
    peer_expect_nothing(p);
    peer_multipart(p, OFPMP_TABLE_FEATURES, 0, 5, tables(3), 192);
    peer_expect(p, OFPT_MULTIPART_REPLY, 5);
    assert_int_equal(f->tables, 4003);
    assert_int_equal(f->ch->parts_total, 0);
    peer_multipart(p, OFPMP_TABLE_FEATURES, 0, 5, tables(1), 64); /* nothing is left of it */
    peer_expect(p, OFPT_MULTIPART_REPLY, 5);
    assert_int_equal(f->tables, 1);
    peer_free(p);
}

static void
requests_may_interleave(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    peer_multipart(p, OFPMP_TABLE_FEATURES, MORE, 5, tables(2), 128);
    peer_multipart(p, OFPMP_TABLE_FEATURES, MORE, 6, tables(3), 192);
    peer_multipart(p, OFPMP_DESC, 0, 5, NULL, 0); /* same xid, another type */
    peer_expect(p, OFPT_MULTIPART_REPLY, 5);
    peer_multipart(p, OFPMP_TABLE_FEATURES, 0, 6, NULL, 0);
    peer_expect(p, OFPT_MULTIPART_REPLY, 6);
    assert_int_equal(f->tables, 3);
    peer_multipart(p, OFPMP_TABLE_FEATURES, 0, 5, tables(2), 128);
    peer_expect(p, OFPT_MULTIPART_REPLY, 5);
    assert_int_equal(f->tables, 4);
    peer_free(p);
}

static void
experimenter_header_is_in_each(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    f->n_ports = 1;
    peer_multipart(p, OFPMP_EXPERIMENTER, MORE, 5, "\1\2\3\4\0\0\0\1abcd", 12);
    peer_multipart(p, OFPMP_EXPERIMENTER, 0, 5, "\1\2\3\4\0\0\0\1efgh", 12);
    peer_expect(p, OFPT_MULTIPART_REPLY, 5);
    assert_int_equal(f->body_bytes, 8);
    peer_multipart(p, OFPMP_EXPERIMENTER, MORE, 6, "\1\2\3\4\0\0\0\1abcd", 12);
    peer_multipart(p, OFPMP_EXPERIMENTER, 0, 6, "\1\2\3\4\0\0\0\2efgh", 12);
    peer_expect_error(p, 6, BAD(BAD_LEN));
    peer_multipart(p, OFPMP_EXPERIMENTER, MORE, 7, "\1\2\3\4", 4);
    peer_expect_error(p, 7, BAD(BAD_LEN));
    peer_multipart(p, OFPMP_EXPERIMENTER, 0, 7, NULL, 0); /* the rest is passed over */
    peer_expect_nothing(p);
    peer_free(p);
}

static void
whole_is_checked(void **state)
{
    struct peer *p = peer_open(*state);
    peer_multipart(p, OFPMP_DESC, MORE, 5, NULL, 0);
    peer_multipart(p, OFPMP_DESC, 0, 5, "12345678", 8);
    peer_expect_error(p, 5, BAD(BAD_LEN));
    peer_expect_nothing(p);
    peer_free(p);
}

static void
too_large(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    for (int i = 0; i < 40; i++)
        peer_multipart(p, OFPMP_TABLE_FEATURES, MORE, 5, tables(1000), 64000);
    peer_multipart(p, OFPMP_TABLE_FEATURES, 0, 5, tables(1), 64);
    peer_expect_error(p, 5, BAD(MULTIPART_BUFFER_OVERFLOW)); /* once */
    peer_expect_nothing(p);
    assert_int_equal(f->tables, 0);
    assert_int_equal(f->ch->parts_total, 0);
    peer_multipart(p, OFPMP_TABLE_FEATURES, 0, 5, tables(1), 64);
    peer_expect(p, OFPT_MULTIPART_REPLY, 5);
    peer_free(p);
}

static void
too_many(void **state)
{
    struct fixture *f = *state;
    struct peer *p = peer_open(f);
    for (uint32_t i = 0; i < PARTS_MAX; i++)
        peer_multipart(p, OFPMP_TABLE_FEATURES, MORE, i, tables(1), 64);
    peer_expect_nothing(p);
    peer_multipart(p, OFPMP_TABLE_FEATURES, MORE, 99, tables(1), 64);
    peer_expect_error(p, 99, BAD(MULTIPART_BUFFER_OVERFLOW));
    for (uint32_t i = 0; i < PARTS_MAX; i++) {
        peer_multipart(p, OFPMP_TABLE_FEATURES, 0, i, tables(1), 64);
        peer_expect(p, OFPT_MULTIPART_REPLY, i);
        assert_int_equal(f->tables, 2);
    }
    peer_free(p);
}

static void
all_together_are_bounded(void **state)
{
    struct fixture *f = *state;
    struct peer *p[6];
    for (int i = 0; i < 6; i++) {
        p[i] = peer_open(f);
        for (uint32_t xid = 0; xid < PARTS_MAX; xid++)
            for (int n = 0; n < 15; n++)
                peer_multipart(p[i], OFPMP_TABLE_FEATURES, MORE, xid, tables(1000), 64000);
        fixture_turns(f, 5);
        assert_true(f->ch->parts_total <= PARTS_TOTAL_MAX);
    }
    for (int i = 0; i < 6; i++)
        peer_free(p[i]);
    fixture_turns(f, 20);
    assert_int_equal(f->ch->parts_total, 0);
}

/* Whoever takes most is refused, not the one that comes last; and nobody keeps its share for ever. */
static void
others_are_not_refused(void **state)
{
    struct fixture *f = *state;
    struct peer *p[5], *late = peer_open(f);
    for (int i = 0; i < 5; i++) {
        p[i] = peer_open(f);
        for (uint32_t xid = 0; xid < PARTS_MAX; xid++)
            for (int n = 0; n < 15; n++)
                peer_multipart(p[i], OFPMP_TABLE_FEATURES, MORE, xid, tables(1000), 64000);
    }
    for (int n = 0; n < 5; n++)
        peer_multipart(late, OFPMP_TABLE_FEATURES, MORE, 9, tables(1000), 64000);
    peer_multipart(late, OFPMP_TABLE_FEATURES, 0, 9, tables(1), 64);
    peer_expect(late, OFPT_MULTIPART_REPLY, 9);
    assert_int_equal(f->tables, 5001);
    for (struct conn *c = f->ch->conns; c; c = c->next)
        for (int i = 0; i < PARTS_MAX; i++)
            c->parts[i].last -= 2 * PART_IDLE_NS;
    channel_parts_due(f->ch);
    assert_int_equal(f->ch->parts_total, 0);
    for (int i = 0; i < 5; i++) { /* each request once, at last or before */
        for (uint32_t n = 0; n < PARTS_MAX; n++) {
            struct of_bytes m = peer_recv(p[i]);
            assert_int_equal(m.p[1], OFPT_ERROR);
            assert_int_equal(of_get16(m.p + 10), OFPBRC_MULTIPART_BUFFER_OVERFLOW);
        }
        peer_expect_nothing(p[i]);
        peer_free(p[i]);
    }
    peer_free(late);
}

/* Begun as master, finished as slave: the role counts at each piece. */
static void
a_slave_finishes_nothing(void **state)
{
    static const struct {
        uint16_t flags;
        size_t n;
    } rest[] = {{0, 0}, {0, 64}, {MORE, 64}, {MORE, 0}};
    struct fixture *f = *state;
    struct of_role slave = {.role = OFPCR_ROLE_SLAVE}, equal = {.role = OFPCR_ROLE_EQUAL};
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++) {
        struct peer *p = peer_open(f);
        peer_multipart(p, OFPMP_TABLE_FEATURES, MORE, 5, tables(1), 64);
        peer_request(p, OFPT_ROLE_REQUEST, 6, &slave);
        peer_expect(p, OFPT_ROLE_REPLY, 6);
        peer_multipart(p, OFPMP_TABLE_FEATURES, rest[i].flags, 5, tables(1), rest[i].n);
        peer_expect_error(p, 5, BAD(IS_SLAVE));
        peer_request(p, OFPT_ROLE_REQUEST, 7, &equal);
        peer_expect(p, OFPT_ROLE_REPLY, 7);
        if (rest[i].flags) /* what is left of it is no request of its own */
            peer_multipart(p, OFPMP_TABLE_FEATURES, 0, 5, tables(1), 64);
        peer_expect_nothing(p);
        assert_int_equal(f->tables, 0);
        peer_free(p);
    }
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        T(pieces_make_one_request),
        T(requests_may_interleave),
        T(experimenter_header_is_in_each),
        T(whole_is_checked),
        T(too_large),
        T(too_many),
        T(all_together_are_bounded),
        T(others_are_not_refused),
        T(a_slave_finishes_nothing),
    };
    return cmocka_run_group_tests_name("channel-parts", tests, NULL, NULL);
}
