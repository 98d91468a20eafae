/* SPDX-License-Identifier: Apache-2.0 */
/* What flow tables cost without packets around them: a flow-mod, a lookup, a cached lookup, and
 * the memory of a flow; for several numbers of flows and masks.
 *
 *   lookup-bench [FLOWS MASKS]       default: a table of both
 */
#include <packet/headers.h>
#include <shared/rcu.h>
#include <table/flow-cache.h>
#include <table/tables.h>

#include <oflib/wire.h>

#include <malloc.h>
#include <stdio.h>
#include <time.h>

#define LOOKUPS 2000000u
#define KEYS    10000u
#define CACHE   16384u

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint32_t
scatter(uint32_t i)
{
    return i * 2654435761u;
}

static bool
any_id(void *sw, uint32_t id)
{
    return true;
}

static void
no_removed(void *ctx, struct flow *f, uint8_t reason, uint64_t at)
{
}

static struct of_oxm
oxm(enum oxm_field field, uint64_t value)
{
    struct of_oxm o = {.row = &oxm_rows[field]};
    memset(o.mask, 0xff, sizeof o.mask);
    oxm_set_number(o.row, o.value, value);
    return o;
}

/* eth_type, ipv4_src with mask `which` of 1,024 and udp_dst; the prefixes of source and
 * destination differ from mask to mask.  Priority: 1 to 64, by mask. */
static int
add_flow(struct tables *t, uint32_t i, uint32_t masks)
{
    static uint8_t raw[24]; /* apply:output=2, as on the wire: kept for statistics */
    uint32_t which = i % masks, src = 32 - which % 24, dst = which / 24 % 32;
    struct of_oxm match[] = {oxm(OXM_eth_type, TYPE_IPV4), oxm(OXM_ip_proto, PROTO_UDP),
                             oxm(OXM_ipv4_src, scatter(i) & ~0u << (32 - src)),
                             oxm(OXM_udp_dst, i & 0xffff), oxm(OXM_ipv4_dst, 0)};
    of_set32(match[2].mask, ~0u << (32 - src));
    match[2].has_mask = src < 32;
    if (dst) {
        match[4].has_mask = dst < 32;
        of_set32(match[4].mask, ~0u << (32 - dst));
    }
    struct of_action_output out = {.row = OF_ACTION(OUTPUT), .port = 2, .max_len = 0xffff};
    void *actions[] = {&out};
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS), .actions = {1, actions, {0}}};
    void *instructions[] = {&apply};
    struct of_flow_mod fm = {.priority = (uint16_t)(1 + which % 64),
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY,
                             .match = {dst ? 5 : 4, match},
                             .instructions = {1, instructions, {raw, sizeof raw}}};
    return tables_flow_mod(t, &fm, 1);
}

static void
make_key(struct flow_key *k, uint32_t i)
{
    *k = (struct flow_key){0};
    of_set32(k->in_port, 1);
    of_set16(k->eth_type, TYPE_IPV4);
    k->ip_proto = PROTO_UDP;
    of_set32(k->ip_src.v4, scatter(i));
    of_set16(k->tp_dst, (uint16_t)i);
    of_set16(k->tp_src, 1024);
    of_set16(k->vlan_vid, KEY_HAS);
}

static double
time_lookups(struct tables *t, const struct flow_key *keys, uint32_t *found)
{
    double start = now();
    for (uint32_t i = 0; i < LOOKUPS; i++)
        *found += tables_lookup(t, 0, 0, &keys[i % KEYS], 1) != NULL;
    return (now() - start) / LOOKUPS;
}

static double
time_cached(struct tables *t, struct flow_cache *c, const struct flow_key *keys, uint32_t *found)
{
    double start = now();
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        *found += flow_cache_path(c, t, &keys[i % KEYS])->step[0].flow != NULL;
    }
    return (now() - start) / LOOKUPS;
}

static void
measure(uint32_t flows, uint32_t masks)
{
    struct tables_ops ops = {.env = {.port_ok = any_id, .group_ok = any_id, .meter_ok = any_id},
                             .removed = no_removed};
    struct tables *t = tables_new(1, 1, &ops);
    struct flow_cache *c = flow_cache_new(CACHE);
    struct flow_key *keys = malloc(KEYS * sizeof *keys);
    if (!t || !c || !keys)
        abort();
    size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
    double start = now();
    for (uint32_t i = 0; i < flows; i++) {
        if (add_flow(t, i, masks))
            abort();
        if (i % 1000 == 999)
            rcu_turn();
    }
    rcu_turn();
    double add = (now() - start) / flows;
    size_t memory = mallinfo2().uordblks + mallinfo2().hblkhd - before;
    for (uint32_t i = 0; i < KEYS; i++)
        make_key(&keys[i], i);
    uint32_t found = 0;
    double plain = time_lookups(t, keys, &found), cached = time_cached(t, c, keys, &found);
    printf("%8u flows %5u masks: add %6.0f ns  %4.0f bytes a flow  lookup %7.1f ns  "
           "cached %5.1f ns  (%.2f found)\n",
           flows, masks, add, (double)memory / flows, plain, cached, found / 2.0 / LOOKUPS);
    fflush(stdout);
    free(keys);
    flow_cache_free(c);
    tables_free(t);
}

int
main(int argc, char **argv)
{
    static const uint32_t flows[] = {1, 1000, 100000, 1000000}, masks[] = {1, 8, 64};
    if (argc > 2) {
        measure((uint32_t)atol(argv[1]), (uint32_t)atol(argv[2]));
        return 0;
    }
    for (unsigned i = 0; i < sizeof flows / sizeof flows[0]; i++)
        for (unsigned j = 0; j < sizeof masks / sizeof masks[0]; j++)
            if (masks[j] <= flows[i])
                measure(flows[i], masks[j]);
    return 0;
}
