/* SPDX-License-Identifier: Apache-2.0 */
/* Whether flows, groups and actions lie within a slice.  What a list here doesn't know is beyond
 * every slice, so that somebody has to decide about a new action. */
#include <slice/slice.h>

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 3, 4))) static int
refuse(char why[SLICE_WHY], int err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, SLICE_WHY, fmt, ap);
    va_end(ap);
    return err;
}

/* ------------------------------------------------------------------ matches */

/* Whether all packets that it matches come in by one port of the slice's. */
static bool
has_own_in_port(const struct slice *s, const struct of_match *match)
{
    const struct of_oxm *f = of_match_find(match, OXM_in_port);
    for (unsigned i = 0; f && f->has_mask && i < f->row->bytes; i++)
        if (f->mask[i] != 0xff)
            return false;
    return f && slice_set_has(&s->ports, (uint32_t)oxm_number(f->row, f->value));
}

bool
slice_has_flow(const struct slice *s, uint8_t table_id, const struct of_match *match)
{
    return !s || slice_set_has(&s->tables, table_id) ||
           (slice_set_has(&s->shared, table_id) && has_own_in_port(s, match));
}

/* ------------------------------------------------------------------ actions */

static int
check_output(const struct slice *s, uint32_t port, bool in_port_own, bool packet_out,
             char why[SLICE_WHY])
{
    switch (port) {
    case OFPP_CONTROLLER: return 0; /* who gets the packet-in is decided there */
    case OFPP_IN_PORT:
        return in_port_own ? 0
                           : refuse(why, OF_BAD_ACTION(EPERM),
                                    "output to in_port needs a match of one of its ports");
    case OFPP_TABLE:
        return packet_out && in_port_own
                   ? 0
                   : refuse(why, OF_BAD_ACTION(EPERM), "output to the tables needs its own port");
    case OFPP_NORMAL:
    case OFPP_FLOOD:
    case OFPP_ALL:
        return refuse(why, OF_BAD_ACTION(EPERM), "output to all ports: name its own instead");
    default:
        return slice_set_has(&s->ports, port)
                   ? 0
                   : refuse(why, OF_BAD_ACTION(EPERM), "output to port %u", (unsigned)port);
    }
}

static int
check_action(const struct slice *s, const struct of_tagged *a, bool in_port_own, bool packet_out,
             char why[SLICE_WHY])
{
    uint32_t id;
    switch (a->row->type) {
    case OFPAT_OUTPUT:
        return check_output(s, ((const struct of_action_output *)a)->port, in_port_own, packet_out,
                            why);
    case OFPAT_SET_QUEUE:
        id = ((const struct of_action_set_queue *)a)->queue_id;
        return slice_set_has(&s->queues, id)
                   ? 0
                   : refuse(why, OF_BAD_ACTION(EPERM), "queue %u", (unsigned)id);
    case OFPAT_GROUP:
        id = ((const struct of_action_group *)a)->group_id;
        return slice_set_has(&s->groups, id)
                   ? 0
                   : refuse(why, OF_BAD_ACTION(EPERM), "group %u", (unsigned)id);
    case OFPAT_COPY_TTL_OUT:
    case OFPAT_COPY_TTL_IN:
    case OFPAT_SET_MPLS_TTL:
    case OFPAT_DEC_MPLS_TTL:
    case OFPAT_PUSH_VLAN:
    case OFPAT_POP_VLAN:
    case OFPAT_PUSH_MPLS:
    case OFPAT_POP_MPLS:
    case OFPAT_SET_NW_TTL:
    case OFPAT_DEC_NW_TTL:
    case OFPAT_SET_FIELD:
    case OFPAT_PUSH_PBB:
    case OFPAT_POP_PBB: return 0; /* what they change are its own packets */
    case OFPAT_EXPERIMENTER:
        if (of_action_is_if_there((const struct of_action_experimenter *)a))
            return 0; /* others' may be anything */
        break;
    default: break;
    }
    return refuse(why, OF_BAD_ACTION(EPERM), "the action %s is for no slice", a->row->name);
}

