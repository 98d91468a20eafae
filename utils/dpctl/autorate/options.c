/* SPDX-License-Identifier: Apache-2.0 */
#include "autorate-inside.h"

#include <core/ports.h>
#include <core/say.h>
#include <core/words.h>

#include <qos/sched/units.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define TURN_US     100000
#define TURN_LEAST  50000
#define TURN_MOST   2000000
#define LIMIT_US    15000
#define LIMIT_LEAST 1000
#define LIMIT_MOST  5000000
#define RATE_LEAST  64000 /* bit/s */
#define RATE_MOST   1000000000000

static enum status
take_rate(struct ctx *c, const char *key, const char *text, uint64_t *out)
{
    char why[256];
    if (qos_parse_rate(text, out, why, sizeof why))
        return say_usage(c, "%s: %s", key, why);
    if (*out < RATE_LEAST || *out > RATE_MOST)
        return say_usage(c, "%s must be 64kbit to 1tbit, not '%.40s'%s", key, text,
                         qos_rate_is_bare(text) ? ": write a unit, as in 5mbit" : "");
    qos_rate_doubt(key, text, why, sizeof why);
    return say_doubt(c, why);
}

static enum status
take_time(struct ctx *c, const char *key, const char *text, uint64_t least, uint64_t most,
          uint64_t *out)
{
    char why[256], from[QOS_UNIT_TEXT], to[QOS_UNIT_TEXT];
    if (qos_parse_time(text, out, 1000000, why, sizeof why))
        return say_usage(c, "%s: %s", key, why);
    if (*out < least || *out > most)
        return say_usage(c, "%s must be %s to %s, not '%.40s'", key, qos_format_time(least, from),
                         qos_format_time(most, to), text);
    return DPCTL_OK;
}

static enum status
take_reflector(struct autorate *a, const char *text)
{
    char why[256];
    int err = probes_add(&a->probes, text, why, sizeof why);
    if (err && err != -EINVAL) /* well said, but this user or machine can't */
        return say_failed(a->c, "%s", why);
    return err ? say_usage(a->c, "%s", why) : DPCTL_OK;
}

static enum status
take_key(struct autorate *a, const char *key, const char *value)
{
    struct ctx *c = a->c;
    uint64_t v = 0;
    enum status st = DPCTL_OK;
    if (!strcmp(key, "port"))
        return ports_number(c, value, &a->port);
    if (!strcmp(key, "min"))
        return take_rate(c, key, value, &a->bounds.min);
    if (!strcmp(key, "max"))
        return take_rate(c, key, value, &a->bounds.max);
    if (!strcmp(key, "base"))
        return take_rate(c, key, value, &a->bounds.base);
    if (!strcmp(key, "safe"))
        return take_rate(c, key, value, &a->safe);
    if (!strcmp(key, "reflector"))
        return take_reflector(a, value);
    if (!strcmp(key, "interval"))
        return take_time(c, key, value, TURN_LEAST, TURN_MOST, &a->turn_us);
    if (!strcmp(key, "limit")) {
        st = take_time(c, key, value, LIMIT_LEAST, LIMIT_MOST, &v);
        a->bounds.limit = (int64_t)v;
    } else if (!strcmp(key, "class")) {
        st = words_number(c, key, value, 0, QOS_CLASS_MAX, &v);
        a->class = (uint32_t)v;
    } else if (!strcmp(key, "count")) {
        st = words_number(c, key, value, 0, UINT32_MAX, &a->count);
    } else if (!strcmp(key, "direction")) {
        a->dir = strcmp(value, "in") ? QOS_OUT : QOS_IN;
        if (a->dir == QOS_OUT && strcmp(value, "out") != 0)
            st = say_usage(c, "direction must be out or in, not '%.40s'", value);
    } else {
        st = say_usage(c, "unknown key '%.40s'", key);
    }
    return st;
}

/* The root of a number; good to 1 in a million. */
static uint64_t
root(uint64_t square)
{
    uint64_t r = square;
    for (uint64_t next = r / 2 + 1; next < r; next = (r + square / r) / 2)
        r = next;
    return r;
}

static enum status
check(struct autorate *a, bool has_port)
{
    struct autorate_bounds *b = &a->bounds;
    if (!has_port)
        return say_usage(a->c, "no port given: write port=1");
    if (!b->min || !b->max)
        return say_usage(a->c, "min and max are needed: write min=5mbit,max=80mbit");
    if (b->min > b->max)
        return say_usage(a->c, "min is above max");
    if (!a->probes.n)
        return say_usage(a->c, "no reflector given: write reflector=ADDRESS");
    if (!b->base) /* the geometric mean: 20mbit between 5mbit and 80mbit */
        b->base = root(b->min / 1000 * (b->max / 1000)) * 1000;
    b->base = b->base < b->min ? b->min : b->base > b->max ? b->max : b->base;
    if (!a->safe)
        a->safe = b->min;
    if (a->safe > b->max)
        return say_usage(a->c, "safe is above max");
    return DPCTL_OK;
}

enum status
autorate_options(struct autorate *a, char **words, int n)
{
    char *save, *all = words_join(a->c, words, n, ',');
    bool has_port = false, reflector = false;
    enum status st = all ? DPCTL_OK : say_memory(a->c);
    a->turn_us = TURN_US;
    a->bounds.limit = LIMIT_US;
    for (char *w = st ? NULL : strtok_r(all, ",", &save); w && !st;
         w = strtok_r(NULL, ",", &save)) {
        char *value = strchr(w, '=');
        if (!value && reflector) {
            st = take_reflector(a, w);
            continue;
        }
        if (!value)
            return say_usage(a->c, "unknown word '%.40s': write KEY=VALUE", w);
        *value++ = '\0';
        reflector = !strcmp(w, "reflector");
        has_port |= !strcmp(w, "port");
        st = take_key(a, w, value);
    }
    return st ? st : check(a, has_port);
}
