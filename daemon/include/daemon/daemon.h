/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemons' command lines have in common: running in the background, the files they write,
 * and how arguments are read and refused.  The names of the options are BOFUSS's.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

/* ---------------------------------------------------------------- arguments */

/* A sentence on stderr, with the program's name before it, and exit status 1. */
__attribute__((format(printf, 1, 2), noreturn)) void daemon_die(const char *fmt, ...);

/* What is out of range, or no number, is refused by daemon_die(): `what` is the option. */
unsigned daemon_arg_number(const char *what, const char *text, unsigned min, unsigned max);
/* Seconds with a fraction, 0.1 to 3600 -> ms.  `or_zero`: what 0 means (", or 0 for never"); "": it
 * isn't allowed. */
uint32_t daemon_arg_seconds(const char *what, const char *text, const char *or_zero);
/* closed or open (secure, standalone): is it open? */
bool daemon_arg_fail(const char *text);

/* ------------------------------------------------------------ in the background */

struct daemon {
    bool detach, force;
    const char *pidfile, *log_file; /* NULL: none */
    int pid_fd, ready_fd;
};

/* For getopt_long; `verbose` is read and means nothing. */
enum { DAEMON_LOG_FILE = 1000 };
#define DAEMON_SHORT_OPTIONS "DP::fv::"
/* clang-format off */
#define DAEMON_LONG_OPTIONS                                                                        \
    {"detach", no_argument, NULL, 'D'}, {"pidfile", optional_argument, NULL, 'P'},                 \
    {"force", no_argument, NULL, 'f'}, {"log-file", optional_argument, NULL, DAEMON_LOG_FILE},     \
    {"verbose", optional_argument, NULL, 'v'}
/* clang-format on */
#define DAEMON_USAGE                                                                               \
    "  -D, --detach                 go to the background once all is set up\n"                     \
    "  -P, --pidfile[=FILE]         write the process id there (/run/PROGRAM.pid)\n"               \
    "  -f, --force                  with -P: start even if another one runs\n"                     \
    "      --log-file[=FILE]        messages go there (/var/log/PROGRAM.log), not to stderr\n"

/* Takes one of these options (getopt's value and optarg); false: it is none of them. */
bool daemon_option(struct daemon *d, int opt, const char *arg);

/* Before threads and files are made: with --detach the process forks, and the first one waits.
 * What goes wrong is said by daemon_die(). */
void daemon_begin(struct daemon *d);
/* All is set up: with --detach the first process ends with status 0. */
void daemon_ready(struct daemon *d);
/* SIGTERM, SIGINT, SIGQUIT and SIGHUP as events of a descriptor, so that the end is an orderly one;
 * SIGPIPE, SIGUSR1, SIGUSR2 and the like are ignored.  Before there are threads, which inherit it. */
int daemon_signals(void);
/* When that descriptor is readable: SIGHUP opens the log file anew; true: another one ends it all. */
bool daemon_is_over(struct daemon *d, int signals);
/* Removes the file with the process id, and ends the log (log.h). */
void daemon_end(struct daemon *d);

#endif
