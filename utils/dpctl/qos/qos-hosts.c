/* SPDX-License-Identifier: Apache-2.0 */
/* qos-hosts: a queue for each host of a prefix, and the flow that chooses it. */
#include <core/command.h>
#include <core/keys.h>
#include <core/say.h>
#include <core/view.h>
#include <core/words.h>
#include <queues/map.h>

#include <qos/profile/hosts.h>
#include <qos/sched/units.h>

#include <inttypes.h>
#include <stdio.h>

enum verb { ADD, SHOW, DEL };

struct asked {
    enum verb verb;
    uint32_t port, first; /* first 0: not given */
    uint32_t each;
    bool has_rate;
    const char *prefix;
    struct qos_hosts hosts;    /* if a prefix is given */
    struct qos_map map;        /* the flows: set, table, then */
    struct of_wr class;        /* the keys of the classes */
    struct qos_request sample; /* a class */
};

/* What there is: the set's flows in order of queues, and the port's classes by id. */
struct present {
    struct map_members of;
    const struct queue_node **class;
    uint32_t last; /* highest id of a class */
};

/* --------------------------------------------------------------------------- words */

/* A key that is not one of this command's is the class's. */
static enum status
take_other(struct ctx *c, const struct key *key, char *word, void *to)
{
    static const char *const verbs[] = {[ADD] = "add", [SHOW] = "show", [DEL] = "del"};
    struct asked *a = to;
    int taken = qos_map_place(&c->parse, &a->map, word);
    if (taken)
        return taken < 0 ? say_parse(c, taken) : DPCTL_OK;
    for (enum verb v = ADD; v <= DEL; v++)
        if (!strcmp(word, verbs[v])) {
            a->verb = v;
            return DPCTL_OK;
        }
    if (!strncmp(word, "class=", 6) || !strncmp(word, "cmd=", 4) ||
        !strncmp(word, "direction=", 10) || !strncmp(word, "object=", 7))
        return say_usage(c,
                         "%.*s= has no meaning here: queues get the numbers from first=N on, for "
                         "packets that leave by the port",
                         (int)strcspn(word, "="), word);
    a->has_rate |= !strncmp(word, "rate=", 5) || !strncmp(word, "min_rate=", 9);
    of_printf(&a->class, ",%s", word);
    return DPCTL_OK;
}

#define TO(member) KEY_TO(struct asked, member)
static const struct key keys[] = {
    {"port", key_port, TO(port), .need = "port=1"},
    {"prefix", key_text, TO(prefix)},
    {"first", key_number, TO(first), .least = 1, .most = QOS_CLASS_MAX},
    {"each", key_number, TO(each), .least = 1, .most = 128},
    {"by", key_choice, TO(hosts.source), .values = "dst|src"},
    {.take = take_other},
};

static enum status
check_words(struct ctx *c, struct asked *a)
{
    char why[256];
    if (a->prefix && qos_hosts_parse(&a->hosts, a->prefix, a->each, why, sizeof why))
        return say_usage(c, "%s", why);
    if (a->verb != ADD)
        return a->class.len ? say_usage(c, "show and del take port= and prefix= alone") : DPCTL_OK;
    if (!a->prefix)
        return say_usage(c, "no prefix given: write prefix=10.0.0.0/24");
    if (!a->has_rate)
        return say_usage(c, "no rate given: write rate=1mbit,ceil=20mbit");
    return DPCTL_OK;
}

static enum status
parse_class(struct ctx *c, struct asked *a)
{
    char text[1024], why[768] = "";
    if (snprintf(text, sizeof text, "cmd=add,port=%u,class=1%.*s", (unsigned)a->port,
                 (int)a->class.len, (const char *)a->class.buf) >= (int)sizeof text)
        return say_usage(c, "the keys of the queues are longer than %zu characters",
                         sizeof text - 40);
    if (qos_request_parse(&a->sample, qos_sched_by_id(OFP_QOS_SCHED_HTB), text, why, sizeof why))
        return say_usage(c, "%s", why);
    a->sample.action_type = OFP_QOS_REPLACE;
    return say_doubt(c, why);
}

