/* SPDX-License-Identifier: Apache-2.0 */
#include "rows.h"

#include <qos/sched/name.h>
#include <qos/sched/precedence.h>
#include <qos/sched/units.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool
qos_field_applies(const struct qos_field *f, unsigned object, unsigned action)
{
    unsigned need = (object == OFP_QOS_CLASS ? QOS_ON_CLASS : QOS_ON_QDISC) |
                    (action == OFP_QOS_DEL ? QOS_ON_DEL : QOS_ON_SET);
    return (f->where & need) == need;
}

unsigned
qos_field_slots(const struct qos_field *f)
{
    return f->unit == QOS_U_NAME                                     ? QOS_NAME_SLOTS
           : f->unit == QOS_U_CURVE                                  ? 3
           : f->unit == QOS_U_PRIOMAP || f->unit == QOS_U_PRECEDENCE ? 2
                                                                     : 1;
}

/* Word `i` of "a|b|c": its beginning, its length in *n; NULL past the end. */
static const char *
word(const char *words, unsigned i, size_t *n)
{
    for (const char *p = words; p; i--) {
        const char *bar = strchr(p, '|');
        *n = bar ? (size_t)(bar - p) : strlen(p);
        if (i == 0)
            return p;
        p = bar ? bar + 1 : NULL;
    }
    return NULL;
}

static int
word_index(const char *words, const char *name, size_t n)
{
    size_t len;
    const char *w;
    for (unsigned i = 0; (w = word(words, i, &len)); i++) {
        if (len == n && strncasecmp(w, name, n) == 0)
            return (int)i;
    }
    return -1;
}

bool
qos_field_named(const struct qos_field *f, const char *name, size_t n)
{
    return word_index(f->names, name, n) >= 0;
}

char *
qos_field_name(const struct qos_field *f, char *buf, size_t n)
{
    snprintf(buf, n, "%.*s", (int)strcspn(f->names, "|"), f->names);
    return buf;
}

/* ------------------------------------------------------------ special values */

static char *
format_curve(const uint64_t v[3], char *buf, size_t n)
{
    char m1[QOS_UNIT_TEXT], d[QOS_UNIT_TEXT], m2[QOS_UNIT_TEXT];
    snprintf(buf, n, "%s/%s/%s", qos_format_rate(v[0], m1), qos_format_time(v[1], d),
             qos_format_rate(v[2], m2));
    return buf;
}

/* "m1/d/m2", or "m2" alone. */
static int
parse_curve(const char *text, uint64_t v[3], char *why, size_t n)
{
    char part[3][QOS_UNIT_TEXT];
    unsigned parts = 0;
    for (const char *p = text; p; parts++) {
        /* A rate may hold "/s": only a slash before a digit divides. */
        const char *slash = p;
        while ((slash = strchr(slash, '/')) && !(slash[1] >= '0' && slash[1] <= '9'))
            slash++;
        size_t len = slash ? (size_t)(slash - p) : strlen(p);
        if (parts == 3 || len >= sizeof part[0])
            goto wrong;
        memcpy(part[parts], p, len);
        part[parts][len] = 0;
        p = slash ? slash + 1 : NULL;
    }
    v[0] = v[1] = v[2] = 0;
    if (parts == 1)
        return qos_parse_rate(part[0], &v[2], why, n);
    if (parts != 3)
        goto wrong;
    int err;
    if ((err = qos_parse_rate(part[0], &v[0], why, n)) ||
        (err = qos_parse_time(part[1], &v[1], 1, why, n)))
        return err;
    return qos_parse_rate(part[2], &v[2], why, n);
wrong:
    snprintf(why, n, "'%.40s' is not a service curve; write m1/d/m2, such as 10mbit/20ms/5mbit",
             text);
    return -EINVAL;
}

static char *
format_priomap(const uint64_t v[2], char *buf, size_t n)
{
    size_t at = 0;
    buf[0] = 0;
    for (unsigned i = 0; i < 16 && at < n; i++)
        at += (size_t)snprintf(buf + at, n - at, "%s%u", i ? ":" : "", qos_priomap_get(v, i));
    return buf;
}

static int
parse_priomap(const char *text, uint64_t v[2], char *why, size_t n)
{
    unsigned i = 0;
    v[0] = v[1] = 0;
    for (const char *p = text; i < 16; p++, i++) {
        unsigned band = 0, digits = 0;
        for (; *p >= '0' && *p <= '9' && digits < 3; p++, digits++)
            band = band * 10 + (unsigned)(*p - '0');
        if (!digits || band > 15 || *p != (i == 15 ? 0 : ':'))
            break;
        qos_priomap_put(v, i, band);
    }
    if (i == 16)
        return 0;
    snprintf(why, n,
             "'%.40s' is not a priomap; write 16 bands, such as 1:2:2:2:1:2:0:0:1:1:1:1:1:1:1:1",
             text);
    return -EINVAL;
}

