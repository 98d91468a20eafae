/* SPDX-License-Identifier: Apache-2.0 */
/* A rule "queue=10,dscp=ef" becomes flows: for IPv4 and IPv6, for every port of a range. */
#include "map-flow.h"
#include "map-names.h"

#include <oflib/near.h>

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <qos/wire/entry.h>
#include <stdio.h>

#define FLOWS_MAX  1024 /* of one rule */
#define RANGES_MAX 32
#define DSCPS      64
#define ECNS       4
#define PCPS       8

enum { SRC = 1, DST = 2 };

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct rule {
    struct of_parse *p;
    struct qos_map *map;
    struct qos_map_does does;
    bool both_ways, has_queue, has_dscp, has_ecn, has_pcp, has_prio;
    bool family[2]; /* IPv4, IPv6 */
    bool dscp[DSCPS], ecn[ECNS], pcp[PCPS];
    char vlan[40]; /* of the flows that are being made: ",vlan_vid=any" */
    struct range {
        uint8_t proto, sides;
        uint16_t low, high;
    } ranges[RANGES_MAX];
    unsigned n_ranges;
    int proto;           /* -1: any */
    char address[2][64]; /* source, destination; "" where any */
    unsigned bits;       /* of the addresses, summed */
    uint64_t in_port, prio;
};

/* Functions return 0, -ENOMEM, or -EINVAL with a sentence in p->why. */

/* ------------------------------------------------------------------------- keys */

static int
take_number(struct rule *r, const char *key, const char *value, uint64_t max, uint64_t *out)
{
    unsigned long low, high;
    if (!qos_map_range(value, max, &low, &high) || low != high)
        return of_parse_wrong(r->p, "%s must be a number up to %" PRIu64 ", not '%.40s'", key, max,
                              value);
    *out = low;
    return 0;
}

static int
take_queue(struct rule *r, const char *key, const char *value)
{
    uint64_t queue = 0;
    if (r->has_queue)
        return of_parse_wrong(r->p, "queue= is given twice; a rule has one queue");
    r->has_queue = true;
    int err = take_number(r, key, value, QOS_CLASS_MAX, &queue);
    r->does.queue = (uint32_t)queue;
    return err;
}

static int
take_remark(struct rule *r, const char *key, const char *value)
{
    unsigned long dscp, high;
    if (r->does.dscp >= 0)
        return of_parse_wrong(r->p, "remark= is given twice; a packet has one DSCP");
    if (!qos_map_find_name(qos_map_dscps, value, &dscp) &&
        (!qos_map_range(value, DSCPS - 1, &dscp, &high) || dscp != high))
        return of_parse_wrong(
            r->p,
            "remark must be ef, va, le, be, cs0 to cs7, af11 to af43 or a number up to "
            "63, not '%.40s'",
            value);
    r->does.dscp = (int)dscp;
    return 0;
}

static int
take_prio(struct rule *r, const char *key, const char *value)
{
    r->has_prio = true;
    return take_number(r, key, value, UINT16_MAX, &r->prio);
}

static int
take_dscp(struct rule *r, const char *key, const char *value)
{
    unsigned long low, high;
    r->has_dscp = true;
    if (qos_map_find_name(qos_map_dscps, value, &low)) {
        r->dscp[low] = true;
        return 0;
    }
    if (!qos_map_range(value, DSCPS - 1, &low, &high))
        return of_parse_wrong(
            r->p,
            "dscp must be ef, va, le, be, cs0 to cs7, af11 to af43, a number up to 63 "
            "or a range such as 8-15, not '%.40s'",
            value);
    for (; low <= high; low++)
        r->dscp[low] = true;
    return 0;
}

/* "yes": the sender understands marks; "ce", "1", "2-3" */
static int
take_ecn(struct rule *r, const char *key, const char *value)
{
    unsigned long low, high;
    r->has_ecn = true;
    if (!strcasecmp(value, "yes"))
        low = 1, high = ECNS - 1;
    else if (!strcasecmp(value, "no"))
        low = high = 0;
    else if (qos_map_find_name(qos_map_ecns, value, &low))
        high = low;
    else if (!qos_map_range(value, ECNS - 1, &low, &high))
        return of_parse_wrong(
            r->p,
            "ecn must be yes (ect0, ect1 or ce), no, one of not-ect, ect1, ect0, ce, or "
            "0 to 3, not '%.40s'",
            value);
    for (; low <= high; low++)
        r->ecn[low] = true;
    return 0;
}

