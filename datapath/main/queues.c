/* SPDX-License-Identifier: Apache-2.0 */
#include "queues.h"

#include <oflib/plural.h>

#include <control/bundle.h>
#include <daemon/log.h>
#include <qos/diff/diff.h>
#include <requests/flows.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define ARENA_MAX (256u << 20)
#define NAME_LEN  64
#define WHY_LEN   400
#define JOBS_MAX  8192

struct queue_jobs {
    const struct running *r;
    struct task task;
    bool running, stopped;
    struct job {
        bool is_map;
        char name[NAME_LEN]; /* of the interface, of the set */
        char why[WHY_LEN];   /* it was refused: a whole sentence; "": it waits for its interface */
    } * v;
    size_t n, at, room;
    struct of_arena jobs; /* of v */
    struct job *owed;     /* not as the settings want it: refused */
    size_t n_owed;

    /* Of the job under way. */
    bool under_way, refused;
    struct of_arena arena;
    struct bundle *bundle;
    const char **wheres; /* of each message: what its refusal begins with */
    size_t n_wheres, wheres_room;
    int err;

    void (*done)(void *ctx);
    void *ctx;
};

/* ------------------------------------------------------------------ the bundle */

static const char *
job_name(const struct job *j, char *buf, size_t n)
{
    snprintf(buf, n, "%s %s", j->is_map ? "rules" : "port", j->name);
    return buf;
}

/* Logs why the job under way is not done, and keeps it for who asks later. */
__attribute__((format(printf, 3, 4))) static void
refuse(struct queue_jobs *q, const char *then, const char *fmt, ...)
{
    struct job *j = &q->v[q->at];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(j->why, sizeof j->why, fmt, ap);
    va_end(ap);
    q->refused = true;
    log_error(QOS, "%s%s", j->why, then);
}

static void
on_refused(void *ctx, uint32_t xid, const char *why)
{
    struct queue_jobs *q = ctx;
    char name[NAME_LEN + 16];
    refuse(q, "; everything stays as it was there", "%s%s%s: %s",
           xid < q->n_wheres ? q->wheres[xid] : "", xid < q->n_wheres ? ": " : "",
           job_name(&q->v[q->at], name, sizeof name), why);
}

static struct job *
find_owed(const struct queue_jobs *q, bool is_map, const char *name)
{
    for (size_t i = 0; i < q->n_owed; i++)
        if (q->owed[i].is_map == is_map && !strcmp(q->owed[i].name, name))
            return &q->owed[i];
    return NULL;
}

/* Keeps what is refused, to be tried again: when the port's interface is back, or at the next
 * reload. */
static void
settle(struct queue_jobs *q, bool done)
{
    const struct job *j = &q->v[q->at];
    struct job *old = find_owed(q, j->is_map, j->name), *more;
    if (old)
        *old = done ? q->owed[--q->n_owed] : *j;
    if (done || old)
        return;
    more = reallocarray(q->owed, q->n_owed + 1, sizeof *more);
    if (!more)
        return;
    q->owed = more;
    more[q->n_owed++] = *j;
}

static void queue_task(struct queue_jobs *q);

static void
next_job(struct queue_jobs *q, bool done)
{
    settle(q, done);
    q->under_way = false;
    q->at++;
    of_arena_reset(&q->arena);
    if (!q->running)
        queue_task(q);
}

static void
on_over(void *ctx, bool done)
{
    struct queue_jobs *q = ctx;
    char name[NAME_LEN + 16];
    size_t n = q->n_wheres;
    job_name(&q->v[q->at], name, sizeof name);
    if (done)
        log_notice(QOS, "%s: set by the configuration, in %zu request%s", name, n, OF_S(n));
    else if (!q->refused && !q->stopped)
        refuse(q, "", "%s: not set by the configuration: the change was broken off", name);
    next_job(q, done);
}

