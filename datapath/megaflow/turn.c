/* SPDX-License-Identifier: Apache-2.0 */
/* What is due at the end of a turn of the control thread's loop. */
#include "state.h"

void
sw_offload_end_of_turn(struct sw *sw)
{
    struct sw_offload *f = sw->offload;
    if (!f)
        return;
    offload_look_at_changes(f);
    if (f->asked && sw_offload_asked(sw)) {
        f->asked = true;
        loop_timer_set(f->soon, 0); /* the next turn is at once */
    }
}
