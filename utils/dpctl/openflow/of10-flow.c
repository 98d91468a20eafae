/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a flow in OpenFlow 1.0's words, and makes its actions today's, by a table. */
#include "of10.h"

#include <core/flow-words.h>
#include <core/say.h>
#include <core/words.h>

#include <oflib/absent.h>
#include <oflib/near.h>
#include <oflib/openflow.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct flow_word actions[] = {
    {"output", SAME, {{ANY_PROTOCOL, "output="}}},
    {"enqueue", PORT_QUEUE, {{ANY_PROTOCOL, "queue=,output="}}},
    {"normal", NONE, {{ANY_PROTOCOL, "output=normal"}}},
    {"flood", NONE, {{ANY_PROTOCOL, "output=flood"}}},
    {"all", NONE, {{ANY_PROTOCOL, "output=all"}}},
    {"local", NONE, {{ANY_PROTOCOL, "output=local"}}},
    {"in_port", NONE, {{ANY_PROTOCOL, "output=in_port"}}},
    {"controller", SAME, {{ANY_PROTOCOL, "output=controller:"}}},
    {"drop", NONE, {{ANY_PROTOCOL, ""}}},
    {"set_field", FIELD, {{ANY_PROTOCOL, "set_field="}}},
    {"mod_vlan_vid", TAG, {{ANY_PROTOCOL, "set_field=vlan_vid:"}}},
    {"mod_vlan_pcp", TAG, {{ANY_PROTOCOL, "set_field=vlan_pcp:"}}},
    {"strip_vlan", NONE, {{ANY_PROTOCOL, "pop_vlan"}}},
    {"mod_dl_src", SAME, {{ANY_PROTOCOL, "set_field=eth_src:"}}},
    {"mod_dl_dst", SAME, {{ANY_PROTOCOL, "set_field=eth_dst:"}}},
    {"mod_nw_src", SAME, {{ANY_PROTOCOL, "set_field=ipv4_src:"}}},
    {"mod_nw_dst", SAME, {{ANY_PROTOCOL, "set_field=ipv4_dst:"}}},
    {"mod_nw_tos", TOS, {{ANY_PROTOCOL, "set_field=ip_dscp:"}}},
    {"mod_nw_ecn", SAME, {{ANY_PROTOCOL, "set_field=ip_ecn:"}}},
    {"mod_nw_ttl", SAME, {{ANY_PROTOCOL, "nw_ttl="}}},
    {"set_vlan_vid", TAG, {{ANY_PROTOCOL, "set_field=vlan_vid:"}}},
    {"set_vlan_pcp", TAG, {{ANY_PROTOCOL, "set_field=vlan_pcp:"}}},
    {"set_mpls_label", SAME, {{ANY_PROTOCOL, "set_field=mpls_label:"}}},
    {"set_mpls_tc", SAME, {{ANY_PROTOCOL, "set_field=mpls_tc:"}}},
    {"set_tunnel", SAME, {{ANY_PROTOCOL, "set_field=tunnel_id:"}}},
    {"set_tunnel64", SAME, {{ANY_PROTOCOL, "set_field=tunnel_id:"}}},
    {"mod_tp_src",
     SAME,
     {{TCP, "set_field=tcp_src:"}, {UDP, "set_field=udp_src:"}, {SCTP, "set_field=sctp_src:"}}},
    {"mod_tp_dst",
     SAME,
     {{TCP, "set_field=tcp_dst:"}, {UDP, "set_field=udp_dst:"}, {SCTP, "set_field=sctp_dst:"}}},
    {NULL, SAME, {{ANY_PROTOCOL, NULL}}},
};

struct job {
    struct ctx *c;
    struct flow_about about; /* its tag, too: the actions have pushed one */
    struct of_wr w;
    struct of_wr instructions; /* each followed by a blank */
};

/* ------------------------------------------------------------------- a word */

/* ovs-ofctl writes a VID as OpenFlow does, with OFPVID_PRESENT, and in decimal: 4101 is VLAN 5. */
static void
put_value(struct job *j, const struct flow_part *field, const char *value, int n)
{
    char *end;
    unsigned long vid = strtoul(value, &end, 10);
    if (field->name_len == 8 && !memcmp(field->name, "vlan_vid", 8) && end == value + n &&
        vid & OFPVID_PRESENT)
        of_printf(&j->w, "0x%lx", vid);
    else
        of_printf(&j->w, "%.*s", n, value);
}