static int
take_pcp(struct rule *r, const char *key, const char *value)
{
    unsigned long low, high;
    r->has_pcp = true;
    if (!qos_map_range(value, PCPS - 1, &low, &high))
        return of_parse_wrong(r->p, "pcp must be 0 to 7 or a range such as 4-5, not '%.40s'",
                              value);
    for (; low <= high; low++)
        r->pcp[low] = true;
    return 0;
}

static int
take_set_pcp(struct rule *r, const char *key, const char *value)
{
    uint64_t pcp = 0;
    if (r->does.pcp >= 0)
        return of_parse_wrong(r->p, "set_pcp= is given twice; a frame has one PCP");
    int err = take_number(r, key, value, PCPS - 1, &pcp);
    r->does.pcp = (int)pcp;
    return err;
}

static int
take_in_port(struct rule *r, const char *key, const char *value)
{
    int err = of_parse_number(r->p, key, value, &of_fmt_PORT, 32, &r->in_port);
    if (!err && (!r->in_port || (r->in_port > OFPP_MAX && r->in_port != OFPP_LOCAL)))
        return of_parse_wrong(r->p, "in_port must be the number or name of a port, not '%.40s'",
                              value);
    return err;
}

static int
add_range(struct rule *r, uint8_t proto, uint8_t sides, unsigned long low, unsigned long high)
{
    if (r->n_ranges == RANGES_MAX)
        return of_parse_wrong(r->p, "more than %d ports or ranges in one rule; use two rules",
                              RANGES_MAX);
    r->ranges[r->n_ranges++] = (struct range){proto, sides, (uint16_t)low, (uint16_t)high};
    return 0;
}

static int
unknown_app(struct rule *r, const char *value)
{
    char names[512] = "", text[OF_NEAR_TEXT];
    struct of_near near = of_near(value, strlen(value));
    size_t at = 0;
    for (const struct qos_map_app *a = qos_map_apps; a->name; a++) {
        of_near_try(&near, a->name);
        if ((a == qos_map_apps || strcmp(a->name, a[-1].name)) && at < sizeof names)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", at ? ", " : "", a->name);
    }
    if (near.count)
        return of_parse_wrong(r->p, "app=%.40s is unknown%s", value,
                              of_near_text(&near, text, sizeof text));
    return of_parse_wrong(r->p, "app=%.40s is unknown; use one of %s", value, names);
}

static int
take_app(struct rule *r, const char *key, const char *value)
{
    bool found = false;
    int err = 0;
    for (const struct qos_map_app *a = qos_map_apps; !err && a->name; a++) {
        if (strcasecmp(a->name, value))
            continue;
        err = add_range(r, a->proto, SRC | DST, a->low, a->high);
        found = true;
    }
    return found ? err : unknown_app(r, value);
}

/* "tcp=80", "udp_dst=5000-5010" */
static int
take_ports(struct rule *r, const char *key, const char *value)
{
    unsigned long low, high;
    const char *side = strchr(key, '_');
    uint8_t sides = !side ? SRC | DST : !strcmp(side, "_src") ? SRC : DST;
    const struct qos_map_name *proto = qos_map_protocols;
    while (strncmp(key, proto->name, strcspn(key, "_")))
        proto++;
    if (!qos_map_range(value, UINT16_MAX, &low, &high))
        return of_parse_wrong(r->p,
                              "%s must be a port, 0 to 65535, or a range such as 5000-5010, not "
                              "'%.40s'",
                              key, value);
    return add_range(r, proto->value, sides, low, high);
}

static int
take_proto(struct rule *r, const char *key, const char *value)
{
    unsigned long low, high;
    if (!qos_map_find_name(qos_map_protocols, value, &low) &&
        (!qos_map_range(value, 255, &low, &high) || low != high))
        return of_parse_wrong(
            r->p, "ip_proto must be tcp, udp, sctp or a number up to 255, not '%.40s'", value);
    r->proto = (int)low;
    return 0;
}

