/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests wait, and for what.
 *
 * While the kernel carries out a plan over many turns (kernel-plan.h) the model of the queues is
 * neither the old nor the new one: requests that read queues or change anything wait.  While a
 * bundle changes tables over many turns (bundle.c), requests that read tables wait as well.
 *
 * Beside that, packet-outs wait for room in the workers' rings, and barriers for packet-outs: their rows say so. */
#include "requests.h"

#include <requests/handlers.h>

bool
sw_request_allowed(void *sw, struct conn *c, struct of_bytes frame)
{
    const struct request *r = request_find(frame);
    if (!r)
        return true;
    return !(r->needs & sw_locked(sw)) && (!r->ready || r->ready(sw, c, frame));
}
