/* SPDX-License-Identifier: Apache-2.0 */
/* Text and JSON of messages: what is printed can be parsed again; what can't be parsed is answered
 * with a sentence. */
#include <oflib/text.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static struct of_arena arena;
static struct of_parse parse;

static int
setup(void **state)
{
    of_arena_init(&arena, 1 << 20);
    parse = (struct of_parse){.arena = &arena};
    return 0;
}

static int
teardown(void **state)
{
    of_arena_free(&arena);
    return 0;
}

/* What was written, in the arena. */
static char *
text_of(struct of_wr *w)
{
    char *s = of_arena_alloc(&arena, w->len + 1);
    assert_non_null(s);
    if (w->len)
        memcpy(s, w->buf, w->len);
    of_wr_free(w);
    return s;
}

static char *
match_text(const struct of_match *m)
{
    struct of_wr w = of_wr_grow(65536);
    of_print_match(&w, m);
    return text_of(&w);
}

static char *
list_text(const struct of_list_row *row, const struct of_list *list)
{
    struct of_wr w = of_wr_grow(65536);
    of_print_list(&w, row, list);
    return text_of(&w);
}

static void
parse_match(const char *text, struct of_match *m)
{
    if (of_parse_match(&parse, text, m))
        fail_msg("%s: %s", text, parse.why);
}

/* `text` parses, and prints as `printed` (NULL: as it is). */
static void
same_match(const char *text, const char *printed)
{
    struct of_match m, again;
    parse_match(text, &m);
    assert_string_equal(match_text(&m), printed ? printed : text);
    parse_match(match_text(&m), &again);
    assert_int_equal(m.n, again.n);
    for (uint32_t i = 0; i < m.n; i++)
        assert_memory_equal(&m.v[i], &again.v[i], sizeof m.v[i]);
}

static void
matches(void **state)
{
    same_match("", NULL);
    same_match("in_port=1,eth_type=0x0800,ipv4_src=10.0.0.0/8", NULL);
    same_match("in_port=controller", NULL);
    same_match("in_port=ctrl", "in_port=controller");
    same_match("tcp_dst=666,ip_proto=6,eth_type=0x800,in_port=1",
               "in_port=1,eth_type=0x0800,ip_proto=6,tcp_dst=666");
    same_match("eth_type=2048,ip_src=10.1.0.0/255.255.0.0", "eth_type=0x0800,ipv4_src=10.1.0.0/16");
    same_match("eth_type=0x0800,ipv4_src=10.0.0.1/255.0.0.255", NULL);
    same_match("eth_dst=01:00:00:00:00:00/01:00:00:00:00:00", NULL);
    same_match("vlan_vid=any,vlan_pcp=3", NULL);
    same_match("vlan_vid=none", NULL);
    same_match("vlan_vid=10", NULL);
    same_match("vlan_vid=0", NULL);
    same_match("vlan_vid=0x100a", "vlan_vid=10");
    same_match("vlan_vid=0x1001/0x1001", NULL);
    same_match("vlan_vid=1/1", "vlan_vid=0x1001/0x1001");
    same_match("vlan_vid=904/0x1fff", "vlan_vid=0x1388/0x1fff");
    same_match("vlan_vid=0x0001/0x0001", NULL);
    same_match("metadata=0x1/0xff", NULL);
    same_match("meta=255", "metadata=0xff");
    same_match("eth_type=0x86dd,ipv6_src=fe80::/10,ipv6_flabel=0x1", NULL);
    same_match("eth_type=0x86dd,ipv6_exthdr=hop|frag", "eth_type=0x86dd,ipv6_exthdr=0x0050");
    same_match("eth_type=0x0806,arp_op=1,arp_spa=10.0.0.1", NULL);
    same_match(",eth_type=0x0800,", "eth_type=0x0800");
}

