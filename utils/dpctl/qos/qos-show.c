/* SPDX-License-Identifier: Apache-2.0 */
/* qos-show: the queues of the switch's ports as trees, with the kernel's counters. */
#include <core/command.h>
#include <core/keys.h>
#include <core/say.h>
#include <core/view.h>
#include <queues/queues.h>

#include <oflib/plural.h>

#include <qos/sched/units.h>

#include <inttypes.h>

/* -------------------------------------------------------------------- words */

struct shown {
    uint32_t port, class;
};
static const struct key keys[] = {
    {"port", key_port, KEY_TO(struct shown, port), .bare = KEY_BARE},
    {"class", key_number, KEY_TO(struct shown, class), .bare = KEY_BARE},
    {NULL},
};

/* -------------------------------------------------------------- for programs */

static void
json_tins(struct of_json *j, const struct queue_node *node, const struct queue_rows *tins)
{
    struct queue_tin t;
    if (!node->entry->config.sched->tins)
        return;
    of_json_array(j, "tins");
    for (size_t i = 0; queues_next_tin(tins, node, &i, &t);) {
        of_json_object(j, NULL);
        of_json_uint(j, "tin", t.number);
        of_json_uint(j, "bytes", t.bytes);
        of_json_uint(j, "packets", t.packets);
        of_json_uint(j, "drops", t.drops);
        of_json_uint(j, "marked", t.marked);
        of_json_uint(j, "rate_bps", t.rate);
        of_json_uint(j, "backlog_bytes", t.backlog_bytes);
        of_json_uint(j, "delay_us", t.delay_us);
        of_json_uint(j, "peak_delay_us", t.peak_us);
        of_json_end_object(j);
    }
    of_json_end_array(j);
}

/* What is asked for beside the dump. */
struct extras {
    uint32_t port;           /* OFPP_ANY: all */
    struct queue_view whole; /* what print_default looks at; it may be more than is shown */
    struct queue_trees trees;
    struct queue_rows tins;
    struct queue_rows promises;
    struct queue_rows latencies;
};

static void
json_node(struct of_json *j, const struct queue_node *node, const struct extras *x)
{
    const struct qos_counters *n = &node->entry->counters;
    const struct qos_request *r = &node->entry->config;
    of_json_object(j, NULL);
    queues_json_place(j, node);
    if (r->object_type == OFP_QOS_CLASS) {
        of_json_uint(j, "rate_bps", node->rate);
        of_json_uint(j, "ceil_bps", node->ceil);
    }
    of_json_uint(j, "bytes", n->bytes);
    of_json_uint(j, "packets", n->packets);
    of_json_uint(j, "drops", n->drops);
    of_json_uint(j, "overlimits", n->overlimits);
    of_json_uint(j, "requeues", n->requeues);
    of_json_uint(j, "marked", n->marked);
    of_json_uint(j, "backlog_bytes", n->backlog_bytes);
    of_json_uint(j, "backlog_packets", n->backlog_packets);
    json_tins(j, node, &x->tins);
    queues_json_promise(j, &x->promises, node);
    queues_json_node_latency(j, node, &x->latencies);
    queues_json_config(j, r);
    of_json_end_object(j);
}

static void
json_tree(struct of_json *j, const struct qos_tree *t)
{
    of_json_object(j, NULL);
    of_json_number(j, "port_no", &of_fmt_PORT, t->port_no);
    of_json_text(j, "direction", t->dir == QOS_IN ? "in" : "out");
    of_json_text(j, "sched", t->sched ? t->sched->name : "none");
    of_json_uint(j, "queues", t->n_queues);
    of_json_uint(j, "default_class", t->default_id);
    of_json_bool(j, "kept", t->kept);
    of_json_bool(j, "away", t->absent);
    of_json_uint(j, "foreign_changes", t->foreign.changed);
    of_json_uint(j, "foreign_repaired", t->foreign.repaired);
    of_json_bool(j, "differs", t->foreign.differs);
    of_json_bool(j, "foreign_root", t->foreign.root);
    of_json_end_object(j);
}

