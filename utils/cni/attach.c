/* SPDX-License-Identifier: Apache-2.0 */
#include "attach.h"
#include "door.h"
#include "ipam.h"
#include "name.h"
#include "rules.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int
attach_name(struct cni *c, const char *id, const char *ifname, struct attachment *out)
{
    name_host(c->conf.name, id, ifname, out->host);
    return name_alias(c->conf.name, id, ifname, out->alias)
               ? 0
               : cni_fail(
                     c, CNI_BAD_ENVIRONMENT,
                     "name, CNI_CONTAINERID and CNI_IFNAME together must have at most %d characters",
                     CNI_ALIAS_MAX - 12);
}

/* Without an alias it is one whose ADD was killed between two messages. */
int
attach_find_host(struct cni *c, struct links *here, const struct attachment *a,
                 struct link_there *out)
{
    int found = link_find(c, here, a->host, out);
    if (found <= 0 || !*out->alias || !strcmp(out->alias, a->alias))
        return found;
    return cni_fail(c, CNI_KERNEL_REFUSED, "interface %s is there already, of %s", a->host,
                    out->alias);
}

static int
remove_port(struct cni *c, struct node_switch *s, const char *host)
{
    uint32_t no = 0;
    if (s && (port_settle(c, s) || rules_del(c, s, host)))
        return -1;
    int found = s ? port_find(c, s, host, &no) : 0;
    return found > 0 && port_del(c, s, no) ? -1 : found;
}

int
attach_remove_named(struct cni *c, struct links *here, struct node_switch *s, const char *host,
                    int ifindex)
{
    int closed =
        door_close(c, host); /* first: no request is for a port that is another's by then */
    int was = remove_port(c, s, host);
    if (ifindex && link_del(c, here, ifindex))
        return -1;
    int late = was < 0 ? was : remove_port(c, s, host);
    return closed ? closed : late ? late : was;
}

int
attach_remove(struct cni *c, struct links *here, struct node_switch *s, const struct attachment *a,
              bool *any)
{
    struct link_there it;
    int host = attach_find_host(c, here, a, &it);
    int port = host < 0 ? -1 : attach_remove_named(c, here, s, a->host, host ? it.ifindex : 0);
    if (any)
        *any = host > 0 || port > 0;
    return port < 0 ? -1 : 0;
}

/* ------------------------------------------------------------------------- ADD */

struct add {
    struct attachment names;
    struct links *here, *there; /* of the host, of the container */
    struct node_switch *s;
    int netns;
    bool made; /* something that must be undone */
    struct link_there host, inside;
    json_t *ipam;
    struct result result;
};

static int
add_open(struct cni *c, struct add *a)
{
    if (attach_name(c, c->id, c->ifname, &a->names) || link_open_netns(c, &a->netns) ||
        link_open(c, -1, &a->here) || link_open(c, a->netns, &a->there))
        return -1;
    return port_open_switch(c, CNI_TRY_AGAIN, &a->s);
}

/* The switch closes a connection that is silent for as long as an IPAM plugin may take. */
static void
add_leave_switch(struct add *a)
{
    port_close_switch(a->s);
    a->s = NULL;
}

static void
add_close(struct add *a)
{
    port_close_switch(a->s);
    link_close(a->here);
    link_close(a->there);
    if (a->netns >= 0)
        close(a->netns);
    json_decref(a->ipam);
}

/* What an earlier ADD left that did not come to its end. */
static int
add_clean(struct cni *c, struct add *a)
{
    json_t *none;
    bool any = false;
    if (attach_remove(c, a->here, a->s, &a->names, &any))
        return -1;
    return any ? ipam_run(c, "DEL", &none) : 0;
}

static int
add_pair(struct cni *c, struct add *a)
{
    const struct link_pair pair = {a->names.host, a->names.alias, c->ifname, c->conf.mtu};
    a->made = true;
    if (link_add_pair(c, a->here, &pair, a->netns))
        return -1;
    int host = link_find(c, a->here, a->names.host, &a->host);
    int inside = host > 0 ? link_find(c, a->there, c->ifname, &a->inside) : host;
    return inside > 0   ? 0
           : inside < 0 ? -1
                        : cni_fail(c, CNI_KERNEL_REFUSED,
                                   "somebody else has removed interface %s at once", c->ifname);
}

/* After a reboot the IPAM plugin may have this attachment's address of before, although nothing else is left of it. */
static int
ask_addresses(struct cni *c, struct add *a)
{
    json_t *none;
    if (!ipam_run(c, "ADD", &a->ipam))
        return 0;
    const struct cni_error first = c->error;
    if (!ipam_run(c, "DEL", &none) && !ipam_run(c, "ADD", &a->ipam))
        return 0;
    c->error = first;
    return -1;
}

