/* SPDX-License-Identifier: Apache-2.0 */
#include "rates.h"

#include <stdlib.h>
#include <string.h>

static int
compare_keys(const uint64_t *a, const uint64_t *b)
{
    if (a[0] != b[0])
        return a[0] < b[0] ? -1 : 1;
    return a[1] < b[1] ? -1 : a[1] > b[1];
}

static int
by_key(const void *a, const void *b)
{
    return compare_keys(((const struct top_past *)a)->key, ((const struct top_past *)b)->key);
}

static double
seconds_between(const struct top_item *i, const struct top_past *was, int64_t here_us)
{
    if (i->age_us && was->age_us)
        return i->age_us > was->age_us ? (double)(i->age_us - was->age_us) / 1e6 : 0;
    return here_us > 0 ? (double)here_us / 1e6 : 0;
}

static void
rate_of(struct top_item *i, const struct top_past *was, int64_t here_us)
{
    double s = was ? seconds_between(i, was, here_us) : 0;
    i->measured = s > 0;
    for (int k = 0; k < TOP_VALUES; k++) {
        bool counts = i->measured && i->v[k] != TOP_UNKNOWN && was->v[k] != TOP_UNKNOWN &&
                      i->v[k] >= was->v[k];
        i->rate[k] = counts ? (double)(i->v[k] - was->v[k]) / s : 0;
    }
}

void
top_rates(struct top_item *v, size_t n, const struct top_last *last, int64_t now_us)
{
    for (size_t i = 0; i < n; i++) {
        struct top_past key = {.key = {v[i].key[0], v[i].key[1]}};
        const struct top_past *was =
            last->n ? bsearch(&key, last->v, last->n, sizeof key, by_key) : NULL;
        rate_of(&v[i], was, now_us - last->at_us);
    }
}

bool
top_remember(struct top_last *last, const struct top_item *v, size_t n, int64_t now_us)
{
    struct top_past *to = realloc(last->v, (n + 1) * sizeof *to);
    if (!to)
        return false;
    last->v = to;
    last->n = n;
    last->at_us = now_us;
    for (size_t i = 0; i < n; i++) {
        to[i] = (struct top_past){.key = {v[i].key[0], v[i].key[1]}, .age_us = v[i].age_us};
        memcpy(to[i].v, v[i].v, sizeof to[i].v);
    }
    qsort(to, n, sizeof *to, by_key);
    return true;
}

/* --------------------------------------------------------------------- sorting */

/* What qsort's function compares by. */
static struct order {
    int value;
    bool by_rate, reverse;
} order;

static double
worth(const struct top_item *i)
{
    return order.by_rate                      ? i->rate[order.value]
           : i->v[order.value] == TOP_UNKNOWN ? -1
                                              : (double)i->v[order.value];
}

static int
by_order(const void *a, const void *b)
{
    const struct top_item *x = a, *y = b;
    int sign = order.reverse ? -1 : 1;
    if (order.value >= 0 && worth(x) != worth(y))
        return worth(x) > worth(y) ? -sign : sign;
    return compare_keys(x->key, y->key) * (order.value < 0 ? sign : 1);
}

void
top_sort(struct top_item *v, size_t n, int value, bool by_rate, bool reverse)
{
    order = (struct order){value, by_rate, reverse};
    if (n)
        qsort(v, n, sizeof *v, by_order);
}

/* FNV-1a twice, the second time with each byte's place mixed in. */
void
top_hash(const void *p, size_t n, uint64_t key[2])
{
    const uint8_t *b = p;
    uint64_t x = 0xcbf29ce484222325u, y = 0x9e3779b97f4a7c15u;
    for (size_t i = 0; i < n; i++) {
        x = (x ^ b[i]) * 0x100000001b3u;
        y = (y ^ (b[i] + i * 0x9e37u)) * 0xff51afd7ed558ccdu;
        y ^= y >> 29;
    }
    key[0] = x;
    key[1] = y;
}
