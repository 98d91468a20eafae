/* SPDX-License-Identifier: Apache-2.0 */
/* The log: what an operator must know, one line for each thing (docs/reference/logging.md).
 *
 *     log_notice(PORT, "port %u (%s): the link is up", no, name);
 *     log_info_by(FLOW, LOG_REQUEST(peer, xid), "add %s", text);
 *
 *     2026-05-01T12:00:00.125Z notice: port: port 1 (eth0): the link is up
 *     2026-05-01T12:00:00.250Z info: flow: tcp:192.0.2.1:40000 xid 17: add table=0 ...
 *
 * Any thread may call.  A line whose level is off costs a load and a branch, and its arguments are
 * not evaluated.  Each place in the code has an allowance of its own, so a peer can neither fill the
 * disk nor hide other lines.  A later line, or the end, says how many were left out.  Text that peers
 * choose is safe: bytes that are not printable ASCII are written as \xNN. */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The words of syslog.  Errors, warnings and notices are on by default. */
enum log_level {
    LOG_ERROR,   /* something that was asked for is not done */
    LOG_WARNING, /* something is wrong, and the switch goes on */
    LOG_NOTICE,  /* something has come or gone */
    LOG_INFO,    /* who changed what, and who was refused what */
    LOG_DEBUG,   /* each message, each operation of the kernel */
    LOG_LEVELS
};

#define LOG_SEVERITY(level) ((level) + 3) /* syslog's number */

/* What a line is about: name in C, name for people, what its lines tell. */
#define LOG_MODULES(ROW)                                                                           \
    ROW(DAEMON, "daemon", "start, end, signals, the log itself")                                   \
    ROW(SWITCH, "switch", "the switch as a whole: fail mode, tables, descriptions")                \
    ROW(CONN, "conn", "control connections: who comes and goes, roles, refused requests")          \
    ROW(TLS, "tls", "certificates, keys, handshakes")                                              \
    ROW(PORT, "port", "ports: interfaces and links that come, change and go")                      \
    ROW(PACKET, "packet", "packets to and from controllers")                                       \
    ROW(FLOW, "flow", "flow tables")                                                               \
    ROW(GROUP, "group", "groups")                                                                  \
    ROW(METER, "meter", "meters")                                                                  \
    ROW(BUNDLE, "bundle", "bundles and their commits")                                             \
    ROW(QOS, "qos", "queues, and the kernel's traffic control")

enum log_module {
#define LOG_MODULE(id, name, tells) LOG_IN_##id,
    LOG_MODULES(LOG_MODULE)
#undef LOG_MODULE
        LOG_MODULES_COUNT
};

/* ------------------------------------------------------------------ writing */

/* Whose doing it is. */
struct log_by {
    const char *peer; /* a connection's name */
    bool is_request;  /* and its message with this xid */
    uint32_t xid;
};
#define LOG_PEER(name) (&(const struct log_by){.peer = (name)})
#define LOG_REQUEST(name, its_xid)                                                                 \
    (&(const struct log_by){.peer = (name), .is_request = true, .xid = (its_xid)})

/* clang-format off */
#define log_error(module, ...)          log_at(module, LOG_ERROR, NULL, __VA_ARGS__)
#define log_warning(module, ...)        log_at(module, LOG_WARNING, NULL, __VA_ARGS__)
#define log_notice(module, ...)         log_at(module, LOG_NOTICE, NULL, __VA_ARGS__)
#define log_info(module, ...)           log_at(module, LOG_INFO, NULL, __VA_ARGS__)
#define log_debug(module, ...)          log_at(module, LOG_DEBUG, NULL, __VA_ARGS__)
#define log_error_by(module, by, ...)   log_at(module, LOG_ERROR, by, __VA_ARGS__)
#define log_warning_by(module, by, ...) log_at(module, LOG_WARNING, by, __VA_ARGS__)
#define log_notice_by(module, by, ...)  log_at(module, LOG_NOTICE, by, __VA_ARGS__)
#define log_info_by(module, by, ...)    log_at(module, LOG_INFO, by, __VA_ARGS__)
#define log_debug_by(module, by, ...)   log_at(module, LOG_DEBUG, by, __VA_ARGS__)
/* clang-format on */

