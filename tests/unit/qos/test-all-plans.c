/* SPDX-License-Identifier: Apache-2.0 */
/* All or nothing, exhaustively in the small: every state that up to four requests lead to, every request
 * from there, after up to three requests every bundle of two, each refused by the kernel at every operation and
 * taken back after every step.
 *
 * test-txn.c does the same at random with larger trees. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH  4 /* requests from an empty port to a state */
#define STATES 1000
#define MOST   2 /* requests in a bundle */

static const struct {
    const char *sched, *args;
} words[] = {
    {"htb", "cmd=add,port=2,class=1,rate=1mbit,ceil=3mbit"},
    {"htb", "cmd=add,port=2,class=2,parent=1,rate=20%"},
    {"htb", "cmd=change,port=2,class=1,rate=2mbit"},
    {"htb", "cmd=replace,port=2,class=2,rate=10%,ceil=50%"},
    {"htb", "cmd=add,port=2,class=0,rate=10mbit"},
    {"htb", "cmd=add,port=2,default=1"},
    {"htb", "cmd=change,port=2,default=2"},
    {"htb", "cmd=del,port=2,class=1,children=yes"},
    {"htb", "cmd=del,port=2,class=2"},
    {"sfq", "cmd=add,port=2,class=2,perturb=5"},
    {"pfifo", "cmd=replace,port=2,class=1,limit=7"},
    {"sfq", "cmd=del,port=2,class=2"},
    {"tbf", "cmd=add,port=2,rate=1mbit"},
    {"htb", "cmd=add,port=2,class=1,rate=1mbit,direction=in"},
    {"none", "port=2"},
};
#define WORDS (sizeof words / sizeof *words)

static struct qos_request request[WORDS];

/* ------------------------------------------------------------------ states */

static struct {
    char *text;
    uint8_t way[DEPTH]; /* the requests that lead to it */
    unsigned depth;
} found[STATES];
static unsigned n_found;

static unsigned long bundles, refusals, reverts;

/* What there is: the kernel's objects, the model's, what the packet side knows. */
static char *
text_now(void)
{
    char *k = fake_text(&kernel), *m = model_text(), *all;
    uint64_t h = 1;
    for (uint32_t i = 0; i < 16; i++) { /* the first and the last classes */
        uint32_t id = (i - 8) & 0xffff;
        h = (h * 4 + present[id] * 2u + present_in[id]) * 31 + taker[id];
    }
    if (asprintf(&all, "%s%s%u %u %d %d %llx\n", k, m, default_class, default_in, shaped,
                 kernel.shaper[IF2], (unsigned long long)h) < 0)
        abort();
    free(k);
    free(m);
    return all;
}

static void
go_to(unsigned s)
{
    setup(NULL);
    for (unsigned i = 0; i < found[s].depth; i++)
        qos_execute(qos, &request[found[s].way[i]], &err);
}

static void
note_state(unsigned from, uint8_t word)
{
    char *text = text_now();
    for (unsigned i = 0; i < n_found; i++)
        if (!strcmp(found[i].text, text)) {
            free(text);
            return;
        }
    assert_true(n_found < STATES);
    memcpy(found[n_found].way, found[from].way, DEPTH);
    found[n_found].depth = found[from].depth + 1;
    found[n_found].way[found[from].depth] = word;
    found[n_found++].text = text;
}

static void
find_states(void)
{
    setup(NULL);
    n_found = 1;
    found[0].text = text_now();
    found[0].depth = 0;
    teardown(NULL);
    for (unsigned s = 0; s < n_found; s++)
        for (uint8_t w = 0; w < WORDS && found[s].depth < DEPTH; w++) {
            go_to(s);
            if (!qos_execute(qos, &request[w], &err))
                note_state(s, w);
            teardown(NULL);
        }
}

/* ------------------------------------------------------------------ bundles */

struct bundle {
    unsigned state, n;
    uint8_t word[MOST];
    size_t step; /* operations at once */
};

static void
explain(const struct bundle *b, const char *what, int at)
{
    print_error("%s %d, operations at once: %zu, kernel %s\n", what, at, b->step,
                kernel.goes_on ? "goes on" : "stops");
    for (unsigned i = 0; i < found[b->state].depth; i++)
        print_error("  before: %s %s\n", words[found[b->state].way[i]].sched,
                    words[found[b->state].way[i]].args);
    for (unsigned i = 0; i < b->n; i++)
        print_error("  in the bundle: %s %s\n", words[b->word[i]].sched, words[b->word[i]].args);
}

static void
must_be(const struct bundle *b, const char *want, const char *what, int at)
{
    char *now = text_now();
    if (strcmp(now, want) != 0) {
        explain(b, what, at);
        print_error("there was:\n%sthere is:\n%s", want, now);
        fail();
    }
    free(now);
}

