/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenFlow 1.0's messages become in 1.3, and the other way round (docs/reference/openflow10.md), as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../support/hex.h"
#include <of10/door.h>
#include <oflib/text.h>

#include <stdio.h>
#include <stdlib.h>

struct fixture {
    struct of10_door *door;
    struct of_arena arena;
    uint8_t buf[OF_MSG_MAX];
    char text[8192];
};

static int
setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    f->door = of10_door_new();
    of_arena_init(&f->arena, 1 << 20);
    *state = f;
    return 0;
}

static int
teardown(void **state)
{
    struct fixture *f = *state;
    of10_door_free(f->door);
    of_arena_free(&f->arena);
    free(f);
    return 0;
}

/* A message of one piece of hexadecimal text: its length is filled in. */
static struct of_bytes
message(struct fixture *f, const char *hex)
{
    long n = hex_bytes(hex, f->buf, sizeof f->buf);
    assert_true(n >= 8);
    of_set16(f->buf + 2, (uint16_t)n);
    return (struct of_bytes){f->buf, (size_t)n};
}

static const char *
text(struct fixture *f, const struct of_dialect *d, struct of_bytes raw)
{
    struct of_wr w = of_wr_fixed((uint8_t *)f->text, sizeof f->text - 1);
    struct of_msg m;
    assert_int_equal(of_decode_as(d, raw, &f->arena, &m), 0);
    of_print_msg(&w, &m);
    f->text[w.len] = '\0';
    return f->text;
}

/* The request becomes one message, which has this in its text. */
static void
becomes(struct fixture *f, const char *hex, const char *want)
{
    assert_int_equal(of10_request(f->door, message(f, hex)), 0);
    assert_string_equal(text(f, &of_dialect_13, of10_next(f->door)), want);
    of10_passed(f->door);
    assert_int_equal(of10_next(f->door).n, 0);
}

static void
is_refused(struct fixture *f, const char *hex, int err)
{
    assert_int_equal(of10_request(f->door, message(f, hex)), err);
    assert_int_equal(of10_next(f->door).n, 0);
}

/* A message of 1.3 that becomes one of 1.0; want "": none. */
static void
answers(struct fixture *f, const struct of_msg *m, const char *want)
{
    struct of_wr in = of_wr_grow(OF_MSG_MAX), out = of_wr_grow(2 * OF_MSG_MAX);
    assert_int_equal(of_encode(&in, m), 0);
    assert_int_equal(of10_reply(f->door, (struct of_bytes){in.buf, in.len}, &out), 0);
    if (*want)
        assert_string_equal(text(f, &of_dialect_10, (struct of_bytes){out.buf, out.len}), want);
    else
        assert_int_equal(out.len, 0);
    of_wr_free(&in);
    of_wr_free(&out);
}

static void
answers_body(struct fixture *f, uint8_t type, const void *body, const char *want)
{
    const struct of_msg_row *row = of_msg_row(type);
    struct of_msg m = {.version = 4,
                       .type = type,
                       .xid = 7,
                       .row = row,
                       .body_row = row->body,
                       .body = (void *)(uintptr_t)body};
    answers(f, &m, want);
}

static void
answers_mp(struct fixture *f, uint16_t type, uint16_t flags, const void *body, const char *want)
{
    const struct of_mp_row *mp = of_mp_row(type);
    struct of_msg m = {.version = 4,
                       .type = OFPT_MULTIPART_REPLY,
                       .xid = 7,
                       .row = of_msg_row(OFPT_MULTIPART_REPLY),
                       .mp = mp,
                       .mp_flags = flags,
                       .body_row = mp->reply,
                       .body = (void *)(uintptr_t)body};
    answers(f, &m, want);
}

/* ------------------------------------------------------------------ flow-mods */

