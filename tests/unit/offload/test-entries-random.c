/* SPDX-License-Identifier: Apache-2.0 */
/* Random changes beside random packets: which entries stay. */
#include "entries-fixture.h"

#include <megaflow/megaflow.h>
#include <megaflow/plan.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 12
#define STEPS 1500

static void
tell_ports(struct test *t)
{
    for (unsigned i = 0; i < 6; i++) {
        const struct oracle_port *p = &t->fixture->world.port[i];
        if (memcmp(&t->before[i], p, sizeof *p))
            sw_offload_forget_port(&t->sw, p->no);
    }
    memcpy(t->before, t->fixture->world.port, sizeof t->before);
}

static bool
has_key(const struct entry *e, const struct flow_key *key)
{
    uint64_t differs = 0;
    for (int i = 0; i < KEY_WORDS; i++)
        differs |= (e->key.w[i] ^ key->w[i]) & e->mask.w[i];
    return !differs;
}

static bool
same_path(const struct entry *e, const struct offload_plan *p)
{
    bool same = e->n_steps == p->n_steps && e->meter_id == p->meter_id && e->metered == p->metered;
    for (unsigned i = 0; same && i < e->n_steps; i++)
        same = e->table[i] == p->step[i].table && e->step[i].flow == p->step[i].flow &&
               e->step[i].program == p->step[i].program && e->added[i] == p->step[i].added;
    return same;
}

static bool
same_counted(const struct test *t, const struct entry *e, const struct offload_plan *p)
{
    bool same = e->n_runs == p->n_runs && e->n_outs == p->n_outs && e->n_drops == p->n_drops;
    for (unsigned i = 0; same && i < e->n_runs; i++)
        same = e->run[i].id == p->run[i].group && e->run[i].bucket == p->run[i].bucket &&
               e->run[i].added == p->run[i].added &&
               e->run[i].group == groups_find(t->sw.dp.groups, e->run[i].id);
    for (unsigned i = 0; same && i < e->n_outs; i++)
        same = e->out[i].port == p->out[i].port && e->out[i].added == p->out[i].added;
    for (unsigned i = 0; same && i < e->n_drops; i++)
        same = e->drop[i].why == p->drop[i].why;
    return same;
}

/* The entry as the kernel has it. */
static bool
same_ops(const struct test *t, const struct entry *e, const struct offload_plan *p)
{
    const struct offload_entry *k = &t->m.entry[e->id];
    return k->state == OFFLOAD_LIVE && k->n_ops == p->rule.n_ops && k->longest == p->rule.longest &&
           k->super == offload_rule_super(t->f.o, &p->rule) && k->min_ttl == p->rule.min_ttl &&
           !memcmp(k->op, p->rule.op, k->n_ops * sizeof k->op[0]);
}

static void
check_entry(struct test *t, const struct entry *e)
{
    struct offload_plan p;
    for (unsigned i = 0; i < FRAMES; i++) {
        bool own = !memcmp(&e->asked, &t->key[i], sizeof e->asked);
        if (!own && !has_key(e, &t->key[i]))
            continue;
        enum offload_reason why =
            offload_plan_make(&t->sw.dp, &t->key[i], OFFLOAD_AT_PORT, &t->f.places, &p);
        if (!own && why == OFFLOAD_WHY_kind) /* the kernel's programs don't look for it */
            continue;
        if (why == OFFLOADED && same_path(e, &p) && same_counted(t, e, &p) && same_ops(t, e, &p)) {
            t->others += !own;
            continue;
        }
        fprintf(stderr, "entry %u: the plan anew (%s) is another one\n", (unsigned)e->id,
                offload_reason_name[why]);
        fail();
    }
    t->stayed++;
}

static void
check_all(struct test *t)
{
    for (uint32_t i = 0; i < t->f.n_live; i++) {
        assert_int_equal(t->f.live[i]->at, i);
        check_entry(t, t->f.live[i]);
    }
    assert_int_equal(offload_counts(t->f.o).entries, t->f.n_live);
    assert_int_equal(t->f.n_gone, 0);
}

static void
ask(struct test *t, unsigned i)
{
    static const struct flow_key none;
    now_ns += 20000000000; /* no pause lasts that long, and requests are few */
    if (memcmp(&t->key[i], &none, sizeof none))
        offload_ask(&t->f, &t->key[i], OFFLOAD_AT_PORT);
}

static void
random_run(uint64_t seed, uint64_t *stayed, uint64_t *others, uint64_t *made)
{
    struct test *t = test_begin(seed);
    for (unsigned i = 0; i < 60; i++)
        assert_true(fixture_change(t->fixture, &t->env, t->why));
    tell_ports(t);
    for (unsigned i = 0; i < STEPS; i++) {
        if (once_in(&t->random, 3)) {
            assert_true(fixture_change(t->fixture, &t->env, t->why));
            tell_ports(t);
        }
        if (once_in(&t->random, 100))
            draw_frame(t, random_below(&t->random, FRAMES));
        ask(t, random_below(&t->random, FRAMES));
        offload_settle(&t->f);
        check_all(t);
    }
    *stayed += t->stayed;
    *others += t->others;
    *made += t->f.counts.inserted;
    test_end(t);
}

/* An entry that no change concerned still is what a plan anew says, for each packet that it matches. */
static void
what_stays_is_right(void **state)
{
    uint64_t stayed = 0, others = 0, made = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++)
        random_run(seed, &stayed, &others, &made);
    print_message("%llu entries made; looked at %llu, and %llu packets of others\n",
                  (unsigned long long)made, (unsigned long long)stayed, (unsigned long long)others);
    assert_true(made > 100 && stayed > 10 * made && others > 100);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stays_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
