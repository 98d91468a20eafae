/* SPDX-License-Identifier: Apache-2.0 */
/* The VLANs that NORMAL keeps a port to. */
#include <megaflow/megaflow.h>
#include <ports/ports.h>
#include <switch/switch.h>

#include <shared/rcu.h>

#include <errno.h>
#include <stdlib.h>

int
sw_ports_set_vlans(struct sw *sw, uint32_t no, const struct vlans *v)
{
    struct dp *dp = &sw->dp;
    if (!no || no > PORT_MAX)
        return 0;
    struct vlans *old = dp->vlans[no], *now = NULL;
    if (!v == !old && (!v || !memcmp(v, old, sizeof *v)))
        return 0;
    if (v && !(now = malloc(sizeof *now)))
        return -ENOMEM;
    if (v)
        *now = *v;
    rcu_assign_pointer(dp->vlans[no], now);
    if (old)
        rcu_defer_free(old);
    normal_forget(dp->normal, (uint16_t)no);
    sw_offload_forget_all(sw);
    return 0;
}
