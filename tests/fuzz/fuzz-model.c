/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of queues in any order, against the model on a kernel in memory (fake-kernel.h): a refused one leaves
 * model and kernel as they were, a bundle is done as a whole or not at all, what is reported encodes and decodes to
 * the same, and clearing leaves nothing.
 *
 * Input: a line each.  "htb cmd=add,port=1,class=10,rate=6mbit" is a request; the others are in the table `steps`. */
#include "../unit/qos/at-once.h"
#include "../unit/qos/fake-kernel.h"

#include <qos/model/model.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define LINES_MAX 48

static struct fake_kernel kernel;
static struct qos *model;
static bool in_bundle;
static struct of_wr before; /* the model's queues as they were when the bundle began */

static struct qos_port ports[] = {
    {.port_no = 1, .ifindex = 11, .name = "p1", .mtu = 1500, .txqueuelen = 1000, .tx_queues = 1},
    {.port_no = 2,
     .ifindex = 12,
     .name = "p2",
     .mtu = 9000,
     .txqueuelen = 100,
     .speed = 100000000,
     .tx_queues = 8},
};

/* ------------------------------------------------------------------ what is there */

static bool
put_entry(void *ctx, const struct qos_entry *e)
{
    struct qos_entry again;
    struct qos_error why;
    struct of_wr *w = ctx;
    size_t from = w->len;
    char line[QOS_REQUEST_TEXT];
    qos_entry_encode(w, e);
    size_t n = w->len - from;
    struct of_rd rd = of_rd(w->buf + from, n);
    if (w->overflow || qos_entry_decode(&again, &rd, &why) || rd.p != rd.end)
        abort();
    qos_entry_encode(w, &again);
    if (w->overflow || w->len != from + 2 * n || memcmp(w->buf + from, w->buf + from + n, n))
        abort();
    if (qos_request_print(&e->config, line, sizeof line) >= (int)sizeof line)
        abort();
    return true;
}

static struct of_wr
queues(void)
{
    struct of_wr w = of_wr_grow(1 << 20);
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++)
        qos_each_entry(model, ports[i].port_no, put_entry, &w);
    return w;
}

static bool
same(const struct of_wr *a, const struct of_wr *b)
{
    return a->len == b->len && (!a->len || !memcmp(a->buf, b->buf, a->len));
}

/* A refusal has a sentence. */
static void
told(int err, const struct qos_error *e)
{
    if (err && !e->text[0])
        abort();
}

/* ------------------------------------------------------------------ steps */

static void
request(const struct qos_request *r)
{
    struct qos_error e = {0};
    char *kernel_was = in_bundle ? NULL : fake_text(&kernel);
    struct of_wr was = queues(), now;
    int err = qos_execute(model, r, &e);
    told(err, &e);
    now = queues();
    char *kernel_is = in_bundle ? NULL : fake_text(&kernel);
    if (err && (!same(&was, &now) || (kernel_was && strcmp(kernel_was, kernel_is)))) {
        fprintf(stderr, "refused (%s), but something changed\n%s\n%s\n", e.text,
                kernel_was ? kernel_was : "", kernel_is ? kernel_is : "");
        abort();
    }
    of_wr_free(&was);
    of_wr_free(&now);
    free(kernel_was);
    free(kernel_is);
}

static void
begin(unsigned n)
{
    if (in_bundle)
        return;
    before = queues();
    qos_begin(model);
    in_bundle = true;
}

static void
end_bundle(bool refused)
{
    struct of_wr now = queues();
    if (refused && !same(&before, &now))
        abort();
    of_wr_free(&before);
    of_wr_free(&now);
    in_bundle = false;
}

static void
commit(unsigned n)
{
    struct qos_error e = {0};
    unsigned at = 0;
    if (!in_bundle)
        return;
    char *was = fake_text(&kernel);
    int err = qos_commit(model, &at, &e);
    told(err, &e);
    char *is = fake_text(&kernel);
    if (err && strcmp(was, is))
        abort();
    free(was);
    free(is);
    end_bundle(err);
}

/* In steps of n operations; after the first of them everything is taken back. */
static void
revert(unsigned n)
{
    struct qos_error e = {0};
    unsigned at = 0, most = n % 16 + 1;
    if (!in_bundle)
        return;
    char *was = fake_text(&kernel);
    enum qos_progress p = qos_commit_step(model, most, &at, &e);
    if (p != QOS_COMMIT_REFUSED) {
        kernel.fail_in = -1; /* what is undone was there */
        qos_commit_revert(model);
        while (p != QOS_COMMIT_REFUSED)
            p = qos_commit_step(model, most, &at, &e);
    }
    char *is = fake_text(&kernel);
    if (strcmp(was, is)) {
        fprintf(stderr, "was\n%s\nis\n%s\n", was, is);
        abort();
    }
    free(was);
    free(is);
    end_bundle(true);
}

