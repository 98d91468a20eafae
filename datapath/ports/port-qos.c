/* SPDX-License-Identifier: Apache-2.0 */
/* What the model of the queues reports: ports, and all that depends on their queues, follow. */
#include "port-attach.h"

#include <megaflow/megaflow.h>
#include <ports/ports.h>
#include <queues/latency.h>
#include <queues/service.h>
#include <switch/switch.h>

static void
queue_changed(void *ctx, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
              uint32_t priority, uint64_t most)
{
    const struct sw_port *p = sw_ports_find(ctx, port_no);
    const struct port_shaper *s = p && p->port ? port_shaper(p->port) : NULL;
    struct port *port = !p || p->queues_only ? NULL : dir == QOS_OUT ? p->port : s ? s->to : NULL;
    if (!priority) {
        sw_latency_forget(ctx, port_no, dir, class_id);
        sw_service_forget(ctx, port_no, dir, class_id);
    }
    if (port && priority)
        port_queue_set(port, class_id, priority, most);
    else if (port)
        port_queue_del(port, class_id);
    if (dir == QOS_OUT)
        sw_offload_forget_queue(ctx, port_no, class_id);
    else
        sw_offload_forget_port(ctx, port_no);
}

static void
default_changed(void *ctx, uint32_t port_no, enum qos_direction dir, uint32_t class_id,
                uint64_t most)
{
    queue_changed(ctx, port_no, dir, 0, PORT_PRIORITY(0), most);
}

static void
shaper_changed(void *ctx, uint32_t port_no, const struct qos_shaper *s)
{
    sw_ports_set_shaper(ctx, port_no, s);
}

struct qos_events
sw_ports_qos_events(struct sw *sw)
{
    return (struct qos_events){.queue = queue_changed,
                               .default_class = default_changed,
                               .shaper = shaper_changed,
                               .ctx = sw};
}
