/* SPDX-License-Identifier: Apache-2.0 */
/* What compiling a program (compile.c) and compiling an action of it (actions.c) share. */
#ifndef FLOW_ACTIONS_INSIDE_H
#define FLOW_ACTIONS_INSIDE_H

#include <flow/actions.h>

#include <oflib/err.h>

/* What the match and the actions so far tell about a packet: the prerequisites of set_field are
 * checked against it.  A number may be KNOWN_NOTHING. */
#define KNOWN_NOTHING UINT32_MAX
struct known {
    uint32_t eth_type, ip_proto, icmpv6_type;
    bool vlan;
    bool other_frame; /* a PBB header was popped: the match says nothing about what was inside */
    uint32_t pushed_vlans;
};

struct compiler {
    const struct compile_env *env;
    struct known known;
    bool
        if_there; /* OFP_ACT_IF_THERE came: what a packet lacks isn't set, pushed tags must be missing */
    bool in_set;      /* compiling write-actions */
    struct of_wr out; /* the program's actions, struct act: has room for all of them */
};

void known_from_match(struct known *k, const struct of_match *m); /* NULL: nothing is known */

int action_compile(struct compiler *c, const struct of_tagged *t);

/* Units of 8 bytes that the compiled action takes. */
unsigned action_units(const struct compile_env *env, const struct of_tagged *t);

#endif
