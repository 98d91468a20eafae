/* SPDX-License-Identifier: Apache-2.0 */
/* Words of Open vSwitch's fields and actions that this switch lacks, and what to write instead. */
#ifndef OFLIB_ABSENT_H
#define OFLIB_ABSENT_H

#include <stddef.h>

#define OF_ABSENT_TEXT 320 /* bytes that are enough for of_absent */

/* The text begins with the word: "reg0=5", "ct(commit)", "load:1->...".  -> a sentence in buf; NULL:
 * it is none of these words. */
const char *of_absent(const char *text, size_t n, char *buf, size_t size);

#endif