static enum status
take_words(struct ctx *c, char **words, int n, struct asked *a)
{
    char set[32];
    *a = (struct asked){.class = of_wr_grow(2048)};
    qos_map_init(&a->map, "hosts");
    enum status st = keys_take(c, keys, words, n, a);
    st = st ? st : check_words(c, a);
    snprintf(set, sizeof set, "hosts:%u", (unsigned)a->port);
    a->map.set = words_keep(c, set, strlen(set));
    if (!st && !a->map.set)
        st = say_memory(c);
    if (!st && a->verb == ADD)
        st = parse_class(c, a);
    of_wr_free(&a->class);
    return st;
}

/* ------------------------------------------------------------------- what there is */

static enum status
find_classes(struct ctx *c, const struct asked *a, struct present *out)
{
    struct queue_view view;
    enum status st = queues_view(c, a->port, QOS_ALL_CLASSES, NULL, &view);
    out->class = of_arena_array(&c->arena, QOS_CLASS_MAX + 1, sizeof *out->class);
    if (!st && !out->class)
        return say_memory(c);
    for (size_t i = 0; !st && i < view.n; i++) {
        const struct qos_request *r = &view.v[i].entry->config;
        if (view.v[i].dir == QOS_IN || r->object_type != OFP_QOS_CLASS || !r->class_id ||
            r->class_id > QOS_CLASS_MAX)
            continue;
        out->class[r->class_id] = &view.v[i];
        out->last = r->class_id > out->last ? r->class_id : out->last;
    }
    return st;
}

static enum status
find_present(struct ctx *c, const struct asked *a, struct present *out)
{
    *out = (struct present){0};
    enum status st = map_members(c, a->map.set, &out->of);
    return st ? st : find_classes(c, a, out);
}

/* ----------------------------------------------------------------------------- add */

static enum status
say_taken(struct ctx *c, const struct asked *a, const struct present *now, uint32_t queue,
          const char *whose)
{
    if (now->last + a->hosts.n > QOS_CLASS_MAX)
        return say_failed(c,
                          "port %u has a queue %u already, %s: choose other numbers with first=N",
                          (unsigned)a->port, (unsigned)queue, whose);
    return say_failed(c, "port %u has a queue %u already, %s: write first=%u", (unsigned)a->port,
                      (unsigned)queue, whose, (unsigned)now->last + 1);
}

/* Existing hosts of the prefix keep their queues.  Queues that something else has made must not
 * be taken. */
static enum status
check_queues(struct ctx *c, struct asked *a, const struct present *now)
{
    uint32_t at, end;
    char host[QOS_HOSTS_TEXT];
    bool *ours = of_arena_array(&c->arena, QOS_CLASS_MAX + 1, sizeof *ours);
    if (!ours)
        return say_memory(c);
    for (size_t i = 0; i < now->of.n; i++) {
        if (!qos_hosts_find(&a->hosts, &now->of.v[i].flow->match, &at) || now->of.v[i].queue <= at)
            continue;
        if (!a->first)
            a->first = now->of.v[i].queue - at;
        if (now->of.v[i].queue != a->first + at)
            return say_failed(c, "%s has queue %u already: write first=%u, or del its prefix first",
                              qos_hosts_print(&a->hosts, at, host), (unsigned)now->of.v[i].queue,
                              (unsigned)(now->of.v[i].queue - at));
        ours[now->of.v[i].queue] = true;
    }
    a->first = a->first ? a->first : 1;
    end = a->first + a->hosts.n;
    if (end > QOS_CLASS_MAX + 1)
        return say_usage(c, "the prefix has %u hosts, queues end at %u: write first=%u or less",
                         (unsigned)a->hosts.n, QOS_CLASS_MAX,
                         (unsigned)(QOS_CLASS_MAX + 1 - a->hosts.n));
    for (size_t i = 0; i < now->of.n; i++)
        if (now->of.v[i].queue >= a->first && now->of.v[i].queue < end && !ours[now->of.v[i].queue])
            return say_taken(c, a, now, now->of.v[i].queue, "another host's");
    for (uint32_t q = a->first; q < end; q++)
        if (now->class[q] && !ours[q])
            return say_taken(c, a, now, q, "which is no host's");
    return DPCTL_OK;
}

