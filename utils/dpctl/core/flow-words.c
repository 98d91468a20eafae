/* SPDX-License-Identifier: Apache-2.0 */
#include <core/flow-words.h>
#include <core/say.h>

#include <oflib/absent.h>
#include <oflib/near.h>

#include <stdlib.h>
#include <strings.h>

const struct flow_word flow_words[] = {
    {"dl_src", SAME, {{ANY_PROTOCOL, "eth_src="}}},
    {"dl_dst", SAME, {{ANY_PROTOCOL, "eth_dst="}}},
    {"dl_type", SAME, {{ANY_PROTOCOL, "eth_type="}}},
    {"dl_vlan", VLAN, {{ANY_PROTOCOL, "vlan_vid="}}},
    {"dl_vlan_pcp", SAME, {{ANY_PROTOCOL, "vlan_pcp="}}},
    {"nw_src", SAME, {{ARP, "arp_spa="}, {ANY_PROTOCOL, "ipv4_src="}}},
    {"nw_dst", SAME, {{ARP, "arp_tpa="}, {ANY_PROTOCOL, "ipv4_dst="}}},
    {"nw_proto", SAME, {{ARP, "arp_op="}, {ANY_PROTOCOL, "ip_proto="}}},
    {"nw_tos", TOS, {{ANY_PROTOCOL, "ip_dscp="}}},
    {"nw_ecn", SAME, {{ANY_PROTOCOL, "ip_ecn="}}},
    {"tp_src",
     SAME,
     {{TCP, "tcp_src="},
      {UDP, "udp_src="},
      {SCTP, "sctp_src="},
      {ICMP, "icmpv4_type="},
      {ICMP6, "icmpv6_type="}}},
    {"tp_dst",
     SAME,
     {{TCP, "tcp_dst="},
      {UDP, "udp_dst="},
      {SCTP, "sctp_dst="},
      {ICMP, "icmpv4_code="},
      {ICMP6, "icmpv6_code="}}},
    {"icmp_type", SAME, {{ICMP6, "icmpv6_type="}, {ANY_PROTOCOL, "icmpv4_type="}}},
    {"icmp_code", SAME, {{ICMP6, "icmpv6_code="}, {ANY_PROTOCOL, "icmpv4_code="}}},
    {"nd_target", SAME, {{ANY_PROTOCOL, "ipv6_nd_target="}}},
    {"nd_sll", SAME, {{ANY_PROTOCOL, "ipv6_nd_sll="}}},
    {"nd_tll", SAME, {{ANY_PROTOCOL, "ipv6_nd_tll="}}},
    {"ip", NONE, {{ANY_PROTOCOL, "eth_type=0x800"}}},
    {"ipv6", NONE, {{ANY_PROTOCOL, "eth_type=0x86dd"}}},
    {"arp", NONE, {{ANY_PROTOCOL, "eth_type=0x806"}}},
    {"icmp", NONE, {{ANY_PROTOCOL, "eth_type=0x800,ip_proto=1"}}},
    {"tcp", NONE, {{ANY_PROTOCOL, "eth_type=0x800,ip_proto=6"}}},
    {"udp", NONE, {{ANY_PROTOCOL, "eth_type=0x800,ip_proto=17"}}},
    {"sctp", NONE, {{ANY_PROTOCOL, "eth_type=0x800,ip_proto=132"}}},
    {"icmp6", NONE, {{ANY_PROTOCOL, "eth_type=0x86dd,ip_proto=58"}}},
    {"tcp6", NONE, {{ANY_PROTOCOL, "eth_type=0x86dd,ip_proto=6"}}},
    {"udp6", NONE, {{ANY_PROTOCOL, "eth_type=0x86dd,ip_proto=17"}}},
    {"sctp6", NONE, {{ANY_PROTOCOL, "eth_type=0x86dd,ip_proto=132"}}},
    {"rarp", NONE, {{ANY_PROTOCOL, "eth_type=0x8035"}}},
    {"mpls", NONE, {{ANY_PROTOCOL, "eth_type=0x8847"}}},
    {"mplsm", NONE, {{ANY_PROTOCOL, "eth_type=0x8848"}}},
    {"tun_id", SAME, {{ANY_PROTOCOL, "tunnel_id="}}},
    {"ipv6_label", SAME, {{ANY_PROTOCOL, "ipv6_flabel="}}},
    {"priority", SAME, {{ANY_PROTOCOL, "prio="}}},
    {"idle_timeout", SAME, {{ANY_PROTOCOL, "idle="}}},
    {"hard_timeout", SAME, {{ANY_PROTOCOL, "hard="}}},
    {"cookie", COOKIE, {{ANY_PROTOCOL, "cookie="}}},
    {"send_flow_rem", FLAG, {{ANY_PROTOCOL, "flags=send_flow_rem"}}},
    {"check_overlap", FLAG, {{ANY_PROTOCOL, "flags=check_overlap"}}},
    {"reset_counts", FLAG, {{ANY_PROTOCOL, "flags=reset_counts"}}},
    {NULL, SAME, {{ANY_PROTOCOL, NULL}}},
};

