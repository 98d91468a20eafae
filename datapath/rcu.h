/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that packet workers may still be looking at (liburcu, QSBR flavour).
 *
 * Only the control thread changes shared structures.  What it takes out of them is put on a list
 * here and freed after the next grace period, at the end of the control loop's turn.
 */
#ifndef DATAPATH_RCU_H
#define DATAPATH_RCU_H

#include <urcu/urcu-qsbr.h>

/* Control thread only. */
void rcu_defer(void (*fn)(void *), void *arg);
void rcu_defer_free(void *p);

/* Waits until every worker has passed a quiescent state, then runs what was deferred. */
void rcu_wait(void);

/* The same, where anything waits: at the end of a turn of the control loop. */
void rcu_turn(void);

#endif
