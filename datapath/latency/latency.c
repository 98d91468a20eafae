/* SPDX-License-Identifier: Apache-2.0 */
#include <latency/latency.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS    1024u /* of the hash; a power of two */
#define MINUTES    10u
#define SECONDS    (LATENCY_SPAN_MS / 1000)
#define MS_NS      UINT64_C(1000000)
#define MINUTE_NS  UINT64_C(60000000000)
#define APART_MS   (LATENCY_SPAN_MS / LATENCY_KEPT)
#define SHORT_BITS 11 /* of a value that are kept, at least 10 of them significant */

/* Values that were taken within LATENCY_SPAN_MS of the last one: n of them, before `next`. */
struct window {
    uint64_t last_ms;
    uint32_t next, n;
    struct {
        uint16_t at; /* ms, modulo 65,536 */
        uint16_t v;
    } kept[LATENCY_KEPT];
};

/* Segments, since then and in each of the last seconds. */
struct segments {
    struct latency_segments all;
    uint64_t second; /* the one that recent[second % SECONDS] is of */
    struct latency_segments recent[SECONDS];
};

struct series {
    struct series *next;
    struct latency_key key;
    uint8_t source;
    uint64_t rtt_samples, delay_samples;
    uint64_t minute;        /* the one that path[minute % MINUTES] is of */
    uint32_t path[MINUTES]; /* least round trip of each minute */
    struct segments segments;
    struct window rtt, delay;
    struct latency_histogram all_rtt, all_delay;
};

struct latency {
    struct series *bucket[BUCKETS];
    size_t n;
    uint64_t lost;
    struct latency_round_trip *recent; /* LATENCY_RECENT of them; NULL: nobody has asked */
    uint64_t n_recent;                 /* so far */
};

/* ------------------------------------------------------------------ values */

/* A microsecond count in 16 bits: 5 of exponent and 11 of mantissa, in the same order. */
static uint16_t
shorten(uint32_t us)
{
    unsigned e = 0;
    while (us >> e >= 1u << SHORT_BITS)
        e++;
    return (uint16_t)(e << SHORT_BITS | us >> e);
}

static uint32_t
lengthen(uint16_t v)
{
    unsigned e = v >> SHORT_BITS;
    uint32_t m = v & ((1u << SHORT_BITS) - 1);
    return e ? (m << e) + (1u << (e - 1)) : m;
}

static int
by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t
rank(const uint32_t *sorted, size_t n, unsigned p)
{
    size_t at = (n * p + 99) / 100;
    return n ? sorted[at ? at - 1 : 0] : LATENCY_NONE;
}

uint32_t
latency_percentile(uint32_t *v, size_t n, unsigned p)
{
    if (n)
        qsort(v, n, sizeof *v, by_value);
    return rank(v, n, p);
}

/* ------------------------------------------------------------------ windows */

static uint16_t
age_of(const struct window *w, uint32_t i, uint64_t ms)
{
    return (uint16_t)(ms - w->kept[i].at);
}

static void
put(struct window *w, uint32_t us, uint64_t now)
{
    uint64_t ms = now / MS_NS;
    if (w->n && ms - w->last_ms < APART_MS)
        return;
    if (ms - w->last_ms > LATENCY_SPAN_MS)
        w->n = 0;
    while (w->n && age_of(w, (w->next - w->n) % LATENCY_KEPT, ms) > LATENCY_SPAN_MS)
        w->n--;
    w->last_ms = ms;
    w->kept[w->next].at = (uint16_t)ms;
    w->kept[w->next].v = shorten(us);
    w->next = (w->next + 1) % LATENCY_KEPT;
    if (w->n < LATENCY_KEPT)
        w->n++;
}

static void
add(struct latency_histogram *h, uint32_t us)
{
    static const uint32_t bounds[] = {OFP_LATENCY_BOUNDS};
    unsigned i = 0;
    while (i < OFP_LATENCY_BOUNDS_N && us > bounds[i])
        i++;
    h->n[i]++;
    h->sum += us;
}

