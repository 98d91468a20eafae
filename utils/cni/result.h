/* SPDX-License-Identifier: Apache-2.0 */
/* A result: of an IPAM plugin, of ADD (prevResult), and the one that ADD prints. */
#ifndef CNI_RESULT_H
#define CNI_RESULT_H

#include "cni.h"

#define RESULT_IPS    64
#define RESULT_ROUTES 256

struct address {
    int family; /* AF_INET, AF_INET6; 0: none */
    uint8_t bytes[16];
    unsigned prefix;
};

/* "10.1.0.5/24", or without `prefixed` "10.1.0.5".  False: it is none. */
bool address_parse(const char *text, bool prefixed, struct address *out);
unsigned address_len(const struct address *a); /* bytes */

struct result_ip {
    struct address address, gateway;
    int interface; /* index into the result's interfaces; -1: not given */
};

struct result_route {
    struct address dst, gateway;
    uint32_t mtu, advmss, priority, table; /* 0: not given */
    int scope;                             /* -1: not given */
};

struct result {
    struct result_ip ips[RESULT_IPS];
    struct result_route routes[RESULT_ROUTES];
    unsigned n_ips, n_routes;
};

/* `whose`: what messages begin with, such as "IPAM plugin host-local". */
int result_read(struct cni *c, const char *whose, const json_t *json, struct result *out);

/* Fills in what a gateway's network needs: the gateways' addresses where the IPAM plugin left them open, and
 * with isDefaultGateway the default routes. */
void result_complete(const struct cni_conf *conf, struct result *r);

/* The gateway of a route that names none: that of the first address of its family. */
struct address result_gateway(const struct result *r, const struct result_route *route);

struct result_end {
    const char *name;
    const uint8_t *mac;
    unsigned mtu;
};

/* What ADD prints; `ipam` is the IPAM plugin's answer, or NULL.  NULL: no memory. */
json_t *result_make(const struct cni *c, const struct result_end *host,
                    const struct result_end *inside, const struct result *r, const json_t *ipam);

#endif
