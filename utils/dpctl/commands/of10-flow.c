/* SPDX-License-Identifier: Apache-2.0 */
/* A flow in OpenFlow 1.0's words becomes one in today's, by a table of fields and one of
 * actions. */
#include "of10.h"

#include <core/say.h>
#include <core/words.h>

#include <oflib/near.h>

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* The flow's protocol, as far as its words tell: the meaning of some words depends on it. */
enum about { ANY, ARP, TCP, UDP, SCTP, ICMP, ICMP6 };

enum value {
    SAME,
    NONE, /* there is none */
    VLAN, /* 65535: without a tag */
    TOS,  /* a byte whose upper six bits count */
    TAG,  /* first pushes a tag, unless the flow is for packets that have one */
    PORT_QUEUE,
    FLAG,   /* of the flow-mod */
    COOKIE, /* with a mask or without */
    FIELD,  /* VALUE->FIELD */
};

struct word {
    const char *old;
    enum value value;
    struct {
        enum about about;
        const char *now;
    } to[5];
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
    {"nw_ecn", SAME, {{ANY, "ip_ecn="}}},
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
    {"icmp_type", SAME, {{ICMP6, "icmpv6_type="}, {ANY, "icmpv4_type="}}},
    {"icmp_code", SAME, {{ICMP6, "icmpv6_code="}, {ANY, "icmpv4_code="}}},
    {"nd_target", SAME, {{ANY, "ipv6_nd_target="}}},
    {"nd_sll", SAME, {{ANY, "ipv6_nd_sll="}}},
    {"nd_tll", SAME, {{ANY, "ipv6_nd_tll="}}},
    {"ip", NONE, {{ANY, "eth_type=0x800"}}},
    {"ipv6", NONE, {{ANY, "eth_type=0x86dd"}}},
    {"arp", NONE, {{ANY, "eth_type=0x806"}}},
    {"icmp", NONE, {{ANY, "eth_type=0x800,ip_proto=1"}}},
    {"tcp", NONE, {{ANY, "eth_type=0x800,ip_proto=6"}}},
    {"udp", NONE, {{ANY, "eth_type=0x800,ip_proto=17"}}},
    {"sctp", NONE, {{ANY, "eth_type=0x800,ip_proto=132"}}},
    {"icmp6", NONE, {{ANY, "eth_type=0x86dd,ip_proto=58"}}},
    {"tcp6", NONE, {{ANY, "eth_type=0x86dd,ip_proto=6"}}},
    {"udp6", NONE, {{ANY, "eth_type=0x86dd,ip_proto=17"}}},
    {"sctp6", NONE, {{ANY, "eth_type=0x86dd,ip_proto=132"}}},
    {"priority", SAME, {{ANY, "prio="}}},
    {"idle_timeout", SAME, {{ANY, "idle="}}},
    {"hard_timeout", SAME, {{ANY, "hard="}}},
    {"cookie", COOKIE, {{ANY, "cookie="}}},
    {"send_flow_rem", FLAG, {{ANY, "flags=send_flow_rem"}}},
    {"check_overlap", FLAG, {{ANY, "flags=check_overlap"}}},
    {"reset_counts", FLAG, {{ANY, "flags=reset_counts"}}},
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
    {"set_field", FIELD, {{ANY, "set_field="}}},
    {"mod_vlan_vid", TAG, {{ANY, "set_field=vlan_vid:"}}},
    {"mod_vlan_pcp", TAG, {{ANY, "set_field=vlan_pcp:"}}},
    {"strip_vlan", NONE, {{ANY, "pop_vlan"}}},
    {"mod_dl_src", SAME, {{ANY, "set_field=eth_src:"}}},
    {"mod_dl_dst", SAME, {{ANY, "set_field=eth_dst:"}}},
    {"mod_nw_src", SAME, {{ANY, "set_field=ipv4_src:"}}},
    {"mod_nw_dst", SAME, {{ANY, "set_field=ipv4_dst:"}}},
    {"mod_nw_tos", TOS, {{ANY, "set_field=ip_dscp:"}}},
    {"mod_tp_src",
     SAME,
     {{TCP, "set_field=tcp_src:"}, {UDP, "set_field=udp_src:"}, {SCTP, "set_field=sctp_src:"}}},
    {"mod_tp_dst",
     SAME,
     {{TCP, "set_field=tcp_dst:"}, {UDP, "set_field=udp_dst:"}, {SCTP, "set_field=sctp_dst:"}}},
    {NULL, SAME, {{ANY, NULL}}},
};

