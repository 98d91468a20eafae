/* SPDX-License-Identifier: Apache-2.0 */
/* Table features to the wire and back, and which ones are refused. */
#include <table/features.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_TABLES 254
#define BIT(n)   (UINT64_C(1) << (n))

/* Encodes the features as an element of a message, decodes and reads them: they are the same. */
static int
there_and_back(const struct table_features *f, uint8_t id, struct table_features *out)
{
    struct table_features_wire *w = calloc(1, sizeof *w);
    struct table_features all;
    struct of_arena arena;
    struct of_wr bytes = of_wr_grow(OF_MSG_MAX);
    of_arena_init(&arena, 1 << 20);
    table_features_write(f, id, 3, w);
    void *v[] = {&w->body};
    struct of_list one = {.n = 1, .v = v}, back;
    assert_int_equal(of_encode_list(&bytes, &of_list_table_features, &one), 0);
    struct of_bytes raw = {bytes.buf, bytes.len};
    assert_int_equal(of_decode_list(raw, &of_list_table_features, &arena, &back), 0);
    assert_int_equal(back.n, 1);
    table_features_all(&all, id, N_TABLES, 1000);
    int err = table_features_read(OF_AT(&back, 0, struct of_table_features), &all, out);
    of_wr_free(&bytes);
    of_arena_free(&arena);
    free(w);
    return err;
}

static void
test_all_round_trip(void **state)
{
    struct table_features all, back;
    for (unsigned id = 0; id < N_TABLES; id++) {
        table_features_all(&all, (uint8_t)id, N_TABLES, 1000);
        strcpy(all.name, "a name of thirty-one characters");
        assert_int_equal(there_and_back(&all, (uint8_t)id, &back), 0);
        assert_memory_equal(&all, &back, sizeof all);
        assert_true(table_features_same(&all, &back));
    }
}

/* Random subsets; the table-miss entry gets its own. */
static void
test_subsets_round_trip(void **state)
{
    struct table_features all, some, back;
    srandom(1);
    for (int i = 0; i < 500; i++) {
        uint8_t id = (uint8_t)(random() % N_TABLES);
        table_features_all(&all, id, N_TABLES, 1000);
        some = all;
        size_t words = offsetof(struct table_features, metadata_match) / sizeof(uint64_t);
        uint64_t *w = (uint64_t *)(void *)&some;
        for (size_t k = 0; k < words; k++)
            w[k] &= ((uint64_t)random() << 33 ^ (uint64_t)random() << 11 ^ (uint64_t)random());
        some.masks &= some.match;
        assert_int_equal(there_and_back(&some, id, &back), 0);
        assert_memory_equal(&some, &back, sizeof some);
        assert_false(table_features_same(&some, &all));
    }
}

static void
test_unsupported(void **state)
{
    struct table_features all, f, back;
    table_features_all(&all, 5, N_TABLES, 1000);
    int bad = OF_TABLE_FEATURES_FAILED(BAD_ARGUMENT);
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        f = all;                                                                                   \
        change;                                                                                    \
        assert_int_equal(there_and_back(&f, 5, &back), bad);                                       \
    } while (0)
    REFUSED(f.max_entries = 1001);
    REFUSED(f.can[0].next[0] |= BIT(5));
    REFUSED(f.can[1].next[3] |= BIT(62));
    REFUSED(f.can[0].instructions |= BIT(7));
    REFUSED(f.can[1].write_actions |= BIT(1));
    REFUSED(f.can[0].apply_fields |= BIT(OXM_in_port));
    REFUSED(f.masks |= BIT(OXM_ip_proto));
#undef REFUSED
}

