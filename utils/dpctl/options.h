/* SPDX-License-Identifier: Apache-2.0 */
/* dpctl's options: one row each (options.c), of which getopt and --help are made. */
#ifndef DPCTL_OPTIONS_H
#define DPCTL_OPTIONS_H

#include <core/context.h>

/* What the command line asks for. */
struct invocation {
    struct ctx c;
    const char *file; /* -F */
    bool atomic;      /* the file as one bundle */
    const char *help; /* --help: "", or the format that is wanted; NULL: not given */
    bool version;
    const char *protocols; /* -O; NULL: not given */
    struct stream_tls_options tls;
};

/* Takes the options; the other words begin at optind. */
enum status options_take(struct invocation *v, int argc, char **argv);

/* Their part of --help, on stdout. */
void options_print(void);

/* Calls for each of them; letter 0, argument NULL: there is none; argument "[...]": may be left
 * out. */
void options_each(void (*call)(char letter, const char *name, const char *argument,
                               const char *help));

#endif
