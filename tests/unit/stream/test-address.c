/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses in text: what they mean, which are refused. */
#include "test.h"

#include <arpa/inet.h>
#include <stdio.h>

static void
good(void **state)
{
    const struct {
        const char *text;
        bool passive, local, tls;
        const char *host, *port;
    } rows[] = {
        {"tls:192.0.2.1", false, false, true, "192.0.2.1", "6653"},
        {"ssl:[::1]:1", false, false, true, "::1", "1"},
        {"ptls:", true, false, true, "", "6653"},
        {"pssl:1:127.0.0.1", true, false, true, "127.0.0.1", "1"},
        {"unix:/tmp/s1", false, true, false, "/tmp/s1", ""},
        {"unix:s:1", false, true, false, "s:1", ""},
        {"punix:./s1", true, true, false, "./s1", ""},
        {"unix:", false, true, false, stream_default_socket, ""},
        {"punix:", true, true, false, stream_default_socket, ""},
        {"tcp:192.0.2.1", false, false, false, "192.0.2.1", "6653"},
        {"tcp:192.0.2.1:6633", false, false, false, "192.0.2.1", "6633"},
        {"tcp:controller.example:1", false, false, false, "controller.example", "1"},
        {"tcp:[2001:db8::1]", false, false, false, "2001:db8::1", "6653"},
        {"tcp:[2001:db8::1]:65535", false, false, false, "2001:db8::1", "65535"},
        {"tcp:[fe80::1%eth0]:6653", false, false, false, "fe80::1%eth0", "6653"},
        {"tcp:[192.0.2.1]:7", false, false, false, "192.0.2.1", "7"},
        {"ptcp:", true, false, false, "127.0.0.1", "6653"},
        {"ptcp:0", true, false, false, "127.0.0.1", "0"},
        {"ptcp:6633:127.0.0.1", true, false, false, "127.0.0.1", "6633"},
        {"ptcp::127.0.0.1", true, false, false, "127.0.0.1", "6653"},
        {"ptcp:6633:[::1]", true, false, false, "::1", "6633"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct stream_address a;
        char why[200] = "";
        assert_true(stream_is_address(rows[i].text));
        assert_int_equal(stream_parse(rows[i].text, &a, why, sizeof why), 0);
        assert_string_equal(why, "");
        assert_int_equal(a.passive, rows[i].passive);
        assert_int_equal(a.local, rows[i].local);
        assert_int_equal(a.tls, rows[i].tls);
        assert_string_equal(a.host, rows[i].host);
        assert_string_equal(a.port, rows[i].port);
    }
}

static void
bad(void **state)
{
    static const char *const texts[] = {
        "",
        "tcp",
        "udp:1.2.3.4",
        "TCP:1.2.3.4",
        "/tmp/s1",
        "tcp:",
        "tcp::6653",
        "tcp:[]",
        "tcp:1.2.3.4:0",
        "tcp:1.2.3.4:65536",
        "tcp:1.2.3.4:x",
        "tcp:1.2.3.4:",
        "tcp:1.2.3.4:+1",
        "tcp:1.2.3.4:1x",
        "tcp:::1",
        "tcp:2001:db8::1",
        "tcp:[::1",
        "tcp:[::1]:6653:1",
        "tcp:1:2:3",
        "ptcp:x",
        "ptcp:65536",
        "ptcp:-1",
        "ptcp:1x",
        "ptcp:123456789",
        "ptcp:6653:::1",
        "ptcp:6653:[::1",
    };
    struct stream_address a;
    char why[200], text[600];
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        why[0] = '\0';
        assert_int_equal(stream_parse(texts[i], &a, why, sizeof why), -EINVAL);
        assert_true(why[0]);
    }
    assert_false(stream_is_address("/tmp/s1"));
    assert_false(stream_is_address("udp:1.2.3.4"));
    for (size_t n = 106; n <= 400; n++) { /* a path of n characters; 107 are the most */
        snprintf(text, sizeof text, "unix:%0*d", (int)n, 0);
        assert_int_equal(stream_parse(text, &a, why, sizeof why), n <= 107 ? 0 : -ENAMETOOLONG);
    }
    for (size_t n = 250; n <= 400; n++) { /* a host */
        snprintf(text, sizeof text, "tcp:%0*d:1", (int)n, 0);
        assert_int_equal(stream_parse(text, &a, why, sizeof why), n <= 255 ? 0 : -EINVAL);
    }
}

static void
looked_up(void **state)
{
    struct stream_remote r;
    char why[200] = "";
    assert_int_equal(stream_resolve("tcp:192.0.2.1:7", NULL, &r, why, sizeof why), 0);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.addr[0].in.sin_family, AF_INET);
    assert_int_equal(ntohs(r.addr[0].in.sin_port), 7);
    assert_int_equal(ntohl(r.addr[0].in.sin_addr.s_addr), 0xc0000201);
    assert_int_equal(stream_resolve("tcp:[::1]", NULL, &r, why, sizeof why), 0);
    assert_int_equal(r.addr[0].in6.sin6_family, AF_INET6);
    assert_int_equal(ntohs(r.addr[0].in6.sin6_port), 6653);
    assert_int_equal(stream_resolve("unix:/tmp/s1", NULL, &r, why, sizeof why), 0);
    assert_int_equal(r.n, 1);
    assert_string_equal(r.addr[0].un.sun_path, "/tmp/s1");
    assert_string_equal(why, "");
    assert_int_equal(stream_resolve("ptcp:7", NULL, &r, why, sizeof why), -EINVAL);
    assert_true(why[0]);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(good), cmocka_unit_test(bad),
                                       cmocka_unit_test(looked_up)};
    return cmocka_run_group_tests_name("stream-address", tests, NULL, NULL);
}
