/* SPDX-License-Identifier: Apache-2.0 */
/* The table of entries over plain memory; the test looks packets up as the programs do. */
#include <offload-inside.h>

#include <packet/key-hash.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ENTRIES 64
#define CPUS    2

struct fixture {
    struct offload_memory m;
    struct offload *o;
};

static int
setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    uint32_t sets = offload_sets_for(ENTRIES);
    f->m = (struct offload_memory){.control = calloc(1, sizeof *f->m.control),
                                   .set = calloc(sets, sizeof *f->m.set),
                                   .entry = calloc(ENTRIES, sizeof *f->m.entry),
                                   .hits = calloc(ENTRIES * CPUS, sizeof *f->m.hits),
                                   .cpu = aligned_alloc(128, CPUS * sizeof *f->m.cpu),
                                   .port = calloc(OFFLOAD_PORTS, sizeof *f->m.port),
                                   .meter = calloc(OFFLOAD_METERS, sizeof *f->m.meter),
                                   .n_entries = ENTRIES,
                                   .n_sets = sets,
                                   .n_cpus = CPUS};
    memset(f->m.cpu, 0, CPUS * sizeof *f->m.cpu);
    f->o = offload_table_new(&f->m);
    assert_non_null(f->o);
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    struct fixture *f = *state;
    offload_table_free(f->o);
    free(f->m.control);
    free(f->m.set);
    free(f->m.entry);
    free(f->m.hits);
    free(f->m.cpu);
    free(f->m.port);
    free(f->m.meter);
    free(f);
    return 0;
}

/* The first word: an interface, or its mask. */
static uint64_t
in_port(uint32_t ifindex)
{
    uint64_t word = 0;
    memcpy(&word, &ifindex, sizeof ifindex);
    return word;
}

/* A packet of that last word, and a rule for all packets with these bits of it. */
static struct offload_rule
rule_of(uint64_t word, uint64_t bits)
{
    struct offload_rule r = {.longest = 1514, .super = OFFLOAD_MAX_FRAME};
    r.key[0] = in_port(7);
    r.mask[0] = in_port(UINT32_MAX);
    r.key[9] = word;
    r.mask[9] = bits;
    return r;
}

static uint32_t
hash_of(const struct offload_control *c, const struct offload_mask *m, const uint64_t *key)
{
    uint64_t sum = c->hash_sum;
    for (int i = 0; i < OFFLOAD_WORDS; i++) {
        uint64_t w = key[i] & m->bits[i];
        sum += (c->hash_word[i][0] + (uint32_t)w) * (c->hash_word[i][1] + (w >> 32));
    }
    return key_hash_end(sum);
}

/* As find() in bpf/lookup.h; -1: none. */
static int
look_up(const struct fixture *f, const uint64_t *key)
{
    const struct offload_control *c = f->m.control;
    for (unsigned n = 0; n < c->n_masks; n++) {
        unsigned i = c->order >> 4 * n & 15;
        const struct offload_mask *m = &c->mask[i];
        uint32_t hash = hash_of(c, m, key);
        for (int k = 0; m->used && k < OFFLOAD_WAYS; k++) {
            uint64_t way = f->m.set[hash & c->sets].way[k];
            const struct offload_entry *e = &f->m.entry[(uint32_t)way - 1];
            uint64_t diff = 0;
            if (!(uint32_t)way || way >> 32 != hash || e->mask != i)
                continue;
            for (int w = 0; w < OFFLOAD_WORDS; w++)
                diff |= (key[w] & m->bits[w]) ^ e->key[w];
            if (!diff && e->state == OFFLOAD_LIVE)
                return (int)((uint32_t)way - 1);
        }
    }
    return -1;
}

static int
look(const struct fixture *f, uint64_t word)
{
    struct offload_rule r = rule_of(word, 0);
    return look_up(f, (const uint64_t *)r.key);
}