/* Of the request's property of this type, an id that no table can have. */
static void
refused_id(uint16_t type, uint32_t id)
{
    struct table_features_wire *w = calloc(1, sizeof *w);
    struct table_features all, back;
    table_features_all(&all, 5, N_TABLES, 1000);
    table_features_write(&all, 5, 3, w);
    for (uint32_t i = 0; i < w->body.properties.n; i++) {
        struct of_tfp_oxmids *p = w->body.properties.v[i]; /* or of_tfp_typeids, which is alike */
        if (p->row->type == type)
            p->ids.v[0].id = id;
    }
    assert_int_equal(table_features_read(&w->body, &all, &back),
                     OF_TABLE_FEATURES_FAILED(BAD_ARGUMENT));
    free(w);
}

static void
test_ids_refused(void **state)
{
    const uint32_t basic = (uint32_t)OFPXMC_OPENFLOW_BASIC << 16;
    refused_id(OFPTFPT_INSTRUCTIONS, 64);
    refused_id(OFPTFPT_WRITE_ACTIONS, 0xfffe);
    refused_id(OFPTFPT_MATCH, 0x1234 << 16 | OXM_in_port << 9 | 4);
    refused_id(OFPTFPT_MATCH, basic | OXM_N << 9 | 4);
    refused_id(OFPTFPT_MATCH, basic | OXM_in_port << 9 | 3);
}

static void
test_pipeline(void **state)
{
    static struct table_features v[N_TABLES];
    int bad = OF_TABLE_FEATURES_FAILED(BAD_ARGUMENT);
    for (unsigned i = 0; i < N_TABLES; i++)
        table_features_all(&v[i], (uint8_t)i, N_TABLES, 1000);
    assert_int_equal(table_features_check_pipeline(v, N_TABLES), 0);
    memset(&v[200], 0, sizeof v[200]);
    assert_int_equal(table_features_check_pipeline(v, N_TABLES), bad);
    for (unsigned i = 0; i < 200; i++)
        v[i].can[0].next[3] &= ~BIT(200 - 192);
    assert_int_equal(table_features_check_pipeline(v, N_TABLES), bad);
    for (unsigned i = 0; i < 200; i++)
        v[i].can[1].next[3] &= ~BIT(200 - 192);
    assert_int_equal(table_features_check_pipeline(v, N_TABLES), 0);
    memset(&v[0], 0, sizeof v[0]);
    assert_int_equal(table_features_check_pipeline(v, N_TABLES),
                     OF_TABLE_FEATURES_FAILED(BAD_TABLE));
}

/* A field that a table requires has to be in a match only where the packet can have it. */
static void
test_required_pcp(void **state)
{
    static const struct {
        uint16_t value, mask;
        bool refused;
    } rows[] = {{OFPVID_NONE, 0x1fff, false},
                {OFPVID_PRESENT, OFPVID_PRESENT, true},
                {OFPVID_PRESENT | 5, 0x1fff, true}};
    struct table_features f;
    struct of_oxm v[2] = {{.row = &oxm_rows[OXM_vlan_vid]}, {.row = &oxm_rows[OXM_vlan_pcp]}};
    struct of_flow_mod fm = {.priority = 1, .match = {.v = v}};
    table_features_all(&f, 0, N_TABLES, 1000);
    f.wildcards &= ~BIT(OXM_vlan_pcp);
    v[1].mask[0] = 7;
    assert_int_equal(table_features_check(&f, &fm), 0); /* whether there is a tag isn't said */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        of_set16(v[0].value, rows[i].value);
        of_set16(v[0].mask, rows[i].mask);
        v[0].has_mask = rows[i].mask == OFPVID_PRESENT;
        fm.match.n = 1;
        assert_int_equal(table_features_check(&f, &fm),
                         rows[i].refused ? OF_BAD_MATCH(BAD_WILDCARDS) : 0);
        fm.match.n = 2;
        assert_int_equal(table_features_check(&f, &fm), 0);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_required_pcp),       cmocka_unit_test(test_all_round_trip),
        cmocka_unit_test(test_subsets_round_trip), cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_ids_refused),        cmocka_unit_test(test_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
