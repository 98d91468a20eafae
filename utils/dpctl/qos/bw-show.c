/* SPDX-License-Identifier: Apache-2.0 */
/* bw-show, bw-watch: how a port's total is used, and who lends to whom.
 *
 * HTB does not record whose rate a class borrows.  What a group sends above its share is therefore
 * shown as borrowed from all groups that leave some, in proportion to what each of them leaves. */
#include "bw.h"

#include <core/command.h>
#include <core/whole.h>
#include <queues/watch.h>

#include <oflib/plural.h>

#include <qos/sched/units.h>

#include <inttypes.h>
#include <stdio.h>

#define NAME_WIDTH 8
#define LOAN_WIDTH 26
#define SIDES      (NAME_WIDTH + 6 + 10 + 9 + 9 + 2 + LOAN_WIDTH) /* all columns but the bar */

/* A group, or the packets in none (QOS_CLASS_DEFAULT). */
struct use {
    const struct queue_node *node;
    uint32_t group;
    struct watch_delta delta;
    uint64_t spare, over; /* bit/s: below its guaranteed rate, above it */
};

/* One direction of a port. */
struct side {
    const struct queue_node *root; /* its rate is the total */
    struct watch_delta delta;
    struct use *v;
    size_t n;
    uint64_t undivided; /* bit/s of the total that are in no share */
    uint64_t spare;     /* the sum of that and of the groups' */
};

/* ------------------------------------------------------------------------ reckoning */

/* part * x / of */
static uint64_t
portion(uint64_t part, uint64_t x, uint64_t of)
{
    return of ? whole((double)part * (double)x / (double)of) : 0;
}

/* What `from` lends to `to`. */
static uint64_t
loan(const struct side *s, const struct use *from, const struct use *to)
{
    return portion(to->over, from->spare, s->spare);
}

/* All that the group lends. */
static uint64_t
lends(const struct side *s, const struct use *from)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < s->n; i++)
        sum += loan(s, from, &s->v[i]);
    return sum;
}

static bool
is_root(const struct queue_node *n)
{
    return n->entry->config.object_type == OFP_QOS_CLASS && !n->entry->config.class_id;
}

static void
take_group(struct side *s, const struct watch *w, const struct queue_node *n, int64_t elapsed)
{
    struct use *u = &s->v[s->n++];
    *u = (struct use){
        .node = n, .group = n->entry->config.class_id, .delta = watch_delta(w, n, elapsed)};
    /* The default class is not guaranteed more than the shares leave of the total. */
    bool none = u->group == QOS_CLASS_DEFAULT && n->rate > s->undivided;
    u->spare = watch_above(none ? s->undivided : n->rate, u->delta.bps);
    u->over = watch_above(u->delta.bps, n->rate);
    s->spare += u->spare;
    s->undivided = watch_above(s->undivided, n->rate);
}

/* The next side of the view from *at on; moves *at behind it.  False: there is none.  In the
 * arena. */
static bool
next_side(const struct watch *w, const struct queue_view *view, int64_t elapsed, size_t *at,
          struct side *s)
{
    while (*at < view->n && !is_root(&view->v[*at]))
        ++*at;
    *s = (struct side){.v = of_arena_array(&w->c->arena, view->n + 1, sizeof *s->v)};
    if (*at == view->n || !s->v)
        return false;
    s->root = &view->v[(*at)++];
    s->undivided = s->root->rate;
    s->delta = watch_delta(w, s->root, elapsed);
    for (; *at < view->n && !is_root(&view->v[*at]) && !watch_begins(view, *at); ++*at) {
        const struct queue_node *n = &view->v[*at];
        if (bw_is_group(n->entry) || n->entry->config.class_id == QOS_CLASS_DEFAULT)
            take_group(s, w, n, elapsed);
    }
    s->spare += s->undivided;
    return true;
}

/* --------------------------------------------------------------------- for people */

static const char *
group_name(uint32_t group, char buf[16])
{
    if (group == QOS_CLASS_DEFAULT)
        return "none";
    snprintf(buf, 16, "%u", (unsigned)group);
    return buf;
}

/* "lends 26.7k to 1 2", "borrows 13.3k of 4" */
static void
print_loans(struct of_wr *w, const struct watch *watch, const struct side *s, const struct use *u)
{
    struct of_wr text = of_wr_grow(4096);
    uint64_t lent = lends(s, u);
    char number[16];
    if (u->over)
        of_printf(&text, "borrows %s of", watch_number(u->over, number));
    else if (lent)
        of_printf(&text, "lends %s to", watch_number(lent, number));
    for (size_t i = 0; i < s->n && text.len; i++) {
        const struct use *o = &s->v[i];
        if (u->over ? !loan(s, o, u) : !loan(s, u, o))
            continue;
        of_printf(&text, " %s", group_name(o->group, number));
    }
    if (u->over && portion(u->over, s->undivided, s->spare))
        of_printf(&text, " undivided");
    bool cut = watch->tty && text.len > LOAN_WIDTH;
    if (text.len)
        of_printf(w, "  %.*s", cut ? LOAN_WIDTH : (int)text.len, (const char *)text.buf);
    of_wr_free(&text);
}

