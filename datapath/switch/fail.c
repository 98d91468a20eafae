/* SPDX-License-Identifier: Apache-2.0 */
/* Fail modes (6.3.3).  Fail secure mode (closed): the tables stay in use, and only packets for the
 * controllers are lost.  Fail standalone mode (open): packets go by OFPP_NORMAL, and the tables
 * wait with their flows for a controller.
 *
 * Controllers are those that the switch connects to, and those that relays report (RELAY,
 * docs/extensions.md).  A peer that connects to the switch may be anybody: dpctl, a monitor. */
#include <switch/fail.h>
#include <switch/switch.h>

#include <daemon/log.h>
#include <shared/rcu.h>

void
sw_fail_update(struct sw *sw)
{
    struct channel_controllers own = channel_controllers(sw->channel);
    unsigned connected = own.connected;
    bool open = own.targets && sw->opt.fail_open;
    for (struct conn *c = NULL; (c = channel_next(sw->channel, c));) {
        const struct conn_own *o = conn_own(c);
        if (!o->is_relay)
            continue;
        connected += o->relay.connected;
        open |= o->relay.fail == OFP_FAIL_OWN ? sw->opt.fail_open : o->relay.fail == OFP_FAIL_OPEN;
    }
    if (own.targets && connected && !sw->controlled)
        log_notice(SWITCH, "a controller is connected%s",
                   sw->dp.standalone ? ": packets go by the flow tables again" : "");
    if (sw->controlled && !connected)
        log_warning(SWITCH, "no controller is connected: %s",
                    open ? "packets go by NORMAL (--fail=open)"
                         : "the flow tables stay as they are (--fail=closed)");
    sw->controlled = connected;
    bool standalone = open && !connected;
    if (standalone && !sw->dp.standalone)
        sw->counters.standalone_times++;
    store_relaxed(&sw->dp.standalone, standalone);
}