static void
json_trees(struct of_wr *w, const struct queue_view *view, const struct extras *x)
{
    struct of_json j = of_json(w);
    of_json_object(&j, NULL);
    of_json_array(&j, "qos");
    for (size_t i = 0; i < view->n; i++)
        json_node(&j, &view->v[i], x);
    of_json_end_array(&j);
    of_json_array(&j, "trees");
    for (size_t i = 0; i < x->trees.n; i++)
        json_tree(&j, &x->trees.v[i]);
    of_json_end_array(&j);
    of_json_end_object(&j);
}

/* ---------------------------------------------------------------- for people */

/* Behind a share: the rate that it comes to. */
static void
print_share(struct of_wr *w, const struct queue_node *node, const struct qos_field *f)
{
    char text[QOS_UNIT_TEXT];
    if (f->unit == QOS_U_SHARE)
        of_printf(w, " = %s",
                  qos_format_rate(f->slot == QOS_RATE_SHARE ? node->rate : node->ceil, text));
}

static void
print_config(struct of_wr *w, const struct queue_node *node)
{
    const struct qos_request *r = &node->entry->config;
    char name[32], value[256];
    const struct qos_field *f;
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        bool share_given = f->rival && qos_has(&r->values, f->rival) && !r->values.v[f->slot];
        if (!qos_has(&r->values, f->slot) || f->slot == QOS_PARENT || f->slot == QOS_DIRECTION ||
            f->slot == QOS_NAME || share_given)
            continue;
        of_printf(w, " %s %s", qos_field_name(f, name, sizeof name),
                  qos_field_format(f, &r->values, value, sizeof value));
        print_share(w, node, f);
    }
}

static void
print_counters(struct of_wr *w, const struct qos_counters *n)
{
    of_printf(
        w, "sent %" PRIu64 " bytes %" PRIu64 " packet%s, dropped %" PRIu64 ", overlimits %" PRIu64,
        n->bytes, n->packets, OF_S(n->packets), n->drops, n->overlimits);
    if (n->requeues)
        of_printf(w, ", requeues %" PRIu64, n->requeues);
    if (n->marked)
        of_printf(w, ", marked %" PRIu64, n->marked);
    if (n->backlog_bytes || n->backlog_packets)
        of_printf(w, ", backlog %" PRIu32 " bytes %" PRIu32 " packet%s", n->backlog_bytes,
                  n->backlog_packets, OF_S(n->backlog_packets));
}

static void
print_tins(struct of_wr *w, const struct queue_node *node, const struct queue_rows *tins,
           int margin)
{
    struct queue_tin t;
    char wait[QOS_UNIT_TEXT], peak[QOS_UNIT_TEXT];
    for (size_t i = 0; queues_next_tin(tins, node, &i, &t);) {
        of_printf(w, "\n%*stin %u: came %" PRIu64 " bytes %" PRIu64 " packet%s, dropped %" PRIu64,
                  margin + 4, "", t.number, t.bytes, t.packets, OF_S(t.packets), t.drops);
        if (t.marked)
            of_printf(w, ", marked %" PRIu64, t.marked);
        if (t.backlog_bytes)
            of_printf(w, ", backlog %" PRIu32 " bytes", t.backlog_bytes);
        if (t.packets)
            of_printf(w, ", waited %s (at most %s)", qos_format_time(t.delay_us, wait),
                      qos_format_time(t.peak_us, peak));
    }
}

/* What lasts for as long as the promise says. */
static void
print_now(struct of_wr *w, const struct queue_promise *p, int margin)
{
    const char *what[] = {p->broken ? "gets less than its rate" : NULL,
                          p->drops ? "drops packets" : NULL,
                          p->slow ? "lets packets wait too long" : NULL};
    const char *before = "now ";
    for (unsigned i = 0; i < sizeof what / sizeof what[0]; i++) {
        if (!what[i])
            continue;
        if (*before == 'n')
            of_printf(w, "\n%*s", margin + 4, "");
        of_printf(w, "%s%s", before, what[i]);
        before = ", ";
    }
}

static void
print_promise(struct of_wr *w, const struct queue_node *node, const struct queue_rows *all,
              int margin)
{
    struct queue_promise p;
    if (!queues_find_promise(all, node, &p))
        return;
    double kept = queues_kept(&p);
    if (p.rated)
        of_printf(w, "\n%*spackets waited for %.1f s", margin + 4, "",
                  (double)p.backlogged_us / 1e6);
    if (kept >= 0)
        of_printf(w, "; it got its rate in %.1f%% of that", 100 * kept);
    if (node->entry->config.values.v[QOS_DELAY])
        of_printf(w, "\n%*sits delay was kept in %.1f%% of the seconds; in the last one %.1f ms",
                  margin + 4, "", 100 - p.delay_missed / 10.0, p.delay_us / 1e3);
    print_now(w, &p, margin);
}

