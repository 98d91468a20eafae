/* SPDX-License-Identifier: Apache-2.0 */
#include "result.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT (INET6_ADDRSTRLEN + 4)

unsigned
address_len(const struct address *a)
{
    return a->family == AF_INET6 ? 16 : 4;
}

bool
address_parse(const char *text, bool prefixed, struct address *out)
{
    char host[TEXT];
    const char *slash = prefixed && text ? strchr(text, '/') : NULL;
    if (!text || !slash != !prefixed || strlen(text) >= sizeof host)
        return false;
    snprintf(host, sizeof host, "%.*s", slash ? (int)(slash - text) : TEXT, text);
    struct address a = {.family = strchr(host, ':') ? AF_INET6 : AF_INET};
    if (inet_pton(a.family, host, a.bytes) != 1)
        return false;
    a.prefix = 8 * address_len(&a);
    if (slash) {
        size_t n = strspn(slash + 1, "0123456789");
        unsigned long v = strtoul(slash + 1, NULL, 10);
        if (!n || n > 3 || slash[1 + n] || v > a.prefix)
            return false;
        a.prefix = (unsigned)v;
    }
    *out = a;
    return true;
}

static json_t *
address_json(const struct address *a, bool prefixed)
{
    char text[INET6_ADDRSTRLEN];
    inet_ntop(a->family, a->bytes, text, sizeof text);
    return prefixed ? json_sprintf("%s/%u", text, a->prefix) : json_string(text);
}

/* ------------------------------------------------------------------------- reading */

static int
wrong(struct cni *c, const char *whose, const char *list, size_t i, const char *what)
{
    return cni_fail(c, CNI_BAD_CONFIG, "%s: %s[%zu]: %s", whose, list, i, what);
}

/* An address that may be left out. */
static bool
take_gateway(const json_t *v, struct address *out)
{
    const char *text = json_string_value(v);
    *out = (struct address){0};
    return !v || json_is_null(v) || (text && !*text) || address_parse(text, false, out);
}

static int
take_ip(struct cni *c, const char *whose, const json_t *v, size_t i, struct result_ip *out)
{
    const json_t *interface = json_object_get(v, "interface");
    json_int_t n = json_integer_value(interface);
    if (!address_parse(json_string_value(json_object_get(v, "address")), true, &out->address))
        return wrong(c, whose, "ips", i, "address must be such as 10.1.0.5/24");
    if (!take_gateway(json_object_get(v, "gateway"), &out->gateway) ||
        (out->gateway.family && out->gateway.family != out->address.family))
        return wrong(c, whose, "ips", i,
                     "gateway must be an address of the same family, such as 10.1.0.1");
    if (interface && (!json_is_integer(interface) || n < 0 || n > 1000))
        return wrong(c, whose, "ips", i, "interface must be an index");
    out->interface = interface ? (int)n : -1;
    return 0;
}

/* A number of 32 bits that may be left out. */
static bool
take_u32(const json_t *v, uint32_t *out)
{
    json_int_t n = json_integer_value(v);
    *out = (uint32_t)n;
    return !v || json_is_null(v) || (json_is_integer(v) && n >= 0 && n <= UINT32_MAX);
}

static int
take_route(struct cni *c, const char *whose, const json_t *v, size_t i, struct result_route *out)
{
    uint32_t scope;
    const json_t *is = json_object_get(v, "scope");
    if (!address_parse(json_string_value(json_object_get(v, "dst")), true, &out->dst))
        return wrong(c, whose, "routes", i, "dst must be such as 0.0.0.0/0");
    if (!take_gateway(json_object_get(v, "gw"), &out->gateway) ||
        (out->gateway.family && out->gateway.family != out->dst.family))
        return wrong(c, whose, "routes", i, "gw must be an address of the same family as dst");
    if (!take_u32(json_object_get(v, "mtu"), &out->mtu) ||
        !take_u32(json_object_get(v, "advmss"), &out->advmss) ||
        !take_u32(json_object_get(v, "priority"), &out->priority) ||
        !take_u32(json_object_get(v, "table"), &out->table) || !take_u32(is, &scope) || scope > 255)
        return wrong(c, whose, "routes", i,
                     "mtu, advmss, priority and table must be numbers, scope one up to 255");
    out->scope = json_is_integer(is) ? (int)scope : -1;
    return 0;
}

int
result_read(struct cni *c, const char *whose, const json_t *json, struct result *out)
{
    const json_t *ips = json_object_get(json, "ips"), *routes = json_object_get(json, "routes"), *v;
    size_t i;
    *out = (struct result){0};
    if (!json_is_object(json) || (ips && !json_is_array(ips) && !json_is_null(ips)) ||
        (routes && !json_is_array(routes) && !json_is_null(routes)))
        return cni_fail(c, CNI_BAD_CONFIG, "%s: a result is an object with lists ips and routes",
                        whose);
    if (json_array_size(ips) > RESULT_IPS || json_array_size(routes) > RESULT_ROUTES)
        return cni_fail(c, CNI_BAD_CONFIG, "%s: more than %d ips or %d routes", whose, RESULT_IPS,
                        RESULT_ROUTES);
    json_array_foreach(ips, i, v) if (take_ip(c, whose, v, i, &out->ips[out->n_ips++])) return -1;
    json_array_foreach(routes, i,
                       v) if (take_route(c, whose, v, i, &out->routes[out->n_routes++])) return -1;
    return 0;
}

