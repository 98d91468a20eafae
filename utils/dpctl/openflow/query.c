/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that send one request and show the answer. */
#include "tables.h"

#include <core/ask.h>
#include <core/complete.h>
#include <core/keys.h>
#include <core/say.h>
#include <core/view.h>
#include <core/words.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct query {
    uint16_t type; /* OFPT_, or OFPMP_ where `multipart` */
    bool multipart;
};

static const struct of_struct_row *
query_row(const struct query *q)
{
    return q->multipart ? of_mp_row(q->type)->request : of_msg_row((uint8_t)q->type)->body;
}

static enum status
query_run(struct ctx *c, const struct command *self, char **words, int n)
{
    const struct query *q = self->query;
    const struct of_struct_row *row = query_row(q);
    void *body = of_arena_alloc(&c->arena, row->size + 1);
    struct of_msg reply;
    if (!body)
        return say_memory(c);
    const void *all = q->multipart ? ask_all(q->type) : NULL;
    if (all)
        memcpy(body, all, row->size);
    if (n && !row->n_fields)
        return say_usage(c, "%s takes no arguments", self->name);
    enum status st = words_fields(c, row, words, n, body);
    if (!st)
        st = q->multipart ? ask_multipart(c, q->type, body, &reply)
                          : ask_message(c, (uint8_t)q->type, body, &reply);
    return st ? st : view_message(c, &reply);
}

/* The fields of the request. */
static void
query_more(struct of_wr *w, const struct command *self)
{
    const struct of_struct_row *row = query_row(self->query);
    if (!row->n_fields)
        return;
    of_printf(w, "\n");
    of_print_usage(w, row);
}

static void
query_offer(struct complete *k, const struct command *self)
{
    complete_row(k, query_row(self->query));
}

/* Leaves out the tables that no packet has come to: a switch may have 254 of them. */
static void
drop_unused(struct of_list *tables)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < tables->n; i++) {
        const struct of_table_stats *t = OF_AT(tables, i, struct of_table_stats);
        if (t->active_count || t->lookup_count || t->matched_count)
            tables->v[n++] = tables->v[i];
    }
    tables->n = n;
}

static enum status
stats_table(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_msg reply;
    struct shown {
        bool all;
    } q = {0};
    static const struct key keys[] = {{"all", key_flag, KEY_TO(struct shown, all)}, {NULL}};
    enum status st;
    if ((st = keys_take(c, keys, words, n, &q)) ||
        (st = ask_multipart(c, OFPMP_TABLE, NULL, &reply)))
        return st;
    struct of_mp_table_reply *body = reply.body;
    if (!q.all && !c->json)
        drop_unused(&body->tables);
    if (body->tables.n || q.all || c->json)
        return view_message(c, &reply);
    struct of_wr w = of_wr_grow(128);
    of_printf(&w, "no table has been used yet (all=yes shows every one)");
    return view_line(c, &w);
}

/* Adds a row of STATUS, "port.2.vlan=10", to what is said of its port. */
static enum status
add_port_row(struct ctx *c, const struct of_list *ports, char **said, const char *row, size_t n)
{
    char *what;
    unsigned long no = strtoul(row + strlen("port."), &what, 10);
    size_t len = (size_t)(row + n - what);
    for (uint32_t i = 0; *what == '.' && i < ports->n; i++) {
        if (OF_AT(ports, i, struct of_port)->port_no != no)
            continue;
        const char *before = said[i] ? said[i] : "";
        size_t room = strlen(before) + len + 2;
        if (!(said[i] = of_arena_alloc(&c->arena, room)))
            return say_memory(c);
        snprintf(said[i], room, "%s%s%.*s", before, *before ? "; " : "", (int)len - 1, what + 1);
    }
    return DPCTL_OK;
}

/* What STATUS says of each port; *said NULL: nothing of any, or the switch is another one. */
static enum status
ask_port_rows(struct ctx *c, const struct of_list *ports, char ***said)
{
    char *rows, **v = of_arena_array(&c->arena, ports->n + 1, sizeof *v);
    enum status st;
    *said = NULL;
    if (!v)
        return say_memory(c);
    if (!ask_status_if_known(c, &rows))
        return DPCTL_OK;
    for (size_t n; *rows; rows += n + (rows[n] == '\n')) {
        n = strcspn(rows, "\n");
        if (strncmp(rows, "port.", strlen("port.")) != 0)
            continue;
        *said = v;
        if ((st = add_port_row(c, ports, v, rows, n)))
            return st;
    }
    return DPCTL_OK;
}

static enum status
port_desc(struct ctx *c, const struct command *self, char **words, int n)
{
    struct of_msg reply;
    char **said = NULL;
    if (n)
        return say_usage(c, "port-desc takes no arguments");
    enum status st = ask_multipart(c, OFPMP_PORT_DESC, NULL, &reply);
    if (st || c->json)
        return st ? st : view_message(c, &reply);
    view_order(&reply);
    st = ask_port_rows(c, &((const struct of_mp_port_desc_reply *)reply.body)->ports, &said);
    return st ? st : view_list_and(c, &reply, said ? "status" : NULL, said);
}

