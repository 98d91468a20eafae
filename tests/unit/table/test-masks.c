/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of masks, with few flows and many, that come and go: lookups compared with a linear
 * search, the bits that they depend on, the list of masks, and readers meanwhile. */
#include <classifier/classifier.h>
#include <shared/rcu.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MASKS 1500
#define WHOLE 1470 /* the first of which all words are whole, nearly */
#define FLOWS 6000

static uint64_t seed = 1;

static uint32_t
rnd(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

struct entry {
    struct flow *f;
    struct flow_key key;
    uint16_t mask;
};

static struct flow_key masks[MASKS];
static struct entry flows[FLOWS];
static unsigned n_flows;
static struct classifier c;

/* Prefixes of two addresses, ports or parts of them. */
static void
make_masks(void)
{
    for (unsigned i = 0; i < MASKS; i++) {
        struct flow_key *m = &masks[i];
        *m = (struct flow_key){0};
        of_set32(m->ip_src.v4, (uint32_t)(UINT64_C(0xffffffff00000000) >> i % 33));
        of_set32(m->ip_dst.v4, (uint32_t)(UINT64_C(0xffffffff00000000) >> i / 33 % 33));
        if (i >= WHOLE) { /* some with room for many keys */
            of_set32(m->ip_src.v4, ~(i - WHOLE));
            of_set32(m->ip_dst.v4, ~0u);
        }
        of_set16(m->tp_dst, i < 1089 ? 0 : i < WHOLE ? (uint16_t)(0x8421u << i % 13) : 0xffff);
    }
}

/* Few values, so that flows overlap; a bit here and there, so that keys nearly match. */
static void
random_key(struct flow_key *k)
{
    *k = (struct flow_key){0};
    of_set32(k->ip_src.v4, (0x0a010000 | rnd(4)) ^ (rnd(3) ? 0 : 1u << rnd(32)));
    of_set32(k->ip_dst.v4, (0x0a020000 | rnd(4)) ^ (rnd(3) ? 0 : 1u << rnd(32)));
    of_set16(k->tp_dst, (uint16_t)(rnd(2) ? 80 : rnd(65536)));
    k->tp_src[0] = (uint8_t)rnd(2); /* no mask has it */
}

static bool
matches(const struct entry *e, const struct flow_key *k)
{
    for (int i = 0; i < KEY_WORDS; i++)
        if ((e->key.w[i] ^ k->w[i]) & masks[e->mask].w[i])
            return false;
    return true;
}

static int
highest(const struct flow_key *k)
{
    int best = -1;
    for (unsigned i = 0; i < n_flows; i++)
        if (flows[i].f->priority > best && matches(&flows[i], k))
            best = flows[i].f->priority;
    return best;
}

static const struct entry *
entry_of(const struct flow *f)
{
    for (unsigned i = 0; i < n_flows; i++)
        if (flows[i].f == f)
            return &flows[i];
    return NULL;
}

static void
add(uint16_t mask, uint16_t priority)
{
    struct entry *e = &flows[n_flows];
    random_key(&e->key);
    e->mask = mask;
    struct classifier_place at = classifier_place(&c, &e->key, &masks[mask]);
    if (n_flows == FLOWS || classifier_find(&at, &e->key, priority))
        return;
    e->f = classifier_new_flow(&c, &at, &e->key, &masks[mask], 1, false);
    assert_non_null(e->f);
    e->f->priority = priority;
    assert_int_equal(classifier_insert(&c, e->f), 0);
    n_flows++;
}

static void
remove_at(unsigned i)
{
    classifier_remove(&c, flows[i].f);
    rcu_defer_free(flows[i].f);
    flows[i] = flows[--n_flows];
}

/* ------------------------------------------------------------------ checks */

/* Keys that differ in some of the bits that the result doesn't depend on. */
static void
check_alike(const struct flow_key *key, const struct flow_key *wc, const struct flow *f)
{
    for (int i = 0; i < 10; i++) {
        struct flow_key other = *key;
        for (int n = 1 + (int)rnd(4); n; n--) {
            static const uint8_t words[] = {0, 5, 8, 10};
            unsigned w = words[rnd(4)];
            other.w[w] ^= UINT64_C(1) << rnd(64) & ~wc->w[w];
        }
        for (int w = 0; i >= 5 && w < KEY_WORDS; w++)
            other.w[w] ^= (((uint64_t)rnd(1u << 31) << 33) ^ rnd(1u << 31)) & ~wc->w[w];
        assert_ptr_equal(classifier_lookup(&c, &other, NULL), f);
    }
}

static void
check_lookups(unsigned n)
{
    struct flow_key keys[CLASSIFIER_BATCH], mask[CLASSIFIER_BATCH] = {0};
    const struct flow_key *key[CLASSIFIER_BATCH];
    struct flow_key *wc[CLASSIFIER_BATCH];
    struct flow *found[CLASSIFIER_BATCH], *again[CLASSIFIER_BATCH];
    for (unsigned i = 0; i < n; i++) {
        random_key(&keys[i]);
        if (n_flows && rnd(3) == 0)
            keys[i] = flows[rnd(n_flows)].key;
        key[i] = &keys[i];
        wc[i] = &mask[i];
    }
    classifier_lookup_batch(&c, key, n, found, wc);
    classifier_lookup_batch(&c, key, n, again, NULL);
    for (unsigned i = 0; i < n; i++) {
        struct flow_key own = {0};
        assert_ptr_equal(again[i], found[i]);
        assert_ptr_equal(classifier_lookup(&c, key[i], NULL), found[i]);
        assert_ptr_equal(classifier_lookup(&c, key[i], &own), found[i]);
        assert_memory_equal(&own, wc[i], sizeof own);
        assert_int_equal(highest(key[i]), found[i] ? found[i]->priority : -1);
        if (found[i])
            assert_true(matches(entry_of(found[i]), key[i]));
        assert_int_equal(own.w[5] & ((struct flow_key){.tp_src = {0xff, 0xff}}).w[5], 0);
        check_alike(key[i], &own, found[i]);
        struct flow_key few = {0};
        classifier_depends(&c, key[i], found[i], &few);
        check_alike(key[i], &few, found[i]);
    }
}

/* Every mask that has flows is in the list once, in a block with its bound; tidied: no other is. */
static void
check_list(bool tidy)
{
    static bool listed[MASKS];
    unsigned n = 0;
    uint32_t last = UINT32_MAX;
    memset(listed, 0, sizeof listed);
    for (uint32_t i = 0; c.subs && i < c.subs->n; i++) {
        const struct mask_block *b = c.subs->block[i];
        assert_in_range(b->n, 1, 64);
        for (uint32_t k = 0; k < b->n; k++) {
            const struct subtable *s = b->v[k].sub;
            unsigned m = 0;
            while (memcmp(&masks[m], &s->mask, sizeof s->mask))
                m++;
            assert_true(b->v[k].max_priority <= last);
            last = b->v[k].max_priority;
            assert_false(listed[m]);
            listed[m] = true;
            assert_ptr_equal(s->block, b);
            assert_int_equal(s->bound, last);
            assert_true(s->max_priority <= last);
            assert_true(!tidy || (s->n_flows && s->max_priority == last));
            n++;
        }
    }
    for (unsigned i = 0; i < n_flows; i++)
        assert_true(listed[flows[i].mask]);
    assert_int_equal(c.subs ? c.subs->masks : 0, n);
    if (tidy)
        assert_int_equal(c.by_mask.used, n);
    if (tidy && c.subs)
        assert_in_range(c.subs->n, 0, n / 12 + 2);
}

static void
settle(void)
{
    classifier_tidy(&c);
    check_list(true);
    rcu_wait();
    check_lookups(16);
}

/* ------------------------------------------------------------------ tests */

static int
setup(void **state)
{
    make_masks();
    classifier_init(&c);
    return 0;
}

static int
teardown(void **state)
{
    while (n_flows)
        remove_at(n_flows - 1);
    classifier_tidy(&c);
    assert_int_equal(c.by_mask.used, 0);
    assert_null(classifier_lookup(&c, &(struct flow_key){0}, NULL));
    rcu_wait();
    classifier_free(&c);
    return 0;
}

/* n masks: a few make a plain list, 40 a block with a filter, more make several. */
static void
run_random(unsigned n, unsigned most, uint16_t priorities, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        bool grow = i / 400 % 2 == 0;
        if (n_flows < most && rnd(100) < (grow ? 80u : 20u))
            add((uint16_t)rnd(n), (uint16_t)(priorities ? rnd(priorities) : i));
        else if (n_flows)
            remove_at(rnd(n_flows));
        if (i % 50 == 0) {
            check_list(false);
            check_lookups(4);
        }
        if (rnd(100) == 0)
            settle();
    }
    settle();
}

