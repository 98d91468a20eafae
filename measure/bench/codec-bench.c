/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to decode and encode typical messages: nanoseconds a message, best of several runs.
 *
 *   codec-bench [MESSAGES]     messages in a run, default 1,000,000
 *   codec-bench N decode       only decode flow_mods (for perf stat, callgrind)
 */
#include <oflib/codec.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define RUNS 5

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct of_oxm
oxm(enum oxm_field field, uint64_t value)
{
    struct of_oxm o = {.row = &oxm_rows[field]};
    memset(o.mask, 0xff, sizeof o.mask);
    oxm_set_number(o.row, o.value, value);
    return o;
}

/* in_port=1,eth_type=0x0800,ip_proto=6,tcp_dst=666 apply:output=2 */
static int
make_flow_mod(struct of_wr *w)
{
    struct of_oxm match[] = {oxm(OXM_in_port, 1), oxm(OXM_eth_type, 0x0800), oxm(OXM_ip_proto, 6),
                             oxm(OXM_tcp_dst, 666)};
    struct of_action_output out = {.row = OF_ACTION(OUTPUT), .port = 2, .max_len = 0xffff};
    void *actions[] = {&out};
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS), .actions = {1, actions, {0}}};
    void *instructions[] = {&apply};
    struct of_flow_mod fm = {.priority = 10,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY,
                             .match = {4, match},
                             .instructions = {1, instructions, {0}}};
    return of_encode_body(w, OFPT_FLOW_MOD, 1, &fm);
}

static int
make_packet_out(struct of_wr *w)
{
    static const uint8_t frame[64];
    struct of_action_output out = {.row = OF_ACTION(OUTPUT), .port = 2};
    void *actions[] = {&out};
    struct of_packet_out po = {.buffer_id = OFP_NO_BUFFER,
                               .in_port = OFPP_CONTROLLER,
                               .actions = {1, actions, {0}},
                               .data = {frame, sizeof frame}};
    return of_encode_body(w, OFPT_PACKET_OUT, 1, &po);
}

static double
time_decode(struct of_bytes raw, struct of_arena *arena, long n)
{
    struct of_msg m;
    double start = now();
    for (long i = 0; i < n; i++) {
        of_arena_reset(arena);
        if (of_decode(raw, arena, &m))
            abort();
    }
    return (now() - start) / (double)n;
}

static double
time_encode(const struct of_msg *m, long n)
{
    uint8_t buf[1024];
    double start = now();
    for (long i = 0; i < n; i++) {
        struct of_wr w = of_wr_fixed(buf, sizeof buf);
        if (of_encode(&w, m))
            abort();
    }
    return (now() - start) / (double)n;
}

static void
measure(const char *name, int (*make)(struct of_wr *), long n, bool decode_only)
{
    uint8_t buf[1024];
    struct of_wr w = of_wr_fixed(buf, sizeof buf);
    struct of_arena arena;
    struct of_msg m;
    double dec = 1e9, enc = 1e9;
    of_arena_init(&arena, 1 << 20);
    struct of_bytes raw = {buf, make(&w) ? 0 : w.len};
    for (int i = 0; i < RUNS; i++) {
        double t = time_decode(raw, &arena, n);
        dec = t < dec ? t : dec;
    }
    if (of_decode(raw, &arena, &m))
        abort();
    for (int i = 0; i < RUNS && !decode_only; i++) {
        double t = time_encode(&m, n);
        enc = t < enc ? t : enc;
    }
    printf("%-12s %4zu bytes  decode %6.1f ns", name, raw.n, dec);
    if (!decode_only)
        printf("  encode %6.1f ns", enc);
    printf("\n");
    of_arena_free(&arena);
}

int
main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 1000000;
    bool decode_only = argc > 2;
    measure("flow_mod", make_flow_mod, n, decode_only);
    if (!decode_only)
        measure("packet_out", make_packet_out, n, false);
    return 0;
}