/* ------------------------------------------------------------------- a word */

struct flow_part
flow_part(const char *p, size_t n, const char *separators)
{
    size_t name = 0;
    while (name < n && !strchr(separators, p[name]))
        name++;
    bool value = name < n;
    return (struct flow_part){p, p + name + value, (int)name, (int)(n - name - value)};
}

bool
flow_part_is(const struct flow_part *p, const char *name)
{
    return (size_t)p->name_len == strlen(name) && !strncasecmp(p->name, name, strlen(name));
}

static unsigned long
number_of(const struct flow_part *p)
{
    return strtoul(p->value, NULL, 0); /* ends at the comma */
}

const struct flow_word *
flow_word_find(const struct flow_word *table, const struct flow_part *p)
{
    for (; table->old; table++)
        if (flow_part_is(p, table->old))
            return table;
    return NULL;
}

const char *
flow_word_now(const struct flow_word *k, enum flow_protocol about)
{
    for (size_t i = 0; i < FLOW_WORD_MEANINGS && k->to[i].now; i++)
        if (k->to[i].about == ANY_PROTOCOL || k->to[i].about == about)
            return k->to[i].now;
    return NULL;
}

/* "cookie=5/-1": -1 is a mask of all bits. */
static void
put_cookie(struct of_wr *w, const struct flow_part *p, const char *now)
{
    const char *slash = memchr(p->value, '/', (size_t)p->value_len);
    int n = slash ? (int)(slash - p->value) : p->value_len, mask = p->value_len - n - 1;
    of_printf(w, "%s%.*s", now, n, p->value);
    if (slash && mask == 2 && !strncmp(slash + 1, "-1", 2))
        of_printf(w, ",cookie_mask=0xffffffffffffffff");
    else if (slash)
        of_printf(w, ",cookie_mask=%.*s", mask, slash + 1);
}

enum status
flow_word_put(struct ctx *c, struct of_wr *w, const struct flow_word *k, const struct flow_part *p,
              enum flow_protocol about)
{
    const char *now = flow_word_now(k, about);
    bool bare = k->value == NONE || k->value == FLAG;
    if (bare != !p->value_len && !flow_part_is(p, "controller"))
        return say_usage(c, bare ? "%s takes no value" : "%s needs a value", k->old);
    if (!now)
        return say_usage(c, "%s needs the protocol before it, such as tcp,%s", k->old, k->old);
    if (k->value == COOKIE) {
        put_cookie(w, p, now);
    } else if (k->value == VLAN && number_of(p) == 0xffff) {
        of_printf(w, "%snone", now);
    } else if (k->value == TOS) {
        unsigned long tos = number_of(p);
        if (tos > 255 || tos % 4)
            return say_usage(c,
                             "%s must be a multiple of 4 up to 252 (the upper six bits are the "
                             "DSCP), not '%.*s'",
                             k->old, p->value_len, p->value);
        of_printf(w, "%s%lu", now, tos / 4);
    } else {
        of_printf(w, "%s%.*s", now, p->value_len, p->value);
    }
    return DPCTL_OK;
}

/* ------------------------------------------------------------------- the protocol */

static const struct {
    unsigned number;
    enum flow_protocol about;
    const char *name, *six;
} protocols[] = {{1, ICMP, "icmp", "icmp"},
                 {6, TCP, "tcp", "tcp6"},
                 {17, UDP, "udp", "udp6"},
                 {132, SCTP, "sctp", "sctp6"},
                 {58, ICMP6, "icmp6", "icmp6"}};

