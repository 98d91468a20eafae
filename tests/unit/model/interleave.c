/* SPDX-License-Identifier: Apache-2.0 */
#include "interleave.h"

#include <shared/change-set.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#undef malloc
#undef calloc
#undef free

/* ------------------------------------------------------------------ memory */

#define ARENA (1u << 18)
#define UNIT  16

/* Nothing is used twice, and the addresses are the same in each interleaving. */
static _Alignas(64) uint8_t arena[ARENA];
static uint8_t gone[ARENA / UNIT];
static size_t used;
static unsigned allocated;

struct head {
    size_t size;
    size_t pad;
};

void *
il_malloc(size_t n)
{
    size_t whole = (sizeof(struct head) + n + UNIT - 1) / UNIT * UNIT;
    if (used + whole > ARENA)
        il_broken("the arena is too small");
    struct head *h = (void *)(arena + used);
    h->size = n;
    used += whole;
    allocated++;
    return h + 1;
}

void *
il_calloc(size_t n, size_t size)
{
    return memset(il_malloc(n * size), 0, n * size);
}

size_t
il_size(void *p)
{
    return ((struct head *)p - 1)->size;
}

void *
il_realloc(void *p, size_t n)
{
    void *to = il_malloc(n);
    if (p) {
        memcpy(to, p, il_size(p) < n ? il_size(p) : n);
        il_free(p);
    }
    return to;
}

void *
il_aligned(size_t align, size_t n)
{
    return il_malloc(n);
}

bool
il_alive(const void *p)
{
    size_t at = (size_t)((const uint8_t *)p - arena);
    return at >= ARENA || !gone[at / UNIT];
}

unsigned
il_allocated(void)
{
    return allocated;
}

void
il_free(void *p)
{
    if (!p)
        return;
    IL_PROMISE(il_alive(p), "memory is freed twice");
    size_t n = il_size(p), at = (size_t)((uint8_t *)p - arena) / UNIT;
    memset(p, 0xdd, n);
    memset(gone + at, 1, (n + UNIT - 1) / UNIT);
    allocated--;
}

/* ------------------------------------------------------------------ threads */

#define STACK (64u << 10)
#define STEPS 4096

static const struct il_test *test;
static unsigned watched; /* the reader that others interrupt at every access */
static ucontext_t main_context;

static struct thread {
    ucontext_t context;
    bool ended, offline;
    uint8_t side;
    unsigned points;
    uint64_t has_read; /* since its last quiescent state */
    unsigned rounds;
    uint64_t stack[STACK / sizeof(uint64_t)];
} threads[IL_THREADS];

static unsigned now;       /* whose turn it is */
static unsigned waits_for; /* the writer, for these readers: bits */
static bool alone = true;

/* The interleaving: whose turn it was at each step, and what for. */
static struct step {
    uint8_t thread, choices;
    const char *what;
    unsigned long n;
} steps[STEPS];
static unsigned n_steps, n_given;

void
il_broken(const char *format, ...)
{
    va_list args;
    fflush(stdout);
    fprintf(stderr, "%s: ", test ? test->name : "");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n  after this interleaving (0 is the writer):\n");
    for (unsigned i = 0; i < n_steps; i++) {
        if (i && steps[i].thread == steps[i - 1].thread && !steps[i].what)
            continue;
        fprintf(stderr, "    %3u. thread %u", i, steps[i].thread);
        if (steps[i].what)
            fprintf(stderr, ": %s %lu", steps[i].what, steps[i].n);
        fputc('\n', stderr);
    }
    exit(1);
}

static void
switch_out(void)
{
    struct thread *t = &threads[now];
    t->side = change_set_side;
    swapcontext(&t->context, &main_context);
    change_set_side = t->side;
}

void
il_pause(void)
{
    if (alone)
        return;
    threads[now].points++;
    switch_out();
}

void
il_point(const void *at, bool write)
{
    if (alone)
        return;
    IL_PROMISE(!write || !now, "a reader writes");
    if (now ? now == watched : write) /* nobody but the writer changes what it reads */
        il_pause();
    IL_PROMISE(il_alive(at), "thread %u uses memory that was freed", now);
}

static uint64_t
mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

uintptr_t
il_read(uintptr_t value)
{
    if (!alone && now)
        threads[now].has_read = mix(threads[now].has_read, value);
    return value;
}

void
il_note(const char *what, unsigned long n)
{
    if (n_steps) {
        steps[n_steps - 1].what = what;
        steps[n_steps - 1].n = n;
    }
}

void
il_keeps(uint64_t what)
{
    threads[now].has_read = mix(what, 3);
}

void
il_quiescent(unsigned keeps)
{
    il_pause();
    waits_for &= ~(1u << now);
    threads[now].has_read = mix(keeps, 1);
    threads[now].points = 0;
    threads[now].rounds++;
}

void
il_offline(unsigned keeps)
{
    il_quiescent(keeps);
    threads[now].offline = true;
}

void
il_online(void)
{
    il_pause();
    threads[now].offline = false;
}

