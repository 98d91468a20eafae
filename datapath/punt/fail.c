/* SPDX-License-Identifier: Apache-2.0 */
/* Fail modes (6.3.3).  The tables stay in use in both.  Fail secure mode (closed): packets for the
 * controllers are lost.  Fail standalone mode (open): what the tables miss goes by OFPP_NORMAL, as if
 * each table had an entry below all others.  A table-miss entry that sends packets to the controllers is
 * such a miss, too, if the switch has controllers and none is connected; on a switch that only listens,
 * whoever made the entry may be listening.
 *
 * Controllers are those that the switch connects to, and those that relays report (RELAY,
 * docs/reference/extensions.md).  A peer that connects to the switch may be anybody: dpctl, a monitor. */
#include <megaflow/megaflow.h>
#include <punt/fail.h>
#include <switch/switch.h>

#include <daemon/log.h>
#include <shared/rcu.h>

struct known {
    unsigned connected, targets;
    bool open;
};

/* Adds the controllers behind relays. */
static struct known
find_controllers(const struct sw *sw, struct channel_controllers own)
{
    struct known k = {own.connected, own.targets, sw->opt.fail_open};
    for (struct conn *c = NULL; (c = channel_next(sw->channel, c));) {
        const struct conn_own *o = conn_own(c);
        if (!o->is_relay)
            continue;
        k.connected += o->relay.connected;
        k.targets += o->relay.targets;
        k.open |= o->relay.fail == OFP_FAIL_OPEN;
    }
    return k;
}

void
sw_fail_update(struct sw *sw)
{
    struct channel_controllers own = channel_controllers(sw->channel);
    struct known k = find_controllers(sw, own);
    enum standalone now = !k.open || k.connected ? STANDALONE_NO
                          : k.targets            ? STANDALONE_LEFT
                                                 : STANDALONE_MISSES;
    if (own.targets && k.connected && !sw->controlled)
        log_notice(SWITCH, "a controller is connected%s",
                   sw->dp.standalone ? ": packets go by the flow tables alone again" : "");
    if (sw->controlled && !k.connected)
        log_warning(SWITCH, "no controller is connected: %s",
                    k.open ? "packets that match no flow go by NORMAL (--fail=open)"
                           : "the flow tables stay as they are (--fail=closed)");
    sw->controlled = k.connected;
    if (now == sw->dp.standalone)
        return;
    if (!sw->dp.standalone)
        sw->counters.standalone_times++;
    store_relaxed(&sw->dp.standalone, (uint8_t)now);
    sw_offload_forget_all(sw);
}

void
sw_fail_say(const struct sw *sw)
{
    if (find_controllers(sw, channel_controllers(sw->channel)).targets)
        return;
    log_notice(
        SWITCH, "no controller is configured: %s",
        sw->dp.standalone
            ? "packets that match no flow go by NORMAL, as in a learning switch (--fail=open)"
            : "packets that match no flow are dropped (--fail=closed); --fail=open makes a learning switch");
}
