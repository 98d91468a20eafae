/* SPDX-License-Identifier: Apache-2.0 */
/* The switch's own hash tables (shared/pointer-hash.h, shared/idmap.h) beside liburcu's cds_lfht:
 * CPU time of lookups, inserts, removals and walks, and bytes of memory per entry.
 *
 *   hash-bench [ROUNDS]       default: 5; every round runs all tables in turn
 *
 * Prints the median over the rounds, and in parentheses the median of the rounds' ratios to
 * cds_lfht.  Times are CPU time (for inserts of all threads: cds_lfht has helpers when it grows
 * much), so that other load on the machine counts as little as possible.
 *
 * cds_lfht is doubled here by its writer as soon as it has an entry a bucket.  Left to its own
 * thread (CDS_LFHT_AUTO_RESIZE) it grows once a grace period, and a writer that inserts much
 * between two quiescent states walks ever longer chains.
 */
#include <shared/idmap.h>

#include <urcu/rculfhash.h>

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define LOOKUPS    2000000u /* by each thread */
#define BATCH      64u
#define ROUNDS_MAX 64

struct object {
    IDMAP_OBJECT
    struct cds_lfht_node node;
};

enum subject { CDS, IDMAP, BATCHED, SUBJECTS };
static const char *const names[SUBJECTS] = {"cds_lfht", "idmap", "ptr_hash, batches"};

enum figure { READ_1, READ_2, INSERT, WALK, REMOVE, BYTES, FIGURES };
static const char *const figures[FIGURES] = {"lookup, 1 thread, ns", "lookup, 2 threads, ns",
                                             "insert, ns",           "walk, ns an entry",
                                             "remove, ns",           "bytes an entry"};

static struct object *objects;
static uint32_t *order, n_objects; /* ids in the order in which they are looked up */
static struct idmap map;
static struct cds_lfht *cds;

static double
cpu(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint32_t
random_below(uint32_t n)
{
    static uint64_t seed = 1;
    seed = seed * UINT64_C(6364136223846793005) + 1;
    return (uint32_t)((seed >> 32) * n >> 32);
}

static void
make_objects(uint32_t n)
{
    n_objects = n;
    objects = calloc(n, sizeof *objects);
    order = malloc(n * sizeof *order);
    if (!objects || !order)
        abort();
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = random_below(i + 1);
        objects[i].id = i + 1;
        order[i] = order[k];
        order[k] = i + 1;
    }
}

/* ------------------------------------------------------------------ the tables */

static void
keep(void *o)
{
}

static int
same_id(struct cds_lfht_node *node, const void *id)
{
    return caa_container_of(node, struct object, node)->id == *(const uint32_t *)id;
}

static inline bool
cds_has(uint32_t id)
{
    struct cds_lfht_iter it;
    cds_lfht_lookup(cds, id_hash(id), same_id, &id, &it);
    return cds_lfht_iter_get_node(&it);
}

static void
open_table(enum subject s)
{
    static const struct idmap_ops ops = {.free = keep};
    if (s == CDS)
        cds = cds_lfht_new_flavor(1, 1, 0, 0, &urcu_qsbr_flavor, NULL);
    else
        idmap_init(&map, &ops, NULL);
}

static void
close_table(enum subject s)
{
    if (s == CDS)
        cds_lfht_destroy(cds, NULL);
    else
        idmap_free(&map);
    cds = NULL;
}

static void
turn(uint32_t i)
{
    if (i % 1024 == 1023)
        rcu_turn();
}

static void
insert_all(enum subject s)
{
    for (uint32_t i = 0; i < n_objects; i++) {
        struct object *o = &objects[order[i] - 1];
        if (s != CDS) {
            if (idmap_add(&map, o))
                abort();
        } else {
            if (!(i & (i - 1)))
                cds_lfht_resize(cds, i ? i * 2 : 1);
            cds_lfht_add(cds, id_hash(o->id), &o->node);
        }
        turn(i);
    }
    rcu_wait();
}

static void
remove_all(enum subject s)
{
    for (uint32_t i = 0; i < n_objects; i++) {
        struct object *o = &objects[order[i] - 1];
        if (s == CDS)
            cds_lfht_del(cds, &o->node);
        else
            idmap_drop(&map, o);
        turn(i);
    }
    rcu_wait();
}

static uint32_t
walk(enum subject s)
{
    uint32_t n = 0, pos = 0;
    if (s != CDS) {
        for (struct object *o; (o = idmap_each(&map, &pos));)
            n += o->id != 0;
        return n;
    }
    struct cds_lfht_iter it;
    for (cds_lfht_first(cds, &it); cds_lfht_iter_get_node(&it); cds_lfht_next(cds, &it))
        n += caa_container_of(cds_lfht_iter_get_node(&it), struct object, node)->id != 0;
    return n;
}

/* ------------------------------------------------------------------ readers */

struct reader {
    pthread_t thread;
    enum subject subject;
    uint32_t start, found;
    double ns;
};

/* As the classifier does it: the slots of a whole batch are on their way before the first is
 * read. */
