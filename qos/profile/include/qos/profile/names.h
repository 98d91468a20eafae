/* SPDX-License-Identifier: Apache-2.0 */
/* Which addresses are known for which names (docs/how-to/dpctl-qos.md, "Names").  Bounded, however many
 * answers come: what is too much is refused until something expires. */
#ifndef QOS_PROFILE_NAMES_H
#define QOS_PROFILE_NAMES_H

#include <qos/profile/dns.h>

struct qos_names_limits {
    uint32_t min_s, max_s; /* how long an address counts, whatever its TTL */
    uint32_t per_name, all;
};

struct qos_names {
    struct qos_names_limits limits;
    struct qos_names_entry {
        char name[QOS_DNS_NAME]; /* that fits the rule */
        uint8_t address[16];
        bool v6;
        uint16_t rule;
        uint64_t made_s, until_s;
    } * v; /* limits.all of them, the caller's */
    size_t n;
};

enum qos_names_news {
    QOS_NAMES_NEW,   /* make its flows */
    QOS_NAMES_AGAIN, /* make them again: their time runs from now */
    QOS_NAMES_SAME,  /* made so lately that nothing needs to be done */
    QOS_NAMES_FULL,  /* too many addresses, of this name or in all */
};

/* How long an address counts without packets: its TTL within the limits. */
uint32_t qos_names_seconds(const struct qos_names *t, uint32_t ttl);

/* Learns that a rule's name has this address.  `now_s`: any clock that only goes forward. */
enum qos_names_news qos_names_learn(struct qos_names *t, uint16_t rule, const char *name,
                                    const struct qos_dns_address *a, uint64_t now_s);

#endif
