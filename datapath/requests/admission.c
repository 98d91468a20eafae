/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests wait, and for what: for what a task has locked (task/task.h).  Packet-outs wait for room in the workers'
 * rings, and barriers for packet-outs: their rows say so. */
#include "rows.h"

#include <admission/request.h>

#include <requests/handlers.h>

bool
sw_request_allowed(void *sw, struct conn *c, struct of_bytes frame)
{
    const struct request *r = request_find(frame);
    if (!r)
        return true;
    return !(r->needs & tasks_locked(((struct sw *)sw)->tasks)) &&
           (!r->ready || r->ready(sw, c, frame));
}
