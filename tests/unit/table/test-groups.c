/* SPDX-License-Identifier: Apache-2.0 */
/* Group-mods that must be refused: bad fields, circles and chains that are too deep. */
#include <flow/refs.h>
#include <group/groups.h>
#include <shared/rcu.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define NONE OFPG_ANY

static struct groups *groups;

static bool
port_ok(void *sw, uint32_t no)
{
    return no && no < 100;
}

static bool
group_ok(void *sw, uint32_t id)
{
    return groups_find(groups, id) != NULL;
}

static int
setup(void **state)
{
    struct groups_ops ops = {.env = {.port_ok = port_ok, .group_ok = group_ok},
                             .port_exists = port_ok};
    groups = groups_new(1, &ops);
    return groups ? 0 : -1;
}

static int
teardown(void **state)
{
    rcu_wait();
    groups_free(groups);
    rcu_wait();
    return 0;
}

/* A bucket: weight, the group that it forwards to, the group that it watches. */
struct one {
    uint16_t weight;
    uint32_t to, watch;
};

static int
mod(uint16_t command, uint8_t type, uint32_t id, unsigned n, const struct one *one)
{
    struct of_action_group act[4];
    struct of_bucket bucket[4];
    void *acts[4], *buckets[4];
    struct of_group_mod m = {
        .command = command, .type = type, .group_id = id, .buckets = {.n = n, .v = buckets}};
    for (unsigned i = 0; i < n; i++) {
        act[i] = (struct of_action_group){.row = OF_ACTION(GROUP), .group_id = one[i].to};
        acts[i] = &act[i];
        bucket[i] = (struct of_bucket){.weight = one[i].weight,
                                       .watch_port = OFPP_ANY,
                                       .watch_group = one[i].watch,
                                       .actions = {.n = one[i].to != NONE, .v = &acts[i]}};
        buckets[i] = &bucket[i];
    }
    return groups_mod(groups, &m, 0);
}

static int
leads(uint16_t command, uint32_t id, uint32_t to)
{
    return mod(command, OFPGT_ALL, id, 1, &(struct one){.to = to, .watch = NONE});
}

static int
watches(uint16_t command, uint32_t id, uint32_t watch)
{
    return mod(command, OFPGT_FF, id, 1, &(struct one){.to = NONE, .watch = watch});
}

static void
make_chain(int (*link)(uint16_t, uint32_t, uint32_t), uint32_t first, unsigned n)
{
    assert_int_equal(leads(OFPGC_ADD, first, NONE), 0);
    for (uint32_t i = 1; i < n; i++)
        assert_int_equal(link(OFPGC_ADD, first + i, first + i - 1), 0);
}

/* ------------------------------------------------------------------ depth */

static void
test_chain_made_deeper_from_within(void **state)
{
    make_chain(leads, 1, 8);
    make_chain(leads, 101, 9);
    assert_int_equal(leads(OFPGC_MODIFY, 1, 109),
                     OF_GROUP_MOD_FAILED(CHAINING_UNSUPPORTED)); /* 8 + 9 */
    assert_int_equal(leads(OFPGC_MODIFY, 1, 108), 0);
    assert_int_equal(leads(OFPGC_MODIFY, 101, 1), OF_GROUP_MOD_FAILED(LOOP));
    assert_int_equal(leads(OFPGC_ADD, 200, NONE), 0);
    assert_int_equal(leads(OFPGC_MODIFY, 101, 200), OF_GROUP_MOD_FAILED(CHAINING_UNSUPPORTED));
    assert_int_equal(leads(OFPGC_MODIFY, 1, 107), 0);
    assert_int_equal(leads(OFPGC_MODIFY, 101, 200), 0);
}

