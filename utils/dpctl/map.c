/* SPDX-License-Identifier: Apache-2.0 */
/* Rules "queue=10,dscp=ef" as flows: for IPv4 and IPv6, for every port of a range. */
#include "map.h"

#include <oflib/near.h>

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define FLOWS_MAX  1024 /* of one rule */
#define RANGES_MAX 32
#define DSCPS      64

enum { SRC = 1, DST = 2 };

/* Names of traffic classes (RFC 2474, 2597, 3246, 5865, 8622). */
static const struct {
    const char *name;
    uint8_t dscp;
} dscps[] = {
    {"be", 0},    {"cs0", 0},   {"cs1", 8},   {"cs2", 16},  {"cs3", 24},  {"cs4", 32},
    {"cs5", 40},  {"cs6", 48},  {"cs7", 56},  {"af11", 10}, {"af12", 12}, {"af13", 14},
    {"af21", 18}, {"af22", 20}, {"af23", 22}, {"af31", 26}, {"af32", 28}, {"af33", 30},
    {"af41", 34}, {"af42", 36}, {"af43", 38}, {"ef", 46},   {"va", 44},   {"le", 1},
};

static const struct {
    const char *name;
    uint8_t proto;
} protocols[] = {{"tcp", 6}, {"udp", 17}, {"sctp", 132}};

/* Applications by the ports that IANA knows them by. */
static const struct {
    const char *name;
    uint8_t proto;
    uint16_t low, high;
} apps[] = {
    {"dhcp", 17, 67, 68},      {"dns", 17, 53, 53},         {"dns", 6, 53, 53},
    {"dot", 6, 853, 853},      {"ftp", 6, 20, 21},          {"http", 6, 80, 80},
    {"https", 6, 443, 443},    {"imap", 6, 143, 143},       {"imap", 6, 993, 993},
    {"iperf3", 6, 5201, 5201}, {"iperf3", 17, 5201, 5201},  {"ldap", 6, 389, 389},
    {"mqtt", 6, 1883, 1883},   {"mqtt", 6, 8883, 8883},     {"nfs", 6, 2049, 2049},
    {"ntp", 17, 123, 123},     {"openvpn", 17, 1194, 1194}, {"pop3", 6, 110, 110},
    {"pop3", 6, 995, 995},     {"quic", 17, 443, 443},      {"rdp", 6, 3389, 3389},
    {"rsync", 6, 873, 873},    {"rtmp", 6, 1935, 1935},     {"rtp", 17, 5004, 5005},
    {"rtsp", 6, 554, 554},     {"sip", 17, 5060, 5061},     {"sip", 6, 5060, 5061},
    {"smb", 6, 445, 445},      {"smtp", 6, 25, 25},         {"smtp", 6, 465, 465},
    {"smtp", 6, 587, 587},     {"snmp", 17, 161, 162},      {"ssh", 6, 22, 22},
    {"stun", 17, 3478, 3478},  {"syslog", 17, 514, 514},    {"telnet", 6, 23, 23},
    {"tftp", 17, 69, 69},      {"vnc", 6, 5900, 5900},      {"wireguard", 17, 51820, 51820},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct rule {
    struct ctx *c;
    char *why;
    bool wrong;
    uint32_t queue;
    bool both_ways, has_queue, has_dscp, has_prio, family[2]; /* IPv4, IPv6 */
    bool dscp[DSCPS];
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

__attribute__((format(printf, 2, 3))) static bool
wrong(struct rule *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->why, sizeof r->c->parse.why, fmt, ap);
    va_end(ap);
    r->wrong = true;
    return true;
}

/* ----------------------------------------------------------------------- values */

/* "7" or "7-9", each at most `max`. */
static bool
parse_range(const char *text, unsigned long max, unsigned long *low, unsigned long *high)
{
    char *end;
    if (!isdigit((unsigned char)*text))
        return false;
    *low = *high = strtoul(text, &end, 0);
    if (*end == '-' && isdigit((unsigned char)end[1]))
        *high = strtoul(end + 1, &end, 0);
    return !*end && *low <= *high && *high <= max;
}

static bool
take_dscp(struct rule *r, const char *value)
{
    unsigned long low, high;
    r->has_dscp = true;
    for (size_t i = 0; i < COUNT(dscps); i++) {
        if (!strcasecmp(dscps[i].name, value)) {
            r->dscp[dscps[i].dscp] = true;
            return true;
        }
    }
    if (!parse_range(value, DSCPS - 1, &low, &high))
        return wrong(r,
                     "dscp=%.40s is no traffic class: ef, va, le, be, cs0 to cs7, af11 to af43, "
                     "0 to 63 or a range A-B is right",
                     value);
    for (; low <= high; low++)
        r->dscp[low] = true;
    return true;
}

/* Its number, or the name that the switch gives it. */
static bool
take_in_port(struct rule *r, const char *value)
{
    if (of_parse_number(&r->c->parse, "in_port", value, &of_fmt_PORT, 32, &r->in_port))
        r->wrong = true; /* the sentence is in r->why, which is the parser's */
    else if (!r->in_port || r->in_port > OFPP_MAX)
        return wrong(r, "in_port=%.40s: a port's number or name is right", value);
    return true;
}

static bool
add_range(struct rule *r, uint8_t proto, uint8_t sides, unsigned long low, unsigned long high)
{
    if (r->n_ranges == RANGES_MAX)
        return wrong(r, "more than %d ports or ranges in one rule", RANGES_MAX);
    r->ranges[r->n_ranges++] = (struct range){proto, sides, (uint16_t)low, (uint16_t)high};
    return true;
}

static bool
take_app(struct rule *r, const char *value)
{
    char names[512] = "", text[OF_NEAR_TEXT];
    struct of_near near = of_near(value, strlen(value));
    size_t at = 0;
    bool found = false;
    for (size_t i = 0; i < COUNT(apps); i++) {
        if (!strcasecmp(apps[i].name, value))
            found = add_range(r, apps[i].proto, SRC | DST, apps[i].low, apps[i].high);
        of_near_try(&near, apps[i].name);
        if ((!i || strcmp(apps[i].name, apps[i - 1].name)) && at < sizeof names)
            at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "",
                                   apps[i].name);
    }
    if (!found && near.count)
        return wrong(r, "app=%.40s is unknown%s", value, of_near_text(&near, text, sizeof text));
    return found || wrong(r, "app=%.40s is unknown; known are %s", value, names);
}

