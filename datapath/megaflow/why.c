/* SPDX-License-Identifier: Apache-2.0 */
/* Why packets are not handled in the kernel: all of them, those of a port, those like one. */
#include "state.h"

#include <packet/headers.h>

/* Reasons beside OFFLOAD_REASONS and SW_OFFLOAD_REASONS, which are about keys. */
#define WHY_OFF     "off"
#define WHY_CAPTURE ((struct sw_offload_why){"capture", "somebody captures packets"})
#define WHY_PORT_OFF                                                                               \
    ((struct sw_offload_why){"port_off", "the port's configuration says offload=off"})
#define WHY_ATTACH                                                                                 \
    ((struct sw_offload_why){"attach",                                                             \
                             "the kernel took no programs for the port; the log says why"})
#define WHY_WAITS                                                                                  \
    ((struct sw_offload_why){"waits", "its programs are about to be attached, after other ports'"})
#define WHY_TOO_LONG                                                                               \
    ((struct sw_offload_why){"too_long", "it is longer than the output or its queue takes whole"})
#define WHY_HOST                                                                                   \
    ((struct sw_offload_why){                                                                      \
        "host",                                                                                    \
        "the host may want it as it came, and the kernel has only one: workers edit their copy"})
#define WHY_NOTHING ((struct sw_offload_why){NULL, NULL})

static struct sw_offload_why
why_of(unsigned reason)
{
    return (struct sw_offload_why){sw_offload_reason_name(reason), sw_offload_reason_text(reason)};
}

struct sw_offload_why
sw_offload_why(const struct sw *sw)
{
    if (!sw->offload)
        return (struct sw_offload_why){WHY_OFF, sw->offload_why};
    return sw->dp.capture ? WHY_CAPTURE : WHY_NOTHING;
}

struct sw_offload_why
sw_offload_port_why(const struct sw *sw, const struct sw_port *p)
{
    const struct sw_offload *f = sw->offload;
    struct sw_offload_why all = sw_offload_why(sw);
    int fd;
    if (all.name)
        return all;
    if (offload_is_off(f, p->name))
        return WHY_PORT_OFF;
    if (!p->port || !port_receives(p->port) || p->files || p->no == OFPP_LOCAL ||
        !port_rx_sockets(p->port, &fd, 1))
        return why_of(OFFLOAD_WHY_in_port);
    if (p->offload_waits)
        return WHY_WAITS;
    if (!offload_port_has(f->o, p->link.ifindex))
        return WHY_ATTACH;
    const struct port_shaper *s = port_shaper(p->port);
    if (s && !port_in_kernel(s->from))
        return why_of(OFFLOAD_WHY_shaped);
    const char *front = offload_port_waits(f->o, p->link.ifindex);
    return (struct sw_offload_why){front ? "in_front" : NULL, front};
}

/* Extension headers that the programs don't take (ofqos_exts in offload/bpf/exts.h). */
static bool
has_odd_exts(const struct packet *p)
{
    uint16_t exts = of_get16(p->key.ipv6_exthdr);
    struct ip_view v;
    return exts &&
           (exts & (OFPIEH_UNREP | OFPIEH_UNSEQ) || (p->l4 && p->l4 - p->l3 > OFFLOAD_IP_MOST) ||
            !ip_view(p->data, p->len, p->l3, true, false, &v) || v.routed);
}

/* The key doesn't tell whether the programs read the packet. */
static bool
is_odd(const struct packet *p)
{
    return p->malformed || p->snap || p->eth_type_at > ETH_TYPE_AT + 2 * VLAN_TAG ||
           has_odd_exts(p);
}

static uint32_t
ttl_of(const struct packet *p)
{
    uint32_t at = p->l3 + (of_get16(p->key.eth_type) == TYPE_IPV4 ? IPV4_TTL_AT : IPV6_HOPS_AT);
    return at < p->len ? p->data[at] : 0;
}

/* At ofqoN the frame is nobody's but a multicast, which the host always gets. */
static bool
host_wants(const struct sw *sw, const struct sw_port *in, enum offload_stage stage,
           const struct packet *p)
{
    return stage == OFFLOAD_BEHIND_QUEUES ? p->key.eth_dst[0] & 1
                                          : offload_host_wants(sw->offload, in, p);
}

static bool
is_too_long(const struct sw *sw, const struct packet *p, const struct offload_rule *r)
{
    return p->len > (p->vnet.gso_type ? offload_rule_super(sw->offload->o, r) : r->longest);
}

static struct sw_offload_why
explain_at(struct sw *sw, const struct sw_port *in, enum offload_stage stage,
           const struct packet *p, bool *queue_in)
{
    struct offload_plan plan;
    enum offload_reason reason =
        offload_plan_make(&sw->dp, &p->key, stage, &sw->offload->places, &plan);
    if (reason != OFFLOADED)
        return why_of(reason);
    if (ttl_of(p) < plan.rule.min_ttl)
        return why_of(OFFLOAD_WHY_ttl);
    if (is_too_long(sw, p, &plan.rule))
        return WHY_TOO_LONG;
    *queue_in = plan.queue_in;
    return in && offload_rule_edits(&plan.rule) && host_wants(sw, in, stage, p) ? WHY_HOST
                                                                                : WHY_NOTHING;
}

struct sw_offload_why
sw_offload_explain(struct sw *sw, const struct packet *p)
{
    struct sw_offload_why why = sw_offload_why(sw);
    const struct sw_port *in = sw_ports_find(sw, p->in_port);
    if (!why.name && in)
        why = sw_offload_port_why(sw, in);
    if (why.name)
        return why;
    if (is_odd(p))
        return why_of(OFFLOAD_WHY_kind);
    bool queue_in = false;
    why = explain_at(sw, in, OFFLOAD_AT_PORT, p, &queue_in);
    return queue_in && !why.name ? explain_at(sw, in, OFFLOAD_BEHIND_QUEUES, p, &queue_in) : why;
}
