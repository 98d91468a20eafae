/* SPDX-License-Identifier: Apache-2.0 */
/* Running in the background: the fork, the file with the process id, the log's file, the signals.
 * The options have BOFUSS's names. */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include <daemon/log.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A sentence on stderr, with the program's name before it, and exit status 1. */
__attribute__((format(printf, 1, 2), noreturn)) void daemon_die(const char *fmt, ...);

struct daemon {
    bool detach, force;
    const char *pidfile, *log_file; /* NULL: none; "": the usual place */
    bool reloads;                   /* SIGHUP has more to do than to open the log anew: */
    bool reload;     /* it has come; the program does that, and calls daemon_reloaded */
    bool takes_over; /* from an older process of the same program, which has the --pidfile */
    int pid_fd, ready_fd;
};

/* Rows of options (options.h) for d, a struct daemon.  --force is about the --pidfile, and what else the program makes
 * of it. */
#define DAEMON_OPTIONS(d, force_help, force_apply)                                                 \
    OPTION_GROUP("Running in the background"),                                                     \
        {"detach", 'D',                                                                            \
         NULL,     "go to the background once all is set up",                                      \
         NULL,     OPTION_FLAG((d).detach)},                                                       \
        {"pidfile", 'P',                                                                           \
         "[FILE]",  "write the process id to FILE, or to /run/PROGRAM.pid",                        \
         NULL,      OPTION_TEXT((d).pidfile)},                                                     \
        {"force", 'f', NULL, force_help, NULL, OPTION_FLAG((d).force), .apply = force_apply},      \
        OPTION_GROUP("The log"),                                                                   \
        {"log",                                                                                    \
         0,                                                                                        \
         "LEVELS",                                                                                 \
         "which lines are written: up to error, warning, notice, info or debug; of one module: "   \
         "such as conn=debug,flow=info",                                                           \
         "notice",                                                                                 \
         OPTION_CALL(log_option),                                                                  \
         .many = true,                                                                             \
         .apply = daemon_applied},                                                                 \
        {"log-to",                                                                                 \
         0,                                                                                        \
         "stderr|syslog|journal",                                                                  \
         "where lines go",                                                                         \
         "stderr, or the journal where stderr leads there; in the background the journal or "      \
         "syslog, whichever there is",                                                             \
         OPTION_CALL(log_to_option),                                                               \
         .apply = daemon_applied},                                                                 \
        {"log-file", 0,                                                                            \
         "[FILE]",   "write messages to FILE, or to /var/log/PROGRAM.log, instead of stderr",      \
         NULL,       OPTION_TEXT((d).log_file)},                                                   \
    {                                                                                              \
        "verbose", 'v', "[LEVEL]", "--log=info, or the level that BOFUSS's word means", NULL,      \
            OPTION_CALL(log_verbose_option), .line_only = true                                     \
    }

/* To be called before threads and files are made: with --detach the process forks, and the first
 * one waits.  Failures end the program (daemon_die). */
void daemon_begin(struct daemon *d);
/* Gives the files of the process's own to the user that it goes on as. */
void daemon_give(const struct daemon *d, uid_t uid, gid_t gid);
/* To be called when that process is about to end: waits for the --pidfile and writes it. */
void daemon_take_over(struct daemon *d);
/* To be called when all is set up: with --detach the first process ends with status 0, and a service
 * manager learns that the program is ready (notify.h). */
void daemon_ready(struct daemon *d);
/* -> a descriptor that reports SIGTERM, SIGINT, SIGQUIT and SIGHUP, so that the program ends in
 * order. SIGPIPE, SIGUSR1, SIGUSR2 and the like are ignored.  To be called before threads, which
 * inherit the signal mask. */
int daemon_signals(void);
/* To be called when that descriptor is readable.  SIGHUP opens the log file anew, and sets
 * d->reload; true: another signal has come, and the program should end. */
bool daemon_is_over(struct daemon *d, int signals);
void daemon_reloaded(struct daemon *d);
/* Removes the --pidfile, and ends the log (log.h). */
void daemon_end(struct daemon *d);

#endif