/* "tcp=80", "udp_dst=5000-5010" */
static bool
take_ports(struct rule *r, const char *key, const char *value)
{
    unsigned long low, high;
    for (size_t i = 0; i < COUNT(protocols); i++) {
        size_t n = strlen(protocols[i].name);
        const char *side = key + n;
        if (strncmp(key, protocols[i].name, n))
            continue;
        uint8_t sides = !*side                  ? SRC | DST
                        : !strcmp(side, "_src") ? SRC
                        : !strcmp(side, "_dst") ? DST
                                                : 0;
        if (!sides)
            return false;
        if (!parse_range(value, UINT16_MAX, &low, &high))
            return wrong(r, "%s=%.40s is no port: 0 to 65535 or a range A-B is right", key, value);
        return add_range(r, protocols[i].proto, sides, low, high);
    }
    return false;
}

static bool
take_proto(struct rule *r, const char *value)
{
    unsigned long low, high;
    for (size_t i = 0; i < COUNT(protocols); i++) {
        if (!strcasecmp(protocols[i].name, value)) {
            r->proto = protocols[i].proto;
            return true;
        }
    }
    if (!parse_range(value, 255, &low, &high) || low != high)
        return wrong(r, "ip_proto=%.40s: tcp, udp, sctp or 0 to 255 is right", value);
    r->proto = (int)low;
    return true;
}

/* "10.0.0.0/8", "fd00::1" */
static bool
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
        (slash && (!parse_range(slash, most, &bits, &high) || bits != high)))
        return wrong(r, "%s=%.60s is no address: 10.0.0.1, 10.0.0.0/8 or fd00::/64 is right", key,
                     value);
    char *to = r->address[!strcmp(key + strlen(key) - 3, "dst")];
    if (*to)
        return wrong(r, "%s is given twice", key);
    if (r->family[!v6])
        return wrong(r, "src and dst are of one family, IPv4 or IPv6");
    r->family[v6] = true;
    r->bits += (unsigned)bits;
    strcpy(to, value);
    return true;
}

static bool
take_number(struct rule *r, const char *key, const char *value, uint64_t max, uint64_t *out)
{
    unsigned long low, high;
    if (!parse_range(value, max, &low, &high) || low != high)
        return wrong(r, "%s=%.40s: a number up to %" PRIu64 " is right", key, value, max);
    *out = low;
    return true;
}

