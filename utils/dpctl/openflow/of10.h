/* SPDX-License-Identifier: Apache-2.0 */
/* Flows as they were written for OpenFlow 1.0's dpctl (docs/how-to/mininet.md has the whole table):
 *
 *   priority=5,tcp,nw_dst=10.0.0.1,tp_dst=80,actions=mod_nw_tos:32,output:2
 */
#ifndef DPCTL_OF10_H
#define DPCTL_OF10_H

#include <core/complete.h>

/* The flow, in the arena: its actions in 1.3's words. */
struct of10_flow {
    char *fields;       /* as they were typed: words_fields() understands them */
    char *actions;      /* "output=2"; NULL: none were given */
    char *instructions; /* the other ones: "meter:1 goto:2 ", as `actions` */
};

/* Words that are not OpenFlow 1.0's stay as they are, so today's may stand among them.  Reports
 * what is wrong. */
enum status of10_translate(struct ctx *c, char *const *words, int n, struct of10_flow *out);

/* Actions alone, such as a bucket's, in 1.3's words. */
enum status of10_actions(struct ctx *c, const char *text, size_t n, char **out);

/* The words of a group-mod that has ovs-ofctl's: group_id=1,type=select,bucket=weight:2,output:1.
 * The first of them has the group's fields, the others are the buckets'. */
enum status of10_group(struct ctx *c, char *const *words, int n, char ***out, int *n_out);

/* The words of a meter-mod, with those of ovs-ofctl: meter=1,kbps,band=type=drop,rate=1000; and with
 * rates that have a unit. */
enum status of10_meter(struct ctx *c, char *const *words, int n, char ***out, int *n_out);

/* The tables of words, for the commands' help. */
void of10_print_words(struct of_wr *w);

/* The same, for completion: a flow's fields, behind actions= its actions. */
void of10_offer_words(struct complete *k);

#endif