static void
figures(const struct window *w, uint64_t samples, uint64_t now, struct latency_figures *out)
{
    uint32_t v[LATENCY_KEPT];
    size_t n = 0;
    uint64_t ms = now / MS_NS;
    bool none = ms - w->last_ms > LATENCY_SPAN_MS;
    for (uint32_t i = 1; i <= w->n && !none; i++) {
        uint32_t at = (w->next - i) % LATENCY_KEPT;
        if (age_of(w, at, ms) <= LATENCY_SPAN_MS)
            v[n++] = lengthen(w->kept[at].v);
    }
    uint32_t median = latency_percentile(v, n, 50);
    *out = (struct latency_figures){.samples = samples,
                                    .min = n ? v[0] : LATENCY_NONE,
                                    .p50 = median,
                                    .p90 = rank(v, n, 90),
                                    .p99 = rank(v, n, 99)};
}

/* ------------------------------------------------------------------ the least of ten minutes */

static void
follow_minutes(struct series *s, uint64_t now)
{
    uint64_t minute = now / MINUTE_NS, since = minute - s->minute;
    for (uint64_t i = 1; i <= since && i <= MINUTES; i++)
        s->path[(s->minute + i) % MINUTES] = LATENCY_NONE;
    s->minute = minute;
}

static uint32_t
path_of(struct series *s, uint64_t now)
{
    uint32_t least = LATENCY_NONE;
    follow_minutes(s, now);
    for (unsigned i = 0; i < MINUTES; i++)
        if (s->path[i] < least)
            least = s->path[i];
    return least;
}

/* ------------------------------------------------------------------ segments */

static void
add_segments(struct latency_segments *to, const struct latency_segments *more)
{
    to->counted += more->counted;
    to->behind += more->behind;
    to->before += more->before;
}

static void
follow_seconds(struct segments *s, uint64_t now)
{
    uint64_t second = now / (1000 * MS_NS), since = second - s->second;
    for (uint64_t i = 1; i <= since && i <= SECONDS; i++)
        s->recent[(s->second + i) % SECONDS] = (struct latency_segments){0};
    s->second = second;
}

static struct latency_segments
recent_segments(struct segments *s, uint64_t now)
{
    struct latency_segments sum = {0};
    follow_seconds(s, now);
    for (unsigned i = 0; i < SECONDS; i++)
        add_segments(&sum, &s->recent[i]);
    return sum;
}

/* ------------------------------------------------------------------ queues */

static bool
is_same(const struct latency_key *a, const struct latency_key *b)
{
    return a->port_no == b->port_no && a->class_id == b->class_id && a->in == b->in;
}

static struct series **
place_of(struct latency *l, const struct latency_key *k)
{
    uint32_t h = (k->port_no * 0x9e3779b1u ^ k->class_id * 2 ^ k->in) * 0x85ebca6bu;
    struct series **at = &l->bucket[h >> 16 & (BUCKETS - 1)];
    while (*at && !is_same(&(*at)->key, k))
        at = &(*at)->next;
    return at;
}

static struct series *
series_of(struct latency *l, const struct latency_key *k, uint64_t now)
{
    struct series **at = place_of(l, k), *s = *at;
    if (s)
        return s;
    s = l->n < LATENCY_MOST ? calloc(1, sizeof *s) : NULL;
    if (!s) {
        l->lost++;
        return NULL;
    }
    s->key = *k;
    s->minute = now / MINUTE_NS;
    memset(s->path, 0xff, sizeof s->path);
    l->n++;
    return *at = s;
}

static void
drop(struct latency *l, struct series **at)
{
    struct series *s = *at;
    *at = s->next;
    l->n--;
    free(s);
}

struct latency *
latency_new(void)
{
    return calloc(1, sizeof(struct latency));
}

void
latency_free(struct latency *l)
{
    for (unsigned i = 0; l && i < BUCKETS; i++)
        while (l->bucket[i])
            drop(l, &l->bucket[i]);
    if (l)
        free(l->recent);
    free(l);
}

static void
keep_recent(struct latency *l, const struct latency_key *k, uint32_t us, uint32_t pair,
            uint64_t now)
{
    struct latency_round_trip *r = &l->recent[l->n_recent % LATENCY_RECENT];
    *r = (struct latency_round_trip){
        .number = ++l->n_recent, .at = now, .key = *k, .us = us, .pair = pair};
}