static void
print_latency(struct of_wr *w, const struct queue_node *node, const struct queue_rows *rows,
              int margin)
{
    struct queue_latency l;
    char half[QUEUE_TIME_TEXT], most[QUEUE_TIME_TEXT], path[QUEUE_TIME_TEXT];
    if (!queues_find_latency(rows, node, &l))
        return;
    if (l.rtt.p50 != QUEUE_NO_TIME)
        of_printf(w, "\n%*sround trips of %s ms (90 %% within %s), the least of ten minutes %s",
                  margin + 4, "", queues_print_time(l.rtt.p50, half),
                  queues_print_time(l.rtt.p90, most), queues_print_time(l.path, path));
    if (l.wait.p50 != QUEUE_NO_TIME)
        of_printf(w, "\n%*spackets wait %s ms (90 %% of the time at most %s), by the %s",
                  margin + 4, "", queues_print_time(l.wait.p50, half),
                  queues_print_time(l.wait.p90, most), queues_latency_source(l.source));
}

/* The requested default class gets packets without a queue only while it exists and is a leaf. */
enum asked_class { ASKED_MISSING, ASKED_LEAF, ASKED_INNER };

static enum asked_class
asked_state(const struct queue_view *all, const struct qos_tree *t)
{
    enum asked_class state = ASKED_MISSING;
    for (size_t i = 0; i < all->n && state != ASKED_INNER; i++) {
        const struct qos_entry *e = all->v[i].entry;
        if (e->config.object_type != OFP_QOS_CLASS || e->config.port_no != t->port_no ||
            all->v[i].dir != t->dir)
            continue;
        if (e->parent_id == t->default_id)
            state = ASKED_INNER;
        else if (e->config.class_id == t->default_id)
            state = ASKED_LEAF;
    }
    return state;
}

/* Marks the class of packets without a queue: the one asked for, or the switch's own. */
static void
print_default(struct of_wr *w, const struct queue_node *node, const struct extras *x, int margin)
{
    const struct qos_tree *t = queues_find_tree(&x->trees, node->entry->config.port_no, node->dir);
    uint32_t id = node->entry->config.class_id, asked = t ? t->default_id : 0;
    bool own = id == QOS_CLASS_DEFAULT;
    if (node->entry->config.object_type != OFP_QOS_CLASS || (!own && (!asked || id != asked)))
        return;
    enum asked_class state = asked ? asked_state(&x->whole, t) : ASKED_MISSING;
    of_printf(w, "\n%*s", margin + 4, "");
    if (own && state == ASKED_LEAF)
        of_printf(w, "the switch's own; packets without a queue are class %" PRIu32 "'s", asked);
    else if (own && state == ASKED_INNER)
        of_printf(w, "packets without a queue: class %" PRIu32 " has classes below it", asked);
    else if (own && asked)
        of_printf(w, "the switch's own, until class %" PRIu32 " exists", asked);
    else if (!own && state == ASKED_INNER)
        of_printf(w, "not for packets without a queue while it has classes below it");
    else
        of_printf(w, "packets without a queue");
}

/* No packet waits in a class that has others below it: these follow it in the view. */
static void
print_inner(struct of_wr *w, const struct queue_view *view, size_t i, int margin)
{
    uint32_t id = view->v[i].entry->config.class_id, taker = queues_taker(view, i);
    if (!id || id > QOS_CLASS_MAX || taker == id)
        return;
    of_printf(w, "\n%*spackets for queue %" PRIu32 " go to ", margin + 4, "", id);
    if (taker == QOS_CLASS_DEFAULT)
        of_printf(w, "the default class below it");
    else
        of_printf(w, "class %" PRIu32, taker);
}

