/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_STREAM_H
#define TEST_STREAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stream/stream.h>

#include <errno.h>
#include <string.h>

#endif
