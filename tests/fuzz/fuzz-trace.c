/* SPDX-License-Identifier: Apache-2.0 */
/* A TRACE request of any bytes, by a switch with flows of all kinds: never crashes, and what it
 * answers can be read. */
#include "structure.h"

#include <shared/rcu.h>
#include <trace/trace.h>

#include <oflib/text.h>

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

const struct fuzz_format fuzz_format = FUZZ_OPENFLOW_BODY;

#define PORTS 4

/* ------------------------------------------------------------------ the port side (port.h) */

struct port {
    uint32_t no;
};

static struct port ports[PORTS] = {{1}, {2}, {3}, {4}};

int
port_ifindex(const struct port *p)
{
    return (int)port_no(p);
}

uint32_t
port_no(const struct port *p)
{
    return p->no;
}

uint32_t
port_config_bits(const struct port *p)
{
    return p->no == 3 ? OFPPC_NO_FWD : 0;
}

uint8_t
port_inside(const struct port *p)
{
    return 0;
}

bool
port_is_up(const struct port *p)
{
    return p->no != 4;
}

bool
port_receives(const struct port *p)
{
    return p->no != 3;
}

int
port_tx_refusal(const struct port *p, const struct packet *pkt)
{
    return port_is_up(p) ? 0 : EDIT_DROP(port_down);
}

uint32_t
port_tx_queue(const struct port *p, uint32_t queue)
{
    return p->no == 2 ? queue : 0;
}

uint32_t
port_tx_class(const struct port *p, uint32_t queue)
{
    return port_tx_queue(p, queue);
}

const struct port_shaper *
port_shaper(const struct port *p)
{
    return NULL;
}

int
port_tx(struct port *p, struct port_io *w, struct packet *pkt)
{
    abort(); /* a trace sends nothing */
}

void
port_count_packet_in_dropped(struct port *p, const struct port_io *w)
{
    abort();
}

/* ------------------------------------------------------------------ the switch */

static struct dp dp;

static bool
any_id(void *sw, uint32_t id)
{
    return true;
}

static void
no_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t at)
{
}

static void
must(int err)
{
    if (err)
        abort();
}

static void
add_flow(struct of_parse *p, uint8_t table, const char *match, const char *const *instructions)
{
    static uint16_t priority = 1000;
    struct of_flow_mod fm = {.table_id = table,
                             .priority = priority--,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY};
    must(of_parse_match(p, match, &fm.match));
    for (; *instructions; instructions++)
        must(of_parse_instruction(p, *instructions, &fm.instructions));
    must(tables_flow_mod(dp.tables, &fm, 1));
}

#define FLOW(table, match, ...) add_flow(p, table, match, (const char *const[]){__VA_ARGS__, NULL})

static void
add_flows(struct of_parse *p)
{
    FLOW(0, "eth_type=0x800,ip_proto=6", "meter:1",
         "apply:nw_dec,set_field=tcp_dst:8080,push_vlan=0x8100", "write:queue=5,output=2",
         "goto:1");
    FLOW(0, "eth_type=0x86dd", "apply:push_mpls=0x8847,group=1,pop_mpls=0x86dd", "goto:1");
    FLOW(0, "vlan_vid=any", "apply:pop_vlan,push_pbb=0x88e7,output=normal", "goto:1");
    FLOW(0, "eth_type=0x8847", "apply:mpls_dec,pop_mpls=0x0800,ttl_in,output=flood", "goto:1");
    FLOW(0, "eth_type=0x88e7", "apply:pop_pbb,output=controller:100", "goto:1");
    FLOW(0, "", "apply:output=controller,output=in_port", "goto:1");
    FLOW(1, "in_port=2", "clear", "write:group=1");
    FLOW(1, "eth_type=0x806", "apply:set_field=arp_op:2,output=all,output=99");
    FLOW(1, "metadata=1/1", "meta:0x2/0x2", "write:set_field=eth_dst:02:00:00:00:00:09,output=4");
}

static void
free_dp(void)
{
    tables_free(dp.tables);
    groups_free(dp.groups);
    meters_free(dp.meters);
    normal_free(dp.normal);
    rcu_wait();
    free(dp.ports);
}

static struct dp *
new_dp(void)
{
    static struct port_list *l;
    static char *words[] = {(char *)"weight=1", (char *)"set_field=ip_dscp:10,output=2",
                            (char *)"weight=2", (char *)"nw_dec,output=3"};
    struct of_arena arena;
    struct compile_env env = {.port_ok = any_id, .group_ok = any_id, .meter_ok = any_id};
    struct groups_ops gops = {.env = env, .port_exists = any_id};
    struct tables_ops tops = {.env = env, .removed = no_removed};
    of_arena_init(&arena, 1 << 20);
    struct of_parse p = {.arena = &arena};
    struct of_group_mod gm = {.command = OFPGC_ADD, .type = OFPGT_SELECT, .group_id = 1};
    struct of_meter_mod mm = {
        .command = OFPMC_ADD, .flags = OFPMF_KBPS | OFPMF_BURST, .meter_id = 1};
    if (dp.tables)
        return &dp;
    l = calloc(1, sizeof *l + PORTS * sizeof l->v[0]);
    for (uint32_t i = 0; i < PORTS; i++)
        l->v[l->n++] = dp.by_number[i + 1] = &ports[i];
    dp.ports = l;
    dp.n_workers = 1;
    dp.groups = groups_new(1, &gops);
    dp.meters = meters_new(1);
    dp.normal = normal_new();
    dp.tables = tables_new(4, 1, &tops);
    must(of_parse_buckets(&p, words, 4, &gm.buckets));
    must(groups_mod(dp.groups, &gm, 1));
    must(of_parse_band(&p, "dscp_remark:rate=1,burst=1,prec_level=1", &mm.bands));
    must(meters_mod(dp.meters, &mm, 1));
    add_flows(&p);
    of_arena_free(&arena);
    atexit(free_dp);
    return &dp;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct trace_env nothing;
    struct of_arena arena;
    void *request = NULL;
    struct of_list events;
    struct of_wr w = of_wr_grow(TRACE_BYTES_MAX + 2 * OF_MSG_MAX);
    of_arena_init(&arena, 64u << 20);
    if (size <= 65000 &&
        !of_decode_struct((struct of_bytes){data, size}, &of_row_trace_request, &arena, &request) &&
        !trace_run(new_dp(), &nothing, request, 1000000000, &w))
        must(of_decode_list((struct of_bytes){w.buf, w.len}, &of_list_trace_events, &arena,
                            &events));
    of_arena_free(&arena);
    of_wr_free(&w);
    return 0;
}