struct job {
    struct ctx *c;
    enum about about;
    bool tagged; /* the flow is for packets with a tag, or has pushed one */
    bool flags;  /* some are given */
    struct of_wr w;
    struct of_wr instructions; /* each followed by a blank */
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
part_is(const struct part *p, const char *name)
{
    return (size_t)p->name_len == strlen(name) && !strncasecmp(p->name, name, strlen(name));
}

static const struct word *
find_word(const struct word *table, const struct part *p)
{
    for (; table->old; table++)
        if (part_is(p, table->old))
            return table;
    return NULL;
}

static const struct word *
named(const struct word *table, const struct part *p, enum about about, size_t *to)
{
    const struct word *k = find_word(table, p);
    const size_t most = sizeof k->to / sizeof k->to[0];
    for (*to = 0; k && *to < most && k->to[*to].now; ++*to)
        if (k->to[*to].about == ANY || k->to[*to].about == about)
            return k;
    *to = most;
    return k;
}

static unsigned long
number(const struct part *p)
{
    return strtoul(p->value, NULL, 0); /* ends at the comma */
}

/* ------------------------------------------------------------------- a word */

/* "cookie=5/-1": -1 is a mask of all bits. */
static void
put_cookie(struct job *j, const struct part *p, const char *now)
{
    const char *slash = memchr(p->value, '/', (size_t)p->value_len);
    int n = slash ? (int)(slash - p->value) : p->value_len, mask = p->value_len - n - 1;
    of_printf(&j->w, "%s%.*s", now, n, p->value);
    if (slash && mask == 2 && !strncmp(slash + 1, "-1", 2))
        of_printf(&j->w, ",cookie_mask=0xffffffffffffffff");
    else if (slash)
        of_printf(&j->w, ",cookie_mask=%.*s", mask, slash + 1);
}

/* "5->nw_tos", and today's "nw_tos:5". */
static enum status
put_set_field(struct job *j, const struct part *p, const char *now)
{
    size_t to;
    const char *arrow = memmem(p->value, (size_t)p->value_len, "->", 2);
    if (!arrow) {
        of_printf(&j->w, "%s%.*s", now, p->value_len, p->value);
        return DPCTL_OK;
    }
    struct part field = {.name = arrow + 2, .name_len = (int)(p->value + p->value_len - arrow - 2)};
    int n = (int)(arrow - p->value);
    const struct word *k = named(fields, &field, j->about, &to);
    if (k && k->value == SAME && to < sizeof k->to / sizeof k->to[0])
        of_printf(&j->w, "%s%.*s:%.*s", now, (int)strcspn(k->to[to].now, "="), k->to[to].now, n,
                  p->value);
    else
        of_printf(&j->w, "%s%.*s:%.*s", now, field.name_len, field.name, n, p->value);
    return DPCTL_OK;
}

static enum status
put_value(struct job *j, const struct word *k, const struct part *p, const char *now)
{
    const char *colon = memchr(p->value, ':', (size_t)p->value_len);
    switch (k->value) {
    case SAME:
    case NONE: of_printf(&j->w, "%s%.*s", now, p->value_len, p->value); break;
    case VLAN:
        of_printf(&j->w, number(p) == 0xffff ? "%snone" : "%s%.*s", now, p->value_len, p->value);
        break;
    case TOS:
        if (number(p) > 255 || number(p) % 4)
            return say_usage(j->c,
                             "%s must be a multiple of 4 up to 252 (the upper six bits are the "
                             "DSCP), not '%.*s'",
                             k->old, p->value_len, p->value);
        of_printf(&j->w, "%s%lu", now, number(p) / 4);
        break;
    case TAG:
        of_printf(&j->w, "%s%s%.*s", j->tagged ? "" : "push_vlan=0x8100,", now, p->value_len,
                  p->value);
        j->tagged = true;
        break;
    case PORT_QUEUE:
        if (!colon)
            return say_usage(j->c, "%s:%.*s: write enqueue:PORT:QUEUE", k->old, p->value_len,
                             p->value);
        of_printf(&j->w, "queue=%.*s,output=%.*s", (int)(p->value + p->value_len - colon - 1),
                  colon + 1, (int)(colon - p->value), p->value);
        break;
    case FLAG: of_printf(&j->w, "%s", now); break;
    case COOKIE: put_cookie(j, p, now); break;
    case FIELD: return put_set_field(j, p, now);
    }
    return DPCTL_OK;
}

static enum status
translate_word(struct job *j, const struct word *k, const struct part *p)
{
    size_t i;
    bool bare = k->value == NONE || k->value == FLAG;
    if (bare != !p->value_len && !part_is(p, "controller"))
        return say_usage(j->c, bare ? "%s takes no value" : "%s needs a value", k->old);
    named(k, p, j->about, &i);
    if (i == sizeof k->to / sizeof k->to[0])
        return say_usage(j->c, "%s needs the protocol before it, such as tcp,%s", k->old, k->old);
    enum status st = put_value(j, k, p, k->to[i].now);
    of_printf(&j->w, ",");
    return st;
}

/* ------------------------------------------------------------------- fields */

static const struct {
    unsigned proto;
    enum about about;
    const char *name, *six;
} protocols[] = {{1, ICMP, "icmp", "icmp"},
                 {6, TCP, "tcp", "tcp6"},
                 {17, UDP, "udp", "udp6"},
                 {132, SCTP, "sctp", "sctp6"},
                 {58, ICMP6, "icmp6", "icmp6"}};

/* A wildcard matches all: the field is left out. */
static bool
is_wildcard(const struct part *p)
{
    return (p->value_len == 1 && *p->value == '*') ||
           (p->value_len == 3 && !strncasecmp(p->value, "any", 3) && !strncmp(p->name, "nw_", 3));
}

static void
learn_protocol(struct job *j, const struct part *p)
{
    bool type = part_is(p, "dl_type") || part_is(p, "eth_type");
    if (part_is(p, "arp") || (type && number(p) == 0x806))
        j->about = ARP;
    bool proto = (part_is(p, "nw_proto") || part_is(p, "ip_proto")) && j->about != ARP;
    for (size_t i = 0; i < sizeof protocols / sizeof protocols[0]; i++)
        if (part_is(p, protocols[i].name) || part_is(p, protocols[i].six) ||
            (proto && number(p) == protocols[i].proto))
            j->about = protocols[i].about;
    if (part_is(p, "dl_vlan") || part_is(p, "vlan_vid"))
        j->tagged = !is_wildcard(p) && number(p) != 0xffff && strncasecmp(p->value, "none", 4);
}

static enum status
unknown_of10_field(struct job *j, const struct part *p)
{
    char text[OF_NEAR_TEXT];
    struct of_near near = of_near(p->name, (size_t)p->name_len);
    for (const struct word *k = fields; k->old; k++)
        of_near_try(&near, k->old);
    for (int i = 0; i < OXM_N; i++)
        of_near_try(&near, oxm_rows[i].name);
    for (int i = 0; i < of_row_flow_mod.n_fields; i++)
        of_near_try(&near, of_row_flow_mod.fields[i].name);
    return say_usage(j->c, "unknown field %.*s%s", p->name_len, p->name,
                     of_near_text(&near, text, sizeof text));
}

static enum status
put_field(struct job *j, const struct part *p)
{
    const struct word *k = find_word(fields, p);
    size_t n = (size_t)p->name_len;
    if (!n || is_wildcard(p))
        return DPCTL_OK;
    if (k && k->value == FLAG && j->flags) { /* beside those before it */
        while (j->w.len && j->w.buf[j->w.len - 1] == ',')
            j->w.len--;
        of_printf(&j->w, "|%s,", k->old);
        return DPCTL_OK;
    }
    if (k) {
        j->flags |= k->value == FLAG;
        return translate_word(j, k, p);
    }
    if (!of_is_match_field(p->name, n) && !of_field_by_name(&of_row_flow_mod, p->name, n))
        return unknown_of10_field(j, p);
    if (!p->value_len)
        return say_usage(j->c, "%.*s needs a value", p->name_len, p->name);
    of_printf(&j->w, "%.*s=%.*s,", p->name_len, p->name, p->value_len, p->value);
    return DPCTL_OK;
}

static enum status
put_fields(struct job *j, const char *text, size_t len)
{
    const char *end = text + len;
    enum status st = DPCTL_OK;
    /* First the words that tell the protocol; flags last, because they are joined. */
    for (int turn = 0; turn < 3; turn++) {
        for (const char *p = text; p < end && !st; p++) {
            size_t n = strcspn(p, ",");
            n = p + n > end ? (size_t)(end - p) : n;
            struct part part = part_of(p, n, "=");
            const struct word *k = find_word(fields, &part);
            bool flag = k && k->value == FLAG;
            p += n;
            if (!turn)
                learn_protocol(j, &part);
            else if (flag == (turn == 2))
                st = put_field(j, &part);
        }
    }
    return st;
}

/* ------------------------------------------------------------------ actions */

static enum status
unknown_action(struct job *j, const struct part *p)
{
    char text[OF_NEAR_TEXT];
    const struct of_list_row *lists[] = {&of_list_actions, &of_list_instructions};
    struct of_near near = of_near(p->name, (size_t)p->name_len);
    for (const struct word *k = actions; k->old; k++)
        of_near_try(&near, k->old);
    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++)
        for (size_t i = 0; i < lists[l]->n_tags; i++)
            of_near_try(&near, lists[l]->tags[i].name);
    return say_usage(j->c, "unknown action %.*s%s", p->name_len, p->name,
                     of_near_text(&near, text, sizeof text));
}

