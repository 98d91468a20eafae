/* SPDX-License-Identifier: Apache-2.0 */
/* A new process of the same program takes the switch over (dpctl restart), for an upgrade.
 *
 * The old process starts it and goes on forwarding while the new one reads the state and makes its
 * tables.  Then the old one closes its ports and the new one opens them: packets stand still only
 * during that.  Queues stay in the kernel.  If the new process does not get that far, the old one
 * goes on as before. */
#ifndef MAIN_RESTART_H
#define MAIN_RESTART_H

#include <switch/switch.h>

#include <daemon/daemon.h>

struct restart {
    bool takes_over; /* this is the new process */
    char *ports;     /* "eth1=1,eth2=2": the old one's; the caller's string */
    char state[32];  /* the file with its state, */
    int state_fd;    /* which is memory until it is closed */
    int socket;
    int old_pid;
    uint64_t stood_still; /* since when, monotonic ns */
};

/* To be called first of all: whether this is the new process. */
struct restart restart_begin(char **argv);

/* To be called by the new process when it has read the state: tells the old one that it can end,
 * and waits until its ports are free. */
void restart_ready(struct restart *r);

/* Adds the old one's ports.  There is no way back now: one that can't be added is logged. */
void restart_add_ports(struct restart *r, struct sw *sw);

/* To be called when packets are forwarded again. */
void restart_done(const struct restart *r);

/* The old process: returns only if the new one failed: -errno and a sentence. */
int restart_run(struct sw *sw, char *why, size_t n);

#endif
