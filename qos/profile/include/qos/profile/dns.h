/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of names, from DNS answers that pass through (RFC 1035, 3596).  The input is not
 * trusted: everything is bounded and checked, nothing is allocated. */
#ifndef QOS_PROFILE_DNS_H
#define QOS_PROFILE_DNS_H

#include <oflib/codec.h>

#define QOS_DNS_NAME      256 /* bytes of a name as text */
#define QOS_DNS_RECORDS   128 /* of an answer; the others are not looked at */
#define QOS_DNS_CHAIN     16  /* a name, and what it is an alias of, and so on */
#define QOS_DNS_ADDRESSES 64  /* of an answer */

struct qos_dns_answer {
    /* The name that was asked for, then its aliases' targets.  In lower case; what is neither letter,
     * digit, "-", "_" nor the dot between labels is "?". */
    char names[QOS_DNS_CHAIN][QOS_DNS_NAME];
    size_t n_names;
    struct qos_dns_address {
        uint8_t bytes[16];
        bool v6;
        uint8_t name; /* the last of the names that lead to it */
        uint32_t ttl; /* seconds: the least of it and its aliases */
    } v[QOS_DNS_ADDRESSES];
    size_t n;
};

/* The DNS message of an Ethernet frame: UDP from port 53, over IPv4 or IPv6, whole, with up to two
 * VLAN tags.  n = 0: there is none. */
struct of_bytes qos_dns_find(struct of_bytes frame);

/* Reads an answer without error to a question of the Internet.  False: it is none, or malformed; then
 * nothing of it counts.  Addresses that are no host's (multicast, loopback, ...) are left out. */
bool qos_dns_read(struct of_bytes message, struct qos_dns_answer *out);

/* "example.org", or "*.example.org": every name below that.  qos_dns_pattern: is it one? */
bool qos_dns_pattern(const char *pattern);
bool qos_dns_fits(const char *pattern, const char *name);

#endif
