/* SPDX-License-Identifier: Apache-2.0 */
#include "slice.h"

#include <requests/flows.h>

int
slice_anything(const struct slice_request *q)
{
    return 0;
}

int
slice_deny_port(const struct slice_request *q, int err, uint32_t no)
{
    return slice_deny(q, err, "port %u", (unsigned)no);
}

bool
sw_slice_sees_flow(const struct sw *sw, const struct slice *s, const struct flow *f)
{
    struct of_oxm oxms[OXM_N];
    struct of_flow_stats described;
    if (!s || slice_set_has(&s->tables, f->table_id))
        return true;
    if (!slice_set_has(&s->shared, f->table_id))
        return false;
    sw_flow_describe(sw, f, oxms, &described);
    return slice_has_flow(s, f->table_id, &described.match);
}