static int
parse_bool(const char *text, uint64_t *v, char *why, size_t n)
{
    static const char words[] = "no|yes|off|on|0|1|false|true";
    int i = word_index(words, text, strlen(text));
    if (i < 0) {
        snprintf(why, n, "'%.40s' is neither yes nor no", text);
        return -EINVAL;
    }
    *v = (uint64_t)i & 1;
    return 0;
}

static int
parse_enum(const struct qos_field *f, const char *text, uint64_t *v, char *why, size_t n)
{
    int i = word_index(f->words, text, strlen(text));
    if (i < 0) {
        snprintf(why, n, "'%.40s' is not one of %s", text, f->words);
        return -EINVAL;
    }
    *v = (uint64_t)i;
    return 0;
}

/* ------------------------------------------------------------------- values */

static char *
format_enum(const struct qos_field *f, uint64_t v, char *buf, size_t n)
{
    size_t len;
    const char *w = v < 256 ? word(f->words, (unsigned)v, &len) : NULL;
    if (w)
        snprintf(buf, n, "%.*s", (int)len, w);
    else
        snprintf(buf, n, "%" PRIu64, v);
    return buf;
}

char *
qos_field_format(const struct qos_field *f, const struct qos_values *values, char *buf, size_t n)
{
    char t[QOS_UNIT_TEXT];
    const uint64_t *v = &values->v[f->slot];
    switch ((enum qos_unit)f->unit) {
    case QOS_U_COUNT:
    case QOS_U_PACKETS:
    case QOS_U_CLASS: snprintf(buf, n, "%" PRIu64, *v); break;
    case QOS_U_RATE: snprintf(buf, n, "%s", qos_format_rate(*v, t)); break;
    case QOS_U_SIZE: snprintf(buf, n, "%s", qos_format_size(*v, t)); break;
    case QOS_U_SIGNED: snprintf(buf, n, "%" PRId64, (int64_t)*v); break;
    case QOS_U_SEC: snprintf(buf, n, "%" PRIu64 "s", *v); break;
    case QOS_U_USEC: snprintf(buf, n, "%s", qos_format_time(*v, t)); break;
    case QOS_U_PPM:
    case QOS_U_SHARE: snprintf(buf, n, "%s", qos_format_ppm(*v, t)); break;
    case QOS_U_BOOL: snprintf(buf, n, "%s", *v ? "yes" : "no"); break;
    case QOS_U_ENUM: return format_enum(f, *v, buf, n);
    case QOS_U_PRIOMAP: return format_priomap(v, buf, n);
    case QOS_U_CURVE: return format_curve(v, buf, n);
    case QOS_U_PRECEDENCE: return qos_precedence_format(v, buf, n);
    case QOS_U_NAME: return qos_name_format(v, buf, n);
    case QOS_U_MSEC: snprintf(buf, n, "%s", qos_format_time(*v * 1000, t)); break;
    }
    return buf;
}

static int
parse_whole(const char *text, uint64_t unit_us, const char *unit, uint64_t *v, char *why, size_t n)
{
    uint64_t us;
    int err = qos_parse_time(text, &us, unit_us, why, n);
    if (!err && us % unit_us) {
        snprintf(why, n, "'%.40s' is not a number of whole %s", text, unit);
        return -EINVAL;
    }
    *v = err ? 0 : us / unit_us;
    return err;
}

static int
parse_signed(const char *text, uint64_t *v, char *why, size_t n)
{
    uint64_t size;
    bool negative = *text == '-';
    int err = qos_parse_size(text + negative, &size, why, n);
    *v = err ? 0 : negative ? -size : size;
    return err;
}

static int
parse_value(const struct qos_field *f, const char *text, uint64_t *v, char *why, size_t n)
{
    switch ((enum qos_unit)f->unit) {
    case QOS_U_COUNT:
    case QOS_U_PACKETS:
    case QOS_U_CLASS: return qos_parse_number(text, v, why, n);
    case QOS_U_RATE: return qos_parse_rate(text, v, why, n);
    case QOS_U_SIZE: return qos_parse_size(text, v, why, n);
    case QOS_U_SIGNED: return parse_signed(text, v, why, n);
    case QOS_U_SEC: return parse_whole(text, 1000000, "seconds", v, why, n);
    case QOS_U_USEC: return qos_parse_time(text, v, 1, why, n);
    case QOS_U_PPM:
    case QOS_U_SHARE: return qos_parse_ppm(text, v, why, n);
    case QOS_U_BOOL: return parse_bool(text, v, why, n);
    case QOS_U_ENUM: return parse_enum(f, text, v, why, n);
    case QOS_U_PRIOMAP: return parse_priomap(text, v, why, n);
    case QOS_U_CURVE: return parse_curve(text, v, why, n);
    case QOS_U_PRECEDENCE: return qos_precedence_parse(text, v, why, n);
    case QOS_U_NAME: return qos_name_parse(text, v, why, n);
    case QOS_U_MSEC: return parse_whole(text, 1000, "milliseconds", v, why, n);
    }
    return -EINVAL; /* LCOV_EXCL_LINE: no row leads there */
}