/* Appends a message; `where`: what its refusal begins with. */
static int
put(struct queue_jobs *q, uint8_t type, const void *body, const char *where)
{
    struct of_wr w = of_wr_grow(OF_MSG_MAX);
    const char **v = of_arena_room(&q->arena, q->wheres, q->n_wheres, &q->wheres_room, sizeof *v);
    int err = v ? of_encode_body(&w, type, (uint32_t)q->n_wheres, body) : -ENOMEM;
    if (!err && w.overflow)
        err = -ENOMEM;
    if (!err)
        err = bundle_own_add(&q->r->sw->bundles, q->bundle, (struct of_bytes){w.buf, w.len});
    of_wr_free(&w);
    if (err)
        return err;
    q->wheres = v;
    q->wheres[q->n_wheres++] = where;
    return 0;
}

/* ------------------------------------------------------------------ a port's queues */

struct port_job {
    struct queue_jobs *q;
    const struct wanted *w;
    const struct wanted_queues *want; /* NULL: no queues */
    const struct qos_profile_part *part;
    uint32_t port_no;
    struct qos_entry *entries;
    size_t n, room;
};

static bool
collect_entry(void *ctx, const struct qos_entry *e)
{
    struct port_job *k = ctx;
    struct qos_entry *v = of_arena_room(&k->q->arena, k->entries, k->n, &k->room, sizeof *v);
    if (!v)
        return false;
    k->entries = v;
    k->entries[k->n++] = *e;
    return true;
}

/* Entries lack the port's default class: it comes from QOS_PORTS. */
static void
learn_default(void *ctx, const struct qos_tree *t)
{
    struct port_job *k = ctx;
    for (size_t i = 0; i < k->n && t->port_no == k->port_no; i++) {
        struct qos_request *r = &k->entries[i].config;
        enum qos_direction dir = r->values.v[QOS_DIRECTION] == QOS_IN ? QOS_IN : QOS_OUT;
        if (r->object_type == OFP_QOS_QDISC && r->sched->classful && dir == t->dir)
            r->class_id = t->default_id;
    }
}

/* Where a line of the profile is: "home-router.qos:7". */
static const char *
where_of(struct port_job *k, size_t i)
{
    char text[480];
    const struct wanted_queues *want = k->want;
    if (want->lines)
        daemon_settings_where(k->w->s, want->lines[k->part->line[i] - 1], text, sizeof text);
    else
        snprintf(text, sizeof text, "%s:%u", want->profile.file, k->part->line[i]);
    const char *kept = of_arena_text(&k->q->arena, text, strlen(text));
    return kept ? kept : "";
}

static const char *
where_of_step(struct port_job *k, const struct qos_request *r)
{
    for (size_t i = 0; k->part && r->action_type != OFP_QOS_DEL && i < k->part->n; i++) {
        const struct qos_request *w = &k->part->want[i];
        if (w->sched == r->sched && w->object_type == r->object_type && w->class_id == r->class_id)
            return where_of(k, i);
    }
    const char *file = k->want ? k->want->profile.file : "the configuration";
    /* A copy, because a reload may free the settings while the job goes on. */
    const char *kept = of_arena_text(&k->q->arena, file, strlen(file));
    return kept ? kept : "";
}

static bool
take_step(void *ctx, const struct qos_request *r)
{
    struct port_job *k = ctx;
    struct of_wr content = of_wr_grow(OF_MSG_MAX);
    qos_request_encode(&content, r);
    struct of_qos m = {{content.buf, content.len}};
    k->q->err = content.overflow ? -ENOMEM
                                 : put(k->q, OFPT_QOS_QUEUEING_DISCIPLINE, &m, where_of_step(k, r));
    of_wr_free(&content);
    return !k->q->err;
}

static bool
kernel_has(void *ctx, const struct qos_request *r)
{
    struct qos_kernel *kernel = ctx;
    return qos_kernel_has(kernel, r->sched, &r->values) > 0;
}