static enum status
add_hosts(struct ctx *c, struct asked *a)
{
    struct present now;
    struct steps steps = {0};
    char host[QOS_HOSTS_TEXT], rule[128];
    enum status st = find_present(c, a, &now);
    int err = 0;
    st = st ? st : check_queues(c, a, &now);
    for (uint32_t i = 0; !st && !err && i < a->hosts.n; i++) {
        a->sample.class_id = a->first + i;
        steps_qos(c, &steps, &a->sample, NULL);
        snprintf(rule, sizeof rule, "queue=%u,%s=%s", (unsigned)(a->first + i),
                 a->hosts.source ? "src" : "dst", qos_hosts_print(&a->hosts, i, host));
        err = qos_map_rule(&c->parse, &a->map, rule, false);
    }
    err = st || err ? err : qos_map_finish(&c->parse, &a->map);
    if (err)
        return say_parse(c, err);
    st = st ? st : map_diff(c, &a->map, true, &steps);
    return st ? st : steps_run(c, &steps);
}

/* ----------------------------------------------------------------------------- del */

/* Is the host one of the prefix, or are all hosts meant? */
static bool
is_asked(const struct asked *a, const struct map_member *m)
{
    uint32_t at;
    return !a->prefix || qos_hosts_find(&a->hosts, &m->flow->match, &at);
}

static enum status
del_hosts(struct ctx *c, struct asked *a)
{
    struct present now;
    struct steps steps = {0};
    struct qos_request r = {.sched = qos_sched_by_id(OFP_QOS_SCHED_HTB),
                            .object_type = OFP_QOS_CLASS,
                            .action_type = OFP_QOS_DEL,
                            .port_no = a->port};
    enum status st = find_present(c, a, &now);
    for (size_t i = 0; !st && i < now.of.n; i++)
        if (is_asked(a, &now.of.v[i]))
            steps_delete(c, &steps, now.of.v[i].flow);
    if (!st && !steps.n)
        return say_failed(c, "port %u has no hosts%s%s: qos-hosts port=%u show lists them",
                          (unsigned)a->port, a->prefix ? " in " : "", a->prefix ? a->prefix : "",
                          (unsigned)a->port);
    st = st ? st : map_remove_misses(c, &steps);
    for (size_t i = 0; !st && i < now.of.n; i++) {
        r.class_id = now.of.v[i].queue;
        if (is_asked(a, &now.of.v[i]) && r.class_id <= QOS_CLASS_MAX && now.class[r.class_id]) {
            now.class[r.class_id] = NULL; /* two flows may have one queue */
            steps_qos(c, &steps, &r, NULL);
        }
    }
    return st ? st : steps_run(c, &steps);
}

/* ---------------------------------------------------------------------------- show */

/* The flow's host as dpctl writes it, and whether it is the packets' source. */
static void
print_host(struct of_wr *w, const struct of_match *m, bool *source)
{
    *source = false;
    for (uint32_t i = 0; i < m->n; i++) {
        const char *name = m->v[i].row->name;
        if (strncmp(name, "ipv", 3))
            continue;
        *source = strstr(name, "src") != NULL;
        of_print_oxm_value(w, &m->v[i]);
    }
}

static void
show_line(struct of_wr *w, const struct map_member *m, const struct queue_node *class)
{
    char rate[QOS_UNIT_TEXT], ceil[QOS_UNIT_TEXT];
    struct of_wr host = of_wr_grow(256);
    bool source;
    print_host(&host, &m->flow->match, &source);
    of_printf(w, "\n%s %-26.*s %6u ", source ? "from" : "to  ", (int)host.len,
              (const char *)host.buf, (unsigned)m->queue);
    of_wr_free(&host);
    if (!class) {
        of_printf(w, "the queue is gone");
        return;
    }
    const struct qos_counters *k = &class->entry->counters;
    of_printf(w, "%10s %10s %12" PRIu64 " %14" PRIu64 " %9" PRIu64 " %9u",
              qos_format_rate(class->rate, rate), qos_format_rate(class->ceil, ceil), k->packets,
              k->bytes, k->drops, (unsigned)k->backlog_bytes);
}

