/* SPDX-License-Identifier: Apache-2.0 */
/* What a port's receive shaper asks: will the packet leave, and what queue do actions name? */
#include <dataplane/pipeline-inside.h>

struct preview_run {
    struct dry_run run; /* first */
    struct preview out;
};

static struct preview *
preview_of(const struct step *s)
{
    return &((struct preview_run *)s->dry)->out;
}

static bool
preview_enough(const struct step *s)
{
    const struct preview *o = preview_of(s);
    return o->goes && o->has_queue;
}

/* The queue for what enters by the packet's port. */
static void
preview_queue(const struct step *s, const struct act *a)
{
    struct preview *o = preview_of(s);
    if (!o->has_queue && queue_at(a->arg, act_queue_ports(a), s->p->in_port) == a->arg)
        *o = (struct preview){o->goes, true, a->arg};
}

static void
preview_port(const struct step *s, struct port *port, uint32_t no)
{
    preview_of(s)->goes |= port && port_is_up(port);
}

static bool
preview_controller(const struct step *s)
{
    preview_of(s)->goes = true;
    return false;
}

static const struct pipeline_trace preview_trace = {
    .enough = preview_enough,
    .queue = preview_queue,
    .port = preview_port,
    .controller = preview_controller,
};

struct preview
pipeline_preview(struct worker *w, struct packet *p)
{
    struct preview_run r = {.run = {.on = &preview_trace}};
    pipeline_dry_run(w, p, &r.run);
    return r.out;
}
