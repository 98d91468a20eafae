/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that change something: flow-mod, group-mod, ... */
#include "commands.h"

#include <errno.h>
#include <stdio.h>

static bool
is_delete(const struct of_flow_mod *fm)
{
    return fm->command == OFPFC_DELETE || fm->command == OFPFC_DELETE_STRICT;
}

/* Is the key (or another name of it) among the words? */
static bool
given(const struct of_struct_row *row, const char *name, char *const *words, int n)
{
    const struct of_field_row *want = of_field_by_name(row, name, strlen(name));
    for (int i = 0; i < n; i++) {
        for (const char *p = words[i]; *p; p += strspn(p, ",")) {
            size_t len = strcspn(p, ",");
            const char *eq = memchr(p, '=', len);
            if (eq && of_field_by_name(row, p, (size_t)(eq - p)) == want)
                return true;
            p += len;
        }
    }
    return false;
}

static enum status
flow_mod(struct ctx *c, char **words, int n)
{
    struct of_flow_mod fm = {.priority = 0x8000,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY};
    int others = 0, err = 0;
    if (!n)
        return bad_args(c, "what is to be done is missing: cmd=add,table=0,...");
    for (int i = 0; i < n && !err; i++) { /* instructions; the other words move to the front */
        if (of_is_instruction(words[i]))
            err = of_parse_instruction(&c->parse, words[i], &fm.instructions);
        else
            words[others++] = words[i];
    }
    if (err)
        return bad_parse(c, err);
    enum status st = parse_args(c, &of_row_flow_mod, words, others, &fm);
    if (st)
        return st;
    if (is_delete(&fm) && !given(&of_row_flow_mod, "table_id", words, others))
        fm.table_id = OFPTT_ALL;
    return modify(c, OFPT_FLOW_MOD, &fm);
}

/* Where no bucket of a select group is given a weight, all have the same. */
static void
weigh_alike(const struct of_list *buckets, char **words, int n)
{
    for (int i = 0; i < n; i++)
        if (strstr(words[i], "weight="))
            return;
    for (uint32_t i = 0; i < buckets->n; i++)
        OF_AT(buckets, i, struct of_bucket)->weight = 1;
}

static enum status
group_mod(struct ctx *c, char **words, int n)
{
    struct of_group_mod gm = {.command = OFPGC_ADD};
    if (!n)
        return bad_args(c, "what is to be done is missing: cmd=add,type=all,group=1");
    enum status st = parse_args(c, &of_row_group_mod, words, 1, &gm);
    if (st)
        return st;
    int err = of_parse_buckets(&c->parse, words + 1, n - 1, &gm.buckets);
    if (!err && gm.type == OFPGT_SELECT)
        weigh_alike(&gm.buckets, words + 1, n - 1);
    return err ? bad_parse(c, err) : modify(c, OFPT_GROUP_MOD, &gm);
}

static enum status
meter_mod(struct ctx *c, char **words, int n)
{
    struct of_meter_mod mm = {.command = OFPMC_ADD, .flags = OFPMF_KBPS};
    if (!n)
        return bad_args(c, "what is to be done is missing: cmd=add,flags=kbps,meter=1");
    enum status st = parse_args(c, &of_row_meter_mod, words, 1, &mm);
    if (st)
        return st;
    bool burst = false;
    for (int i = 1; i < n; i++) {
        int err = of_parse_band(&c->parse, words[i], &mm.bands);
        if (err)
            return bad_parse(c, err);
        burst |= strstr(words[i], "burst") != NULL;
    }
    if (burst) /* means something only with its flag (7.3.4.5) */
        mm.flags |= OFPMF_BURST;
    return modify(c, OFPT_METER_MOD, &mm);
}

static enum status
set_config(struct ctx *c, char **words, int n)
{
    struct of_msg reply;
    enum status st = transact(c, OFPT_GET_CONFIG_REQUEST, NULL, &reply);
    if (st)
        return st;
    if (reply.body_row != &of_row_switch_config)
        return failed(c, "the switch answered with something else");
    struct of_switch_config *config = reply.body;
    st = parse_args(c, &of_row_switch_config, words, n, config);
    return st ? st : modify(c, OFPT_SET_CONFIG, config);
}

static enum status
set_async(struct ctx *c, char **words, int n)
{
    struct of_msg reply;
    enum status st = transact(c, OFPT_GET_ASYNC_REQUEST, NULL, &reply);
    if (st)
        return st;
    if (reply.body_row != &of_row_async)
        return failed(c, "the switch answered with something else");
    struct of_async *async = reply.body;
    st = parse_args(c, &of_row_async, words, n, async);
    return st ? st : modify(c, OFPT_SET_ASYNC, async);
}