#define ALL      "003820ff 0000 000000000000 000000000000 0000 00 00 0000 00 00 0000 " ZEROS
#define ZEROS    "00000000 00000000 0000 0000"
#define IP       "003820ef 0000 000000000000 000000000000 0000 00 00 0800 00 00 0000 " ZEROS
#define TCP      "003820cf 0000 000000000000 000000000000 0000 00 00 0800 00 06 0000 " ZEROS
#define UNTAGGED "003820fd 0000 000000000000 000000000000 ffff 00 00 0000 00 00 0000 " ZEROS
#define TAGGED   "003820fd 0000 000000000000 000000000000 0005 00 00 0000 00 00 0000 " ZEROS
#define ADD      "0000000000000001 0000 0000 0000 0007 ffffffff ffff 0000"
#define HEAD     "01 0e 0000 00000007"
#define FM(match, instructions)                                                                    \
    "flow_mod{xid=7, cookie=0x1, cookie_mask=0x0, table=0, cmd=add, idle=0, hard=0, prio=7, "      \
    "buffer=no_buffer, out_port=any, out_group=any, flags=reset_counts, match={" match             \
    "}, instructions=[" instructions "]}"
#define THERE "experimenter=0x514f5346:0000000100000000,"

static void
actions(void **state)
{
    struct fixture *f = *state;
    becomes(f, HEAD ALL ADD, FM("", ""));
    becomes(f, HEAD ALL ADD "0000 0008 0002 0000", FM("", "apply:output=2"));
    becomes(f, HEAD ALL ADD "0000 0008 fffd fff0", FM("", "apply:output=controller:65509"));
    becomes(f, HEAD ALL ADD "000b 0010 0002 000000000000 0000000a 0000 0008 0003 0000",
            FM("", "apply:queue=10,output=2,queue=0,output=3"));
    becomes(f, HEAD ALL ADD "0004 0010 020000000001 000000000000",
            FM("", "apply:set_field=eth_src:02:00:00:00:00:01"));
    /* what the match promises needs no more than 1.3's actions */
    becomes(f, HEAD TCP ADD "0006 0008 0a000001 0008 0008 b9 000000 000a 0008 0051 0000",
            FM("eth_type=0x0800,ip_proto=6",
               "apply:set_field=ipv4_src:10.0.0.1,set_field=ip_dscp:46,set_field=tcp_dst:81"));
    becomes(f, HEAD UNTAGGED ADD "0001 0008 0005 0000",
            FM("vlan_vid=none", "apply:push_vlan=0x8100,set_field=vlan_vid:5"));
    becomes(f, HEAD UNTAGGED ADD "0003 0008 00000000", FM("vlan_vid=none", ""));
    becomes(f, HEAD TAGGED ADD "0001 0008 0006 0000 0002 0008 03 000000",
            FM("vlan_vid=5", "apply:set_field=vlan_vid:6,set_field=vlan_pcp:3"));
    becomes(f, HEAD TAGGED ADD "0003 0008 00000000", FM("vlan_vid=5", "apply:pop_vlan"));
    /* what it doesn't promise is set where it is there */
    becomes(f, HEAD ALL ADD "0001 0008 0005 0000 0002 0008 03 000000",
            FM("", "apply:" THERE "push_vlan=0x8100,set_field=vlan_vid:5,set_field=vlan_pcp:3"));
    becomes(f, HEAD IP ADD "0009 0008 0050 0000",
            FM("eth_type=0x0800", "apply:" THERE "set_field=tcp_src:80,set_field=udp_src:80"));
    becomes(f, HEAD ALL ADD "0007 0008 0a000001",
            FM("", "apply:" THERE "set_field=ipv4_dst:10.0.0.1"));
}

static void
wrong_actions(void **state)
{
    struct fixture *f = *state;
    is_refused(f, HEAD ALL ADD "0001 0008 1000 0000", OF_BAD_ACTION(BAD_ARGUMENT));
    is_refused(f, HEAD ALL ADD "0002 0008 08 000000", OF_BAD_ACTION(BAD_ARGUMENT));
    is_refused(f, HEAD ALL ADD "000b 0010 fffb 000000000000 0000000a", OF_BAD_ACTION(BAD_OUT_PORT));
    is_refused(f, HEAD ALL ADD "ffff 0008 00002320", OF_BAD_ACTION(BAD_EXPERIMENTER));
    is_refused(f, HEAD ALL ADD "0019 0008 00000000", OF_BAD_ACTION(BAD_TYPE));
    is_refused(f, HEAD ALL ADD "0000 0010 0002 0000", OF_BAD_ACTION(BAD_LEN));
    is_refused(f, HEAD ALL ADD "0000 0010 0002 0000 00000000 00000000", OF_BAD_ACTION(BAD_LEN));
}

