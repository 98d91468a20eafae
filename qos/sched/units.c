/* SPDX-License-Identifier: Apache-2.0 */
#include <qos/sched/units.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define K  1000ull
#define M  1000000ull
#define G  1000000000ull
#define T  1000000000000ull
#define KI (1ull << 10)
#define MI (1ull << 20)
#define GI (1ull << 30)
#define TI (1ull << 40)

/* A unit's name, and its size in the unit in which the value is kept. */
struct unit {
    const char *name;
    uint64_t factor;
    bool print; /* formatting may choose it */
};

/* Largest first, so that formatting finds the shortest text. */
static const struct unit rate_units[] = {
    {"tbit", T, true},        {"gbit", G, true},        {"mbit", M, true},
    {"kbit", K, true},        {"bit", 1, true},         {"tibit", TI, false},
    {"gibit", GI, false},     {"mibit", MI, false},     {"kibit", KI, false},
    {"tbps", 8 * T, false},   {"gbps", 8 * G, false},   {"mbps", 8 * M, false},
    {"kbps", 8 * K, false},   {"bps", 8, false},        {"tibps", 8 * TI, false},
    {"gibps", 8 * GI, false}, {"mibps", 8 * MI, false}, {"kibps", 8 * KI, false},
    {"tbit/s", T, false},     {"gbit/s", G, false},     {"mbit/s", M, false},
    {"kbit/s", K, false},     {"bit/s", 1, false},      {"", 1, false},
};

/* Powers of 1024, as tc has them. */
static const struct unit size_units[] = {
    {"gb", GI, true},        {"mb", MI, true},        {"kb", KI, true}, {"b", 1, true},
    {"g", GI, false},        {"m", MI, false},        {"k", KI, false}, {"gbit", GI / 8, false},
    {"mbit", MI / 8, false}, {"kbit", KI / 8, false}, {"", 1, false},
};

static const struct unit time_units[] = {
    {"s", M, true},      {"ms", K, true},    {"us", 1, true},
    {"sec", M, false},   {"secs", M, false}, {"msec", K, false},
    {"msecs", K, false}, {"usec", 1, false}, {"usecs", 1, false},
};

static const struct unit ppm_units[] = {
    {"%", 10000, false},
    {"", M, false},
};

#define N(a) (sizeof(a) / sizeof((a)[0]))

struct kind {
    const struct unit *units;
    size_t n;
    const char *rule; /* what to write, with an example */
};

static const struct kind rate_kind = {
    rate_units, N(rate_units),
    "a rate is a number with bit, kbit, mbit, gbit, tbit (per second), with an i for 1024 (kibit), "
    "or bps, kbps, mbps (bytes per second): 6mbit"};
static const struct kind size_kind = {
    size_units, N(size_units), "a size is a number of bytes, or one with b, kb, mb, gb: 30kb"};
static const struct kind time_kind = {time_units, N(time_units),
                                      "a time is a number with us, ms or s: 10ms"};
static const struct kind ppm_kind = {ppm_units, N(ppm_units),
                                     "a share is a number from 0 to 1, or one with %: 2%"};

static int
wrong(const struct kind *kind, const char *text, const char *what, char *why, size_t n)
{
    if (why && n)
        snprintf(why, n, "'%.40s' %s; %s", text, what, kind->rule);
    return -EINVAL;
}

/* Digits into *v; returns the position behind them, NULL if the number is too large. */
static const char *
digits(const char *p, uint64_t *v)
{
    for (*v = 0; *p >= '0' && *p <= '9'; p++) {
        if (__builtin_mul_overflow(*v, 10u, v) ||
            __builtin_add_overflow(*v, (uint64_t)(*p - '0'), v))
            return NULL;
    }
    return p;
}

/* whole.fraction x factor, rounded down; the fraction is fraction/scale. */
static bool
scale_up(uint64_t whole, uint64_t fraction, uint64_t scale, uint64_t factor, uint64_t *out)
{
    uint64_t part, v;
    if (__builtin_mul_overflow(whole, factor, &v))
        return false;
    /* fraction < scale <= 10^6, factor < 2^44 */
    part = factor / scale * fraction + factor % scale * fraction / scale;
    return !__builtin_add_overflow(v, part, out);
}

static int
parse(const struct kind *kind, const char *text, uint64_t bare, uint64_t *out, char *why, size_t n)
{
    uint64_t whole, fraction = 0, scale = 1;
    const char *p = digits(text, &whole);
    if (!p)
        return wrong(kind, text, "is too large", why, n);
    bool any = p != text;
    if (*p == '.') {
        const char *f = ++p;
        for (; *p >= '0' && *p <= '9'; p++) {
            any = true;
            if (p - f < 6) {
                fraction = fraction * 10 + (uint64_t)(*p - '0');
                scale *= 10;
            }
        }
    }
    if (!any)
        return wrong(kind, text, *text == '-' ? "is negative" : "is not a number", why, n);
    uint64_t factor = *p ? 0 : bare;
    for (size_t i = 0; i < kind->n && !factor; i++) {
        if (strcasecmp(p, kind->units[i].name) == 0)
            factor = kind->units[i].factor;
    }
    if (!factor)
        return wrong(kind, text, "has an unknown unit", why, n);
    if (!scale_up(whole, fraction, scale, factor, out))
        return wrong(kind, text, "is too large", why, n);
    return 0;
}

