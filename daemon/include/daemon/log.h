/* SPDX-License-Identifier: Apache-2.0 */
/* The log: what an operator must know, one line for each thing (docs/logging.md).
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
            static struct log_place log_place_ = {                                                 \
                .module = LOG_IN_##module_, .level = level_, .file = __FILE__, .line = __LINE__};  \
            log_write(&log_place_, by, __VA_ARGS__);                                               \
        }                                                                                          \
    } while (0)

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

/* A warning about TLS, for stream/, which may not know this room. */
void log_tls_warning(const char *text);

/* Logs the numbers of lines left out that are not yet logged. */
void log_end(void);

#endif