#define MATCH(match)                                                                               \
    "flow_mod{xid=7, cookie=0x1, cookie_mask=0x0, table=0, cmd=add, idle=0, hard=0, prio=7, "      \
    "buffer=no_buffer, out_port=any, out_group=any, flags=reset_counts, match={" match             \
    "}, instructions=[]}"

static void
matches(void **state)
{
    struct fixture *f = *state;
    becomes(f, HEAD "003820fe fffe 000000000000 000000000000 0000 00 00 0000 00 00 0000" ZEROS ADD,
            MATCH("in_port=local"));
    /* whatever doesn't apply is left out: nw_ and tp_ without dl_type, nw_proto of IPv6 */
    becomes(f,
            HEAD "0010001f 0000 000000000000 000000000000 0000 00 00 0000 b8 06 0000"
                 "0a000001 0a000002 0050 0051" ADD,
            MATCH(""));
    becomes(f, HEAD "002820ff 0000 000000000000 000000000000 0000 05 00 0000 00 00 0000" ZEROS ADD,
            MATCH("vlan_vid=any,vlan_pcp=5"));
    becomes(f,
            HEAD "0030000f 0000 000000000000 000000000000 0000 00 00 86dd b8 06 0000"
                 "0a000001 0a000002 0050 0051" ADD,
            MATCH("eth_type=0x86dd"));
    becomes(f,
            HEAD "0030000f 0000 000000000000 000000000000 0000 00 00 0800 00 01 0000"
                 "0a000001 0a000002 0008 0000" ADD,
            MATCH("eth_type=0x0800,ip_proto=1,ipv4_src=10.0.0.1,ipv4_dst=10.0.0.2,"
                  "icmpv4_type=8,icmpv4_code=0"));
    becomes(f,
            HEAD "0030200f 0000 000000000000 000000000000 0000 00 00 0806 00 02 0000"
                 "0a000001 0a000002 0008 0000" ADD,
            MATCH("eth_type=0x0806,arp_op=2,arp_tpa=10.0.0.2"));
    becomes(f,
            HEAD "003608ef 0000 000000000000 000000000000 0000 00 00 0800 00 00 0000"
                 "0a010203 0a000001 0000 0000" ADD,
            MATCH("eth_type=0x0800,ipv4_src=10.1.2.0/24,ipv4_dst=10.0.0.0/8"));
    becomes(f, HEAD "ffffffff 0000 000000000000 000000000000 0000 00 00 0000 00 00 0000" ZEROS ADD,
            MATCH(""));
    is_refused(f,
               HEAD "003820fd 0000 000000000000 000000000000 1000 00 00 0000 00 00 0000" ZEROS ADD,
               OF_BAD_MATCH(BAD_VALUE));
    is_refused(f,
               HEAD "002820ff 0000 000000000000 000000000000 0000 08 00 0000 00 00 0000" ZEROS ADD,
               OF_BAD_MATCH(BAD_VALUE));
    /* of an ICMP type only the lower 8 bits count (1.0.0, table 3) */
    becomes(f,
            HEAD "0038208f 0000 000000000000 000000000000 0000 00 00 0800 00 01 0000"
                 "00000000 00000000 0108 0000" ADD,
            MATCH("eth_type=0x0800,ip_proto=1,icmpv4_type=8"));
}

