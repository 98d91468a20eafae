/* SPDX-License-Identifier: Apache-2.0 */
/* Answers on stdout. */
#ifndef DPCTL_CORE_VIEW_H
#define DPCTL_CORE_VIEW_H

#include <core/context.h>

#define VIEW_MAX ((size_t)1 << 30) /* bytes of an answer */

/* The message as JSON, or laid out for people. */
enum status view_message(struct ctx *c, const struct of_msg *msg);

/* The same, a table with one more column, of texts; of NULL nothing is written.  They are of the list as
 * view_order has it.  --json has them not. */
enum status view_list_and(struct ctx *c, const struct of_msg *msg, const char *title,
                          char *const *texts);

/* An error message: a sentence on stderr, with --json also the message on stdout.  DPCTL_FAILED. */
enum status view_error(struct ctx *c, const struct of_msg *msg);

/* The writer's text and a newline.  Releases the writer. */
enum status view_line(struct ctx *c, struct of_wr *w);

/* Sorts the message's lists: flows by table and priority, groups by number, ... */
void view_order(const struct of_msg *msg);

#endif
