/* SPDX-License-Identifier: Apache-2.0 */
/* A fixture for each test by cmocka. */
#ifndef SETUP_H
#define SETUP_H

#include "fixture.h"

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

extern struct fixture *fx; /* of the test that runs; without a cache */

int fixture_set_up(void **state);
int fixture_tear_down(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_set_up, fixture_tear_down)

#endif