/* Whether lines of this level are written: before work that only the log needs. */
#define log_is_on(module, level)                                                                   \
    (__atomic_load_n(&log_level_of[LOG_IN_##module], __ATOMIC_RELAXED) >= (level))

#define log_at(module_, level_, by, ...)                                                           \
    do {                                                                                           \
        if (__builtin_expect(log_is_on(module_, level_), level_ <= LOG_NOTICE)) {                  \
            static struct log_place log_place_ = LOG_PLACE(module_, level_);                       \
            log_write(&log_place_, by, __VA_ARGS__);                                               \
        }                                                                                          \
    } while (0)

/* The same for a line whose text takes work: `make` writes it, and is called only if the line is
 * written.  It must not log.  `like` is for the number of lines left out. */
#define log_info_made(module, by, like, make, of)  log_made(module, LOG_INFO, by, like, make, of)
#define log_debug_made(module, by, like, make, of) log_made(module, LOG_DEBUG, by, like, make, of)

#define log_made(module_, level_, by, like, make, of)                                              \
    do {                                                                                           \
        if (__builtin_expect(log_is_on(module_, level_), 0)) {                                     \
            static struct log_place log_place_ = LOG_PLACE(module_, level_);                       \
            log_write_made(&log_place_, by, like, make, of);                                       \
        }                                                                                          \
    } while (0)

/* The same for a place that is kept elsewhere, such as in a row of a table. */
#define log_made_at(place, by, like, make, of)                                                     \
    do {                                                                                           \
        if (__atomic_load_n(&log_level_of[(place)->module], __ATOMIC_RELAXED) >= (place)->level)   \
            log_write_made(place, by, like, make, of);                                             \
    } while (0)

#define LOG_PLACE(module_, level_)                                                                 \
    {                                                                                              \
        .module = LOG_IN_##module_, .level = level_, .file = __FILE__, .line = __LINE__            \
    }

/* One place in the code that logs. */
struct log_place {
    enum log_module module;
    enum log_level level;
    const char *file;
    unsigned line;
    const char *format;
    uint64_t full; /* when it may have its whole burst again, ms */
    unsigned long left_out;
    struct log_place *next; /* of those that have left lines out */
};

#define LOG_LINE_MAX 1000 /* bytes; a longer line is cut */

extern uint8_t log_level_of[LOG_MODULES_COUNT];

__attribute__((format(printf, 3, 4))) void
log_write(struct log_place *place, const struct log_by *by, const char *format, ...);

typedef void log_make(const void *of, char *out, size_t n);
void log_write_made(struct log_place *place, const struct log_by *by, const char *like,
                    log_make *make, const void *of);

/* A warning about TLS, for stream/, which may not know this room. */
void log_tls_warning(const char *text);

/* Logs the numbers of lines left out that are not yet logged. */
void log_end(void);
/* How many lines were lost, because their reader was behind or gone. */
uint64_t log_lost(void);

/* ------------------------------------------------------------------ what is on */

struct log_state {
    const char *name;
    enum log_level level; /* in force */
    enum log_level then;  /* and in so many seconds; 0: for good */
    uint32_t seconds;
    uint64_t lines, left_out; /* since the start */
};

/* Sets levels: "conn=debug,flow=info", "all=notice", "info" (all).  For so many seconds, or 0: for
 * good.  False: nothing is changed, and `why` (n bytes) is a sentence. */
bool log_levels_set(const char *text, uint32_t seconds, char *why, size_t n);
/* All as at the start without options. */
void log_levels_reset(void);
void log_state(enum log_module module, struct log_state *out);

/* ------------------------------------------------------------------ where lines go */

/* Once the options are known: the journal, if stderr leads there, and syslog or a file hasn't been
 * chosen. */
void log_to_begin(bool to_file);
/* When stderr is about to be /dev/null: the journal or syslog, whichever there is. */
void log_to_background(void);
/* "stderr", "syslog" or "journal" */
const char *log_to_name(void);
/* Has --log-to chosen other than stderr? */
bool log_to_is_chosen(void);

/* Options (daemon_option_call, options.h): --log, --log-to, and BOFUSS's --verbose.  They may be
 * called again at any time. */
bool log_option(const char *arg, char *why, size_t n);
bool log_to_option(const char *arg, char *why, size_t n);
bool log_verbose_option(const char *arg, char *why, size_t n);

#endif
