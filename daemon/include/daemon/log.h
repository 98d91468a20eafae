/* SPDX-License-Identifier: Apache-2.0 */
/* The log: what an operator must know, one line each, on stderr or in the --log-file.
 *
 *      2026-05-01T12:00:00Z warning: tcp:192.0.2.1: can't connect: Connection refused
 *
 * Any thread may call.  Each place in the code has an allowance of its own (LOG_BURST lines, then
 * one every LOG_EVERY_MS), so a peer can neither fill the disk nor hide other lines.  A later line,
 * or the end, says how many were left out.  Text that peers choose is safe: bytes that are not
 * printable ASCII are written as \xNN. */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdint.h>

enum log_level {
    LOG_ERROR, /* something that was asked for is not done */
    LOG_WARN,  /* something is wrong, and the switch goes on */
    LOG_NOTE,  /* something has come or gone */
};

#define LOG_BURST    20
#define LOG_EVERY_MS 10000
#define LOG_LINE_MAX 1000 /* bytes; a longer line is cut */

/* One place in the code that logs; all zeros at first. */
struct log_place {
    struct log_place *next; /* of those that have left lines out */
    const char *format;
    uint64_t full; /* when it may have LOG_BURST lines again, ms */
    unsigned long left_out;
};

#define log_line(level, ...)                                                                       \
    do {                                                                                           \
        static struct log_place log_place_;                                                        \
        log_write(&log_place_, level, __VA_ARGS__);                                                \
    } while (0)

__attribute__((format(printf, 3, 4))) void log_write(struct log_place *place, enum log_level level,
                                                     const char *format, ...);

/* The same for callers that may not know this room: one place for all of them. */
void log_warning(const char *text);

/* Logs the numbers of lines left out that are not yet logged. */
void log_end(void);

#endif
