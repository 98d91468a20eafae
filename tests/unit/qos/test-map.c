/* SPDX-License-Identifier: Apache-2.0 */
/* Maps: rules that are refused, each with a sentence; and from the flows that are to those that are wanted, with a
 * switch that is a list (qos/profile/map.h). */
#include "test.h"

#include <qos/profile/map.h>

#include <errno.h>
#include <string.h>

static struct of_arena arena;
static struct of_parse parse;
static struct of_list table; /* the switch's flows */

static int
setup(void **state)
{
    memset(&table, 0, sizeof table);
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

static struct qos_map
map_of(const char *set, const char *rule, bool both_ways)
{
    struct qos_map m;
    qos_map_init(&m, set);
    struct of_list none = {0};
    if (qos_map_rule(&parse, &m, rule, both_ways) || qos_map_finish(&parse, &m))
        fail_msg("%s: %s", rule, parse.why);
    assert_int_equal(qos_map_way(&parse, &m, &none), 0);
    return m;
}

static void
refused(const char *rule, bool both_ways, const char *says)
{
    struct qos_map m;
    qos_map_init(&m, "test");
    assert_int_equal(qos_map_rule(&parse, &m, rule, both_ways), -EINVAL);
    if (!strstr(parse.why, says))
        fail_msg("%s: %s", rule, parse.why);
}

static void
wrong_rules(void **state)
{
    refused("dscp=ef", false, "the rule has no queue");
    refused("queue=10,tcp=80,ip_proto=6", false, "leave out ip_proto=");
    refused("queue=10,ip_proto=300", false, "ip_proto must be");
    refused("queue=10,ip_proto=1-2", false, "ip_proto must be");
    refused("queue=10,src=10.0.0.1,src=10.0.0.2", false, "src is given twice");
    refused("queue=10,in_port=1,dst=10.0.0.1", true, "in_port= fits one direction only");
    refused("queue=10,in_port=flood", false, "in_port must be the number or name of a port");
    refused("queue=10,in_port=0", false, "in_port must be the number or name of a port");
}

static void
many_ports(void **state)
{
    char rule[600] = "queue=10";
    struct qos_map m;
    for (int i = 0; i < 32; i++)
        strcat(rule, ",tcp_dst=80");
    qos_map_init(&m, "test");
    assert_int_equal(qos_map_rule(&parse, &m, rule, false), 0);
    refused(strcat(rule, ",udp_dst=53"), false, "more than 32 ports or ranges in one rule");
}

static void
protocols(void **state)
{
    struct qos_map m = map_of("test", "queue=10,ip_proto=47", false);
    assert_non_null(strstr(m.v[0].match_text, "ip_proto=47"));
    m = map_of("test", "queue=10,ip_proto=udp,dscp=ef", false);
    assert_non_null(strstr(m.v[0].match_text, "ip_proto=17"));
}

static void
answers(void **state)
{
    struct qos_map m;
    const struct {
        const char *server, *match;
        size_t n;
    } rows[] = {{NULL, "udp_src=53", 2},
                {"192.0.2.1", "ipv4_src=192.0.2.1", 1},
                {"2001:db8::1", "ipv6_src=2001:db8::1", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qos_map_init(&m, "test");
        assert_int_equal(qos_map_answers(&parse, &m, rows[i].server, 10, 0), 0);
        assert_int_equal(m.n, rows[i].n);
        assert_non_null(strstr(m.v[0].match_text, rows[i].match));
    }
}

/* ------------------------------------------------------------------ a switch */

static struct of_flow_stats *
find(const struct of_flow_mod *fm)
{
    char a[512], b[512];
    struct of_wr w = of_wr_fixed((uint8_t *)a, sizeof a);
    of_print_match(&w, &fm->match);
    a[w.len] = '\0';
    for (uint32_t i = 0; i < table.n; i++) {
        struct of_flow_stats *f = OF_AT(&table, i, struct of_flow_stats);
        w = of_wr_fixed((uint8_t *)b, sizeof b);
        of_print_match(&w, &f->match);
        b[w.len] = '\0';
        if (f->priority == fm->priority && f->table_id == fm->table_id && !strcmp(a, b))
            return f;
    }
    return NULL;
}

static void
carry_out(const struct qos_map_changes *c)
{
    for (size_t i = 0; i < c->n; i++) {
        const struct of_flow_mod *fm = &c->v[i];
        struct of_flow_stats *f = find(fm);
        if (fm->command == OFPFC_DELETE_STRICT) {
            assert_non_null(f);
            assert_int_equal(f->cookie, fm->cookie);
            for (uint32_t at = 0; at < table.n; at++) {
                if (table.v[at] == f)
                    table.v[at] = table.v[--table.n];
            }
            continue;
        }
        assert_int_equal(fm->command, OFPFC_ADD);
        if (!f) {
            f = of_arena_alloc(&arena, sizeof *f);
            assert_true(of_list_append(&arena, &table, f));
        }
        *f = (struct of_flow_stats){.priority = fm->priority,
                                    .table_id = fm->table_id,
                                    .cookie = fm->cookie,
                                    .match = fm->match,
                                    .instructions = fm->instructions};
    }
}

static struct of_list
of_set(const char *set)
{
    struct of_list l = {0};
    for (uint32_t i = 0; i < table.n; i++) {
        if (OF_AT(&table, i, struct of_flow_stats)->cookie == qos_map_cookie(set))
            assert_true(of_list_append(&arena, &l, table.v[i]));
    }
    return l;
}

static struct of_list
of_table(uint8_t no)
{
    struct of_list l = {0};
    for (uint32_t i = 0; i < table.n; i++) {
        if (OF_AT(&table, i, struct of_flow_stats)->table_id == no)
            assert_true(of_list_append(&arena, &l, table.v[i]));
    }
    return l;
}

/* How many changes it took to have the map, and that nothing is left to change. */
static size_t
have(const struct qos_map *m, bool keep)
{
    struct qos_map_changes c = {0}, none = {0};
    struct of_list in_table = of_table(m->table);
    assert_int_equal(qos_map_diff(&parse, m, keep, &table, &in_table, &c), 0);
    carry_out(&c);
    in_table = of_table(m->table);
    assert_int_equal(qos_map_diff(&parse, m, keep, &table, &in_table, &none), 0);
    assert_int_equal(none.n, 0);
    return c.n;
}

static void
sets(void **state)
{
    struct qos_map a = map_of("a", "queue=10,dscp=ef", false),
                   b = map_of("b", "queue=20,udp=53", false),
                   other = map_of("a", "queue=10,dscp=af41", false),
                   again = map_of("a", "queue=11,dscp=ef", false);
    size_t n = have(&a, false), all;
    assert_int_equal(n, a.n);
    assert_int_equal(have(&b, false), b.n - 1); /* they share the table-miss flow */
    all = table.n;
    assert_int_equal(have(&other, false), 2 * (a.n - 1));
    assert_int_equal(table.n, all);
    have(&again, true);
    assert_int_equal(table.n, all + a.n - 1);
    struct qos_map_changes c = {0};
    struct of_list set = of_set("a");
    assert_int_equal(qos_map_remove(&parse, &again, false, &set, &c), 0);
    carry_out(&c);
    assert_int_equal(table.n, all);
    c = (struct qos_map_changes){0};
    assert_int_equal(qos_map_delete(&parse, "a", &table, &c), 0);
    carry_out(&c);
    assert_int_equal(table.n, b.n); /* the table-miss flow is still b's */
    c = (struct qos_map_changes){0};
    assert_int_equal(qos_map_delete(&parse, "b", &table, &c), 0);
    carry_out(&c);
    assert_int_equal(table.n, 0);
    have(&a, false);
    have(&b, false);
    c = (struct qos_map_changes){0};
    assert_int_equal(qos_map_delete(&parse, NULL, &table, &c), 0);
    carry_out(&c);
    assert_int_equal(table.n, 0);
}

/* The table-miss flow that a set has made is left to the others of its table when it moves. */
static void
a_set_moves(void **state)
{
    struct qos_map a = map_of("a", "queue=10,dscp=ef", false),
                   b = map_of("b", "queue=20,udp=53", false);
    have(&a, false);
    have(&b, false);
    a.table = 9;
    have(&a, false);
    assert_int_equal(of_table(b.table).n, b.n);
    assert_int_equal(of_table(9).n, a.n);
    b.table = 9;
    have(&b, false);
    assert_int_equal(table.n, a.n + b.n - 1);
    assert_int_equal(of_table(9).n, table.n);
}

/* A flow of somebody else's is not replaced, and the sentence says which. */
static void
somebody_elses(void **state)
{
    struct qos_map m = map_of("a", "queue=10,dscp=ef", false);
    struct qos_map_changes c = {0};
    struct of_list none = {0};
    have(&m, false);
    for (uint32_t i = 0; i < table.n; i++) {
        struct of_flow_stats *f = OF_AT(&table, i, struct of_flow_stats);
        uint64_t was = f->cookie;
        f->cookie = 7;
        f->instructions = (struct of_list){0};
        assert_int_equal(qos_map_diff(&parse, &m, false, &none, &table, &c), -EEXIST);
        assert_non_null(strstr(parse.why, "qos-map did not make (cookie 0x7)"));
        assert_non_null(
            strstr(parse.why, f->match.n ? "already has a flow for" : "table-miss flow"));
        f->cookie = was;
    }
}

/* Without then= packets go on as they do now. */
static void
the_way_stays(void **state)
{
    struct qos_map normal, inherits;
    struct of_list in_table;
    qos_map_init(&normal, "a");
    normal.then = "normal";
    assert_int_equal(qos_map_finish(&parse, &normal), 0);
    assert_int_equal(qos_map_way(&parse, &normal, &table), 0);
    assert_int_equal(have(&normal, false), 1);
    qos_map_init(&inherits, "b");
    assert_int_equal(qos_map_rule(&parse, &inherits, "queue=10,dscp=ef", false), 0);
    assert_int_equal(qos_map_finish(&parse, &inherits), 0);
    struct qos_map beside = inherits;
    beside.beside = true;
    in_table = of_table(0);
    assert_int_equal(qos_map_way(&parse, &inherits, &in_table), 0);
    assert_string_equal(inherits.then, "normal");
    assert_int_equal(qos_map_next(&inherits), -1);
    assert_int_equal(qos_map_way(&parse, &beside, &in_table), 0);
    assert_string_equal(beside.then, "goto:1"); /* its set has none */
    assert_int_equal(qos_map_next(&beside), 1);
    struct of_flow_stats to_port = {.cookie = qos_map_cookie("a")}, *only = &to_port;
    assert_int_equal(of_parse_instruction(&parse, "apply:output=2", &to_port.instructions), 0);
    in_table = (struct of_list){.n = 1, .v = (void **)&only};
    inherits.then = NULL;
    assert_int_equal(qos_map_way(&parse, &inherits, &in_table), 0);
    assert_string_equal(inherits.then, "output:2");
}

static void
names_and_queues(void **state)
{
    struct of_flow_stats f = {0};
    assert_string_equal(qos_map_set_name(&parse, qos_map_cookie("hosts:3")), "hosts:3");
    assert_int_equal(of_parse_instruction(&parse, "goto:1", &f.instructions), 0);
    assert_int_equal(of_parse_instruction(&parse, "apply:queue=7,output=2", &f.instructions), 0);
    assert_int_equal(qos_map_queue(&f), 7);
}

/* Flows of a set that no rule makes, in two tables: each is told, and by its table. */
static void
odd_flows(void **state)
{
    struct of_flow_stats f[2] = {{.table_id = 3, .cookie = qos_map_cookie("a"), .priority = 5},
                                 {.table_id = 0, .cookie = qos_map_cookie("a"), .priority = 5}};
    struct of_list two = {.n = 2, .v = (void *[]){&f[0], &f[1]}};
    struct qos_map_reads read;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(of_parse_match(&parse, "metadata=3", &f[i].match), 0);
        assert_int_equal(of_parse_instruction(&parse, "goto:7", &f[i].instructions), 0);
    }
    assert_int_equal(qos_map_read(&parse, &two, &read), 0);
    assert_int_equal(read.n, 2);
    assert_int_equal(read.v[0].table, 0);
    assert_int_equal(read.v[1].table, 3);
}

static void
rules_as_typed(void **state)
{
    static const char *const rules[] = {
        "queue=10,dscp=ef",
        "queue=1,dscp=8-15,ecn=yes",
        "queue=1,app=dns,app=sip,sctp_dst=7-9",
        "queue=65519,ecn=no,ip_proto=udp,src=10.0.0.0/8,dst=192.0.2.1",
        "queue=2,tcp_src=22",
        "dst=fd00::/64,remark=af41",
        "queue=3,pcp=0,pcp=5-7,in_port=4,remark=ef",
        "in_port=4,set_pcp=6",
        "queue=7,dscp=ef,in_port=local",
        "queue=9,dscp=cs1,remark=le,set_pcp=1",
        "queue=5,app=quic,prio=77",
        "queue=6,dscp=va,dscp=ef,tcp=7-8",
        "queue=5,dscp=ef,ecn=ect1,ecn=ce,ip_proto=47,src=fd00::1,dst=fd00::2",
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct qos_map m = map_of("voip", rules[i], false);
        struct qos_map_reads read;
        have(&m, false);
        assert_int_equal(qos_map_read(&parse, &table, &read), 0);
        assert_int_equal(read.n, 2); /* and the other packets */
        const struct qos_map_read *r = &read.v[*read.v[0].text ? 0 : 1];
        assert_string_equal(r->text, rules[i]);
        assert_int_equal(r->missing, 0);
        assert_int_equal(r->flows, table.n - 1);
        assert_string_equal(r->then, "goto:1");
        assert_int_equal(qos_map_cookie(qos_map_set_name(&parse, r->cookie)), r->cookie);
    }
}

int
main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(wrong_rules),    TEST(many_ports),       TEST(protocols),      TEST(answers),
        TEST(sets),           TEST(a_set_moves),      TEST(somebody_elses), TEST(the_way_stays),
        TEST(rules_as_typed), TEST(names_and_queues), TEST(odd_flows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
