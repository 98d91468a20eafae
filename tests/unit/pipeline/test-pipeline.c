/* SPDX-License-Identifier: Apache-2.0 */
/* Random tables, groups and packets: the pipeline does what the plain reading of the specification
 * does, without a cache, with one that is always too small, and with one that holds everything.
 *
 *     test-pipeline [first seed [how many [steps]]]
 */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES 16

struct run {
    struct fixture *fixture;
    struct random random;
    struct random_env env;
    struct frame frames[FRAMES];
    char why[256];
};

static bool
packets(struct run *u)
{
    struct random *c = &u->random;
    uint32_t n = once_in(c, 3) ? 1 + random_below(c, FIXTURE_BATCH) : 1;
    if (once_in(c, 24))
        random_frame(c, &u->frames[random_below(c, FRAMES)]);
    while (n--) {
        if (once_in(c, 12)) {
            const void *po = random_packet_out(&u->env);
            if (!fixture_packet_out(u->fixture,
                                    fixture_through_codec(u->fixture, OFPT_PACKET_OUT, po), u->why))
                return false;
        } else {
            uint32_t i = random_below(c, FRAMES), in = once_in(c, 4) ? random_below(c, 6) : i % 6;
            if (!fixture_receive(u->fixture, &u->frames[i], in < 5 ? in + 1 : OFPP_LOCAL, u->why))
                return false;
        }
    }
    return fixture_compare(u->fixture, u->why);
}

static bool
all_steps(struct run *u, uint32_t steps)
{
    struct random *c = &u->random;
    for (int i = 0; i < FRAMES; i++)
        if (i >= 6 && once_in(c, 2)) /* which comes in by the same port */
            random_sibling(c, &u->frames[i - 6], &u->frames[i]);
        else
            random_frame(c, &u->frames[i]);
    for (uint32_t i = 0; i < 60; i++)
        if (!fixture_change(u->fixture, &u->env, u->why))
            return false;
    for (uint32_t i = 0; i < steps; i++) {
        if (once_in(c, 8) && !fixture_change(u->fixture, &u->env, u->why))
            return false;
        if (!packets(u))
            return false;
        if ((i % 16 == 15 || i + 1 == steps) && !fixture_compare_counters(u->fixture, u->why))
            return false;
    }
    return true;
}

struct sums {
    uint64_t traced, traced_out, packets, outs, packet_ins, flow_mods, refused, asked, in_vain,
        with_queue;
};

static bool
run(uint64_t seed, uint32_t steps, uint32_t cache, uint64_t *digest, struct sums *s)
{
    struct run u = {.random = {.seed = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15)}};
    u.fixture = fixture_new(cache);
    u.random.roots = seed & 1;
    u.random.tags = seed % 4 > 1;
    u.random.partial = !u.random.roots;
    u.env = (struct random_env){.c = &u.random,
                                .arena = &u.fixture->arena,
                                .sw = &u.fixture->oracle,
                                .frames = u.frames,
                                .n_frames = FRAMES,
                                .n_tables = FIXTURE_TABLES};
    bool ok = all_steps(&u, steps);
    if (!ok) {
        fixture_show(u.fixture);
        fprintf(stderr, "seed %llu, %u steps, cache of %u: %s\n", (unsigned long long)seed, steps,
                cache, u.why);
    }
    *digest = u.fixture->digest;
    s->packets += u.fixture->packets;
    s->outs += u.fixture->outs;
    s->packet_ins += u.fixture->packet_ins;
    s->flow_mods += u.fixture->flow_mods;
    s->refused += u.fixture->refused;
    s->traced += u.fixture->traced;
    s->traced_out += u.fixture->traced_out;
    s->asked += u.fixture->asked;
    s->in_vain += u.fixture->in_vain;
    s->with_queue += u.fixture->with_queue;
    fixture_free(u.fixture);
    return ok;
}

static uint64_t
argument(char **argv, int argc, int i, uint64_t otherwise)
{
    return argc > i ? strtoull(argv[i], NULL, 0) : otherwise;
}

int
main(int argc, char **argv)
{
    static const uint32_t caches[] = {0, 16, 16384};
    uint64_t first = argument(argv, argc, 1, 1), n = argument(argv, argc, 2, 400);
    uint32_t steps = (uint32_t)argument(argv, argc, 3, 300);
    unsigned failed = 0;
    struct sums s = {0};
    for (uint64_t seed = first; seed < first + n && failed < 5; seed++) {
        uint64_t digest[3];
        bool ok = true;
        for (int i = 0; ok && i < 3; i++)
            ok = run(seed, steps, caches[i], &digest[i], &s);
        if (ok && (digest[0] != digest[1] || digest[0] != digest[2])) {
            fprintf(stderr, "seed %llu: a cache makes a difference\n", (unsigned long long)seed);
            ok = false;
        }
        failed += !ok;
    }
    printf(
        "%llu seeds: %llu packets, %llu out, %llu of them packet-ins, %llu flow-mods, %llu "
        "refused, %llu traces that said %llu out, %llu previews, %llu of them with a queue, %llu in vain; %u failed\n",
        (unsigned long long)n, (unsigned long long)s.packets, (unsigned long long)s.outs,
        (unsigned long long)s.packet_ins, (unsigned long long)s.flow_mods,
        (unsigned long long)s.refused, (unsigned long long)s.traced,
        (unsigned long long)s.traced_out, (unsigned long long)s.asked,
        (unsigned long long)s.with_queue, (unsigned long long)s.in_vain, failed);
    return failed ? 1 : 0;
}