/* ------------------------------------------------------------------------- gateways */

/* The first address of the network. */
static struct address
first_of(const struct address *a)
{
    struct address first = *a;
    unsigned len = address_len(a);
    for (unsigned bit = a->prefix; bit < 8 * len; bit++)
        first.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
    first.bytes[len - 1] |= 1;
    first.prefix = 8 * len;
    return first;
}

static bool
has_default(const struct result *r, int family)
{
    for (unsigned i = 0; i < r->n_routes; i++)
        if (r->routes[i].dst.family == family && !r->routes[i].dst.prefix)
            return true;
    return false;
}

void
result_complete(const struct cni_conf *conf, struct result *r)
{
    for (unsigned i = 0; conf->is_gateway && i < r->n_ips; i++) {
        struct result_ip *ip = &r->ips[i];
        if (!ip->gateway.family && ip->address.prefix < 8 * address_len(&ip->address) - 1)
            ip->gateway = first_of(&ip->address);
        if (conf->is_default && ip->gateway.family && r->n_routes < RESULT_ROUTES &&
            !has_default(r, ip->gateway.family))
            r->routes[r->n_routes++] = (struct result_route){
                .dst = {.family = ip->gateway.family}, .gateway = ip->gateway, .scope = -1};
    }
}

struct address
result_gateway(const struct result *r, const struct result_route *route)
{
    if (route->gateway.family)
        return route->gateway;
    for (unsigned i = 0; i < r->n_ips; i++)
        if (r->ips[i].gateway.family == route->dst.family)
            return r->ips[i].gateway;
    return (struct address){0};
}

/* ------------------------------------------------------------------------- making */

static json_t *
interface_json(const struct cni *c, const struct result_end *end, const char *netns)
{
    const uint8_t *m = end->mac;
    json_t *v = json_pack(
        "{s:s, s:o}", "name", end->name, "mac",
        json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5]));
    if (netns)
        json_object_set_new(v, "sandbox", json_string(netns));
    if (c->conf.version >= CNI_1_1_0)
        json_object_set_new(v, "mtu", json_integer(end->mtu));
    return v;
}

static json_t *
ip_json(const struct cni *c, const struct result_ip *ip)
{
    json_t *v =
        json_pack("{s:o, s:i}", "address", address_json(&ip->address, true), "interface", 1);
    if (ip->gateway.family)
        json_object_set_new(v, "gateway", address_json(&ip->gateway, false));
    if (c->conf.version == CNI_0_4_0)
        json_object_set_new(v, "version", json_string(ip->address.family == AF_INET6 ? "6" : "4"));
    return v;
}

static json_t *
route_json(const struct cni *c, const struct result_route *route)
{
    const struct {
        const char *name;
        uint32_t v;
    } numbers[] = {{"mtu", route->mtu},
                   {"advmss", route->advmss},
                   {"priority", route->priority},
                   {"table", route->table}};
    json_t *v = json_pack("{s:o}", "dst", address_json(&route->dst, true));
    if (route->gateway.family)
        json_object_set_new(v, "gw", address_json(&route->gateway, false));
    if (c->conf.version < CNI_1_1_0)
        return v;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].v)
            json_object_set_new(v, numbers[i].name, json_integer(numbers[i].v));
    if (route->scope >= 0)
        json_object_set_new(v, "scope", json_integer(route->scope));
    return v;
}

json_t *
result_make(const struct cni *c, const struct result_end *host, const struct result_end *inside,
            const struct result *r, const json_t *ipam)
{
    json_t *ips = json_array(), *routes = json_array();
    json_t *dns = c->conf.dns ? c->conf.dns : json_object_get(ipam, "dns");
    for (unsigned i = 0; i < r->n_ips; i++)
        json_array_append_new(ips, ip_json(c, &r->ips[i]));
    for (unsigned i = 0; i < r->n_routes; i++)
        json_array_append_new(routes, route_json(c, &r->routes[i]));
    json_t *v =
        json_pack("{s:s, s:[o, o], s:o, s:o}", "cniVersion", cni_version_names[c->conf.version],
                  "interfaces", interface_json(c, host, NULL), interface_json(c, inside, c->netns),
                  "ips", ips, "routes", routes);
    if (v &&
        json_object_set_new(v, "dns", json_is_object(dns) ? json_deep_copy(dns) : json_object())) {
        json_decref(v);
        return NULL;
    }
    return v;
}