int
slice_check_actions(const struct slice *s, const struct of_list *actions, bool in_port_own,
                    bool packet_out, char why[SLICE_WHY])
{
    int err = 0;
    for (uint32_t i = 0; !err && i < actions->n; i++)
        err = check_action(s, OF_AT(actions, i, const struct of_tagged), in_port_own, packet_out,
                           why);
    return err;
}

/* ------------------------------------------------------------------ instructions */

static int
check_instruction(const struct slice *s, const struct of_tagged *i, bool in_port_own,
                  char why[SLICE_WHY])
{
    uint32_t id;
    uint64_t bits;
    switch (i->row->type) {
    case OFPIT_GOTO_TABLE:
        id = ((const struct of_instr_goto_table *)i)->table_id;
        return slice_has_table(s, (uint8_t)id)
                   ? 0
                   : refuse(why, OF_BAD_INSTRUCTION(EPERM), "table %u", (unsigned)id);
    case OFPIT_METER:
        id = ((const struct of_instr_meter *)i)->meter_id;
        return slice_set_has(&s->meters, id)
                   ? 0
                   : refuse(why, OF_BAD_INSTRUCTION(EPERM), "meter %u", (unsigned)id);
    case OFPIT_WRITE_ACTIONS:
    case OFPIT_APPLY_ACTIONS:
        return slice_check_actions(s, &((const struct of_instr_actions *)i)->actions, in_port_own,
                                   false, why);
    case OFPIT_WRITE_METADATA: /* the tables of others may match what it leaves there */
        bits = ((const struct of_instr_write_metadata *)i)->metadata_mask & ~s->metadata;
        return bits ? refuse(why, OF_BAD_INSTRUCTION(EPERM), "metadata bits 0x%llx",
                             (unsigned long long)bits)
                    : 0;
    case OFPIT_CLEAR_ACTIONS: return 0;
    default:
        return refuse(why, OF_BAD_INSTRUCTION(EPERM), "the instruction %s is for no slice",
                      i->row->name);
    }
}

int
slice_check_flow_mod(const struct slice *s, const struct of_flow_mod *q, char why[SLICE_WHY])
{
    bool in_port_own = has_own_in_port(s, &q->match);
    int err = 0;
    if (!slice_has_table(s, q->table_id))
        return q->table_id == OFPTT_ALL
                   ? refuse(why, OF_FLOW_MOD_FAILED(EPERM), "all tables: name its own")
                   : refuse(why, OF_FLOW_MOD_FAILED(EPERM), "table %u", q->table_id);
    if (!slice_has_flow(s, q->table_id, &q->match))
        return refuse(why, OF_FLOW_MOD_FAILED(EPERM),
                      "in table %u, which it shares, a match must have one of its ports as in_port",
                      q->table_id);
    for (uint32_t i = 0; !err && i < q->instructions.n; i++)
        err = check_instruction(s, OF_AT(&q->instructions, i, const struct of_tagged), in_port_own,
                                why);
    return err;
}

/* ------------------------------------------------------------------ groups */

/* The actions of a bucket see packets of all flows that name the group, so no in_port is known. */
static int
check_bucket(const struct slice *s, const struct of_bucket *b, char why[SLICE_WHY])
{
    if (b->watch_port != OFPP_ANY && !slice_set_has(&s->ports, b->watch_port))
        return refuse(why, OF_GROUP_MOD_FAILED(EPERM), "watching port %u", (unsigned)b->watch_port);
    if (b->watch_group != OFPG_ANY && !slice_set_has(&s->groups, b->watch_group))
        return refuse(why, OF_GROUP_MOD_FAILED(EPERM), "watching group %u",
                      (unsigned)b->watch_group);
    return slice_check_actions(s, &b->actions, false, false, why);
}

int
slice_check_group_mod(const struct slice *s, const struct of_group_mod *q, char why[SLICE_WHY])
{
    int err = 0;
    if (!slice_set_has(&s->groups, q->group_id))
        return q->group_id == OFPG_ALL
                   ? refuse(why, OF_GROUP_MOD_FAILED(EPERM), "all groups: name its own")
                   : refuse(why, OF_GROUP_MOD_FAILED(EPERM), "group %u", (unsigned)q->group_id);
    for (uint32_t i = 0; !err && i < q->buckets.n; i++)
        err = check_bucket(s, OF_AT(&q->buckets, i, const struct of_bucket), why);
    return err;
}
