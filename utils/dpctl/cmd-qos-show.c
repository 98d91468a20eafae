/* SPDX-License-Identifier: Apache-2.0 */
/* qos-show: what the switch has put on its ports, as a tree, with the kernel's counters. */
#include "commands.h"

#include <qos/qos.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct node {
    struct qos_entry entry;
    bool shown;
};

struct nodes {
    struct node *v;
    size_t n;
};

/* ------------------------------------------------------------------- asking */

static enum status
parse_show(struct ctx *c, char **words, int n, uint32_t *port, uint32_t *class)
{
    int bare = 0;
    for (int i = 0; i < n; i++) {
        for (char *save, *w = strtok_r(words[i], ",", &save); w; w = strtok_r(NULL, ",", &save)) {
            const char *eq = strchr(w, '=');
            bool is_port = eq ? !strncmp(w, "port=", 5) : bare++ == 0;
            uint64_t v;
            if (!is_port && eq ? strncmp(w, "class=", 6) != 0 : bare > 2)
                return bad_args(c, "%s is unknown: port=N and class=N are right", w);
            if (of_parse_number(&c->parse, is_port ? "port" : "class", eq ? eq + 1 : w,
                                is_port ? &of_fmt_PORT : &of_fmt_DEC, 32, &v))
                return bad_parse(c, -EINVAL);
            *(is_port ? port : class) = (uint32_t)v;
        }
    }
    return DPCTL_OK;
}

static enum status
ask(struct ctx *c, uint32_t port, uint32_t class, struct of_bytes *entries)
{
    uint8_t what[8];
    struct of_mp_experimenter body = {OFP_QOS_EXPERIMENTER, OFP_QOS_EXP_DUMP, {what, 8}};
    struct of_msg reply;
    of_set32(what, port);
    of_set32(what + 4, class);
    enum status st = multipart(c, OFPMP_EXPERIMENTER, &body, &reply);
    if (st)
        return st;
    const struct of_mp_experimenter *dump = reply.body;
    if (dump->experimenter != OFP_QOS_EXPERIMENTER || dump->exp_type != OFP_QOS_EXP_DUMP)
        return failed(c, "the switch answered with something else");
    *entries = dump->data;
    return DPCTL_OK;
}

/* The smallest entry is 72 bytes long. */
static enum status
decode(struct ctx *c, struct of_bytes entries, struct nodes *out)
{
    struct of_rd rd = of_rd(entries.p, entries.n);
    struct qos_error e;
    out->v = of_arena_array(&c->arena, entries.n / 72 + 1, sizeof *out->v);
    if (!out->v)
        return failed(c, "out of memory");
    while (of_rd_left(&rd)) {
        if (qos_entry_decode(&out->v[out->n].entry, &rd, &e))
            return failed(c, "the switch's answer can't be understood: %s", e.text);
        out->n++;
    }
    return DPCTL_OK;
}

/* -------------------------------------------------------------- for programs */

static void
json_value(struct of_wr *w, const struct qos_field *f, const struct qos_values *v)
{
    char text[256];
    if (f->unit == QOS_U_BOOL) {
        of_printf(w, "%s", v->v[f->slot] ? "true" : "false");
    } else if (f->unit == QOS_U_ENUM || qos_field_slots(f) > 1) {
        qos_field_format(f, v, text, sizeof text);
        of_json_string(w, text, strlen(text));
    } else {
        of_printf(w, "%" PRIu64, v->v[f->slot]);
    }
}

/* Rates in bit/s, sizes in bytes, times in microseconds (perturb: seconds), shares in ppm. */
static void
json_config(struct of_wr *w, const struct qos_request *r)
{
    const struct qos_field *f;
    const char *sep = "";
    char name[32];
    of_printf(w, "{");
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        if (!qos_has(&r->values, f->slot))
            continue;
        of_printf(w, "%s\"%s%s\": ", sep, qos_field_name(f, name, sizeof name),
                  f->unit == QOS_U_SHARE ? "_share_ppm" : "");
        json_value(w, f, &r->values);
        sep = ", ";
    }
    of_printf(w, "}");
}

static void
json_entry(struct of_wr *w, const struct qos_entry *e)
{
    const struct qos_counters *n = &e->counters;
    const struct qos_request *r = &e->config;
    of_printf(w, "{\"port_no\": ");
    of_json_number(w, &of_fmt_PORT, r->port_no);
    of_printf(w, ", \"object\": \"%s\", \"sched\": \"%s\", \"class_id\": %" PRIu32
                 ", \"parent_id\": %" PRIu32 ", ",
              qos_object_name(r->object_type), r->sched->name, r->class_id, e->parent_id);
    of_printf(w, "\"bytes\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"drops\": %" PRIu64
                 ", \"overlimits\": %" PRIu64 ", \"requeues\": %" PRIu64 ", \"marked\": %" PRIu64,
              n->bytes, n->packets, n->drops, n->overlimits, n->requeues, n->marked);
    of_printf(w, ", \"backlog_bytes\": %" PRIu32 ", \"backlog_packets\": %" PRIu32
                 ", \"config\": ",
              n->backlog_bytes, n->backlog_packets);
    json_config(w, r);
    of_printf(w, "}");
}