static enum status put_actions(struct job *j, const char *text, size_t len);

/* "write_actions(output:2)" */
static enum status
put_nested(struct job *j, const char *text, size_t n)
{
    size_t name = strcspn(text, "(");
    struct of_wr outer = j->w;
    j->w = of_wr_grow(1 << 20);
    enum status st = put_actions(j, text + name + 1, n - name - 2);
    while (j->w.len && j->w.buf[j->w.len - 1] == ',')
        j->w.len--;
    of_printf(&j->instructions, "%.*s:%.*s ", (int)name, text, (int)j->w.len,
              j->w.len ? (const char *)j->w.buf : "");
    j->instructions.overflow |= j->w.overflow;
    of_wr_free(&j->w);
    j->w = outer;
    return st;
}

static enum status
put_action(struct job *j, const char *text, size_t n)
{
    struct part part = part_of(text, n, ":=");
    const struct word *k = find_word(actions, &part);
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)n, text);
    word[strcspn(word, "(")] = '\0';
    bool nested = n && text[n - 1] == ')' && memchr(text, '(', n);
    if (nested && of_is_instruction(word))
        return put_nested(j, text, n);
    if (k && part.name[part.name_len] != '=')
        return translate_word(j, k, &part);
    if (of_is_instruction(word))
        of_printf(&j->instructions, "%.*s ", (int)n, text);
    else if (n && strspn(text, "0123456789") >= n)
        of_printf(&j->w, "output=%.*s,", (int)n, text);
    else if (n && !of_is_action(part.name, (size_t)part.name_len))
        return unknown_action(j, &part);
    else if (n)
        of_printf(&j->w, "%.*s,", (int)n, text);
    return DPCTL_OK;
}

