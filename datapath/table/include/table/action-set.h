/* SPDX-License-Identifier: Apache-2.0 */
/* The action set of a packet (5.10): at most one action of a kind, one set_field a field. */
#ifndef TABLE_ACTION_SET_H
#define TABLE_ACTION_SET_H

#include <table/flow.h>

#define ACTION_OPS 28

struct action_set {
    uint32_t present; /* bit: OFPAT_ of an action in `slot` */
    uint64_t fields;  /* bit: OXM of an action in `field` */
    const struct act *slot[ACTION_OPS];
    const struct act *field[OXM_N];
};

static inline void
action_set_clear(struct action_set *s)
{
    s->present = 0;
    s->fields = 0;
}

/* Puts a list's actions in; one of a kind that is there already takes its place. */
void action_set_write(struct action_set *s, struct act_list l);

/* The actions in the order in which they are carried out, into `out` (which must have room for
 * ACTION_OPS + OXM_N).  An output is left out where there is a group. */
unsigned action_set_order(const struct action_set *s, const struct act **out);

/* Sorts a program's apply list as an action set would be carried out: a bucket's actions. */
void action_set_sort(struct program *p);

#endif
