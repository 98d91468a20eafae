/* SPDX-License-Identifier: Apache-2.0 */
/* One place for a connection, a clock that the test moves, and the gates. */
#ifndef LATENCY_FIXTURE_H
#define LATENCY_FIXTURE_H

#include <stdint.h>

static uint64_t clock_now = UINT64_C(1000000000000);
#define RTT_CLOCK_NS() clock_now
#include <latency/rtt.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

static struct rtt_slot slot;
static struct rtt_control control;
static unsigned looked; /* how many packets got through the gate */

/* A connection. */
static const struct rtt_ends between = {.sport = 1000, .dport = 80};
enum { DATA = 0, BACK = 1 }; /* directions */

/* As workers and the kernel's programs do: data leaves by interface 3 in queue 10, what comes back by 4.  False: the gate
 * is shut. */
__attribute__((unused)) static bool
look_at(struct rtt_seen *p, struct rtt_sample *s, int *ends)
{
    *s = (struct rtt_sample){0};
    p->sig = p->sig ? p->sig : 7;
    p->first = p->first ? p->first : p->len;
    p->ifindex = p->dir == DATA ? 3 : 4;
    p->queue = p->dir == DATA ? 10 : 0;
    p->about = clock_now;
    if (p->kind == RTT_TCP &&
        rtt_is_shut(rtt_gate(&control, p->kind, between.sport, between.dport), p->syn, p->about))
        return false;
    looked++;
    rtt_enter(&control, &between, &slot, p);
    *ends = rtt_look(&slot, p, s);
    rtt_leave(&control, &between, &slot, p, s->us);
    return true;
}

static int
setup(void **state)
{
    memset(&slot, 0, sizeof slot);
    memset(control.gate, 0, sizeof control.gate);
    looked = 0;
    clock_now += 100 * MS;
    return 0;
}

#endif
