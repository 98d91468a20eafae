/* SPDX-License-Identifier: Apache-2.0 */
/* Memory ends at any place of what no request asks for: an error says so, nothing is done by half, and nothing
 * that the kernel keeps is forgotten. */
#include "fixture.h"

#include <errno.h>
#include <stdlib.h>

static int left = -1; /* allocations until one fails; negative: none does */

static bool
fails(void)
{
    return left >= 0 && left-- == 0;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

void *
__wrap_malloc(size_t n)
{
    return fails() ? NULL : __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
    return fails() ? NULL : __real_reallocarray(p, n, size);
}

static int
clear_all(void)
{
    return qos_clear_all(qos, &err);
}

static int
look(void)
{
    return qos_port_sync(qos, 2, &err);
}

/* With a failure at each allocation in turn: kernel and model stay as they are. */
static void
fail_everywhere(int (*run_it)(void))
{
    char *before = fake_text(&kernel), *model = model_text();
    bool failed = true;
    for (int at = 0; failed; at++) {
        left = at;
        int e = run_it();
        failed = left < 0;
        left = -1;
        assert_int_equal(e, failed ? -ENOMEM : 0);
        if (!failed)
            break;
        char *now = fake_text(&kernel), *text = model_text();
        assert_string_equal(now, before);
        assert_string_equal(text, model);
        free(now);
        free(text);
    }
    free(before);
    free(model);
}

static void
queues_are_cleared(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    fail_everywhere(clear_all);
    assert_int_equal(kernel.n, 0);
    OK("sfq", "cmd=add,port=2");
    fail_everywhere(clear_all);
    OK("mq", "cmd=add,port=2");
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit,parent=1");
    fail_everywhere(clear_all);
    assert_int_equal(kernel.n, 0);
}

static struct qos_foreign_counts counts;

static void
take_counts(void *ctx, const struct qos_tree *t)
{
    if (t->port_no == 2)
        counts = t->foreign;
}

/* What somebody else changed counts as repaired once it is. */
static void
a_class_is_repaired(void **state)
{
    OK("htb", "cmd=add,port=2,class=10,rate=1mbit");
    qos_set_foreign(qos, QOS_FOREIGN_REPAIR);
    ((struct qos_object *)fake_class(&kernel, IF2, 10))->values.v[QOS_RATE] = 7000000;
    fail_everywhere(look);
    qos_each_tree(qos, take_counts, NULL);
    assert_int_equal(counts.repaired, 1);
    assert_int_equal(rate_of(10), 1000000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {TEST(queues_are_cleared), TEST(a_class_is_repaired)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
