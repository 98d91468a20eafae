/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the log share, each using those before it: log-base.c, log-levels.c (what is on),
 * log-to.c (where lines go), log.c (lines).  What is not const belongs to who holds the lock. */
#ifndef DAEMON_LOG_INSIDE_H
#define DAEMON_LOG_INSIDE_H

#include <daemon/log.h>

/* A line on its way out.  All text is printable. */
struct log_entry {
    enum log_module module;
    enum log_level level;
    const char *text; /* with module and peer */
    const char *peer; /* NULL: none */
    const struct log_by *by;
    const char *file;
    unsigned line;
};

/* False: it was not taken, and the switch doesn't wait. */
bool log_to_put(const struct log_entry *e);

extern const char *const log_level_names[LOG_LEVELS];
extern const char *const log_module_names[LOG_MODULES_COUNT];

/* Of each module since the start. */
struct log_sums {
    uint64_t lines, left_out;
};
extern struct log_sums log_sums[LOG_MODULES_COUNT];

uint64_t log_now_ms(void);
void log_lock(void);
void log_unlock(void);

/* Levels that are in force for a while. */
struct log_while {
    uint64_t until; /* ms; 0: for good */
    uint8_t then;   /* the level afterwards */
};
extern struct log_while log_whiles[LOG_MODULES_COUNT];

/* Puts levels back whose time is over.  -> whether there were any. */
bool log_levels_expire(uint64_t now);

/* Appends s with what is not printable ASCII as \xNN.  -> how long out is now, size - 1 at most. */
size_t log_append(char *out, size_t size, size_t len, const char *s);

/* Where the sockets are; for tests. */
extern const char *log_journal_path, *log_syslog_path;

#endif