static int
diff_port(struct port_job *k, const struct sw_port *p)
{
    int err = 0;
    for (int dir = QOS_OUT; !err && dir <= QOS_IN; dir++) {
        struct qos_error e = {0};
        k->part = k->want ? &k->want->profile.part[dir] : NULL;
        size_t n = k->part ? k->part->n : 0;
        struct qos_diff d = {
            .port = {.port_no = p->no, .dir = (enum qos_direction)dir, .env = sw_port_env(p)},
            .now = k->entries,
            .n_now = k->n,
            .want = n ? k->part->want : NULL,
            .n_want = n,
            .fn = take_step,
            .ctx = k};
        err = qos_diff(&d, &e);
        if (err > 0)
            refuse(k->q, "; its queues stay as they were", "%s: port %u (%s): %s",
                   n ? where_of(k, d.wrong) : "the configuration", (unsigned)p->no, p->name,
                   e.text);
    }
    return err ? err : k->q->err;
}

static int
make_port_bundle(struct queue_jobs *q, const char *name)
{
    const struct running *r = q->r;
    struct wanted_queues *want =
        (struct wanted_queues *)(uintptr_t)wanted_find_queues(r->now, name);
    const struct sw_port *p = sw_ports_by_name(r->sw, name);
    struct port_job k = {.q = q, .w = r->now, .want = want};
    if (!p || p->no == OFPP_LOCAL) {
        q->refused = true;
        if (want)
            refuse(q, "", "%s: port %s is not there, so its queues are not set", want->profile.file,
                   name);
        return -ENODEV;
    }
    if (!p->port) {
        q->refused = true;
        log_notice(QOS, "port %s: its queues are set when its interface comes", name);
        return -ENODEV;
    }
    k.port_no = p->no;
    if (want)
        qos_profile_fit(&want->profile, kernel_has, r->sw->kernel);
    qos_each_entry(r->sw->qos, p->no, collect_entry, &k);
    qos_each_tree(r->sw->qos, learn_default, &k);
    return q->arena.refused ? -ENOMEM : diff_port(&k, p); /* not half of what there is */
}

/* ------------------------------------------------------------------ rules */

struct flow_collector {
    struct queue_jobs *q;
    struct of_list *out;
};

static int
collect_flow(void *ctx, struct flow *f)
{
    struct flow_collector *k = ctx;
    struct of_arena *a = &k->q->arena;
    struct of_oxm *oxms = of_arena_array(a, OXM_N, sizeof *oxms);
    struct of_flow_stats *s = of_arena_alloc(a, sizeof *s);
    struct of_list instructions;
    if (!oxms || !s)
        return -ENOMEM;
    sw_flow_describe(k->q->r->sw, f, oxms, s);
    int err = of_decode_list(s->instructions.raw, &of_list_instructions, a, &instructions);
    s->instructions = instructions;
    return err ? err : of_list_append(a, k->out, s) ? 0 : -ENOMEM;
}

static int
collect_flows(struct queue_jobs *q, uint8_t table, uint64_t cookie, uint64_t mask,
              struct of_list *out)
{
    struct of_mp_flow_request all = {.table_id = table,
                                     .out_port = OFPP_ANY,
                                     .out_group = OFPG_ANY,
                                     .cookie = cookie,
                                     .cookie_mask = mask};
    struct flow_filter filter = flow_filter_of_stats(&all);
    struct flow_collector k = {q, out};
    *out = (struct of_list){0};
    return tables_each(q->r->sw->dp.tables, &filter, collect_flow, &k);
}

/* The settings don't say that a controller fills that table. */
static void
warn_of_empty(const struct queue_jobs *q, const struct wanted_map *want, int next)
{
    char where[480];
    if (!want->map.then && next >= 0 &&
        !tables_get(q->r->sw->dp.tables, (uint8_t)next)->flows.n_flows)
        log_warning(
            QOS,
            "%s: table %d, to which packets go, is empty: until it has flows they are dropped; "
            "then=normal forwards them, then=goto:%d says that a controller fills it",
            daemon_settings_where(q->r->now->s, want->at, where, sizeof where), next, next);
}

