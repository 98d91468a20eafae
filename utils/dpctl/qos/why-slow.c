/* SPDX-License-Identifier: Apache-2.0 */
/* why-slow: which queue makes packets wait, or whether they wait behind the switch, and what to change. */
#include <core/command.h>
#include <core/keys.h>
#include <core/say.h>
#include <core/view.h>
#include <queues/queues.h>

#include <qos/sched/units.h>

#include <inttypes.h>
#include <string.h>

struct asked {
    uint32_t port;
};
static const struct key keys[] = {
    {"port", key_port, KEY_TO(struct asked, port), .bare = KEY_BARE},
    {NULL},
};

/* A queue with figures, and what is known of it. */
struct slow {
    struct queue_latency l;
    const struct queue_node *class; /* NULL: a port without queues, or a band */
    const struct qos_sched *leaf;   /* that somebody asked for; NULL: none, or the switch's own */
    uint32_t added;                 /* by this queue and those behind it */
    uint32_t wait;                  /* in this one */
    bool other_root;                /* another program's root qdisc is on the port */
    struct queue_segments segments; /* of late */
};

#define LOSSY       100 /* one in so many segments sent again makes connections slow */
#define LOSSY_LEAST 500

/* ------------------------------------------------------------------ judging */

static uint32_t
known(uint32_t us)
{
    return us == QUEUE_NO_TIME ? 0 : us;
}

/* The rows, and what is known of their queues: in one pass through these. */
static void
look_at(struct slow *v, const struct queue_rows *rows, const struct queue_rows *segments,
        const struct queue_view *view, const struct queue_trees *trees)
{
    struct queue_segments all;
    size_t at;
    for (size_t i = 0; i < rows->n; i++) {
        const struct queue_latency l = queues_latency_at(rows, i);
        uint32_t rtt = known(l.rtt.p50), path = known(l.path);
        const struct qos_tree *t = queues_find_tree(trees, l.port_no, l.in ? QOS_IN : QOS_OUT);
        v[i] = (struct slow){.l = l,
                             .added = rtt > path ? rtt - path : 0,
                             .wait = known(l.wait.p50),
                             .other_root = t && t->foreign.root};
        queues_find_segments(segments, &l, &all, &v[i].segments);
    }
    for (size_t i = 0; i < view->n; i++) {
        const struct qos_request *r = &view->v[i].entry->config;
        if (!queues_latency_row(rows, &view->v[i], &at))
            continue;
        if (r->object_type == OFP_QOS_CLASS)
            v[at].class = &view->v[i];
        else if (!r->sched->classful)
            v[at].leaf = r->sched;
    }
}

/* A hundredth lost halves what a connection over a path of 50 ms gets already; of fewer segments nobody knows. */
static bool
is_lossy(const struct slow *s)
{
    const struct queue_segments *n = &s->segments;
    return n->counted >= LOSSY_LEAST && (n->behind + n->before) * LOSSY >= n->counted;
}

static bool
is_slow(const struct slow *s)
{
    return s->added >= OFP_LATENCY_SLOW_US || s->wait >= OFP_LATENCY_SLOW_US;
}

/* Where most of the time goes. */
enum where {
    HERE,    /* in this queue */
    BEHIND,  /* it isn't */
    UNKNOWN, /* nobody has read yet how long packets wait in it */
};

static enum where
where_is(const struct slow *s)
{
    if (s->class && s->l.wait.p50 == QUEUE_NO_TIME)
        return UNKNOWN;
    return s->wait >= OFP_LATENCY_SLOW_US && s->wait >= s->added / 2 ? HERE : BEHIND;
}

/* ------------------------------------------------------------------ for people */

