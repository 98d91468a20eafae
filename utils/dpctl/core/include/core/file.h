/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files. */
#ifndef DPCTL_CORE_FILE_H
#define DPCTL_CORE_FILE_H

#include <core/context.h>

/* Writes to a file that appears as a whole, in place of one of this name: a reader sees the
 * old one or the new one.  "-": stdout.  What is no file (a pipe, a device) is written to. */
enum status file_replace(struct ctx *c, const char *path, struct of_bytes content);

/* Reads at most so many bytes; more are refused.  The caller frees *out, if this succeeds. */
enum status file_read(struct ctx *c, const char *path, size_t most, struct of_wr *out);

#endif
