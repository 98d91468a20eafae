/* SPDX-License-Identifier: Apache-2.0 */
/* What dpctl's help says, as sections of manual pages (roff's man macros) and as JSON. */
#ifndef DPCTL_MANUAL_H
#define DPCTL_MANUAL_H

#include <core/command.h>

/* Writes in one of the formats to stdout: "man", the options and a line for each command; "man-SUBJECT",
 * what a subject's commands take; "schedulers", the schedulers and their keys as a profile takes
 * them; "markdown", the options' table; "json", the options and all commands.  False: there is no
 * such format. */
bool manual_print(const char *format);

#endif