static void
test_what_is_inserted_is_found(void **state)
{
    struct fixture *f = *state;
    struct offload_rule r = rule_of(0x1234, 0xff00);
    uint32_t id;
    assert_true(offload_rule_op(&r, (struct offload_op){.kind = OFFLOAD_OUTPUT, .arg = 9}));
    f->m.port[7].ifindex = 7;
    assert_int_equal(offload_insert(f->o, &r, &id), 0);
    assert_int_equal(f->m.port[7].entries, 1);
    assert_int_equal(look(f, 0x1234), id);
    assert_int_equal(look(f, 0x12ff), id);
    assert_int_equal(look(f, 0x1334), -1);
    assert_int_equal(f->m.entry[id].op[0].arg, 9);
    uint32_t same = ENTRIES;
    assert_int_equal(offload_insert(f->o, &r, &same), -EEXIST);
    assert_int_equal(same, id);
    offload_join(f->o, id, true);
    assert_true(offload_joins(f->o, id));
    f->m.entry[id].hold_new = 0;
    offload_join(f->o, id, false);
    assert_true(!offload_joins(f->o, id) && f->m.entry[id].hold_new);
    offload_withdraw(f->o, id);
    assert_int_equal(f->m.port[7].entries, 0);
    assert_int_equal(look(f, 0x1234), -1);
    assert_int_equal(offload_counts(f->o).masks, 0);
    offload_quiesce(f->o);
    offload_release(f->o, id);
    assert_int_equal(offload_counts(f->o).entries, 0);
}

/* Of a port, with these bits beside in_port. */
static struct offload_rule
rule_at(uint32_t ifindex, uint64_t bits)
{
    struct offload_rule r = rule_of(UINT64_MAX, bits);
    r.key[0] = in_port(ifindex);
    return r;
}

/* The nth of rules that take all masks: the last ones' are of whole fields. */
static struct offload_rule
rule_to_fill(unsigned n)
{
    unsigned fine = OFFLOAD_MASKS - OFFLOAD_COARSE;
    struct offload_rule r = rule_at(7, n < fine ? UINT64_C(1) << n : 0);
    if (n >= fine)
        r.mask[4 + n - fine] = r.key[4 + n - fine] = 1;
    return r;
}

/* A rule that finds no place for its mask gets an entry under that of its whole fields, then under a wider one, or none. */
static void
test_masks_are_few(void **state)
{
    struct fixture *f = *state;
    uint32_t id;
    for (unsigned i = 0; i < OFFLOAD_MASKS; i++) {
        struct offload_rule r = rule_to_fill(i);
        assert_int_equal(offload_insert(f->o, &r, &id), 0);
        assert_int_equal(offload_counts(f->o).masks, i + 1);
    }
    struct offload_rule whole = rule_to_fill(OFFLOAD_MASKS - 1),
                        none = rule_of(UINT64_MAX, UINT64_MAX);
    whole.mask[7] = whole.key[7] = 0x40;
    whole.key[9] = 0; /* none of the others' */
    assert_int_equal(offload_insert(f->o, &whole, &id), 0);
    assert_int_equal(look_up(f, (const uint64_t *)whole.key), id);
    whole.key[7] = 0x41;
    assert_int_equal(look_up(f, (const uint64_t *)whole.key),
                     -1); /* the mask has the whole field */
    assert_int_equal(offload_insert(f->o, &none, &id), -ENOSPC);
}

/* The masks' places, in the order in which programs look. */
static void
check_order(const struct fixture *f, unsigned n, const uint8_t *places)
{
    assert_int_equal(f->m.control->n_masks, n);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(f->m.control->order >> 4 * i & 15, places[i]);
}

static void
test_masks_by_use(void **state)
{
    struct fixture *f = *state;
    uint32_t id[4];
    for (unsigned i = 0; i < 4; i++) {
        struct offload_rule r = rule_to_fill(i);
        assert_int_equal(offload_insert(f->o, &r, &id[i]), 0);
    }
    check_order(f, 4, (const uint8_t[]){0, 1, 2, 3});
    offload_order_masks(f->o, (const uint64_t[OFFLOAD_MASKS]){5, 0, 7, 5});
    check_order(f, 4, (const uint8_t[]){2, 0, 3, 1});
    offload_withdraw(f->o, id[0]);
    check_order(f, 3, (const uint8_t[]){2, 3, 1});
    struct offload_rule r = rule_to_fill(5);
    assert_int_equal(offload_insert(f->o, &r, &id[0]), 0);
    check_order(f, 4, (const uint8_t[]){2, 3, 1, 0});
}