/* A value of a field that its checks accept, after what it needs. */
static void
add_with_prereqs(struct of_match *m, const struct oxm_row *row, uint8_t fill, bool mask)
{
    const struct oxm_prereq *need = row->prereq;
    if (need->field >= 0 && !of_match_find(m, (enum oxm_field)need->field)) {
        add_with_prereqs(m, &oxm_rows[need->field], 0, false);
        struct of_oxm *o = &m->v[m->n - 1];
        if (need->n)
            oxm_set_number(o->row, o->value, need->value[0]);
        else if (need->field == OXM_vlan_vid)
            oxm_set_number(o->row, o->value, OFPVID_PRESENT);
    }
    struct of_oxm *o = &m->v[m->n++];
    *o = (struct of_oxm){.row = row, .has_mask = mask};
    memset(o->mask, mask ? 0xfe : 0xff, row->bytes);
    memset(o->value, fill, row->bytes);
    int spare = row->bytes * 8 - row->bits;
    o->value[0] &= (uint8_t)(spare >= 8 ? 0 : 0xff >> spare);
    if (spare > 8)
        o->value[1] &= (uint8_t)(0xff >> (spare - 8));
    if (mask) {
        o->mask[0] &= (uint8_t)(spare >= 8 ? 0 : 0xff >> spare);
        if (spare > 8)
            o->mask[1] &= (uint8_t)(0xff >> (spare - 8));
    }
    if (row->field == OXM_vlan_vid) {
        o->value[0] |= 0x10;
        o->mask[0] |= 0x10;
    }
}

static void
every_oxm_field(void **state)
{
    static const uint8_t fills[] = {0, 0x02, 0x7e, 0xfe, 0x0a};
    for (int i = 0; i < OXM_N; i++) {
        for (size_t k = 0; k < sizeof fills * 2; k++) {
            struct of_oxm v[8] = {0};
            struct of_match m = {.v = v}, again;
            bool mask = k % 2;
            if (mask && !oxm_rows[i].maskable)
                continue;
            add_with_prereqs(&m, &oxm_rows[i], fills[k / 2], mask);
            if (of_match_check(&m))
                continue; /* a value that can't be, like an eth_type that isn't IP */
            char *text = match_text(&m);
            parse_match(text, &again);
            assert_int_equal(again.n, m.n);
            for (uint32_t j = 0; j < m.n; j++) {
                assert_ptr_equal(again.v[j].row, m.v[j].row);
                assert_int_equal(again.v[j].has_mask, m.v[j].has_mask);
                assert_memory_equal(again.v[j].value, m.v[j].value, m.v[j].row->bytes);
                assert_memory_equal(again.v[j].mask, m.v[j].mask, m.v[j].row->bytes);
            }
            of_arena_reset(&arena);
        }
    }
}

static void
prerequisites_have_smaller_numbers(void **state)
{
    for (int i = 0; i < OXM_N; i++)
        assert_true(oxm_rows[i].prereq->field < oxm_rows[i].field);
}

static void
same_actions(const char *text, const char *printed)
{
    struct of_list list, decoded;
    if (of_parse_actions(&parse, text, &list))
        fail_msg("%s: %s", text, parse.why);
    assert_string_equal(list_text(&of_list_actions, &list), printed ? printed : text);
    /* And what goes over the wire is the same. */
    struct of_wr w = of_wr_grow(65536);
    assert_int_equal(of_encode_list(&w, &of_list_actions, &list), 0);
    assert_int_equal(
        of_decode_list((struct of_bytes){w.buf, w.len}, &of_list_actions, &arena, &decoded), 0);
    assert_string_equal(list_text(&of_list_actions, &decoded), printed ? printed : text);
    of_wr_free(&w);
}

