/* SPDX-License-Identifier: Apache-2.0 */
/* Reflectors: hosts that send back what they get (ICMP echo, or UDP's echo service), and how long that takes. */
#ifndef DPCTL_AUTORATE_PROBE_H
#define DPCTL_AUTORATE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE_REFLECTORS 8       /* at most */
#define PROBE_SENT       64      /* probes of a reflector that may be on their way */
#define PROBE_SILENT     5000000 /* us without an answer after which a reflector no longer counts */

/* Times in microseconds of CLOCK_MONOTONIC. */
struct reflector {
    int fd;
    bool udp, v6, raw;
    uint32_t sent, heard; /* numbers of the last probe sent, and of the newest answered; 0: none */
    int64_t sent_at[PROBE_SENT]; /* by number */
    int64_t heard_at;            /* of the last answer */
    int64_t rtt, baseline;       /* of the newest answer; least */
};

struct probes {
    struct reflector v[PROBE_REFLECTORS];
    unsigned n;
    int epoll;      /* readable: there is an answer */
    uint32_t nonce; /* tells our probes from others' */
};

/* 0, or -errno and a sentence in `why`. */
int probes_open(struct probes *p, char *why, size_t size);
/* "10.0.0.1", "fd00::1", "udp:10.0.0.1:7", "udp:[fd00::1]:7".  Likewise. */
int probes_add(struct probes *p, const char *text, char *why, size_t size);
void probes_close(struct probes *p);

/* Sends a probe to each. */
void probes_send(struct probes *p, int64_t now);
/* Takes the answers that have come. */
void probes_receive(struct probes *p, int64_t now);

/* The delay above the baselines, over all reflectors that answer (autorate_delay); an unanswered
 * probe counts with the time that it has waited.  -1: none answers.  *answering: how many do;
 * *baseline: the least of their baselines. */
int64_t probes_delay(const struct probes *p, int64_t now, unsigned *answering, int64_t *baseline);

#endif
