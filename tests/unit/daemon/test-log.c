/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one printable line each, an allowance a place, and what was left out is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <daemon/log.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int pipe_end, saved;

static int
setup(void **state)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    saved = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    pipe_end = ends[0];
    return 0;
}

static int
teardown(void **state)
{
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(pipe_end);
    return 0;
}

/* What was written, and how many lines. */
static unsigned
read_log(char *text, size_t size)
{
    unsigned lines = 0;
    ssize_t n = read(pipe_end, text, size - 1);
    text[n > 0 ? n : 0] = '\0';
    for (const char *p = text; (p = strchr(p, '\n')); p++)
        lines++;
    return lines;
}

static void
test_line(void **state)
{
    char text[4096];
    log_warning_by(CONN, LOG_REQUEST("tcp:192.0.2.1", 17), "not %d", 7);
    assert_int_equal(read_log(text, sizeof text), 1);
    assert_string_equal(text + strlen("2026-05-01T12:00:00.125Z "),
                        "warning: conn: tcp:192.0.2.1 xid 17: not 7\n");
    assert_int_equal(text[10], 'T');
    assert_int_equal(text[23], 'Z');
}

static void
test_hostile(void **state)
{
    char text[4096], longer[3 * LOG_LINE_MAX];
    log_notice(DAEMON, "%s",
               "a\nb\033[2J\x7f\x9b"
               "c");
    assert_int_equal(read_log(text, sizeof text), 1);
    assert_non_null(strstr(text, "notice: daemon: a\\x0ab\\x1b[2J\\x7f\\x9bc\n"));
    memset(longer, '\n', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    log_notice(DAEMON, "%s", longer);
    assert_int_equal(read_log(text, sizeof text), 1);
    assert_true(strlen(text) <= LOG_LINE_MAX + 1);
}

static void
test_flood(void **state)
{
    char text[8192];
    for (int i = 0; i < 1000; i++)
        log_warning(DAEMON, "flood %d", i);
    assert_in_range(read_log(text, sizeof text), 20, 20 + 2);
    log_warning(DAEMON, "another place");
    assert_non_null((read_log(text, sizeof text), strstr(text, "another place")));
    log_end();
    assert_int_equal(read_log(text, sizeof text), 1);
    unsigned long left_out = 0;
    assert_int_equal(
        sscanf(strstr(text, "warning: "), "warning: daemon: %lu lines like", &left_out), 1);
    assert_in_range(left_out, 1000 - 20 - 2, 1000 - 20);
    assert_non_null(strstr(text, "\"flood %d\""));
    log_end();
    assert_int_equal(read_log(text, sizeof text), 0);
}

/* Whoever reads stderr has stopped: the caller goes on. */
static void
test_full_pipe(void **state)
{
    char block[4096] = {0}, text[8192];
    int flags = fcntl(STDERR_FILENO, F_GETFL);
    while (write(STDERR_FILENO, block, sizeof block) > 0)
        ;
    assert_int_equal(fcntl(STDERR_FILENO, F_SETFL, flags & ~O_NONBLOCK), 0);
    log_warning(DAEMON, "nobody reads this");
    while (read(pipe_end, block, sizeof block) > 0)
        ;
    log_end();
    assert_int_equal(read_log(text, sizeof text), 1);
    assert_non_null(strstr(text, "1 lines like \"nobody reads this\" were left out"));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_pipe, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
