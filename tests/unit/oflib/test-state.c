/* SPDX-License-Identifier: Apache-2.0 */
/* state.h: a state is whole, or refused with the reason. */
#include "test.h"

#include <oflib/state.h>

#include <errno.h>

static const char port_mod[] = "04 10 0028 00000000 00000001 00000000 020000000001 0000 "
                               "00000004 00000004 00000000 00000000";

static struct of_wr
begin(void)
{
    struct of_wr w = of_wr_grow(1 << 16);
    of_state_mark_encode(&w, &(struct of_state_mark){.datapath_id = 0xabc, .time = 1700000000});
    return w;
}

static void
end(struct of_wr *w, uint32_t count)
{
    of_state_mark_encode(w, &(struct of_state_mark){.is_end = 1, .count = count});
}

static int
check(const struct of_wr *w, size_t n, char *why, size_t size)
{
    uint8_t *copy = test_malloc(n ? n : 1);
    struct of_state_mark mark;
    memcpy(copy, w->buf, n);
    int err = of_state_check((struct of_bytes){copy, n}, &mark, why, size);
    if (!err) {
        assert_int_equal(mark.datapath_id, 0xabc);
        assert_int_equal(mark.time, 1700000000);
    }
    test_free(copy);
    return err;
}

static void
whole(void **state)
{
    struct of_wr w = begin();
    struct of_bytes one;
    size_t at = 0;
    char why[200];
    put_hex(&w, port_mod);
    put_hex(&w, port_mod);
    end(&w, 2);
    assert_int_equal(check(&w, w.len, why, sizeof why), 0);
    for (int i = 0; i < 2; i++) {
        assert_true(of_state_next((struct of_bytes){w.buf, w.len}, &at, &one));
        assert_int_equal(one.n, 40);
        assert_int_equal(one.p[1], OFPT_PORT_MOD);
    }
    assert_false(of_state_next((struct of_bytes){w.buf, w.len}, &at, &one));
    of_wr_free(&w);
}

static void
empty(void **state)
{
    struct of_wr w = begin();
    struct of_bytes one;
    size_t at = 0;
    char why[200];
    end(&w, 0);
    assert_int_equal(check(&w, w.len, why, sizeof why), 0);
    assert_false(of_state_next((struct of_bytes){w.buf, w.len}, &at, &one));
    of_wr_free(&w);
}

static void
cut_anywhere(void **state)
{
    struct of_wr w = begin();
    char why[200];
    put_hex(&w, port_mod);
    end(&w, 1);
    for (size_t n = 0; n < w.len; n++) {
        why[0] = '\0';
        assert_int_equal(check(&w, n, why, sizeof why), -EINVAL);
        assert_true(why[0]);
    }
    of_wr_free(&w);
}

static void
refused(void **state)
{
    static const struct {
        const char *what, *hex;
        uint32_t count;
        const char *why;
    } rows[] = {
        {"a hello", "04 00 0008 00000000", 1, "does not belong"},
        {"another version", "01 10 0008 00000000", 1, "does not belong"},
        {"a length below a header's", "04 10 0007 00000000", 1, "end is missing"},
        {"a wrong count", port_mod, 2, "messages are missing"},
        {"another experimenter", "04 04 0010 00000000 00000001 00000001", 1, "does not belong"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct of_wr w = begin();
        char why[200] = "";
        put_hex(&w, rows[i].hex);
        end(&w, rows[i].count);
        assert_int_equal(check(&w, w.len, why, sizeof why), -EINVAL);
        if (!strstr(why, rows[i].why))
            fail_msg("%s: %s", rows[i].what, why);
        of_wr_free(&w);
    }
}

static void
something_behind_it(void **state)
{
    struct of_wr w = begin();
    char why[200];
    end(&w, 0);
    of_wr8(&w, 0);
    assert_int_equal(check(&w, w.len, why, sizeof why), -EINVAL);
    assert_non_null(strstr(why, "follows"));
    of_wr_free(&w);
}

static void
another_format(void **state)
{
    struct of_wr w = begin();
    char why[200];
    end(&w, 0);
    of_set16(w.buf + 18, 2);
    assert_int_equal(check(&w, w.len, why, sizeof why), -EINVAL);
    assert_non_null(strstr(why, "version 2"));
    of_wr_free(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole),
        cmocka_unit_test(empty),
        cmocka_unit_test(refused),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(something_behind_it),
        cmocka_unit_test(another_format),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
