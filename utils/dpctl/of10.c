/* SPDX-License-Identifier: Apache-2.0 */
/* The translation: one table for fields, one for actions, of the same kind. */
#include "of10.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* What the flow is about, as far as its words tell: what some words mean depends on it. */
enum about { ANY, ARP, TCP, UDP, SCTP, ICMP };

enum value {
    SAME,
    NONE,    /* there is none */
    VLAN,    /* 65535: without a tag */
    TOS,     /* a byte whose upper six bits count */
    TAG,     /* the tag is put on where the flow isn't for packets that have one */
    PORT_QUEUE,
};

struct word {
    const char *old;
    enum value value;
    struct {
        enum about about;
        const char *now;
    } to[4];
};

static const struct word fields[] = {
    {"dl_src", SAME, {{ANY, "eth_src="}}},
    {"dl_dst", SAME, {{ANY, "eth_dst="}}},
    {"dl_type", SAME, {{ANY, "eth_type="}}},
    {"dl_vlan", VLAN, {{ANY, "vlan_vid="}}},
    {"dl_vlan_pcp", SAME, {{ANY, "vlan_pcp="}}},
    {"nw_src", SAME, {{ARP, "arp_spa="}, {ANY, "ipv4_src="}}},
    {"nw_dst", SAME, {{ARP, "arp_tpa="}, {ANY, "ipv4_dst="}}},
    {"nw_proto", SAME, {{ARP, "arp_op="}, {ANY, "ip_proto="}}},
    {"nw_tos", TOS, {{ANY, "ip_dscp="}}},
    {"tp_src", SAME,
     {{TCP, "tcp_src="}, {UDP, "udp_src="}, {SCTP, "sctp_src="}, {ICMP, "icmpv4_type="}}},
    {"tp_dst", SAME,
     {{TCP, "tcp_dst="}, {UDP, "udp_dst="}, {SCTP, "sctp_dst="}, {ICMP, "icmpv4_code="}}},
    {"icmp_type", SAME, {{ANY, "icmpv4_type="}}},
    {"icmp_code", SAME, {{ANY, "icmpv4_code="}}},
    {"ip", NONE, {{ANY, "eth_type=0x800"}}},
    {"arp", NONE, {{ANY, "eth_type=0x806"}}},
    {"icmp", NONE, {{ANY, "eth_type=0x800,ip_proto=1"}}},
    {"tcp", NONE, {{ANY, "eth_type=0x800,ip_proto=6"}}},
    {"udp", NONE, {{ANY, "eth_type=0x800,ip_proto=17"}}},
    {"sctp", NONE, {{ANY, "eth_type=0x800,ip_proto=132"}}},
    {"priority", SAME, {{ANY, "prio="}}},
    {"idle_timeout", SAME, {{ANY, "idle="}}},
    {"hard_timeout", SAME, {{ANY, "hard="}}},
    {NULL, SAME, {{ANY, NULL}}},
};

static const struct word actions[] = {
    {"output", SAME, {{ANY, "output="}}},
    {"enqueue", PORT_QUEUE, {{ANY, "queue=,output="}}},
    {"normal", NONE, {{ANY, "output=normal"}}},
    {"flood", NONE, {{ANY, "output=flood"}}},
    {"all", NONE, {{ANY, "output=all"}}},
    {"local", NONE, {{ANY, "output=local"}}},
    {"in_port", NONE, {{ANY, "output=in_port"}}},
    {"controller", SAME, {{ANY, "output=controller:"}}},
    {"drop", NONE, {{ANY, ""}}},
    {"mod_vlan_vid", TAG, {{ANY, "set_field=vlan_vid:"}}},
    {"mod_vlan_pcp", TAG, {{ANY, "set_field=vlan_pcp:"}}},
    {"strip_vlan", NONE, {{ANY, "pop_vlan"}}},
    {"mod_dl_src", SAME, {{ANY, "set_field=eth_src:"}}},
    {"mod_dl_dst", SAME, {{ANY, "set_field=eth_dst:"}}},
    {"mod_nw_src", SAME, {{ANY, "set_field=ipv4_src:"}}},
    {"mod_nw_dst", SAME, {{ANY, "set_field=ipv4_dst:"}}},
    {"mod_nw_tos", TOS, {{ANY, "set_field=ip_dscp:"}}},
    {"mod_tp_src", SAME,
     {{TCP, "set_field=tcp_src:"}, {UDP, "set_field=udp_src:"}, {SCTP, "set_field=sctp_src:"}}},
    {"mod_tp_dst", SAME,
     {{TCP, "set_field=tcp_dst:"}, {UDP, "set_field=udp_dst:"}, {SCTP, "set_field=sctp_dst:"}}},
    {NULL, SAME, {{ANY, NULL}}},
};

