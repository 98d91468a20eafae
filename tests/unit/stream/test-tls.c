/* SPDX-License-Identifier: Apache-2.0 */
/* Options and addresses of TLS without certificates, in builds with it and without it; what TLS
 * does on the wire is tested by tests/netns/test_tls.py. */
#include "test.h"

#include <stream/tls.h>

#define MISSING (TLS ? "--private-key, --certificate and --ca-cert" : "this build has no TLS")

static void
options(void **state)
{
    char why[200] = "";
    struct stream_tls *tls;
    struct stream_tls_options none = {0};
    assert_int_equal(stream_tls_new(&none, &tls, why, sizeof why), 0);
    assert_null(tls);
    for (int i = 0; i < STREAM_TLS_N; i++) {
        struct stream_tls_options one = {0};
        one.values[i] = "/dev/null";
        assert_int_equal(stream_tls_new(&one, &tls, why, sizeof why), TLS ? -EINVAL : -ENOTSUP);
        assert_null(tls);
        assert_non_null(strstr(why, MISSING));
    }
    stream_tls_free(NULL);
}

static void
addresses(void **state)
{
    static const char *const remotes[] = {"tls:192.0.2.1", "ssl:192.0.2.1:1"};
    static const char *const listeners[] = {"ptls:0:127.0.0.1", "pssl:0"};
    char why[200] = "";
    struct stream_remote r;
    struct stream_listener *l;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(stream_resolve(remotes[i], NULL, &r, why, sizeof why), -EINVAL);
        assert_non_null(strstr(why, MISSING));
        assert_int_equal(stream_listen(listeners[i], NULL, &l, why, sizeof why), -EINVAL);
        assert_non_null(strstr(why, MISSING));
    }
}

static void
looks_like_tls(void **state)
{
    static const uint8_t tls[] = {22, 3, 1}, alert[] = {21, 3, 3}, openflow[] = {4, 0, 0, 8};
    assert_true(stream_looks_like_tls(tls, 3));
    assert_true(stream_looks_like_tls(alert, 2));
    assert_false(stream_looks_like_tls(tls, 1));
    assert_false(stream_looks_like_tls(openflow, 4));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(options), cmocka_unit_test(addresses),
                                       cmocka_unit_test(looks_like_tls)};
    return cmocka_run_group_tests_name("stream-tls", tests, NULL, NULL);
}
