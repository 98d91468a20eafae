/* SPDX-License-Identifier: Apache-2.0 */
/* --state and --restore: the switch's state from a file at the start, and into it at the end. */
#ifndef MAIN_SAVED_H
#define MAIN_SAVED_H

#include <switch/switch.h>

struct saved {
    const char *state;   /* --state: read if it is there, written at the end; NULL: none */
    const char *restore; /* --restore: read, and must be there; NULL: none */
    bool takes_over; /* `restore` is another process's, which has ended when the ports are there */
    struct of_bytes bytes;
    bool open;
};

/* Before the ports are added: reads the file and fills the tables.  -errno and a sentence in `why`
 * if --restore can't be done.  A --state that can't be read or used is renamed to FILE.bad and
 * logged, and the switch starts without. */
int saved_load_tables(struct saved *s, struct sw *sw, char *why, size_t n);

/* Once they are there. */
int saved_load_ports(struct saved *s, struct sw *sw, char *why, size_t n);

void saved_write(const struct saved *s, struct sw *sw);

#endif
