/* SPDX-License-Identifier: Apache-2.0 */
/* The pidfile and the log of a process that root starts, in a directory that others write to.  What ends
 * the program is a process of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <daemon/daemon.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOMEBODY 4711

static char home[64], file[80], target[80];

static void
write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

static const char *
text_of(const char *path)
{
    static char text[64];
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    fclose(f);
    return text;
}

static int
setup(void **state)
{
    strcpy(home, "/tmp/ofqos-own-files-XXXXXX");
    assert_non_null(mkdtemp(home));
    snprintf(file, sizeof file, "%s/file", home);
    snprintf(target, sizeof target, "%s/target", home);
    write_text(target, "precious");
    return 0;
}

static int
teardown(void **state)
{
    unlink(file);
    unlink(target);
    return rmdir(home);
}

/* -> exit status */
static int
writes_pidfile(void)
{
    struct daemon d = {.pidfile = file};
    int status;
    pid_t pid = fork();
    assert_return_code(pid, errno);
    if (!pid) {
        daemon_begin(&d);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void
test_pidfile(void **state)
{
    assert_int_equal(writes_pidfile(), 0);
    assert_true(strtol(text_of(file), NULL, 10) > 1);
    assert_int_equal(writes_pidfile(), 0); /* what a process that is over has left behind */
}

static void
test_pidfile_that_leads_elsewhere(void **state)
{
    assert_return_code(symlink(target, file), errno);
    assert_int_equal(writes_pidfile(), 1);
    unlink(file);
    assert_return_code(link(target, file), errno);
    assert_int_equal(writes_pidfile(), 1);
    assert_string_equal(text_of(target), "precious");
}

/* Who takes over waits for the lock, and the owner may remove the file before it lets go. */
static void
test_pidfile_that_is_removed_meanwhile(void **state)
{
    struct daemon d = {.pidfile = file, .takes_over = true};
    int owned = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0644), status;
    assert_return_code(flock(owned, LOCK_EX), errno);
    pid_t pid = fork();
    assert_return_code(pid, errno);
    if (!pid) {
        close(owned);
        daemon_take_over(&d);
        _exit(0);
    }
    usleep(50000); /* it waits; if it doesn't yet, nothing is tested */
    assert_return_code(unlink(file), errno);
    close(owned);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(strtol(text_of(file), NULL, 10), pid);
}

static uid_t
owner(const char *path)
{
    struct stat st;
    assert_return_code(stat(path, &st), errno);
    return st.st_uid;
}

static void
test_the_log_is_given(void **state)
{
    const struct daemon d = {.log_file = file};
    if (geteuid())
        skip();
    daemon_give(&d, SOMEBODY, SOMEBODY);
    assert_int_equal(owner(file), SOMEBODY);
}

static void
test_what_is_not_the_log_is_kept(void **state)
{
    const struct daemon d = {.log_file = file};
    if (geteuid())
        skip();
    assert_return_code(symlink(target, file), errno);
    daemon_give(&d, SOMEBODY, SOMEBODY);
    unlink(file);
    assert_return_code(link(target, file), errno);
    daemon_give(&d, SOMEBODY, SOMEBODY);
    assert_int_equal(owner(target), 0);
    unlink(file);
    assert_return_code(mkfifo(file, 0600), errno);
    int reader = open(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    daemon_give(&d, SOMEBODY, SOMEBODY);
    assert_int_equal(owner(file), 0);
    close(reader);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_pidfile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pidfile_that_leads_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pidfile_that_is_removed_meanwhile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_log_is_given, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_not_the_log_is_kept, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