/* Withdraws the entries of a mask.  How many are left. */
static unsigned
give_up(struct offload *o, const uint32_t *id, unsigned n, uint32_t mask)
{
    unsigned left = 0;
    for (unsigned i = 0; i < n; i++) {
        if (offload_mask_of(o, id[i]) == mask)
            offload_withdraw(o, id[i]);
        left += o->m.entry[id[i]].state == OFFLOAD_LIVE;
    }
    return left;
}

/* A port that has taken all masks gives up half of them to a second one, one by one, and no more. */
static void
test_masks_are_shared(void **state)
{
    struct fixture *f = *state;
    uint32_t hog[OFFLOAD_MASKS], id;
    unsigned left = OFFLOAD_MASKS, taken = 0;
    for (unsigned i = 0; i < OFFLOAD_MASKS; i++) {
        struct offload_rule r = rule_to_fill(i);
        assert_int_equal(offload_mask_due(f->o, &r), -1);
        assert_int_equal(offload_insert(f->o, &r, &hog[i]), 0);
    }
    for (unsigned i = 0; i < OFFLOAD_MASKS; i++) {
        struct offload_rule more = rule_at(7, UINT64_C(1) << (16 + i)),
                            r = rule_at(9, UINT64_C(1) << (32 + i));
        assert_int_equal(offload_mask_due(f->o, &more), -1);
        int mask = offload_mask_due(f->o, &r);
        if (mask < 0)
            break;
        left = give_up(f->o, hog, OFFLOAD_MASKS, (uint32_t)mask);
        assert_int_equal(offload_insert(f->o, &r, &id), 0);
        assert_int_equal(left, OFFLOAD_MASKS - ++taken);
    }
    assert_int_equal(taken, OFFLOAD_MASKS / 2);
    struct offload_rule third = rule_at(11, UINT64_C(1) << 50),
                        same = rule_at(11, UINT64_C(1) << 32);
    assert_int_equal(offload_mask_due(f->o, &same), -1); /* the second port's mask serves it */
    assert_true(offload_mask_due(f->o, &third) >= 0);
}

/* 256 possible processors are no reason to lock 200 MB. */
static void
test_default_of_entries(void **state)
{
    static const uint64_t gb = UINT64_C(1) << 30;
    assert_int_equal(offload_entries_default(8 * gb, 2), 16384);
    assert_int_equal(offload_entries_default(8 * gb, 64), 16384);
    assert_int_equal(offload_entries_default(gb / 4, 4), 16384);
    assert_int_equal(offload_entries_default(gb / 8, 4), 4096);
    assert_int_equal(offload_entries_default(gb / 32, 1), 1024);
    assert_int_equal(offload_entries_default(512 * gb, 256), 4096);
    assert_true(offload_memory_bytes(16384, 256) > 200000000);
    assert_true(offload_memory_bytes(4096, 256) <= 64 << 20);
    assert_int_equal(offload_entries_default(1 << 20, 4096), 256);
}

static void
test_entries_are_bounded(void **state)
{
    struct fixture *f = *state;
    uint32_t id[ENTRIES], n = 0, more;
    for (uint64_t i = 0; n < ENTRIES && i < 10 * ENTRIES; i++) {
        struct offload_rule r = rule_of(i, UINT64_MAX);
        if (!offload_insert(f->o, &r, &id[n])) /* else its set is full */
            n++;
    }
    assert_true(n > ENTRIES * 3 / 4);
    struct offload_rule r = rule_of(1 << 20, UINT64_MAX);
    if (n == ENTRIES)
        assert_int_equal(offload_insert(f->o, &r, &more), -ENOSPC);
    while (n) {
        offload_withdraw(f->o, id[--n]);
        offload_release(f->o, id[n]);
    }
    assert_int_equal(offload_insert(f->o, &r, &more), 0);
    assert_int_equal(look(f, 1 << 20), more);
}