static void
flow_mods(void **state)
{
    struct fixture *f = *state;
    /* nothing wildcarded: before all others */
    becomes(f,
            HEAD "00000000 0001 020000000001 020000000002 ffff 00 00 0800 00 06 0000"
                 "0a000001 0a000002 1388 0050"
                 "0000000000000000 0000 000a 001e 0005 00000001 0002 0003",
            "flow_mod{xid=7, cookie=0x0, cookie_mask=0x0, table=0, cmd=add, idle=10, hard=30, "
            "prio=65535, buffer=1, out_port=any, out_group=any, "
            "flags=send_flow_rem|check_overlap|reset_counts, match={in_port=1,"
            "eth_dst=02:00:00:00:00:02,eth_src=02:00:00:00:00:01,eth_type=0x0800,vlan_vid=none,"
            "ip_dscp=0,ip_proto=6,ipv4_src=10.0.0.1,ipv4_dst=10.0.0.2,tcp_src=5000,tcp_dst=80}, "
            "instructions=[]}");
    becomes(f,
            HEAD ALL "0000000000000000 0003 0000 0000 0005 ffffffff fffe 0000"
                     "0000 0008 0002 0000",
            "flow_mod{xid=7, cookie=0x0, cookie_mask=0x0, table=0, cmd=delete, idle=0, hard=0, "
            "prio=5, buffer=no_buffer, out_port=local, out_group=any, flags=0, match={}, "
            "instructions=[]}");
    is_refused(f, HEAD ALL "0000000000000000 0005 0000 0000 0005 ffffffff ffff 0000",
               OF_FLOW_MOD_FAILED(BAD_COMMAND));
    is_refused(f, HEAD ALL "0000000000000000 0000 0000 0000 0005 ffffffff ffff 0008",
               OF_FLOW_MOD_FAILED(BAD_FLAGS));
    assert_int_equal(
        of10_request(f->door, message(f, HEAD ALL "0000000000000000 0004 0000 0000 0005 ffffffff "
                                                  "ffff 0004")),
        0); /* nothing is in the emergency table */
    assert_int_equal(of10_next(f->door).n, 0);
}

