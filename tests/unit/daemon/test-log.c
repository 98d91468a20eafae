/* SPDX-License-Identifier: Apache-2.0 */
/* The log: one printable line each, an allowance a place, what was left out is told; levels by module;
 * where lines go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "log-inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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
    assert_non_null(strstr(text, "\"flood ...\""));
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

/* ------------------------------------------------------------------ levels */

static enum log_level
level_of(enum log_module m)
{
    struct log_state s;
    log_state(m, &s);
    return s.level;
}

static void
test_levels(void **state)
{
    char why[256], text[4096];
    int evaluated = 0;
    log_info(FLOW, "not on: %d", ++evaluated);
    assert_int_equal(evaluated, 0);
    assert_int_equal(read_log(text, sizeof text), 0);
    assert_true(log_levels_set("flow=info,conn=debug", 0, why, sizeof why));
    log_info(FLOW, "on: %d", ++evaluated);
    log_debug(FLOW, "off");
    log_debug(CONN, "on");
    assert_int_equal(read_log(text, sizeof text), 2);
    assert_non_null(strstr(text, " info: flow: on: 1\n"));
    assert_non_null(strstr(text, " debug: conn: on\n"));
    assert_true(log_levels_set("error", 0, why, sizeof why));
    log_warning(QOS, "off");
    assert_int_equal(read_log(text, sizeof text), 0);
    assert_true(log_levels_set("all=debug port=error", 0, why, sizeof why));
    assert_int_equal(level_of(LOG_IN_QOS), LOG_DEBUG);
    assert_int_equal(level_of(LOG_IN_PORT), LOG_ERROR);
    log_levels_reset();
    assert_int_equal(level_of(LOG_IN_PORT), LOG_NOTICE);
}

static void
test_wrong_levels(void **state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {{"con=debug", "there is no module 'con': did you mean conn? there are daemon, "},
                 {"conn=dbg", "there is no level 'dbg': did you mean debug? there are error, "},
                 {"flow=info,nonsense=info", "there is no module 'nonsense': there are "},
                 {"verbose", "there is no level 'verbose': "},
                 {"", "there is no level '': "},
                 {"conn", "there is no level 'conn': "},
                 {"=info", "there is no module '': "},
                 {"flow=info,", "there is no level '': "},
                 {"flow=info,,conn=info", "there is no level '': "},
                 {"flow=inf\n\033[2J", "there is no level 'inf\\x0a\\x1b[2J': "}};
    char why[256], tiny[8];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(log_levels_set(wrong[i].text, 0, why, sizeof why));
        if (strncmp(why, wrong[i].says, strlen(wrong[i].says)))
            fail_msg("%s: %s", wrong[i].text, why);
        assert_false(log_levels_set(wrong[i].text, 0, tiny, sizeof tiny));
    }
    assert_int_equal(level_of(LOG_IN_FLOW), LOG_NOTICE);
    assert_false(log_option("con=debug", why, sizeof why));
    assert_non_null(strstr(why, "must be as in conn=debug,flow=info (there is no module 'con': "));
}

/* As if the time had passed: what ends is put back by the next line, or when it is asked for. */
static void
test_for_a_while(void **state)
{
    char why[256], text[4096];
    struct log_state s;
    assert_true(log_levels_set("conn=info", 0, why, sizeof why));
    assert_true(log_levels_set("conn=debug,flow=debug", 60, why, sizeof why));
    log_state(LOG_IN_CONN, &s);
    assert_int_equal(s.level, LOG_DEBUG);
    assert_int_equal(s.then, LOG_INFO);
    assert_in_range(s.seconds, 59, 60);
    assert_true(log_levels_set("conn=debug", 30, why, sizeof why)); /* again: from now on */
    log_state(LOG_IN_CONN, &s);
    assert_int_equal(s.then, LOG_INFO);
    assert_in_range(s.seconds, 29, 30);
    assert_true(log_levels_set("flow=warning", 0, why, sizeof why)); /* for good after all */
    log_lock();
    assert_false(log_levels_expire(log_now_ms() + 29000));
    log_unlock();
    assert_int_equal(level_of(LOG_IN_CONN), LOG_DEBUG);
    log_lock();
    assert_true(log_levels_expire(log_now_ms() + 31000));
    log_unlock();
    assert_int_equal(level_of(LOG_IN_CONN), LOG_INFO);
    assert_int_equal(level_of(LOG_IN_FLOW), LOG_WARNING);
    assert_true(log_levels_set("qos=debug", 60, why, sizeof why));
    log_whiles[LOG_IN_QOS].until = 1; /* long ago */
    log_debug(QOS, "not any more");
    assert_int_equal(read_log(text, sizeof text), 1);
    assert_non_null(strstr(text, " notice: daemon: the levels that were set for a while"));
    log_levels_reset();
}

