/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of confine.c.  Each: 0, or -errno: the kernel or the build can't. */
#ifndef DAEMON_CONFINE_INSIDE_H
#define DAEMON_CONFINE_INSIDE_H

#include <daemon/confine.h>

/* confine-files.c: Landlock.  Files can be written, made and removed in the directories of the paths
 * that are written, and in a few that every switch needs. */
int confine_files(const struct confine_path *paths, size_t n);

/* The directory of the path that is there: the path's, or one above it. */
void confine_directory(const char *path, char *out, size_t n);

/* confine-calls.c, or -none.c: seccomp. */
int confine_calls(bool strict, const struct confine_needs *n);

#endif