struct job {
    struct ctx *c;
    enum about about;
    bool tagged; /* the flow is for packets with a tag, or has put one on */
    struct of_wr w;
};

/* One word: its name, and its value where there is one. */
struct part {
    const char *name, *value;
    int name_len, value_len;
};

static struct part
part_of(const char *p, size_t n, const char *separators)
{
    size_t name = 0;
    while (name < n && !strchr(separators, p[name]))
        name++;
    bool value = name < n;
    return (struct part){p, p + name + value, (int)name, (int)(n - name - value)};
}

static bool
is(const struct part *p, const char *name)
{
    return (size_t)p->name_len == strlen(name) && !strncasecmp(p->name, name, strlen(name));
}

static const struct word *
find(const struct word *table, const struct part *p)
{
    for (; table->old; table++)
        if (is(p, table->old))
            return table;
    return NULL;
}

static unsigned long
number(const struct part *p)
{
    return strtoul(p->value, NULL, 0); /* ends at the comma */
}

/* ------------------------------------------------------------------- a word */

static enum status
put_value(struct job *j, const struct word *k, const struct part *p, const char *now)
{
    const char *colon = memchr(p->value, ':', (size_t)p->value_len);
    switch (k->value) {
    case SAME:
    case NONE:
        of_printf(&j->w, "%s%.*s", now, p->value_len, p->value);
        break;
    case VLAN:
        of_printf(&j->w, number(p) == 0xffff ? "%snone" : "%s%.*s", now, p->value_len, p->value);
        break;
    case TOS:
        if (number(p) > 255 || number(p) % 4)
            return bad_args(j->c, "%s '%.*s': a multiple of 4 up to 252 is right (its upper six "
                                  "bits are the DSCP)", k->old, p->value_len, p->value);
        of_printf(&j->w, "%s%lu", now, number(p) / 4);
        break;
    case TAG:
        of_printf(&j->w, "%s%s%.*s", j->tagged ? "" : "push_vlan=0x8100,", now, p->value_len,
                  p->value);
        j->tagged = true;
        break;
    case PORT_QUEUE:
        if (!colon)
            return bad_args(j->c, "%s:%.*s: enqueue:PORT:QUEUE is right", k->old, p->value_len,
                            p->value);
        of_printf(&j->w, "queue=%.*s,output=%.*s", (int)(p->value + p->value_len - colon - 1),
                  colon + 1, (int)(colon - p->value), p->value);
    }
    return DPCTL_OK;
}

static enum status
put_word(struct job *j, const struct word *k, const struct part *p)
{
    size_t i = 0;
    if ((k->value == NONE) != !p->value_len && !is(p, "controller"))
        return bad_args(j->c, k->value == NONE ? "%s has no value" : "%s needs a value", k->old);
    while (k->to[i].now && k->to[i].about != ANY && k->to[i].about != j->about)
        if (++i == sizeof k->to / sizeof k->to[0])
            break;
    if (i == sizeof k->to / sizeof k->to[0] || !k->to[i].now)
        return bad_args(j->c, "%s needs the protocol before it: such as tcp,%s", k->old, k->old);
    enum status st = put_value(j, k, p, k->to[i].now);
    of_printf(&j->w, ",");
    return st;
}

/* ------------------------------------------------------------------- fields */

static const struct {
    unsigned proto;
    enum about about;
    const char *name;
} protocols[] = {{1, ICMP, "icmp"}, {6, TCP, "tcp"}, {17, UDP, "udp"}, {132, SCTP, "sctp"}};

/* A wildcard is what isn't said. */
static bool
is_wildcard(const struct part *p)
{
    return (p->value_len == 1 && *p->value == '*') ||
           (p->value_len == 3 && !strncasecmp(p->value, "any", 3) && !strncmp(p->name, "nw_", 3));
}