/* "10.0.0.0/8", "fd00::1" */
static int
take_address(struct rule *r, const char *key, const char *value)
{
    char text[64], *slash;
    uint8_t bytes[16];
    snprintf(text, sizeof text, "%s", value);
    if ((slash = strchr(text, '/')))
        *slash++ = '\0';
    bool v6 = strchr(text, ':') != NULL;
    unsigned long bits = v6 ? 128 : 32, most = bits, high;
    if (strlen(value) >= sizeof text || inet_pton(v6 ? AF_INET6 : AF_INET, text, bytes) != 1 ||
        (slash && (!qos_map_range(slash, most, &bits, &high) || bits != high)))
        return of_parse_wrong(
            r->p,
            "%s must be an address such as 10.0.0.1, 10.0.0.0/8 or fd00::/64, not "
            "'%.60s'",
            key, value);
    char *to = r->address[!strcmp(key + strlen(key) - 3, "dst")];
    if (*to)
        return of_parse_wrong(r->p, "%s is given twice; use a rule for each address", key);
    if (r->family[!v6])
        return of_parse_wrong(r->p, "src and dst must both be IPv4 or both be IPv6");
    r->family[v6] = true;
    r->bits += (unsigned)bits;
    strcpy(to, value);
    return 0;
}

static const struct key {
    const char *name;
    int (*take)(struct rule *r, const char *key, const char *value);
} keys[] = {
    {"queue", take_queue},    {"dscp", take_dscp},       {"app", take_app},
    {"tcp", take_ports},      {"tcp_src", take_ports},   {"tcp_dst", take_ports},
    {"udp", take_ports},      {"udp_src", take_ports},   {"udp_dst", take_ports},
    {"sctp", take_ports},     {"sctp_src", take_ports},  {"sctp_dst", take_ports},
    {"ip_proto", take_proto}, {"src", take_address},     {"dst", take_address},
    {"ip_src", take_address}, {"ip_dst", take_address},  {"in_port", take_in_port},
    {"prio", take_prio},      {"remark", take_remark},   {"ecn", take_ecn},
    {"pcp", take_pcp},        {"set_pcp", take_set_pcp},
};

const char *
qos_map_key_at(size_t i)
{
    return i < COUNT(keys) ? keys[i].name : NULL;
}

static int
no_host(struct rule *r, const char *key, const char *value)
{
    return of_parse_wrong(
        r->p,
        "%s=%.60s: addresses of names are learned by dpctl qos-names, which runs as long "
        "as they are wanted",
        key, value);
}

static int
unknown_rule_key(struct rule *r, const char *word)
{
    char text[OF_NEAR_TEXT];
    struct of_near near = of_near(word, strlen(word));
    for (size_t i = 0; i < COUNT(keys); i++)
        of_near_try(&near, keys[i].name);
    return of_parse_wrong(r->p, "unknown key %.40s%s", word,
                          near.count
                              ? of_near_text(&near, text, sizeof text)
                              : "; a rule takes queue, dscp, app, tcp, tcp_src, tcp_dst (also udp "
                                "and sctp), ip_proto, src, dst, in_port, ecn, pcp, prio, remark, "
                                "set_pcp");
}

static int
take_pair(struct rule *r, const char *key, const char *value)
{
    for (size_t i = 0; i < COUNT(keys); i++)
        if (!strcmp(keys[i].name, key))
            return keys[i].take(r, key, value);
    if (!strcmp(key, "host"))
        return no_host(r, key, value);
    return unknown_rule_key(r, key);
}

static int
take_rule(struct rule *r, const char *text)
{
    static const char separators[] = ", \t";
    int err = 0;
    for (const char *at = text + strspn(text, separators); *at && !err;
         at += strspn(at, separators)) {
        char word[160], *eq;
        size_t n = strcspn(at, separators);
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        at += n;
        if (n >= sizeof word || !(eq = strchr(word, '=')) || eq == word || !eq[1])
            return of_parse_wrong(r->p, "'%.40s' is not key=value, such as dscp=ef", word);
        *eq = '\0';
        err = take_pair(r, word, eq + 1);
    }
    return err;
}

bool
qos_map_is_rule(const char *text)
{
    return strstr(text, "queue=") || strstr(text, "remark=") || strstr(text, "set_pcp=");
}

/* --------------------------------------------------------------------- checking */

/* Is the rule about frames of any protocol? */
static bool
is_layer2(const struct rule *r)
{
    return (r->has_pcp || r->does.pcp >= 0) && !r->has_dscp && !r->has_ecn && !r->n_ranges &&
           r->proto < 0 && !r->family[0] && !r->family[1];
}