static bool
take_pair(struct rule *r, const char *key, const char *value)
{
    uint64_t queue = 0;
    if (!strcmp(key, "queue")) {
        if (r->has_queue)
            return wrong(r, "queue is given twice");
        r->has_queue = true;
        take_number(r, key, value, QOS_CLASS_MAX, &queue);
        r->queue = (uint32_t)queue;
        return true;
    }
    if (!strcmp(key, "dscp"))
        return take_dscp(r, value);
    if (!strcmp(key, "app"))
        return take_app(r, value);
    if (!strcmp(key, "ip_proto"))
        return take_proto(r, value);
    if (!strcmp(key, "src") || !strcmp(key, "dst") || !strcmp(key, "ip_src") ||
        !strcmp(key, "ip_dst"))
        return take_address(r, key, value);
    if (!strcmp(key, "in_port"))
        return take_in_port(r, value);
    if (!strcmp(key, "prio")) {
        r->has_prio = true;
        return take_number(r, key, value, UINT16_MAX, &r->prio);
    }
    return take_ports(r, key, value);
}

/* ------------------------------------------------------------------------ flows */

/* The more a rule says the sooner it is asked: addresses, then ports, then traffic class. */
static uint16_t
priority(const struct rule *r)
{
    if (r->has_prio)
        return (uint16_t)r->prio;
    unsigned p = 1000 + (r->has_dscp ? 1000 : 0) + (r->n_ranges || r->proto >= 0 ? 2000 : 0) +
                 (r->family[0] || r->family[1] ? 4000 : 0) + (r->in_port ? 500 : 0) + r->bits;
    return (uint16_t)p;
}

static struct map_flow *
add_flow(struct ctx *c, struct map *m)
{
    if (m->n == m->room) {
        size_t room = m->room * 2 + 64;
        struct map_flow *v = of_arena_array(&c->arena, room, sizeof *v);
        if (!v)
            return NULL;
        if (m->n)
            memcpy(v, m->v, m->n * sizeof *v);
        m->v = v;
        m->room = room;
    }
    m->v[m->n] = (struct map_flow){0};
    return &m->v[m->n++];
}

/* Instructions: the queue (0: none), then on to where `then` says. */
static int
parse_then(struct ctx *c, const struct map *m, uint32_t queue, struct map_flow *f)
{
    char apply[96], both[128];
    bool on = !strncmp(m->then, "goto:", 5);
    const char *output = !strncmp(m->then, "output:", 7) ? m->then + 7 : m->then;
    if (on)
        snprintf(apply, sizeof apply, "apply:queue=%u", (unsigned)queue);
    else if (queue)
        snprintf(apply, sizeof apply, "apply:queue=%u,output=%s", (unsigned)queue, output);
    else
        snprintf(apply, sizeof apply, "apply:output=%s", output);
    int err = 0;
    if (queue || !on)
        err = of_parse_instruction(&c->parse, apply, &f->instructions);
    if (!err && on)
        err = of_parse_instruction(&c->parse, m->then, &f->instructions);
    snprintf(both, sizeof both, "%s%s%s", queue || !on ? apply : "", queue && on ? " " : "",
             on ? m->then : "");
    f->instruction_text = keep_text(c, both, strlen(both));
    return err ? err : f->instruction_text ? 0 : -ENOMEM;
}

static bool
emit(struct rule *r, struct map *m, const char *match)
{
    struct map_flow *f = add_flow(r->c, m);
    struct ctx *c = r->c;
    if (!f)
        return !wrong(r, "out of memory");
    f->priority = priority(r);
    f->match_text = keep_text(c, match, strlen(match));
    int err = parse_then(c, m, r->queue, f);
    if (!err)
        err = of_parse_match(&c->parse, match, &f->match);
    if (!err && f->match_text)
        return true;
    r->wrong = true; /* the parser has said why */
    if (err != -EINVAL)
        wrong(r, "out of memory");
    return false;
}

/* The ports of a range, on either side. */
static bool
emit_ports(struct rule *r, struct map *m, const char *match, const struct range *ports)
{
    char text[512];
    const char *name = ports->proto == 6 ? "tcp" : ports->proto == 17 ? "udp" : "sctp";
    for (uint32_t port = ports->low; port <= ports->high; port++) {
        for (int side = SRC; side <= DST; side++) {
            if (!(ports->sides & side))
                continue;
            snprintf(text, sizeof text, "%s,ip_proto=%u,%s_%s=%u", match, ports->proto, name,
                     side == SRC ? "src" : "dst", (unsigned)port);
            if (!emit(r, m, text))
                return false;
        }
    }
    return true;
}

