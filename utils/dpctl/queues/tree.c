/* SPDX-License-Identifier: Apache-2.0 */
#include <core/ask.h>
#include <core/ports.h>
#include <core/say.h>
#include <queues/queues.h>

#include <stdlib.h>

#define DEPTH_MAX 16 /* the kernel's trees have 8 levels at most */

/* By port, direction and parent; schedulers before classes. */
static int
by_place(const void *a, const void *b)
{
    const struct qos_entry *x = *(const struct qos_entry *const *)a;
    const struct qos_entry *y = *(const struct qos_entry *const *)b;
    const uint32_t left[] = {x->config.port_no, queues_direction(x), x->parent_id,
                             x->config.object_type, x->config.class_id};
    const uint32_t right[] = {y->config.port_no, queues_direction(y), y->parent_id,
                              y->config.object_type, y->config.class_id};
    for (int i = 0; i < 5; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

struct ordering {
    const struct qos_entry **v;
    bool *shown;
    size_t n;
    struct queue_view *out;
    struct qos_env env; /* of the port */
};

/* The first entry of e's port and direction below class `parent` (or behind where that would
 * be). */
static size_t
first_below(const struct ordering *o, const struct qos_entry *e, uint32_t parent)
{
    struct qos_entry key = {.config = {.port_no = e->config.port_no}, .parent_id = parent};
    const struct qos_entry *key_p = &key;
    size_t low = 0, high = o->n;
    key.config.values.v[QOS_DIRECTION] = queues_direction(e);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (by_place(&o->v[mid], &key_p) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The class's rates in bit/s; shares are of its parent's. */
static void
rates_of(const struct ordering *o, const struct qos_entry *e, uint64_t rate, uint64_t ceil,
         struct queue_node *out)
{
    const struct qos_sched *s = e->config.sched;
    struct qos_values v = e->config.values;
    struct qos_env env = o->env;
    env.parent_rate = rate;
    env.parent_ceil = ceil;
    if (s->resolve)
        s->resolve(&v, &env);
    out->rate = v.v[QOS_RATE];
    out->ceil = v.v[QOS_CEIL];
}

static void
put_entry(struct ordering *o, size_t at, int depth, uint64_t rate, uint64_t ceil)
{
    const struct qos_entry *e = o->v[at];
    if (o->shown[at] || depth > DEPTH_MAX)
        return;
    o->shown[at] = true;
    struct queue_node *node = &o->out->v[o->out->n++];
    *node = (struct queue_node){e, queues_direction(e), depth, rate, ceil};
    if (e->config.object_type != OFP_QOS_CLASS)
        return;
    rates_of(o, e, rate, ceil, node);
    for (size_t i = first_below(o, e, e->config.class_id); i < o->n; i++) {
        const struct qos_entry *k = o->v[i];
        if (k->config.port_no != e->config.port_no || queues_direction(k) != queues_direction(e) ||
            k->parent_id != e->config.class_id)
            break;
        put_entry(o, i, depth + 1, node->rate, node->ceil);
    }
}

static enum status
make_view(struct ctx *c, const struct queue_entries *entries, const struct of_list *ports,
          struct queue_view *out)
{
    struct ordering o = {.n = entries->n, .out = out};
    *out = (struct queue_view){of_arena_array(&c->arena, o.n + 1, sizeof *out->v), 0};
    o.v = of_arena_array(&c->arena, o.n + 1, sizeof *o.v);
    o.shown = of_arena_array(&c->arena, o.n + 1, sizeof *o.shown);
    if (!out->v || !o.v || !o.shown)
        return say_memory(c);
    for (size_t i = 0; i < o.n; i++) {
        o.v[i] = &entries->v[i];
        o.shown[i] = false;
    }
    qsort(o.v, o.n, sizeof *o.v, by_place);
    for (size_t i = 0; i < o.n; i++) { /* entries without a parent here are not indented */
        uint64_t speed = ports_speed(ports_desc(ports, o.v[i]->config.port_no));
        o.env = queues_env(speed);
        put_entry(&o, i, 0, speed, speed);
    }
    return DPCTL_OK;
}

static bool
has_share(const struct qos_entry *e)
{
    return qos_has(&e->config.values, QOS_RATE_SHARE) || qos_has(&e->config.values, QOS_CEIL_SHARE);
}

/* Asks for the parents of a single class, too: its shares are of theirs. */
static enum status
ask_parents(struct ctx *c, struct queue_entries *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct qos_entry *e = &all->v[i];
        struct queue_entries more;
        bool known = !e->config.class_id || e->config.object_type != OFP_QOS_CLASS || !has_share(e);
        for (size_t k = 0; k < all->n && !known; k++)
            known = k != i && all->v[k].config.object_type == OFP_QOS_CLASS &&
                    all->v[k].config.port_no == e->config.port_no &&
                    all->v[k].config.class_id == e->parent_id;
        if (known)
            continue;
        enum status st = queues_ask(c, e->config.port_no, e->parent_id, &more);
        struct qos_entry *v = of_arena_array(&c->arena, all->n + more.n + 1, sizeof *v);
        if (st || !v)
            return st ? st : say_memory(c);
        memcpy(v, all->v, all->n * sizeof *v);
        if (more.n)
            memcpy(v + all->n, more.v, more.n * sizeof *v);
        *all = (struct queue_entries){v, all->n + more.n};
    }
    return DPCTL_OK;
}

/* Keeps only this class, not indented. */
static void
only_class(struct queue_view *view, uint32_t class)
{
    size_t n = 0;
    int margin = 0;
    for (size_t i = 0; i < view->n; i++) {
        if (view->v[i].entry->config.class_id != class)
            continue;
        if (view->v[i].entry->config.object_type == OFP_QOS_CLASS || !n)
            margin = view->v[i].depth;
        view->v[n] = view->v[i];
        view->v[n++].depth -= margin;
    }
    view->n = n;
}

enum status
queues_view(struct ctx *c, uint32_t port, uint32_t class, struct queue_trees *trees,
            struct queue_view *out)
{
    struct queue_entries entries;
    struct of_list ports = {0};
    bool link = false; /* is a share of the link's speed asked for? */
    enum status st = queues_ask(c, port, class, &entries);
    if (!st && trees)
        st = queues_ask_defaults(c, &entries, trees);
    if (!st && class != QOS_ALL_CLASSES)
        st = ask_parents(c, &entries);
    for (size_t i = 0; !st && i < entries.n; i++)
        link |= !entries.v[i].config.class_id && has_share(&entries.v[i]);
    if (!st && link)
        st = ports_ask(c, &ports);
    st = st ? st : make_view(c, &entries, &ports, out);
    if (!st && class != QOS_ALL_CLASSES)
        only_class(out, class);
    return st;
}

enum status
queues_ask_rows(struct ctx *c, const struct queue_view *view,
                bool (*is_wanted)(const struct queue_node *), uint32_t exp_type, size_t len,
                struct queue_rows *out)
{
    struct of_bytes data;
    bool some = !is_wanted;
    *out = (struct queue_rows){0};
    for (size_t i = 0; i < view->n && !some; i++)
        some = is_wanted(&view->v[i]);
    if (!some)
        return DPCTL_OK;
    enum status st = ask_experimenter(c, exp_type, (struct of_bytes){NULL, 0}, &data);
    if (!st && data.n % len)
        st = say_malformed(c);
    if (!st)
        *out = (struct queue_rows){data.p, data.n / len};
    return st;
}