static uint32_t
find_batch(const uint32_t *ids)
{
    const struct ptr_hash_slots *s = rcu_dereference(map.tab.slots);
    uint32_t hash[BATCH], found = 0;
    struct object *o[BATCH];
    for (uint32_t i = 0; i < BATCH; i++) {
        hash[i] = id_hash(ids[i]);
        __builtin_prefetch(&s->slot[hash[i] & s->mask]);
    }
    uint32_t pos[BATCH];
    for (uint32_t i = 0; i < BATCH; i++) {
        pos[i] = hash[i];
        o[i] = ptr_hash_probe(s, hash[i], &pos[i]);
        __builtin_prefetch(o[i]);
    }
    for (uint32_t i = 0; i < BATCH; i++) {
        while (o[i] && o[i]->id != ids[i])
            o[i] = ptr_hash_probe(s, hash[i], &pos[i]);
        found += o[i] != NULL;
    }
    return found;
}

static void *
read_all(void *arg)
{
    struct reader *r = arg;
    uint32_t mask = n_objects - 1, at = r->start;
    urcu_qsbr_register_thread();
    double start = cpu(CLOCK_THREAD_CPUTIME_ID);
    for (uint32_t i = 0; i < LOOKUPS; i += BATCH, at += BATCH) {
        const uint32_t *ids = &order[at & mask];
        if (r->subject == BATCHED)
            r->found += find_batch(ids);
        for (uint32_t k = 0; k < BATCH && r->subject == CDS; k++)
            r->found += cds_has(ids[k]);
        for (uint32_t k = 0; k < BATCH && r->subject == IDMAP; k++)
            r->found += idmap_find(&map, ids[k]) != NULL;
        rcu_reader_quiescent();
    }
    r->ns = (cpu(CLOCK_THREAD_CPUTIME_ID) - start) / LOOKUPS;
    urcu_qsbr_unregister_thread();
    return NULL;
}

static double
time_readers(enum subject s, unsigned n)
{
    struct reader r[2] = {{.subject = s}, {.subject = s, .start = n_objects / 2}};
    double sum = 0;
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&r[i].thread, NULL, read_all, &r[i]))
            abort();
    urcu_qsbr_thread_offline();
    for (unsigned i = 0; i < n; i++) {
        pthread_join(r[i].thread, NULL);
        if (r[i].found != LOOKUPS)
            abort();
        sum += r[i].ns;
    }
    urcu_qsbr_thread_online();
    return sum / n;
}

/* ------------------------------------------------------------------ measuring */

static size_t
allocated(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void
measure(enum subject s, double v[FIGURES])
{
    size_t before = allocated();
    open_table(s);
    double start = cpu(CLOCK_PROCESS_CPUTIME_ID);
    insert_all(s);
    v[INSERT] = (cpu(CLOCK_PROCESS_CPUTIME_ID) - start) / n_objects;
    v[BYTES] = (double)(allocated() - before) / n_objects +
               (s == CDS ? sizeof(struct cds_lfht_node) : 0); /* in the object itself */
    v[READ_1] = time_readers(s, 1);
    v[READ_2] = time_readers(s, 2);
    start = cpu(CLOCK_THREAD_CPUTIME_ID);
    if (walk(s) != n_objects)
        abort();
    v[WALK] = (cpu(CLOCK_THREAD_CPUTIME_ID) - start) / n_objects;
    start = cpu(CLOCK_PROCESS_CPUTIME_ID);
    remove_all(s);
    v[REMOVE] = (cpu(CLOCK_PROCESS_CPUTIME_ID) - start) / n_objects;
    close_table(s);
}

static int
ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double
median(const double *v, unsigned n)
{
    double sorted[ROUNDS_MAX];
    memcpy(sorted, v, n * sizeof *v);
    qsort(sorted, n, sizeof *sorted, ascending);
    return sorted[n / 2];
}

static void
report(double v[SUBJECTS][FIGURES][ROUNDS_MAX], unsigned rounds)
{
    printf("%u entries\n", n_objects);
    for (int f = 0; f < FIGURES; f++) {
        printf("  %-22s", figures[f]);
        for (int s = 0; s < SUBJECTS; s++) {
            double ratio[ROUNDS_MAX];
            if (s == BATCHED && f > READ_2)
                break;
            for (unsigned i = 0; i < rounds; i++)
                ratio[i] = v[s][f][i] / v[CDS][f][i];
            printf("  %s %.1f (%.2f)", names[s], median(v[s][f], rounds), median(ratio, rounds));
        }
        printf("\n");
    }
    fflush(stdout);
}

int
main(int argc, char **argv)
{
    static const uint32_t sizes[] = {1024, 65536, 1 << 20};
    static double v[SUBJECTS][FIGURES][ROUNDS_MAX];
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 5;
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    urcu_qsbr_register_thread();
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        make_objects(sizes[i]);
        for (unsigned round = 0; round < rounds; round++)
            for (int s = 0; s < SUBJECTS; s++) {
                double figure[FIGURES];
                measure((enum subject)s, figure);
                for (int f = 0; f < FIGURES; f++)
                    v[s][f][round] = figure[f];
            }
        report(v, rounds);
        free(objects);
        free(order);
    }
    urcu_qsbr_unregister_thread();
    return 0;
}