static void
print_node(struct of_wr *w, const struct queue_node *node, const struct extras *x)
{
    const struct qos_request *r = &node->entry->config;
    int margin = (node->depth + 1) * 2;
    of_printf(w, "\n%*s", margin, "");
    if (r->object_type == OFP_QOS_QDISC && !r->sched->classful && r->class_id && !node->depth)
        of_printf(w, "queue %" PRIu32 " ", r->class_id); /* a band, which no entry shows */
    queues_print_name(w, r);
    if (r->object_type == OFP_QOS_QDISC && r->sched->classful && r->class_id)
        of_printf(w, " default %" PRIu32, r->class_id);
    print_config(w, node);
    print_default(w, node, x, margin);
    of_printf(w, "\n%*s", margin + 4, "");
    print_counters(w, &node->entry->counters);
    print_promise(w, node, &x->promises, margin);
    print_latency(w, node, &x->latencies, margin);
    print_tins(w, node, &x->tins, margin);
}

static void
print_port(struct of_wr *w, const struct queue_node *node, const struct queue_trees *trees)
{
    const struct qos_tree *t = queues_find_tree(trees, node->entry->config.port_no, node->dir);
    of_printf(w, "port ");
    of_print_number(w, &of_fmt_PORT, node->entry->config.port_no);
    of_printf(w, node->dir == QOS_IN ? ", in" : "");
    if (t && t->foreign.changed)
        of_printf(
            w, " (another program changed %" PRIu64 " qdiscs or classes, %" PRIu64 " repaired%s)",
            t->foreign.changed, t->foreign.repaired,
            t->foreign.differs ? "; the kernel still differs from what was asked for" : "");
}

static void
print_other_roots(struct of_wr *w, const struct extras *x)
{
    for (size_t i = 0; i < x->trees.n; i++) {
        const struct qos_tree *t = &x->trees.v[i];
        if (!t->foreign.root || (x->port != OFPP_ANY && x->port != t->port_no))
            continue;
        of_printf(
            w,
            "\nport %" PRIu32
            " has another program's root qdisc, which alone decides how packets wait (tc -s qdisc show): "
            "qos-htb cmd=replace,port=%" PRIu32 ",class=0,rate=RATE takes its place",
            t->port_no, t->port_no);
    }
}

/* A tree for each port and direction. */
static void
print_trees(struct of_wr *w, const struct queue_view *view, const struct extras *x)
{
    uint32_t port = 0;
    enum qos_direction dir = QOS_OUT;
    for (size_t i = 0; i < view->n; i++) {
        const struct queue_node *node = &view->v[i];
        if (!i || node->entry->config.port_no != port || node->dir != dir) {
            port = node->entry->config.port_no;
            dir = node->dir;
            of_printf(w, i ? "\n" : "");
            print_port(w, node, &x->trees);
        }
        print_node(w, node, x);
        print_inner(w, view, i, (node->depth + 1) * 2);
    }
    if (!view->n)
        of_printf(w, "no queues");
    print_other_roots(w, x);
}

/* ------------------------------------------------------------------- --kernel */

static const char *const states[] = {
    [KERNEL_NO] = "no", [KERNEL_YES] = "yes", [KERNEL_UNKNOWN] = "unknown"};

static void
json_kernel(struct of_wr *w, const struct queue_kernel *kernel)
{
    struct of_json json = of_json(w), *j = &json;
    of_json_object(j, NULL);
    of_json_text(j, "release", kernel->release);
    of_json_array(j, "schedulers");
    for (size_t i = 0; i < kernel->n; i++) {
        const struct qos_sched *s = kernel->v[i].sched;
        of_json_object(j, NULL);
        of_json_text(j, "sched", s->name);
        of_json_text(j, "state", states[kernel->v[i].state]);
        of_json_text(j, "module", s->module ? s->module : "-");
        of_json_text(j, "openwrt_package", s->package ? s->package : "kernel");
        of_json_end_object(j);
    }
    of_json_end_array(j);
    of_json_end_object(j);
}

static void
print_kernel(struct of_wr *w, const struct queue_kernel *kernel)
{
    of_printf(w, "kernel ");
    of_print_text(w, kernel->release, strlen(kernel->release));
    of_printf(w, "\n%-10s %-8s %-14s %-18s %s", "scheduler", "there", "module", "OpenWrt package",
              "what it is");
    for (size_t i = 0; i < kernel->n; i++) {
        const struct qos_sched *s = kernel->v[i].sched;
        of_printf(w, "\n%-10s %-8s %-14s %-18s %s", s->name, states[kernel->v[i].state],
                  s->module ? s->module : "-", s->package ? s->package : "kernel", s->help);
    }
}

