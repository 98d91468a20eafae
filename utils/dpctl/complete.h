/* SPDX-License-Identifier: Apache-2.0 */
/* dpctl complete WORD...: how the last word, which may be empty, may go on. */
#ifndef DPCTL_COMPLETE_H
#define DPCTL_COMPLETE_H

#include <core/context.h>

/* Does argv[1] ask for completion? */
bool complete_is(int argc, char **argv);

/* Prints a line for each way to go on: the word, a tab, what it is.  The words are those of a
 * command line without "dpctl". */
enum status complete_words(char **words, int n);

#endif