static void
print_place(struct of_wr *w, const struct slow *s)
{
    char name[QOS_NAME_ROOM] = "";
    of_printf(w, "port ");
    of_print_number(w, &of_fmt_PORT, s->l.port_no);
    of_printf(w, s->l.in ? ", entering" : "");
    if (s->class)
        qos_name_get(&s->class->entry->config.values.v[QOS_NAME], name);
    if (s->l.class_id == QOS_CLASS_DEFAULT)
        of_printf(w, ", packets without a queue");
    else if (s->l.class_id)
        of_printf(w, ", queue %" PRIu32 "%s%s", s->l.class_id, *name ? " " : "", name);
}

static void
print_remedy(struct of_wr *w, const struct slow *s)
{
    char rate[QOS_UNIT_TEXT];
    unsigned port = s->l.port_no, class = s->l.class_id;
    bool fair = s->l.source == 1 || (s->leaf && !strcmp(s->leaf->name, "fq"));
    enum where where = where_is(s);
    if (where == UNKNOWN)
        of_printf(
            w,
            "\n    Whether they wait in this queue is not known yet: it is read from now on. Ask again in a few "
            "seconds, while round trips are long.");
    else if (s->other_root)
        of_printf(
            w,
            "\n    The port has another program's root qdisc, in which they may wait: tc -s qdisc show. dpctl qos-htb "
            "cmd=replace,port=%u,class=0,rate=RATE takes its place.",
            port);
    else if (where == BEHIND)
        of_printf(
            w,
            "\n    It is not this queue. If a slower link comes behind the port, let packets wait here, where "
            "it can be decided who waits: dpctl qos-apply home-router port=%u up=RATE, with a RATE a little below "
            "that link's; qos-autorate follows one that changes.",
            port);
    else if (!s->class)
        of_printf(w, "\n    The port itself is full: dpctl top ports shows its load.");
    else if (!fair)
        of_printf(
            w,
            "\n    A FIFO makes each packet wait for all before it. Let it keep the delay short: dpctl qos-%s "
            "cmd=%s,port=%u,class=%u",
            "fq_codel", s->leaf ? "replace" : "add", port, class);
    else
        of_printf(
            w,
            "\n    Its scheduler keeps the delay as short as its rate allows; more rate shortens it: dpctl "
            "qos-%s cmd=change,port=%u,class=%u,... with more than %s",
            s->class->entry->config.sched->name, port, class,
            qos_format_rate(s->class->ceil, rate));
}

/* What is lost makes a sender slow, too. */
static void
print_lost(struct of_wr *w, const struct slow *s)
{
    const struct queue_segments *n = &s->segments;
    double all = (double)n->counted / 100;
    of_printf(
        w,
        "\n    Of its TCP segments %.1f %% were sent again: %.1f %% were lost in the queue or after it, %.1f %% "
        "before they reached the switch.",
        (double)(n->behind + n->before) / all, (double)n->behind / all, (double)n->before / all);
    if (n->behind >= n->before)
        of_printf(
            w,
            " dpctl qos-show port=%u shows what the queue drops; the rest is lost behind the port.",
            (unsigned)s->l.port_no);
}

static void
print_slow(struct of_wr *w, const struct slow *s)
{
    char a[QUEUE_TIME_TEXT], b[QUEUE_TIME_TEXT], c[QUEUE_TIME_TEXT], rate[QOS_UNIT_TEXT];
    of_printf(w, w->len ? "\n" : "");
    print_place(w, s);
    if (s->l.rtt.p50 != QUEUE_NO_TIME)
        of_printf(w, ": round trips take %s ms, of which the path takes %s and queues add %s",
                  queues_print_time(s->l.rtt.p50, a), queues_print_time(s->l.path, b),
                  queues_print_time(s->added, c));
    if (s->l.wait.p50 != QUEUE_NO_TIME)
        of_printf(w, "%s packets wait %s ms in this queue",
                  s->l.rtt.p50 != QUEUE_NO_TIME ? ";" : ":", queues_print_time(s->wait, a));
    if (where_is(s) == HERE && s->class)
        of_printf(w, ", where %u bytes wait and at most %s leave",
                  (unsigned)s->class->entry->counters.backlog_bytes,
                  qos_format_rate(s->class->ceil, rate));
    of_printf(w, ".");
    if (is_slow(s))
        print_remedy(w, s);
    if (is_lossy(s))
        print_lost(w, s);
}

