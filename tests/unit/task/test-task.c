/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks: who runs when, what is locked meanwhile, who is woken, and what the netlink thread does. */
#include <task/task.h>

#include <shared/clock.h>

#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct loop *loop;
static struct tasks *tasks;
static unsigned woken;
static char order[64]; /* names of who ran, ended (upper case) or was stopped ('!') */

struct work {
    struct task task;
    char name;
    unsigned turns; /* that it still needs */
    bool busy;      /* it uses its time up */
    bool again;     /* it queues itself at its end */
    struct work *begins;
    const struct task_kind *kind, *kind_begun;
};

static void
note(char c)
{
    size_t n = strlen(order);
    assert_true(n + 1 < sizeof order);
    order[n] = c;
    order[n + 1] = '\0';
}

static enum task_progress
run(void *ctx, uint64_t deadline)
{
    struct work *w = ctx;
    note(w->name);
    while (w->busy && loop_clock() < deadline)
        continue;
    if (w->begins) {
        task_begin(tasks, &w->begins->task, w->begins->kind, w->begins);
        w->begins = NULL;
    }
    return --w->turns ? TASK_MORE : TASK_OVER;
}

static void
end(void *ctx)
{
    struct work *w = ctx;
    note((char)(w->name - 'a' + 'A'));
    if (w->again) {
        w->again = false;
        w->turns = 1;
        task_queue(tasks, &w->task, w->kind, w);
    }
}

static void
stop(void *ctx)
{
    note('!');
}

static const struct task_kind locks_all = {.needs = TABLES | QUEUES,
                                           .locks = TABLES | QUEUES,
                                           .run = run,
                                           .end = end,
                                           .stop = stop},
                              locks_queues = {.needs = QUEUES,
                                              .locks = QUEUES,
                                              .run = run,
                                              .end = end,
                                              .stop = stop},
                              needs_queues = {.needs = QUEUES, .run = run, .end = end},
                              free_of_all = {.run = run};

/* In the netlink thread: the kernel keeps it until the test lets go. */
static sem_t kernel;

static enum task_progress
ask(void *ctx, uint64_t deadline)
{
    struct work *w = ctx;
    note(w->name);
    loop_leave(loop);
    while (sem_wait(&kernel))
        continue;
    loop_enter(loop);
    return --w->turns ? TASK_MORE : TASK_OVER;
}

static const struct task_kind blocks = {
    .needs = QUEUES, .locks = QUEUES, .blocks = true, .run = ask, .end = end, .stop = stop};

static void
unlocked(void *ctx)
{
    woken++;
}

static int
setup(void **state)
{
    woken = 0;
    *order = '\0';
    sem_init(&kernel, 0, 0);
    return loop_new(&loop) || tasks_new(loop, unlocked, NULL, &tasks) || tasks_start(tasks);
}

static int
teardown(void **state)
{
    tasks_stop(tasks);
    tasks_free(tasks);
    loop_free(loop);
    return 0;
}

static void
turns(unsigned n)
{
    while (n--)
        assert_int_equal(loop_turn(loop, 0), 0);
}

static void
begin(struct work *w)
{
    task_begin(tasks, &w->task, w->kind, w);
}

static void
queue(struct work *w)
{
    task_queue(tasks, &w->task, w->kind, w);
}

/* ------------------------------------------------------------------ tests */

static void
locks_until_its_end(void **state)
{
    struct work a = {.name = 'a', .turns = 2, .busy = true, .kind = &locks_all};
    assert_int_equal(tasks_locked(tasks), 0);
    begin(&a);
    assert_int_equal(tasks_locked(tasks), TABLES | QUEUES);
    assert_string_equal(order, "");
    turns(1);
    assert_string_equal(order, "a");
    assert_int_equal(tasks_locked(tasks), TABLES | QUEUES);
    assert_int_equal(woken, 0);
    turns(1);
    assert_string_equal(order, "aaA");
    assert_int_equal(tasks_locked(tasks), 0);
    assert_int_equal(woken, 1);
    turns(5);
    assert_int_equal(woken, 1);
    assert_null(a.task.tasks);
}