static void
print_use(struct of_wr *w, const struct watch *watch, const struct side *s, const struct use *u)
{
    const struct qos_values *v = &u->node->entry->config.values;
    char share[QOS_UNIT_TEXT] = "", used[16], assured[16], group[16];
    if (qos_has(v, QOS_RATE_SHARE))
        qos_format_ppm(v->v[QOS_RATE_SHARE], share);
    of_printf(w, " %-*s%6s %8s ", NAME_WIDTH - 1, group_name(u->group, group), share,
              watch_number(u->delta.bps, used));
    watch_bar(w, watch, u->node, u->delta.bps, watch->once ? 0 : watch->columns - SIDES);
    of_printf(w, " %8s ", watch_number(u->node->rate, assured));
    watch_drops(w, watch, u->delta.drops);
    print_loans(w, watch, s, u);
}

static void
print_total(struct of_wr *w, const struct side *s)
{
    char total[16], used[16], undivided[16];
    watch_port(w, s->root);
    of_printf(w, "%s: %s bit/s in all, %s used", s->root->dir == QOS_IN ? "" : ", out",
              watch_number(s->root->rate, total), watch_number(s->delta.bps, used));
    if (s->undivided)
        of_printf(w, ", %s undivided", watch_number(s->undivided, undivided));
}

static enum status
groups_text(struct of_wr *w, const struct watch *watch, const struct queue_view *view,
            int64_t elapsed)
{
    int line = 0, bar = watch->once ? 0 : watch->columns - SIDES;
    size_t at = 0;
    struct side s;
    of_printf(w, "%-*s%6s %8s %-*s %8s %8s", NAME_WIDTH, "group", "share", "bit/s",
              bar > 3 ? bar : 0, "", "assured", "dropped");
    bool room = watch_end_line(w, watch, &line), any = false;
    while (room && next_side(watch, view, elapsed, &at, &s)) {
        any = true;
        print_total(w, &s);
        room = watch_end_line(w, watch, &line);
        for (size_t i = 0; i < s.n && room; i++) {
            print_use(w, watch, &s, &s.v[i]);
            room = watch_end_line(w, watch, &line);
        }
    }
    if (!any)
        of_printf(w, "no totals");
    watch_end(w, watch, room);
    return DPCTL_OK;
}

/* The look, and each group's connections. */
static enum status
show_text(struct of_wr *w, const struct watch *watch, const struct queue_view *view,
          int64_t elapsed)
{
    struct map_members members;
    enum status st = groups_text(w, watch, view, elapsed);
    st = st ? st : map_members(watch->c, BW_SET, &members);
    if (st || !members.n)
        return st;
    of_printf(w, "connections");
    for (size_t i = 0; i < members.n; i++) {
        const struct map_member *m = &members.v[i];
        of_printf(w, "\n group %u: ", (unsigned)m->queue);
        of_print_match(w, &m->flow->match);
        of_printf(w, ": %" PRIu64 " packet%s, %" PRIu64 " bytes", m->flow->packet_count,
                  OF_S(m->flow->packet_count), m->flow->byte_count);
    }
    return DPCTL_OK;
}

/* ------------------------------------------------------------------- for programs */

/* Who lends to the group, or borrows from it (`given`): {"3": 8000, "undivided": 100} */
static void
json_loans(struct of_json *j, const char *name, const struct side *s, const struct use *u,
           bool given)
{
    of_json_object(j, name);
    for (size_t i = 0; i < s->n; i++) {
        uint64_t bps = given ? loan(s, u, &s->v[i]) : loan(s, &s->v[i], u);
        char group[16];
        if (bps)
            of_json_uint(j, group_name(s->v[i].group, group), bps);
    }
    uint64_t undivided = given ? 0 : portion(u->over, s->undivided, s->spare);
    if (undivided)
        of_json_uint(j, "undivided", undivided);
    of_json_end_object(j);
}

