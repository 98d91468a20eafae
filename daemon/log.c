/* SPDX-License-Identifier: Apache-2.0 */
#include <daemon/log.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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
begin_line(char *line, enum log_level level)
{
    static const char *const names[] = {
        [LOG_ERROR] = "error", [LOG_WARN] = "warning", [LOG_NOTE] = "note"};
    char head[64];
    struct tm tm;
    time_t now = time(NULL);
    size_t n = strftime(head, sizeof head, "%Y-%m-%dT%H:%M:%SZ ", gmtime_r(&now, &tm));
    snprintf(head + n, sizeof head - n, "%s: ", names[level]);
    return append_printable(line, 0, head);
}

/* False: the reader of stderr is behind, and the switch doesn't wait for it.  A pipe that poll
 * calls writable takes a line of this size at once. */
static bool
put_line(enum log_level level, const char *text)
{
    char line[LOG_LINE_MAX + 1];
    struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
    size_t n = append_printable(line, begin_line(line, level), text);
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
    uint64_t full = p->full > now ? p->full : now;
    if (full - now > (LOG_BURST - 1) * (uint64_t)LOG_EVERY_MS)
        return false;
    p->full = full + LOG_EVERY_MS;
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
        if ((!all && !may_write(p, now)) || !put_line(LOG_WARN, text)) {
            at = &p->next;
            continue;
        }
        p->left_out = 0;
        *at = p->next;
    }
}

/* ------------------------------------------------------------------ for everybody */

void
log_write(struct log_place *p, enum log_level level, const char *format, ...)
{
    char text[LOG_LINE_MAX];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    pthread_mutex_lock(&lock);
    uint64_t now = now_ms();
    report_left_out(now, false);
    if (!may_write(p, now) || !put_line(level, text))
        leave_out(p, format);
    pthread_mutex_unlock(&lock);
}

void
log_warning(const char *text)
{
    log_line(LOG_WARN, "%s", text);
}

void
log_end(void)
{
    pthread_mutex_lock(&lock);
    report_left_out(now_ms(), true);
    pthread_mutex_unlock(&lock);
}