bool
latency_rtt(struct latency *l, const struct latency_key *k, uint32_t us, uint32_t pair,
            uint64_t now)
{
    struct series *s = series_of(l, k, now);
    if (l->recent)
        keep_recent(l, k, us, pair, now);
    if (!s)
        return false;
    uint32_t path = path_of(s, now);
    if (us < s->path[s->minute % MINUTES])
        s->path[s->minute % MINUTES] = us;
    s->rtt_samples++;
    put(&s->rtt, us, now);
    add(&s->all_rtt, us);
    return us > path && us - path >= OFP_LATENCY_SLOW_US;
}

void
latency_delay(struct latency *l, const struct latency_key *k, uint32_t us,
              enum latency_source source, uint64_t now)
{
    struct series *s = series_of(l, k, now);
    if (!s)
        return;
    s->source = (uint8_t)source;
    s->delay_samples++;
    put(&s->delay, us, now);
    add(&s->all_delay, us);
}

void
latency_count(struct latency *l, const struct latency_key *k, const struct latency_segments *more,
              uint64_t now)
{
    struct series *s = series_of(l, k, now);
    if (!s)
        return;
    follow_seconds(&s->segments, now);
    add_segments(&s->segments.all, more);
    add_segments(&s->segments.recent[s->segments.second % SECONDS], more);
}

uint64_t
latency_lost(const struct latency *l)
{
    return l->lost;
}

void
latency_forget(struct latency *l, const struct latency_key *k)
{
    struct series **at = place_of(l, k);
    if (*at)
        drop(l, at);
}

void
latency_forget_port(struct latency *l, uint32_t port_no)
{
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct series **at = &l->bucket[i]; *at;) {
            if ((*at)->key.port_no == port_no)
                drop(l, at);
            else
                at = &(*at)->next;
        }
}

/* ------------------------------------------------------------------ one by one */

static bool
is_asked(const struct latency_key *k, uint32_t port_no, uint32_t class_id)
{
    return (port_no == UINT32_MAX || k->port_no == port_no) &&
           (class_id == UINT32_MAX || k->class_id == class_id);
}

int
latency_recent(struct latency *l, uint32_t port_no, uint32_t class_id, uint64_t after,
               latency_recent_fn *fn, void *ctx)
{
    if (!l->recent)
        l->recent = calloc(LATENCY_RECENT, sizeof *l->recent);
    if (!l->recent)
        return -ENOMEM;
    uint64_t least = l->n_recent > LATENCY_RECENT ? l->n_recent - LATENCY_RECENT : 0;
    for (uint64_t i = after > least ? after : least; i < l->n_recent; i++) {
        const struct latency_round_trip *r = &l->recent[i % LATENCY_RECENT];
        if (is_asked(&r->key, port_no, class_id))
            fn(ctx, r);
    }
    return 0;
}

/* ------------------------------------------------------------------ looking at them */

static int
by_place(const void *a, const void *b)
{
    const struct latency_key *x = &(*(struct series *const *)a)->key;
    const struct latency_key *y = &(*(struct series *const *)b)->key;
    if (x->port_no != y->port_no)
        return x->port_no < y->port_no ? -1 : 1;
    if (x->in != y->in)
        return x->in - y->in;
    return x->class_id < y->class_id ? -1 : x->class_id > y->class_id;
}

int
latency_each(struct latency *l, uint32_t port_no, uint32_t class_id, uint64_t now, latency_fn *fn,
             void *ctx)
{
    size_t n = 0;
    struct series **v = calloc(l->n + 1, sizeof(struct series *));
    if (!v)
        return -ENOMEM;
    for (unsigned i = 0; i < BUCKETS; i++)
        for (struct series *s = l->bucket[i]; s; s = s->next)
            if (is_asked(&s->key, port_no, class_id))
                v[n++] = s;
    if (n)
        qsort(v, n, sizeof(struct series *), by_place);
    for (size_t i = 0; i < n; i++) {
        struct latency_view view = {.key = v[i]->key,
                                    .path = path_of(v[i], now),
                                    .source = v[i]->source,
                                    .all_segments = v[i]->segments.all,
                                    .segments = recent_segments(&v[i]->segments, now),
                                    .all_rtt = &v[i]->all_rtt,
                                    .all_delay = &v[i]->all_delay};
        figures(&v[i]->rtt, v[i]->rtt_samples, now, &view.rtt);
        figures(&v[i]->delay, v[i]->delay_samples, now, &view.delay);
        fn(ctx, &view);
    }
    free(v);
    return 0;
}
