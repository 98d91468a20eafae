/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests wait while a commit is under way.
 *
 * While the kernel carries out a plan over many turns (kernel-steps.h) the model of the queues is
 * neither the old nor the new one: requests that read queues or change anything wait.  While a
 * bundle changes tables over many turns (bundle.c), requests that read tables wait as well.
 *
 * Beside that, packet-outs wait for room in the workers' rings, and barriers for packet-outs. */
#include "requests.h"

#include <punt/packet-out.h>
#include <requests/handlers.h>

#include <oflib/wire.h>
#include <shared/rcu.h>

enum needs { NOTHING, TABLES, QUEUES };

static const uint8_t multiparts[] = {
#define MULTIPART_NEEDS(type, name, needs) [type] = needs,
    MULTIPART_REQUESTS(MULTIPART_NEEDS)};

static uint8_t
mp_experimenter_needs(uint32_t exp_type)
{
    switch (exp_type) {
#define MP_EXPERIMENTER_NEEDS(type, name, needs, len)                                              \
    case type: return needs;
        MP_EXPERIMENTER_REQUESTS(MP_EXPERIMENTER_NEEDS)
    default: return NOTHING;
    }
}

static uint8_t
multipart_needs(struct of_bytes frame)
{
    uint16_t type = frame.n >= 10 ? of_get16(frame.p + 8) : OFPMP_DESC;
    if (type == OFPMP_EXPERIMENTER && frame.n >= 24)
        return mp_experimenter_needs(of_get32(frame.p + 20));
    return type < sizeof multiparts ? multiparts[type] : NOTHING;
}

static uint8_t
own_needs(uint32_t exp_type)
{
#define OWN_NEEDS(type, access, needs) [type] = needs,
    static const uint8_t own[] = {EXPERIMENTER_REQUESTS(OWN_NEEDS)};
    return exp_type < sizeof own ? own[exp_type] : NOTHING;
}

static uint8_t
experimenter_needs(struct of_bytes frame)
{
    if (frame.n < 16)
        return NOTHING;
    uint32_t experimenter = of_get32(frame.p + 8), exp_type = of_get32(frame.p + 12);
    if (experimenter == OFP_ONF_EXPERIMENTER) /* a bundle may be filled, but not committed */
        return exp_type == OFP_ONF_BUNDLE_CONTROL &&
                       (frame.n < 24 || of_get16(frame.p + 20) == OFPBCT_COMMIT_REQUEST)
                   ? QUEUES
                   : NOTHING;
    if (experimenter == OFP_QOS_EXPERIMENTER)
        return own_needs(exp_type);
    return experimenter == OFP_OPENFLOW_EXPERIMENTER ? QUEUES : NOTHING;
}

/* What a request needs: QUEUES if it reads them or changes anything. */
static uint8_t
needs(struct of_bytes frame)
{
    enum { READ = NOTHING, WRITE = QUEUES };
#define MESSAGE_NEEDS(type, name, access) [type] = access,
    static const uint8_t messages[] = {CONTROL_REQUESTS(MESSAGE_NEEDS)};
    uint8_t type = frame.p[1];
    switch (type) {
    case OFPT_MULTIPART_REQUEST: return multipart_needs(frame);
    case OFPT_EXPERIMENTER: return experimenter_needs(frame);
    case OFPT_QUEUE_GET_CONFIG_REQUEST: return QUEUES;
    case OFPT_PACKET_OUT: return NOTHING;
    default: return type < sizeof messages ? messages[type] : NOTHING;
    }
}

/* What waits for workers. */
static bool
workers_allow(struct sw *sw, struct conn *c, struct of_bytes frame)
{
    if (frame.p[1] == OFPT_PACKET_OUT)
        return sw_packet_outs_have_room(sw);
    return frame.p[1] != OFPT_BARRIER_REQUEST || sw_packet_outs_are_sent(sw, c);
}

/* What waits for changes that take many turns. */
static bool
changes_allow(const struct sw *sw, struct of_bytes frame)
{
    if (!sw_commit_under_way(sw))
        return true;
    uint8_t n = needs(frame);
    return n == NOTHING || (n == TABLES && !sw->commit.bundle);
}

bool
sw_request_allowed(struct sw *sw, struct conn *c, struct of_bytes frame)
{
    if (!workers_allow(sw, c, frame) || !changes_allow(sw, frame))
        return false;
    if (frame.p[1] == OFPT_BARRIER_REQUEST)
        rcu_wait(); /* every worker uses the new flows (6.2.1); flow-removed messages are sent */
    return true;
}
