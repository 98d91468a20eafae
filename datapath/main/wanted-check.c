/* SPDX-License-Identifier: Apache-2.0 */
/* Would the model accept the queues that the settings want?  Only what is wrong whatever the interface and the
 * kernel: the link is fast and has transmit queues enough, so that a machine whose link came up slowly starts
 * all the same. */
#include "wanted.h"

#include "options.h"

#include <qos/diff/diff.h>
#include <qos/kernel/accepting.h>
#include <qos/model/model.h>

#define PORT 1 /* requests of a profile are for it */

static const struct qos_port any_port = {.port_no = PORT,
                                         .ifindex = 1,
                                         .mtu = 1500,
                                         .txqueuelen = 1000,
                                         .tx_queues = 256,
                                         .speed = UINT64_C(400000000000)};

struct check {
    struct wanted *w;
    const struct wanted_queues *want;
    const struct qos_profile_part *part;
    struct qos *qos;
    struct of_arena *a;
    uint32_t *refused; /* classes: what depends on them is refused for that */
    size_t n_refused, refused_room;
};

static void
fault(struct check *k, size_t at, const char *why)
{
    const struct wanted_queues *want = k->want;
    if (want->lines)
        daemon_settings_fault(k->w->s, want->lines[k->part->line[at] - 1], "is wrong: %s", why);
    else
        daemon_settings_fault(k->w->s, want->at, "is wrong: %s:%u: %s", want->profile.file,
                              k->part->line[at], why);
}

/* The line that asks for it; 0 where none does by itself. */
static size_t
line_of(const struct check *k, const struct qos_request *r)
{
    for (size_t i = 0; i < k->part->n; i++) {
        const struct qos_request *w = &k->part->want[i];
        if (w->sched == r->sched && w->object_type == r->object_type && w->class_id == r->class_id)
            return i;
    }
    return 0;
}

static bool
was_refused(const struct check *k, uint32_t class_id)
{
    for (size_t i = 0; i < k->n_refused; i++)
        if (k->refused[i] == class_id)
            return true;
    return false;
}

static bool
take_step(void *ctx, const struct qos_request *r)
{
    struct check *k = ctx;
    struct qos_error e = {0};
    uint32_t parent = (uint32_t)r->values.v[QOS_PARENT];
    bool follows =
        (r->class_id && was_refused(k, r->class_id)) || (parent && was_refused(k, parent));
    if (!follows && !qos_execute(k->qos, r, &e))
        return true;
    if (!follows)
        fault(k, line_of(k, r), e.text);
    uint32_t *v = of_arena_room(k->a, k->refused, k->n_refused, &k->refused_room, sizeof *v);
    if (v) {
        k->refused = v;
        v[k->n_refused++] = r->class_id;
    }
    return true;
}

static int
check_part(struct check *k, enum qos_direction dir)
{
    k->part = &k->want->profile.part[dir];
    k->n_refused = 0;
    struct qos_diff d = {.port = {.port_no = PORT,
                                  .dir = dir,
                                  .env = {.mtu = any_port.mtu,
                                          .txqueuelen = any_port.txqueuelen,
                                          .tx_queues = any_port.tx_queues,
                                          .speed = any_port.speed}},
                         .want = k->part->want,
                         .n_want = k->part->n,
                         .fn = take_step,
                         .ctx = k};
    struct qos_error e;
    int err = k->part->n ? qos_diff(&d, &e) : 0;
    if (err > 0)
        fault(k, d.wrong, e.text);
    return err < 0 ? err : 0;
}

static int
check_port(struct check *k)
{
    struct qos_port port = any_port;
    port.name = k->want->port;
    int err = qos_new(&k->qos, qos_kernel_accepting(), NULL);
    if (err)
        return err;
    err = qos_port_add(k->qos, &port);
    for (int dir = QOS_OUT; !err && dir <= QOS_IN; dir++)
        err = check_part(k, (enum qos_direction)dir);
    qos_free(k->qos);
    return err;
}

void
wanted_check_queues(struct wanted *w)
{
    for (size_t i = 0; i < w->n_queues; i++) {
        struct check k = {.w = w, .want = &w->queues[i], .a = &w->s->arena};
        if (w->options->sw.no_slicing)
            daemon_settings_fault(
                w->s, k.want->at,
                "is for %s, but no-slicing leaves its traffic control alone: give "
                "one of the two",
                k.want->port);
        else if (check_port(&k))
            daemon_settings_fault(w->s, NULL, "out of memory, or too many queues");
    }
}
