/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's state in a file: flows, groups, meters, port configuration and queues
 * (docs/how-to/state.md).  Functions answer 0, or -errno and a sentence in `why`. */
#ifndef REQUESTS_STATE_H
#define REQUESTS_STATE_H

#include <oflib/wire.h>

struct sw;

/* Writes the state to a new file that then takes this name, so the name never has half a state. */
int sw_state_write(struct sw *sw, const char *file, char *why, size_t n);

/* The same to a descriptor, without a name and a sentence. */
int sw_state_write_to(struct sw *sw, int fd);

/* A file's content, read as a whole and checked.  The caller unmaps it by sw_state_close.  -ENOENT:
 * there is no such file. */
int sw_state_open(const char *file, struct of_bytes *out, char *why, size_t n);
void sw_state_close(struct of_bytes state);

/* Flows, groups and meters, into tables that are empty; all or nothing.  To be called before there
 * are ports, so that no packet meets half a table. */
int sw_state_load_tables(struct sw *sw, struct of_bytes state, char *why, size_t n);

/* Port configuration and queues, once the ports are there.  Ports that are missing are left out. */
int sw_state_load_ports(struct sw *sw, struct of_bytes state, char *why, size_t n);

#endif