static void
test_verbose(void **state)
{
    static const struct {
        const char *arg;
        enum log_level level;
    } rows[] = {{NULL, LOG_INFO},
                {"dbg", LOG_DEBUG},
                {"ANY:ANY:warn", LOG_WARNING},
                {"ANY:console:dbg", LOG_DEBUG},
                {"emer", LOG_ERROR},
                {"nonsense", LOG_NOTICE}};
    char why[256];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        log_levels_reset();
        assert_true(log_verbose_option(rows[i].arg, why, sizeof why));
        assert_int_equal(level_of(LOG_IN_SWITCH), rows[i].level);
    }
    log_levels_reset();
}

static unsigned n_made;

static void
make(const void *of, char *out, size_t n)
{
    n_made++;
    snprintf(out, n, "made of %s", (const char *)of);
}

/* Text that takes work is made for lines that are written only; info may have a thousand at once. */
static void
test_made(void **state)
{
    char text[65536], why[256];
    static const char wanted[] = " info: flow: unix: xid 3: made of this\n";
    unsigned lines = 0;
    log_info_made(FLOW, LOG_REQUEST("unix:", 3), "flow-mod ...", make, "this");
    assert_int_equal(n_made, 0);
    assert_true(log_levels_set("flow=info", 0, why, sizeof why));
    for (int i = 0; i < 3000; i++) {
        log_info_made(FLOW, LOG_REQUEST("unix:", 3), "flow-mod ...", make, "this");
        for (const char *p = (read_log(text, sizeof text), text); (p = strstr(p, wanted)); p++)
            lines++;
    }
    assert_in_range(n_made, 1000, 2900); /* and more come as time passes */
    assert_int_equal(n_made, lines);
    struct log_state s;
    log_state(LOG_IN_FLOW, &s);
    assert_in_range(s.left_out, 100, 2000);
    log_end();
    assert_int_equal(read_log(text, sizeof text), 1);
    assert_non_null(strstr(text, "lines like \"flow-mod ...\" were left out"));
    log_levels_reset();
}

/* ------------------------------------------------------------------ sockets */

static char directory[32], path[64];

static int
bind_socket(const char **which)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(directory, "/tmp/test-log-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/socket", directory);
    strcpy(a.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
    *which = path;
    return fd;
}

static void
unbind(int fd)
{
    char why[64];
    close(fd);
    unlink(path);
    rmdir(directory);
    assert_true(log_to_option("stderr", why, sizeof why));
}

