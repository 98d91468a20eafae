/* SPDX-License-Identifier: Apache-2.0 */
/* Change sets, numbered objects and deferred freeing (change-set.c, idmap.c, pointer-hash.c, rcu.c) in all
 * interleavings of two workers, a commit and another reader.
 *
 * A map has two objects that change together.  A worker looks up the one, the other, and the first again
 * between two quiescent states: it must find what was there before the set or after it, never a mixture,
 * never anything that is freed, and never the old one again. */
#include "interleave.h"

#include <shared/change-set.h>
#include <shared/idmap.h>

#include <stdio.h>
#include <string.h>

#define ROUNDS 2
#define IDS    2
#define SETS   2

struct object {
    IDMAP_OBJECT
    unsigned version; /* 1: before all sets */
};

static struct idmap map;
static int refers;

static void
free_object(void *o)
{
    free(o);
}

static void
refer(void *owner, void *o, int delta)
{
    refers += delta;
}

static void
inherit(void *o, void *old)
{
}

static const struct idmap_ops ops = {free_object, refer, inherit};

static struct object *
object(uint32_t id, unsigned version)
{
    struct object *o = calloc(1, sizeof *o);
    o->id = id;
    o->version = version;
    return o;
}

/* ------------------------------------------------------------------ what a set does */

static void
add(uint32_t id, unsigned version)
{
    IL_PROMISE(!idmap_add(&map, object(id, version)), "no memory");
}

static void
drop(uint32_t id)
{
    IL_PROMISE(!idmap_drop(&map, idmap_find(&map, id)), "no memory");
}

static void
replace(uint32_t id, unsigned version)
{
    IL_PROMISE(!idmap_replace(&map, idmap_find(&map, id), object(id, version)), "no memory");
}

/* More objects than the first slots hold: the slots are replaced while readers use them. */
static void
grow(uint32_t id, unsigned version)
{
    for (uint32_t i = 0; i < 3; i++)
        add(id * 100 + i, version);
}

/* Adds (+), drops (-), replaces (=), grows (*), in turn; the last object of the id has the version. */
static void
change(const char *steps, uint32_t id, unsigned version)
{
    for (const char *s = steps; *s; s++) {
        unsigned now = strpbrk(s + 1, "+-=") ? 100 + version : version;
        switch (*s) {
        case '+': add(id, now); break;
        case '-': drop(id); break;
        case '=': replace(id, now); break;
        default: grow(id, now);
        }
    }
}

static const struct scenario {
    const char *name;
    const char *steps;      /* of change() */
    unsigned before, after; /* versions; 0: not there */
    unsigned sets;          /* one after the other; the second one's version is 3 */
    bool undone;
} scenarios[] = {
    {"adds", "+", 0, 2, 1, false},
    {"adds, undone", "+", 0, 0, 1, true},
    {"drops", "-", 1, 0, 1, false},
    {"drops, undone", "-", 1, 1, 1, true},
    {"replaces", "=", 1, 2, 1, false},
    {"replaces, undone", "=", 1, 1, 1, true},
    {"replaces twice", "==", 1, 2, 1, false},
    {"replaces twice, undone", "==", 1, 1, 1, true},
    {"drops and adds", "-+", 1, 2, 1, false},
    {"drops and adds, undone", "-+", 1, 1, 1, true},
    {"adds and replaces", "+=", 0, 2, 1, false},
    {"adds and replaces, undone", "+=", 0, 0, 1, true},
    {"adds and drops", "+-", 0, 0, 1, false},
    {"grows", "=*", 1, 2, 1, false},
    {"grows, undone", "=*", 1, 1, 1, true},
    {"replaces, a set after the other", "=", 1, 2, 2, false},
    {"drops and adds, a set after the other", "-+", 1, 2, 2, false},
};

static const struct scenario *scenario;

/* ------------------------------------------------------------------ threads */

static void
writer(void *arg)
{
    for (unsigned set = 0; set < scenario->sets; set++) {
        change_set_begin();
        for (uint32_t id = 1; id <= IDS; id++)
            change(scenario->steps, id, 2 + set);
        IL_PROMISE(!change_set_failed(), "no memory");
        change_set_end(!scenario->undone);
    }
    rcu_turn();
}