/* A wildcard matches all: the field is left out. */
static bool
is_wildcard(const struct flow_part *p)
{
    return (p->value_len == 1 && *p->value == '*') ||
           (p->value_len == 3 && !strncasecmp(p->value, "any", 3) && !strncmp(p->name, "nw_", 3));
}

static void
learn_protocol(struct flow_about *a, const struct flow_part *p)
{
    bool type = flow_part_is(p, "dl_type") || flow_part_is(p, "eth_type");
    if (flow_part_is(p, "arp") || (type && number_of(p) == 0x806))
        a->protocol = ARP;
    bool proto = (flow_part_is(p, "nw_proto") || flow_part_is(p, "ip_proto")) && a->protocol != ARP;
    for (size_t i = 0; i < sizeof protocols / sizeof protocols[0]; i++)
        if (flow_part_is(p, protocols[i].name) || flow_part_is(p, protocols[i].six) ||
            (proto && number_of(p) == protocols[i].number))
            a->protocol = protocols[i].about;
    if (flow_part_is(p, "dl_vlan") || flow_part_is(p, "vlan_vid"))
        a->tagged =
            !is_wildcard(p) && number_of(p) != 0xffff && strncasecmp(p->value, "none", 4) != 0;
}

/* The next word; the text goes on behind its comma. */
static bool
next_part(const char **text, const char *end, struct flow_part *out)
{
    if (*text >= end)
        return false;
    const char *comma = memchr(*text, ',', (size_t)(end - *text));
    size_t n = comma ? (size_t)(comma - *text) : (size_t)(end - *text);
    *out = flow_part(*text, n, "=");
    *text += n + 1;
    return true;
}

struct flow_about
flow_about(const char *text, size_t n)
{
    struct flow_about a = {0};
    struct flow_part p;
    for (const char *end = text + n; next_part(&text, end, &p);)
        learn_protocol(&a, &p);
    return a;
}

/* ------------------------------------------------------------------- a flow */

/* A word that is in no table; what is near it, of all that may stand here.  An action or an
 * instruction is left to the parser, which knows where it belongs. */
static enum status
check_unknown(struct ctx *c, const struct of_struct_row *row, const struct flow_part *p)
{
    char text[OF_NEAR_TEXT], absent[OF_ABSENT_TEXT];
    size_t n = (size_t)p->name_len;
    struct of_near near = of_near(p->name, n);
    if (of_is_match_field(p->name, n) || of_field_by_name(row, p->name, n) ||
        of_is_action(p->name, n) || memchr(p->name, ':', n))
        return DPCTL_OK;
    if (of_absent(p->name, n, absent, sizeof absent))
        return say_usage(c, "%s", absent);
    for (const struct flow_word *k = flow_words; k->old; k++)
        of_near_try(&near, k->old);
    for (int i = 0; i < OXM_N; i++)
        of_near_try(&near, oxm_rows[i].name);
    for (int i = 0; i < row->n_fields; i++) {
        of_near_try(&near, row->fields[i].name);
        of_near_try(&near, of_field_short_name(&row->fields[i]));
    }
    return near.count ? say_usage(c, "unknown field %.*s%s", p->name_len, p->name,
                                  of_near_text(&near, text, sizeof text))
                      : DPCTL_OK;
}

enum status
flow_words_translate(struct ctx *c, const struct of_struct_row *row, const char *text,
                     struct of_wr *out)
{
    const char *end = text + strlen(text), *at = text;
    struct flow_about about = flow_about(text, strlen(text));
    struct of_wr flags = of_wr_grow(1 << 20);
    enum status st = DPCTL_OK;
    for (struct flow_part p; !st && next_part(&at, end, &p);) {
        const struct flow_word *k = flow_word_find(flow_words, &p);
        if (!p.name_len || is_wildcard(&p))
            continue;
        if (k && k->value == FLAG) { /* one key for all of them */
            st = p.value_len ? say_usage(c, "%s takes no value", k->old) : DPCTL_OK;
            of_printf(&flags, "%s%s", flags.len ? "|" : "flags=", k->old);
            continue;
        }
        if (k)
            st = flow_word_put(c, out, k, &p, about.protocol);
        else if (!(st = check_unknown(c, row, &p)))
            of_printf(out, "%.*s", (int)(p.value - p.name) + p.value_len, p.name);
        of_printf(out, ",");
    }
    of_printf(out, "%.*s", (int)flags.len, flags.len ? (const char *)flags.buf : "");
    of_wr_free(&flags);
    return st;
}
