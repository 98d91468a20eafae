/* SPDX-License-Identifier: Apache-2.0 */
#include "autorate-inside.h"

#include <core/say.h>
#include <queues/keys.h>

#include <errno.h>

#define TURN_US     100000
#define TURN_LEAST  50000
#define TURN_MOST   2000000
#define LIMIT_US    15000
#define LIMIT_LEAST 1000
#define LIMIT_MOST  5000000
#define RATE_LEAST  64000 /* bit/s */
#define RATE_MOST   1000000000000

static enum status
take_reflector(struct ctx *c, const struct key *k, char *text, void *to)
{
    struct autorate *a = to;
    char why[256];
    int err = probes_add(&a->probes, text, why, sizeof why);
    if (err && err != -EINVAL) /* well said, but this user or machine can't */
        return say_failed(c, "%s", why);
    return err ? say_usage(c, "%s", why) : DPCTL_OK;
}

#define RATE(member)                                                                               \
    key_rate, KEY_TO(struct autorate, member), .least = RATE_LEAST, .most = RATE_MOST
#define ANY(member) KEY_TO(struct autorate, member)
static const struct key keys[] = {
    {"port", key_port, ANY(port), .need = "port=1"},
    {"min", RATE(bounds.min), .need = "min=5mbit,max=80mbit"},
    {"max", RATE(bounds.max), .need = "min=5mbit,max=80mbit"},
    {"base", RATE(bounds.base)},
    {"safe", RATE(safe)},
    {"reflector", .take = take_reflector, .bare = KEY_BARE_ALL},
    {"passive", key_flag, ANY(passive.on)},
    {"interval", key_time, ANY(turn_us), .least = TURN_LEAST, .most = TURN_MOST},
    {"limit", key_time, ANY(bounds.limit), .least = LIMIT_LEAST, .most = LIMIT_MOST},
    {"class", key_number, ANY(class), .most = QOS_CLASS_MAX},
    {"count", key_number, ANY(count), .most = UINT32_MAX},
    {"direction", key_choice, ANY(dir), .values = "out|in"},
    {NULL},
};

/* The root of a number; good to 1 in a million. */
static uint64_t
root(uint64_t square)
{
    uint64_t r = square;
    for (uint64_t next = r / 2 + 1; next < r; next = (r + square / r) / 2)
        r = next;
    return r;
}

enum status
autorate_options(struct autorate *a, char **words, int n)
{
    struct autorate_bounds *b = &a->bounds;
    a->turn_us = TURN_US;
    b->limit = LIMIT_US;
    enum status st = keys_take(a->c, keys, words, n, a);
    if (st)
        return st;
    if (!a->probes.n && !a->passive.on)
        return say_usage(a->c,
                         "say what to measure: reflector=ADDRESS beyond the link, passive=yes "
                         "for the round trips of what passes, or both");
    if (!a->probes.n && a->dir == QOS_IN)
        return say_usage(a->c, "with direction=in give a reflector=, too: what acknowledges a "
                               "download has no round trip");
    if (b->min > b->max)
        return say_usage(a->c, "min is above max");
    if (!b->base) /* the geometric mean: 20mbit between 5mbit and 80mbit */
        b->base = root(b->min / 1000 * (b->max / 1000)) * 1000;
    b->base = b->base < b->min ? b->min : b->base > b->max ? b->max : b->base;
    if (!a->safe)
        a->safe = b->min;
    return a->safe > b->max ? say_usage(a->c, "safe is above max") : DPCTL_OK;
}
