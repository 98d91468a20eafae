/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that change something: flow-mod, group-mod, ... */
#include "of10.h"
#include "tables.h"

#include <core/ask.h>
#include <core/change.h>
#include <core/ports.h>
#include <core/say.h>
#include <core/words.h>

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
flow_mod(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_flow_mod fm = {.priority = 0x8000,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY};
    int others = 0, err = 0;
    if (!n)
        return say_usage(c, "no command given: write cmd=add,table=0,...");
    for (int i = 0; i < n && !err; i++) { /* instructions are parsed, the other words kept */
        if (of_is_instruction(words[i]))
            err = of_parse_instruction(&c->parse, words[i], &fm.instructions);
        else
            words[others++] = words[i];
    }
    if (err)
        return say_parse(c, err);
    enum status st = words_fields(c, &of_row_flow_mod, words, others, &fm);
    if (st)
        return st;
    if (is_delete(&fm) && !given(&of_row_flow_mod, "table_id", words, others))
        fm.table_id = OFPTT_ALL;
    return change_send(c, OFPT_FLOW_MOD, &fm);
}

/* Buckets of a select group have the same weight unless one is given. */
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
group_mod(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_group_mod gm = {.command = OFPGC_ADD};
    enum status st = DPCTL_OK;
    if (!n)
        return say_usage(c, "no command given: write cmd=add,type=all,group=1");
    for (int i = 0; i < n; i++)
        if (strstr(words[i], "bucket="))
            st = of10_group(c, words, n, &words, &n);
    st = st ? st : words_fields(c, &of_row_group_mod, words, 1, &gm);
    if (st)
        return st;
    int err = of_parse_buckets(&c->parse, words + 1, n - 1, &gm.buckets);
    if (!err && gm.type == OFPGT_SELECT)
        weigh_alike(&gm.buckets, words + 1, n - 1);
    return err ? say_parse(c, err) : change_send(c, OFPT_GROUP_MOD, &gm);
}

static enum status
meter_mod(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_meter_mod mm = {.command = OFPMC_ADD, .flags = OFPMF_KBPS};
    if (!n)
        return say_usage(c, "no command given: write cmd=add,flags=kbps,meter=1");
    enum status st;
    if ((st = of10_meter(c, words, n, &words, &n)) ||
        (st = words_fields(c, &of_row_meter_mod, words, 1, &mm)))
        return st;
    bool burst = false;
    for (int i = 1; i < n; i++) {
        int err = of_parse_band(&c->parse, words[i], &mm.bands);
        if (err)
            return say_parse(c, err);
        burst |= strstr(words[i], "burst") != NULL;
    }
    if (burst) /* a burst counts only with its flag (7.3.4.5) */
        mm.flags |= OFPMF_BURST;
    return change_send(c, OFPT_METER_MOD, &mm);
}

static enum status
set_config(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_msg reply;
    enum status st = ask_message(c, OFPT_GET_CONFIG_REQUEST, NULL, &reply);
    if (st)
        return st;
    if (reply.body_row != &of_row_switch_config)
        return say_unexpected(c);
    struct of_switch_config *config = reply.body;
    st = words_fields(c, &of_row_switch_config, words, n, config);
    return st ? st : change_send(c, OFPT_SET_CONFIG, config);
}

static enum status
set_async(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_msg reply;
    enum status st = ask_message(c, OFPT_GET_ASYNC_REQUEST, NULL, &reply);
    if (st)
        return st;
    if (reply.body_row != &of_row_async)
        return say_unexpected(c);
    struct of_async *async = reply.body;
    st = words_fields(c, &of_row_async, words, n, async);
    return st ? st : change_send(c, OFPT_SET_ASYNC, async);
}

/* The message must have the port's address (7.3.4.3): asks for it where it is not given. */
static enum status
port_mod(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_port_mod pm = {0};
    const struct of_struct_row *row = &of_row_port_mod;
    if (!given(row, "port_no", words, n))
        return say_usage(c, "no port given: write port=1,conf=port_down,mask=port_down");
    enum status st = words_fields(c, row, words, n, &pm);
    if (!st && !given(row, "hw_addr", words, n)) {
        const struct of_port *port;
        char number[16];
        snprintf(number, sizeof number, "%u", (unsigned)pm.port_no);
        st = ports_get(c, number, &port);
        if (!st)
            memcpy(pm.hw_addr, port->hw_addr, sizeof pm.hw_addr);
    }
    if (st)
        return st;
    if (given(row, "config", words, n) && !given(row, "mask", words, n))
        pm.mask = OFPPC_PORT_DOWN | OFPPC_NO_RECV | OFPPC_NO_FWD | OFPPC_NO_PACKET_IN |
                  (pm.config & OFPPC_NO_FLOOD); /* other switches of 1.3 don't know it */
    return change_send(c, OFPT_PORT_MOD, &pm);
}

static enum status
table_mod(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_table_mod tm = {.table_id = OFPTT_ALL};
    enum status st = words_fields(c, &of_row_table_mod, words, n, &tm);
    return st ? st : change_send(c, OFPT_TABLE_MOD, &tm);
}

