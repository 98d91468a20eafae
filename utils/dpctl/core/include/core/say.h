/* SPDX-License-Identifier: Apache-2.0 */
/* Messages to the person, on stderr: "dpctl: COMMAND: what is wrong".  A function returns the
 * status that its message means, so that callers can return it. */
#ifndef DPCTL_CORE_SAY_H
#define DPCTL_CORE_SAY_H

#include <core/context.h>

/* Bad arguments: the message, then the command's usage.  DPCTL_USAGE. */
__attribute__((format(printf, 2, 3))) enum status say_usage(struct ctx *c, const char *fmt, ...);

/* What oflib's parser answered (err): its sentence in c->parse.why, or out of memory. */
enum status say_parse(struct ctx *c, int err);

/* DPCTL_FAILED. */
__attribute__((format(printf, 2, 3))) enum status say_failed(struct ctx *c, const char *fmt, ...);
enum status say_memory(struct ctx *c);     /* out of memory */
enum status say_malformed(struct ctx *c);  /* the switch's answer can't be read */
enum status say_unexpected(struct ctx *c); /* the switch's answer is to another question */

/* What is wrong with a line of a file; line 0: with the file as a whole.  DPCTL_USAGE. */
__attribute__((format(printf, 4, 5))) enum status say_line(struct ctx *c, const char *file,
                                                           unsigned line, const char *fmt, ...);

/* Something that is allowed but rarely meant; remark "": nothing is.  Asks the person at a terminal
 * whether to go on; elsewhere it only warns.  DPCTL_USAGE: don't go on. */
enum status say_doubt(struct ctx *c, const char *remark);

/* The question alone, where the remarks have been made. */
enum status say_go_on(struct ctx *c);

/* The commands of a file that were carried out before one failed: how many, in which lines. */
struct done {
    unsigned n, first, last;
};
void done_add(struct done *d, unsigned line);
void done_say(const char *file, const struct done *d, const char *what); /* what: "commands" */

#endif
