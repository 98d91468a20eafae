/* SPDX-License-Identifier: Apache-2.0 */
#include <normal/vlans.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct vlans
of_words(const char *words)
{
    struct vlans v = {0};
    char text[600], *rest = text, why[200];
    strncpy(text, words, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (char *word; (word = strsep(&rest, ","));)
        if (!vlans_take(&v, word, why, sizeof why))
            fail_msg("%s: %s", word, why);
    return v;
}

static void
test_text(void **state)
{
    static const char *const same[] = {"vlan=10", "trunk=1", "trunk=10:20-29",
                                       "vlan=4094,trunk=1-4094", "trunk=62-65:4094"};
    static const char *const wrong[] = {
        "vlan=0",   "vlan=4095", "vlan=1x", "vlan=",     "vlan",        "trunk=",
        "trunk=1:", "trunk=2-1", "trunk=-", "trunk=1-",  "trunk=0-4",   "",
        "tag=1",    "vlan=-1",   "trunk",   "trunk=1 2", "trunk=1-4095"};
    char text[VLANS_TEXT], why[200];
    for (unsigned i = 0; i < sizeof same / sizeof *same; i++) {
        struct vlans v = of_words(same[i]);
        vlans_text(&v, text);
        assert_string_equal(text, same[i]);
    }
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct vlans v = {0};
        *why = '\0';
        assert_false(vlans_take(&v, wrong[i], why, sizeof why));
        assert_true(*why);
    }
    struct vlans v = of_words("trunk=1:20-22"), odd = {0};
    vlans_text(&v, text);
    assert_string_equal(text, "trunk=1:20-22");
    memset(odd.tagged, 0x55, sizeof odd.tagged); /* as long as it gets */
    vlans_text(&odd, text);
    assert_true(strlen(text) < sizeof text);
    assert_string_equal(text + strlen(text) - 4, ":...");
}

#define TAG(vid) (OFPVID_PRESENT | (vid))

static void
test_in(void **state)
{
    struct vlans access = of_words("vlan=10"), trunk = of_words("trunk=10:20"),
                 native = of_words("vlan=20,trunk=10");
    assert_int_equal(vlans_in(NULL, 0), 0);
    assert_int_equal(vlans_in(NULL, TAG(0)), 0);
    assert_int_equal(vlans_in(NULL, TAG(4095)), 4095);
    assert_int_equal(vlans_in(&access, 0), 10);
    assert_int_equal(vlans_in(&access, TAG(0)), 10);
    assert_int_equal(vlans_in(&access, TAG(10)), -1);
    assert_int_equal(vlans_in(&trunk, 0), -1);
    assert_int_equal(vlans_in(&trunk, TAG(0)), -1);
    assert_int_equal(vlans_in(&trunk, TAG(20)), 20);
    assert_int_equal(vlans_in(&trunk, TAG(30)), -1);
    assert_int_equal(vlans_in(&native, 0), 20);
    assert_int_equal(vlans_in(&native, TAG(10)), 10);
    assert_int_equal(vlans_in(&native, TAG(20)), -1);
}

static void
test_out(void **state)
{
    struct vlans access = of_words("vlan=10"), trunk = of_words("trunk=10:20"),
                 native = of_words("vlan=20,trunk=10");
    assert_true(vlans_has(NULL, 0) && vlans_has(NULL, 77));
    assert_true(vlans_has(&access, 10) && !vlans_has(&access, 0) && !vlans_has(&access, 20));
    assert_true(vlans_has(&trunk, 20) && !vlans_has(&trunk, 0));
    assert_true(vlans_has(&native, 20) && vlans_has(&native, 10) && !vlans_has(&native, 11));
    assert_int_equal(vlans_edit(NULL, 0, TAG(0)), VLAN_AS_IS);
    assert_int_equal(vlans_edit(NULL, 0, 0), VLAN_AS_IS);
    assert_int_equal(vlans_edit(NULL, 10, 0), VLAN_PUSH);
    assert_int_equal(vlans_edit(NULL, 10, TAG(10)), VLAN_AS_IS);
    assert_int_equal(vlans_edit(NULL, 10, TAG(0)), VLAN_SET);
    assert_int_equal(vlans_edit(&access, 10, 0), VLAN_AS_IS);
    assert_int_equal(vlans_edit(&access, 10, TAG(10)), VLAN_POP);
    assert_int_equal(vlans_edit(&access, 10, TAG(0)), VLAN_POP);
    assert_int_equal(vlans_edit(&trunk, 10, 0), VLAN_PUSH);
    assert_int_equal(vlans_edit(&native, 20, TAG(20)), VLAN_POP);
    assert_int_equal(vlans_edit(&native, 10, 0), VLAN_PUSH);
}

static void
test_acts(void **state)
{
    static const uint8_t ops[][2] = {[VLAN_AS_IS] = {0, 0},
                                     [VLAN_PUSH] = {OFPAT_PUSH_VLAN, OFPAT_SET_FIELD},
                                     [VLAN_SET] = {OFPAT_SET_FIELD, 0},
                                     [VLAN_POP] = {OFPAT_POP_VLAN, 0}};
    for (enum vlan_edit e = VLAN_AS_IS; e <= VLAN_POP; e++) {
        struct vlan_acts acts;
        unsigned n = 0;
        vlans_acts(e, 300, &acts);
        ACTS_EACH(a, acts.list) {
            assert_int_equal(a->op, ops[e][n++]);
            if (a->op == OFPAT_SET_FIELD)
                assert_int_equal(of_get16(a->data), TAG(300));
        }
        assert_true(n == 2 || !ops[e][n]);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_in),
        cmocka_unit_test(test_out),
        cmocka_unit_test(test_acts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
