/* SPDX-License-Identifier: Apache-2.0 */
/* CAKE's own: the limit of its tins. */
#include "fixture.h"

static void
limit_after_a_return(uint64_t limit)
{
    struct qos_port port = {2, IF2, "eth", 1500, 1000, 100000000, 8};
    fake_forget(&kernel, IF2);
    assert_int_equal(qos_port_away(qos, 2), 0);
    assert_int_equal(port_back(qos, &port, &err), 0);
    assert_int_equal(notified_limit[1], limit);
}

/* A limit that was refused or taken back is never the packet side's. */
static void
refused_limit_of_tins(void **state)
{
    OK("cake", "cmd=add,port=2,bandwidth=30mbit");
    kernel.fail_in = 0;
    REFUSED(OFPSFC_KERNEL, "cake", "cmd=change,port=2,bandwidth=20mbit");
    limit_after_a_return(30000000);
    qos_begin(qos);
    OK("cake", "cmd=change,port=2,bandwidth=10mbit");
    qos_abort(qos);
    limit_after_a_return(30000000);
    OK("cake", "cmd=change,port=2,bandwidth=20mbit");
    assert_int_equal(notified_limit[1], 20000000);
    limit_after_a_return(20000000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {TEST(refused_limit_of_tins)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