/* One family, one traffic class (-1: any). */
static bool
emit_class(struct rule *r, struct map *m, int v6, int dscp)
{
    static const char *const sides[] = {"src", "dst"};
    char text[400];
    size_t at = (size_t)snprintf(text, sizeof text, "eth_type=%s", v6 ? "0x86dd" : "0x0800");
    if (r->in_port)
        at += (size_t)snprintf(text + at, sizeof text - at, ",in_port=%" PRIu64, r->in_port);
    if (dscp >= 0)
        at += (size_t)snprintf(text + at, sizeof text - at, ",ip_dscp=%d", dscp);
    for (int i = 0; i < 2; i++)
        if (*r->address[i])
            at += (size_t)snprintf(text + at, sizeof text - at, ",ipv%d_%s=%s", v6 ? 6 : 4,
                                   sides[i], r->address[i]);
    if (!r->n_ranges && r->proto >= 0)
        snprintf(text + at, sizeof text - at, ",ip_proto=%d", r->proto);
    if (!r->n_ranges)
        return emit(r, m, text);
    for (unsigned i = 0; i < r->n_ranges; i++)
        if (!emit_ports(r, m, text, &r->ranges[i]))
            return false;
    return true;
}

static bool
emit_family(struct rule *r, struct map *m, int v6)
{
    if (r->family[!v6]) /* an address of the other one */
        return true;
    if (!r->has_dscp)
        return emit_class(r, m, v6, -1);
    for (int i = 0; i < DSCPS; i++)
        if (r->dscp[i] && !emit_class(r, m, v6, i))
            return false;
    return true;
}

static size_t
count_flows(const struct rule *r)
{
    size_t ports = 0, classes = 0;
    for (unsigned i = 0; i < r->n_ranges; i++)
        ports += (r->ranges[i].high - r->ranges[i].low + 1u) *
                 ((r->ranges[i].sides & SRC ? 1u : 0u) + (r->ranges[i].sides & DST ? 1u : 0u));
    for (int i = 0; i < DSCPS; i++)
        classes += r->dscp[i];
    return (ports ? ports : 1) * (classes ? classes : 1) * (r->family[0] || r->family[1] ? 1 : 2) *
           (r->both_ways ? 2 : 1);
}

static void
check_rule(struct rule *r)
{
    size_t n = count_flows(r);
    bool any = !r->has_dscp && !r->n_ranges && r->proto < 0 && !r->bits && !r->in_port &&
               !r->family[0] && !r->family[1];
    if (!r->has_queue)
        wrong(r, "queue= is missing: queue=10,dscp=ef");
    else if (any)
        wrong(r,
              "which packets go to queue %u is missing: dscp=, app=, tcp=, udp=, sctp=, "
              "ip_proto=, src=, dst= or in_port=",
              (unsigned)r->queue);
    else if (r->n_ranges && r->proto >= 0)
        wrong(r,
              "leave out ip_proto=: tcp=, udp=, sctp= and app= tell the protocol together with its "
              "ports");
    else if (r->both_ways && r->in_port)
        wrong(r, "in_port is of one way, and a connection has two: say it by addresses and ports");
    else if (n > FLOWS_MAX)
        wrong(r,
              "the rule comes to %zu flows, one for each port, side and family: %d are right "
              "at most; ports can't be masked in OpenFlow 1.3, so name fewer",
              n, FLOWS_MAX);
}

/* The packets of the other way have source and destination exchanged. */
static void
turn_round(struct rule *r)
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

static void
unknown_key(struct rule *r, const char *word)
{
    static const char *const keys[] = {"queue",    "dscp",     "app",      "tcp",     "tcp_src",
                                       "tcp_dst",  "udp",      "udp_src",  "udp_dst", "sctp",
                                       "sctp_src", "sctp_dst", "ip_proto", "src",     "dst",
                                       "ip_src",   "ip_dst",   "in_port",  "prio"};
    char text[OF_NEAR_TEXT];
    struct of_near near = of_near(word, strlen(word));
    for (size_t i = 0; i < COUNT(keys); i++)
        of_near_try(&near, keys[i]);
    wrong(r, "unknown key %.40s%s", word,
          near.count ? of_near_text(&near, text, sizeof text)
                     : "; a rule takes queue, dscp, app, tcp, tcp_src, tcp_dst (udp and sctp "
                       "alike), ip_proto, src, dst (or ip_src, ip_dst), in_port, prio");
}

