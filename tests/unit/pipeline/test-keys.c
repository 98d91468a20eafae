/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of actions say of the flow key (key_effect) holds for random frames: where a key is
 * kept, the edit leaves it alone; where it follows, frames with the same key have the same key again
 * after the edit, however else they differ, and the row makes that key without a frame.
 *
 *     test-keys [first seed [how many]]
 */
#include "random.h"

#include <flow/actions.h>
#include <packet/packet.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    struct random random;
    struct of_arena arena;
    struct packet_pool *pool;
    struct packet p[2]; /* with the same key */
    uint8_t room[2][PACKET_HEADROOM + FRAME_ROOM];
    uint64_t edits[KEY_KEPT + 1];   /* by effect */
    uint64_t checked[ACTION_TYPES]; /* by action: the key was checked after it */
};

static bool
any_id(void *sw, uint32_t id)
{
    return true;
}

static void
take_in(struct pair *t, int i, const struct frame *f)
{
    struct packet *p = &t->p[i];
    *p = (struct packet){.data = t->room[i] + PACKET_HEADROOM,
                         .len = f->n,
                         .wire_len = f->n,
                         .headroom = PACKET_HEADROOM,
                         .pool = t->pool};
    memcpy(p->data, f->data, f->n);
    packet_parse(p, 1);
}

/* False: not two packets that the cache would take for the same. */
static bool
new_pair(struct pair *t)
{
    struct frame one, other;
    packet_pool_reset(t->pool);
    random_frame(&t->random, &one);
    random_sibling(&t->random, &one, &other);
    one.csum_start = other.csum_start = 0;
    take_in(t, 0, &one);
    take_in(t, 1, &other);
    return !memcmp(&t->p[0].key, &t->p[1].key, sizeof t->p[0].key) && !t->p[0].fragment &&
           !t->p[1].fragment && !t->p[0].malformed && !t->p[1].malformed;
}

static struct program *
random_program(struct pair *t)
{
    static const struct oracle_switch no_groups;
    struct random_env e = {.c = &t->random, .arena = &t->arena, .sw = &no_groups};
    struct compile_env env = {
        .port_ok = any_id, .group_ok = any_id, .meter_ok = any_id, .packet_out = true};
    struct program *prog;
    of_arena_reset(&t->arena);
    if (compile_actions(&env, &random_packet_out(&e)->actions, &prog))
        abort();
    return prog;
}

/* A flow sets a field only of packets that have it. */
static bool
has_field(const struct act *a, const struct flow_key *key)
{
    struct flow_key all;
    struct of_oxm v[OXM_N];
    struct of_match m = {.v = v};
    memset(&all, 0xff, sizeof all);
    key_to_match(key, &all, &m);
    return a->op != OFPAT_SET_FIELD || of_match_find(&m, (enum oxm_field)a->extra);
}

/* What the row makes of the key, and of another one that has the bits on which the effect depends: what
 * is known is the same for both, and all else stays as it was. */
static bool
rekey_holds(struct pair *t, const struct act *a, const struct flow_key *before)
{
    struct flow_key wc = {0}, other;
    struct rekeyed one = {.key = *before, .wc = &wc}, two = {.wc = &wc};
    action_rows[a->op].rekey(a, &one);
    for (int i = 0; i < KEY_WORDS; i++) {
        uint64_t random = (uint64_t)random_below(&t->random, UINT32_MAX) << 32 |
                          random_below(&t->random, UINT32_MAX);
        other.w[i] = (before->w[i] & wc.w[i]) | (random & ~wc.w[i]);
    }
    two.key = other;
    action_rows[a->op].rekey(a, &two);
    bool holds = !memcmp(&one.key, &t->p[0].key, sizeof one.key) &&
                 !memcmp(&one.known, &two.known, sizeof one.known);
    for (int i = 0; i < KEY_WORDS; i++)
        holds &= two.key.w[i] == ((one.key.w[i] & one.known.w[i]) | (other.w[i] & ~one.known.w[i]));
    return holds;
}

/* Both packets' edit.  False: the keys are no longer the same, which the row allows, or a packet has
 * ended. */
static bool
edit(struct pair *t, const struct act *a, bool *holds)
{
    int (*run)(struct packet *, const struct act *) = action_rows[a->op].edit;
    enum key_effect effect = actions_key_effect((struct act_list){a, act_next(a)});
    struct flow_key before = t->p[0].key;
    if (!run)
        return true;
    if (run(&t->p[0], a) || run(&t->p[1], a))
        return false;
    t->edits[effect]++;
    t->checked[a->op]++;
    bool same = !memcmp(&t->p[0].key, &t->p[1].key, sizeof before);
    bool kept = same && !memcmp(&t->p[0].key, &before, sizeof before);
    *holds = effect == KEY_KEPT ? kept
             : effect == KEY_FOLLOWS
                 ? same && (!has_field(a, &before) || rekey_holds(t, a, &before))
                 : true;
    return same && *holds;
}

static bool
check(struct pair *t)
{
    bool holds = true;
    struct program *prog = random_program(t);
    ACTS_EACH(a, program_apply(prog)) {
        if (edit(t, a, &holds))
            continue;
        if (!holds)
            fprintf(stderr, "action %u (extra %u): the key is not what the row says\n", a->op,
                    a->extra);
        break;
    }
    free(prog);
    return holds;
}

int
main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    uint64_t n = argc > 2 ? strtoull(argv[2], NULL, 0) : 20000;
    struct pair *t = calloc(1, sizeof *t);
    unsigned failed = 0;
    t->pool = packet_pool_new(16u << 20);
    of_arena_init(&t->arena, 16u << 20);
    for (uint64_t seed = first; seed < first + n && failed < 5; seed++) {
        t->random = (struct random){
            .seed = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15), .roots = true, .tags = seed & 1};
        if (new_pair(t) && !check(t)) {
            fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
            failed++;
        }
    }
    printf("%llu seeds: %llu edits that keep the key, %llu that change it, %llu of unknown effect; "
           "%u failed\n",
           (unsigned long long)n, (unsigned long long)t->edits[KEY_KEPT],
           (unsigned long long)t->edits[KEY_FOLLOWS], (unsigned long long)t->edits[KEY_UNKNOWN],
           failed);
    for (size_t i = 0; i < of_list_actions.n_tags && n >= 20000; i++) {
        uint16_t type = of_list_actions.tags[i].type;
        if (type < ACTION_TYPES && action_rows[type].edit && !t->checked[type]) {
            fprintf(stderr, "no random list has action %u\n", type);
            failed++;
        }
    }
    packet_pool_free(t->pool);
    of_arena_free(&t->arena);
    free(t);
    return failed ? 1 : 0;
}