static void
learn(struct job *j, const struct part *p)
{
    bool type = is(p, "dl_type") || is(p, "eth_type");
    if (is(p, "arp") || (type && number(p) == 0x806))
        j->about = ARP;
    bool proto = (is(p, "nw_proto") || is(p, "ip_proto")) && j->about != ARP;
    for (size_t i = 0; i < sizeof protocols / sizeof protocols[0]; i++)
        if (is(p, protocols[i].name) || (proto && number(p) == protocols[i].proto))
            j->about = protocols[i].about;
    if (is(p, "dl_vlan") || is(p, "vlan_vid"))
        j->tagged = !is_wildcard(p) && number(p) != 0xffff && strncasecmp(p->value, "none", 4);
}

static enum status
put_fields(struct job *j, const char *text, size_t len)
{
    const char *end = text + len;
    enum status st = DPCTL_OK;
    for (int turn = 0; turn < 2; turn++) {
        for (const char *p = text; p < end && !st; p++) {
            size_t n = strcspn(p, ",");
            n = p + n > end ? (size_t)(end - p) : n;
            struct part part = part_of(p, n, "=");
            const struct word *k = find(fields, &part);
            p += n;
            if (!turn)
                learn(j, &part);
            else if (k && !is_wildcard(&part))
                st = put_word(j, k, &part);
            else if (n && !is_wildcard(&part))
                of_printf(&j->w, "%.*s,", (int)n, part.name);
        }
    }
    return st;
}

static enum status
put_actions(struct job *j, const char *text)
{
    enum status st = DPCTL_OK;
    for (const char *p = text; *p && !st; p += *p == ',') {
        size_t n = strcspn(p, ",");
        struct part part = part_of(p, n, ":=");
        const struct word *k = find(actions, &part);
        if (k && part.name[part.name_len] != '=')
            st = put_word(j, k, &part);
        else if (n && strspn(p, "0123456789") == n)
            of_printf(&j->w, "output=%.*s,", (int)n, p);
        else if (n)
            of_printf(&j->w, "%.*s,", (int)n, p);
        p += n;
    }
    return st;
}

/* ------------------------------------------------------------------ the flow */

/* What has been written, without its last comma. */
static char *
written(struct job *j)
{
    size_t n = j->w.len;
    while (n && j->w.buf[n - 1] == ',')
        n--;
    const char *from = n ? (const char *)j->w.buf : ""; /* nothing written: no buffer */
    char *text = j->w.overflow ? NULL : keep_text(j->c, from, n);
    j->w.len = 0;
    return text;
}

enum status
of10_translate(struct ctx *c, char *const *words, int n, struct of10_flow *out)
{
    struct job j = {.c = c, .w = of_wr_grow(1 << 20)};
    const char *text = join_words(c, words, n, ','), *at = text;
    while (at && (at = strstr(at, "action")) && at != text && at[-1] != ',')
        at++;
    size_t len = at ? (size_t)(at - text) : text ? strlen(text) : 0;
    enum status st = put_fields(&j, text ? text : "", len);
    out->fields = written(&j);
    out->actions = NULL;
    if (!st && at) {
        at += strcspn(at, "=");
        st = put_actions(&j, *at ? at + 1 : at);
        out->actions = written(&j);
    }
    bool full = !text || !out->fields || (at && !st && !out->actions);
    of_wr_free(&j.w);
    return st ? st : full ? failed(c, "out of memory") : DPCTL_OK;
}

static void
print_table(struct of_wr *w, const struct word *k)
{
    for (; k->old; k++) {
        of_printf(w, "  %-14s", k->old);
        for (size_t i = 0; i < sizeof k->to / sizeof k->to[0] && k->to[i].now; i++)
            of_printf(w, "%s%s", i ? ", " : "", *k->to[i].now ? k->to[i].now : "(no action)");
        of_printf(w, "\n");
    }
}

void
of10_print_words(struct of_wr *w)
{
    of_printf(w, "\nA FLOW of OpenFlow 1.0, and what its words become (arp, tcp, udp, sctp, icmp in "
                 "this\norder where there are several):\n");
    print_table(w, fields);
    of_printf(w, "\nIts actions, after actions=:\n");
    print_table(w, actions);
}