/* An error of 1.3 that answers this request, as type and code of 1.0. */
static void
error_is(struct fixture *f, const char *request, uint16_t type, uint16_t code, const char *want)
{
    char all[200];
    struct of_error e = {.type = type, .code = code};
    struct of_bytes m = message(f, request);
    if (!of10_request(f->door, m))
        of10_take(f->door);
    snprintf(all, sizeof all, "error{xid=7, %s, data=", want);
    size_t n = strlen(all);
    for (size_t i = 0; i < m.n; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%02x", m.p[i]);
    snprintf(all + n, sizeof all - n, "}");
    answers_body(f, OFPT_ERROR, &e, all);
    of10_passed(f->door);
}

/* The error of a request that took many turns comes when the next one waits already. */
static void
late_errors(void **state)
{
    static const char qos[] = "01 16 0000 00000001 0000000000000000";
    struct of_error e = {.type = OFPET_SCHED_FAILED, .code = OFPSFC_KERNEL};
    struct fixture *f = *state;
    assert_int_equal(of10_request(f->door, message(f, qos)), 0);
    of10_take(f->door);
    of10_passed(f->door);
    assert_int_equal(of10_request(f->door, message(f, "01 02 0000 00000007")), 0);
    of10_take(f->door);
    of10_passed(f->door);
    assert_int_equal(of10_request(f->door, message(f, "01 12 0000 00000007")), 0);
    answers_body(f, OFPT_ERROR, &e,
                 "error{xid=7, type=sched_failed, code=12, "
                 "data=01160010000000010000000000000000}");
    assert_string_equal(text(f, &of_dialect_13, of10_take(f->door)), "barrier_request{xid=7}");
    answers_body(f, OFPT_ERROR, &e,
                 "error{xid=7, type=sched_failed, code=12, data=0112000800000007}");
    assert_int_equal(of10_next(f->door).n, 0);
    of10_passed(f->door);
}

static void
errors(void **state)
{
    static const char barrier[] = "01 12 0000 00000007", flow[] = "01 0e 0000 00000007";
    struct fixture *f = *state;
    error_is(f, barrier, OFPET_BAD_REQUEST, OFPBRC_BUFFER_EMPTY, "type=bad_request, code=7");
    error_is(f, barrier, OFPET_BAD_REQUEST, OFPBRC_IS_SLAVE, "type=bad_request, code=5");
    error_is(f, barrier, OFPET_BAD_REQUEST, OFPBRC_BAD_PACKET, "type=bad_request, code=6");
    error_is(f, barrier, OFPET_BAD_REQUEST, 999, "type=bad_request, code=5");
    error_is(f, flow, OFPET_BAD_ACTION, OFPBAC_BAD_QUEUE, "type=bad_action, code=8");
    error_is(f, flow, OFPET_BAD_ACTION, OFPBAC_MATCH_INCONSISTENT, "type=flow_mod_failed, code=5");
    error_is(f, flow, OFPET_BAD_ACTION, OFPBAC_BAD_SET_ARGUMENT, "type=bad_action, code=5");
    error_is(f, flow, OFPET_BAD_MATCH, OFPBMC_BAD_VALUE, "type=flow_mod_failed, code=5");
    error_is(f, barrier, OFPET_BAD_MATCH, OFPBMC_BAD_VALUE, "type=bad_request, code=5");
    error_is(f, flow, OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL, "type=flow_mod_failed, code=0");
    error_is(f, flow, OFPET_FLOW_MOD_FAILED, OFPFMFC_OVERLAP, "type=flow_mod_failed, code=1");
    error_is(f, flow, OFPET_FLOW_MOD_FAILED, OFPFMFC_BAD_FLAGS, "type=flow_mod_failed, code=5");
    error_is(f, barrier, OFPET_PORT_MOD_FAILED, OFPPMFC_BAD_HW_ADDR,
             "type=port_mod_failed, code=1");
    error_is(f, barrier, OFPET_PORT_MOD_FAILED, OFPPMFC_BAD_CONFIG, "type=bad_request, code=5");
    error_is(f, barrier, OFPET_QUEUE_OP_FAILED, OFPQOFC_BAD_QUEUE, "type=queue_op_failed, code=1");
}

/* The request's 64 bytes are those that the peer has sent, in either envelope. */
static void
qos_errors(void **state)
{
    static const char want[] =
        "error{xid=7, type=sched_failed, code=7, data="
        "0116001800000007050000000000000000000001"
        "0000000a00000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "00000011"
        "6e6f}";
    struct fixture *f = *state;
    uint8_t data[4 + 64 + 4 + 2] = "QOSF";
    struct of_error e = {.type = OFPET_SCHED_FAILED, .code = 7, .data = {data + 4, 70}};
    memcpy(data + 68, "\0\0\0\x11no", 6);
    of10_request(f->door, message(f, "01 16 0000 00000007 05000000 00000000 00000001 0000000a"));
    of10_take(f->door);
    answers_body(f, OFPT_ERROR, &e, want);
    e = (struct of_error){.type = OFPET_EXPERIMENTER, .code = 7, .data = {data, 74}};
    answers_body(f, OFPT_ERROR, &e, want);
}

/* ------------------------------------------------------------------ other requests */

static void
requests(void **state)
{
    struct fixture *f = *state;
    becomes(f, "01 0d 0000 00000007 ffffffff ffff 0008 0000 0008 fffb 0000 aabb",
            "packet_out{xid=7, buffer=no_buffer, in_port=any, actions=[output=flood], data=aabb}");
    becomes(f, "01 09 0000 00000007 0001 ffe6", "set_config{xid=7, flags=drop, miss=no_buffer}");
    becomes(f, "01 0f 0000 00000007 0001 020000000001 00000003 0000000b 00000080 00000000",
            "port_mod{xid=7, port=1, addr=02:00:00:00:00:01, conf=port_down, mask=port_down, "
            "adv=copper}");
    becomes(f, "01 10 0000 00000007 0001 0000 " ALL "ff 00 ffff",
            "multipart_request{xid=7, multipart=flow, flags=0, table=all, out_port=any, "
            "out_group=any, cookie=0x0, cookie_mask=0x0, match={}}");
    becomes(f, "01 10 0000 00000007 0001 0000 " ALL "fe 00 ffff", /* has no flows */
            "multipart_request{xid=7, multipart=flow, flags=0, table=all, out_port=any, "
            "out_group=4294967041, cookie=0x0, cookie_mask=0x0, match={}}");
    becomes(f, "01 10 0000 00000007 0004 0000 ffff 000000000000",
            "multipart_request{xid=7, multipart=port_stats, flags=0, port=any}");
    becomes(f, "01 10 0000 00000007 0005 0000 fffc 0000 ffffffff",
            "multipart_request{xid=7, multipart=queue, flags=0, port=any, queue=all}");
    becomes(f, "01 14 0000 00000007 0001 0000", "queue_get_config_request{xid=7, port=1}");
    becomes(f, "01 04 0000 00000007 00002320 0000000a 00000002",
            "role_request{xid=7, role=slave, generation=0x0}");
    becomes(f, "01 16 0000 00000007 00000000 00 01 0000 0000ffff 00000000",
            "qos{xid=7, content=00000000000100"
            "00ffffffff00000000}");
    is_refused(f, "01 04 0000 00000007 00002320 0000000c 00000001", OF_BAD_REQUEST(BAD_EXP_TYPE));
    is_refused(f, "01 04 0000 00000007 00002321 00000001", OF_BAD_REQUEST(BAD_EXPERIMENTER));
    is_refused(f, "01 04 0000 00000007 4f4e4600 000008fc", OF_BAD_REQUEST(BAD_EXPERIMENTER));
    is_refused(f, "01 04 0000 00000007 0000", OF_BAD_REQUEST(BAD_LEN));
    is_refused(f, "01 10 0000 00000007 0006 0000", OF_BAD_REQUEST(BAD_MULTIPART));
    is_refused(f, "01 0a 0000 00000007", OF_BAD_REQUEST(BAD_TYPE));
    is_refused(f, "01 17 0000 00000007", OF_BAD_REQUEST(BAD_TYPE));
    is_refused(f, "04 05 0000 00000007", OF_BAD_REQUEST(BAD_VERSION));
}

/* ------------------------------------------------------------------ replies */

static struct of_oxm
oxm(enum oxm_field field, uint64_t v)
{
    struct of_oxm o = {.row = &oxm_rows[field]};
    oxm_set_number(o.row, o.value, v);
    memset(o.mask, 0xff, sizeof o.mask);
    return o;
}

static void
asynchronous(void **state)
{
    struct fixture *f = *state;
    struct of_oxm in_port = oxm(OXM_in_port, 3);
    struct of_packet_in p = {.buffer_id = 5,
                             .total_len = 60,
                             .reason = OFPR10_TABLE_MISS,
                             .match = {1, &in_port},
                             .data = {(const uint8_t *)"\xaa", 1}};
    answers_body(f, OFPT_PACKET_IN, &p,
                 "packet_in{xid=7, buffer=5, total_len=60, in_port=3, reason=no_match, data=aa}");
    in_port = oxm(OXM_in_port, 0xff01); /* beyond 1.0's ports */
    answers_body(f, OFPT_PACKET_IN, &p, "");
    struct of_port_status s = {.reason = OFPPR_MODIFY,
                               .port_no = 2,
                               .name = "p2",
                               .config = OFPPC_NO_FWD,
                               .state = OFPPS_LINK_DOWN | OFPPS_LIVE,
                               .curr = OFPPF_40GB_FD | OFPPF_10GB_FD | OFPPF_FIBER};
    answers_body(f, OFPT_PORT_STATUS, &s,
                 "port_status{xid=7, reason=modify, port=2, addr=00:00:00:00:00:00, name=\"p2\", "
                 "conf=no_fwd, state=link_down, curr=10gb_fd|fiber, advertised=0, supported=0, "
                 "peer=0}");
    struct of_oxm v6 = oxm(OXM_eth_type, 0x86dd);
    struct of_flow_removed r = {.reason = OFPRR_GROUP_DELETE, .priority = 9, .match = {1, &v6}};
    answers_body(f, OFPT_FLOW_REMOVED, &r,
                 "flow_removed{xid=7, match={eth_type=0x86dd}, cookie=0x0, prio=9, reason=delete, "
                 "duration_sec=0, duration_nsec=0, idle=0, packet_count=0, byte_count=0}");
    v6 = oxm(OXM_metadata, 1);
    answers_body(f, OFPT_FLOW_REMOVED, &r, "");
    struct of_async async = {0};
    answers_body(f, OFPT_GET_ASYNC_REPLY, &async, "");
}

static void
features(void **state)
{
    struct fixture *f = *state;
    struct of_features_reply r = {.datapath_id = 9, .n_buffers = 256, .n_tables = 64};
    struct of_port p = {.port_no = 1, .name = "p1"}, beyond = {.port_no = 0x10000};
    void *v[] = {&p, &beyond};
    struct of_mp_port_desc_reply d = {.ports = {.n = 2, .v = v}};
    assert_int_equal(of10_request(f->door, message(f, "01 05 0000 00000007")), 0);
    assert_string_equal(text(f, &of_dialect_13, of10_next(f->door)), "features_request{xid=7}");
    answers_body(f, OFPT_FEATURES_REPLY, &r, "");
    of10_passed(f->door);
    assert_string_equal(text(f, &of_dialect_13, of10_next(f->door)),
                        "multipart_request{xid=7, multipart=port_desc, flags=0}");
    answers_mp(f, OFPMP_PORT_DESC, OFPMPF_REPLY_MORE, &d, "");
    p.port_no = OFPP_LOCAL;
    answers_mp(
        f, OFPMP_PORT_DESC, 0, &d,
        "features_reply{xid=7, dpid=0x0000000000000009, n_buffers=256, n_tables=64, "
        "capabilities=flow_stats|table_stats|port_stats|queue_stats|arp_match_ip, actions=0xfff, "
        "ports=[{port=1, addr=00:00:00:00:00:00, name=\"p1\", conf=0, state=0, curr=0, "
        "advertised=0, supported=0, peer=0}, {port=local, addr=00:00:00:00:00:00, name=\"p1\", "
        "conf=0, state=0, curr=0, advertised=0, supported=0, peer=0}]}");
}

static void
tables(void **state)
{
    struct fixture *f = *state;
    struct of_table_features known = {.table_id = 3, .name = "acl", .max_entries = 50};
    struct of_table_stats stats = {
        .table_id = 3, .active_count = 1, .lookup_count = 2, .matched_count = 3};
    void *v[] = {&known}, *w[] = {&stats};
    struct of_mp_table_features t = {.tables = {.n = 1, .v = v}};
    struct of_mp_table_reply r = {.tables = {.n = 1, .v = w}};
    answers_mp(f, OFPMP_TABLE_FEATURES, 0, &t, "");
    answers_mp(f, OFPMP_TABLE, 0, &r,
               "stats_reply{xid=7, multipart=table, flags=0, tables=[{table=3, name=\"acl\", "
               "wildcards=0x3fffff, max_entries=50, active_count=1, lookup_count=2, "
               "matched_count=3}]}");
}

/* A flow's match and actions in 1.0; NULL: the flow is left out. */
static void
flow_is(struct fixture *f, const char *match, const char *instructions, const char *want)
{
    char all[600];
    struct of_parse p = {.arena = &f->arena};
    struct of_flow_stats flow = {.priority = 5};
    void *v[] = {&flow};
    struct of_mp_flow_reply r = {.flows = {.n = 1, .v = v}};
    assert_int_equal(of_parse_match(&p, match, &flow.match), 0);
    if (*instructions && of_parse_instruction(&p, instructions, &flow.instructions))
        fail_msg("%s: %s", instructions, p.why);
    snprintf(all, sizeof all,
             "stats_reply{xid=7, multipart=flow, flags=0, flows=[{table=0, match={%s}, "
             "duration_sec=0, duration_nsec=0, prio=5, idle=0, hard=0, cookie=0x0, packet_count=0, "
             "byte_count=0, actions=[%s]}]}",
             match, want ? want : "");
    answers_mp(f, OFPMP_FLOW, 0, &r,
               want ? all : "stats_reply{xid=7, multipart=flow, flags=0, flows=[]}");
}

static void
flows(void **state)
{
    static const char tcp[] = "eth_type=0x0800,ip_proto=6";
    struct fixture *f = *state;
    flow_is(f, "", "", "");
    flow_is(f, "in_port=1", "apply:output=2,output=controller:99", "output=2,output=controller:99");
    flow_is(f, "", "apply:queue=10,output=2,queue=0,output=3", "enqueue=2:10,output=3");
    flow_is(f, "", "apply:queue=10,output=controller:9", "output=controller:9");
    flow_is(f, tcp,
            "apply:set_field=ipv4_src:10.0.0.1,set_field=ip_dscp:46,set_field=tcp_dst:81,"
            "set_field=eth_dst:02:00:00:00:00:01",
            "set_nw_src=0xa000001,set_nw_tos=184,set_tp_dst=81,set_dl_dst=02:00:00:00:00:01");
    flow_is(f, "vlan_vid=none", "apply:push_vlan=0x8100,set_field=vlan_vid:5", "set_vlan_vid=5");
    flow_is(f, "vlan_vid=5", "apply:set_field=vlan_pcp:3,pop_vlan", "set_vlan_pcp=3,strip_vlan");
    flow_is(f, "",
            "apply:" THERE "push_vlan=0x8100,set_field=vlan_vid:5,set_field=tcp_src:80,"
            "set_field=udp_src:80",
            "set_vlan_vid=5,set_tp_src=80");
    /* what 1.0 can't say */
    flow_is(f, "", "apply:output=65536", NULL);
    flow_is(f, "", "apply:group=1", NULL);
    flow_is(f, "", "apply:nw_dec", NULL);
    flow_is(f, "", "apply:queue=10,output=flood", NULL);
    flow_is(f, "", "apply:push_vlan=0x8100", NULL);
    flow_is(f, "", "apply:push_vlan=0x8100,set_field=vlan_vid:5", NULL); /* a second tag */
    flow_is(f, "vlan_vid=none", "apply:push_vlan=0x88a8,set_field=vlan_vid:5", NULL);
    flow_is(f, "", "apply:set_field=vlan_vid:5", NULL); /* 1.0 would add a tag */
    flow_is(f, tcp, "apply:set_field=ip_ecn:1", NULL);
    flow_is(f, "eth_type=0x86dd", "apply:set_field=ip_dscp:46", NULL);
    flow_is(f, "eth_type=0x86dd,ip_proto=6", "apply:set_field=tcp_src:1", NULL);
    flow_is(f, "", "goto:1", NULL);
    flow_is(f, "", "write:output=2", NULL);
    flow_is(f, "eth_type=0x86dd,ipv6_src=::1", "apply:output=2", NULL);
    flow_is(f, "eth_src=02:00:00:00:00:00/ff:00:00:00:00:00", "apply:output=2", NULL);
    flow_is(f, "eth_type=0x0800,ipv4_src=10.0.0.1/255.0.0.255", "apply:output=2", NULL);
    flow_is(f, "vlan_vid=any", "apply:output=2", NULL);
    flow_is(f, "vlan_vid=1/1", "apply:output=2", NULL); /* any odd VID */
}

/* 1.0's entries are longer: what was one message of 1.3 is two. */
static void
pieces(void **state)
{
    enum { N = 1000 };
    struct fixture *f = *state;
    struct of_wr in = of_wr_grow(OF_MSG_MAX), out = of_wr_grow(4 * OF_MSG_MAX);
    struct of_flow_stats flow = {.priority = 5};
    void *v[N];
    for (int i = 0; i < N; i++)
        v[i] = &flow;
    struct of_mp_flow_reply r = {.flows = {.n = N, .v = v}};
    assert_int_equal(of_encode_multipart(&in, OFPT_MULTIPART_REPLY, 7, OFPMP_FLOW, 0, &r), 0);
    assert_int_equal(of10_reply(f->door, (struct of_bytes){in.buf, in.len}, &out), 0);
    uint32_t n = 0;
    for (size_t at = 0; at < out.len;) {
        size_t len = of_get16(out.buf + at + 2);
        n += (uint32_t)(len - 12) / 88;
        assert_int_equal(of_get16(out.buf + at + 10), at + len < out.len);
        at += len;
    }
    assert_int_equal(n, N);
    of_wr_free(&in);
    of_wr_free(&out);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(actions),     T(wrong_actions), T(matches),  T(flow_mods),    T(errors),
        T(late_errors), T(qos_errors),    T(requests), T(asynchronous), T(features),
        T(tables),      T(flows),         T(pieces),
    };
    return cmocka_run_group_tests_name("of10-door", tests, NULL, NULL);
}
