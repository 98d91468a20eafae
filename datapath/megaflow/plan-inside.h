/* SPDX-License-Identifier: Apache-2.0 */
/* What the plan's files share: plan.c records a dry run of the pipeline, plan-edit.c translates what it does to
 * the packet. */
#ifndef MEGAFLOW_PLAN_INSIDE_H
#define MEGAFLOW_PLAN_INSIDE_H

#include <dataplane/pipeline-inside.h>
#include <megaflow/plan.h>

/* What a push has hidden. */
struct hidden_tag {
    uint16_t vid[3]; /* of key, known, lost */
    uint8_t pcp[3];
    uint16_t type;
};

/* The packet as actions have made it; a group's bucket has its own. */
struct planned {
    struct flow_key key;
    struct flow_key known; /* bits that hold whatever the packet's were */
    struct flow_key lost;  /* bits that a pop has uncovered and the packet's key doesn't tell */
    struct hidden_tag hidden[OFFLOAD_OPS];
    uint8_t n_pushed;
    uint16_t tag_type; /* of the outermost tag, if it was pushed */
    int16_t added;     /* bytes */
    int16_t ttl;       /* -1: as it came in, less `decrements` */
    uint8_t decrements;
    bool has_itag; /* an I-TAG was pushed */
    bool spoiled;  /* the ops so far have changed the packet */
};

/* Before a copy was made: `from` ops. */
struct plan_fork {
    struct planned now;
    uint32_t from;
};

struct plan_way {
    struct dry_run run; /* first */
    const struct offload_meters *meters;
    struct offload_plan *out;
    struct planned now;
    struct flow_key bits; /* that the way depends on */
    uint32_t kept;        /* ops up to the last output, or the meter: later ones edit for nobody */
    uint32_t group;       /* the last one that was met */
    bool retagged;        /* NORMAL floods with another tag */
    bool goes;            /* it comes to a port that is up */
    bool inside;    /* the port looks into PPPoE and MPLS: the key doesn't tell what is in front */
    bool has_queue; /* for what enters by its port: the first one */
    uint32_t queue;
    enum offload_reason why;
    uint8_t n_forks;
    struct plan_fork before[GROUP_MAX_DEPTH + 1];
};

/* The packets stay in user space; returns false. */
static inline bool
plan_refuse(struct plan_way *w, enum offload_reason why)
{
    w->why = why;
    return false;
}

/* Makes the way depend on these bits of the packet as it is now.  False: the key doesn't tell
 * them. */
bool plan_look(struct plan_way *w, const struct flow_key *bits);
bool plan_look_vlan(struct plan_way *w, uint16_t bits); /* of vlan_vid */

bool plan_op(struct plan_way *w, uint32_t kind, uint32_t arg, uint64_t value);

/* An action that edits the packet.  False: it stays in user space. */
bool plan_edit(struct plan_way *w, const struct act *a);

#endif
