/* SPDX-License-Identifier: Apache-2.0 */
/* The latest changes of the flow tables, so that a cache withdraws what a change may concern and
 * keeps the rest.
 *
 * When a flow came, went, or got other instructions, the control thread notes its table, key and
 * mask.  It publishes the note after workers can see the change, and before the grace period of a
 * removed flow ends.  Changes are numbered.  While a change set is open (change-set.h), its
 * changes count only for the side that workers have not crossed to.  Once all have crossed, they
 * count for both sides, since the next set brings workers back to the first one.
 *
 * The log knows the latest changes one by one.  Of older ones it knows only the last change of each table.  So
 * thousands of changes, such as those of a bundle, cost packets nothing that don't come to the tables they change. */
#ifndef TABLE_CHANGE_LOG_H
#define TABLE_CHANGE_LOG_H

#include <flow/flow.h>

/* On a 32-bit processor numbers begin anew after 2^32 changes. */
typedef unsigned long change_number;

struct change_block;

struct change_log {
    struct change_block *blocks; /* the newest; RCU; NULL: none yet */
    change_number last;          /* control thread */
    change_number head[2];       /* the last one for each side of change sets */
    change_number of_table[256]; /* the last one of each table */
};

void change_log_free(struct change_log *l); /* no readers */
void change_log_write(struct change_log *l, const struct flow *f);
void change_log_publish(struct change_log *l); /* what has been written */

/* Worker: the last change that it can see. */
change_number change_log_head(const struct change_log *l);

/* Packets with this key under this mask, in these tables. */
struct change_query {
    const struct flow_key *key, *mask;
    const uint8_t *table;
    unsigned n_tables;
};

/* Worker, under RCU: whether one of the changes after `from`, up to `to`, concerns the packets;
 * also true if the log doesn't reach back so far.  Compares the packets with CHANGES_TOLD changes at
 * most. */
bool change_log_concerns(const struct change_log *l, change_number from, change_number to,
                         const struct change_query *q);

/* Control thread: tables_change_tells. */
struct change_tells;
int change_log_tells(const struct change_log *l, change_number from, struct change_tells *to,
                     unsigned n);

#endif
