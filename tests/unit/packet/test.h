/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_H
#define TEST_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define assert_none(text)                                                                          \
    do {                                                                                           \
        const char *text_ = (text);                                                                \
        if (text_)                                                                                 \
            fail_msg("%s", text_);                                                                 \
    } while (0)

#endif
