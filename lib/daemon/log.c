/* SPDX-License-Identifier: Apache-2.0 */
/* Lines: their text, and how many a place in the code may write. */
#include "log-inside.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PEER_MAX 256

/* How many lines a place may write at once, and one more every so many ms.  Info and debug have
 * more: who turns them on wants to see them. */
static const struct {
    uint32_t burst, every_ms;
} allowances[] = {[LOG_ERROR] = {20, 10000},
                  [LOG_WARNING] = {20, 10000},
                  [LOG_NOTICE] = {20, 10000},
                  [LOG_INFO] = {1000, 10},
                  [LOG_DEBUG] = {1000, 10}};

static struct log_place *with_left_out; /* those whose left_out is not 0 */

struct log_sums log_sums[LOG_MODULES_COUNT];
static uint64_t lost;

/* ------------------------------------------------------------------ a line */

/* False: the line is lost. */
static bool
put(const struct log_place *p, enum log_level level, const struct log_by *by, const char *text)
{
    char line[LOG_LINE_MAX], peer[PEER_MAX], xid[24];
    struct log_entry e = {.module = p->module,
                          .level = level,
                          .text = line,
                          .by = by,
                          .file = p->file + strspn(p->file, "./"),
                          .line = p->line};
    size_t n = log_append(line, sizeof line, 0, log_module_names[p->module]);
    if (by) {
        log_append(peer, sizeof peer, 0, by->peer);
        e.peer = peer;
        n = log_append(line, sizeof line, n, ": ");
        n = log_append(line, sizeof line, n, peer);
    }
    if (by && by->is_request) {
        snprintf(xid, sizeof xid, " xid %u", by->xid);
        n = log_append(line, sizeof line, n, xid);
    }
    n = log_append(line, sizeof line, n, ": ");
    log_append(line, sizeof line, n, text);
    bool taken = log_to_put(&e);
    log_sums[p->module].lines += taken;
    lost += !taken;
    return taken;
}

static void
put_notice(const char *text)
{
    static const struct log_place here = {
        .module = LOG_IN_DAEMON, .file = __FILE__, .line = __LINE__};
    put(&here, LOG_NOTICE, NULL, text);
}

/* ------------------------------------------------------------------ how many */

/* `full` lies ahead of now by as much as the burst is used up. */
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
    log_sums[p->module].left_out++;
    if (!p->left_out++) {
        p->format = format;
        p->next = with_left_out;
        with_left_out = p;
    }
}

/* The format with "..." for its arguments. */
static void
pattern_of(const char *format, char *out, size_t size)
{
    size_t len = 0;
    for (const char *p = format; *p && len + 4 < size; p++) {
        if (*p != '%' || p[1] == '%') {
            out[len++] = *p;
            p += *p == '%';
            continue;
        }
        p += 1 + strspn(p + 1, "-+ #0123456789.*hlzjt");
        memcpy(out + len, "...", 3);
        len += 3;
    }
    out[len] = '\0';
}

static void
report_left_out(uint64_t now, bool all)
{
    for (struct log_place *p, **at = &with_left_out; (p = *at);) {
        char text[192], pattern[120];
        pattern_of(p->format, pattern, sizeof pattern);
        snprintf(text, sizeof text, "%lu lines like \"%s\" were left out", p->left_out, pattern);
        if ((!all && !may_write(p, now)) || !put(p, LOG_WARNING, NULL, text)) {
            at = &p->next;
            continue;
        }
        p->left_out = 0;
        *at = p->next;
    }
}

static void
expire(uint64_t now)
{
    if (log_levels_expire(now))
        put_notice("the levels that were set for a while have ended");
}

static bool
is_on(const struct log_place *p)
{
    return log_level_of[p->module] >= p->level;
}

/* Locks.  False: the line is not to be written. */
static bool
begin(struct log_place *p, const char *format)
{
    log_lock();
    uint64_t now = log_now_ms();
    expire(now);
    if (!is_on(p))
        return false;
    report_left_out(now, false);
    if (may_write(p, now))
        return true;
    leave_out(p, format);
    return false;
}

/* ------------------------------------------------------------------ for everybody */

void
log_write(struct log_place *p, const struct log_by *by, const char *format, ...)
{
    char text[LOG_LINE_MAX];
    va_list ap;
    if (begin(p, format)) {
        va_start(ap, format);
        vsnprintf(text, sizeof text, format, ap);
        va_end(ap);
        if (!put(p, p->level, by, text))
            leave_out(p, format);
    }
    log_unlock();
}

void
log_write_made(struct log_place *p, const struct log_by *by, const char *like, log_make *make,
               const void *of)
{
    char text[LOG_LINE_MAX] = "";
    if (begin(p, like)) {
        make(of, text, sizeof text);
        if (!put(p, p->level, by, text))
            leave_out(p, like);
    }
    log_unlock();
}

void
log_state(enum log_module m, struct log_state *out)
{
    log_lock();
    uint64_t now = log_now_ms();
    expire(now);
    uint64_t until = log_whiles[m].until;
    *out = (struct log_state){.name = log_module_names[m],
                              .level = log_level_of[m],
                              .then = until ? log_whiles[m].then : log_level_of[m],
                              .seconds = until ? (uint32_t)((until - now + 999) / 1000) : 0,
                              .lines = log_sums[m].lines,
                              .left_out = log_sums[m].left_out};
    log_unlock();
}

void
log_tls_warning(const char *text)
{
    log_warning(TLS, "%s", text);
}

uint64_t
log_lost(void)
{
    log_lock();
    uint64_t n = lost;
    log_unlock();
    return n;
}

void
log_end(void)
{
    log_lock();
    report_left_out(log_now_ms(), true);
    log_unlock();
}