static unsigned
look(uint32_t id)
{
    struct object *o = idmap_find(&map, id);
    IL_PROMISE(!o || (il_alive(o) && o->id == id), "found an object that is not there any more");
    return o ? o->version : 0;
}

/* How many sets it has seen. */
static unsigned
age(unsigned version)
{
    if (version == scenario->before && (scenario->before != scenario->after || scenario->undone))
        return 0;
    if (version == scenario->after)
        return 1;
    IL_PROMISE(scenario->sets == 2 && version == 3, "version %u of an object that nobody has made",
               version);
    return 2;
}

/* As worker_main does. */
static void
worker(void *arg)
{
    unsigned oldest = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        change_set_enter();
        unsigned a = look(1);
        il_keeps(oldest * 1000 + a);
        unsigned b = look(2);
        il_note("a round meets versions (in hundreds, and the other)", a * 100 + b);
        IL_PROMISE(a == b, "a part of a change set: versions %u and %u", a, b);
        IL_PROMISE(age(a) >= oldest, "version %u after a newer one", a);
        oldest = age(a);
        il_keeps(a);
        IL_PROMISE(look(1) == a, "another version in the same round than %u", a);
        il_quiescent(oldest);
        if (round == 0 && arg) { /* sleeps; wakes up on the side where it was */
            il_offline(oldest);
            il_online();
        }
    }
}

/* Not a worker: it sees each change at once, but nothing that is freed. */
static void
reader(void *arg)
{
    for (uint32_t id = IDS; id; id--)
        look(id);
    il_quiescent(0);
}

static void
begin(void)
{
    idmap_init(&map, &ops, NULL);
    refers = 0;
    if (scenario->before)
        for (uint32_t id = 1; id <= IDS; id++)
            add(id, 1);
}

static void
end(void)
{
    unsigned last = scenario->undone ? scenario->before : scenario->after;
    unsigned n = 0;
    last += scenario->sets - 1;
    for (uint32_t id = 1; id <= IDS; id++)
        IL_PROMISE(look(id) == last, "version %u in the end, not %u", look(id), last);
    uint32_t pos = 0;
    for (struct idmap_object *o; (o = ptr_hash_each(&map.tab, &pos)); n++)
        IL_PROMISE(!o->mark && !o->before, "a mark is left");
    IL_PROMISE(idmap_count(&map) == n && !map.leaving, "the count is wrong");
    IL_PROMISE(refers == (int)n, "references %d of %u objects", refers, n);
    rcu_wait();
    idmap_free(&map);
    IL_PROMISE(!il_allocated(), "%u pieces of memory are lost", il_allocated());
}

static void
explore(const struct scenario *s, void (*third)(void *), void (*fourth)(void *))
{
    struct il_test t = {.name = s->name,
                        .begin = begin,
                        .end = end,
                        .thread = {writer, worker, third, fourth},
                        .arg = {NULL, NULL, &map, NULL}, /* one worker sleeps */
                        .n = fourth ? 4 : 3};
    scenario = s;
    struct il_sum sum = il_explore(&t);
    printf("%-40s %s %8lu states, %8lu interleavings\n", s->name,
           fourth            ? "workers, reader"
           : third == worker ? "workers        "
                             : "worker, reader ",
           sum.states, sum.runs);
    fflush(stdout);
}

/* usage: test-interleavings [all]
 * Two workers, and a worker with a reader; all: two workers with a reader (a minute). */
int
main(int argc, char **argv)
{
    bool all = argc > 1 && !strcmp(argv[1], "all");
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        const struct scenario *s = &scenarios[i];
        bool long_one = s->sets > 1; /* whoever sees each change at once has no age */
        if (all && !long_one) {
            explore(s, worker, reader);
            continue;
        }
        explore(s, worker, NULL);
        if (!long_one)
            explore(s, reader, NULL);
    }
    return 0;
}
