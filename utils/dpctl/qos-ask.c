/* SPDX-License-Identifier: Apache-2.0 */
/* Asking a switch for its queues, and putting them in order. */
#include "qos-cmd.h"

#include <inttypes.h>
#include <stdlib.h>

#define ENTRY_MIN 72 /* bytes of the smallest entry of a dump */
#define DEPTH_MAX 16 /* the kernel's trees have 8 levels at most */

enum qos_direction
entry_direction(const struct qos_entry *e)
{
    return e->config.values.v[QOS_DIRECTION] == QOS_IN ? QOS_IN : QOS_OUT;
}

enum status
ask_trees(struct ctx *c, struct qos_trees *out)
{
    struct of_bytes data = {0};
    enum status st = ask_experimenter(c, OFP_EXP_QOS_PORTS, (struct of_bytes){NULL, 0}, &data);
    *out = (struct qos_trees){0};
    if (st)
        return st;
    if (data.n % QOS_TREE_LEN)
        return failed(c, "the switch's answer can't be understood");
    out->v = of_arena_array(&c->arena, data.n / QOS_TREE_LEN, sizeof *out->v);
    if (!out->v && data.n)
        return failed(c, "out of memory");
    for (const uint8_t *p = data.p; p < data.p + data.n; p += QOS_TREE_LEN)
        qos_tree_decode(&out->v[out->n++], p);
    return DPCTL_OK;
}

const struct qos_tree *
find_tree(const struct qos_trees *trees, uint32_t port_no, enum qos_direction dir)
{
    for (size_t i = 0; i < trees->n; i++)
        if (trees->v[i].port_no == port_no && trees->v[i].dir == dir)
            return &trees->v[i];
    return NULL;
}

enum status
ask_defaults(struct ctx *c, struct qos_entries *all, struct qos_trees *trees)
{
    enum status st = ask_trees(c, trees);
    for (size_t i = 0; !st && i < all->n; i++) {
        struct qos_request *r = &all->v[i].config;
        const struct qos_tree *t = find_tree(trees, r->port_no, entry_direction(&all->v[i]));
        if (r->object_type == OFP_QOS_QDISC && r->sched->classful && t)
            r->class_id = t->default_id;
    }
    return st;
}

enum status
ask_queues(struct ctx *c, uint32_t port, uint32_t class, struct qos_entries *out)
{
    uint8_t what[8];
    struct of_bytes data = {0};
    struct qos_error e;
    of_set32(what, port);
    of_set32(what + 4, class);
    *out = (struct qos_entries){0};
    enum status st = ask_experimenter(c, OFP_QOS_EXP_DUMP, (struct of_bytes){what, 8}, &data);
    if (st)
        return st;
    struct of_rd rd = of_rd(data.p, data.n);
    out->v = of_arena_array(&c->arena, data.n / ENTRY_MIN + 1, sizeof *out->v);
    if (!out->v)
        return failed(c, "out of memory");
    while (of_rd_left(&rd)) {
        if (qos_entry_decode(&out->v[out->n], &rd, &e))
            return failed(c, "the switch's answer can't be understood: %s", e.text);
        out->n++;
    }
    return DPCTL_OK;
}

const struct of_port *
find_port_desc(const struct of_list *ports, uint32_t no)
{
    for (uint32_t i = 0; i < ports->n; i++) {
        const struct of_port *port = OF_AT(ports, i, struct of_port);
        if (port->port_no == no)
            return port;
    }
    return NULL;
}

uint64_t
port_speed(const struct of_port *port)
{
    return port ? (uint64_t)port->curr_speed * 1000 : 0;
}

/* ------------------------------------------------------------------- the tree */