/* ------------------------------------------------------------------ for programs */

static void
json_slow(struct of_json *j, const struct slow *s, const struct queue_rows *segments)
{
    of_json_object(j, NULL);
    of_json_number(j, "port_no", &of_fmt_PORT, s->l.port_no);
    of_json_text(j, "direction", s->l.in ? "in" : "out");
    of_json_uint(j, "queue", s->l.class_id);
    static const char *const names[] = {
        [HERE] = "queue", [BEHIND] = "behind", [UNKNOWN] = "unknown"};
    of_json_text(j, "where", is_slow(s) ? names[where_is(s)] : "loss");
    of_json_uint(j, "added_us", s->added);
    queues_json_latency(j, &s->l);
    queues_json_segments(j, segments, &s->l);
    of_json_end_object(j);
}

/* ------------------------------------------------------------------ the command */

static size_t
show(struct ctx *c, struct of_wr *w, const struct slow *v, size_t n_rows,
     const struct queue_rows *segments)
{
    struct of_json json = of_json(w);
    size_t n = 0;
    if (c->json) {
        of_json_object(&json, NULL);
        of_json_array(&json, "slow");
    }
    for (size_t i = 0; i < n_rows; i++) {
        if (!is_slow(&v[i]) && !is_lossy(&v[i]))
            continue;
        n++;
        if (c->json)
            json_slow(&json, &v[i], segments);
        else
            print_slow(w, &v[i]);
    }
    if (c->json) {
        of_json_end_array(&json);
        of_json_uint(&json, "queues", n_rows);
        of_json_end_object(&json);
    }
    return n;
}

static enum status
why_slow(struct ctx *c, const struct command *self, char **words, int n)
{
    struct asked q = {OFPP_ANY};
    struct queue_rows rows;
    struct queue_view view;
    struct queue_trees trees;
    enum status st = keys_take(c, keys, words, n, &q);
    st = st ? st : queues_ask_latency(c, q.port, QOS_ALL_CLASSES, &rows);
    if (!st && !rows.n && !c->json)
        return queues_say_no_latency(c);
    st = st ? st : queues_view(c, q.port, QOS_ALL_CLASSES, &trees, &view);
    if (st)
        return st;
    struct slow *v = of_arena_array(&c->arena, rows.n + 1, sizeof *v);
    if (!v)
        return say_memory(c);
    const struct queue_rows segments = queues_segments_if_known(c);
    look_at(v, &rows, &segments, &view, &trees);
    struct of_wr w = of_wr_grow(VIEW_MAX);
    if (!show(c, &w, v, rows.n, &segments) && !c->json)
        of_printf(&w, "no packets wait: of %zu queue%s none adds %d ms in the last ten seconds",
                  rows.n, rows.n == 1 ? "" : "s", OFP_LATENCY_SLOW_US / 1000);
    return view_line(c, &w);
}

static const char why_slow_help[] =
    "  port=N  only this port\n"
    "A line for each queue whose connections take at least 5 ms longer than the path's least round trip of\n"
    "ten minutes, in which packets wait as long, or of whose TCP segments one in a hundred was sent again:\n"
    "where the time goes, and what would shorten it.";

static const struct command rows[] = {
    {.name = "why-slow",
     .subject = SUBJECT_QOS,
     .args = "[port=N]",
     .help = "which queue makes packets wait, and what to change",
     .text = why_slow_help,
     .examples = "why-slow\nwhy-slow eth1",
     .run = why_slow,
     .asks = true},
};

const struct command_table commands_why_slow = COMMAND_TABLE(rows);