static void
test_random(void **state)
{
    static const unsigned n[] = {5, 12, 40, 100, MASKS};
    for (unsigned i = 0; i < 5; i++)
        for (uint16_t priorities = 0; priorities < 3; priorities++) /* rising, equal, many */
            run_random(n[i], 200, priorities == 2 ? 500 : priorities, 1600);
}

static void
test_all_masks(void **state)
{
    for (unsigned i = 0; i < FLOWS / 2; i++)
        add((uint16_t)(i * 7 % MASKS), (uint16_t)rnd(3000));
    assert_true(c.subs->masks > 1024);
    check_list(false);
    for (unsigned i = 0; i < 30; i++)
        check_lookups(CLASSIFIER_BATCH);
    run_random(MASKS, FLOWS, 3000, 1200);
}

/* Masks that get too many flows for the filter, and lose them again. */
static void
test_large(void **state)
{
    for (unsigned round = 0; round < 6; round++) {
        for (unsigned i = 0; i < 3000; i++)
            add((uint16_t)(WHOLE + rnd(20)), (uint16_t)rnd(100));
        check_lookups(32);
        while (n_flows > 40)
            remove_at(rnd(n_flows));
        check_lookups(32);
        for (unsigned i = 0; i < 60; i++)
            add((uint16_t)(33 + rnd(60)), (uint16_t)rnd(100));
        check_lookups(32);
        settle();
    }
}

