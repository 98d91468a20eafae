/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *
fixture_through_codec(struct fixture *fx, uint8_t type, const void *body)
{
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    struct of_msg m;
    if (of_encode_body(&w, type, 1, body))
        abort();
    uint8_t *raw = of_arena_alloc(&fx->arena, w.len);
    memcpy(raw, w.buf, w.len);
    int err = of_decode((struct of_bytes){raw, w.len}, &fx->arena, &m);
    of_wr_free(&w);
    if (!err)
        return m.body;
    fprintf(stderr, "a message of type %u is not legal: %x\n", type, (unsigned)err);
    abort();
}

static uint16_t
one_or_two(struct random *c)
{
    return (uint16_t)random_below(c, 3); /* 0: none */
}

static void
change_vlans(struct fixture *fx, struct random *c)
{
    uint32_t i = random_below(c, 5);
    struct oracle_port *p = &fx->world.port[i];
    p->limited = once_in(c, 2);
    p->untagged = one_or_two(c);
    p->tagged[0] = one_or_two(c);
    p->tagged[1] = one_or_two(c);
    fx->vlans[i] = (struct vlans){.untagged = p->untagged};
    for (int k = 0; k < 2; k++)
        if (p->tagged[k])
            fx->vlans[i].tagged[0] |= UINT64_C(1) << p->tagged[k];
    fx->dp->vlans[p->no] = p->limited ? &fx->vlans[i] : NULL;
    normal_forget(fx->dp->normal, (uint16_t)p->no);
    oracle_forget_port(&fx->oracle, p->no);
    fx->world.group_fwd = fx->dp->group_fwd =
        once_in(c, 2) ? UINT16_MAX : 1u << random_below(c, 16);
}

bool
fixture_change(struct fixture *fx, struct random_env *e, char *why)
{
    struct random *c = e->c;
    struct oracle_world *w = &fx->world;
    uint32_t what = random_below(c, 24);
    if (what == 0 && once_in(c, 3)) {
        change_vlans(fx, c);
    } else if (what == 0) {
        struct oracle_port *p = &w->port[random_below(c, 6)];
        p->link_down = once_in(c, 4);
        p->config = (once_in(c, 4) ? OFPPC_PORT_DOWN : 0) | (once_in(c, 4) ? OFPPC_NO_FWD : 0) |
                    (once_in(c, 3) ? OFPPC_NO_PACKET_IN : 0) | (once_in(c, 3) ? OFPPC_NO_FLOOD : 0);
    } else if (what == 1) {
        w->frag = fx->dp->frag = once_in(c, 3) ? OFPC_FRAG_DROP : OFPC_FRAG_NORMAL;
    } else if (what == 2 && once_in(c, 2)) {
        w->alone = (int)random_below(c, 3);
        fx->dp->standalone = fx->worker.standalone = (uint8_t)w->alone;
    } else if (what == 2) {
        fixture_pass_time(fx, 1 + random_below(c, 3));
    } else if (what < 8) {
        return fixture_group_mod(fx, fixture_through_codec(fx, OFPT_GROUP_MOD, random_group_mod(e)),
                                 why);
    } else {
        return fixture_flow_mod(fx, fixture_through_codec(fx, OFPT_FLOW_MOD, random_flow_mod(e)),
                                why);
    }
    return true;
}
