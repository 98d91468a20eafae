/* SPDX-License-Identifier: Apache-2.0 */
/* The link layer of classes, against a fake kernel that fails at each step in turn. */
#include "fixture.h"

#include <stdlib.h>

static void
has_link(uint32_t id, int64_t overhead, uint64_t mpu, enum qos_linklayer layer)
{
    const struct qos_object *o = fake_class(&kernel, IF2, id);
    assert_non_null(o);
    assert_true(qos_has(&o->values, QOS_OVERHEAD));
    assert_int_equal((int64_t)o->values.v[QOS_OVERHEAD], overhead);
    assert_int_equal(o->values.v[QOS_MPU], mpu);
    assert_int_equal(o->values.v[QOS_LINKLAYER], layer);
}

/* A class has its own, else that of the class above it; another rate changes nothing of it. */
static void
classes_take_their_parents(void **state)
{
    run_failing("htb", "cmd=add,port=2,class=10,rate=6mbit");
    has_link(10, 0, 0, QOS_ETHERNET);
    run_failing("htb", "cmd=add,port=2,class=11,parent=10,rate=1mbit");
    run_failing("htb", "cmd=add,port=2,class=12,parent=10,rate=1mbit,overhead=20");
    run_failing("htb", "cmd=change,port=2,class=0,rate=10mbit,overhead=44,mpu=64,linklayer=atm");
    has_link(QOS_CLASS_ROOT, 44, 64, QOS_ATM);
    has_link(QOS_CLASS_DEFAULT, 44, 64, QOS_ATM);
    has_link(10, 44, 64, QOS_ATM);
    has_link(11, 44, 64, QOS_ATM);
    has_link(12, 20, 64, QOS_ATM);
    run_failing("htb", "cmd=change,port=2,class=0,rate=20mbit");
    has_link(QOS_CLASS_ROOT, 44, 64, QOS_ATM);
    has_link(QOS_CLASS_DEFAULT, 44, 64, QOS_ATM);
    has_link(12, 20, 64, QOS_ATM);
    run_failing("htb", "cmd=change,port=2,class=10,rate=7mbit,linklayer=ethernet");
    has_link(10, 44, 64, QOS_ETHERNET);
    has_link(11, 44, 64, QOS_ETHERNET);
    run_failing("htb", "cmd=change,port=2,class=11,parent=0,rate=1mbit");
    has_link(11, 44, 64, QOS_ATM);
    run_failing("htb", "cmd=add,port=2,class=13,parent=10,rate=1mbit");
    has_link(13, 44, 64, QOS_ETHERNET);
}

/* The next daemon takes it as the kernel has it: the root class does not follow the link then. */
static void
a_restart_keeps_it(void **state)
{
    struct qos_port port = {2, IF2, "eth2", 1500, 1000, 50000000, 8, false};
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    OK("htb", "cmd=change,port=2,class=0,rate=100mbit,overhead=18");
    qos_free(qos);
    start();
    has_link(10, 18, 0, QOS_ETHERNET);
    OK("htb", "cmd=add,port=2,class=11,rate=6mbit");
    has_link(11, 18, 0, QOS_ETHERNET);
    assert_int_equal(port_update(qos, &port, &err), 0);
    assert_int_equal(rate_of(QOS_CLASS_ROOT), 100000000);
    has_link(QOS_CLASS_ROOT, 18, 0, QOS_ETHERNET);
}

static void
refused(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=6mbit");
    char *before = model_text();
    REFUSED(OFPSFC_UNSUPPORTED, "htb", "cmd=change,port=2,class=10,rate=6mbit,overhead=-1");
    REFUSED(OFPSFC_UNSUPPORTED, "htb", "cmd=change,port=2,class=0,rate=90mbit,linklayer=ptm");
    REFUSED(OFPSFC_UNSUPPORTED, "tbf", "cmd=add,port=2,class=10,rate=6mbit,overhead=-1");
    char *after = model_text();
    assert_string_equal(after, before);
    free(before);
    free(after);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(classes_take_their_parents),
        TEST(a_restart_keeps_it),
        TEST(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