void
il_grace_period(void)
{
    if (alone)
        return;
    IL_PROMISE(!now, "a reader waits for a grace period");
    il_pause();
    waits_for = 0;
    for (unsigned i = 1; i < test->n; i++)
        waits_for |= threads[i].ended || threads[i].offline ? 0 : 1u << i;
    while (waits_for)
        switch_out();
}

/* ------------------------------------------------------------------ all of them */

/* States that were entered: an open hash table. */
static uint64_t *seen;
static size_t seen_room, n_seen;

static bool
enter(uint64_t state)
{
    if (n_seen * 2 >= seen_room) {
        size_t room = seen_room ? seen_room * 2 : 1u << 16;
        uint64_t *old = seen;
        seen = calloc(room, sizeof *seen);
        for (size_t i = 0; i < seen_room; i++)
            if (old[i]) {
                size_t at = old[i] & (room - 1);
                while (seen[at])
                    at = (at + 1) & (room - 1);
                seen[at] = old[i];
            }
        free(old);
        seen_room = room;
    }
    state += !state;
    size_t at = state & (seen_room - 1);
    for (; seen[at]; at = (at + 1) & (seen_room - 1))
        if (seen[at] == state)
            return false;
    seen[at] = state;
    n_seen++;
    return true;
}

static uint64_t
state_now(void)
{
    uint64_t h = mix(waits_for, 7);
    for (unsigned i = 0; i < test->n; i++) {
        const struct thread *t = &threads[i];
        h = mix(h, t->points | (uint64_t)t->rounds << 32 | (uint64_t)t->ended << 60 |
                       (uint64_t)t->offline << 61);
        if (i == watched) /* what others read is looked at when they are watched */
            h = mix(mix(h, t->has_read), t->side);
    }
    return h;
}

static bool
can_go_on(unsigned i)
{
    return !threads[i].ended && (i || !waits_for);
}

static void
run_thread(void)
{
    change_set_side = threads[now].side;
    test->thread[now](test->arg[now]);
    threads[now].ended = true;
    waits_for &= ~(1u << now);
    switch_out();
}

static void
prepare(void)
{
    memset(gone, 0, sizeof gone);
    used = allocated = n_steps = waits_for = 0;
    change_set_now = 0;
    change_set_side = CHANGE_SET_NEWEST;
    test->begin();
    for (unsigned i = 0; i < test->n; i++) {
        struct thread *t = &threads[i];
        t->ended = t->offline = false;
        t->points = t->rounds = 0;
        t->has_read = 0;
        t->side = CHANGE_SET_NEWEST;
        getcontext(&t->context);
        t->context.uc_stack.ss_sp = t->stack;
        t->context.uc_stack.ss_size = sizeof t->stack;
        t->context.uc_link = NULL;
        makecontext(&t->context, run_thread, 0);
    }
}

/* Whose turn it is: as given, then the first that can go on.  False: all have ended. */
static bool
choose(void)
{
    unsigned can[IL_THREADS], n = 0;
    for (unsigned i = 0; i < test->n; i++)
        if (can_go_on(i))
            can[n++] = i;
    if (!n) {
        for (unsigned i = 0; i < test->n; i++)
            IL_PROMISE(threads[i].ended, "nobody can go on");
        return false;
    }
    IL_PROMISE(n_steps < STEPS, "it does not end");
    struct step *s = &steps[n_steps];
    if (n_steps < n_given) {
        now = s->thread;
    } else {
        now = can[0];
        *s = (struct step){.thread = (uint8_t)now};
        for (unsigned i = 1; i < n; i++)
            s->choices |= (uint8_t)(1u << can[i]);
    }
    s->what = NULL;
    n_steps++;
    return true;
}

static void
run_once(void)
{
    bool known = false;
    prepare();
    alone = false;
    while (choose()) {
        if (known) /* no other turn here */
            steps[n_steps - 1].choices = 0;
        swapcontext(&main_context, &threads[now].context);
        if (n_steps >= n_given && !known)
            known = !enter(state_now());
    }
    alone = true;
    now = 0;
    change_set_side = CHANGE_SET_NEWEST;
    test->end();
}

/* The last step that has another choice takes it.  False: there is none. */
static bool
next_given(void)
{
    while (n_steps) {
        struct step *s = &steps[n_steps - 1];
        if (!s->choices) {
            n_steps--;
            continue;
        }
        s->thread = (uint8_t)__builtin_ctz(s->choices);
        s->choices &= (uint8_t)(s->choices - 1);
        n_given = n_steps;
        return true;
    }
    return false;
}

struct il_sum
il_explore(const struct il_test *t)
{
    struct il_sum sum = {0};
    test = t;
    for (watched = 1; watched < t->n; watched++) {
        n_given = 0;
        do {
            run_once();
            sum.runs++;
        } while (next_given());
        sum.states += n_seen;
        free(seen);
        seen = NULL;
        seen_room = n_seen = 0;
    }
    return sum;
}
