/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out what the settings want: at the start all of it, later what has changed. */
#ifndef MAIN_APPLY_H
#define MAIN_APPLY_H

#include "options.h"
#include "wanted.h"

/* What runs, and what it becomes. */
struct running {
    struct sw *sw;
    const struct main_options *options;
    const struct wanted *was; /* NULL: nothing */
    const struct wanted *now;
    struct queue_jobs *jobs;
};

/* Adds a port for an interface; waits: also for one that is not there yet.  The port is perhaps gone where it was,
 * in another process or under another number, so it is tried again where something is missing for a moment only,
 * such as memory.  0, or -errno with a sentence in `why`. */
int apply_interface(struct sw *sw, const char *name, uint32_t no, bool waits, char *why,
                    size_t why_len);

/* Adds a port.  0, or -errno with a sentence in `why`. */
int apply_port(struct sw *sw, const struct main_options *options, const struct wanted_port *p,
               char *why, size_t why_len);

/* Adds a connection, and warns of one that is open to all. */
int apply_connection(struct sw *sw, const struct main_options *options, const char *text, char *why,
                     size_t why_len);

/* Functions of the options' rows (daemon_option.apply); ctx is the struct running.  What can't be
 * done is logged, and the rest is done. */
void apply_ports(void *ctx);
void apply_connections(void *ctx);
void apply_slices(void *ctx);
void apply_channel(void *ctx);
void apply_limits(void *ctx);
void apply_busy_poll(void *ctx);
void apply_offload(void *ctx);
void apply_descriptions(void *ctx);
void apply_fail(void *ctx);
void apply_queue_options(void *ctx);
void apply_queues(void *ctx); /* queues.c */

/* After each change of the settings: their texts live no longer. */
void apply_always(void *ctx);

#endif