/* Whatever a change set adds comes into the list at its end, together. */
static void
test_change_sets(void **state)
{
    for (unsigned round = 0; round < 60; round++) {
        change_set_begin();
        for (unsigned i = rnd(200); i; i--)
            add((uint16_t)rnd(MASKS), (uint16_t)rnd(500));
        for (unsigned i = n_flows ? rnd(n_flows) / 2 : 0; i; i--)
            remove_at(rnd(n_flows));
        classifier_tidy(&c); /* waits for the end */
        change_set_end(rnd(2));
        check_list(false);
        check_lookups(8);
        for (unsigned i = rnd(20); i; i--)
            add((uint16_t)rnd(MASKS), (uint16_t)rnd(500));
        settle();
    }
}

/* A flow comes and goes: its bits in the filter do not add up. */
static void
test_worn(void **state)
{
    for (uint16_t i = 0; i < 40; i++)
        add((uint16_t)(1089 + i), i);
    for (unsigned i = 0; i < 20000; i++) {
        add(1089, 0);
        remove_at(n_flows - 1);
    }
    rcu_wait();
    uint64_t wide = 0;
    for (unsigned i = 0; i < 100; i++) {
        struct flow_key key, wc = {0};
        random_key(&key);
        of_set32(key.ip_src.v4, rnd(1u << 31));
        classifier_lookup(&c, &key, &wc);
        for (int w = 0; w < KEY_WORDS; w++)
            wide += (uint64_t)__builtin_popcountll(wc.w[w]);
    }
    assert_true(wide < 100 * 64);
    settle();
}

/* ------------------------------------------------------------------ readers */

#define STEADY 200

static struct entry steady[STEADY];
static struct reader {
    bool stop;
    unsigned rounds, wrong;
} reader;

static void *
read_all(void *arg)
{
    urcu_qsbr_register_thread();
    for (unsigned i = 0; !load_relaxed(&reader.stop); i = (i + 8) % STEADY) {
        const struct flow_key *key[8];
        struct flow_key wc[8] = {0}, *w[8];
        struct flow *found[8];
        change_set_enter();
        for (unsigned k = 0; k < 8; k++) {
            key[k] = &steady[i + k].key;
            w[k] = &wc[k];
        }
        classifier_lookup_batch(&c, key, 8, found, w);
        for (unsigned k = 0; k < 8; k++) {
            reader.wrong += found[k] != steady[i + k].f;
            reader.wrong += classifier_lookup(&c, key[k], NULL) != steady[i + k].f;
        }
        store_relaxed(&reader.rounds, reader.rounds + 1);
        rcu_reader_quiescent();
    }
    urcu_qsbr_unregister_thread();
    return NULL;
}

/* Flows that no change concerns are found in every lookup, whatever moves around them. */
static void
test_readers(void **state)
{
    pthread_t t;
    for (unsigned i = 0; i < STEADY; i++) { /* beyond the reach of the others' keys */
        struct entry *e = &steady[i];
        e->key = (struct flow_key){0};
        of_set32(e->key.ip_src.v4, 0xc0000000 + i);
        e->mask = (uint16_t)(32 + i % 40 * 33);
        struct classifier_place at = classifier_place(&c, &e->key, &masks[e->mask]);
        e->f = classifier_new_flow(&c, &at, &e->key, &masks[e->mask], 1, false);
        e->f->priority = (uint16_t)(1000 + i);
        assert_int_equal(classifier_insert(&c, e->f), 0);
    }
    assert_int_equal(pthread_create(&t, NULL, read_all, NULL), 0);
    while (!load_relaxed(&reader.rounds))
        sched_yield();
    for (unsigned i = 0; i < 6000; i++) {
        if (i % 1000 == 500)
            change_set_begin();
        if (n_flows < 300 && rnd(10) < 6)
            add((uint16_t)(33 + rnd(500)), (uint16_t)rnd(1000));
        else if (n_flows)
            remove_at(rnd(n_flows));
        if (i % 1000 == 600)
            change_set_end(true);
        if (i % 20 == 0) {
            classifier_tidy(&c);
            rcu_relieve();
        }
    }
    store_relaxed(&reader.stop, true);
    pthread_join(t, NULL);
    assert_int_equal(reader.wrong, 0);
    for (unsigned i = 0; i < STEADY; i++) {
        classifier_remove(&c, steady[i].f);
        rcu_defer_free(steady[i].f);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

/* Any argument: only the readers, for the thread sanitizer (tests/run). */
int
main(int argc, char **argv)
{
    const struct CMUnitTest readers[] = {TEST(readers)};
    const struct CMUnitTest tests[] = {
        TEST(random), TEST(all_masks), TEST(large), TEST(change_sets), TEST(worn), TEST(readers),
    };
    return argc > 1 ? cmocka_run_group_tests(readers, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}