static char *
format(const struct kind *kind, uint64_t v, char buf[QOS_UNIT_TEXT])
{
    const struct unit *best = NULL;
    for (size_t i = 0; i < kind->n; i++) {
        const struct unit *u = &kind->units[i];
        if (u->print && (u->factor == 1 || (v && v % u->factor == 0))) {
            best = u;
            break;
        }
    }
    snprintf(buf, QOS_UNIT_TEXT, "%" PRIu64 "%s", best ? v / best->factor : v,
             best ? best->name : "");
    return buf;
}

int
qos_parse_rate(const char *text, uint64_t *bits_per_s, char *why, size_t n)
{
    uint64_t v;
    int err = parse(&rate_kind, text, 1, &v, why, n);
    if (!err)
        *bits_per_s = v;
    return err;
}

bool
qos_rate_is_bare(const char *text)
{
    return !text[strspn(text, "0123456789.")] && strpbrk(text, "123456789");
}

#define FEW_MEAN_MBIT 10000 /* a bare number from here on is bit/s, written without a unit */

bool
qos_rate_doubt(const char *key, const char *text, char *why, size_t n)
{
    char taken[QOS_UNIT_TEXT];
    uint64_t v = 0;
    size_t len = strlen(text);
    *why = '\0';
    if (qos_rate_is_bare(text) && !qos_parse_rate(text, &v, NULL, 0) && v >= FEW_MEAN_MBIT) {
        snprintf(why, n, "%s=%.40s is %.40s bit/s, as for tc; write %s if you mean that", key, text,
                 text, qos_format_rate(v, taken));
        return true;
    }
    if (qos_rate_is_bare(text)) {
        snprintf(
            why, n,
            "%s=%.40s is %.40s bit/s, as for tc; write %.40smbit, or %.40sbit if you mean that",
            key, text, text, text, text);
        return true;
    }
    const char *unit = len > 3 ? text + len - 3 : "";
    if (*unit != 'b' || strcasecmp(unit, "bps") || qos_parse_rate(text, &v, NULL, 0) || !v)
        return false;
    qos_format_rate(v, taken);
    snprintf(
        why, n,
        "%s=%.40s is %s: bps are bytes per second, as for tc; write %.*sbit, or %s if you mean that",
        key, text, taken, (int)(len - 3 < 40 ? len - 3 : 40), text, taken);
    return true;
}

int
qos_parse_size(const char *text, uint64_t *bytes, char *why, size_t n)
{
    uint64_t v;
    int err = parse(&size_kind, text, 1, &v, why, n);
    if (!err)
        *bytes = v;
    return err;
}

int
qos_parse_time(const char *text, uint64_t *us, uint64_t bare_us, char *why, size_t n)
{
    uint64_t v;
    int err = parse(&time_kind, text, bare_us, &v, why, n);
    if (!err)
        *us = v;
    return err;
}

int
qos_parse_ppm(const char *text, uint64_t *ppm, char *why, size_t n)
{
    uint64_t v;
    int err = parse(&ppm_kind, text, K * K, &v, why, n);
    if (err)
        return err;
    if (v > K * K)
        return wrong(&ppm_kind, text, "is above 100 %", why, n);
    *ppm = v;
    return 0;
}

int
qos_parse_number(const char *text, uint64_t *value, char *why, size_t n)
{
    uint64_t v = 0;
    const char *p = text;
    if (p[0] == '0' && (p[1] | 0x20) == 'x') {
        static const char hex[] = "0123456789abcdef";
        const char *d;
        for (p = text += 2; *p && (d = strchr(hex, *p | (*p > '9' ? 0x20 : 0))) && !(v >> 60); p++)
            v = v << 4 | (uint64_t)(d - hex);
    } else {
        p = digits(text, &v);
    }
    if (!p || *p || p == text) {
        if (why && n)
            snprintf(why, n, "'%.40s' is not a number; write 10 or 0xa", text);
        return -EINVAL;
    }
    *value = v;
    return 0;
}

char *
qos_format_rate(uint64_t bits_per_s, char buf[QOS_UNIT_TEXT])
{
    return format(&rate_kind, bits_per_s, buf);
}

char *
qos_format_size(uint64_t bytes, char buf[QOS_UNIT_TEXT])
{
    return format(&size_kind, bytes, buf);
}

char *
qos_format_time(uint64_t us, char buf[QOS_UNIT_TEXT])
{
    return format(&time_kind, us, buf);
}

char *
qos_format_ppm(uint64_t ppm, char buf[QOS_UNIT_TEXT])
{
    int len = snprintf(buf, QOS_UNIT_TEXT, "%" PRIu64 ".%04" PRIu64, ppm / 10000, ppm % 10000);
    while (len > 0 && buf[len - 1] == '0')
        len--;
    if (len > 0 && buf[len - 1] == '.')
        len--;
    snprintf(buf + len, QOS_UNIT_TEXT - (size_t)len, "%%");
    return buf;
}

void
qos_append(char *buf, size_t n, int *at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t used = *at < (int)n ? (size_t)*at : n;
    int len = vsnprintf(n ? buf + used : NULL, n - used, fmt, ap);
    va_end(ap);
    *at += len > 0 ? len : 0;
}