static int
make_map_bundle(struct queue_jobs *q, const char *set)
{
    const struct wanted_map *want = wanted_find_map(q->r->now, set);
    struct of_parse p = {.arena = &q->arena};
    struct qos_map_changes changes = {0};
    struct qos_map map = want ? want->map : (struct qos_map){0};
    struct of_list all = {0}, table = {0};
    char where[480];
    int err = collect_flows(q, OFPTT_ALL, QOS_MAP_COOKIE, QOS_MAP_COOKIE_MASK, &all);
    if (!err && !want) {
        err = qos_map_delete(&p, set, &all, &changes);
    } else if (!err && !(err = collect_flows(q, want->map.table, 0, 0, &table)) &&
               !(err = qos_map_way(&p, &map, &table))) {
        warn_of_empty(q, want, qos_map_next(&map));
        err = qos_map_diff(&p, &map, false, &all, &table, &changes);
    }
    daemon_settings_where(q->r->now->s, want ? want->at : NULL, where, sizeof where);
    if (err == -EEXIST)
        refuse(q, "", "%s: rules %s: %s", where, set, p.why);
    const char *kept = of_arena_text(&q->arena, where, strlen(where));
    for (size_t i = 0; !err && i < changes.n; i++)
        err = kept ? put(q, OFPT_FLOW_MOD, &changes.v[i], kept) : -ENOMEM;
    return err;
}

/* ------------------------------------------------------------------ one after another */

static void
run_job(struct queue_jobs *q)
{
    static const struct bundle_own callbacks = {.refused = on_refused, .over = on_over};
    const struct job *j = &q->v[q->at];
    struct bundle_own own = callbacks;
    char name[NAME_LEN + 16];
    own.ctx = q;
    q->refused = false;
    q->under_way = true;
    q->err = 0;
    q->wheres = NULL;
    q->n_wheres = q->wheres_room = 0;
    q->bundle = bundle_own_new(&own);
    int err = !q->bundle  ? -ENOMEM
              : j->is_map ? make_map_bundle(q, j->name)
                          : make_port_bundle(q, j->name);
    if (!err && q->n_wheres) {
        bundle_own_commit(&q->r->sw->bundles, q->bundle);
        return;
    }
    if (err && !q->refused)
        refuse(q, "", "%s: not set by the configuration: %s", job_name(j, name, sizeof name),
               err < 0 ? strerror(-err) : "too many requests for one bundle");
    if (q->bundle)
        bundle_own_drop(&q->r->sw->bundles, q->bundle);
    next_job(q, !err && !q->refused);
}

/* A commit that takes long is a task of its own, and controllers may come before the next job. */
static enum task_progress
run_jobs(void *ctx, uint64_t deadline)
{
    struct queue_jobs *q = ctx;
    q->running = true;
    while (!q->under_way && q->at < q->n && loop_clock() < deadline)
        run_job(q);
    q->running = false;
    return !q->under_way && q->at < q->n ? TASK_MORE : TASK_OVER;
}

static void
jobs_over(void *ctx)
{
    struct queue_jobs *q = ctx;
    if (q->under_way)
        return;
    q->at = q->n = q->room = 0;
    q->v = NULL;
    of_arena_reset(&q->jobs);
    void (*done)(void *) = q->done;
    q->done = NULL;
    if (done)
        done(q->ctx);
}

static const struct task_kind task_kind = {
    .needs = QUEUES, .locks = QUEUES, .blocks = true, .run = run_jobs, .end = jobs_over};

static void
queue_task(struct queue_jobs *q)
{
    if (!q->stopped)
        task_queue(q->r->sw->tasks, &q->task, &task_kind, q);
}

static void
begin_task(struct queue_jobs *q)
{
    struct tasks *tasks = q->r->sw->tasks;
    if (tasks_locked(tasks) & QUEUES) {
        queue_task(q);
        return;
    }
    task_cancel(&q->task);
    if (!task_start(tasks, &q->task, &task_kind, q))
        jobs_over(q);
}