static size_t
count_flows(const struct rule *r)
{
    size_t ports = 0, classes = 0, ecns = 0, tags = 0;
    for (unsigned i = 0; i < r->n_ranges; i++)
        ports += (r->ranges[i].high - r->ranges[i].low + 1u) *
                 ((r->ranges[i].sides & SRC ? 1u : 0u) + (r->ranges[i].sides & DST ? 1u : 0u));
    for (int i = 0; i < DSCPS; i++)
        classes += r->dscp[i];
    for (int i = 0; i < ECNS; i++)
        ecns += r->ecn[i];
    for (int i = 0; i < PCPS; i++)
        tags += r->pcp[i];
    if (!tags)
        tags = r->does.pcp >= 0 ? 2 : 1;
    return (ports ? ports : 1) * (classes ? classes : 1) * (ecns ? ecns : 1) * tags *
           (r->family[0] || r->family[1] ? 1 : 2) * (r->both_ways ? 2 : 1);
}

static int
check_rule(struct rule *r)
{
    size_t n = count_flows(r);
    bool any = !r->has_dscp && !r->has_ecn && !r->has_pcp && !r->n_ranges && r->proto < 0 &&
               !r->bits && !r->in_port && !r->family[0] && !r->family[1];
    if (!r->has_queue && r->does.dscp < 0 && r->does.pcp < 0)
        return of_parse_wrong(r->p, "the rule has no queue: write queue=10,dscp=ef");
    if (any)
        return of_parse_wrong(
            r->p, "the rule does not say which packets it is for: add dscp=, ecn=, app=, "
                  "tcp=, udp=, sctp=, ip_proto=, src=, dst=, pcp= or in_port=");
    if (is_layer2(r) && r->has_prio && r->prio < 2)
        return of_parse_wrong(r->p,
                              "prio must be at least 2 in a rule about frames of any protocol");
    if (r->n_ranges && r->proto >= 0)
        return of_parse_wrong(
            r->p, "leave out ip_proto=: tcp=, udp=, sctp= and app= include the protocol");
    if (r->both_ways && r->in_port)
        return of_parse_wrong(
            r->p, "in_port= fits one direction only, a connection has two: use addresses "
                  "and ports");
    if (n > FLOWS_MAX)
        return of_parse_wrong(
            r->p,
            "the rule needs %zu flows, one for each port, side and address family; the "
            "most is %d: name fewer ports",
            n, FLOWS_MAX);
    return 0;
}

/* ------------------------------------------------------------------------ flows */

#define BESIDE 32768 /* above the flows of a controller such as Faucet, whose highest are 20,000 */

/* The more specific rule comes first: addresses, then ports, then the traffic class. */
static uint16_t
priority(const struct rule *r)
{
    if (r->has_prio)
        return (uint16_t)r->prio;
    unsigned p = (r->map->beside ? BESIDE : 0) + 1000 + (r->has_pcp ? 125 : 0) +
                 (r->has_dscp ? 1000 : 0) + (r->has_ecn ? 250 : 0) +
                 (r->n_ranges || r->proto >= 0 ? 2000 : 0) +
                 (r->family[0] || r->family[1] ? 4000 : 0) + (r->in_port ? 500 : 0) + r->bits;
    return (uint16_t)p;
}

static int
put_flow(struct rule *r, uint16_t priority, const char *match)
{
    return qos_map_put_flow(r->p, r->map, &r->does, priority, match);
}

/* The ports of a range, on either side. */
static int
put_range(struct rule *r, const char *match, const struct range *ports)
{
    char text[512];
    const char *name = ports->proto == 6 ? "tcp" : ports->proto == 17 ? "udp" : "sctp";
    int err = 0;
    for (uint32_t port = ports->low; !err && port <= ports->high; port++) {
        for (int side = SRC; !err && side <= DST; side++) {
            if (!(ports->sides & side))
                continue;
            snprintf(text, sizeof text, "%s,ip_proto=%u,%s_%s=%u", match, ports->proto, name,
                     side == SRC ? "src" : "dst", (unsigned)port);
            err = put_flow(r, priority(r), text);
        }
    }
    return err;
}