static void
test_watching_made_deeper_from_within(void **state)
{
    make_chain(watches, 1, 8);
    make_chain(watches, 101, 9);
    assert_int_equal(watches(OFPGC_MODIFY, 1, 109), OF_GROUP_MOD_FAILED(WATCH_UNSUPPORTED));
    assert_int_equal(watches(OFPGC_MODIFY, 1, 108), 0);
    assert_int_equal(watches(OFPGC_ADD, 9, 8), OF_GROUP_MOD_FAILED(WATCH_UNSUPPORTED));
}

/* A watched group may be deleted and added again as one that watches. */
static void
test_deeper_by_coming_back(void **state)
{
    make_chain(watches, 1, 16);
    assert_int_equal(mod(OFPGC_DELETE, OFPGT_ALL, 1, 0, NULL), 0);
    assert_int_equal(leads(OFPGC_ADD, 50, NONE), 0);
    assert_int_equal(watches(OFPGC_ADD, 1, 50), OF_GROUP_MOD_FAILED(WATCH_UNSUPPORTED));
    assert_int_equal(watches(OFPGC_ADD, 1, 16), OF_GROUP_MOD_FAILED(BAD_WATCH));
    assert_int_equal(leads(OFPGC_ADD, 1, NONE), 0);
}

static void
test_circles(void **state)
{
    make_chain(watches, 1, 3);
    assert_int_equal(watches(OFPGC_MODIFY, 1, 3), OF_GROUP_MOD_FAILED(BAD_WATCH));
    assert_int_equal(watches(OFPGC_MODIFY, 1, 1), OF_GROUP_MOD_FAILED(BAD_WATCH));
    assert_int_equal(watches(OFPGC_MODIFY, 2, 3), OF_GROUP_MOD_FAILED(BAD_WATCH));
    make_chain(leads, 11, 3);
    assert_int_equal(leads(OFPGC_MODIFY, 11, 13), OF_GROUP_MOD_FAILED(LOOP));
    assert_int_equal(leads(OFPGC_MODIFY, 11, 11), OF_GROUP_MOD_FAILED(LOOP));
    assert_int_equal(leads(OFPGC_MODIFY, 11, 3),
                     0); /* chains of actions and of watching are separate */
    /* Only fast failover groups watch; in others some controllers leave any number in the field. */
    assert_int_equal(mod(OFPGC_ADD, OFPGT_ALL, 20, 1, &(struct one){0, NONE, 20}), 0);
    assert_int_equal(mod(OFPGC_MODIFY, OFPGT_ALL, 20, 1, &(struct one){0, NONE, 20}), 0);
}

static void
test_a_transaction_that_fails_leaves_the_counts(void **state)
{
    make_chain(watches, 1, 16);
    change_set_begin();
    assert_int_equal(watches(OFPGC_MODIFY, 2, 2), OF_GROUP_MOD_FAILED(BAD_WATCH));
    assert_int_equal(leads(OFPGC_MODIFY, 2, NONE), 0);
    assert_int_equal(watches(OFPGC_ADD, 50, 16), 0);
    change_set_end(false);
    rcu_wait();
    assert_int_equal(watches(OFPGC_ADD, 50, 16), OF_GROUP_MOD_FAILED(WATCH_UNSUPPORTED));
    assert_int_equal(leads(OFPGC_ADD, 60, NONE), 0);
    assert_int_equal(watches(OFPGC_MODIFY, 1, 60), OF_GROUP_MOD_FAILED(WATCH_UNSUPPORTED));
}

/* ------------------------------------------------------------------ weights */

