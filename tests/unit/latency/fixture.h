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
