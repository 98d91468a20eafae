/* SPDX-License-Identifier: Apache-2.0 */
/* The hosts of a prefix, each to have a queue (docs/how-to/dpctl-qos.md, "A queue for each host").  Pure. */
#ifndef QOS_PROFILE_HOSTS_H
#define QOS_PROFILE_HOSTS_H

#include <oflib/oxm.h>

#include <stddef.h>

#define QOS_HOSTS_MAX  4096
#define QOS_HOSTS_TEXT 64 /* room for a host as text */

struct qos_hosts {
    bool v6;
    bool source;      /* hosts are packets' sources, not destinations */
    uint8_t base[16]; /* the prefix */
    uint8_t bits;     /* of the prefix, */
    uint8_t each;     /* and of what is one host: 32 or 128, or less */
    uint32_t n;       /* hosts */
    uint32_t skip;    /* 1: the network's and the broadcast address are none */
};

/* From "10.0.0.0/24" or "2001:db8::/52"; each 0: an address is a host.  -EINVAL with a sentence in
 * `why`. */
int qos_hosts_parse(struct qos_hosts *h, const char *text, unsigned each, char *why, size_t n);

/* Host i (from 0): "10.0.0.1", "2001:db8::/64".  Returns buf. */
char *qos_hosts_print(const struct qos_hosts *h, uint32_t i, char buf[QOS_HOSTS_TEXT]);

/* Does the match name the address of a host of the prefix?  *i is the host's number then. */
bool qos_hosts_find(const struct qos_hosts *h, const struct of_match *m, uint32_t *i);

#endif