/* The port's address must be named (7.3.4.3): it is asked for where it isn't given. */
static enum status
port_mod(struct ctx *c, char **words, int n)
{
    struct of_port_mod pm = {0};
    const struct of_struct_row *row = &of_row_port_mod;
    if (!given(row, "port_no", words, n))
        return bad_args(c, "the port is missing: port=1,conf=port_down,mask=port_down");
    enum status st = parse_args(c, row, words, n, &pm);
    if (!st && !given(row, "hw_addr", words, n)) {
        const struct of_port *port;
        char number[16];
        snprintf(number, sizeof number, "%u", (unsigned)pm.port_no);
        st = find_port(c, number, &port);
        if (!st)
            memcpy(pm.hw_addr, port->hw_addr, sizeof pm.hw_addr);
    }
    if (st)
        return st;
    if (given(row, "config", words, n) && !given(row, "mask", words, n))
        pm.mask = OFPPC_PORT_DOWN | OFPPC_NO_RECV | OFPPC_NO_FWD | OFPPC_NO_PACKET_IN;
    return modify(c, OFPT_PORT_MOD, &pm);
}

static enum status
table_mod(struct ctx *c, char **words, int n)
{
    struct of_table_mod tm = {.table_id = OFPTT_ALL};
    enum status st = parse_args(c, &of_row_table_mod, words, n, &tm);
    return st ? st : modify(c, OFPT_TABLE_MOD, &tm);
}

/* Words of fields first, then actions; data=HEX is one of the fields. */
static enum status
packet_out(struct ctx *c, char **words, int n)
{
    struct of_packet_out po = {.buffer_id = OFP_NO_BUFFER, .in_port = OFPP_CONTROLLER};
    int fields = 0, actions = 0;
    char **action_words = of_arena_array(&c->arena, (size_t)n + 1, sizeof *action_words);
    if (!action_words)
        return failed(c, "out of memory");
    for (int i = 0; i < n; i++) {
        size_t key = strcspn(words[i], "=");
        if (of_field_by_name(&of_row_packet_out, words[i], key))
            words[fields++] = words[i];
        else
            action_words[actions++] = words[i];
    }
    const char *text = join_words(c, action_words, actions, ',');
    enum status st = parse_args(c, &of_row_packet_out, words, fields, &po);
    if (st)
        return st;
    int err = text ? of_parse_actions(&c->parse, text, &po.actions) : -ENOMEM;
    if (err)
        return bad_parse(c, err);
    if (!po.data.n && po.buffer_id == OFP_NO_BUFFER)
        return bad_args(c, "the packet is missing: data=HEX, or buffer=N");
    return modify(c, OFPT_PACKET_OUT, &po);
}

#define FLOW_KEYS                                                                                  \
    "cmd=add|mod|mods|del|dels[,table=N,prio=N,idle=S,hard=S,cookie=N,cookie_mask=N,buffer=N,"     \
    "out_port=PORT,out_group=GROUP,flags=FLAGS]"

const struct command mod_commands[] = {
    {"flow-mod", NULL, FLOW_KEYS " [MATCH] [INSTRUCTION...]", "adds, changes, deletes flow entries",
     flow_mod, MORE(.keys = &of_row_flow_mod)},
    {"group-mod", NULL,
     "cmd=add|mod|del,type=all|sel|ind|ff,group=N [[weight=N,port=N,group=N] ACTIONS]...",
     "adds, changes, deletes a group", group_mod, MORE(.keys = &of_row_group_mod)},
    {"meter-mod", NULL,
     "cmd=add|mod|del,flags=kbps|pktps|burst|stats,meter=N "
     "[drop:rate=N,burst=N] [dscp_remark:rate=N,burst=N,prec_level=N]...",
     "adds, changes, deletes a meter", meter_mod, MORE(.keys = &of_row_meter_mod)},
    {"port-mod", NULL, "port=N[,addr=MAC][,conf=FLAGS[,mask=FLAGS]][,adv=FLAGS]",
     "configures a port (flags: port_down, no_recv, no_fwd, no_packet_in)", port_mod,
     MORE(.keys = &of_row_port_mod)},
    {"table-mod", NULL, "table=N|all,conf=N", "configures a table", table_mod,
     MORE(.keys = &of_row_table_mod)},
    {"set-config", NULL, "[flags=normal|drop|reasm][,miss=BYTES]",
     "sets fragment handling, bytes of a packet-in", set_config,
     MORE(.keys = &of_row_switch_config)},
    {"set-async", NULL, "packet_in_mask0=N,packet_in_mask1=N,port_status_mask0=N,...",
     "sets which asynchronous messages this connection gets (0: master or equal, 1: slave)",
     set_async, MORE(.keys = &of_row_async)},
    {"packet-out", NULL, "[in_port=PORT] [buffer=N] ACTIONS data=HEX", "sends a packet", packet_out,
     MORE(.keys = &of_row_packet_out)},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