/* In steps of n operations, to their end. */
static void
commit_steps(unsigned n)
{
    struct qos_error e = {0};
    unsigned at = 0;
    enum qos_progress p;
    if (!in_bundle)
        return;
    do
        p = qos_commit_step(model, n % 16 + 1, &at, &e);
    while (p == QOS_COMMIT_MORE);
    if (p == QOS_COMMIT_AGREED)
        qos_commit_end(model);
    told(p == QOS_COMMIT_REFUSED, &e);
    end_bundle(p == QOS_COMMIT_REFUSED);
}

static void
drop_bundle(unsigned n)
{
    if (in_bundle) {
        qos_abort(model);
        end_bundle(true);
    }
}

/* The kernel refuses the operation after the next n. */
static void
fail(unsigned n)
{
    kernel.fail_in = (int)n;
}

static void
away(unsigned n)
{
    if (in_bundle)
        return;
    qos_port_absent(model, n);
    if (n && n <= 2)
        fake_forget(&kernel, ports[n - 1].ifindex);
}

static void
back(unsigned n)
{
    struct qos_error e = {0};
    if (!in_bundle && n && n <= 2)
        port_back(model, &ports[n - 1], &e);
}

static void
speed(unsigned n)
{
    struct qos_error e = {0};
    struct qos_port p = ports[1];
    p.speed = n;
    if (!in_bundle)
        port_update(model, &p, &e);
}

static void
sync_port(unsigned n)
{
    struct qos_error e = {0};
    if (!in_bundle)
        qos_port_sync(model, n, &e);
}

static void
foreign(unsigned n)
{
    if (!in_bundle)
        qos_set_foreign(model, (enum qos_foreign)(n % 3));
}

static void
leaf(unsigned n)
{
    struct qos_values none = {0};
    if (!in_bundle)
        qos_set_leaf(model, qos_sched_at(n), &none);
}

static void
tree(void *ctx, const struct qos_tree *t)
{
    if (!t->port_no || t->n_queues > 65536)
        abort();
}

static void
dump(unsigned n)
{
    struct of_wr w = of_wr_grow(1 << 20);
    struct qos_error e = {0};
    queue_count(model, 1);
    queue_count(model, 2);
    qos_each_tree(model, tree, NULL);
    told(qos_dump(model, OFPP_ANY, n ? n : QOS_ALL_CLASSES, put_entry, &w, &e), &e);
    of_wr_free(&w);
}

static const struct {
    const char *name;
    void (*fn)(unsigned n);
} steps[] = {
    {"begin", begin},   {"commit", commit}, {"abort", drop_bundle}, {"fail", fail},
    {"away", away},     {"back", back},     {"speed", speed},       {"sync", sync_port},
    {"leaf", leaf},     {"dump", dump},     {"foreign", foreign},   {"steps", commit_steps},
    {"revert", revert},
};

static void
step(char *line)
{
    struct qos_request r;
    char why[512], *rest = line + strcspn(line, " ");
    if (*rest)
        *rest++ = '\0';
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (!strcmp(line, steps[i].name)) {
            steps[i].fn((unsigned)strtoul(rest, NULL, 10));
            return;
        }
    const struct qos_sched *s = qos_sched_by_name(line);
    if (s && !qos_request_parse(&r, s, rest, why, sizeof why))
        request(&r);
}

/* ------------------------------------------------------------------ a run */

static void
end_run(void)
{
    struct qos_error e = {0};
    drop_bundle(0);
    kernel.fail_in = -1;
    for (unsigned i = 1; i <= 2; i++)
        back(i);
    qos_clear_all(model, &e);
    if (kernel.n) {
        fprintf(stderr, "left: %s\n", fake_text(&kernel));
        abort();
    }
    qos_free(model);
    fake_free(&kernel);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *copy = malloc(n + 1), *rest = copy;
    if (!copy)
        abort();
    memcpy(copy, data, n);
    copy[n] = '\0';
    fake_init(&kernel);
    if (qos_new(&model, &kernel.base, NULL))
        abort();
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++)
        if (qos_port_add(model, &ports[i]))
            abort();
    char *line;
    for (int i = 0; i < LINES_MAX && (line = strsep(&rest, "\n")); i++)
        step(line);
    end_run();
    free(copy);
    return 0;
}