void
map_rule(struct ctx *c, struct map *m, const char *text, bool both_ways, const char **why)
{
    static const char separators[] = ", \t";
    struct rule r = {.c = c, .why = c->parse.why, .proto = -1, .both_ways = both_ways};
    for (const char *at = text + strspn(text, separators); *at && !r.wrong;
         at += strspn(at, separators)) {
        char word[160], *eq;
        size_t n = strcspn(at, separators);
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        at += n;
        if (n >= sizeof word || !(eq = strchr(word, '=')) || eq == word || !eq[1]) {
            wrong(&r, "'%.40s' is no key=value", word);
            break;
        }
        *eq = '\0';
        if (!take_pair(&r, word, eq + 1))
            unknown_key(&r, word);
    }
    if (!r.wrong)
        check_rule(&r);
    for (int way = 0; way <= both_ways && !r.wrong; way++) {
        (void)(emit_family(&r, m, 0) && emit_family(&r, m, 1));
        turn_round(&r);
    }
    *why = r.wrong ? c->parse.why : NULL;
}

/* ----------------------------------------------------------------------- the set */

void
map_init(struct map *m, const char *set)
{
    *m = (struct map){.set = set, .then = "goto:1"};
}

uint64_t
map_cookie(const char *set)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (; *set; set++)
        hash = (hash ^ (uint8_t)*set) * 16777619u;
    return MAP_COOKIE | hash;
}

bool
map_option(struct ctx *c, struct map *m, const char *word, const char **why)
{
    unsigned long low, high;
    size_t room = sizeof c->parse.why;
    *why = NULL;
    if (!strncmp(word, "set=", 4) && word[4]) {
        m->set = keep_text(c, word + 4, strlen(word + 4));
    } else if (!strncmp(word, "table=", 6)) {
        if (!parse_range(word + 6, 253, &low, &high) || low != high) {
            snprintf(c->parse.why, room, "%.40s: table=0 to table=253 is right", word);
            *why = c->parse.why;
        }
        m->table = (uint8_t)low;
    } else if (!strncmp(word, "then=", 5)) {
        m->then = keep_text(c, word + 5, strlen(word + 5));
        if (strncmp(word + 5, "goto:", 5) && strncmp(word + 5, "output:", 7) &&
            strcmp(word + 5, "normal") && strcmp(word + 5, "flood")) {
            snprintf(c->parse.why, room,
                     "%.40s: then=goto:TABLE, normal, flood or output:PORT is right", word);
            *why = c->parse.why;
        }
    } else {
        return false;
    }
    return true;
}

static int
by_match(const void *a, const void *b)
{
    const struct map_flow *x = a, *y = b;
    int order = strcmp(x->match_text, y->match_text);
    return order ? order : (int)x->priority - (int)y->priority;
}

void
map_finish(struct ctx *c, struct map *m, const char **why)
{
    unsigned long low = 0, high;
    struct map_flow *miss;
    *why = NULL;
    if (!m->n)
        return;
    if (!strncmp(m->then, "goto:", 5) &&
        (!parse_range(m->then + 5, 253, &low, &high) || low != high || low <= m->table)) {
        snprintf(c->parse.why, sizeof c->parse.why,
                 "then=%.40s: a table behind table %u is right, goto:%u", m->then, m->table,
                 m->table + 1u);
        *why = c->parse.why;
        return;
    }
    qsort(m->v, m->n, sizeof *m->v, by_match);
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) {
        if (n && !by_match(&m->v[n - 1], &m->v[i])) {
            if (strcmp(m->v[n - 1].instruction_text, m->v[i].instruction_text)) {
                snprintf(c->parse.why, sizeof c->parse.why,
                         "two rules put %.300s into different "
                         "queues; prio= tells which counts",
                         m->v[i].match_text);
                *why = c->parse.why;
                return;
            }
            continue; /* said twice */
        }
        m->v[n++] = m->v[i];
    }
    m->n = n;
    miss = add_flow(c, m);
    if (miss)
        miss->match_text = "";
    if (!miss || parse_then(c, m, 0, miss) || of_parse_match(&c->parse, "", &miss->match))
        *why = miss ? c->parse.why : "out of memory";
}
