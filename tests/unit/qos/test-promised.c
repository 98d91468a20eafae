/* SPDX-License-Identifier: Apache-2.0 */
/* A class promises the classes below it no more than its ceil, unless it is to. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>

static bool
oversubscribed(uint32_t id)
{
    char *text = model_text(), name[32];
    snprintf(name, sizeof name, "class=%u,", (unsigned)id);
    char *at = text;
    bool found = false;
    while (!found && (at = strstr(at, name))) {
        size_t n = strcspn(at, "\n");
        found = memmem(at, n, "oversubscribe=yes", strlen("oversubscribe=yes"));
        at += n;
    }
    free(text);
    return found;
}

static void
refused(void **state)
{
    OK("htb", "cmd=add,port=2,class=0,rate=10mbit");
    OK("htb", "cmd=add,port=2,class=1,rate=8mbit");
    char *before = model_text();
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=add,port=2,class=2,rate=8mbit");
    assert_string_equal(
        err.text, "the guarantees below class 0 would come to 16mbit, above its ceil of 10mbit: "
                  "lower them, or give class 0 oversubscribe=yes");
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=change,port=2,class=0,rate=6mbit");
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=change,port=2,class=1,rate=11mbit");
    char *after = model_text();
    assert_string_equal(after, before);
    free(after);
    free(before);
    OK("htb", "cmd=add,port=2,class=2,rate=2mbit");
    OK("htb", "cmd=change,port=2,class=0,rate=6mbit,ceil=10mbit");
    OK("htb", "cmd=change,port=2,class=0,rate=6mbit,ceil=6mbit,oversubscribe=yes");
    OK("htb", "cmd=add,port=2,class=3,rate=5mbit");
    assert_true(oversubscribed(0));
    REFUSED(OFPSFC_BAD_PARAM, "htb",
            "cmd=change,port=2,class=0,rate=6mbit,ceil=6mbit,oversubscribe=no");
    OK("htb", "cmd=change,port=2,class=0,rate=15mbit,ceil=15mbit,oversubscribe=no");
    assert_false(oversubscribed(0));
    run_failing("htb", "cmd=change,port=2,class=1,rate=6mbit");
    OK("htb", "cmd=add,port=2,class=4,rate=2mbit");
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=add,port=2,class=5,rate=1kbit");
    OK("htb", "cmd=del,port=2,class=4");
    OK("htb", "cmd=add,port=2,class=5,rate=1kbit");
}

/* Below queues, by a move, and where a share follows its parent. */
static void
deeper(void **state)
{
    OK("htb", "cmd=add,port=2,class=0,rate=10mbit");
    OK("htb", "cmd=add,port=2,class=1,rate=50%");
    OK("htb", "cmd=add,port=2,class=11,parent=1,rate=3mbit");
    OK("htb", "cmd=add,port=2,class=12,rate=3mbit");
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=change,port=2,class=12,rate=3mbit,parent=1");
    assert_non_null(strstr(err.text, "below class 1 would come to 6mbit, above its ceil of 5mbit"));
    OK("htb", "cmd=change,port=2,class=12,rate=2mbit");
    OK("htb", "cmd=change,port=2,class=12,rate=2mbit,parent=1");
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=change,port=2,class=0,rate=9mbit,ceil=9mbit");
    OK("htb", "cmd=change,port=2,class=1,rate=50%,oversubscribe=yes");
    OK("htb", "cmd=change,port=2,class=0,rate=9mbit,ceil=9mbit");
    assert_int_equal(rate_of(1), 4500000);
}

static void
shares(void **state)
{
    OK("htb", "cmd=add,port=2,class=0,rate=10mbit");
    OK("htb", "cmd=add,port=2,class=1,rate=70%");
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=add,port=2,class=2,rate=60%");
    OK("htb", "cmd=add,port=2,class=2,rate=30%");
    OK("none", "port=2");
    OK("htb", "cmd=add,port=2,class=0,rate=1000001bit");
    for (char c = '1'; c <= '6'; c++) { /* 100.02 % */
        char text[] = "cmd=add,port=2,class=X,rate=16.67%";
        *strchr(text, 'X') = c;
        OK("htb", text);
    }
    REFUSED(OFPSFC_BAD_PARAM, "htb", "cmd=add,port=2,class=7,rate=0.1%");
}

/* Nobody has said what the port sends in all; hfsc has curves. */
static void
no_limit(void **state)
{
    OK("htb", "cmd=add,port=2,class=1,rate=80mbit");
    OK("htb", "cmd=add,port=2,class=2,rate=80mbit");
    OK("none", "port=2");
    OK("hfsc", "cmd=add,port=2,class=0,ls=10mbit");
    OK("hfsc", "cmd=add,port=2,class=1,ls=8mbit");
    OK("hfsc", "cmd=add,port=2,class=2,ls=8mbit");
}

static int
ask(const char *args)
{
    return run("htb", args);
}

/* Only what a bundle leaves matters; the last request that has a part in it is blamed. */
static void
bundles(void **state)
{
    unsigned at = 0;
    OK("htb", "cmd=add,port=2,class=0,rate=10mbit");
    OK("htb", "cmd=add,port=2,class=1,rate=8mbit");
    OK("htb", "cmd=add,port=2,class=2,rate=2mbit");
    char *before = model_text();
    for (int steps = 0; steps < 2; steps++) {
        qos_begin(qos);
        assert_int_equal(ask("cmd=change,port=2,class=2,rate=8mbit"), 0);
        assert_int_equal(ask("cmd=change,port=2,class=1,rate=4mbit"), 0);
        assert_int_equal(ask("cmd=add,port=1,class=1,rate=4mbit"), 0);
        if (steps)
            assert_int_equal(qos_commit_step(qos, 1, &at, &err), QOS_COMMIT_REFUSED);
        else
            assert_int_equal(qos_commit(qos, &at, &err), QOS_ERR(OFPSFC_BAD_PARAM));
        assert_int_equal(err.err, QOS_ERR(OFPSFC_BAD_PARAM));
        assert_int_equal(at, 1);
        char *after = model_text();
        assert_string_equal(after, before);
        free(after);
    }
    free(before);
    qos_begin(qos);
    assert_int_equal(ask("cmd=change,port=2,class=2,rate=8mbit"), 0);
    assert_int_equal(ask("cmd=change,port=2,class=1,rate=2mbit"), 0);
    assert_int_equal(qos_commit(qos, &at, &err), 0);
    assert_int_equal(rate_of(1), 2000000);
}

/* What the kernel has is adopted, and may stay as it is. */
static void
adopted(void **state)
{
    OK("htb", "cmd=add,port=2,class=0,rate=10mbit,oversubscribe=yes");
    OK("htb", "cmd=add,port=2,class=1,rate=8mbit,ceil=10mbit");
    OK("htb", "cmd=add,port=2,class=2,rate=8mbit");
    OK("htb", "cmd=add,port=2,class=11,parent=1,rate=8mbit");
    qos_free(qos);
    start();
    assert_true(oversubscribed(0));
    assert_false(oversubscribed(1));
    assert_int_equal(rate_of(2), 8000000);
    OK("htb", "cmd=change,port=2,class=2,rate=7mbit");
}

int
main(void)
{
    const struct CMUnitTest tests[] = {TEST(refused),  TEST(deeper),  TEST(shares),
                                       TEST(no_limit), TEST(bundles), TEST(adopted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
