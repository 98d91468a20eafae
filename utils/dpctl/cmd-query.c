/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that ask, each a row: what is asked, and which arguments narrow it. */
#include "commands.h"

#include <errno.h>

/* Arguments of a request: "key=value" pairs of the row's fields and of its match, or bare values
 * for its fields in order. */
struct args {
    const struct of_struct_row *row;
    void *body;
    struct of_wr fields, match;
    int bare;
};

static const struct of_field_row *
nth_number(const struct of_struct_row *row, int n)
{
    for (int i = 0; i < row->n_fields; i++)
        if (row->fields[i].kind <= OFK_U64 && n-- == 0)
            return &row->fields[i];
    return NULL;
}

static bool
has_match(const struct of_struct_row *row)
{
    return of_field_by_name(row, "match", 5) != NULL;
}

/* One pair goes to the fields or to the match. */
static void
sort_pair(struct args *a, const char *pair, size_t n)
{
    const char *eq = memchr(pair, '=', n);
    bool field = of_field_by_name(a->row, pair, eq ? (size_t)(eq - pair) : n) != NULL;
    struct of_wr *to = field || !has_match(a->row) ? &a->fields : &a->match;
    of_printf(to, "%.*s,", (int)n, pair);
}

enum status
parse_args(struct ctx *c, const struct of_struct_row *row, char *const *words, int n, void *body)
{
    struct args a = {
        .row = row, .body = body, .fields = of_wr_grow(1 << 20), .match = of_wr_grow(1 << 20)};
    const struct of_field_row *f;
    int err = 0;
    c->parse.keys = row;
    for (int i = 0; i < n && !err; i++) {
        if (!strchr(words[i], '=') && !has_match(row) && (f = nth_number(row, a.bare++))) {
            of_printf(&a.fields, "%s=%s,", of_field_short_name(f), words[i]);
            continue;
        }
        for (const char *p = words[i]; *p; p += strspn(p, ",")) {
            size_t len = strcspn(p, ",");
            if (len)
                sort_pair(&a, p, len);
            p += len;
        }
    }
    of_wr8(&a.fields, 0);
    of_wr8(&a.match, 0);
    if (a.fields.overflow || a.match.overflow)
        err = -ENOMEM;
    else
        err = of_parse_fields(&c->parse, row, (const char *)a.fields.buf, body);
    if (!err && has_match(row)) {
        f = of_field_by_name(row, "match", 5);
        err = of_parse_match(&c->parse, (const char *)a.match.buf,
                             (struct of_match *)(void *)((uint8_t *)body + f->off));
    }
    of_wr_free(&a.fields);
    of_wr_free(&a.match);
    return err ? bad_parse(c, err) : DPCTL_OK;
}

const struct of_struct_row *
query_row(const struct query *q)
{
    return q->multipart ? of_mp_row(q->type)->request : of_msg_row((uint8_t)q->type)->body;
}

static enum status
run_query(struct ctx *c, char **words, int n)
{
    const struct query *q = c->command->more->query;
    const struct of_struct_row *row = query_row(q);
    void *body = of_arena_alloc(&c->arena, row->size + 1);
    struct of_msg reply;
    if (!body)
        return failed(c, "out of memory");
    if (q->defaults)
        memcpy(body, q->defaults, row->size);
    if (n && !row->n_fields)
        return bad_args(c, "%s takes no arguments", c->command->name);
    enum status st = parse_args(c, row, words, n, body);
    if (!st)
        st = q->multipart ? multipart(c, q->type, body, &reply)
                          : transact(c, (uint8_t)q->type, body, &reply);
    return st ? st : show(c, &reply);
}

/* Tables in which nothing was ever looked for are left out: a switch may have 254 of them. */
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
stats_table(struct ctx *c, char **words, int n)
{
    struct of_msg reply;
    bool all = n == 1 && (!strcmp(words[0], "all=yes") || !strcmp(words[0], "all"));
    if (n > 1 || (n && !all && strcmp(words[0], "all=no")))
        return bad_args(c, "all=yes, or nothing, is right");
    enum status st = multipart(c, OFPMP_TABLE, NULL, &reply);
    if (st)
        return st;
    struct of_mp_table_reply *body = reply.body;
    if (!all && !c->json)
        drop_unused(&body->tables);
    if (body->tables.n || all || c->json)
        return show(c, &reply);
    struct of_wr w = of_wr_grow(128);
    of_printf(&w, "no table has been used yet (all=yes shows every one)");
    return put_line(c, &w);
}