static void
show_json(struct of_json *j, const struct map_member *m, const struct queue_node *class)
{
    struct of_wr host = of_wr_grow(256);
    bool source;
    print_host(&host, &m->flow->match, &source);
    of_json_object(j, NULL);
    of_json_string(j, "host", (const char *)host.buf, host.len);
    of_wr_free(&host);
    of_json_text(j, "by", source ? "src" : "dst");
    of_json_uint(j, "queue", m->queue);
    if (class) {
        const struct qos_counters *k = &class->entry->counters;
        of_json_uint(j, "rate", class->rate);
        of_json_uint(j, "ceil", class->ceil);
        of_json_uint(j, "packets", k->packets);
        of_json_uint(j, "bytes", k->bytes);
        of_json_uint(j, "drops", k->drops);
        of_json_uint(j, "backlog_bytes", k->backlog_bytes);
    }
    of_json_end_object(j);
}

static enum status
show_hosts(struct ctx *c, struct asked *a)
{
    struct present now;
    struct of_wr w = of_wr_grow(VIEW_MAX);
    struct of_json j = of_json(&w);
    enum status st = find_present(c, a, &now);
    if (st) {
        of_wr_free(&w);
        return st;
    }
    if (c->json)
        of_json_array(&j, NULL);
    else
        of_printf(&w, "     %-26s %6s %10s %10s %12s %14s %9s %9s", "host", "queue", "rate", "ceil",
                  "packets", "bytes", "dropped", "backlog");
    for (size_t i = 0; i < now.of.n; i++) {
        const struct queue_node *class =
            now.of.v[i].queue <= QOS_CLASS_MAX ? now.class[now.of.v[i].queue] : NULL;
        if (is_asked(a, &now.of.v[i]) && c->json)
            show_json(&j, &now.of.v[i], class);
        else if (is_asked(a, &now.of.v[i]))
            show_line(&w, &now.of.v[i], class);
    }
    if (c->json)
        of_json_end_array(&j);
    return view_line(c, &w);
}

/* ------------------------------------------------------------------------- the row */

static enum status
qos_hosts(struct ctx *c, const struct command *self, char **words, int n)
{
    struct asked a;
    enum status st = take_words(c, words, n, &a);
    if (st)
        return st;
    return a.verb == ADD ? add_hosts(c, &a) : a.verb == DEL ? del_hosts(c, &a) : show_hosts(c, &a);
}

static const char help[] =
    "A queue (an HTB class) for each host of a prefix, and the flow that puts its packets there: all\n"
    "in one bundle.  Up to 4,096 hosts.\n"
    "  port=N           the port that packets leave by\n"
    "  prefix=10.0.0.0/24   the hosts, IPv4 or IPv6; of an IPv4 network all but the first and last\n"
    "                   address\n"
    "  by=dst           hosts are packets' destinations (default), or their sources: src\n"
    "  rate=RATE        what each host is sure of\n"
    "  ceil=RATE        the most it gets (default: the rate); other keys of an HTB class, too:\n"
    "                   parent=, prio=, burst=, quantum=, ... (dpctl help qos-htb)\n"
    "  first=N          the first host's queue, the others follow (default 1)\n"
    "  each=64          a prefix of this length is one host (default: an address)\n"
    "  then=goto:N      where packets go next: table N, normal, flood, output:PORT (default: as now,\n"
    "                   else table 1)\n"
    "  table=N          where the flows are (default 0)\n"
    "Again with another rate it changes the queues.  show lists the port's hosts with their queues'\n"
    "counters; del removes queues and flows, with prefix= those of the prefix.";

static const struct command rows[] = {
    {.name = "qos-hosts",
     .subject = SUBJECT_QOS,
     .args = "[add|show|del] port=N [prefix=NET] [rate=RATE] [--dry-run]",
     .help = "a queue for each host of a prefix",
     .text = help,
     .examples = "qos-hosts port=1 prefix=10.0.0.0/24,rate=1mbit,ceil=20mbit then=normal\n"
                 "qos-hosts port=1 show\n"
                 "qos-hosts port=1 del",
     .run = qos_hosts,
     .options = COMMAND_DRY_RUN},
};

const struct command_table commands_qos_hosts = COMMAND_TABLE(rows);
