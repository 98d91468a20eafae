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
    bool help, version;
    struct stream_tls_options tls;
};

/* Takes the options; the other words begin at optind. */
enum status options_take(struct invocation *v, int argc, char **argv);

/* Their part of --help, on stdout. */
void options_print(void);

#endif