/* How many were taken. */
static unsigned
begin(const struct bundle *b)
{
    unsigned taken = 0;
    qos_begin(qos);
    for (unsigned i = 0; i < b->n; i++)
        taken += !qos_execute(qos, &request[b->word[i]], &err);
    return taken;
}

static enum qos_progress
step(const struct bundle *b)
{
    unsigned at;
    return qos_commit_step(qos, b->step, &at, &err);
}

/* The kernel refuses operation 0, 1, ... until all are done. */
static void
each_refused(const struct bundle *b)
{
    const char *want = found[b->state].text;
    for (int fail_at = 0;; fail_at++) {
        enum qos_progress p;
        begin(b);
        kernel.fail_in = fail_at;
        while ((p = step(b)) == QOS_COMMIT_MORE)
            ;
        bool refused = kernel.fail_in < 0;
        kernel.fail_in = -1;
        if (p == QOS_COMMIT_AGREED) {
            assert_false(refused);
            qos_commit_end(qos);
            return;
        }
        refusals++;
        must_be(b, want, "the kernel refuses operation", fail_at);
    }
}

/* Taken back after 0, 1, ... steps. */
static void
each_reverted(const struct bundle *b)
{
    const char *want = found[b->state].text;
    for (int after = 0;; after++) {
        enum qos_progress p = QOS_COMMIT_MORE;
        begin(b);
        for (int i = 0; i < after && p == QOS_COMMIT_MORE; i++)
            p = step(b);
        bool all = p != QOS_COMMIT_MORE;
        qos_commit_revert(qos);
        while ((p = step(b)) == QOS_COMMIT_MORE)
            ;
        assert_int_equal(p, QOS_COMMIT_REFUSED);
        reverts++;
        must_be(b, want, "taken back after steps:", after);
        if (all)
            return;
    }
}

/* What the bundle has made is what its requests make one by one. */
static void
as_one_by_one(const struct bundle *b)
{
    char *at_once = text_now();
    teardown(NULL);
    go_to(b->state);
    for (unsigned i = 0; i < b->n; i++)
        qos_execute(qos, &request[b->word[i]], &err);
    must_be(b, at_once, "one by one is another thing, bundle of", (int)b->n);
    free(at_once);
}

static void
try_bundle(struct bundle b)
{
    bundles++;
    go_to(b.state);
    b.step = 1;
    each_reverted(&b);
    each_refused(&b);
    as_one_by_one(&b);
    teardown(NULL);
    go_to(b.state);
    kernel.goes_on = true; /* as netlink does with what was sent at once */
    b.step = 100;
    each_refused(&b);
    teardown(NULL);
}

static void
every_bundle(void **state)
{
    find_states();
    for (unsigned s = 0; s < n_found; s++) {
        for (uint8_t a = 0; a < WORDS; a++) {
            try_bundle((struct bundle){.state = s, .n = 1, .word = {a}});
            for (uint8_t c = 0; found[s].depth < DEPTH && c < WORDS; c++)
                try_bundle((struct bundle){.state = s, .n = 2, .word = {a, c}});
        }
    }
    print_message("%u states, %lu bundles, %lu refusals, %lu reverts\n", n_found, bundles, refusals,
                  reverts);
    while (n_found)
        free(found[--n_found].text);
    bundles = refusals = reverts = 0;
}

/* Somebody else was faster: what the plan could not add is not taken away. */
static void
others_keep_theirs(void **state)
{
    for (uint8_t w = 0; w < WORDS; w++) {
        setup(NULL);
        struct bundle b = {.n = 1, .word = {w}, .step = 1};
        enum qos_progress p;
        if (begin(&b) && qos_planned(qos)) {
            fake_foreign_root(&kernel, IF2, QOS_HANDLE_TREE, "htb");
            char *before = fake_text(&kernel);
            while ((p = step(&b)) == QOS_COMMIT_MORE)
                ;
            char *after = fake_text(&kernel);
            if (p == QOS_COMMIT_REFUSED)
                assert_string_equal(after, before);
            else
                qos_commit_end(qos);
            free(before);
            free(after);
        } else {
            qos_abort(qos);
        }
        teardown(NULL);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_bundle),
                                       cmocka_unit_test(others_keep_theirs)};
    for (unsigned w = 0; w < WORDS; w++) {
        char why[512];
        if (qos_request_parse(&request[w], qos_sched_by_name(words[w].sched), words[w].args, why,
                              sizeof why)) {
            fprintf(stderr, "%s\n", why);
            return 1;
        }
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    own_leaf = "fq_codel";
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