static enum status
show_kernel(struct ctx *c)
{
    struct queue_kernel kernel;
    enum status st = queues_ask_kernel(c, &kernel);
    if (st)
        return st;
    struct of_wr w = of_wr_grow(1 << 20);
    (c->json ? json_kernel : print_kernel)(&w, &kernel);
    return view_line(c, &w);
}

/* --------------------------------------------------------------- --openconfig */

static enum status
show_openconfig(struct ctx *c, uint32_t port)
{
    struct queue_view view;
    struct of_wr w = of_wr_grow(VIEW_MAX);
    enum status st = queues_view(c, port, QOS_ALL_CLASSES, NULL, &view);
    st = st ? st : queues_json_openconfig(c, &view, port, &w);
    if (!st)
        return view_line(c, &w);
    of_wr_free(&w);
    return st;
}

/* ---------------------------------------------------------------- the command */

/* A dump of one class does not tell whether the default class exists, so the whole port is asked
 * for. */
static enum status
ask_whole(struct ctx *c, uint32_t port, uint32_t class, const struct queue_view *view,
          struct extras *x)
{
    bool wanted = class == QOS_CLASS_DEFAULT;
    for (size_t i = 0; i < x->trees.n; i++)
        wanted |= class == x->trees.v[i].default_id;
    x->whole = *view;
    if (!wanted || c->json || !view->n)
        return DPCTL_OK;
    return queues_view(c, port, QOS_ALL_CLASSES, NULL, &x->whole);
}

static enum status
qos_show(struct ctx *c, const struct command *self, char **words, int n)
{
    struct shown q = {OFPP_ANY, QOS_ALL_CLASSES};
    struct queue_view view;
    struct extras x;
    if (c->kernel)
        return n ? say_usage(c, "--kernel takes no port or class") : show_kernel(c);
    enum status st = keys_take(c, keys, words, n, &q);
    if (!st && c->openconfig)
        return q.class == QOS_ALL_CLASSES ? show_openconfig(c, q.port)
                                          : say_usage(c, "--openconfig takes a port, but no class");
    st = st ? st : queues_view(c, q.port, q.class, &x.trees, &view);
    st = st ? st : ask_whole(c, q.port, q.class, &view, &x);
    st = st ? st : queues_ask_tins(c, &view, &x.tins);
    st = st ? st : queues_ask_promises(c, &view, &x.promises);
    if (st)
        return st;
    x.latencies = queues_latency_if_known(c);
    x.port = q.port;
    struct of_wr w = of_wr_grow(VIEW_MAX);
    (c->json ? json_trees : print_trees)(&w, &view, &x);
    return view_line(c, &w);
}

static const char show_help[] =
    "  port=N, class=N  only these (class=0: the port's root)\n"
    "  --kernel         which schedulers the switch's kernel has, with the kernel module and the\n"
    "                   OpenWrt package of each\n"
    "  --openconfig     ports and queues as JSON in OpenConfig's models, openconfig-interfaces and\n"
    "                   openconfig-qos (docs/how-to/openconfig.md)\n"
    "A class is shown with its configuration (a share with the rate it comes to) and the kernel's\n"
    "counters, CAKE with those of its tins, a class with a promise with the part of the time in which\n"
    "packets waited that it got its rate, and how long packets take where that was measured (latency).  A port that has queues for incoming packets has two trees.  --json has everything.";

static const struct command rows[] = {
    {.name = "qos-show",
     .subject = SUBJECT_QOS,
     .first = {TASK_SHAPE, "qos-show port=eth1", "queues and their counters"},
     .args = "[port=N] [class=N] | --kernel | [port=N] --openconfig",
     .help = "the queues, their configuration and counters",
     .text = show_help,
     .examples = "qos-show\nqos-show port=2 class=10\nqos-show --kernel\nqos-show --openconfig",
     .run = qos_show,
     .options = COMMAND_KERNEL | COMMAND_OPENCONFIG,
     .asks = true},
};

const struct command_table commands_qos_show = COMMAND_TABLE(rows);
