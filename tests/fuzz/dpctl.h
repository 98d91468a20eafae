/* SPDX-License-Identifier: Apache-2.0 */
/* dpctl as a whole, with all around it replaced (dpctl.c): the switch, files, the clock, signals, what is
 * printed.  Nothing leaves the process, and every command ends. */
#ifndef FUZZ_DPCTL_H
#define FUZZ_DPCTL_H

#include <oflib/wire.h>

#define DPCTL_WORDS_MAX 256

/* What is around one run. */
struct fuzz_world {
    struct of_bytes file; /* the content of every file that is read */
    struct of_bytes
        answers;      /* OpenFlow messages that the switch sends; their xids are made to fit */
    const char *keys; /* it runs at a terminal, where these are typed; NULL: at none */
};

/* Runs dpctl with these words behind its name, which it may change.  Aborts if it fails without a word, or
 * sends what is no message. */
void fuzz_dpctl(char **words, int n, const struct fuzz_world *world);

#endif