static const char port_help[] =
    "Behind each port stands what status says of it, if anything: its VLANs (vlan, trunk), who else has\n"
    "the interface (shared-with), what of the hosts' traffic it loses, and why (cannot-carry).\n";

static const char table_help[] =
    "  all=yes  also the tables that have no flow entries and that no packet has come to";

#define QUERY(type, multipart)                                                                     \
    .run = query_run, .more = query_more, .offer = query_offer, .asks = true,                      \
    .query = &(const struct query)                                                                 \
    {                                                                                              \
        type, multipart                                                                            \
    }
#define MESSAGE(type)   QUERY(type, false)
#define MULTIPART(type) QUERY(type, true)
#define FLOW_ARGS       "[table=N,out_port=PORT,out_group=GROUP,cookie=N,cookie_mask=N] [MATCH]"

static const struct command rows[] = {
    {.name = "features",
     .help = "datapath id, tables, buffers, capabilities",
     MESSAGE(OFPT_FEATURES_REQUEST)},
    {.name = "desc",
     .alias = "stats-desc",
     .help = "manufacturer, hardware, software, serial number",
     MULTIPART(OFPMP_DESC)},
    {.name = "get-config",
     .help = "fragment handling, bytes of a packet-in",
     MESSAGE(OFPT_GET_CONFIG_REQUEST)},
    {.name = "get-async",
     .help = "which asynchronous messages this connection gets",
     MESSAGE(OFPT_GET_ASYNC_REQUEST)},
    {.name = "port-desc",
     .subject = SUBJECT_PORT,
     .help = "the ports",
     .text = port_help,
     .run = port_desc,
     .asks = true},
    {.name = "stats-port",
     .subject = SUBJECT_PORT,
     .first = {TASK_LOOK, "stats-port eth1", "counters of ports"},
     .args = "[PORT]",
     .help = "counters of ports",
     .examples = "stats-port\nstats-port eth1",
     MULTIPART(OFPMP_PORT_STATS)},
    {.name = "stats-queue",
     .subject = SUBJECT_QOS,
     .args = "[PORT [QUEUE]]",
     .help = "counters of queues",
     .examples = "stats-queue 2\nstats-queue 2 10",
     MULTIPART(OFPMP_QUEUE)},
    {.name = "stats-flow",
     .subject = SUBJECT_FLOW,
     .args = FLOW_ARGS,
     .help = "flow entries and their counters",
     .examples = "stats-flow table=1\nstats-flow out_port=2 eth_type=0x0800,ipv4_dst=10.0.0.0/8",
     MULTIPART(OFPMP_FLOW)},
    {.name = "stats-aggr",
     .subject = SUBJECT_FLOW,
     .args = FLOW_ARGS,
     .help = "sums over flow entries",
     .examples = "stats-aggr table=1",
     MULTIPART(OFPMP_AGGREGATE)},
    {.name = "stats-table",
     .subject = SUBJECT_FLOW,
     .args = "[all=yes]",
     .help = "counters of the tables in use, or of all",
     .text = table_help,
     .run = stats_table,
     .asks = true},
    {.name = "table-features",
     .subject = SUBJECT_FLOW,
     .help = "what each table can do",
     MULTIPART(OFPMP_TABLE_FEATURES)},
    {.name = "stats-group",
     .subject = SUBJECT_GROUP,
     .args = "[GROUP]",
     .help = "counters of groups",
     .examples = "stats-group 1",
     MULTIPART(OFPMP_GROUP)},
    {.name = "group-desc",
     .alias = "stats-group-desc",
     .subject = SUBJECT_GROUP,
     .help = "groups and their buckets",
     MULTIPART(OFPMP_GROUP_DESC)},
    {.name = "group-features",
     .subject = SUBJECT_GROUP,
     .help = "what groups can do",
     MULTIPART(OFPMP_GROUP_FEATURES)},
    {.name = "stats-meter",
     .subject = SUBJECT_METER,
     .args = "[METER]",
     .help = "counters of meters",
     .examples = "stats-meter 1",
     MULTIPART(OFPMP_METER)},
    {.name = "meter-config",
     .subject = SUBJECT_METER,
     .args = "[METER]",
     .help = "meters and their bands",
     .examples = "meter-config 1",
     MULTIPART(OFPMP_METER_CONFIG)},
    {.name = "meter-features",
     .subject = SUBJECT_METER,
     .help = "what meters can do",
     MULTIPART(OFPMP_METER_FEATURES)},
    {.name = "role",
     .args = "[equal|master|slave [GENERATION_ID]]",
     .help = "shows or sets this connection's role",
     .examples = "role\nrole master 1",
     MESSAGE(OFPT_ROLE_REQUEST)},
};

const struct command_table commands_query = COMMAND_TABLE(rows);
