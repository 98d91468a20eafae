/* SPDX-License-Identifier: Apache-2.0 */
/* CHECK: is everything as ADD made it?  STATUS: could ADD be carried out? */
#include "attach.h"
#include "door.h"
#include "ipam.h"
#include "rules.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The container's interface in prevResult; NULL: it is not there. */
static const json_t *
find_interface(const json_t *interfaces, const char *name, int *index)
{
    size_t i;
    const json_t *v;
    json_array_foreach(interfaces, i, v)
    {
        const char *is = json_string_value(json_object_get(v, "name"));
        const char *sandbox = json_string_value(json_object_get(v, "sandbox"));
        if (is && sandbox && *sandbox && !strcmp(is, name)) {
            *index = (int)i;
            return v;
        }
    }
    return NULL;
}

static int
check_interface(struct cni *c, struct links *there, struct link_there *it, int *index)
{
    const uint8_t *m = it->mac;
    char is[18];
    const json_t *v = find_interface(json_object_get(c->conf.prev, "interfaces"), c->ifname, index);
    if (!v)
        return cni_fail(c, CNI_BAD_CONFIG, "prevResult has no interface %s with a sandbox",
                        c->ifname);
    int found = link_find(c, there, c->ifname, it);
    if (found <= 0)
        return found ? -1
                     : cni_fail(c, CNI_DIFFERS, "the container has no interface %s", c->ifname);
    snprintf(is, sizeof is, "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]);
    const char *mac = json_string_value(json_object_get(v, "mac"));
    return !mac || !strcasecmp(mac, is)
               ? 0
               : cni_fail(c, CNI_DIFFERS, "interface %s has the address %s and should have %.20s",
                          c->ifname, is, mac);
}

static int
check_addresses(struct cni *c, struct links *there, const struct link_there *it, int index)
{
    static struct result r;
    char text[INET6_ADDRSTRLEN];
    if (result_read(c, "prevResult", c->conf.prev, &r))
        return -1;
    for (unsigned i = 0; i < r.n_ips; i++) {
        const struct address *a = &r.ips[i].address;
        if (r.ips[i].interface >= 0 && r.ips[i].interface != index)
            continue;
        int has = link_has_address(c, there, it, a);
        if (has <= 0)
            return has ? -1
                       : cni_fail(c, CNI_DIFFERS, "interface %s lacks the address %s/%u", it->name,
                                  inet_ntop(a->family, a->bytes, text, sizeof text), a->prefix);
    }
    for (unsigned i = 0; i < r.n_routes; i++) {
        const struct address *a = &r.routes[i].dst;
        int has = link_has_route(c, there, it, &r, &r.routes[i]);
        if (has <= 0)
            return has ? -1
                       : cni_fail(c, CNI_DIFFERS, "the container lacks the route to %s/%u",
                                  inet_ntop(a->family, a->bytes, text, sizeof text), a->prefix);
    }
    return 0;
}

static int
check_door(struct cni *c, struct links *there, int netns)
{
    struct attachment names;
    int err = attach_name(c, c->id, c->ifname, &names);
    return err ? err : door_check(c, there, netns, names.host);
}

static int
check_inside(struct cni *c)
{
    struct links *there = NULL;
    struct link_there it = {0};
    int netns = -1, index = -1;
    bool failed = link_open_netns(c, &netns) || link_open(c, netns, &there) ||
                  check_interface(c, there, &it, &index) || check_addresses(c, there, &it, index) ||
                  check_door(c, there, netns);
    link_close(there);
    if (netns >= 0)
        close(netns);
    return failed ? -1 : 0;
}

static int
check_host(struct cni *c)
{
    struct attachment names;
    struct links *here = NULL;
    struct link_there it;
    if (attach_name(c, c->id, c->ifname, &names) || link_open(c, -1, &here))
        return -1;
    int found = attach_find_host(c, here, &names, &it);
    link_close(here);
    return found > 0   ? 0
           : found < 0 ? -1
                       : cni_fail(c, CNI_DIFFERS, "the host's end of %s, interface %s, is gone",
                                  c->ifname, names.host);
}

static int
check_queues(struct cni *c, struct node_switch *s, const char *name, uint32_t no)
{
    static struct result r;
    return port_check_rates(c, s, no) || result_read(c, "prevResult", c->conf.prev, &r) ||
                   rules_check(c, s, name, no, &r)
               ? -1
               : 0;
}

static int
check_port(struct cni *c)
{
    struct attachment names;
    struct node_switch *s = NULL;
    uint32_t no = 0;
    if (attach_name(c, c->id, c->ifname, &names) || port_open_switch(c, CNI_TRY_AGAIN, &s))
        return -1;
    int found = port_find(c, s, names.host, &no);
    int err = found > 0 ? check_queues(c, s, names.host, no)
              : found == 0
                  ? cni_fail(c, CNI_DIFFERS, "interface %s is no port of the switch", names.host)
                  : -1;
    port_close_switch(s);
    return err;
}

int
cni_check(struct cni *c)
{
    json_t *none;
    if (!c->conf.prev)
        return cni_fail(c, CNI_BAD_CONFIG, "CHECK needs prevResult, what ADD has printed");
    return check_inside(c) || check_host(c) || check_port(c) || ipam_run(c, "CHECK", &none) ? -1
                                                                                            : 0;
}

int
cni_status(struct cni *c)
{
    struct node_switch *s = NULL;
    json_t *none;
    int err = port_open_switch(c, CNI_UNAVAILABLE, &s);
    port_close_switch(s);
    return err ? err : ipam_run(c, "STATUS", &none);
}
