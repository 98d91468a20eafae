/* SPDX-License-Identifier: Apache-2.0 */
#include <daemon/log.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint8_t log_level_of[LOG_MODULES_COUNT] = {
#define DEFAULT(id, name, tells) [LOG_IN_##id] = LOG_NOTICE,
    LOG_MODULES(DEFAULT)
#undef DEFAULT
};

static const char *const module_names[] = {
#define NAME(id, name, tells) [LOG_IN_##id] = name,
    LOG_MODULES(NAME)
#undef NAME
};

static const char *const level_names[] = {[LOG_ERROR] = "error",
                                          [LOG_WARNING] = "warning",
                                          [LOG_NOTICE] = "notice",
                                          [LOG_INFO] = "info",
                                          [LOG_DEBUG] = "debug"};

/* How many lines a place may write at once, and one more every so many ms.  Who turns info or debug
 * on wants to see more. */
static const struct {
    uint32_t burst, every_ms;
} allowances[] = {[LOG_ERROR] = {20, 10000},
                  [LOG_WARNING] = {20, 10000},
                  [LOG_NOTICE] = {20, 10000},
                  [LOG_INFO] = {1000, 10},
                  [LOG_DEBUG] = {1000, 10}};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct log_place *with_left_out; /* those whose left_out is not 0 */

static uint64_t
now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* ------------------------------------------------------------------ a line */

/* Appends s; returns how long the line is now, LOG_LINE_MAX at most. */
static size_t
append_printable(char *line, size_t len, const char *s)
{
    static const char digits[] = "0123456789abcdef";
    for (const unsigned char *p = (const unsigned char *)s; *p && len + 4 <= LOG_LINE_MAX; p++) {
        if (*p >= ' ' && *p < 127) {
            line[len++] = (char)*p;
            continue;
        }
        line[len++] = '\\';
        line[len++] = 'x';
        line[len++] = digits[*p >> 4];
        line[len++] = digits[*p & 15];
    }
    return len;
}

static size_t
begin_line(char *line, const struct log_place *p, enum log_level level)
{
    char head[64];
    struct tm tm;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    size_t n = strftime(head, sizeof head, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &tm));
    snprintf(head + n, sizeof head - n, ".%03ldZ %s: %s: ", now.tv_nsec / 1000000,
             level_names[level], module_names[p->module]);
    return append_printable(line, 0, head);
}

static size_t
append_by(char *line, size_t len, const struct log_by *by)
{
    char xid[24];
    snprintf(xid, sizeof xid, " xid %u", by->xid);
    len = append_printable(line, len, by->peer);
    if (by->is_request)
        len = append_printable(line, len, xid);
    return append_printable(line, len, ": ");
}

/* False: the reader of stderr is behind, and the switch doesn't wait for it.  A pipe that poll
 * calls writable takes a line of this size at once. */
static bool
put_line(const struct log_place *p, enum log_level level, const struct log_by *by, const char *text)
{
    char line[LOG_LINE_MAX + 1];
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    size_t n = begin_line(line, p, level);
    if (by)
        n = append_by(line, n, by);
    n = append_printable(line, n, text);
    line[n++] = '\n';
    while (poll(&fd, 1, 0) < 0 && errno == EINTR)
        ;
    return fd.revents & POLLOUT && write(STDERR_FILENO, line, n) == (ssize_t)n;
}

/* ------------------------------------------------------------------ how many */

/* "full" is as far ahead of now as the burst is used up. */
static bool
may_write(struct log_place *p, uint64_t now)
{
    uint64_t every = allowances[p->level].every_ms;
    uint64_t full = p->full > now ? p->full : now;
    if (full - now > (allowances[p->level].burst - 1) * every)
        return false;
    p->full = full + every;
    return true;
}

static void
leave_out(struct log_place *p, const char *format)
{
    if (!p->left_out++) {
        p->format = format;
        p->next = with_left_out;
        with_left_out = p;
    }
}

static void
report_left_out(uint64_t now, bool all)
{
    for (struct log_place *p, **at = &with_left_out; (p = *at);) {
        char text[160];
        snprintf(text, sizeof text, "%lu lines like \"%.100s\" were left out", p->left_out,
                 p->format);
        if ((!all && !may_write(p, now)) || !put_line(p, LOG_WARNING, NULL, text)) {
            at = &p->next;
            continue;
        }
        p->left_out = 0;
        *at = p->next;
    }
}

/* ------------------------------------------------------------------ for everybody */

void
log_write(struct log_place *p, const struct log_by *by, const char *format, ...)
{
    char text[LOG_LINE_MAX];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    pthread_mutex_lock(&lock);
    uint64_t now = now_ms();
    report_left_out(now, false);
    if (!may_write(p, now) || !put_line(p, p->level, by, text))
        leave_out(p, format);
    pthread_mutex_unlock(&lock);
}

void
log_tls_warning(const char *text)
{
    log_warning(TLS, "%s", text);
}

void
log_end(void)
{
    pthread_mutex_lock(&lock);
    report_left_out(now_ms(), true);
    pthread_mutex_unlock(&lock);
}
