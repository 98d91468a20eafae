/* SPDX-License-Identifier: Apache-2.0 */
/* The words of OpenFlow 1.0's dpctl and of ovs-ofctl for a flow's fields: rows that say what each
 * becomes today.  Every command that reads a match understands them (words_fields()). */
#ifndef DPCTL_CORE_FLOW_WORDS_H
#define DPCTL_CORE_FLOW_WORDS_H

#include <core/context.h>

/* A flow's protocol, as far as its words tell: the meaning of some words depends on it. */
enum flow_protocol { ANY_PROTOCOL, ARP, TCP, UDP, SCTP, ICMP, ICMP6 };

enum flow_value {
    SAME,
    NONE, /* there is none */
    VLAN, /* 65535: without a tag */
    TOS,  /* a byte whose upper six bits count */
    TAG,  /* an action: first pushes a tag, unless the flow is for packets that have one */
    PORT_QUEUE,
    FLAG,   /* of the flow-mod */
    COOKIE, /* with a mask or without */
    FIELD,  /* VALUE->FIELD */
};

struct flow_word {
    const char *old;
    enum flow_value value;
    struct {
        enum flow_protocol about;
        const char *now;
    } to[5];
};
#define FLOW_WORD_MEANINGS 5

/* Fields; ends with a row without a name. */
extern const struct flow_word flow_words[];

/* One word: its name, and its value where there is one.  Not terminated. */
struct flow_part {
    const char *name, *value;
    int name_len, value_len;
};
struct flow_part flow_part(const char *p, size_t n, const char *separators);
bool flow_part_is(const struct flow_part *p, const char *name);

const struct flow_word *flow_word_find(const struct flow_word *table, const struct flow_part *p);

/* What the word becomes in a flow of that protocol; NULL: its protocol must be known. */
const char *flow_word_now(const struct flow_word *k, enum flow_protocol about);

/* Writes what the word with its value becomes: of SAME, NONE, VLAN, TOS, FLAG and COOKIE. */
enum status flow_word_put(struct ctx *c, struct of_wr *w, const struct flow_word *k,
                          const struct flow_part *p, enum flow_protocol about);

/* What a flow's words tell: its protocol, and whether it is for packets that have a VLAN tag. */
struct flow_about {
    enum flow_protocol protocol;
    bool tagged;
};
struct flow_about flow_about(const char *text, size_t n);

/* A flow's words, commas between them, as today's words; those that are none of the table stay as
 * they are.  `row`: the structure whose fields may stand among them. */
enum status flow_words_translate(struct ctx *c, const struct of_struct_row *row, const char *text,
                                 struct of_wr *out);

#endif
