/* SPDX-License-Identifier: Apache-2.0 */
/* Which asynchronous messages a slice may see: those about its ports, tables and queues. */
#include <slice/slice.h>

static bool
sees_in_port(const struct slice *s, const struct of_match *match)
{
    const struct of_oxm *f = of_match_find(match, OXM_in_port);
    return f && slice_set_has(&s->ports, (uint32_t)oxm_number(f->row, f->value));
}

/* Of ours.  A changed queue is told by what the request named: its class_id follows the port
 * (docs/reference/qos-extension.md); other causes concern the port as a whole. */
static bool
sees_experimenter(const struct slice *s, const struct of_experimenter *m)
{
    const uint8_t *p = m->data.p;
    size_t n = m->data.n;
    if (m->experimenter != OFP_QOS_EXPERIMENTER)
        return false;
    switch (m->exp_type) {
    case OFP_EXP_QOS_CHANGED: /* cause, pad, port, objects, serial, then the request's content */
        return n >= 16 && slice_has_port(s, of_get32(p + 4)) &&
               (n < 32 || slice_set_has(&s->queues, of_get32(p + 28)));
    case OFP_EXP_QOS_PROMISE: return n >= 8 && slice_has_queue(s, of_get32(p), of_get32(p + 4));
    default: return false; /* a new message stays hidden until somebody decides */
    }
}

static bool
sees(const struct slice *s, const struct of_msg *m)
{
    const struct of_flow_removed *f = m->body;
    switch (m->type) {
    case OFPT_PACKET_IN: return sees_in_port(s, &((const struct of_packet_in *)m->body)->match);
    case OFPT_PORT_STATUS:
        return slice_has_port(s, ((const struct of_port_status *)m->body)->port_no);
    case OFPT_FLOW_REMOVED: return slice_has_flow(s, f->table_id, &f->match);
    case OFPT_EXPERIMENTER: return sees_experimenter(s, m->body);
    default: return false;
    }
}

bool
slice_sees(const struct slice *s, struct of_bytes message, struct of_arena *arena)
{
    struct of_msg m;
    if (!s)
        return true;
    bool good = !of_decode(message, arena, &m) && sees(s, &m);
    of_arena_reset(arena);
    return good;
}
