/* SPDX-License-Identifier: Apache-2.0 */
/* dpctl top: ports, queues, flows, meters, groups, tables and processors by rate. */
#ifndef DPCTL_TOP_H
#define DPCTL_TOP_H

#include <core/context.h>

/* Words: a view's name, interval=TIME, count=N, rows=N, sort=COLUMN, filter=TEXT; for flows also the
 * fields of stats-flow.  `once`: one table of text, even on a terminal. */
enum status top_run(struct ctx *c, char **words, int n, bool once);

/* The views and their columns, for help. */
void top_print_views(struct of_wr *w);

#endif