static void
add_job(struct queue_jobs *q, bool is_map, const char *name)
{
    for (size_t i = q->at + q->under_way; i < q->n; i++)
        if (q->v[i].is_map == is_map && !strcmp(q->v[i].name, name))
            return;
    struct job *v = of_arena_room(&q->jobs, q->v, q->n, &q->room, sizeof *v);
    if (!v) {
        log_error(QOS, "%s %s: not set by the configuration: out of memory",
                  is_map ? "rules" : "port", name);
        return;
    }
    q->v = v;
    v[q->n].is_map = is_map;
    *v[q->n].why = '\0';
    snprintf(v[q->n++].name, NAME_LEN, "%s", name);
}

static bool
same(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static void
add_port_jobs(struct queue_jobs *q, const struct wanted *was, const struct wanted *now)
{
    for (size_t i = 0; was && i < was->n_queues; i++)
        if (!wanted_find_queues(now, was->queues[i].port) &&
            wanted_find_port(now, was->queues[i].port))
            add_job(q, false, was->queues[i].port);
    for (size_t i = 0; i < now->n_queues; i++) {
        const struct wanted_queues *new = &now->queues[i];
        const struct wanted_queues *old = was ? wanted_find_queues(was, new->port) : NULL;
        const struct wanted_port *a = was ? wanted_find_port(was, new->port) : NULL;
        const struct wanted_port *b = wanted_find_port(now, new->port);
        if (!old || !same(old->text, new->text) || !a || a->no != b->no)
            add_job(q, false, new->port);
    }
}

static void
add_map_jobs(struct queue_jobs *q, const struct wanted *was, const struct wanted *now)
{
    for (size_t i = 0; was && i < was->n_maps; i++)
        if (!wanted_find_map(now, was->maps[i].map.set))
            add_job(q, true, was->maps[i].map.set);
    for (size_t i = 0; i < now->n_maps; i++) {
        const struct wanted_map *old = was ? wanted_find_map(was, now->maps[i].map.set) : NULL;
        if (!old || !same(old->text, now->maps[i].text))
            add_job(q, true, now->maps[i].map.set);
    }
}

void
apply_queues(void *ctx)
{
    const struct running *r = ctx;
    add_port_jobs(r->jobs, r->was, r->now);
    add_map_jobs(r->jobs, r->was, r->now);
    begin_task(r->jobs);
}

void
queue_jobs_port(struct queue_jobs *q, const char *name)
{
    if (!wanted_find_queues(q->r->now, name))
        return;
    add_job(q, false, name);
    queue_task(q);
}

void
queue_jobs_retry(struct queue_jobs *q, const char *port)
{
    for (size_t i = 0; i < q->n_owed; i++) {
        const struct job *j = &q->owed[i];
        if (port && (j->is_map || strcmp(j->name, port)))
            continue;
        add_job(q, j->is_map, j->name);
        queue_task(q);
    }
}

const char *
queue_jobs_refused(const struct queue_jobs *q, unsigned i)
{
    for (size_t k = 0; k < q->n_owed; k++)
        if (*q->owed[k].why && !i--)
            return q->owed[k].why;
    return NULL;
}

bool
queue_jobs_over(const struct queue_jobs *q)
{
    return !q->under_way && q->at == q->n;
}

void
queue_jobs_wait(struct queue_jobs *q, void (*done)(void *ctx), void *ctx)
{
    q->done = done;
    q->ctx = ctx;
    if (queue_jobs_over(q))
        jobs_over(q);
}

int
queue_jobs_new(const struct running *r, struct queue_jobs **out)
{
    struct queue_jobs *q = calloc(1, sizeof *q);
    if (!q)
        return -ENOMEM;
    q->r = r;
    of_arena_init(&q->arena, ARENA_MAX);
    of_arena_init(&q->jobs, ARENA_MAX);
    *out = q;
    return 0;
}

void
queue_jobs_stop(struct queue_jobs *q)
{
    task_cancel(&q->task);
    q->stopped = true;
}

void
queue_jobs_free(struct queue_jobs *q)
{
    of_arena_free(&q->arena);
    of_arena_free(&q->jobs);
    free(q->owed);
    free(q);
}
