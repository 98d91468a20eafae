/* SPDX-License-Identifier: Apache-2.0 */
#include <megaflow/wire.h>

#include "state.h"

#include <daemon/log.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SERVED_NS (NS_PER_S) /* after a sign of life */

/* An HTB of this handle sends frames of this priority past its classes; of other schedulers' they are the
 * default class's. */
#define UNSHAPED_PRIORITY QOS_HANDLE_TREE

/* ------------------------------------------------------------------ which ports */

static const struct sw_wire *
find(const struct sw *sw, const char *name)
{
    for (unsigned i = 0; i < sw->opt.n_wires; i++)
        if (!strcmp(sw->opt.wire[i].end[0], name) || !strcmp(sw->opt.wire[i].end[1], name))
            return &sw->opt.wire[i];
    return NULL;
}

static const char *
other_end(const struct sw_wire *w, const char *name)
{
    return w->end[!strcmp(w->end[0], name)];
}

bool
sw_wire_has(const struct sw *sw, const char *name)
{
    return sw->offload && find(sw, name);
}

bool
sw_wire_keeps_queues(const struct sw *sw, const char *name)
{
    return sw_wire_has(sw, name) && !find(sw, name)->unshaped;
}

static struct offload_wire
to_interface(const struct sw_wire *w, int ifindex)
{
    return (struct offload_wire){.to = (uint32_t)ifindex,
                                 .priority = w->unshaped ? UNSHAPED_PRIORITY : 0,
                                 .alone = w->unshaped};
}

/* The other end need not be a port yet: a predecessor's wire leads there. */
const struct offload_wire *
sw_wire_of(const struct sw *sw, const struct sw_port *p, struct offload_wire *out)
{
    const struct sw_wire *w = find(sw, p->name);
    if (!w)
        return NULL;
    *out = to_interface(w, (int)if_nametoindex(other_end(w, p->name)));
    return out;
}

/* The sockets' wish for all frames ends with the process. */
static void
hear_all(struct sw *sw, const struct sw_port *p, bool on)
{
    int err = qos_link_set_flag(sw->link, p->link.ifindex, IFF_PROMISC, on);
    if (err && err != -ENODEV)
        log_error(PORT, "port %u (%s): promiscuous mode stays as it is: %s", (unsigned)p->no,
                  p->name, strerror(-err));
}

void
sw_wire_follow(struct sw *sw, const struct sw_port *p, bool there)
{
    const struct sw_wire *w = find(sw, p->name);
    const struct sw_port *other = w ? sw_ports_by_name(sw, other_end(w, p->name)) : NULL;
    if (w)
        hear_all(sw, p, there);
    if (!other || !other->port)
        return;
    const struct port_shaper *s = port_shaper(other->port);
    struct offload_wire wire = to_interface(w, there ? p->link.ifindex : 0);
    offload_port_rewire(sw->offload->o, other->link.ifindex, &wire);
    if (s)
        offload_port_rewire(sw->offload->o, port_ifindex(s->from), &wire);
}

/* ------------------------------------------------------------------ who serves them */

/* The switch stood still, and goes on: what the wires did meanwhile. */
static void
say_stood_still(struct sw_offload *f, uint64_t now)
{
    uint64_t frames = offload_counts(f->o).wired;
    if (f->served && now > f->served)
        log_warning(SWITCH,
                    "the switch stood still for %.1f s: meanwhile %" PRIu64
                    " frames went from port to port (fail-to-wire)",
                    (double)(now - f->served + SERVED_NS) / NS_PER_S, frames - f->wired);
    f->wired = frames;
}

static void
serve(struct sw_offload *f, uint64_t until)
{
    f->served = until;
    offload_serve(f->o, until);
}

void
sw_wires_serve(struct sw *sw, uint64_t now)
{
    struct sw_offload *f = sw->offload;
    if (!f || !sw->opt.n_wires)
        return;
    say_stood_still(f, now);
    serve(f, now + SERVED_NS);
}

void
sw_wires_take_over(struct sw *sw)
{
    for (unsigned i = 0; i < sw->opt.n_wires && sw->offload->n_ports; i++)
        log_notice(SWITCH,
                   "%s and %s forward to each other in the kernel until the next switch has them "
                   "(fail-to-wire)",
                   sw->opt.wire[i].end[0], sw->opt.wire[i].end[1]);
    if (sw->opt.n_wires)
        serve(sw->offload, 0);
}

/* ------------------------------------------------------------------ telling */

static const char *
why_not(const struct sw *sw, const struct sw_port *p)
{
    return !sw->offload ? sw->offload_why : p->port && *p->uncut ? p->uncut : NULL;
}

bool
sw_wire_text(const struct sw *sw, const struct sw_port *p, char *out, size_t n)
{
    const struct sw_wire *w = find(sw, p->name);
    if (!w)
        return false;
    const char *why = why_not(sw, p);
    if (why)
        snprintf(out, n, "none, because %s", why);
    else
        snprintf(out, n, "%s%s", other_end(w, p->name), w->unshaped ? ":unshaped" : "");
    return true;
}

void
sw_wires_refused(const struct sw *sw, const char *why)
{
    for (unsigned i = 0; i < sw->opt.n_wires; i++)
        log_error(
            SWITCH,
            "%s and %s will not forward to each other when the switch ends (fail-to-wire): %s",
            sw->opt.wire[i].end[0], sw->opt.wire[i].end[1], why);
}