/* ---------------------------------------------------------------- for people */

static int
by_place(const void *a, const void *b)
{
    const struct qos_entry *x = &((const struct node *)a)->entry;
    const struct qos_entry *y = &((const struct node *)b)->entry;
    const uint32_t left[] = {x->config.port_no, x->parent_id, x->config.object_type,
                             x->config.class_id};
    const uint32_t right[] = {y->config.port_no, y->parent_id, y->config.object_type,
                              y->config.class_id};
    for (int i = 0; i < 4; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

/* The first node of the port below this parent (or behind where that would be). */
static size_t
first_below(const struct nodes *t, uint32_t port, uint32_t parent)
{
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct qos_entry *e = &t->v[mid].entry;
        bool before = e->config.port_no < port ||
                      (e->config.port_no == port && e->parent_id < parent);
        if (before)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void
print_name(struct of_wr *w, const struct qos_request *r)
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

static void
print_config(struct of_wr *w, const struct qos_request *r)
{
    char name[32], value[256];
    const struct qos_field *f;
    for (unsigned i = 0; (f = qos_sched_field(r->sched, i)); i++) {
        bool share_given = f->rival && qos_has(&r->values, f->rival) && !r->values.v[f->slot];
        if (!qos_has(&r->values, f->slot) || f->slot == QOS_PARENT || share_given)
            continue;
        of_printf(w, " %s %s", qos_field_name(f, name, sizeof name),
                  qos_field_format(f, &r->values, value, sizeof value));
    }
}

static void
print_counters(struct of_wr *w, const struct qos_counters *n)
{
    of_printf(w, "sent %" PRIu64 " bytes %" PRIu64 " packets, dropped %" PRIu64
                 ", overlimits %" PRIu64,
              n->bytes, n->packets, n->drops, n->overlimits);
    if (n->requeues)
        of_printf(w, ", requeues %" PRIu64, n->requeues);
    if (n->marked)
        of_printf(w, ", marked %" PRIu64, n->marked);
    if (n->backlog_bytes || n->backlog_packets)
        of_printf(w, ", backlog %" PRIu32 " bytes %" PRIu32 " packets", n->backlog_bytes,
                  n->backlog_packets);
}

#define DEPTH_MAX 16 /* the kernel's trees have 8 levels at most */

static void
print_node(struct of_wr *w, const struct nodes *t, size_t at, int depth)
{
    struct node *node = &t->v[at];
    const struct qos_request *r = &node->entry.config;
    if (node->shown || depth > DEPTH_MAX)
        return;
    node->shown = true;
    of_printf(w, "%s%*s", w->len ? "\n" : "", depth * 2, "");
    print_name(w, r);
    print_config(w, r);
    of_printf(w, "\n%*s", depth * 2 + 4, "");
    print_counters(w, &node->entry.counters);
    if (r->object_type != OFP_QOS_CLASS)
        return;
    for (size_t i = first_below(t, r->port_no, r->class_id); i < t->n; i++) {
        const struct qos_entry *e = &t->v[i].entry;
        if (e->config.port_no != r->port_no || e->parent_id != r->class_id)
            break;
        print_node(w, t, i, depth + 1);
    }
}

/* In order of ports, below each the tree; what has no parent here stands at its margin. */
static void
print_tree(struct of_wr *w, struct nodes *t)
{
    qsort(t->v, t->n, sizeof *t->v, by_place);
    for (size_t i = 0; i < t->n; i++) {
        uint32_t port = t->v[i].entry.config.port_no;
        if (i == 0 || port != t->v[i - 1].entry.config.port_no) {
            of_printf(w, "%sport ", i ? "\n" : "");
            of_print_number(w, &of_fmt_PORT, port);
        }
        print_node(w, t, i, 1);
    }
    if (!t->n)
        of_printf(w, "no queues");
}

enum status
qos_show(struct ctx *c, char **words, int n)
{
    uint32_t port = OFPP_ANY, class = QOS_ALL_CLASSES;
    struct nodes t = {0};
    struct of_bytes entries = {NULL, 0};
    enum status st = parse_show(c, words, n, &port, &class);
    st = st ? st : ask(c, port, class, &entries);
    st = st ? st : decode(c, entries, &t);
    if (st)
        return st;
    struct of_wr w = of_wr_grow(1u << 30);
    if (c->json) {
        of_printf(&w, "{\"qos\": [");
        for (size_t i = 0; i < t.n; i++) {
            of_printf(&w, i ? ", " : "");
            json_entry(&w, &t.v[i].entry);
        }
        of_printf(&w, "]}");
    } else {
        print_tree(&w, &t);
    }
    return put_line(c, &w);
}