/* A turn is as long as one task's, however many there are; and each comes to its turn. */
static void
share_a_turn(void **state)
{
    struct work a = {.name = 'a', .turns = 2, .busy = true, .kind = &locks_queues};
    struct work b = {.name = 'b', .turns = 2, .busy = true, .kind = &free_of_all};
    begin(&a);
    begin(&b);
    for (int i = 0; i < 4; i++) {
        uint64_t begun = loop_clock();
        turns(1);
        assert_in_range(loop_clock() - begun, TASK_TURN_NS, UINT64_MAX);
        assert_int_equal(strlen(order), i < 2 ? i + 1 : i == 2 ? 4 : 5);
    }
    assert_string_equal(order, "abaAb");
}

/* Short ones share a turn; none runs twice in one. */
static void
short_ones_together(void **state)
{
    struct work a = {.name = 'a', .turns = 2, .kind = &free_of_all};
    struct work b = {.name = 'b', .turns = 2, .kind = &free_of_all};
    queue(&a);
    queue(&b);
    turns(1);
    assert_string_equal(order, "ab");
    turns(1);
    assert_string_equal(order, "abab");
}

/* A turn's work is done at once, and is over or goes on as a task. */
static void
starts_at_once(void **state)
{
    struct work a = {.name = 'a', .turns = 1, .kind = &locks_all};
    struct work b = {.name = 'b', .turns = 2, .kind = &locks_queues};
    assert_false(task_start(tasks, &a.task, a.kind, &a));
    assert_string_equal(order, "a");
    assert_int_equal(tasks_locked(tasks), 0);
    assert_true(task_start(tasks, &b.task, b.kind, &b));
    assert_string_equal(order, "ab");
    assert_int_equal(tasks_locked(tasks), QUEUES);
    turns(1);
    assert_string_equal(order, "abbB");
    assert_int_equal(woken, 1);
}

/* Who waits has its lock before requests are asked again. */
static void
waits_and_is_next(void **state)
{
    struct work a = {.name = 'a', .turns = 2, .busy = true, .kind = &locks_all};
    struct work b = {.name = 'b', .turns = 2, .busy = true, .kind = &locks_queues};
    begin(&a);
    queue(&b);
    queue(&b);
    turns(1);
    assert_string_equal(order, "a");
    assert_int_equal(loop_turn(loop, 0), 0);
    assert_string_equal(order, "aaA");
    assert_int_equal(tasks_locked(tasks), QUEUES);
    assert_int_equal(woken, 1); /* readers of tables */
    turns(2);
    assert_string_equal(order, "aaAbbB");
    assert_int_equal(woken, 2);
    assert_int_equal(tasks_locked(tasks), 0);
}

/* One that locks nothing waits as well, and again when somebody begins between its turns. */
static void
needs_without_locking(void **state)
{
    struct work a = {.name = 'a', .turns = 1, .kind = &locks_queues};
    struct work b = {.name = 'b', .turns = 3, .kind = &needs_queues, .begins = &a};
    queue(&b);
    assert_int_equal(tasks_locked(tasks), 0);
    turns(1);
    assert_string_equal(order, "b");
    assert_int_equal(tasks_locked(tasks), QUEUES);
    turns(1);
    assert_string_equal(order, "baAb");
    turns(1);
    assert_string_equal(order, "baAbbB");
    assert_int_equal(woken, 1);
}

/* One begins the next while it has locked the same. */
static void
hands_over(void **state)
{
    struct work b = {.name = 'b', .turns = 1, .kind = &locks_queues};
    struct work a = {.name = 'a', .turns = 1, .kind = &locks_all, .begins = &b};
    struct work c = {.name = 'c', .turns = 1, .kind = &locks_queues};
    begin(&a);
    queue(&c);
    turns(1);
    assert_string_equal(order, "aA"); /* c waits for b */
    assert_int_equal(tasks_locked(tasks), QUEUES);
    turns(1);
    assert_string_equal(order, "aAbBcC");
}

