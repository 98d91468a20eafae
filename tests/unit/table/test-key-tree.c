/* SPDX-License-Identifier: Apache-2.0 */
/* How many kinds of packets the rules make, and a subtable whose tree takes several asks to grow. */
#include <classifier/classifier.h>
#include <shared/rcu.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CONNECTIONS 100000
#define KINDS       1024

static uint64_t seed = 1;
static struct classifier c;

static uint32_t
rnd(uint32_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static int
setup(void **state)
{
    classifier_init(&c);
    return 0;
}

static int
remove_one(void *ctx, struct flow *f)
{
    classifier_remove(&c, f);
    rcu_defer_free(f);
    return 0;
}

static int
teardown(void **state)
{
    struct flow_key all = {0};
    classifier_each_within(&c, &all, &all, remove_one, NULL);
    classifier_tidy(&c);
    assert_int_equal(c.by_mask.used, 0);
    rcu_wait();
    classifier_free(&c);
    return 0;
}

static struct flow *
add(const struct flow_key *key, const struct flow_key *mask, uint16_t priority)
{
    struct classifier_place at = classifier_place(&c, key, mask);
    struct flow *f = classifier_find(&at, key, priority);
    if (f)
        return f;
    f = classifier_new_flow(&c, &at, key, mask, 1, false);
    assert_non_null(f);
    f->priority = priority;
    assert_int_equal(classifier_insert(&c, f), 0);
    return f;
}

static struct flow_key
connection(uint16_t service)
{
    struct flow_key k = {.ip_proto = 6};
    of_set32(k.ip_src.v4, 0x0a000000 + rnd(4096));
    of_set32(k.ip_dst.v4, 0x0b000001);
    of_set16(k.tp_src, (uint16_t)(32768 + rnd(28232)));
    of_set16(k.tp_dst, service);
    return k;
}

/* Different kinds that the connections of this service make: packets of one kind need one entry. */
static unsigned
kinds(uint16_t service)
{
    static struct {
        struct flow_key bits, key;
    } seen[KINDS];
    unsigned n = 0;
    memset(seen, 0, sizeof seen);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        struct flow_key key = connection(service), bits = {0};
        unsigned k = 0;
        classifier_depends(&c, &key, classifier_lookup(&c, &key, NULL), &bits);
        for (int w = 0; w < KEY_WORDS; w++)
            key.w[w] &= bits.w[w];
        while (k < n && (memcmp(&seen[k].bits, &bits, sizeof bits) ||
                         memcmp(&seen[k].key, &key, sizeof key)))
            k++;
        if (k == n) {
            assert_in_range(n, 0, KINDS - 1);
            seen[n].bits = bits;
            seen[n++].key = key;
        }
    }
    return n;
}

static void
add_port(bool source, uint16_t port)
{
    struct flow_key key = {.ip_proto = 6}, mask = {.ip_proto = 0xff};
    of_set16(source ? key.tp_src : key.tp_dst, port);
    of_set16(source ? mask.tp_src : mask.tp_dst, 0xffff);
    add(&key, &mask, 100);
}

static void
test_applications(void **state)
{
    static const uint16_t ports[] = {22, 80, 443, 8080};
    struct flow_key any = {0};
    add(&any, &any, 0);
    for (unsigned i = 0; i < 4; i++) {
        add_port(false, ports[i]);
        add_port(true, ports[i]);
    }
    assert_in_range(kinds(443), 1, 20);
    assert_in_range(kinds(5001), 1, 40);
}

static void
test_rules_about_other_ports(void **state)
{
    struct flow_key any = {0};
    add(&any, &any, 0);
    for (unsigned i = 0; i < 100; i++) {
        add_port(false, (uint16_t)(1 + rnd(1023)));
        add_port(true, (uint16_t)(1 + rnd(1023)));
    }
    assert_in_range(kinds(50000), 1, 100);
}

static void
test_routes(void **state)
{
    struct flow_key any = {0};
    add(&any, &any, 0);
    for (unsigned i = 0; i < 1000; i++) {
        struct flow_key key = {0}, mask = {0};
        unsigned len = 8 + rnd(17);
        uint32_t m = ~0u << (32 - len);
        of_set32(key.ip_dst.v4, (rnd(1u << 31) << 1) & m);
        of_set32(mask.ip_dst.v4, m);
        add(&key, &mask, (uint16_t)len);
    }
    assert_int_equal(kinds(443), 1);
}

/* Flows come and go while the tree grows over many asks, and in between the whole mask is depended on. */
static void
test_a_large_subtable(void **state)
{
    static struct flow *flow[20000];
    struct flow_key mask = {0};
    memset(mask.eth_dst, 0xff, sizeof mask.eth_dst);
    unsigned n = sizeof flow / sizeof flow[0], asks = 0;
    for (unsigned i = 0; i < n; i++) {
        struct flow_key key = {.eth_dst = {2}};
        of_set32(&key.eth_dst[2], i * 2654435761u);
        flow[i] = add(&key, &mask, 1);
    }
    struct flow_key other = {.eth_dst = {4}}, bits = {0};
    classifier_depends(&c, &other, NULL, &bits);
    assert_memory_equal(&bits, &mask, sizeof bits);
    for (unsigned i = 0; i < n; i += 2)
        remove_one(NULL, flow[i]);
    do {
        memset(&bits, 0, sizeof bits);
        classifier_depends(&c, &other, NULL, &bits);
        assert_in_range(++asks, 1, 20);
    } while (!memcmp(&bits, &mask, sizeof bits));
    assert_int_equal(bits.eth_dst[0], 0xff);
    assert_int_equal(bits.eth_dst[5], 0);
    for (unsigned i = 0; i < n; i += 2) {
        struct flow_key key = {.eth_dst = {2}};
        of_set32(&key.eth_dst[2], i * 2654435761u);
        memset(&bits, 0, sizeof bits);
        classifier_depends(&c, &key, NULL, &bits);
        for (unsigned k = 1; k < n; k += 997 * 2) {
            struct flow_key has;
            flow_key_of(flow[k], &has);
            uint64_t diff = 0;
            for (int w = 0; w < KEY_WORDS; w++)
                diff |= (has.w[w] ^ key.w[w]) & bits.w[w];
            assert_true(diff);
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest tests[] = {TEST(applications), TEST(rules_about_other_ports),
                                       TEST(routes), TEST(a_large_subtable)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
