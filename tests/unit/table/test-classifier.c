/* SPDX-License-Identifier: Apache-2.0 */
/* The classifier compared with a linear search, for random flows and keys; walks and overlaps
 * compared with their definitions; what is said of the flows that a key misses. */
#include <classifier/classifier.h>
#include <classifier/nearest.h>
#include <shared/rcu.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MAX_FLOWS 400

static uint64_t seed = 1;

static uint32_t
rnd(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

struct entry {
    struct flow *f;
    struct flow_key key, mask;
};

static struct entry flows[MAX_FLOWS];
static unsigned n_flows;

/* Few masks, words and values, so that flows overlap and hide each other. */
static void
random_mask(struct flow_key *m)
{
    static const uint8_t words[] = {0, 3, 5, 8};
    *m = (struct flow_key){0};
    for (unsigned i = 0; i < sizeof words; i++) {
        uint32_t kind = rnd(3);
        m->w[words[i]] = kind == 0 ? 0 : kind == 1 ? UINT64_MAX : 0xff00;
    }
}

static void
random_key(struct flow_key *k)
{
    static const uint8_t words[] = {0, 3, 5, 8};
    *k = (struct flow_key){0};
    for (unsigned i = 0; i < sizeof words; i++)
        k->w[words[i]] = rnd(3) << 8 | rnd(2);
}

static bool
matches(const struct entry *e, const struct flow_key *k)
{
    for (int i = 0; i < KEY_WORDS; i++)
        if ((e->key.w[i] ^ k->w[i]) & e->mask.w[i])
            return false;
    return true;
}

static struct flow *
linear(const struct flow_key *k, bool *tie)
{
    struct flow *best = NULL;
    *tie = false;
    for (unsigned i = 0; i < n_flows; i++) {
        if (!matches(&flows[i], k))
            continue;
        *tie = best && best->priority == flows[i].f->priority   ? true
               : !best || flows[i].f->priority > best->priority ? false
                                                                : *tie;
        if (!best || flows[i].f->priority > best->priority)
            best = flows[i].f;
    }
    return best;
}

static void
add_random(struct classifier *c)
{
    struct entry *e = &flows[n_flows];
    uint16_t priority = (uint16_t)rnd(20);
    random_key(&e->key);
    random_mask(&e->mask);
    struct classifier_place at = classifier_place(c, &e->key, &e->mask);
    if (classifier_find(&at, &e->key, priority))
        return;
    e->f = classifier_new_flow(c, &at, &e->key, &e->mask, 1, false);
    assert_non_null(e->f);
    e->f->priority = priority;
    assert_int_equal(classifier_insert(c, e->f), 0);
    n_flows++;
}

static void
remove_at(struct classifier *c, unsigned i)
{
    struct flow *f = flows[i].f;
    classifier_remove(c, f);
    rcu_defer_free(f);
    flows[i] = flows[--n_flows];
}

/* Keys that agree with this one in the bits of wc have the same flow. */
static void
check_alike(const struct classifier *c, const struct flow_key *key, const struct flow_key *wc,
            const struct flow *f)
{
    for (int i = 0; i < 20; i++) {
        struct flow_key other;
        random_key(&other);
        for (int w = 0; w < KEY_WORDS; w++)
            other.w[w] = (key->w[w] & wc->w[w]) | (other.w[w] & ~wc->w[w]);
        assert_ptr_equal(classifier_lookup(c, &other, NULL), f);
    }
}

static void
check_lookups(const struct classifier *c)
{
    struct flow_key keys[CLASSIFIER_BATCH];
    const struct flow_key *key[CLASSIFIER_BATCH];
    struct flow *together[CLASSIFIER_BATCH];
    unsigned n = 1 + rnd(CLASSIFIER_BATCH);
    for (unsigned i = 0; i < n; i++) {
        random_key(&keys[i]);
        key[i] = &keys[i];
    }
    struct flow_key mask[CLASSIFIER_BATCH], *wc[CLASSIFIER_BATCH];
    struct flow *again[CLASSIFIER_BATCH];
    for (unsigned i = 0; i < n; i++) {
        wc[i] = &mask[i];
        mask[i] = (struct flow_key){0};
    }
    classifier_lookup_batch(c, key, n, together, wc);
    classifier_lookup_batch(c, key, n, again, NULL);
    for (unsigned i = 0; i < n; i++) {
        struct flow_key own = {0};
        bool tie;
        struct flow *want = linear(key[i], &tie), *got = classifier_lookup(c, key[i], &own);
        assert_ptr_equal(got, together[i]);
        assert_ptr_equal(got, again[i]);
        assert_ptr_equal(got, classifier_lookup(c, key[i], NULL));
        check_alike(c, key[i], &own, got);
        check_alike(c, key[i], wc[i], got);
        if (tie) /* two of the same priority: either is right (6.4) */
            assert_int_equal(want->priority, got->priority);
        else
            assert_ptr_equal(want, got);
    }
}

static void
test_random(void **state)
{
    struct classifier c;
    classifier_init(&c);
    for (int round = 0; round < 3000; round++) {
        if (n_flows < MAX_FLOWS && (n_flows == 0 || rnd(1000) < (round / 500 % 2 ? 300u : 600u)))
            add_random(&c);
        else
            remove_at(&c, rnd(n_flows));
        assert_int_equal(c.n_flows, n_flows);
        if (round % 10 == 0) {
            check_lookups(&c);
            rcu_wait();
        }
    }
    while (n_flows)
        remove_at(&c, 0);
    assert_null(classifier_lookup(&c, &(struct flow_key){0}, NULL));
    rcu_wait();
    classifier_free(&c);
}

static bool
within(const struct entry *e, const struct flow_key *key, const struct flow_key *mask)
{
    for (int i = 0; i < KEY_WORDS; i++)
        if (mask->w[i] & ~e->mask.w[i] || (e->key.w[i] ^ key->w[i]) & mask->w[i])
            return false;
    return true;
}

static int
count_one(void *ctx, struct flow *f)
{
    ++*(unsigned *)ctx;
    return 0;
}

static void
test_walks(void **state)
{
    struct classifier c;
    classifier_init(&c);
    while (n_flows < 200)
        add_random(&c);
    for (int i = 0; i < 500; i++) {
        struct flow_key key, mask;
        unsigned want = 0, got = 0;
        bool overlap = false;
        uint16_t priority = (uint16_t)rnd(20);
        random_key(&key);
        random_mask(&mask);
        for (unsigned j = 0; j < n_flows; j++) {
            struct entry both = flows[j];
            want += within(&flows[j], &key, &mask);
            for (int w = 0; w < KEY_WORDS; w++)
                both.mask.w[w] &= mask.w[w];
            overlap |= flows[j].f->priority == priority && matches(&both, &key);
        }
        assert_int_equal(classifier_each_within(&c, &key, &mask, count_one, &got), 0);
        assert_int_equal(got, want);
        assert_int_equal(classifier_overlap(&c, &key, &mask, priority) != NULL, overlap);
    }
    while (n_flows)
        remove_at(&c, 0);
    rcu_wait();
    classifier_free(&c);
}

#define MANY 300000 /* of one mask: enough for an array in huge pages */

static void
key_of_many(uint32_t i, struct flow_key *key)
{
    *key = (struct flow_key){0};
    key->w[8] =
        UINT64_C(0x9e3779b97f4a7c15) * (i + 1); /* an odd factor makes all of them different */
}

static void
count_pause(void *ctx)
{
    ++*(unsigned *)ctx;
}

static void
test_many(void **state)
{
    static struct flow *many[MANY];
    struct classifier c;
    struct flow_key key, mask = {.w[8] = UINT64_MAX}, none = {0};
    classifier_init(&c);
    for (uint32_t i = 0; i < MANY; i++) {
        key_of_many(i, &key);
        struct classifier_place at = classifier_place(&c, &key, &mask);
        assert_null(classifier_find(&at, &key, 1));
        many[i] = classifier_new_flow(&c, &at, &key, &mask, 1, false);
        assert_non_null(many[i]);
        many[i]->priority = 1;
        assert_int_equal(classifier_insert(&c, many[i]), 0);
    }
    rcu_wait();
    for (uint32_t i = 0; i < MANY; i++) {
        key_of_many(i, &key);
        assert_ptr_equal(classifier_lookup(&c, &key, NULL), many[i]);
    }
    key_of_many(MANY, &key);
    assert_null(classifier_lookup(&c, &key, NULL));
    unsigned pauses = 0, got = 0;
    c.pause = count_pause;
    c.pause_ctx = &pauses;
    assert_int_equal(classifier_each_within(&c, &none, &none, count_one, &got), 0);
    assert_int_equal(got, MANY);
    assert_int_equal(pauses, c.walked / CLASSIFIER_PAUSE);
    assert_true(pauses >= MANY / CLASSIFIER_PAUSE);
    for (uint32_t i = 0; i < MANY; i++) {
        classifier_remove(&c, many[i]);
        free(many[i]);
    }
    rcu_wait();
    classifier_free(&c);
}

#define LOW  300 /* flows that are met and not compared, of the same mask as those that are */
#define HIGH 20

/* What is met on the way to the flows above takes from the budget; it is none of those compared. */
static void
test_nearest_of_some(void **state)
{
    struct flow *all[LOW + HIGH];
    struct classifier c;
    struct flow_key key, mask = {.w[8] = UINT64_MAX};
    struct nearest near;
    classifier_init(&c);
    for (uint32_t i = 0; i < LOW + HIGH; i++) {
        key_of_many(i, &key);
        struct classifier_place at = classifier_place(&c, &key, &mask);
        all[i] = classifier_new_flow(&c, &at, &key, &mask, 1, false);
        assert_non_null(all[i]);
        all[i]->priority = i < LOW ? 1 : 100;
        assert_int_equal(classifier_insert(&c, all[i]), 0);
    }
    key_of_many(LOW + HIGH, &key);
    uint32_t compared = 0;
    for (uint32_t budget = 0; budget <= LOW + HIGH; budget++) {
        classifier_nearest(&c, &key, 50, budget, &near);
        assert_int_equal(near.higher, HIGH);
        assert_in_range(near.higher - near.not_compared, compared, compared + 1);
        compared = near.higher - near.not_compared;
        assert_int_equal(near.n, compared < NEAREST_MOST ? compared : NEAREST_MOST);
    }
    assert_int_equal(compared, HIGH);
    for (uint32_t i = 0; i < LOW + HIGH; i++) {
        classifier_remove(&c, all[i]);
        free(all[i]);
    }
    rcu_wait();
    classifier_free(&c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_walks),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_nearest_of_some),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
