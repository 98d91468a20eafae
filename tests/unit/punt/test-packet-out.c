/* SPDX-License-Identifier: Apache-2.0 */
/* Packet-outs for which the worker's ring has no room: they wait in their order, and hold up nobody. */
#include <punt/packet-out.h>
#include <switch/switch.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static unsigned room;     /* in the worker's ring */
static uint8_t sent[512]; /* first bytes, in their order */
static unsigned n_sent, turns;
static struct conn_own own;
static struct worker worker;
static struct worker *workers[] = {&worker};
static struct sw sw;

/* ------------------------------------------------------------------ what is not here */

bool
worker_packet_out(struct worker *w, struct program *program, uint32_t in_port, const uint8_t *data,
                  uint32_t len, uint32_t number)
{
    if (!room)
        return false;
    room--;
    sent[n_sent++] = *data;
    free(program);
    return true;
}

bool
worker_has_room(const struct worker *w, uint32_t len, unsigned most, unsigned dear)
{
    return room != 0;
}

bool
worker_has_sent(const struct worker *w, uint32_t number)
{
    return true;
}

/* No connection waits. */
bool
channel_try_longest(struct channel *c)
{
    turns++;
    return false;
}

struct conn_own *
conn_own(struct conn *c)
{
    return &own;
}

int
loop_timer_new(struct loop *l, loop_timer_cb cb, void *ctx, struct loop_timer **out)
{
    *out = NULL;
    return 0;
}

void
loop_timer_free(struct loop_timer *t)
{
}

void
loop_timer_set(struct loop_timer *t, uint64_t at)
{
}

void
loop_timer_cancel(struct loop_timer *t)
{
}

uint64_t
loop_now(const struct loop *l)
{
    return 0;
}

/* ------------------------------------------------------------------ tests */

#define CONN ((struct conn *)&own)

static int
begin(void **state)
{
    memset(&sw, 0, sizeof sw);
    sw.dp.workers = workers;
    sw.dp.n_workers = 1;
    n_sent = turns = 0;
    return sw_packet_outs_start(&sw);
}

static int
end(void **state)
{
    sw_packet_outs_stop(&sw);
    return 0;
}

static void
put(uint8_t first)
{
    const uint8_t data[60] = {first};
    struct program *p = calloc(1, sizeof *p);
    assert_non_null(p);
    sw_packet_out(&sw, CONN, p, 1, data, sizeof data);
}

static void
in_order(void **state)
{
    room = 1;
    for (uint8_t i = 0; i < 4; i++)
        put(i);
    assert_int_equal(n_sent, 1);
    assert_false(sw_packet_outs_are_sent(&sw, CONN)); /* its barrier waits */
    room = 2;
    assert_false(sw_packet_outs_have_room(&sw)); /* others come behind those that wait */
    put(4);
    assert_int_equal(n_sent, 1);
    sw_packet_outs_go_on(&sw);
    assert_int_equal(n_sent, 3);
    assert_int_equal(turns, 0);
    room = 9;
    sw_packet_outs_go_on(&sw);
    assert_memory_equal(sent, ((uint8_t[]){0, 1, 2, 3, 4}), 5);
    assert_int_equal(turns, 1); /* now connections get their turn */
    assert_true(sw_packet_outs_have_room(&sw));
    assert_true(sw_packet_outs_are_sent(&sw, CONN));
    assert_int_equal(sw.counters.packet_outs_lost, 0);
}

static void
bounded(void **state)
{
    room = 0;
    for (unsigned i = 0; i < 300; i++)
        put((uint8_t)i);
    assert_int_equal(sw.counters.packet_outs_lost, 300 - 256);
    room = 10;
    sw_packet_outs_go_on(&sw);
    assert_int_equal(n_sent, 10); /* the end frees the rest */
}

/* A barrier waits for its own connection's only. */
static void
others_barriers(void **state)
{
    room = 1;
    put(0);
    struct conn_own first = own;
    put(1);
    own = first;
    assert_true(sw_packet_outs_are_sent(&sw, CONN));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(in_order, begin, end),
        cmocka_unit_test_setup_teardown(bounded, begin, end),
        cmocka_unit_test_setup_teardown(others_barriers, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
