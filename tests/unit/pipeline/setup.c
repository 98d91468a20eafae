/* SPDX-License-Identifier: Apache-2.0 */
#include "setup.h"

struct fixture *fx;

int
fixture_set_up(void **state)
{
    fx = fixture_new(0);
    return fx ? 0 : -1;
}

int
fixture_tear_down(void **state)
{
    fixture_free(fx);
    return 0;
}