/* "5->nw_tos", and today's "nw_tos:5". */
static void
put_set_field(struct job *j, const struct flow_part *p, const char *now)
{
    const char *arrow = memmem(p->value, (size_t)p->value_len, "->", 2);
    if (!arrow) {
        of_printf(&j->w, "%s%.*s", now, p->value_len, p->value);
        return;
    }
    struct flow_part field = {.name = arrow + 2,
                              .name_len = (int)(p->value + p->value_len - arrow - 2)};
    const struct flow_word *k = flow_word_find(flow_words, &field);
    const char *name = k && k->value == SAME ? flow_word_now(k, j->about.protocol) : NULL;
    of_printf(&j->w, "%s%.*s:", now, name ? (int)strcspn(name, "=") : field.name_len,
              name ? name : field.name);
    put_value(j, &field, p->value, (int)(arrow - p->value));
}

static enum status
put_word(struct job *j, const struct flow_word *k, const struct flow_part *p)
{
    const char *colon = memchr(p->value, ':', (size_t)p->value_len);
    enum status st = DPCTL_OK;
    if (k->value == FIELD && p->value_len) {
        put_set_field(j, p, k->to[0].now);
    } else if (k->value == PORT_QUEUE) {
        if (!colon)
            return say_usage(j->c, "%s:%.*s: write enqueue:PORT:QUEUE", k->old, p->value_len,
                             p->value);
        of_printf(&j->w, "queue=%.*s,output=%.*s", (int)(p->value + p->value_len - colon - 1),
                  colon + 1, (int)(colon - p->value), p->value);
    } else {
        if (k->value == TAG && !j->about.tagged) {
            of_printf(&j->w, "push_vlan=0x8100,");
            j->about.tagged = true;
        }
        st = flow_word_put(j->c, &j->w, k, p, j->about.protocol);
    }
    of_printf(&j->w, ",");
    return st;
}

/* ------------------------------------------------------------------ actions */

static enum status
unknown_action(struct job *j, const struct flow_part *p)
{
    char text[OF_NEAR_TEXT], absent[OF_ABSENT_TEXT];
    if (of_absent(p->name, (size_t)p->name_len, absent, sizeof absent))
        return say_usage(j->c, "%s", absent);
    const struct of_list_row *lists[] = {&of_list_actions, &of_list_instructions};
    struct of_near near = of_near(p->name, (size_t)p->name_len);
    for (const struct flow_word *k = actions; k->old; k++)
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
    struct flow_part part = flow_part(text, n, ":=");
    const struct flow_word *k = flow_word_find(actions, &part);
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)n, text);
    word[strcspn(word, "(")] = '\0';
    bool nested = n && text[n - 1] == ')' && memchr(text, '(', n);
    if (nested && of_is_instruction(word))
        return put_nested(j, text, n);
    if (k && part.name[part.name_len] != '=')
        return put_word(j, k, &part);
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
    const char *text = words_join(c, words, n, ','), *at = text;
    while (at && (at = strstr(at, "action")) && at != text && at[-1] != ',')
        at++;
    size_t len = at ? (size_t)(at - text) : text ? strlen(text) : 0;
    struct job j = {.c = c,
                    .about = flow_about(text ? text : "", len),
                    .w = of_wr_grow(1 << 20),
                    .instructions = of_wr_grow(1 << 20)};
    enum status st = DPCTL_OK;
    out->fields = words_keep(c, text ? text : "", len);
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

enum status
of10_actions(struct ctx *c, const char *text, size_t n, char **out)
{
    struct job j = {.c = c, .w = of_wr_grow(1 << 20), .instructions = of_wr_grow(1 << 20)};
    enum status st = put_actions(&j, text, n);
    *out = written(&j);
    if (!st && !*out)
        st = say_memory(c);
    if (!st && j.instructions.len)
        st = say_usage(c, "%.*s is an instruction, and can't stand among actions",
                       (int)j.instructions.len - 1, (const char *)j.instructions.buf);
    of_wr_free(&j.w);
    of_wr_free(&j.instructions);
    return st;
}

static void
print_words(struct of_wr *w, const struct flow_word *k)
{
    for (; k->old; k++) {
        of_printf(w, "  %-16s", k->old);
        for (size_t i = 0; i < FLOW_WORD_MEANINGS && k->to[i].now; i++)
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
    print_words(w, flow_words);
    of_printf(w, "\nIts actions, after actions=:\n");
    print_words(w, actions);
}

/* "nw_dst=", "tcp" */
static void
offer_table(struct complete *k, size_t at, const struct flow_word *table, const char *sign)
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
        offer_table(k, at, flow_words, "=");
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