/* The length of the first action: a comma between brackets does not end it. */
static size_t
action_len(const char *p, size_t left)
{
    size_t n = 0;
    for (int open = 0; n < left && (open || p[n] != ','); n++)
        open += p[n] == '(' ? 1 : p[n] == ')' && open ? -1 : 0;
    return n;
}

static enum status
put_actions(struct job *j, const char *text, size_t len)
{
    enum status st = DPCTL_OK;
    for (size_t at = 0, n; at < len && !st; at += n + 1) {
        n = action_len(text + at, len - at);
        st = put_action(j, text + at, n);
    }
    return st;
}

/* ------------------------------------------------------------------ the flow */

/* The text written so far, without its last comma. */
static char *
written(struct job *j)
{
    size_t n = j->w.len;
    while (n && j->w.buf[n - 1] == ',')
        n--;
    const char *from = n ? (const char *)j->w.buf : ""; /* nothing written: no buffer */
    char *text = j->w.overflow ? NULL : words_keep(j->c, from, n);
    j->w.len = 0;
    return text;
}

enum status
of10_translate(struct ctx *c, char *const *words, int n, struct of10_flow *out)
{
    struct job j = {.c = c, .w = of_wr_grow(1 << 20), .instructions = of_wr_grow(1 << 20)};
    const char *text = words_join(c, words, n, ','), *at = text;
    while (at && (at = strstr(at, "action")) && at != text && at[-1] != ',')
        at++;
    size_t len = at ? (size_t)(at - text) : text ? strlen(text) : 0;
    enum status st = put_fields(&j, text ? text : "", len);
    out->fields = written(&j);
    out->actions = out->instructions = NULL;
    if (!st && at) {
        at += strcspn(at, "=");
        at += *at == '=';
        st = put_actions(&j, at, strlen(at));
        out->actions = written(&j);
        of_wr8(&j.instructions, 0);
        out->instructions =
            j.instructions.overflow
                ? NULL
                : words_keep(c, (const char *)j.instructions.buf, j.instructions.len);
    }
    bool full = !text || !out->fields || (at && !st && (!out->actions || !out->instructions));
    of_wr_free(&j.w);
    of_wr_free(&j.instructions);
    return st ? st : full ? say_memory(c) : DPCTL_OK;
}

