/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_kernel kernel;

uint8_t present[0x10000];
uint8_t present_in[0x10000];
uint8_t band_of[0x10000];
uint32_t taker[0x10000];
uint64_t notified_limit[0x10000];
uint32_t default_class, default_in;
bool shaped;

static void
on_queue(void *ctx, uint32_t port_no, enum qos_direction dir, uint32_t id, uint32_t priority,
         uint64_t most)
{
    bool there = priority != 0;
    uint8_t *is = dir == QOS_IN ? present_in : present;
    if (port_no != 2)
        return;
    assert_true(there || is[id]);
    is[id] = there;
    band_of[id] = there ? (uint8_t)((priority >> 16) - 1) : 0;
    if (dir == QOS_OUT) {
        notified_limit[id] = most;
        taker[id] = priority & 0xffff;
    }
    assert_true(dir == QOS_OUT || shaped);
}

static void
on_default(void *ctx, uint32_t port_no, enum qos_direction dir, uint32_t id, uint64_t most)
{
    if (port_no != 2)
        return;
    *(dir == QOS_IN ? &default_in : &default_class) = id;
    if (dir == QOS_OUT)
        notified_limit[0] = most;
}

static void
on_shaper(void *ctx, uint32_t port_no, const struct qos_shaper *s)
{
    if (port_no != 2)
        return;
    assert_int_equal(shaped, !s);
    if (s)
        assert_true(kernel.shaper[s->tx_ifindex - FAKE_SHAPERS]);
    shaped = s;
}

static void
add_port(uint32_t port_no, uint64_t speed)
{
    struct qos_port port = {.port_no = port_no,
                            .ifindex = (int)port_no + 10,
                            .name = "eth",
                            .mtu = 1500,
                            .tx_queues = port_no == 2 ? 8 : 1,
                            .txqueuelen = 1000,
                            .speed = speed};
    assert_int_equal(qos_port_add(qos, &port), 0);
}

const char *own_leaf;

void
start(void)
{
    struct qos_events events = {
        .queue = on_queue, .default_class = on_default, .shaper = on_shaper};
    memset(present, 0, sizeof present);
    memset(present_in, 0, sizeof present_in);
    memset(band_of, 0, sizeof band_of);
    memset(taker, 0, sizeof taker);
    memset(notified_limit, 0, sizeof notified_limit);
    default_class = default_in = 0;
    shaped = false;
    assert_int_equal(qos_new(&qos, &kernel.base, &events), 0);
    if (own_leaf)
        assert_int_equal(qos_set_leaf(qos, qos_sched_by_name(own_leaf), &(struct qos_values){0}),
                         0);
    add_port(2, 100000000);
    add_port(1, 0);
}

int
setup(void **state)
{
    fake_init(&kernel);
    start();
    return 0;
}

int
teardown(void **state)
{
    qos_free(qos);
    fake_free(&kernel);
    return 0;
}

int
setup_leaf(void **state)
{
    own_leaf = "fq_codel";
    return setup(state);
}

int
teardown_leaf(void **state)
{
    own_leaf = NULL;
    return teardown(state);
}

static bool
print_entry(void *ctx, const struct qos_entry *e)
{
    char line[QOS_REQUEST_TEXT];
    qos_request_print(&e->config, line, sizeof line);
    fprintf(ctx, "%s object=%u parent=%u bytes=%llu\n", line, e->config.object_type, e->parent_id,
            (unsigned long long)e->counters.bytes);
    return true;
}

char *
model_text(void)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    assert_int_equal(qos_dump(qos, OFPP_ANY, QOS_ALL_CLASSES, print_entry, f, &err), 0);
    fclose(f);
    return text;
}

bool
lists(const char *what)
{
    char *text = model_text();
    bool found = strstr(text, what);
    free(text);
    return found;
}

void
run_failing(const char *sched, const char *args)
{
    for (int at = 0;; at++) {
        static uint8_t before_present[sizeof present];
        char *before = fake_text(&kernel), *model = model_text();
        uint32_t before_default = default_class;
        memcpy(before_present, present, sizeof present);
        kernel.fail_in = at;
        int e = run(sched, args);
        bool failed = kernel.fail_in < 0;
        kernel.fail_in = -1;
        if (failed) {
            char *after = fake_text(&kernel), *model_after = model_text();
            assert_int_equal(e, QOS_ERR(OFPSFC_KERNEL));
            assert_int_equal(err.errnum, EINVAL);
            assert_string_equal(after, before);
            assert_string_equal(model_after, model);
            assert_memory_equal(present, before_present, sizeof present);
            assert_int_equal(default_class, before_default);
            free(after);
            free(model_after);
        } else if (e) {
            fail_msg("%s %s: %s", sched, args, err.text);
        }
        free(before);
        free(model);
        if (!failed)
            return;
    }
}

uint64_t
rate_of(uint32_t id)
{
    const struct qos_object *o = fake_class(&kernel, IF2, id);
    assert_non_null(o);
    return o->values.v[QOS_RATE];
}

const char *
below(uint32_t id)
{
    const struct qos_object *o = fake_qdisc(&kernel, IF2, QOS_HANDLE_TREE | id);
    return o ? o->kind : "";
}

static void
take_whole(void *ctx, const struct qos_tree *t)
{
    if (t->port_no == 2 && t->dir == QOS_OUT)
        *(struct qos_tree *)ctx = *t;
}

struct qos_tree
whole(void)
{
    struct qos_tree t = {0};
    qos_each_tree(qos, take_whole, &t);
    return t;
}