/* Brothers in order: by what they are below of; schedulers before classes. */
static int
by_place(const void *a, const void *b)
{
    const struct qos_entry *x = *(const struct qos_entry *const *)a;
    const struct qos_entry *y = *(const struct qos_entry *const *)b;
    const uint32_t left[] = {x->config.port_no, entry_direction(x), x->parent_id,
                             x->config.object_type, x->config.class_id};
    const uint32_t right[] = {y->config.port_no, entry_direction(y), y->parent_id,
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
    struct qos_view *out;
    struct qos_env env; /* of the port */
};

/* The first entry of e's port and direction below class `parent` (or behind where that would be). */
static size_t
first_below(const struct ordering *o, const struct qos_entry *e, uint32_t parent)
{
    struct qos_entry key = {.config = {.port_no = e->config.port_no}, .parent_id = parent};
    const struct qos_entry *key_p = &key;
    size_t low = 0, high = o->n;
    key.config.values.v[QOS_DIRECTION] = entry_direction(e);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (by_place(&o->v[mid], &key_p) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* What the class's rates come to below those of its parent. */
static void
rates_of(const struct ordering *o, const struct qos_entry *e, uint64_t rate, uint64_t ceil,
         struct qos_view_node *out)
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
    struct qos_view_node *node = &o->out->v[o->out->n++];
    *node = (struct qos_view_node){e, entry_direction(e), depth, rate, ceil};
    if (e->config.object_type != OFP_QOS_CLASS)
        return;
    rates_of(o, e, rate, ceil, node);
    for (size_t i = first_below(o, e, e->config.class_id); i < o->n; i++) {
        const struct qos_entry *k = o->v[i];
        if (k->config.port_no != e->config.port_no || entry_direction(k) != entry_direction(e) ||
            k->parent_id != e->config.class_id)
            break;
        put_entry(o, i, depth + 1, node->rate, node->ceil);
    }
}

static enum status
make_view(struct ctx *c, const struct qos_entries *entries, const struct of_list *ports,
          struct qos_view *out)
{
    struct ordering o = {.n = entries->n, .out = out};
    *out = (struct qos_view){of_arena_array(&c->arena, o.n + 1, sizeof *out->v), 0};
    o.v = of_arena_array(&c->arena, o.n + 1, sizeof *o.v);
    o.shown = of_arena_array(&c->arena, o.n + 1, sizeof *o.shown);
    if (!out->v || !o.v || !o.shown)
        return failed(c, "out of memory");
    for (size_t i = 0; i < o.n; i++) {
        o.v[i] = &entries->v[i];
        o.shown[i] = false;
    }
    qsort(o.v, o.n, sizeof *o.v, by_place);
    for (size_t i = 0; i < o.n; i++) { /* what has no parent here stands at the margin */
        uint64_t speed = port_speed(find_port_desc(ports, o.v[i]->config.port_no));
        o.env = (struct qos_env){.mtu = USUAL_MTU, .txqueuelen = USUAL_TXQUEUELEN, .speed = speed};
        put_entry(&o, i, 0, speed, speed);
    }
    return DPCTL_OK;
}

static bool
has_share(const struct qos_entry *e)
{
    return qos_has(&e->config.values, QOS_RATE_SHARE) || qos_has(&e->config.values, QOS_CEIL_SHARE);
}

/* One class alone doesn't tell what its shares are of: its parents are asked for, too. */
static enum status
ask_parents(struct ctx *c, struct qos_entries *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const struct qos_entry *e = &all->v[i];
        struct qos_entries more;
        bool known = !e->config.class_id || e->config.object_type != OFP_QOS_CLASS || !has_share(e);
        for (size_t k = 0; k < all->n && !known; k++)
            known = k != i && all->v[k].config.object_type == OFP_QOS_CLASS &&
                    all->v[k].config.port_no == e->config.port_no &&
                    all->v[k].config.class_id == e->parent_id;
        if (known)
            continue;
        enum status st = ask_queues(c, e->config.port_no, e->parent_id, &more);
        struct qos_entry *v = of_arena_array(&c->arena, all->n + more.n + 1, sizeof *v);
        if (st || !v)
            return st ? st : failed(c, "out of memory");
        memcpy(v, all->v, all->n * sizeof *v);
        if (more.n)
            memcpy(v + all->n, more.v, more.n * sizeof *v);
        *all = (struct qos_entries){v, all->n + more.n};
    }
    return DPCTL_OK;
}

/* Only this class is left, at the margin. */
static void
only_class(struct qos_view *view, uint32_t class)
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
view_queues(struct ctx *c, uint32_t port, uint32_t class, struct qos_trees *trees,
            struct qos_view *out)
{
    struct qos_entries entries;
    struct of_list ports = {0};
    bool link = false; /* does it matter how fast the link is? */
    enum status st = ask_queues(c, port, class, &entries);
    if (!st && trees)
        st = ask_defaults(c, &entries, trees);
    if (!st && class != QOS_ALL_CLASSES)
        st = ask_parents(c, &entries);
    for (size_t i = 0; !st && i < entries.n; i++)
        link |= !entries.v[i].config.class_id && has_share(&entries.v[i]);
    if (!st && link)
        st = ask_ports(c, &ports);
    st = st ? st : make_view(c, &entries, &ports, out);
    if (!st && class != QOS_ALL_CLASSES)
        only_class(out, class);
    return st;
}

void
print_queue_name(struct of_wr *w, const struct qos_request *r)
{
    if (r->object_type == OFP_QOS_QDISC)
        of_printf(w, "%s", r->sched->name);
    else if (r->class_id == QOS_CLASS_NONE)
        of_printf(w, "root class");
    else if (r->class_id == QOS_CLASS_DEFAULT)
        of_printf(w, "default class");
    else
        of_printf(w, "class %" PRIu32, r->class_id);
}