static void
print_words(struct of_wr *w, const struct word *k)
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
    of_printf(w,
              "\nA FLOW of OpenFlow 1.0, and what its words become (arp, tcp, udp, sctp, icmp in "
              "this\norder where there are several):\n");
    print_words(w, fields);
    of_printf(w, "\nIts actions, after actions=:\n");
    print_words(w, actions);
}

/* "nw_dst=", "tcp" */
static void
offer_table(struct complete *k, size_t at, const struct word *table, const char *sign)
{
    for (; table->old; table++) {
        char text[64];
        bool bare = table->value == NONE || table->value == FLAG;
        snprintf(text, sizeof text, "%s%s", table->old, bare ? "" : sign);
        complete_offer(k, at, text, table->to[0].now);
    }
}

void
of10_offer_words(struct complete *k)
{
    const char *comma = strrchr(k->word, ','), *list = strstr(k->word, "actions=");
    size_t at = comma ? (size_t)(comma + 1 - k->word) : 0;
    if (!list) {
        complete_key(k, "in_port", "PORT", NULL);
        complete_key(k, "table", "TABLE", NULL);
        offer_table(k, at, fields, "=");
        complete_offer(k, at, "actions=", "what to do with the packets");
        return;
    }
    if (at < (size_t)(list - k->word) + strlen("actions="))
        at = (size_t)(list - k->word) + strlen("actions=");
    const char *colon = strchr(k->word + at, ':');
    if (!colon)
        offer_table(k, at, actions, ":");
    else if (!strncmp(k->word + at, "output:", 7) || !strncmp(k->word + at, "enqueue:", 8))
        complete_ports(k, (size_t)(colon + 1 - k->word));
}