int
qos_field_parse(const struct qos_field *f, const char *text, struct qos_values *values, char *why,
                size_t n)
{
    struct qos_values tmp = {0};
    int err = parse_value(f, text, &tmp.v[f->slot], why, n);
    if (err)
        return err;
    struct qos_error e;
    if (qos_field_check(f, &tmp, &e)) {
        snprintf(why, n, "%s", e.text);
        return -EINVAL;
    }
    qos_put_slots(values, f->slot, &tmp.v[f->slot], qos_field_slots(f));
    return 0;
}

/* "a to b" in the field's unit. */
static void
range(const struct qos_field *f, char *buf, size_t n)
{
    char lo[64], hi[64];
    struct qos_values v = {0};
    v.v[f->slot] = f->min;
    qos_field_format(f, &v, lo, sizeof lo);
    v.v[f->slot] = f->max;
    qos_field_format(f, &v, hi, sizeof hi);
    snprintf(buf, n, "%s to %s", lo, hi);
}

char *
qos_field_range(const struct qos_field *f, char *buf, size_t n)
{
    bool is_number = f->unit != QOS_U_BOOL && f->unit != QOS_U_ENUM && f->unit != QOS_U_PRIOMAP &&
                     f->unit != QOS_U_CURVE && f->unit != QOS_U_PRECEDENCE &&
                     f->unit != QOS_U_CLASS && f->unit != QOS_U_NAME;
    *buf = '\0';
    if (is_number && f->max < QOS_U32_MAX)
        range(f, buf, n);
    return buf;
}

static int
check_priomap(const uint64_t v[2], struct qos_error *e)
{
    for (unsigned i = 0; i < 16; i++) {
        if (qos_priomap_get(v, i) > 15)
            return qos_fail(e, QOS_BAD_PARAM, "a priomap's bands are 0 to 15");
    }
    return 0;
}

bool
qos_field_allows(const struct qos_field *f, uint64_t value)
{
    if (f->unit == QOS_U_SIGNED)
        return (int64_t)value >= (int64_t)f->min && (int64_t)value <= (int64_t)f->max;
    return (value >= f->min && value <= f->max) || (f->none && !value);
}

int
qos_field_check(const struct qos_field *f, const struct qos_values *values, struct qos_error *e)
{
    char name[QOS_NAME_ROOM], is[128], right[160];
    const uint64_t *v = &values->v[f->slot];
    if (f->unit == QOS_U_PRIOMAP)
        return check_priomap(v, e);
    if (f->unit == QOS_U_NAME) {
        qos_name_get(v, name);
        return qos_name_check(name, strlen(name), e);
    }
    if (f->unit == QOS_U_PRECEDENCE)
        return qos_precedence_check(f->sub - 1u, v, e);
    if (f->unit == QOS_U_CURVE) {
        if (v[0] <= QOS_RATE_MAX && v[1] <= QOS_TIME_MAX_US && v[2] <= QOS_RATE_MAX)
            return 0;
        return qos_fail(e, QOS_BAD_PARAM,
                        "the service curve's values are too large; the most is "
                        "10 Pbit/s and one hour");
    }
    if (qos_field_allows(f, *v))
        return 0;
    range(f, right, sizeof right);
    int code = f->unit == QOS_U_CLASS ? OFPSFC_BAD_CLASS : OFPSFC_BAD_PARAM;
    return qos_fail(e, QOS_ERR(code), "%s %s is out of range; it must be %s",
                    qos_field_name(f, name, sizeof name),
                    qos_field_format(f, values, is, sizeof is), right);
}

/* -------------------------------------------------------------------- usage */

const char *
qos_field_hint(const struct qos_field *f)
{
    static const char *const hints[] = {
        [QOS_U_COUNT] = "N",        [QOS_U_PACKETS] = "PACKETS",
        [QOS_U_RATE] = "RATE",      [QOS_U_SIZE] = "BYTES",
        [QOS_U_SIGNED] = "BYTES",   [QOS_U_SEC] = "SECONDS",
        [QOS_U_USEC] = "TIME",      [QOS_U_PPM] = "PROBABILITY",
        [QOS_U_SHARE] = "PERCENT%", [QOS_U_BOOL] = "yes|no",
        [QOS_U_CLASS] = "CLASS",    [QOS_U_PRIOMAP] = "B0:...:B15",
        [QOS_U_CURVE] = "M1/D/M2",  [QOS_U_PRECEDENCE] = "MIN/MAX/LIMIT/PROBABILITY",
        [QOS_U_NAME] = "NAME",      [QOS_U_MSEC] = "TIME",
    };
    return f->unit == QOS_U_ENUM ? f->words : hints[f->unit];
}

/* --------------------------------------------------------------- properties */

static const struct {
    const char *name;
    uint8_t bytes;
} props[] = {
#define ROW(n, type, size) [type] = {#n, size},
    OFP_QOS_PROP_ROWS(ROW)
#undef ROW
};

unsigned
qos_prop_size(unsigned type)
{
    return type < QOS_COUNT(props) ? props[type].bytes : 0;
}

const char *
qos_prop_name(unsigned type)
{
    return type < QOS_COUNT(props) ? props[type].name : NULL;
}