static void
json_use(struct of_json *j, const struct side *s, const struct use *u)
{
    const struct qos_values *v = &u->node->entry->config.values;
    const struct qos_counters *k = &u->node->entry->counters;
    of_json_object(j, NULL);
    if (u->group == QOS_CLASS_DEFAULT)
        of_json_null(j, "group");
    else
        of_json_uint(j, "group", u->group);
    if (qos_has(v, QOS_RATE_SHARE))
        of_json_uint(j, "share_ppm", v->v[QOS_RATE_SHARE]);
    of_json_uint(j, "assured_bps", u->node->rate);
    of_json_uint(j, "used_bps", u->delta.bps);
    of_json_uint(j, "lent_bps", lends(s, u));
    of_json_uint(j, "borrowed_bps", u->over);
    json_loans(j, "lent_to", s, u, true);
    json_loans(j, "borrowed_from", s, u, false);
    of_json_uint(j, "dropped", u->delta.drops);
    of_json_uint(j, "backlog_bytes", k->backlog_bytes);
    of_json_object(j, "total");
    of_json_uint(j, "bytes", k->bytes);
    of_json_uint(j, "packets", k->packets);
    of_json_uint(j, "dropped", k->drops);
    of_json_end_object(j);
    of_json_end_object(j);
}

static void
json_side(struct of_json *j, const struct side *s, int64_t elapsed)
{
    of_json_object(j, NULL);
    of_json_real(j, "time", watch_time());
    of_json_real(j, "interval", (double)elapsed / 1e6);
    of_json_number(j, "port_no", &of_fmt_PORT, s->root->entry->config.port_no);
    of_json_text(j, "direction", s->root->dir == QOS_IN ? "in" : "out");
    of_json_uint(j, "total_bps", s->root->rate);
    of_json_uint(j, "used_bps", s->delta.bps);
    of_json_uint(j, "undivided_bps", s->undivided);
    of_json_array(j, "groups");
    for (size_t i = 0; i < s->n; i++)
        json_use(j, s, &s->v[i]);
    of_json_end_array(j);
    of_json_end_object(j);
}

/* A line for each port and direction. */
static enum status
groups_json(struct of_wr *w, const struct watch *watch, const struct queue_view *view,
            int64_t elapsed)
{
    size_t at = 0;
    struct side s;
    for (bool first = true; next_side(watch, view, elapsed, &at, &s); first = false) {
        struct of_json j = of_json(w);
        of_printf(w, first ? "" : "\n");
        json_side(&j, &s, elapsed);
    }
    return DPCTL_OK;
}

static enum status
show_json(struct of_wr *w, const struct watch *watch, const struct queue_view *view,
          int64_t elapsed)
{
    struct map_members members;
    struct of_json j = of_json(w);
    struct side s;
    size_t at = 0;
    enum status st = map_members(watch->c, BW_SET, &members);
    of_json_object(&j, NULL);
    of_json_array(&j, "totals");
    while (next_side(watch, view, elapsed, &at, &s))
        json_side(&j, &s, elapsed);
    of_json_end_array(&j);
    of_json_array(&j, "connections");
    for (size_t i = 0; !st && i < members.n; i++) {
        of_json_object(&j, NULL);
        of_json_uint(&j, "group", members.v[i].queue);
        of_json_struct(&j, "flow", &of_row_flow_stats, members.v[i].flow);
        of_json_end_object(&j);
    }
    of_json_end_array(&j);
    of_json_end_object(&j);
    return st;
}

/* ------------------------------------------------------------------------- commands */

static enum status
bw_show(struct ctx *c, const struct command *self, char **words, int n)
{
    return watch_run(c, words, n, show_text, show_json, true);
}

static enum status
bw_watch(struct ctx *c, const struct command *self, char **words, int n)
{
    return watch_run(c, words, n, groups_text, groups_json, false);
}

static const char bw_watch_help[] =
    "  port=N           only this port\n"
    "  interval=1s      time between two looks (at least 100ms)\n"
    "  count=N          bw-watch: ends after N looks (default: at SIGINT, ^C)\n"
    "Columns: the group's share; its rate now; a bar as long as the total ('=' up to the share, '+'\n"
    "borrowed, '|' where the share ends); its guaranteed rate; packets dropped in the interval; what\n"
    "it lends or borrows, and which groups from or to.  none: packets that are in no group.  --json:\n"
    "a line for each port and direction, rates in bit/s; bw-show writes one object, which has the\n"
    "connections, too.";

static const struct command rows[] = {
    {.name = "bw-show",
     .subject = SUBJECT_BW,
     .args = "[port=N] [interval=TIME]",
     .help = "the groups, what they use, lend and borrow, and their connections",
     .text = bw_watch_help,
     .examples = "bw-show port=1",
     .run = bw_show,
     .asks = true},
    {.name = "bw-watch",
     .subject = SUBJECT_BW,
     .args = "[port=N] [interval=TIME] [count=N]",
     .help = "the groups as they change",
     .text = bw_watch_help,
     .examples = "bw-watch port=1",
     .run = bw_watch,
     .asks = true},
};

const struct command_table commands_bw_show = COMMAND_TABLE(rows);
