/* SPDX-License-Identifier: Apache-2.0 */
/* A super-packet that is dropped counts as its segments; so does its sample.  And a worker that is on
 * its way to a table that is just being removed. */
#include "setup.h"

#include <packet/headers.h>

#include <string.h>

#define SEGMENTS 40
#define MSS      100
#define HEADERS  42 /* Ethernet, IPv4, UDP */
#define LEN      (HEADERS + SEGMENTS * MSS)

static uint8_t room[PACKET_HEADROOM + LEN];

/* A UDP super-packet from a port that does not exist. */
static struct packet
super_packet(uint8_t gso_type)
{
    static const uint8_t head[HEADERS] = {2,  0,    0, 0, 0,  1, 2, 0, 0, 0,  0,  2, 8,
                                          0,  0x45, 0, 0, 0,  0, 0, 0, 0, 64, 17, 0, 0,
                                          10, 0,    0, 1, 10, 0, 0, 2, 0, 7,  0,  8};
    struct packet p = {.data = room + PACKET_HEADROOM,
                       .len = LEN,
                       .wire_len = LEN,
                       .headroom = PACKET_HEADROOM,
                       .pool = fx->pool,
                       .vnet = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                .gso_type = gso_type,
                                .hdr_len = HEADERS,
                                .gso_size = MSS,
                                .csum_start = HEADERS - UDP_HEADER,
                                .csum_offset = UDP_CSUM_AT}};
    memset(room, 0, sizeof room);
    memcpy(p.data, head, sizeof head);
    of_set16(p.data + 16, LEN - ETH_HEADER);
    of_set16(p.data + 38, LEN - ETH_HEADER - IPV4_HEADER);
    packet_parse(&p, 77);
    return p;
}

static void
add_flow(uint8_t table, struct of_list instructions)
{
    struct of_flow_mod m = {.command = OFPFC_ADD,
                            .table_id = table,
                            .priority = 5,
                            .buffer_id = OFP_NO_BUFFER,
                            .out_port = OFPP_ANY,
                            .out_group = OFPG_ANY,
                            .instructions = instructions};
    assert_int_equal(tables_flow_mod(fx->dp->tables, &m, 1), 0);
}

static void
add_output(uint32_t port)
{
    struct of_action_output out = {.row = OF_ACTION(OUTPUT), .port = port, .max_len = 0xffff};
    void *av[] = {&out};
    struct of_instr_actions apply = {.row = OF_INSTR(APPLY_ACTIONS), .actions = {.n = 1, .v = av}};
    void *iv[] = {&apply};
    add_flow(0, (struct of_list){.n = 1, .v = iv});
}

static void
test_no_match(void **state)
{
    struct packet p = super_packet(VIRTIO_NET_HDR_GSO_UDP_L4);
    struct drop_sample s;
    assert_int_equal(packet_segments(&p), SEGMENTS);
    pipeline_packet(&fx->worker, &p);
    assert_int_equal(fx->drops[DROP_no_match], SEGMENTS);
    assert_int_equal(tables_counter(fx->dp->tables, 0).lookups, SEGMENTS);
    assert_int_equal(tables_counter(fx->dp->tables, 0).matched, 0);
    assert_true(drop_log_read(&fx->drop_log, DROP_no_match, 0, &s));
    assert_int_equal(s.segments, SEGMENTS);
    assert_int_equal(s.len, LEN);
}

static void
test_port_down(void **state)
{
    add_output(1);
    fx->world.port[0].link_down = true;
    struct packet p = super_packet(VIRTIO_NET_HDR_GSO_UDP_L4);
    pipeline_packet(&fx->worker, &p);
    assert_int_equal(fx->drops[DROP_port_down], SEGMENTS);
    assert_int_equal(tables_counter(fx->dp->tables, 0).matched, SEGMENTS);
}

static void
test_fragments(void **state)
{
    fx->dp->frag = OFPC_FRAG_DROP;
    struct packet p = super_packet(VIRTIO_NET_HDR_GSO_UDP_L4);
    p.fragment = true;
    pipeline_packet(&fx->worker, &p);
    assert_int_equal(fx->drops[DROP_fragment], SEGMENTS);
}

/* Those that fit go to the controllers, the others are counted: together they are all. */
static void
test_packet_ins(void **state)
{
    uint32_t n, came = 0;
    ring_free(fx->worker.packet_ins);
    fx->worker.packet_ins = ring_new(4096, 0);
    add_output(OFPP_CONTROLLER);
    struct packet p = super_packet(VIRTIO_NET_HDR_GSO_UDP_L4);
    pipeline_packet(&fx->worker, &p);
    for (; ring_peek(fx->worker.packet_ins, &n); came++)
        ring_release(fx->worker.packet_ins);
    uint64_t lost = fx->drops[DROP_packet_in_full] + fx->drops[DROP_packet_in_share];
    assert_true(came && lost);
    assert_int_equal(came + lost, SEGMENTS);
}

/* tables_configure takes tables out of the pipeline one after the other, and a worker that has read
 * the flow before goes on to where it leads. */
static void
test_removed_table(void **state)
{
    static struct table_features v[FIXTURE_TABLES];
    struct of_instr_goto_table to = {.row = OF_INSTR(GOTO_TABLE), .table_id = 2};
    void *iv[] = {&to};
    add_flow(0, (struct of_list){.n = 1, .v = iv});
    for (unsigned i = 0; i < FIXTURE_TABLES; i++)
        v[i] = tables_get(fx->dp->tables, (uint8_t)i)->features;
    v[2].present = false;
    tables_configure(fx->dp->tables, v, 1);
    struct packet p = super_packet(VIRTIO_NET_HDR_GSO_UDP_L4);
    assert_false(pipeline_preview(&fx->worker, &p).goes);
    pipeline_packet(&fx->worker, &p);
    assert_int_equal(fx->drops[DROP_no_match], SEGMENTS);
}

/* A shaper has no place for a packet that misses at a port without packet-ins: it will not leave. */
static void
test_no_packet_in(void **state)
{
    struct packet p = super_packet(VIRTIO_NET_HDR_GSO_UDP_L4);
    p.in_port = fx->world.port[0].no;
    fx->dp->tell_misses = true;
    assert_true(pipeline_preview(&fx->worker, &p).goes);
    fx->world.port[0].config = OFPPC_NO_PACKET_IN;
    assert_false(pipeline_preview(&fx->worker, &p).goes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_match),   TEST(port_down),     TEST(fragments),
        TEST(packet_ins), TEST(removed_table), TEST(no_packet_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
