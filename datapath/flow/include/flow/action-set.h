/* SPDX-License-Identifier: Apache-2.0 */
/* The action set of a packet (5.10): at most one action of a kind, one set_field a field. */
#ifndef FLOW_ACTION_SET_H
#define FLOW_ACTION_SET_H

#include <flow/actions.h>

struct action_set {
    uint32_t present;                     /* bit: there is an action in that `slot` */
    uint64_t fields;                      /* bit: there is a set_field of that OXM in `field` */
    const struct act *slot[ACTION_TYPES]; /* by their place in the order */
    const struct act *field[OXM_N];
};

static inline void
action_set_clear(struct action_set *s)
{
    s->present = 0;
    s->fields = 0;
}

/* Puts a list's actions in.  A later action replaces one of its kind. */
void action_set_write(struct action_set *s, struct act_list l);

/* Writes the actions to `out`, which has room for ACTION_TYPES + OXM_N, in the order in which they
 * are carried out, and returns how many they are.  Where there is a group, the output is left out.
 * */
unsigned action_set_order(const struct action_set *s, const struct act **out);

/* Makes a program's apply list what an action set of these actions carries out: a bucket's. */
void action_set_sort(struct program *p);

#endif
