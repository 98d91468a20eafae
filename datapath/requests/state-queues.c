/* SPDX-License-Identifier: Apache-2.0 */
#include "state-queues.h"

#include "qos-request.h"

#include <switch/switch.h>

#include <qos/diff/diff.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* What one direction of a port has. */
struct tree {
    struct qos_diff_port port;
    bool there, kept;
    uint32_t default_id;
    struct qos_entry *v;
    size_t n, cap;
    bool nomem;
};

static void
take_tree(void *ctx, const struct qos_tree *t)
{
    struct tree *out = ctx;
    if (t->port_no != out->port.port_no || t->dir != out->port.dir || !t->sched)
        return;
    out->there = true;
    out->kept = t->kept;
    out->default_id = t->default_id;
}

static bool
take_entry(void *ctx, const struct qos_entry *e)
{
    struct tree *t = ctx;
    if (e->config.values.v[QOS_DIRECTION] != (uint64_t)t->port.dir ||
        e->config.class_id == QOS_CLASS_DEFAULT)
        return true;
    if (t->n == t->cap) {
        size_t cap = t->cap ? t->cap * 2 : 64;
        struct qos_entry *more = reallocarray(t->v, cap, sizeof *more);
        t->nomem = !more;
        if (!more)
            return false;
        t->v = more;
        t->cap = cap;
    }
    t->v[t->n++] = *e;
    return true;
}

static bool
is_tree_root(const struct qos_entry *e)
{
    return e->config.object_type == OFP_QOS_QDISC && e->config.sched->classful &&
           !e->config.class_id;
}

static bool
is_root_class(const struct qos_entry *e)
{
    return e->config.object_type == OFP_QOS_CLASS && !e->config.class_id;
}

/* False: out of memory. */
static bool
tree_read(struct sw *sw, const struct sw_port *p, enum qos_direction dir, struct tree *t)
{
    *t = (struct tree){.port = {.port_no = p->no, .dir = dir, .env = sw_port_env(p)}};
    qos_each_tree(sw->qos, take_tree, t);
    if (t->there)
        qos_each_entry(sw->qos, p->no, take_entry, t);
    for (size_t i = 0; i < t->n; i++)
        if (is_tree_root(&t->v[i]))
            t->v[i].config.class_id = t->default_id;
    return !t->nomem;
}

/* ------------------------------------------------------------------ from the model to requests */

struct writing {
    struct of_wr *w;
    size_t steps;
    bool failed;
};

static bool
count_step(void *ctx, const struct qos_request *step)
{
    struct writing *k = ctx;
    k->steps++;
    return false;
}

static bool
write_step(void *ctx, const struct qos_request *step)
{
    struct writing *k = ctx;
    struct of_wr content = of_wr_grow(OF_MSG_MAX);
    qos_request_encode(&content, step);
    struct of_experimenter m = {
        OFP_QOS_EXPERIMENTER, OFP_QOS_EXP_REQUEST, {content.buf, content.len}};
    int err = content.overflow || of_encode_body(k->w, OFPT_EXPERIMENTER, 0, &m);
    of_wr_free(&content);
    k->failed = err != 0;
    return !err;
}

/* Leaves out what the switch would do itself: a tree without a request of its own, and a root class
 * without which nothing would be different. */
static size_t
requests_of(const struct tree *t, bool root_class, struct qos_request *out)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) {
        const struct qos_entry *e = &t->v[i];
        bool own =
            (is_tree_root(e) && !t->kept && !t->default_id) || (is_root_class(e) && !root_class);
        if (!own)
            out[n++] = e->config;
    }
    return n;
}

static bool
write_tree(const struct tree *t, struct of_wr *w)
{
    struct qos_request *want = calloc(t->n + 1, sizeof *want);
    struct writing k = {.w = w};
    struct qos_error e = {0};
    if (!want)
        return false;
    size_t n = requests_of(t, false, want);
    struct qos_diff d = {t->port, t->v, t->n, want, n, count_step, &k, 0};
    int err = qos_diff(&d, &e);
    if (err || k.steps)
        n = requests_of(t, true, want);
    d = (struct qos_diff){t->port, NULL, 0, want, n, write_step, &k, 0};
    err = qos_diff(&d, &e);
    free(want);
    return err != -ENOMEM && !k.failed && !w->overflow;
}

bool
sw_state_queues(struct sw *sw, struct of_wr *w)
{
    uint32_t no = 0;
    bool good = true;
    for (const struct sw_port *p; good && (p = sw_ports_next(sw, no)); no = p->no) {
        for (int dir = QOS_OUT; good && dir <= QOS_IN; dir++) {
            struct tree t;
            good = tree_read(sw, p, (enum qos_direction)dir, &t) && (!t.n || write_tree(&t, w));
            free(t.v);
        }
    }
    return good;
}

/* ------------------------------------------------------------------ from requests to the kernel */

struct doing {
    struct sw *sw;
    struct qos_error e;
};

static bool
do_step(void *ctx, const struct qos_request *step)
{
    struct doing *k = ctx;
    return !sw_qos_execute(k->sw, NULL, step, &k->e);
}

static int
set_tree(struct doing *k, const struct sw_port *p, enum qos_direction dir,
         const struct qos_request *all, size_t n_all, struct qos_request *want)
{
    struct tree t;
    size_t n = 0;
    for (size_t i = 0; i < n_all; i++)
        if (all[i].port_no == p->no && all[i].values.v[QOS_DIRECTION] == (uint64_t)dir)
            want[n++] = all[i];
    int err = tree_read(k->sw, p, dir, &t) ? 0 : -ENOMEM;
    struct qos_diff d = {t.port, t.v, t.n, want, n, do_step, k, 0};
    err = err ? err : qos_diff(&d, &k->e);
    free(t.v);
    return err ? err : k->e.err;
}

int
sw_state_set_queues(struct sw *sw, const struct qos_request *want, size_t n, char *why,
                    size_t why_len)
{
    struct doing k = {.sw = sw};
    struct qos_request *of_tree = calloc(n + 1, sizeof *of_tree);
    int err = of_tree ? 0 : -ENOMEM;
    uint32_t no = 0;
    qos_begin(sw->qos);
    for (const struct sw_port *p; !err && (p = sw_ports_next(sw, no)); no = p->no)
        for (int dir = QOS_OUT; !err && dir <= QOS_IN; dir++)
            err = set_tree(&k, p, (enum qos_direction)dir, want, n, of_tree);
    free(of_tree);
    if (err)
        qos_abort(sw->qos);
    else
        err = qos_commit(sw->qos, NULL, &k.e);
    if (err)
        snprintf(why, why_len, "%s", *k.e.text ? k.e.text : strerror(ENOMEM));
    return err;
}