static void
actions(void **state)
{
    same_actions("", NULL);
    same_actions("output=2", NULL);
    same_actions("output=controller:128", NULL);
    same_actions("output=ctrl", "output=controller");
    same_actions("output:in_port", "output=in_port");
    same_actions("output=2:100", NULL);
    same_actions("queue=2,output=2", NULL);
    same_actions("set_queue=0x10", "queue=16");
    same_actions("ttl_out,ttl_in,mpls_ttl=3,mpls_dec,nw_ttl=64,nw_dec", NULL);
    same_actions("dec_nw_ttl,dec_ttl,copy_ttl_in", "nw_dec,nw_dec,ttl_in");
    same_actions("push_vlan=0x8100,pop_vlan,push_mpls=0x8847,pop_mpls=0x800,push_pbb=0x88e7,"
                 "pop_pbb",
                 NULL);
    same_actions("group=1,group=any", NULL);
    same_actions("set_field=eth_src:00:00:00:00:00:01", NULL);
    same_actions("set_field=vlan_vid:10,set_field=tunn_id:0xffff",
                 "set_field=vlan_vid:10,set_field=tunnel_id:0xffff");
    same_actions("set_field=ipv6_dst:fe80::1", NULL);
    same_actions("set_field=ipv4_dst=10.0.0.1", "set_field=ipv4_dst:10.0.0.1");
    same_actions("experimenter=0x1234:0a0b0c0d00000000", NULL);
}

static void
same_instructions(const char *text, const char *printed)
{
    char *words = strdup(text), *save, *word;
    struct of_list list = {0};
    for (word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        assert_true(of_is_instruction(word));
        if (of_parse_instruction(&parse, word, &list))
            fail_msg("%s: %s", word, parse.why);
    }
    assert_string_equal(list_text(&of_list_instructions, &list), printed ? printed : text);
    free(words);
}

static void
instructions(void **state)
{
    same_instructions("meter:3 apply:queue=2,output=2 clear write:group=1 meta:0x1/0xff goto:1",
                      NULL);
    same_instructions("meta:0x1", NULL);
    same_instructions("metadata:1 goto_table:7 write_actions:pop_vlan", "meta:0x1 goto:7 "
                                                                        "write:pop_vlan");
    same_instructions("apply:", NULL);
    same_instructions("apply", "apply:");
    same_instructions("experimenter:0x5:00ff", NULL);
    assert_false(of_is_instruction("meta=1"));
    assert_false(of_is_instruction("in_port=1"));
    assert_false(of_is_instruction("eth_src=00:00:00:00:00:01"));
}

static void
bands_and_buckets(void **state)
{
    struct of_list bands = {0}, buckets = {0};
    assert_int_equal(of_parse_band(&parse, "drop:rate=1000,burst=100", &bands), 0);
    assert_int_equal(of_parse_band(&parse, "dscp_remark:rate=5,burst_size=1,prec_level=1", &bands),
                     0);
    assert_string_equal(list_text(&of_list_bands, &bands),
                        "drop:rate=1000,burst=100 dscp_remark:rate=5,burst=1,prec_level=1");
    char words[][32] = {"weight=1,port=2,group=any", "output=2", "weight=3", "group=4,output=1",
                        "output=7"};
    char *args[] = {words[0], words[1], words[2], words[3], words[4]};
    assert_int_equal(of_parse_buckets(&parse, args, 5, &buckets), 0);
    assert_string_equal(list_text(&of_list_buckets, &buckets),
                        "{weight=1, port=2, group=any, actions=[output=2]}, "
                        "{weight=3, port=any, group=any, actions=[group=4,output=1]}, "
                        "{weight=0, port=any, group=any, actions=[output=7]}");
}

static void
fields(void **state)
{
    struct of_flow_mod fm = {.out_port = 77};
    const char *text = "cmd=mods,table=all,prio=10,idle=5,hard_timeout=6,buffer=none,"
                       "cookie=0x12,flags=send_flow_rem+0x4,out_group=any,";
    assert_int_equal(of_parse_fields(&parse, &of_row_flow_mod, text, &fm), 0);
    assert_int_equal(fm.command, OFPFC_MODIFY_STRICT);
    assert_int_equal(fm.table_id, 255);
    assert_int_equal(fm.priority, 10);
    assert_int_equal(fm.idle_timeout, 5);
    assert_int_equal(fm.hard_timeout, 6);
    assert_int_equal(fm.buffer_id, OFP_NO_BUFFER);
    assert_int_equal(fm.cookie, 0x12);
    assert_int_equal(fm.flags, OFPFF_SEND_FLOW_REM | OFPFF_RESET_COUNTS);
    assert_int_equal(fm.out_group, OFPG_ANY);
    assert_int_equal(fm.out_port, 77);
}