/* Requests come between two turns of one that queues itself again. */
static void
lets_requests_in(void **state)
{
    struct work a = {.name = 'a', .turns = 1, .kind = &locks_queues, .again = true};
    queue(&a);
    turns(1);
    assert_string_equal(order, "aA");
    assert_int_equal(tasks_locked(tasks), 0);
    assert_int_equal(woken, 1);
    turns(1);
    assert_string_equal(order, "aAaA");
    assert_int_equal(woken, 2);
}

static void
cancelled(void **state)
{
    struct work a = {.name = 'a', .turns = 9, .kind = &locks_all};
    struct work b = {.name = 'b', .turns = 1, .kind = &needs_queues};
    task_cancel(&a.task);
    begin(&a);
    queue(&b);
    turns(1);
    task_cancel(&a.task);
    assert_int_equal(tasks_locked(tasks), 0);
    turns(1);
    assert_string_equal(order, "abB");
    assert_int_equal(woken, 1);
}

static void
stopped(void **state)
{
    struct work a = {.name = 'a', .turns = 9, .kind = &locks_all};
    struct work b = {.name = 'b', .turns = 1, .kind = &needs_queues};
    struct work c = {.name = 'c', .turns = 1, .kind = &locks_queues};
    begin(&a);
    queue(&b);
    queue(&c);
    tasks_stop(tasks);
    assert_string_equal(order, "!!");
    assert_null(a.task.tasks);
    assert_null(b.task.tasks);
    turns(3);
    assert_string_equal(order, "!!");
}

static void
until(const char *text)
{
    while (!strstr(order, text))
        assert_int_equal(loop_turn(loop, -1), 0);
}

static void
goes_on_while_the_kernel_works(void **state)
{
    struct work a = {.name = 'a', .turns = 2, .kind = &blocks};
    struct work b = {.name = 'b', .turns = 1, .kind = &needs_queues};
    struct work c = {.name = 'c', .turns = 1, .kind = &free_of_all};
    begin(&a);
    queue(&b);
    until("a");
    queue(&c);
    until("c");
    assert_int_equal(tasks_locked(tasks), QUEUES);
    assert_string_equal(order, "ac");
    sem_post(&kernel);
    until("aca");
    assert_int_equal(woken, 0);
    sem_post(&kernel);
    until("B");
    assert_string_equal(order, "acaAbB");
    assert_int_equal(woken, 1);
}

static void
asks_one_after_another(void **state)
{
    struct work a = {.name = 'a', .turns = 1, .kind = &blocks, .again = true};
    struct work b = {.name = 'b', .turns = 1, .kind = &blocks};
    queue(&a);
    queue(&b);
    assert_int_equal(tasks_locked(tasks), 0);
    for (int i = 0; i < 3; i++)
        sem_post(&kernel);
    while (strlen(order) < 6)
        assert_int_equal(loop_turn(loop, -1), 0);
    assert_string_equal(order, "aAbBaA");
}

/* What it has begun it ends, and nothing else is begun. */
static void
stopped_while_the_kernel_works(void **state)
{
    struct work a = {.name = 'a', .turns = 2, .kind = &blocks};
    struct work b = {.name = 'b', .turns = 1, .kind = &blocks};
    begin(&a);
    queue(&b);
    until("a");
    sem_post(&kernel);
    tasks_stop(tasks);
    assert_string_equal(order, "a!!");
}

int
main(void)
{
    const struct CMUnitTest all[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        T(locks_until_its_end),
        T(share_a_turn),
        T(short_ones_together),
        T(starts_at_once),
        T(waits_and_is_next),
        T(needs_without_locking),
        T(hands_over),
        T(lets_requests_in),
        T(cancelled),
        T(stopped),
        T(goes_on_while_the_kernel_works),
        T(asks_one_after_another),
        T(stopped_while_the_kernel_works),
    };
    return cmocka_run_group_tests(all, NULL, NULL);
}