/* Hits are those since the entry was made, of all processors. */
static void
test_hits(void **state)
{
    struct fixture *f = *state;
    struct offload_rule r = rule_of(1, UINT64_MAX);
    uint32_t id, again;
    assert_int_equal(offload_insert(f->o, &r, &id), 0);
    f->m.hits[id] = (struct offload_hits){.packets = 3, .bytes = 300, .frames = 2};
    f->m.hits[ENTRIES + id] = (struct offload_hits){.packets = 5, .bytes = 500, .frames = 5};
    assert_int_equal(offload_read(f->o, id).packets, 8);
    assert_int_equal(offload_read(f->o, id).bytes, 800);
    assert_int_equal(offload_read(f->o, id).frames, 7);
    offload_withdraw(f->o, id);
    offload_release(f->o, id);
    assert_int_equal(offload_insert(f->o, &r, &again), 0);
    assert_int_equal(again, id);
    assert_int_equal(offload_read(f->o, id).packets, 0);
}

/* A processor whose program never ended costs a wait, but doesn't hang. */
static void
test_quiesce_ends(void **state)
{
    struct fixture *f = *state;
    f->m.cpu[1].inside = 41;
    offload_quiesce(f->o);
    assert_int_equal(f->m.cpu[1].inside, 41);
}

static void
test_rule_of_a_key(void **state)
{
    struct flow_key key = {0}, bits = {0};
    struct offload_rule r = {0};
    key.in_port[3] = 5;
    key.eth_type[0] = 8;
    key.metadata[0] = bits.metadata[0] = 1; /* no packet comes in with metadata */
    bits.eth_type[0] = bits.eth_type[1] = 0xff;
    key.metadata[0] = 0;
    assert_true(offload_rule_match(&r, &key, &bits, 77));
    assert_int_equal(r.key[0], in_port(77));
    assert_int_equal(r.mask[0], in_port(UINT32_MAX));
    key.nd_target[3] = bits.nd_target[3] = 1; /* the programs don't read it */
    key.has_nd = KEY_HAS_ND_TARGET;
    assert_false(offload_rule_match(&r, &key, &bits, 77));
    struct offload_rule full = {0};
    for (int i = 0; i < OFFLOAD_OPS; i++)
        assert_true(offload_rule_op(&full, (struct offload_op){.kind = OFFLOAD_DEC_TTL}));
    assert_false(offload_rule_op(&full, (struct offload_op){.kind = OFFLOAD_DEC_TTL}));
}

/* ARP's link-layer addresses are where other packets have labels and service numbers: a rule about either is for
 * packets of its type only. */
static void
test_rule_of_arp(void **state)
{
    struct flow_key key = {0}, bits = {0}, same, mask;
    struct offload_rule r = {0};
    uint64_t words[OFFLOAD_WORDS] = {0};
    of_set16(key.eth_type, 0x806);
    of_set16(key.vlan_vid, KEY_HAS_L3);
    memcpy(key.nd_sll, "\2\3\4\5\6\7", 6);
    memcpy(key.nd_tll, "\10\11\12\13\14\15", 6);
    bits.nd_sll[1] = 0xf0;
    bits.mpls_label[0] = 0xff; /* in the table is a flow about labels */
    assert_true(offload_rule_match(&r, &key, &bits, 77));
    offload_rule_packets(&r, &same, &mask);
    assert_int_equal(of_get16(mask.eth_type), 0xffff);
    assert_int_equal(of_get16(mask.vlan_vid), KEY_HAS_L3);
    assert_memory_equal(mask.nd_sll, bits.nd_sll, 6);
    assert_int_equal(same.nd_sll[1], 0);
    assert_int_equal(mask.mpls_label[0], 0);
    key.nd_sll[1] = 0x13;
    assert_true(offload_rule_match(&r, &key, &bits, 77));
    offload_rule_packets(&r, &same, &mask);
    assert_int_equal(same.nd_sll[1], 0x10);
    offload_key_words(&key, words);
    assert_memory_equal(&words[4], key.nd_sll, 6);
    assert_memory_equal(&words[5], key.nd_tll, 6);
    of_set16(key.eth_type, 0x8847);
    memset(key.nd_sll, 0, 6);
    memset(key.nd_tll, 0, 6);
    assert_true(offload_rule_match(&r, &key, &bits, 77));
    offload_rule_packets(&r, &same, &mask);
    assert_int_equal(of_get16(mask.eth_type), 0xffff);
    assert_int_equal(mask.mpls_label[0], 0xff);
    bits = (struct flow_key){.mpls_tc = 0};
    assert_true(offload_rule_match(&r, &key, &bits, 77));
    offload_rule_packets(&r, &same, &mask);
    assert_int_equal(of_get16(mask.eth_type), 0);
    assert_int_equal(mask.nd_sll[0], 0); /* it may be ARP, whatever its addresses are */
}

