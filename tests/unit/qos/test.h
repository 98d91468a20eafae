/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_H
#define TEST_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
