/* SPDX-License-Identifier: Apache-2.0 */
/* Roles (6.3.5, 7.3.9). */
#include "conn-role.h"

#include "conn-async.h"

#include <stdio.h>

#define ALL_REASONS(last) ((2u << (last)) - 1)

/* 7.3.10: by default a slave gets port-status only, and packet-ins for an invalid TTL are off. */
void
conn_state_init(struct conn_state *s)
{
    *s = (struct conn_state){.role = OFPCR_ROLE_EQUAL,
                             .async = {.packet_in_mask0 = 1u << OFPR_NO_MATCH | 1u << OFPR_ACTION,
                                       .port_status_mask0 = ALL_REASONS(OFPPR_MODIFY),
                                       .port_status_mask1 = ALL_REASONS(OFPPR_MODIFY),
                                       .flow_removed_mask0 = ALL_REASONS(OFPRR_GROUP_DELETE)}};
}

static struct conn_roles *
roles_of(struct conn *c)
{
    return c->own.roles ? c->own.roles : &c->ch->roles;
}

bool
conn_generation(struct conn *c, uint64_t *out)
{
    const struct conn_roles *r = roles_of(conn_main(c));
    *out = r->has_generation ? r->generation : UINT64_MAX;
    return r->has_generation;
}

/* Generations are compared by signed distance, so that they may wrap around. */
static int
take_generation(struct conn_roles *r, uint64_t id)
{
    if (r->has_generation && (int64_t)(id - r->generation) < 0)
        return OF_ROLE_REQUEST_FAILED(STALE);
    r->has_generation = true;
    r->generation = id;
    return 0;
}

static const char *
role_name(uint32_t role)
{
    static const char *const names[] = {
        [OFPCR_ROLE_EQUAL] = "equal", [OFPCR_ROLE_MASTER] = "master", [OFPCR_ROLE_SLAVE] = "slave"};
    return names[role];
}

static void
become(struct conn *c, uint32_t role)
{
    struct of_role_changed changed = {.role = role};
    uint8_t buf[OFP_PEER_LEN + 16];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    if (c->state.role == role)
        return;
    log_notice_by(CONN, &c->by, "its role is %s, and was %s", role_name(role),
                  role_name(c->state.role));
    c->state.role = role;
    conn_generation(c, &changed.generation_id);
    snprintf(changed.peer, sizeof changed.peer, "%s", c->peer);
    of_encode_struct(&w, &of_row_role_changed, &changed);
    struct of_experimenter m = {OFP_QOS_EXPERIMENTER, OFP_EXP_ROLE_CHANGED, {w.buf, w.len}};
    channel_async(c->ch, ASYNC_ROLE, 0, OFPT_EXPERIMENTER, &m);
}

int
conn_set_role(struct conn *c, uint32_t role, uint64_t generation_id)
{
    struct channel *ch = c->ch;
    int err = 0;
    c = conn_main(c);
    if (role > OFPCR_ROLE_SLAVE)
        return OF_ROLE_REQUEST_FAILED(BAD_ROLE);
    if (role == OFPCR_ROLE_NOCHANGE)
        return 0;
    if (role != OFPCR_ROLE_EQUAL && !c->door) /* 1.0's request has none */
        err = take_generation(roles_of(c), generation_id);
    if (err)
        return err;
    if (role == OFPCR_ROLE_MASTER)
        for (struct conn *o = ch->conns; o; o = o->next)
            if (o != c && o->state.role == OFPCR_ROLE_MASTER && roles_of(o) == roles_of(c))
                become(o, OFPCR_ROLE_SLAVE);
    become(c, role);
    return 0;
}
