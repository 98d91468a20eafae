/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out the settings: at the start all of them, later those that have changed. */
#ifndef MAIN_APPLY_H
#define MAIN_APPLY_H

#include "options.h"
#include "wanted.h"

/* The running switch, and what the settings want it to be. */
struct running {
    struct sw *sw;
    const struct main_options *options;
    const struct wanted *was; /* NULL: nothing */
    const struct wanted *now;
    struct queue_jobs *jobs;
};

/* Adds a port for an interface; waits: even if the interface is not there yet.  The port may have
 * been closed just now, in another process or under another number.  So if something is missing
 * for a moment only, such as memory, it is tried again.  0, or -errno with a sentence in `why`. */
int apply_interface(struct sw *sw, const char *name, uint32_t no, bool waits, char *why,
                    size_t why_len);

/* Adds a port.  0, or -errno with a sentence in `why`. */
int apply_port(struct sw *sw, const struct main_options *options, const struct wanted_port *p,
               char *why, size_t why_len);

/* Sets the VLANs of the port's number. */
int apply_vlans(struct sw *sw, const struct wanted_port *p, char *why, size_t why_len);

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
void apply_reserved(void *ctx);
void apply_queue_options(void *ctx);
void apply_queues(void *ctx); /* queues.c */

/* To be called after each change of the settings, because the old settings' texts are gone. */
void apply_always(void *ctx);

#endif