static int
add_addresses(struct cni *c, struct add *a)
{
    char whose[140];
    if (ask_addresses(c, a))
        return -1;
    snprintf(whose, sizeof whose, "IPAM plugin %.100s", c->conf.ipam ? c->conf.ipam : "");
    if (a->ipam && result_read(c, whose, a->ipam, &a->result))
        return -1;
    if (a->ipam && !a->result.n_ips)
        return cni_fail(c, CNI_BAD_CONFIG, "%s has given no address", whose);
    result_complete(&c->conf, &a->result);
    return link_configure(c, a->there, a->netns, &a->inside, &a->result);
}

/* Gives the switch's local port the gateways' addresses; they stay when the last container goes, as a bridge's do. */
static int
add_gateway(struct cni *c, struct add *a)
{
    char name[IFNAMSIZ];
    struct link_there local;
    if (!c->conf.is_gateway || !a->result.n_ips)
        return 0;
    int found = port_local(c, a->s, name);
    found = found > 0 ? link_find(c, a->here, name, &local) : found;
    if (found <= 0)
        return found ? -1
                     : cni_fail(c, CNI_BAD_CONFIG,
                                "isGateway needs the switch's local port: start ofdatapath with "
                                "--local-port=NAME");
    if (link_set_up(c, a->here, &local))
        return -1;
    for (unsigned i = 0; i < a->result.n_ips; i++) {
        struct address gateway = a->result.ips[i].gateway;
        gateway.prefix = a->result.ips[i].address.prefix;
        if (gateway.family && (link_add_address(c, a->here, &local, &gateway, true) ||
                               link_forward(c, gateway.family)))
            return -1;
    }
    return 0;
}

static int
add_print(struct cni *c, struct add *a)
{
    const struct result_end host = {a->host.name, a->host.mac, a->host.mtu};
    const struct result_end inside = {a->inside.name, a->inside.mac, a->inside.mtu};
    json_t *result = result_make(c, &host, &inside, &a->result, a->ipam);
    int err = result ? cni_print(c, result) : cni_no_memory(c);
    json_decref(result);
    return err;
}

static int
add_all(struct cni *c, struct add *a)
{
    int err = add_clean(c, a);
    add_leave_switch(a);
    return err || add_pair(c, a) || add_addresses(c, a) ||
                   port_open_switch(c, CNI_TRY_AGAIN, &a->s) || add_gateway(c, a) ||
                   link_set_up(c, a->here, &a->host) ||
                   port_add(c, a->s, a->names.host, &a->result) ||
                   door_open(c, a->there, a->netns, a->names.host, &a->result) || add_print(c, a)
               ? -1
               : 0;
}

/* All of it, whatever fails; the first error stays. */
static void
add_undo(struct cni *c, struct add *a)
{
    const struct cni_error first = c->error;
    json_t *none;
    attach_remove(c, a->here, a->s, &a->names, NULL);
    ipam_run(c, "DEL", &none);
    c->error = first;
}

int
cni_add(struct cni *c)
{
    static struct add a;
    if (c->conf.prev)
        return cni_fail(c, CNI_BAD_CONFIG,
                        "another plugin has made %s (prevResult): write \"chained\": true, or make "
                        "ofqos-cni the first of the list",
                        c->ifname);
    a = (struct add){.netns = -1};
    bool failed = add_open(c, &a) || add_all(c, &a);
    if (failed && a.made)
        add_undo(c, &a);
    add_close(&a);
    return failed ? -1 : 0;
}

/* ------------------------------------------------------------------------- DEL */

/* A runtime repeats a DEL that fails, for ever.  So only what would be lost for others makes it fail: an address that
 * its IPAM plugin keeps. */
int
cni_del(struct cni *c)
{
    struct attachment names;
    struct links *here = NULL;
    struct node_switch *s = NULL;
    json_t *none;
    int err = attach_name(c, c->id, c->ifname, &names);
    if (err)
        return err;
    err = link_open(c, -1, &here);
    if (!err && port_open_switch(c, CNI_TRY_AGAIN, &s))
        fprintf(stderr, "ofqos-cni: %s\n", c->error.msg);
    if (!err && attach_remove(c, here, s, &names, NULL))
        fprintf(stderr, "ofqos-cni: %s\n", c->error.msg);
    port_close_switch(s);
    link_close(here);
    return ipam_run(c, "DEL", &none);
}
