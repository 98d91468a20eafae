/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_H
#define TEST_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <packet/packet.h>

/* Runs tests of random packets, with a *pool, and with another *seed if SEED says so.  Returns what
 * main does. */
int run_random(const struct CMUnitTest *tests, size_t n, uint64_t *seed, struct packet_pool **pool);

#define assert_none(text)                                                                          \
    do {                                                                                           \
        const char *text_ = (text);                                                                \
        if (text_)                                                                                 \
            fail_msg("%s", text_);                                                                 \
    } while (0)

#endif
