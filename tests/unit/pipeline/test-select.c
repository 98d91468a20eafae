/* SPDX-License-Identifier: Apache-2.0 */
/* Which bucket a select group takes: by weight, independent of the groups and switches before it, and
 * none whose port is down. */
#include "setup.h"

#include <oflib/text.h>

#include <stdio.h>
#include <string.h>

/* Private to the switch's pipeline. */
const struct bucket *pipeline_bucket(const struct dp *dp, const struct group *g,
                                     const struct packet *p);

#define FLOWS 20000
#define LEN   60

static uint8_t room[PACKET_HEADROOM + LEN];

/* Buckets of these weights, the first to port 1, the second to port 2, ... */
static const struct group *
add_group(uint32_t id, const unsigned *weights, unsigned n)
{
    struct of_parse p = {.arena = &fx->arena};
    struct of_group_mod m = {.command = OFPGC_ADD, .type = OFPGT_SELECT, .group_id = id};
    char words[8][24], *v[8];
    for (unsigned i = 0; i < n; i++) {
        snprintf(words[2 * i], sizeof words[0], "weight=%u", weights[i]);
        snprintf(words[2 * i + 1], sizeof words[0], "output=%u", i + 1);
        v[2 * i] = words[2 * i];
        v[2 * i + 1] = words[2 * i + 1];
    }
    assert_int_equal(of_parse_buckets(&p, v, (int)(2 * n), &m.buckets), 0);
    assert_int_equal(groups_mod(fx->dp->groups, &m, 1), 0);
    return groups_find(fx->dp->groups, id);
}

/* The bucket that this flow takes; -1: none. */
static int
taken(const struct group *g, uint32_t flow)
{
    static const uint8_t head[34] = {2,  0, 0, 0, 0, 1,  2,  0, 0, 0,  0, 2, 8, 0,  0x45, 0, 0,
                                     46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0,    0, 2};
    struct packet p = {
        .data = room + PACKET_HEADROOM, .len = LEN, .wire_len = LEN, .headroom = PACKET_HEADROOM};
    memcpy(p.data, head, sizeof head);
    of_set16(p.data + 34, (uint16_t)flow);
    of_set16(p.data + 36, (uint16_t)(flow >> 16));
    packet_parse(&p, 5);
    const struct bucket *b = pipeline_bucket(fx->dp, g, &p);
    return b ? (int)(b - g->buckets) : -1;
}

static void
assert_near(unsigned is, unsigned wanted)
{
    assert_in_range(is, wanted - wanted / 10, wanted + wanted / 10);
}

static void
test_weights(void **state)
{
    const struct group *g = add_group(1, (unsigned[]){1, 2, 0, 5}, 4);
    unsigned n[4] = {0};
    for (uint32_t i = 0; i < FLOWS; i++)
        n[taken(g, i)]++;
    assert_near(n[0], FLOWS / 8);
    assert_near(n[1], FLOWS / 4);
    assert_int_equal(n[2], 0);
    assert_near(n[3], FLOWS * 5 / 8);
}

/* Of the flows that one group sends to a port, the next takes each bucket equally often: whether that
 * is another group of this switch or the same of another. */
static void
test_no_polarisation(void **state)
{
    const struct group *first = add_group(1, (unsigned[]){1, 1}, 2);
    const struct group *next = add_group(2, (unsigned[]){1, 1}, 2);
    unsigned here[2] = {0}, there[2] = {0}, n = 0;
    for (uint32_t i = 0; i < FLOWS; i++) {
        fx->dp->select_seed = 1;
        if (taken(first, i))
            continue;
        n++;
        here[taken(next, i)]++;
        fx->dp->select_seed = 2;
        there[taken(first, i)]++;
    }
    assert_near(n, FLOWS / 2);
    assert_near(here[0], n / 2);
    assert_near(there[0], n / 2);
}

/* Only the flows of a bucket whose port goes down move, to the others by their weights; and they come
 * back. */
static void
test_port_down(void **state)
{
    static int before[FLOWS];
    const struct group *g = add_group(1, (unsigned[]){1, 1, 2, 4}, 4);
    unsigned moved[4] = {0};
    for (uint32_t i = 0; i < FLOWS; i++)
        before[i] = taken(g, i);
    fx->world.port[3].link_down = true;
    for (uint32_t i = 0; i < FLOWS; i++) {
        int now = taken(g, i);
        if (before[i] == 3)
            moved[now]++;
        else
            assert_int_equal(now, before[i]);
    }
    assert_int_equal(moved[3], 0);
    assert_near(moved[0], FLOWS / 8);
    assert_near(moved[1], FLOWS / 8);
    assert_near(moved[2], FLOWS / 4);
    fx->world.port[3].link_down = false;
    for (uint32_t i = 0; i < FLOWS; i++)
        assert_int_equal(taken(g, i), before[i]);
}

/* However little weight the last live bucket has, it gets everything; without one nothing goes. */
static void
test_last_live(void **state)
{
    const struct group *g = add_group(1, (unsigned[]){60000, 1, 60000, 60000}, 4);
    fx->world.port[0].link_down = fx->world.port[2].link_down = true;
    fx->world.port[3].config = OFPPC_PORT_DOWN;
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(taken(g, i), 1);
    fx->dp->by_number[2] = NULL; /* the port is removed */
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(taken(g, i), -1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(weights),
        TEST(no_polarisation),
        TEST(port_down),
        TEST(last_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
