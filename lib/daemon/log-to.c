/* SPDX-License-Identifier: Apache-2.0 */
/* Where lines go: stderr (a terminal, a file, a pipe), syslog's socket, the journal's socket.
 *
 * Both sockets take a datagram each.  libc's syslog() waits while the logger is behind, and
 * libsystemd isn't there on OpenWrt, so the two formats are written here: RFC 3164 as libc writes it,
 * and the journal's "FIELD=value" lines (systemd.io/JOURNAL_NATIVE_PROTOCOL).  Nothing waits. */
#include "log-inside.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define SYSLOG_DAEMON (3 << 3) /* the facility */
#define ENTRY_MAX     (3 * LOG_LINE_MAX)

const char *log_journal_path = "/run/systemd/journal/socket";
const char *log_syslog_path = "/dev/log";

enum to { TO_STDERR, TO_SYSLOG, TO_JOURNAL, TOS };

static const char *const to_names[TOS] = {"stderr", "syslog", "journal"};

static enum to to;
static bool is_chosen; /* by --log-to */
static bool to_stream; /* stderr is the journal's: a line's priority goes in front of it */
static int fd = -1;
static bool torn; /* only a part of the last line is in the file: the disk was full */

/* ------------------------------------------------------------------ stderr */

/* The journal has a time and a level of its own. */
static size_t
head_of(const struct log_entry *e, char *head, size_t size)
{
    struct tm tm;
    struct timespec now;
    if (to_stream)
        return (size_t)snprintf(head, size, "<%u>", LOG_SEVERITY(e->level));
    clock_gettime(CLOCK_REALTIME, &now);
    size_t n = strftime(head, size, "%Y-%m-%dT%H:%M:%S", gmtime_r(&now.tv_sec, &tm));
    return n + (size_t)snprintf(head + n, size - n, ".%03ldZ %s: ", now.tv_nsec / 1000000,
                                log_level_names[e->level]);
}

/* A pipe that poll calls writable takes a line of this size at once. */
static bool
put_stderr(const struct log_entry *e)
{
    char line[LOG_LINE_MAX + 2] = "\n";
    struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
    size_t at = torn, n = at + head_of(e, line + at, sizeof line - at);
    n = log_append(line, LOG_LINE_MAX + 1 + at, n, e->text);
    line[n++] = '\n';
    while (poll(&p, 1, 0) < 0 && errno == EINTR)
        ;
    ssize_t put = p.revents & POLLOUT ? write(STDERR_FILENO, line, n) : -1;
    if (put > 0)
        torn = put < (ssize_t)n;
    return put == (ssize_t)n;
}

/* ------------------------------------------------------------------ sockets */

static bool
put_datagram(const char *path, const char *p, int n)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    if (fd < 0)
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return sendto(fd, p, (size_t)n, MSG_NOSIGNAL, (struct sockaddr *)&a, sizeof a) == n;
}

static bool
put_syslog(const struct log_entry *e)
{
    char text[ENTRY_MAX], date[32];
    struct tm tm;
    time_t now = time(NULL);
    strftime(date, sizeof date, "%b %e %H:%M:%S", localtime_r(&now, &tm));
    int n = snprintf(text, sizeof text, "<%u>%s %s[%d]: %s", SYSLOG_DAEMON | LOG_SEVERITY(e->level),
                     date, program_invocation_short_name, (int)getpid(), e->text);
    return put_datagram(log_syslog_path, text, n);
}

static bool
put_journal(const struct log_entry *e)
{
    char text[ENTRY_MAX];
    int n = snprintf(text, sizeof text,
                     "MESSAGE=%s\nPRIORITY=%u\nSYSLOG_IDENTIFIER=%s\nOFQOS_MODULE=%s\n"
                     "CODE_FILE=%s\nCODE_LINE=%u\n",
                     e->text, LOG_SEVERITY(e->level), program_invocation_short_name,
                     log_module_names[e->module], e->file, e->line);
    if (e->peer)
        n += snprintf(text + n, sizeof text - (size_t)n, "OFQOS_PEER=%s\n", e->peer);
    if (e->by && e->by->is_request)
        n += snprintf(text + n, sizeof text - (size_t)n, "OFQOS_XID=%u\n", e->by->xid);
    return put_datagram(log_journal_path, text, n);
}

bool
log_to_put(const struct log_entry *e)
{
    static bool (*const puts[TOS])(const struct log_entry *e) = {put_stderr, put_syslog,
                                                                 put_journal};
    return puts[to](e);
}

/* ------------------------------------------------------------------ which */

/* Is stderr what the service manager has connected to the journal? */
static bool
stderr_is_journal(void)
{
    struct stat st;
    char is[64];
    const char *stream = getenv("JOURNAL_STREAM");
    if (!stream || fstat(STDERR_FILENO, &st))
        return false;
    snprintf(is, sizeof is, "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    return !strcmp(stream, is);
}

static bool
is_there(const char *path)
{
    return !access(path, W_OK);
}

void
log_to_begin(bool to_file)
{
    if (is_chosen || to_file || !stderr_is_journal())
        return;
    if (is_there(log_journal_path))
        to = TO_JOURNAL;
    else
        to_stream = true;
}

void
log_to_background(void)
{
    if (is_chosen || to != TO_STDERR)
        return;
    to = is_there(log_journal_path)  ? TO_JOURNAL
         : is_there(log_syslog_path) ? TO_SYSLOG
                                     : TO_STDERR;
}

bool
log_to_option(const char *arg, char *why, size_t n)
{
    const char *paths[TOS] = {NULL, log_syslog_path, log_journal_path};
    unsigned t = 0;
    if (!arg) /* no longer in the configuration file */
        arg = to_names[0];
    while (t < TOS && strcmp(arg, to_names[t]))
        t++;
    if (t == TOS) {
        snprintf(why, n, "must be stderr, syslog or journal");
        return false;
    }
    if (paths[t] && !is_there(paths[t])) {
        snprintf(why, n, "must be something else here, as %s can't be used (%s)", paths[t],
                 strerror(errno));
        return false;
    }
    log_lock();
    to = (enum to)t;
    is_chosen = true;
    log_unlock();
    return true;
}

const char *
log_to_name(void)
{
    return to_names[to];
}

bool
log_to_is_chosen(void)
{
    return is_chosen && to != TO_STDERR;
}