/* "in_port=1 packet=HEX actions=output:2", as ovs-ofctl has it: fields, then the actions. */
static enum status
of10_packet(struct ctx *c, char ***words, int *n)
{
    char *text = words_join(c, *words, *n, ','), *save, *now;
    char *actions = text ? strstr(text, "actions=") : NULL;
    if (!text)
        return say_memory(c);
    if (!actions)
        return DPCTL_OK;
    enum status st = of10_actions(c, actions + strlen("actions="), strlen(actions) - 8, &now);
    *actions = '\0';
    char *const both[] = {text, now};
    if (st || !(text = words_join(c, both, 2, ',')))
        return st ? st : say_memory(c);
    if (!(*words = of_arena_array(&c->arena, strlen(text) + 1, sizeof **words)))
        return say_memory(c);
    *n = 0;
    for (char *w = strtok_r(text, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
        if (!strncmp(w, "packet=", 7)) /* "data=", which is shorter */
            w = memcpy(w + 2, "data", 4);
        (*words)[(*n)++] = w;
    }
    return DPCTL_OK;
}

/* Words of fields first, then actions; data=HEX is one of the fields. */
static enum status
packet_out(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_packet_out po = {.buffer_id = OFP_NO_BUFFER, .in_port = OFPP_CONTROLLER};
    int fields = 0, actions = 0;
    enum status st = of10_packet(c, &words, &n);
    char **action_words = of_arena_array(&c->arena, (size_t)n + 1, sizeof *action_words);
    if (st || !action_words)
        return st ? st : say_memory(c);
    for (int i = 0; i < n; i++) {
        size_t key = strcspn(words[i], "=");
        if (of_field_by_name(&of_row_packet_out, words[i], key))
            words[fields++] = words[i];
        else
            action_words[actions++] = words[i];
    }
    const char *text = words_join(c, action_words, actions, ',');
    st = words_fields(c, &of_row_packet_out, words, fields, &po);
    if (st)
        return st;
    int err = text ? of_parse_actions(&c->parse, text, &po.actions) : -ENOMEM;
    if (err)
        return say_parse(c, err);
    if (!po.data.n && po.buffer_id == OFP_NO_BUFFER)
        return say_usage(c, "no packet given: add data=HEX or buffer=N");
    return change_send(c, OFPT_PACKET_OUT, &po);
}

#define FLOW_KEYS                                                                                  \
    "cmd=add|mod|mods|del|dels[,table=N,prio=N,idle=S,hard=S,cookie=N,cookie_mask=N,buffer=N,"     \
    "out_port=PORT,out_group=GROUP,flags=FLAGS]"

#define ROW(message) .more = command_keys, .keys = &of_row_##message

static const struct command rows[] = {
    {.name = "flow-mod",
     .subject = SUBJECT_FLOW,
     .args = FLOW_KEYS " [MATCH] [INSTRUCTION...]",
     .help = "adds, changes, deletes flow entries",
     .examples = "flow-mod cmd=add,table=0,prio=10 in_port=1,eth_type=0x0800 "
                 "apply:queue=10,output=2\n"
                 "flow-mod cmd=del,table=0 in_port=1",
     .run = flow_mod,
     ROW(flow_mod)},
    {.name = "group-mod",
     .subject = SUBJECT_GROUP,
     .args = "cmd=add|mod|del,type=all|sel|ind|ff,group=N [[weight=N,port=N,group=N] ACTIONS]...",
     .help = "adds, changes, deletes a group",
     .examples = "group-mod cmd=add,type=sel,group=1 weight=3 output=1 weight=1 output=2\n"
                 "group-mod cmd=del,group=1",
     .run = group_mod,
     ROW(group_mod)},
    {.name = "meter-mod",
     .subject = SUBJECT_METER,
     .args = "cmd=add|mod|del,flags=kbps|pktps|burst|stats,meter=N "
             "[drop:rate=N,burst=N] [dscp_remark:rate=N,burst=N,prec_level=N]...",
     .help = "adds, changes, deletes a meter",
     .examples = "meter-mod cmd=add,flags=kbps,meter=1 drop:rate=1000\nmeter-mod cmd=del,meter=1",
     .run = meter_mod,
     ROW(meter_mod)},
    {.name = "port-mod",
     .subject = SUBJECT_PORT,
     .args = "port=N[,addr=MAC][,conf=FLAGS[,mask=FLAGS]][,adv=FLAGS]",
     .help = "configures a port (flags: port_down, no_recv, no_flood, no_fwd, no_packet_in)",
     .examples = "port-mod port=1,conf=port_down,mask=port_down\n"
                 "port-mod port=1,conf=0,mask=port_down\n"
                 "port-mod port=1,conf=no_flood,mask=no_flood",
     .run = port_mod,
     ROW(port_mod)},
    {.name = "table-mod",
     .subject = SUBJECT_FLOW,
     .args = "table=N|all,conf=N",
     .help = "configures a table",
     .examples = "table-mod table=all,conf=0",
     .run = table_mod,
     ROW(table_mod)},
    {.name = "set-config",
     .args = "[flags=normal|drop|reasm][,miss=BYTES]",
     .help = "sets fragment handling, bytes of a packet-in",
     .examples = "set-config miss=256",
     .run = set_config,
     ROW(switch_config)},
    {.name = "set-async",
     .args = "packet_in_mask0=N,packet_in_mask1=N,port_status_mask0=N,...",
     .help = "sets which asynchronous messages this connection gets (0: master or equal, 1: slave)",
     .examples = "set-async packet_in_mask0=0",
     .run = set_async,
     ROW(async)},
    {.name = "packet-out",
     .subject = SUBJECT_FLOW,
     .args = "[in_port=PORT] [buffer=N] ACTIONS data=HEX",
     .help = "sends a packet",
     .examples = "packet-out output=2 data=ffffffffffff0200000000010806",
     .bridge = 1,
     .run = packet_out,
     ROW(packet_out)},
};

const struct command_table commands_mod = COMMAND_TABLE(rows);