/* Whether it is neighbour discovery must be sure where a flow asks for targets. */
static void
test_rule_beside_nd(void **state)
{
    struct flow_key key = {.ip_proto = 6}, bits = {.has_nd = KEY_HAS_ND_TARGET}, same, mask;
    struct offload_rule r = {0};
    of_set16(key.eth_type, 0x86dd);
    of_set16(key.vlan_vid, KEY_HAS_L3 | KEY_HAS_L4);
    assert_true(offload_rule_match(&r, &key, &bits, 77));
    offload_rule_packets(&r, &same, &mask);
    assert_int_equal(mask.ip_proto, 0xff);
    assert_int_equal(mask.nd_target[0], 0xff);
    key.ip_proto = 58;
    key.tp_src[0] = 128;
    assert_true(offload_rule_match(&r, &key, &bits, 77));
    offload_rule_packets(&r, &same, &mask);
    assert_int_equal(mask.tp_src[0], 0xff);
    assert_int_equal(same.tp_src[0], 128);
    assert_int_equal(of_get16(mask.vlan_vid), KEY_HAS_L3 | KEY_HAS_L4);
}

static void
test_meters(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < OFFLOAD_METERS; i++)
        assert_int_equal(offload_meter_new(f->o), i);
    assert_int_equal(offload_meter_new(f->o), -1);
    offload_meter(f->o, 70)->n_bands = 1;
    offload_meter_free(f->o, 70);
    assert_int_equal(offload_meter_new(f->o), 70);
    assert_int_equal(offload_meter(f->o, 70)->n_bands, 0);
}

/* Whoever opens it first: else everybody knows which packets fill a set. */
static void
test_the_hash_has_a_secret(void **state)
{
    struct fixture *f = *state;
    assert_int_not_equal(f->m.control->hash_sum, 0);
    assert_int_equal(f->m.control->hash_sum, key_hash_begin());
}

/* A change of one port while another's is being settled is not forgotten. */
static void
test_stale_ports(void **state)
{
    struct fixture *f = *state;
    struct offload_rule r = rule_of(1, UINT64_MAX);
    uint32_t id, first = offload_port_bit(3), second = offload_port_bit(40);
    r.ports = first | second;
    assert_int_equal(offload_insert(f->o, &r, &id), 0);
    assert_int_equal(f->m.entry[id].ports, first | second);
    offload_port_stale(f->o, 3);
    assert_int_equal(offload_stale(f->o), first);
    offload_port_stale(f->o, 40);
    offload_settled(f->o, first);
    assert_int_equal(f->m.control->stale, second);
    assert_int_equal(look(f, 1), id); /* it is the control thread that withdraws it */
    offload_withdraw(f->o, id);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, setup, teardown)
        TEST(the_hash_has_a_secret), TEST(what_is_inserted_is_found),
        TEST(masks_by_use),          TEST(masks_are_few),
        TEST(masks_are_shared),      TEST(default_of_entries),
        TEST(entries_are_bounded),   TEST(hits),
        TEST(stale_ports),           TEST(quiesce_ends),
        TEST(rule_of_a_key),         TEST(rule_of_arp),
        TEST(rule_beside_nd),        TEST(meters)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
