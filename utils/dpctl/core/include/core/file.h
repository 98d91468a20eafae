/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that go to a file. */
#ifndef DPCTL_CORE_FILE_H
#define DPCTL_CORE_FILE_H

#include <core/context.h>

/* Writes the text to a file that appears as a whole, in place of one of this name: a reader sees the
 * old one or the new one.  "-": stdout.  What is no file (a pipe, a device) is written to. */
enum status file_replace(struct ctx *c, const char *path, const struct of_wr *text);

#endif
