/* SPDX-License-Identifier: Apache-2.0 */
/* Flows as they were written for OpenFlow 1.0's dpctl (docs/mininet.md has the whole table):
 *
 *   priority=5,tcp,nw_dst=10.0.0.1,tp_dst=80,actions=mod_nw_tos:32,output:2
 */
#ifndef DPCTL_OF10_H
#define DPCTL_OF10_H

#include <core/complete.h>

/* The flow in 1.3's words, in the arena. */
struct of10_flow {
    char *fields;       /* "eth_type=0x800,ipv4_dst=10.0.0.1,prio=5"; the match and a flow-mod's */
    char *actions;      /* "output=2"; NULL: none were given */
    char *instructions; /* the other ones: "meter:1 goto:2 ", as `actions` */
};

/* Words that are not OpenFlow 1.0's stay as they are, so today's may stand among them.  Reports
 * what is wrong. */
enum status of10_translate(struct ctx *c, char *const *words, int n, struct of10_flow *out);

/* The tables of words, for the commands' help. */
void of10_print_words(struct of_wr *w);

/* The same, for completion: a flow's fields, behind actions= its actions. */
void of10_offer_words(struct complete *k);

#endif