/* One family, one traffic class and codepoint (-1: any). */
static int
put_codepoint(struct rule *r, int v6, int dscp, int ecn)
{
    static const char *const sides[] = {"src", "dst"};
    char text[400];
    size_t at =
        (size_t)snprintf(text, sizeof text, "eth_type=%s%s", v6 ? "0x86dd" : "0x0800", r->vlan);
    if (r->in_port)
        at += (size_t)snprintf(text + at, sizeof text - at, ",in_port=%" PRIu64, r->in_port);
    if (dscp >= 0)
        at += (size_t)snprintf(text + at, sizeof text - at, ",ip_dscp=%d", dscp);
    if (ecn >= 0)
        at += (size_t)snprintf(text + at, sizeof text - at, ",ip_ecn=%d", ecn);
    for (int i = 0; i < 2; i++)
        if (*r->address[i])
            at += (size_t)snprintf(text + at, sizeof text - at, ",ipv%d_%s=%s", v6 ? 6 : 4,
                                   sides[i], r->address[i]);
    if (!r->n_ranges && r->proto >= 0)
        snprintf(text + at, sizeof text - at, ",ip_proto=%d", r->proto);
    int err = r->n_ranges ? 0 : put_flow(r, priority(r), text);
    for (unsigned i = 0; !err && i < r->n_ranges; i++)
        err = put_range(r, text, &r->ranges[i]);
    return err;
}

static int
put_class(struct rule *r, int v6, int dscp)
{
    int err = 0;
    if (!r->has_ecn)
        return put_codepoint(r, v6, dscp, -1);
    for (int i = 0; !err && i < ECNS; i++)
        if (r->ecn[i])
            err = put_codepoint(r, v6, dscp, i);
    return err;
}

static int
put_family(struct rule *r, int v6)
{
    int err = 0;
    if (r->family[!v6]) /* an address of the other one */
        return 0;
    if (!r->has_dscp)
        return put_class(r, v6, -1);
    for (int i = 0; !err && i < DSCPS; i++)
        if (r->dscp[i])
            err = put_class(r, v6, i);
    return err;
}

/* Flows for frames of any protocol: below the flows for IP, if those write a DSCP. */
static int
put_layer2(struct rule *r)
{
    char text[80];
    struct qos_map_does does = r->does;
    size_t at = (size_t)snprintf(text, sizeof text, "%s", r->vlan + 1);
    if (r->in_port)
        snprintf(text + at, sizeof text - at, ",in_port=%" PRIu64, r->in_port);
    r->does.dscp = -1;
    int err = put_flow(r, (uint16_t)(priority(r) - 1), text);
    r->does = does;
    return err;
}

/* The flows for frames of this tag. */
static int
put_tag(struct rule *r)
{
    int err = is_layer2(r) ? put_layer2(r) : 0;
    if (is_layer2(r) && r->does.dscp < 0)
        return err;
    err = err ? err : put_family(r, 0);
    return err ? err : put_family(r, 1);
}

static int
put_tags(struct rule *r)
{
    int err = 0;
    for (int i = 0; !err && i < PCPS; i++) {
        if (!r->pcp[i])
            continue;
        snprintf(r->vlan, sizeof r->vlan, ",vlan_vid=any,vlan_pcp=%d", i);
        err = put_tag(r);
    }
    if (err || r->has_pcp)
        return err;
    if (r->does.pcp < 0)
        return put_tag(r);
    snprintf(r->vlan, sizeof r->vlan, ",vlan_vid=any");
    err = put_tag(r);
    snprintf(r->vlan, sizeof r->vlan, ",vlan_vid=none");
    r->does.tag = true;
    err = err ? err : put_tag(r);
    r->does.tag = false;
    return err;
}

/* For the packets of the other direction. */
static void
exchange_sides(struct rule *r)
{
    char address[sizeof r->address[0]];
    memcpy(address, r->address[0], sizeof address);
    memcpy(r->address[0], r->address[1], sizeof address);
    memcpy(r->address[1], address, sizeof address);
    for (unsigned i = 0; i < r->n_ranges; i++) {
        uint8_t sides = r->ranges[i].sides;
        r->ranges[i].sides = (uint8_t)((sides & SRC ? DST : 0) | (sides & DST ? SRC : 0));
    }
}

int
qos_map_rule(struct of_parse *p, struct qos_map *m, const char *text, bool both_ways)
{
    struct rule r = {
        .p = p, .map = m, .proto = -1, .both_ways = both_ways, .does = {.dscp = -1, .pcp = -1}};
    int err;
    if ((err = take_rule(&r, text)) || (err = check_rule(&r)))
        return err;
    if (m->wash && r.does.dscp < 0)
        r.does.dscp = 0;
    for (int way = 0; !err && way <= both_ways; way++) {
        err = put_tags(&r);
        exchange_sides(&r);
    }
    return err;
}