/* Refused, with a sentence that has `word` in it. */
#define REFUSED(call, word)                                                                        \
    do {                                                                                           \
        parse.why[0] = '\0';                                                                       \
        assert_int_equal(call, -EINVAL);                                                           \
        if (!strstr(parse.why, word))                                                              \
            fail_msg("%s: '%s' lacks '%s'", #call, parse.why, word);                               \
    } while (0)

static void
sentences(void **state)
{
    struct of_flow_mod fm = {0};
    struct of_match m = {0};
    struct of_list l = {0};
    REFUSED(of_parse_fields(&parse, &of_row_flow_mod, "comand=add", &fm), "mean command?");
    REFUSED(of_parse_fields(&parse, &of_row_flow_mod, "cmd=ad", &fm), "mean add?");
    REFUSED(of_parse_fields(&parse, &of_row_flow_mod, "prio=70000", &fm), "65535");
    REFUSED(of_parse_fields(&parse, &of_row_flow_mod, "prio=-1", &fm), "number");
    REFUSED(of_parse_fields(&parse, &of_row_flow_mod, "prio=", &fm), "needs a value");
    REFUSED(of_parse_fields(&parse, &of_row_flow_mod, "prio", &fm), "key=value");
    REFUSED(of_parse_fields(&parse, &of_row_flow_mod, "prio=1,priority=2", &fm), "twice");
    REFUSED(of_parse_fields(&parse, &of_row_flow_mod, "match=1", &fm), "unknown");
    REFUSED(of_parse_fields(&parse, &of_row_port_mod, "addr=1:2", &(struct of_port_mod){0}),
            "00:11:22");
    REFUSED(of_parse_match(&parse, "tcp_dst=80", &m), "ip_proto=6");
    REFUSED(of_parse_match(&parse, "ipv4_src=10.0.0.1", &m), "eth_type=0x0800");
    REFUSED(of_parse_match(&parse, "ip_proto=6", &m), "0x0800 or 0x86dd");
    REFUSED(of_parse_match(&parse, "vlan_vid=none,vlan_pcp=1", &m), "vlan_vid");
    REFUSED(of_parse_match(&parse, "tcp_dts=80", &m), "tcp_dst");
    REFUSED(of_parse_match(&parse, "output=2", &m), "apply:output=2");
    REFUSED(of_parse_match(&parse, "banana", &m), "field=value");
    REFUSED(of_parse_match(&parse, "aply:output=1", &m), "apply");
    REFUSED(of_parse_match(&parse, "in_port=1,in_port=2", &m), "twice");
    REFUSED(of_parse_match(&parse, "in_port=1/2", &m), "mask");
    REFUSED(of_parse_match(&parse, "vlan_vid=9000", &m), "0 to 4095");
    REFUSED(of_parse_match(&parse, "vlan_vid=5000", &m), "0 to 4095, any (every tag) or none");
    REFUSED(of_parse_match(&parse, "vlan_vid=5000/0x1fff", &m), "0 to 4095");
    REFUSED(of_parse_actions(&parse, "set_field=vlan_vid:4096", &l), "0 to 4095");
    REFUSED(of_parse_match(&parse, "eth_type=0x800,ipv4_src=10.0.0.1/8", &m), "10.0.0.0/8");
    REFUSED(of_parse_match(&parse, "eth_type=0x800,ipv4_src=10.0.0.1/33", &m), "0 to 32");
    REFUSED(of_parse_match(&parse, "eth_type=0x800,ipv4_src=10.0.0", &m), "10.0.0.1");
    REFUSED(of_parse_match(&parse, "eth_src=00:00:00:00:00", &m), "00:11:22:33:44:55");
    REFUSED(of_parse_actions(&parse, "ouput=2", &l), "output");
    REFUSED(of_parse_actions(&parse, "output", &l), "output=port[:max_len]");
    REFUSED(of_parse_actions(&parse, "output=1:2:3", &l), "too many");
    REFUSED(of_parse_actions(&parse, "output=flod", &l), "flood");
    REFUSED(of_parse_actions(&parse, "pop_vlan=1", &l), "one value too many");
    REFUSED(of_parse_actions(&parse, "set_field", &l), "FIELD:VALUE");
    REFUSED(of_parse_actions(&parse, "set_field=ipv4_src:10.0.0.0/8", &l), "without a mask");
    REFUSED(of_parse_actions(&parse, "set_field=in_port:1", &l), "can't be set");
    REFUSED(of_parse_actions(&parse, "set_field=eth_type", &l), "needs a value");
    REFUSED(of_parse_actions(&parse, "set_field=vlan_vid:none", &l), "pop_vlan");
    REFUSED(of_parse_actions(&parse, "set_field=metadata:1", &l), "can't be set");
    REFUSED(of_parse_instruction(&parse, "aply:output=1", &l), "apply");
    REFUSED(of_parse_instruction(&parse, "goto", &l), "goto:table");
    REFUSED(of_parse_instruction(&parse, "goto:300", &l), "255");
    REFUSED(of_parse_band(&parse, "drop:rte=1", &l), "rate");
}

/* In words that every command can say: none is that of one command. */
static void
error_sentences(void **state)
{
    static const char *const others[] = {"flow-mod", "group-mod", "meter-mod", "OFP"};
    int n = 0;
    for (unsigned type = 0; type < 32; type++) {
        for (unsigned code = 0; of_error_code_name((uint16_t)type, (uint16_t)code); code++, n++) {
            const char *text = of_error_text((uint16_t)type, (uint16_t)code);
            assert_non_null(text);
            assert_in_range(strlen(text), 15, 160);
            assert_true(*text >= 'a' && *text <= 'z' && text[strlen(text) - 1] != '.');
            for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
                assert_null(strstr(text, others[i]));
        }
    }
    assert_in_range(n, 130, 400);
    assert_null(of_error_text(5, 99));
    assert_null(of_error_text(99, 0));
    assert_null(of_error_text(0xffff, 0));
}

static void
escapes(void **state)
{
    static const char raw[] = "a\x1b[2J\n\xc2\x9b"
                              "31m\xff\\ \xc3\xa9";
    struct of_wr w = of_wr_grow(1000);
    of_print_text(&w, raw, sizeof raw - 1);
    of_wr8(&w, 0);
    assert_string_equal((const char *)w.buf, "a\\x1b[2J\\x0a\\xc2\\x9b31m\\xff\\\\ \xc3\xa9");
    w.len = 0;
    struct of_json j = of_json(&w);
    of_json_string(&j, NULL, raw, sizeof raw - 1);
    of_wr8(&w, 0);
    assert_string_equal((const char *)w.buf,
                        "\"a\\u001b[2J\\u000a\\u009b31m\\u00ff\\\\ \xc3\xa9\"");
    of_wr_free(&w);
}

/* No input makes the parsers crash or hang: mutations of good ones. */
static void
mutations(void **state)
{
    static const char *const seeds[] = {
        "in_port=1,eth_type=0x0800,ipv4_src=10.0.0.0/8",
        "vlan_vid=0x1001/0x1001",
        "output=controller:128,set_field=eth_src:00:00:00:00:00:01",
        "meta:0x1/0xff",
        "apply:queue=2,output=2",
        "drop:rate=1000,burst=100",
        "experimenter=0x1:0a0b",
        "cmd=add,table=0,flags=send_flow_rem|0x4",
    };
    unsigned seed = 1;
    for (int i = 0; i < 40000; i++) {
        char text[128];
        struct of_match m;
        struct of_list l = {0};
        struct of_flow_mod fm;
        size_t n = (size_t)snprintf(text, sizeof text, "%s", seeds[i % 8]);
        for (int k = rand_r(&seed) % 4; k >= 0; k--)
            text[(size_t)rand_r(&seed) % n] = "=:,/.0x|+ga1\0-_"[rand_r(&seed) % 15];
        of_parse_match(&parse, text, &m);
        of_parse_actions(&parse, text, &l);
        of_parse_instruction(&parse, text, &l);
        of_parse_band(&parse, text, &l);
        of_parse_fields(&parse, &of_row_flow_mod, text, &fm);
        of_arena_reset(&arena);
    }
}

static char *
msg_text(const struct of_msg *m, bool json)
{
    struct of_wr w = of_wr_grow(65536);
    if (json)
        of_json_msg(&w, m);
    else
        of_print_msg(&w, m);
    return text_of(&w);
}

static void
decode(struct of_wr *w, struct of_msg *m)
{
    assert_int_equal(of_decode((struct of_bytes){w->buf, w->len}, &arena, m), 0);
}

static void
messages(void **state)
{
    struct of_flow_mod fm = {.command = OFPFC_ADD,
                             .buffer_id = OFP_NO_BUFFER,
                             .out_port = OFPP_ANY,
                             .out_group = OFPG_ANY,
                             .flags = 0x21,
                             .cookie = UINT64_MAX};
    assert_int_equal(of_parse_match(&parse, "eth_type=0x800,ip_proto=6,vlan_vid=5", &fm.match), 0);
    assert_int_equal(
        of_parse_instruction(&parse, "apply:set_field=ip_dscp:3,output=2", &fm.instructions), 0);
    struct of_wr w = of_wr_grow(65536);
    struct of_msg m;
    assert_int_equal(of_encode_body(&w, OFPT_FLOW_MOD, 5, &fm), 0);
    decode(&w, &m);
    assert_string_equal(
        msg_text(&m, false),
        "flow_mod{xid=5, cookie=0xffffffffffffffff, cookie_mask=0x0, table=0, cmd=add, idle=0, "
        "hard=0, prio=0, buffer=no_buffer, out_port=any, out_group=any, "
        "flags=send_flow_rem|0x20, match={eth_type=0x0800,vlan_vid=5,ip_proto=6}, "
        "instructions=[apply:set_field=ip_dscp:3,output=2]}");
    assert_string_equal(
        msg_text(&m, true),
        "{\"message\": \"flow_mod\", \"xid\": 5, \"cookie\": \"0xffffffffffffffff\", "
        "\"cookie_mask\": \"0x0\", \"table_id\": 0, \"command\": \"add\", \"idle_timeout\": 0, "
        "\"hard_timeout\": 0, \"priority\": 0, \"buffer_id\": \"no_buffer\", "
        "\"out_port\": \"any\", \"out_group\": \"any\", \"flags\": [\"send_flow_rem\", \"0x20\"], "
        "\"match\": {\"eth_type\": \"0x0800\", \"vlan_vid\": 5, \"ip_proto\": 6}, "
        "\"instructions\": [{\"type\": \"apply\", \"actions\": [{\"type\": \"set_field\", "
        "\"field\": {\"ip_dscp\": 3}}, {\"type\": \"output\", \"port\": 2, \"max_len\": 0}]}]}");
    of_wr_free(&w);
}

static void
errors(void **state)
{
    uint8_t data[64 + 4 + 5] = {0};
    of_set32(data + 64, 16);
    memcpy(data + 68, "busy!", 5);
    struct of_error e = {OFPET_SCHED_FAILED, OFPSFC_BUSY, {data, sizeof data}};
    struct of_msg m = {.version = 4,
                       .type = OFPT_ERROR,
                       .xid = 9,
                       .row = of_msg_row(OFPT_ERROR),
                       .body_row = &of_row_error,
                       .body = &e};
    assert_non_null(strstr(msg_text(&m, false), "type=OFPET_SCHED_FAILED, code=OFPSFC_BUSY, "
                                                "errno=16, text=\"busy!\""));
    assert_non_null(strstr(msg_text(&m, true), "\"errno\": 16, \"text\": \"busy!\""));
    uint8_t wrapped[4 + sizeof data];
    of_set32(wrapped, OFP_QOS_EXPERIMENTER);
    memcpy(wrapped + 4, data, sizeof data);
    e = (struct of_error){OFPET_EXPERIMENTER, OFPSFC_BUSY, {wrapped, sizeof wrapped}};
    assert_non_null(strstr(msg_text(&m, false), "code=OFPSFC_BUSY, errno=16, text=\"busy!\""));
    of_set32(wrapped, OFP_ONF_EXPERIMENTER);
    e = (struct of_error){OFPET_EXPERIMENTER, 2313, {wrapped, 4}};
    assert_non_null(
        strstr(msg_text(&m, false), "type=OFPET_BUNDLE_FAILED, code=OFPBFC_MSG_FAILED"));
    e = (struct of_error){OFPET_EXPERIMENTER, 2316, {wrapped, 4}};
    assert_non_null(strstr(msg_text(&m, false), "type=OFPET_EXPERIMENTER, code=2316"));
    e = (struct of_error){OFPET_BAD_REQUEST, 99, {data, 3}};
    assert_non_null(strstr(msg_text(&m, false), "type=OFPET_BAD_REQUEST, code=99, data=000000"));
    e = (struct of_error){OFPET_SCHED_FAILED, 1, {data, 3}};
    assert_non_null(strstr(msg_text(&m, false), "OFPSFC_BAD_OBJECT"));
}

static void
json_strings(void **state)
{
    struct of_wr w = of_wr_grow(1000);
    struct of_json j = of_json(&w);
    of_json_string(&j, NULL, "a\"\\\n\x80\xc3\xa9\xed\xa0\x80", 10);
    assert_string_equal(text_of(&w), "\"a\\\"\\\\\\u000a\\u0080\xc3\xa9\\u00ed\\u00a0\\u0080\"");
}

static void
json_commas(void **state)
{
    struct of_wr w = of_wr_grow(1000);
    struct of_json j = of_json(&w);
    of_json_object(&j, NULL);
    of_json_array(&j, "empty");
    of_json_end_array(&j);
    of_json_array(&j, "a\"b");
    of_json_uint(&j, NULL, UINT64_MAX);
    of_json_object(&j, NULL);
    of_json_null(&j, "x");
    of_json_end_object(&j);
    of_json_object(&j, NULL);
    of_json_end_object(&j);
    of_json_end_array(&j);
    of_json_bool(&j, "y", false);
    of_json_text(&j, "z", NULL);
    of_json_real(&j, "s", 1.0625);
    of_json_quote(&j, "q");
    of_printf(&w, "0x1");
    of_json_end_quote(&j);
    of_json_end_object(&j);
    assert_string_equal(text_of(&w), "{\"empty\": [], \"a\\\"b\": [18446744073709551615, "
                                     "{\"x\": null}, {}], \"y\": false, \"z\": \"\", "
                                     "\"s\": 1.062, \"q\": \"0x1\"}");
}

/* Every message's row, empty and with every byte set, can be printed both ways. */
static void
every_message(void **state)
{
    for (int type = 0; type < 31; type++) {
        const struct of_msg_row *row = of_msg_row((uint8_t)type);
        assert_non_null(row);
        void *body = of_arena_alloc(&arena, row->body->size + 1);
        struct of_msg m = {
            .version = 4, .type = (uint8_t)type, .row = row, .body_row = row->body, .body = body};
        assert_int_equal(strncmp(msg_text(&m, false), row->name, strlen(row->name)), 0);
        assert_int_equal(strncmp(msg_text(&m, true), "{\"message\": \"", 13), 0);
    }
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(matches),       T(every_oxm_field), T(prerequisites_have_smaller_numbers),
        T(actions),       T(instructions),    T(bands_and_buckets),
        T(fields),        T(sentences),       T(mutations),
        T(messages),      T(errors),          T(error_sentences),
        T(escapes),       T(json_strings),    T(json_commas),
        T(every_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