static const char table_help[] =
    "  all=yes  also the tables that have no flow entries and that no packet has come to";

static const struct of_mp_flow_request all_flows = {
    .table_id = OFPTT_ALL, .out_port = OFPP_ANY, .out_group = OFPG_ANY};
static const struct of_mp_port_request all_ports = {.port_no = OFPP_ANY};
static const struct of_mp_queue_request all_queues = {.port_no = OFPP_ANY, .queue_id = OFPQ_ALL};
static const struct of_mp_group_request all_groups = {.group_id = OFPG_ALL};
static const struct of_mp_meter_request all_meters = {.meter_id = OFPM_ALL};
static const struct of_queue_get_config_request any_port = {.port = OFPP_ANY};

#define MESSAGE(type, defaults)   MORE(.query = &(const struct query){type, false, defaults})
#define MULTIPART(type, defaults) MORE(.query = &(const struct query){type, true, defaults})
#define FLOW_ARGS                 "[table=N,out_port=PORT,out_group=GROUP,cookie=N,cookie_mask=N] [MATCH]"

const struct command query_commands[] = {
    {"features", NULL, "", "datapath id, tables, buffers, capabilities", run_query,
     MESSAGE(OFPT_FEATURES_REQUEST, NULL)},
    {"desc", "stats-desc", "", "manufacturer, hardware, software, serial number", run_query,
     MULTIPART(OFPMP_DESC, NULL)},
    {"get-config", NULL, "", "fragment handling, bytes of a packet-in", run_query,
     MESSAGE(OFPT_GET_CONFIG_REQUEST, NULL)},
    {"get-async", NULL, "", "which asynchronous messages this connection gets", run_query,
     MESSAGE(OFPT_GET_ASYNC_REQUEST, NULL)},
    {"port-desc", NULL, "", "the ports", run_query, MULTIPART(OFPMP_PORT_DESC, NULL)},
    {"stats-port", NULL, "[PORT]", "counters of ports", run_query,
     MULTIPART(OFPMP_PORT_STATS, &all_ports)},
    {"stats-queue", NULL, "[PORT [QUEUE]]", "counters of queues", run_query,
     MULTIPART(OFPMP_QUEUE, &all_queues)},
    {"queue-get-config", NULL, "[PORT]", "the queues and their rates", queue_config,
     MESSAGE(OFPT_QUEUE_GET_CONFIG_REQUEST, &any_port)},
    {"stats-flow", NULL, FLOW_ARGS, "flow entries and their counters", run_query,
     MULTIPART(OFPMP_FLOW, &all_flows)},
    {"stats-aggr", NULL, FLOW_ARGS, "sums over flow entries", run_query,
     MULTIPART(OFPMP_AGGREGATE, &all_flows)},
    {"stats-table", NULL, "[all=yes]", "counters of tables, of those in use or of all", stats_table,
     MORE(.text = table_help)},
    {"table-features", NULL, "", "what each table can do", run_query,
     MULTIPART(OFPMP_TABLE_FEATURES, NULL)},
    {"stats-group", NULL, "[GROUP]", "counters of groups", run_query,
     MULTIPART(OFPMP_GROUP, &all_groups)},
    {"group-desc", "stats-group-desc", "", "groups and their buckets", run_query,
     MULTIPART(OFPMP_GROUP_DESC, NULL)},
    {"group-features", NULL, "", "what groups can do", run_query,
     MULTIPART(OFPMP_GROUP_FEATURES, NULL)},
    {"stats-meter", NULL, "[METER]", "counters of meters", run_query,
     MULTIPART(OFPMP_METER, &all_meters)},
    {"meter-config", NULL, "[METER]", "meters and their bands", run_query,
     MULTIPART(OFPMP_METER_CONFIG, &all_meters)},
    {"meter-features", NULL, "", "what meters can do", run_query,
     MULTIPART(OFPMP_METER_FEATURES, NULL)},
    {"role", NULL, "[equal|master|slave [GENERATION_ID]]", "shows or sets this connection's role",
     run_query, MESSAGE(OFPT_ROLE_REQUEST, NULL)},
    {NULL, NULL, NULL, NULL, NULL, NULL},
};
