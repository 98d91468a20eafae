/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the ports' queues and the rules those of the settings (wanted.h), in the way of
 * controllers' bundles: a port's queues change as a whole or not at all, and so does a set of
 * rules.  What is refused is logged, and the switch goes on.  Long changes take many turns of the
 * loop. */
#ifndef MAIN_QUEUES_H
#define MAIN_QUEUES_H

#include "apply.h"

struct queue_jobs;

/* r is borrowed.  -errno. */
int queue_jobs_new(const struct running *r, struct queue_jobs **out);
/* The port has just been added: it gets its queues. */
void queue_jobs_port(struct queue_jobs *q, const char *name);
/* Tries again what was refused: a port's queues, or everything (NULL). */
void queue_jobs_retry(struct queue_jobs *q, const char *port);
/* What was refused and is not in force, the i-th of it; NULL: there is none. */
const char *queue_jobs_refused(const struct queue_jobs *q, unsigned i);
/* Before the switch ends, and after it has. */
void queue_jobs_stop(struct queue_jobs *q);
void queue_jobs_free(struct queue_jobs *q);
bool queue_jobs_over(const struct queue_jobs *q); /* nothing is left to do */
/* Calls `done` at once or later, when nothing is left to do. */
void queue_jobs_wait(struct queue_jobs *q, void (*done)(void *ctx), void *ctx);

#endif
