/* SPDX-License-Identifier: Apache-2.0 */
/* What the service manager is told, and when there is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <daemon/notify.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int manager;
static char path[64];

/* A socket in the abstract namespace, which leaves no file. */
static int
setup(void **state)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(path, sizeof path, "@ofqos-test-notify-%d", (int)getpid());
    memcpy(a.sun_path + 1, path + 1, strlen(path) - 1);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_return_code(bind(manager, (const struct sockaddr *)&a,
                            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))),
                       0);
    setenv("NOTIFY_SOCKET", path, 1);
    return 0;
}

static int
teardown(void **state)
{
    static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        unsetenv(names[i]);
    close(manager);
    return 0;
}

static const char *
received(void)
{
    static char text[4096];
    ssize_t n = recv(manager, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void
test_send(void **state)
{
    assert_true(notify_wanted());
    notify_send("STATUS=%u ports", 7);
    assert_string_equal(received(), "STATUS=7 ports");
    notify_reloading();
    assert_memory_equal(received(), "RELOADING=1\nMONOTONIC_USEC=", 27);
}

static void
test_long_text_is_cut(void **state)
{
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    notify_send("STATUS=%s", text);
    assert_int_equal(strlen(received()), 1023);
}

static void
test_nobody_listens(void **state)
{
    static const char *const bad[] = {"", "/", "@", "relative/path", "/no/such/socket"};
    char too_long[200];
    unsetenv("NOTIFY_SOCKET");
    assert_false(notify_wanted());
    notify_send("READY=1");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("NOTIFY_SOCKET", bad[i], 1);
        notify_send("READY=1");
    }
    memset(too_long, '/', sizeof too_long - 1);
    too_long[sizeof too_long - 1] = '\0';
    setenv("NOTIFY_SOCKET", too_long, 1);
    assert_false(notify_wanted());
    notify_send("READY=1");
    assert_string_equal(received(), "");
}

/* The manager's socket is full: the switch does not wait. */
static void
test_full(void **state)
{
    for (int i = 0; i < 10000; i++)
        notify_send("STATUS=%d", i);
    assert_string_equal(received(), "STATUS=0");
}

static void
test_watchdog(void **state)
{
    char pid[16];
    assert_int_equal(notify_watchdog_ns(), 0);
    setenv("WATCHDOG_USEC", "30000000", 1);
    assert_int_equal(notify_watchdog_ns(), UINT64_C(30000000000));
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    assert_int_equal(notify_watchdog_ns(), UINT64_C(30000000000));
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(notify_watchdog_ns(), 0); /* for another process */
    unsetenv("WATCHDOG_PID");
    setenv("WATCHDOG_USEC", "30s", 1);
    assert_int_equal(notify_watchdog_ns(), 0);
    setenv("WATCHDOG_USEC", "18446744073709551615", 1);
    assert_int_equal(notify_watchdog_ns(), 0);
    setenv("WATCHDOG_USEC", "30000000", 1);
    unsetenv("NOTIFY_SOCKET");
    assert_int_equal(notify_watchdog_ns(), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_send, setup, teardown),
        cmocka_unit_test_setup_teardown(test_long_text_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nobody_listens, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_watchdog, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
