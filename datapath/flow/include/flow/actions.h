/* SPDX-License-Identifier: Apache-2.0 */
/* The actions (7.2.5), one row each.  actions.c has the rows; an action's number, its name in text
 * and its structure are its row in <oflib/openflow.h>.
 */
#ifndef FLOW_ACTIONS_H
#define FLOW_ACTIONS_H

#include <flow/flow.h>
#include <packet/packet.h>

#include <oflib/messages.h>

/* Action types are below this (but for the experimenters'), so a set of them is a uint32_t. */
#define ACTION_TYPES 32

struct compiler;

/* A key on its way through the tables, without its packet. */
struct rekeyed {
    struct flow_key key;
    struct flow_key known; /* bits that hold whatever the packet's were */
    struct flow_key *wc;   /* gets the bits, beside `known`, that an action's effect depends on */
};

/* A row's defaults are the safe choice: an action without `key` leaves the key unknown. */
struct action_row {
    /* Checks the action and adds it to the program. */
    int (*compile)(struct compiler *c, const struct of_tagged *t);

    /* Edits the packet: 0, or why it must be dropped (EDIT_DROP).  NULL: the action forwards, which
     * is the pipeline's part. */
    int (*edit)(struct packet *p, const struct act *a);

    enum key_effect key;
    enum key_effect (*key_of)(
        const struct act *a); /* where `key` depends on what the action says */
    /* Does to the key what `edit` does to the packet's; for KEY_FOLLOWS. */
    void (*rekey)(const struct act *a, struct rekeyed *k);
    uint8_t place; /* in an action set's order (5.10) */
};

extern const struct action_row action_rows[ACTION_TYPES];

/* The action as a message has it: the reverse of compiling. */
union action_body {
    struct of_tagged any;
    struct of_action_output output;
    struct of_action_empty empty;
    struct of_action_ttl ttl;
    struct of_action_push push;
    struct of_action_set_queue set_queue;
    struct of_action_group group;
    struct of_action_set_field set_field;
};
void action_body(const struct act *a, union action_body *out);

/* What a list of actions does to the key. */
enum key_effect actions_key_effect(struct act_list l);

/* What a program does to it, without its meter. */
enum key_effect program_key_effect(const struct program *p);

/* Makes the key what it is after the program, whose effect is not KEY_UNKNOWN. */
void program_rekey(const struct program *p, struct rekeyed *k);

#endif