static const char *
datagram(int fd)
{
    static char text[8192];
    ssize_t n = recv(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void
test_syslog(void **state)
{
    char why[256], tag[64];
    int fd = bind_socket(&log_syslog_path);
    assert_true(log_to_option("syslog", why, sizeof why));
    assert_string_equal(log_to_name(), "syslog");
    log_warning_by(TLS, LOG_PEER("tls:192.0.2.1"), "refused\n<0>%s", "forged");
    const char *line = datagram(fd);
    assert_int_equal(strncmp(line, "<28>", 4), 0); /* daemon.warning */
    assert_int_equal(line[4 + 15], ' ');           /* logd drops the first 16 characters */
    snprintf(tag, sizeof tag, " %s[%d]: ", program_invocation_short_name, (int)getpid());
    assert_int_equal(strncmp(line + 4 + 15, tag, strlen(tag)), 0);
    assert_string_equal(line + 4 + 15 + strlen(tag), "tls: tls:192.0.2.1: refused\\x0a<0>forged");
    unbind(fd);
}

static void
test_journal(void **state)
{
    char why[256], name[64];
    int fd = bind_socket(&log_journal_path);
    assert_true(log_to_option("journal", why, sizeof why));
    log_error_by(FLOW, LOG_REQUEST("tcp:192.0.2.1:40000\nPRIORITY=0", 4294967295u), "no room");
    const char *fields = datagram(fd);
    static const char *const wanted[] = {"\nPRIORITY=3\n",
                                         "\nOFQOS_MODULE=flow\n",
                                         "\nOFQOS_PEER=tcp:192.0.2.1:40000\\x0aPRIORITY=0\n",
                                         "\nOFQOS_XID=4294967295\n",
                                         "\nCODE_FILE=tests/unit/daemon/test-log.c\n",
                                         "\nCODE_LINE="};
    const char *message =
        "MESSAGE=flow: tcp:192.0.2.1:40000\\x0aPRIORITY=0 xid 4294967295: no room\n";
    assert_int_equal(strncmp(fields, message, strlen(message)), 0);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        assert_non_null(strstr(fields, wanted[i]));
    snprintf(name, sizeof name, "\nSYSLOG_IDENTIFIER=%s\n", program_invocation_short_name);
    assert_non_null(strstr(fields, name));
    log_notice(DAEMON, "no peer");
    assert_null(strstr(fields = datagram(fd), "OFQOS_PEER"));
    assert_null(strstr(fields, "OFQOS_XID"));
    unbind(fd);
}

/* Nobody reads, or the logger has gone: nothing waits, lost lines are counted, and told of. */
static void
test_lost(void **state)
{
    char why[256];
    int fd = bind_socket(&log_journal_path);
    assert_true(log_levels_set("debug", 0, why, sizeof why));
    assert_true(log_to_option("journal", why, sizeof why));
    uint64_t before = log_lost();
    for (int i = 0; i < 900; i++)
        log_debug(PORT, "nobody reads this: %d", i);
    uint64_t lost = log_lost() - before;
    assert_true(lost > 100);
    while (*datagram(fd))
        continue;
    log_end();
    assert_non_null(strstr(datagram(fd), "lines like \"nobody reads this: ...\" were left out"));
    close(fd);
    unlink(path);
    log_warning(PORT, "the logger has gone");
    assert_true(log_lost() > before + lost);
    log_levels_reset();
    unbind(-1);
    log_end(); /* on stderr again */
    char text[4096];
    assert_int_equal(read_log(text, sizeof text), 1);
}

static void
test_where_to(void **state)
{
    char why[256], stream[64];
    struct stat st;
    log_journal_path = log_syslog_path = "/nonexistent/socket";
    assert_false(log_to_option("syslog", why, sizeof why));
    assert_non_null(strstr(why, "/nonexistent/socket"));
    assert_false(log_to_option("nowhere", why, sizeof why));
    assert_string_equal(why, "must be stderr, syslog or journal");
    log_to_background();
    assert_string_equal(log_to_name(), "stderr");
    assert_int_equal(fstat(STDERR_FILENO, &st), 0);
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino + 1);
    setenv("JOURNAL_STREAM", stream, 1);
    int fd = bind_socket(&log_journal_path);
    log_to_begin(false);
    assert_string_equal(log_to_name(), "stderr"); /* another program's stream */
    snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    log_to_begin(true);
    assert_string_equal(log_to_name(), "stderr");
    log_to_begin(false);
    assert_string_equal(log_to_name(), "journal");
    unbind(fd);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_line, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
        cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_pipe, setup, teardown),
        cmocka_unit_test_setup_teardown(test_levels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_levels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_for_a_while, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verbose, setup, teardown),
        cmocka_unit_test_setup_teardown(test_made, setup, teardown),
        cmocka_unit_test_setup_teardown(test_where_to, setup, teardown), /* nothing is chosen yet */
        cmocka_unit_test_setup_teardown(test_syslog, setup, teardown),
        cmocka_unit_test_setup_teardown(test_journal, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
