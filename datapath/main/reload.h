/* SPDX-License-Identifier: Apache-2.0 */
/* The settings in force: read at the start, and again on SIGHUP or RELOAD. */
#ifndef MAIN_RELOAD_H
#define MAIN_RELOAD_H

#include "apply.h"

struct configuration {
    const struct daemon_program *program;
    struct daemon_settings line; /* what the command line says */
    struct state {
        struct daemon_settings settings;
        struct wanted wanted;
    } * now;
    struct running running;
};

/* Reads the command line and the file that it names.  Mistakes end the program, --check as well. */
void configuration_begin(struct configuration *c, int argc, char **argv);

/* Reads the file again, checks it as a whole, and applies what differs.  0, or -EINVAL: nothing has
 * changed, and `why` is a sentence; all mistakes are logged. */
int configuration_reload(void *c, char *why, size_t why_len);

/* Makes the queues of a port that waited for its interface; again: only those that it could not be
 * given before the interface went (struct sw's port_has_come). */
void configuration_port_has_come(void *c, const char *name, bool again);

/* What of the configuration is not in force, because it was refused: "port eth1: ..."; NULL behind the last (struct
 * sw's config_refused). */
const char *configuration_refused(void *c, unsigned i);

void configuration_end(struct configuration *c);

#endif
