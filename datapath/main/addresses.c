/* SPDX-License-Identifier: Apache-2.0 */
#include "addresses.h"

#include <switch/switch.h>

#include <daemon/log.h>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <string.h>

/* The interface's address as text: no link-local one, which every interface has. */
static bool
address_of(const struct ifaddrs *all, const char *name, char text[INET6_ADDRSTRLEN])
{
    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        const struct sockaddr_in *v4 = (const void *)a->ifa_addr;
        const struct sockaddr_in6 *v6 = (const void *)a->ifa_addr;
        if (!a->ifa_addr || strcmp(a->ifa_name, name))
            continue;
        if (v4->sin_family == AF_INET)
            return inet_ntop(AF_INET, &v4->sin_addr, text, INET6_ADDRSTRLEN);
        if (v6->sin6_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
            return inet_ntop(AF_INET6, &v6->sin6_addr, text, INET6_ADDRSTRLEN);
    }
    return false;
}

static unsigned
forwarding_ports(const struct sw *sw)
{
    unsigned n = 0;
    for (const struct sw_port *p = sw_ports_next(sw, 0); p; p = sw_ports_next(sw, p->no))
        n += !p->queues_only && !p->files;
    return n;
}

void
addresses_say(const struct sw *sw)
{
    struct ifaddrs *all;
    char text[INET6_ADDRSTRLEN];
    if (!sw->opt.fail_open || sw->opt.local_port || forwarding_ports(sw) < 2 || getifaddrs(&all))
        return;
    for (const struct sw_port *p = sw_ports_next(sw, 0); p; p = sw_ports_next(sw, p->no))
        if (!p->queues_only && !p->files && address_of(all, p->name, text))
            log_notice(
                PORT,
                "port %u (%s) has this machine's address %s: machines behind other ports do not reach it; give "
                "it to a local port instead (--local-port=NAME)",
                (unsigned)p->no, p->name, text);
    freeifaddrs(all);
}