static void
test_select_needs_a_weight(void **state)
{
    static const struct one none[] = {{0, NONE, NONE}, {0, NONE, NONE}},
                            some[] = {{0, NONE, NONE}, {1, NONE, NONE}};
    assert_int_equal(mod(OFPGC_ADD, OFPGT_SELECT, 1, 2, none), OF_GROUP_MOD_FAILED(INVALID_GROUP));
    assert_null(groups_find(groups, 1));
    assert_int_equal(mod(OFPGC_ADD, OFPGT_SELECT, 1, 2, some), 0);
    assert_int_equal(mod(OFPGC_MODIFY, OFPGT_SELECT, 1, 2, none),
                     OF_GROUP_MOD_FAILED(INVALID_GROUP));
    assert_int_equal(groups_find(groups, 1)->total_weight, 1);
    assert_int_equal(mod(OFPGC_MODIFY, OFPGT_ALL, 1, 2, some), OF_GROUP_MOD_FAILED(INVALID_GROUP));
    assert_int_equal(mod(OFPGC_MODIFY, OFPGT_ALL, 1, 2, none), 0);
    assert_int_equal(mod(OFPGC_ADD, OFPGT_SELECT, 2, 0, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

/* ------------------------------------------------------------------ order */

/* Whatever leads to a group, or watches it, comes behind it. */
static void
test_in_order(void **state)
{
    uint32_t *ids, n;
    make_chain(leads, 1, 10);
    make_chain(watches, 101, 10);
    assert_int_equal(leads(OFPGC_MODIFY, 1, 110), 0); /* a low number behind a high one */
    assert_int_equal(leads(OFPGC_ADD, 200, NONE), 0);
    assert_true(groups_in_order(groups, &ids, &n));
    assert_int_equal(n, 21);
    uint32_t place[256] = {0};
    for (uint32_t i = 0; i < n; i++)
        place[ids[i]] = i + 1;
    for (uint32_t id = 2; id <= 10; id++)
        assert_true(place[id] > place[id - 1] && place[100 + id] > place[99 + id]);
    assert_true(place[1] > place[110] && place[200]);
    free(ids);
}

/* ------------------------------------------------------------------ fields */

static void
test_refused(void **state)
{
    static const struct one plain[2] = {{.to = NONE, .watch = NONE}, {.to = NONE, .watch = NONE}},
                            heavy = {.weight = 1, .to = NONE, .watch = NONE},
                            watching = {.to = NONE, .watch = 77};
    assert_int_equal(mod(OFPGC_ADD, OFPGT_FF + 1, 1, 1, plain), OF_GROUP_MOD_FAILED(BAD_TYPE));
    assert_int_equal(mod(OFPGC_ADD, OFPGT_ALL, OFPG_MAX + 1, 1, plain),
                     OF_GROUP_MOD_FAILED(INVALID_GROUP));
    assert_int_equal(mod(OFPGC_ADD, OFPGT_INDIRECT, 1, 2, plain),
                     OF_GROUP_MOD_FAILED(INVALID_GROUP));
    assert_int_equal(mod(OFPGC_ADD, OFPGT_INDIRECT, 1, 0, NULL),
                     OF_GROUP_MOD_FAILED(INVALID_GROUP));
    assert_int_equal(mod(OFPGC_ADD, OFPGT_ALL, 1, 1, &heavy), OF_GROUP_MOD_FAILED(INVALID_GROUP));
    assert_int_equal(mod(OFPGC_ADD, OFPGT_FF, 1, 1, plain), OF_GROUP_MOD_FAILED(BAD_WATCH));
    assert_int_equal(mod(OFPGC_ADD, OFPGT_FF, 1, 1, &watching), OF_GROUP_MOD_FAILED(BAD_WATCH));
    assert_int_equal(mod(9, OFPGT_ALL, 1, 1, plain), OF_GROUP_MOD_FAILED(BAD_COMMAND));
    assert_int_equal(mod(OFPGC_DELETE, OFPGT_ALL, OFPG_MAX + 1, 0, NULL),
                     OF_GROUP_MOD_FAILED(INVALID_GROUP));
    assert_int_equal(mod(OFPGC_ADD, OFPGT_INDIRECT, 1, 1, plain), 0);
}

/* A group that no reply could report, and one with too many buckets. */
static void
test_too_large(void **state)
{
    static struct of_bucket buckets[GROUP_MAX_BUCKETS + 1];
    static void *v[GROUP_MAX_BUCKETS + 1];
    struct of_group_mod m = {.command = OFPGC_ADD, .group_id = 1, .buckets = {.n = 2, .v = v}};
    for (size_t i = 0; i < GROUP_MAX_BUCKETS + 1; i++) {
        buckets[i].watch_port = OFPP_ANY;
        buckets[i].watch_group = OFPG_ANY;
        v[i] = &buckets[i];
    }
    buckets[0].actions.raw.n = OF_MSG_MAX - 24 - 2 * 16 + 1; /* REPLY_HEAD, groups-check.c */
    assert_int_equal(groups_mod(groups, &m, 0), OF_BAD_REQUEST(BAD_LEN));
    buckets[0].actions.raw.n = 0;
    m.buckets.n = GROUP_MAX_BUCKETS + 1;
    assert_int_equal(groups_mod(groups, &m, 0), OF_GROUP_MOD_FAILED(OUT_OF_BUCKETS));
}

/* ------------------------------------------------------------------ limits */

static void
test_limits(void **state)
{
    static const struct one some[3] = {
        {.to = NONE, .watch = NONE}, {.to = NONE, .watch = NONE}, {.to = NONE, .watch = NONE}};
    struct limits l = limits_default(UINT64_MAX);
    int full = OF_GROUP_MOD_FAILED(OUT_OF_BUCKETS);
    l.groups = 2;
    l.buckets = 3;
    groups_limit(groups, &l);
    assert_int_equal(mod(OFPGC_ADD, OFPGT_ALL, 1, 1, some), 0);
    assert_int_equal(mod(OFPGC_ADD, OFPGT_ALL, 2, 3, some), full);
    assert_int_equal(mod(OFPGC_ADD, OFPGT_ALL, 2, 2, some), 0);
    assert_int_equal(mod(OFPGC_ADD, OFPGT_ALL, 3, 0, NULL), OF_GROUP_MOD_FAILED(OUT_OF_GROUPS));
    assert_int_equal(mod(OFPGC_MODIFY, OFPGT_ALL, 1, 2, some), full);
    assert_int_equal(mod(OFPGC_MODIFY, OFPGT_ALL, 2, 1, some), 0);
    assert_int_equal(mod(OFPGC_MODIFY, OFPGT_ALL, 1, 2, some), 0); /* there is room by now */
    l.buckets = 9;
    l.group_bytes = 1; /* less than there is: what gets no larger needs no room */
    groups_limit(groups, &l);
    assert_int_equal(mod(OFPGC_MODIFY, OFPGT_ALL, 1, 3, some), full);
    assert_int_equal(mod(OFPGC_MODIFY, OFPGT_ALL, 1, 2, some), 0);
    assert_int_equal(mod(OFPGC_DELETE, OFPGT_ALL, OFPG_ALL, 0, NULL), 0);
    assert_int_equal(mod(OFPGC_ADD, OFPGT_ALL, 1, 0, NULL), full);
}

/* Ids that nobody refers to any more are freed after a while, the others stay. */
static void
unused_references_go(void **state)
{
    struct refs t;
    refs_init(&t);
    refs_get(&t, 1)->buckets = 1;
    for (uint32_t id = 2; id < 10000; id++)
        assert_non_null(refs_get(&t, id));
    assert_true(t.tab.used < 2000);
    assert_int_equal(refs_find(&t, 1)->buckets, 1);
    refs_free(&t);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(chain_made_deeper_from_within),
        TEST(watching_made_deeper_from_within),
        TEST(deeper_by_coming_back),
        TEST(circles),
        TEST(a_transaction_that_fails_leaves_the_counts),
        TEST(select_needs_a_weight),
        TEST(in_order),
        TEST(refused),
        TEST(too_large),
        TEST(limits),
        cmocka_unit_test(unused_references_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
